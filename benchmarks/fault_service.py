"""Requests that mean no good, against a real service: how long others wait, what memory it takes.

Each of ``SINGLE`` is one request, each of ``CROWDS`` what many connections do. While it goes on, a
second process asks for /health all the time; the peak of the service's memory, its children's
included, is read from the system.

    python benchmarks/faults.py service
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamhash import SDOH
from streamhash.live import Collection
from streamhash.service.frames import pack_frame

MAIN = "from streamhash.cli import main; main()"
READ, WRITE = "read-token-of-the-faults", "write-token-of-the-faults"
WIDTH = 64

# Asks for /health until its input ends; then tells how often, and the longest wait in seconds.
WATCH = """
import select, socket, sys, time
address, longest, n = ("127.0.0.1", int(sys.argv[1])), 0.0, 0
connection = None  # at first
while True:
    if select.select([sys.stdin], [], [], 0.002)[0]:
        break
    start = time.perf_counter()
    try:
        connection = connection or socket.create_connection(address, 120)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(b"GET /health HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
        answer = b""
        while not answer.endswith(b"}"):
            part = connection.recv(4096)
            if not part:
                raise OSError
            answer += part
    except OSError:
        print("no answer", flush=True)
        break
    longest, n = max(longest, time.perf_counter() - start), n + 1
    if n == 1:
        print("started", flush=True)
print(n, longest, flush=True)
"""


# ------------------------------------------------------------------------------- the service


def create(path: Path, n: int) -> None:
    """Make a collection of ``n`` items that has learned, with metadata."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 10
    rows = rng.standard_normal((n, WIDTH)) + 3 * np.eye(10, WIDTH)[labels]
    with Collection.create(path, _hasher(), refresh="manual") as items:
        for start in range(0, n, 2000):
            part = slice(start, min(start + 2000, n))
            ids, known = range(n)[part], start == 0
            extra = [{"row": i, "name": f"item {i}"} for i in ids]
            items.add(ids, rows[part], labels[part] if known else None, metadata=extra)


def _hasher() -> SDOH:
    return SDOH(32, memory=0, features=None, random_state=0)  # which starts fast


class Service:
    """``streamhash serve PATH`` in a process of its own, with both tokens."""

    def __init__(self, path: Path, *options: str) -> None:
        tokens = {"STREAMHASH_READ_TOKEN": READ, "STREAMHASH_WRITE_TOKEN": WRITE}
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN, "serve", str(path), "--port", "0", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "STREAMHASH_THREADS": "2", **tokens},
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
            self.process.communicate(timeout=60)
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
    asked: int  # how often
    peak: int  # bytes of memory beyond those before
    left: int  # bytes of memory that were not given back
    seconds: float
    result: Any


def watch(service: Service, do: Callable[[], Any], *, at_least: float = 0.0) -> Watched:
    """Do something to a service while another process asks for /health."""
    watcher = subprocess.Popen(
        [sys.executable, "-S", "-c", WATCH, str(service.port)],
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
    n, longest = said.splitlines()[-1].split()
    wait = float("inf") if "no answer" in said else float(longest)
    return Watched(wait, int(n), peak, service.memory() - before, seconds, result)


# ------------------------------------------------------------------------------ single requests


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


def filled(start: bytes, each: bytes, end: bytes, size: int) -> bytes:
    """Bytes of about ``size``: a start, something again and again, an end."""
    return start + each * ((size - len(start) - len(end)) // len(each)) + end


def vectors(size: int, number: bytes) -> bytes:
    """As many vectors as fit, but no more than a request may have, as JSON."""
    row = b"[" + b",".join([number] * WIDTH) + b"]"
    n = min(size // (len(row) + 1), 10_000)
    return b'{"vectors":[' + b",".join([row] * n) + b'],"k":1}'


RAW = "application/octet-stream"
SEARCH, ADD, GET = "/api/search", "/api/items", "/api/items/get"


def _raw(fields: bytes, numbers: bytes = b"") -> bytes:
    return len(fields).to_bytes(4, "little") + fields + numbers


def _raw_vectors(size: int) -> bytes:
    n = min(size // (4 * WIDTH), 10_000)
    return pack_frame({"shape": [n, WIDTH], "k": 1}, np.ones((n, WIDTH), np.float32))


def _metadata(size: int, n: int) -> bytes:
    row = json.dumps([0.5] * WIDTH).encode()
    each = b'{"a":"' + b"x" * max(1, size // n - len(row) - 20) + b'"}'
    body = {b"vectors": [row] * n, b"metadata": [each] * n}
    parts = [b'"' + name + b'":[' + b",".join(values) + b"]" for name, values in body.items()]
    return b"{" + b",".join(parts) + b"}"


class Single(NamedTuple):
    """A request, and the statuses that it may be answered with."""

    make: Callable[[int], bytes]  # of about so many bytes
    statuses: tuple[int, ...]


def _of(path: str, make: Callable[[int], bytes], *statuses: int, **named: Any) -> Single:
    return Single(lambda size: post(path, make(size), **named), statuses)


def _ids(n: int) -> bytes:
    return json.dumps({"ids": [*range(n)]}).encode()


def _search(n: int, k: int) -> bytes:
    return json.dumps({"ids": [*range(n)], "k": k}).encode()


def _compare(n: int) -> bytes:
    sides = {"left": {"method": "mihash"}, "right": {"method": "sdoh"}}
    return json.dumps({"queries": [*range(n)], "k": 1000, **sides}).encode()


SINGLE = {
    "ids that are none": _of(SEARCH, lambda n: filled(b'{"ids":[-1', b",-1", b"]}", n), 413, 422),
    "too many ids": _of(SEARCH, lambda n: filled(b'{"ids":[1', b",1", b"]}", n), 413, 422),
    "labels that are none": _of(
        "/api/labels",
        lambda n: filled(b'{"ids":[1],"labels":[1.5', b",1.5", b"]}", n),
        *(413, 422),
        token=WRITE,
    ),
    "empty vectors": _of(SEARCH, lambda n: filled(b'{"vectors":[[]', b",[]", b"]}", n), 422),
    "one vector without end": _of(
        SEARCH, lambda n: filled(b'{"vectors":[[1', b",1", b"]]}", n), 400, 413
    ),
    "one vector of strings": _of(
        SEARCH, lambda n: filled(b'{"vectors":[["a"', b',"a"', b"]]}", n), 413, 422
    ),
    "objects for ids": _of(SEARCH, lambda n: filled(b'{"ids":[{}', b",{}", b"]}", n), 422),
    "unknown names": _of(SEARCH, lambda n: filled(b'{"ids":[1]', b',"a":1', b"}", n), 422),
    "the same name again": _of(SEARCH, lambda n: filled(b'{"k":1', b',"k":1', b"}", n), 422),
    "lists in lists": _of(
        SEARCH, lambda n: b'{"ids":' + b"[" * (n // 2) + b"]" * (n // 2) + b"}", 422
    ),
    "k as a list": _of(SEARCH, lambda n: filled(b'{"ids":[1],"k":[1', b",1", b"]}", n), 422),
    "k as an object": _of(
        SEARCH, lambda n: filled(b'{"ids":[1],"k":{"a":1', b',"a":1', b"}}", n), 422
    ),
    "a number of many digits": _of(SEARCH, lambda n: filled(b'{"k":1', b"1", b"}", n), 422),
    "a fraction of many digits": _of(
        SEARCH, lambda n: filled(b'{"ids":[1],"k":1.', b"0", b"}", n), 200, 413, 422
    ),
    "a long string": _of(SEARCH, lambda n: filled(b'{"ids":["', b"a", b'"]}', n), 422),
    "a long name": _of(SEARCH, lambda n: filled(b'{"', b"a", b'":1}', n), 422),
    "white space": _of(SEARCH, lambda n: filled(b'{"k":', b" ", b"", n), 422),
    "a string without end": _of(SEARCH, lambda n: filled(b'{"ids":["', b"a", b"", n), 422),
    "escapes": _of(SEARCH, lambda n: filled(b'{"ids":["', b"\\u00e9", b'"]}', n), 422),
    "vectors of small numbers": _of(SEARCH, lambda n: vectors(n, b"1"), 200),
    "vectors of short numbers": _of(SEARCH, lambda n: vectors(n, b"0.5"), 200),
    "vectors of long numbers": _of(SEARCH, lambda n: vectors(n, b"0.12345678901234567"), 200),
    "vectors in many scripts": _of(
        SEARCH, lambda n: vectors(n, b"0.5")[:-1] + ',"ids":["😀"]}'.encode(), 422
    ),
    "vectors and a fault at the end": _of(
        SEARCH, lambda n: vectors(n, b"0.12345678901234567")[:-1] + b',"x":1}', 422
    ),
    "vectors to encode": _of("/api/encode", lambda n: vectors(n, b"0.5")[:-7] + b"}", 200),
    "queries": _of(
        "/api/compare",
        lambda n: b'{"queries":' + vectors(n, b"0.5")[11:-7] + b',"left":{"model":1}}',
        422,
    ),
    "raw numbers": _of(SEARCH, _raw_vectors, 200, 413, kind=RAW),
    "a raw head without end": _of(
        SEARCH, lambda n: _raw(filled(b'{"ids":[-1', b",-1", b"]}", n)), 413, 422, kind=RAW
    ),
    "a raw head of objects": _of(
        ADD,
        lambda n: _raw(filled(b'{"metadata":[{}', b",{}", b'],"shape":[1,64]}', n), bytes(256)),
        *(413, 422),
        kind=RAW,
        token=WRITE,
    ),
    "metadata of many": _of(ADD, lambda n: _metadata(n, 5000), 200, 413, token=WRITE),
    "metadata of one": _of(ADD, lambda n: _metadata(n, 1), 200, 422, token=WRITE),
    "metadata that are objects in objects": _of(
        ADD,
        lambda n: filled(
            f'{{"vectors":[{[0.5] * WIDTH}],"metadata":[{{"a":[[]'.encode(), b",[]", b"]}]}", n
        ),
        *(200, 400, 413, 422),
        token=WRITE,
    ),
    "all of many items": _of(GET, lambda _: _ids(2000), 200),
    "many neighbours": _of(SEARCH, lambda _: _search(200, 1000), 200, 413),
    "many neighbours, compared": _of("/api/compare", lambda _: _compare(200), 200, 413),
    "a long list": Single(
        lambda _: (
            f"GET /api/items?limit=1000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Authorization: Bearer {READ}\r\n\r\n".encode()
        ),
        (200,),
    ),
    "the description": Single(
        lambda _: b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        (200,),
    ),
}


def try_single(service: Service, name: str, size: int) -> Watched:
    """Send one request; its result is the status of the answer."""
    single = SINGLE[name]
    content = single.make(size)
    return watch(service, lambda: exchange(service.port, content)[0])


# ------------------------------------------------------------------------ what many bytes do


def _flood(port: int, start: bytes, each: bytes, n_bytes: int) -> int:
    """Send something again and again until it is refused; return how many bytes were taken."""
    sent = 0
    with socket.create_connection(("127.0.0.1", port), timeout=3) as connection, suppress(OSError):
        connection.sendall(start)
        while sent < n_bytes:
            sent += connection.send(each)
    return sent


def endless_headers(port: int, n_bytes: int) -> int:
    line = b"X-Header: abcdefgh\r\n" * 3000
    return _flood(port, b"GET /health HTTP/1.1\r\nHost: localhost\r\n", line, n_bytes)


def endless_header(port: int, n_bytes: int) -> int:
    return _flood(port, b"GET /health HTTP/1.1\r\nX: ", b"a" * 60_000, n_bytes)


def endless_address(port: int, n_bytes: int) -> int:
    return _flood(port, b"GET /", b"a" * 60_000, n_bytes)


def endless_trailers(port: int, n_bytes: int) -> int:
    start = head(SEARCH, None) + b"2\r\n{}\r\n0\r\n"
    return _flood(port, start, b"X-Trailer: abcdefgh\r\n" * 3000, n_bytes)


def endless_extension(port: int, n_bytes: int) -> int:
    return _flood(port, head(SEARCH, None) + b"2;", b"a" * 60_000, n_bytes)


def pipelined(port: int, n_bytes: int) -> int:
    asked = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000
    return _flood(port, b"", asked, n_bytes)


def unread(port: int, n: int) -> list[socket.socket]:
    """Ask for long answers by many connections, and read none of them."""
    body, held = _search(200, 1000), []
    for _ in range(n):
        connection = socket.create_connection(("127.0.0.1", port), timeout=30)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(post(SEARCH, body))
        held.append(connection)
    return held


FLOODS = {
    "header lines without end": endless_headers,
    "a header line without end": endless_header,
    "an address without end": endless_address,
    "trailers without end": endless_trailers,
    "a chunk's extension without end": endless_extension,
    "requests whose answers are never read": pipelined,
}


def try_flood(service: Service, name: str, n_bytes: int) -> Watched:
    """Send bytes without a token that has no end; its result is how many were taken."""
    return watch(service, lambda: FLOODS[name](service.port, n_bytes))


def try_unread(service: Service, n: int, seconds: float) -> Watched:
    """Let many connections not read long answers for so long; its result tells what came of it."""

    def do() -> Counter[str]:
        held = unread(service.port, n)
        time.sleep(seconds)
        fates = Counter(map(_fate, held))
        for connection in held:
            connection.close()
        return fates

    return watch(service, do)


def _fate(connection: socket.socket) -> str:
    """Read what has come: an answer that is "whole", "refused" (503), or cut off ("dropped")."""
    connection.settimeout(30)
    received = bytearray()
    with suppress(ConnectionError):
        while part := connection.recv(2**20):
            received += part
    start, _, body = bytes(received).lower().partition(b"\r\n\r\n")
    if start.startswith(b"http/1.1 503"):
        return "refused"
    length = int(start.split(b"content-length: ")[1].split(b"\r\n")[0]) if start else 1
    return "whole" if len(body) == length else "dropped"


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
    for body in (_search(2, 2), vectors(2**18, b"0.5")):
        exchange(service.port, post(SEARCH, body))
    exchange(service.port, post("/api/compare", _compare(2)))
