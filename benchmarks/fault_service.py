"""Requests that mean no good, against a real service: how long others wait, what memory it takes.

Each of ``SINGLE`` is one request, each of ``FLOODS`` bytes without end on one connection; then come
answers that nobody reads, and requests made up at random. While it goes on, a second process asks
for /health all the time; the peak of the service's memory, its children's included, is read from
the system.

    python benchmarks/faults.py service
    python benchmarks/fault_service.py --before TREE  # what requests cost, beside another version
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from _service import (
    READ,
    WIDTH,
    WRITE,
    Service,
    Watched,
    exchange,
    head,
    post,
    serving,
    warm_up,
    watch,
)
from fault_requests import attack
from streamhash import __version__
from streamhash.lab.run import describe_machine
from streamhash.service.frames import TYPE as RAW, pack_frame

RESULTS = Path(__file__).parents[1] / "results" / "faults" / "service.jsonl"
MB = 2**20


# ------------------------------------------------------------------------------ single requests


def filled(start: bytes, each: bytes, end: bytes, size: int) -> bytes:
    """Bytes of about ``size``: a start, something again and again, an end."""
    return start + each * ((size - len(start) - len(end)) // len(each)) + end


def vectors(size: int, number: bytes) -> bytes:
    """As many vectors as fit, but no more than a request may have, as JSON."""
    row = b"[" + b",".join([number] * WIDTH) + b"]"
    n = min(size // (len(row) + 1), 10_000)
    return b'{"vectors":[' + b",".join([row] * n) + b'],"k":1}'


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


# ----------------------------------------------------------------------- what requests cost


COSTS = {
    "search, raw": (
        "/api/search",
        RAW,
        pack_frame({"shape": [1, WIDTH], "k": 10}, np.ones((1, WIDTH), np.float32)),
    ),
    "search, JSON": (
        "/api/search",
        "application/json",
        json.dumps({"vectors": [[0.123456] * WIDTH], "k": 10}).encode(),
    ),
    "search of 100, JSON": (
        "/api/search",
        "application/json",
        json.dumps({"vectors": [[0.123456] * WIDTH] * 100, "k": 10}).encode(),
    ),
    "1,000 neighbours, JSON": (
        "/api/search",
        "application/json",
        json.dumps({"ids": [1], "k": 1000}).encode(),
    ),
    "100 items": (
        "/api/items/get",
        "application/json",
        json.dumps({"ids": [*range(100)]}).encode(),
    ),
}


def cpu_seconds(service: Service) -> float:
    """Seconds of processors that a service and its children have taken."""
    total = 0
    for pid in service.processes():
        with suppress(OSError):
            total += sum(map(int, Path(f"/proc/{pid}/stat").read_text().split()[13:15]))
    return total / os.sysconf("SC_CLK_TCK")


def cost(service: Service, name: str, seconds: float) -> tuple[float, float]:
    """Ask again and again on one connection; return requests/s, and ms of processor for each."""
    path, kind, body = COSTS[name]
    content = head(path, len(body), kind=kind).replace(b"Connection: close\r\n", b"") + body
    n, used, start = 0, cpu_seconds(service), time.perf_counter()
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while time.perf_counter() - start < seconds:
            connection.sendall(content)
            received = bytearray()
            while b"\r\n\r\n" not in received:
                received += connection.recv(2**16)
            first, _, rest = bytes(received).lower().partition(b"\r\n\r\n")
            missing = int(first.split(b"content-length: ")[1].split(b"\r\n")[0]) - len(rest)
            while missing > 0:
                missing -= len(connection.recv(2**16))
            n += 1
    passed = time.perf_counter() - start
    return n / passed, 1000 * (cpu_seconds(service) - used) / n


def compare_costs(
    before: Path, *, tries: int = 7, seconds: float = 1.0
) -> Iterator[dict[str, Any]]:
    """Measure another version and this one in turn; yield the ratios of this one to the other."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items"
        program = "import sys; from pathlib import Path; from _service import create; "
        program += "create(Path(sys.argv[1]), 2000)"
        here = Path(__file__).parent
        environment = {**os.environ, "PYTHONPATH": f"{before / 'src'}:{here}"}
        subprocess.run([sys.executable, "-c", program, str(path)], env=environment, check=True)
        services = [
            Service(path, "--read-only", PYTHONPATH=str(tree / "src"))
            for tree in (before, here.parent)
        ]
        try:
            for each in services:
                warm_up(each)
            for name in COSTS:
                seen = [[cost(each, name, seconds) for each in services] for _ in range(tries)]
                rates = [new[0] / old[0] for old, new in seen]
                times = [new[1] / old[1] for old, new in seen]
                yield {
                    "fault": f"the cost of it: {name}",
                    "tried": tries,
                    "requests_per_second_ratio": round(statistics.median(rates), 3),
                    "cpu_ratio": round(statistics.median(times), 3),
                    "cpu_ms_before": round(statistics.median(old[1] for old, _ in seen), 3),
                }
        finally:
            for each in services:
                each.stop()


# -------------------------------------------------------------------------------- the long run


def summary(fault: str, seen: list[Watched], **more: Any) -> dict[str, Any]:
    """Return the row of a fault that was tried some times; of waits, the middle one counts."""
    waits = [1000 * each.longest for each in seen]
    held_up = [1000 * each.held_up for each in seen]
    return {
        "fault": fault,
        "tried": len(seen),
        "longest_wait_ms": round(statistics.median(waits), 1),
        "held_up_ms": round(statistics.median(held_up), 1),  # without waiting for a processor
        "peak_mb": round(max(each.peak for each in seen) / MB, 1),
        "seconds": round(statistics.median(each.seconds for each in seen), 2),
        **more,
    }


def trials(
    *, megabytes: float, tries: int, fuzzed: int, clients: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Try everything; "lost" counts answers and waits that are not as they should be."""
    size = int(megabytes * MB)
    with serving(2000) as service:
        if tries:
            yield summary("nothing", [watch(service, lambda: time.sleep(1)) for _ in range(tries)])
        for name, single in SINGLE.items() if tries else ():
            seen = [try_single(service, name, size) for _ in range(tries)]
            answers = Counter(each.result for each in seen)
            wrong = sum(n for status, n in answers.items() if status not in single.statuses)
            length = len(single.make(size))
            times = round(max(each.peak for each in seen) / length, 1) if length > MB else None
            statuses = {str(status): n for status, n in answers.items()}
            more = {"answers": statuses, "body_mb": round(length / MB, 1), "peak_times_body": times}
            yield summary(f"a request: {name}", seen, **more, lost=wrong)
        for name in FLOODS if tries else ():
            seen = [try_flood(service, name, 500 * MB) for _ in range(tries)]
            taken = max(each.result for each in seen)
            more = {"sent_mb": round(taken / MB, 1), "lost": int(taken >= 500 * MB)}
            yield summary(f"without a token: {name}", seen, **more)
        if fuzzed:
            yield {"fault": "requests made up at random", **attack(service, fuzzed, seed)}
    if clients:  # 45 seconds: answers wait for one another, too
        with serving(2000, "--limit", "answer_seconds=5") as service:
            seen = [try_unread(service, clients, 45)]
        fates = seen[0].result
        more = {"clients": clients, "fates": dict(fates), "answer_seconds": 5}
        yield summary("answers that are never read", seen, **more, lost=fates["whole"])


def run(
    *,
    megabytes: float = 31,
    tries: int = 5,
    fuzzed: int = 100_000,
    clients: int = 12,
    seed: int = 1,
    before: Path | None = None,
    path: Path = RESULTS,
) -> None:
    """Run all trials, or compare costs; append a row each to the results."""
    facts = {"version": __version__, "machine": describe_machine()}
    rows = (
        trials(megabytes=megabytes, tries=tries, fuzzed=fuzzed, clients=clients, seed=seed)
        if before is None
        else compare_costs(before)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps({**row, **facts}) + "\n")
            file.flush()
            print(*(f"{name} {value}" for name, value in row.items()), sep=", ", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=float, default=31, help="of a body")
    parser.add_argument("--tries", type=int, default=5, help="of each single request, or 0")
    parser.add_argument("--fuzzed", type=int, default=100_000, help="requests made up at random")
    parser.add_argument("--clients", type=int, default=12, help="that read no answer")
    parser.add_argument("--seed", type=int, default=1, help="of the requests made up at random")
    parser.add_argument("--before", type=Path, metavar="TREE", help="compare costs with this")
    parser.add_argument("--out", type=Path, default=RESULTS, dest="path")
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
