"""A real service to be attacked, and a second process that waits for its /health meanwhile."""

import inspect
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamhash import SDOH
from streamhash.live import Collection

MAIN = "from streamhash.cli import main; main()"
READ, WRITE = "read-token-of-the-faults", "write-token-of-the-faults"
WIDTH = 64

# Asks for /health, or sends what its last argument says, until its input ends; then tells how
# often, and the longest wait in seconds: as it was, and without what it or a thread of the service
# waited for a processor meanwhile.
WATCH = """
import glob, select, socket, sys, time
address, longest, held_up, n = ("127.0.0.1", int(sys.argv[1])), 0.0, 0.0, 0
def queued():
    delays = {}
    for file in ["/proc/self/schedstat", *glob.glob(f"/proc/{sys.argv[2]}/task/*/schedstat")]:
        try:
            with open(file) as opened:
                delays[file] = int(opened.read().split()[1]) / 1e9
        except OSError:
            pass
    return delays
request = bytes.fromhex(sys.argv[3]) or b"GET /health HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n"
before = queued()
connection = None  # at first
while True:
    if select.select([sys.stdin], [], [], 0.002)[0]:
        break
    start = time.perf_counter()
    try:
        connection = connection or socket.create_connection(address, 120)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(request)
        answer = b""
        while not answer.endswith(b"}"):
            part = connection.recv(4096)
            if not part:
                raise OSError
            answer += part
    except OSError:
        print("no answer", flush=True)
        break
    wait, after = time.perf_counter() - start, queued()
    waited = {file: delay - before.get(file, delay) for file, delay in after.items()}
    before, own = after, waited.pop("/proc/self/schedstat", 0.0)
    longest, n = max(longest, wait), n + 1
    held_up = max(held_up, wait - own - max(waited.values(), default=0.0))
    if n == 1:
        print("started", flush=True)
print(n, longest, held_up, flush=True)
"""


def create(path: Path, n: int) -> None:
    """Make a collection of ``n`` items that has learned, with metadata."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 10
    rows = rng.standard_normal((n, WIDTH)) + 3 * np.eye(10, WIDTH)[labels]
    # Other versions, which this one is compared with, may not know of durability.
    known = "durability" in inspect.signature(Collection.create).parameters
    options: dict[str, Any] = {"durability": "process"} if known else {}
    with Collection.create(path, _hasher(), refresh="manual", **options) as items:
        for start in range(0, n, 2000):
            part = slice(start, min(start + 2000, n))
            ids, known = range(n)[part], start == 0
            extra = [{"row": i, "name": f"item {i}"} for i in ids]
            items.add(ids, rows[part], labels[part] if known else None, metadata=extra)


def _hasher() -> SDOH:
    return SDOH(32, memory=0, features=None, random_state=0)  # which starts fast


class Service:
    """``streamhash serve PATH`` in a process of its own, with both tokens."""

    def __init__(self, path: Path, *options: str, **environment: str) -> None:
        tokens = {"STREAMHASH_READ_TOKEN": READ, "STREAMHASH_WRITE_TOKEN": WRITE}
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN, "serve", str(path), "--port", "0", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "STREAMHASH_THREADS": "2", **tokens, **environment},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if " at http" not in line:
            self.process.kill()
            raise SystemExit(f"FAILED: the service did not start: {line}")
        self.port = int(line.split(" at ")[1].split("/ ")[0].rpartition(":")[2])

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode

    def processes(self) -> list[int]:
        """The service's process, and those that it has started."""
        own = self.process.pid
        children = Path(f"/proc/{own}/task").glob("*/children")
        return [own, *(int(pid) for each in children for pid in each.read_text().split())]

    def memory(self, name: str = "VmRSS") -> int:
        """Bytes of memory that the service takes now, or has taken at most (VmHWM)."""
        total = 0
        for pid in self.processes():
            with suppress(OSError):
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024
        return total

    def forget_peak(self) -> None:
        """Let VmHWM begin anew."""
        for pid in self.processes():
            with suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text("5")


class Watched(NamedTuple):
    """What was seen while something went on."""

    longest: float  # seconds that /health took; infinite if it was not answered
    held_up: float  # the same, without waiting for a processor
    asked: int  # how often
    peak: int  # bytes of memory beyond those before
    left: int  # bytes of memory that were not given back
    seconds: float
    result: Any


def watch(
    service: Service, do: Callable[[], Any], *, at_least: float = 0.0, request: bytes = b""
) -> Watched:
    """Do something to a service while another process asks for /health, or something else."""
    arguments = [str(service.port), str(service.process.pid), request.hex()]
    watcher = subprocess.Popen(
        [sys.executable, "-S", "-c", WATCH, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watcher.stdout is not None
    first = watcher.stdout.readline()
    before = service.memory()
    service.forget_peak()
    start = time.perf_counter()
    try:
        result = do()
        seconds = time.perf_counter() - start
        time.sleep(max(0.1, at_least - seconds))
    finally:
        peak = service.memory("VmHWM") - before
        said = first + watcher.communicate("stop\n", timeout=300)[0]
    n, longest, held_up = said.splitlines()[-1].split()
    silent = float("inf") if "no answer" in said else 0.0
    waits = float(longest) + silent, float(held_up) + silent
    return Watched(*waits, int(n), peak, service.memory() - before, seconds, result)


def head(
    path: str, length: int | None, *, token: str = READ, kind: str = "application/json"
) -> bytes:
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: {kind}\r\nConnection: close\r\n{size}\r\n\r\n"
    ).encode()


def exchange(port: int, content: bytes, *, seconds: float = 300) -> tuple[int, bytes]:
    """Send bytes as they are; return the status and the content of the answer, 0 for none."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        received = bytearray()
        sending = threading.Thread(target=_send, args=(connection, content), daemon=True)
        sending.start()
        with suppress(ConnectionError):
            while part := connection.recv(2**20):
                received += part
        sending.join(1)
    start, _, body = bytes(received).partition(b"\r\n\r\n")
    return (int(start.split()[1]) if start else 0), body


def _send(connection: socket.socket, content: bytes) -> None:
    with suppress(OSError):
        connection.sendall(content)


def post(path: str, body: bytes, **named: Any) -> bytes:
    return head(path, len(body), **named) + body


@contextmanager
def serving(n_items: int, *options: str) -> Iterator[Service]:
    """A service of a collection of ``n_items``, and an error if it does not end as it should."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items"
        create(path, n_items)
        service = Service(path, *options)
        try:
            warm_up(service)
            yield service
        finally:
            code = service.stop()
    if code != 0:
        raise SystemExit(f"FAILED: the service ended with {code}")


def warm_up(service: Service) -> None:
    """Let it load what only the first request of a kind needs."""
    rows = [[0.5] * WIDTH] * 500
    for body in ({"ids": [0, 1]}, {"vectors": rows}):
        exchange(service.port, post("/api/search", json.dumps(body).encode()))
    sides = {"left": {"method": "mihash"}, "right": {"method": "sdoh"}}
    compared = json.dumps({"queries": [0, 1], **sides}).encode()
    exchange(service.port, post("/api/compare", compared))
