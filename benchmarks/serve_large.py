"""How long /health and a small search wait while one request for 10,000 vectors is answered.

    python benchmarks/serve_large.py [--items 100000] [--rounds 5]

Another process asks for /health, or searches, all the while. What it waits for is told as it was,
and without the time in which it, or a thread of the service, waited for a processor: the latter is
the service's own part, and what counts on a machine that others use. "nothing" is the same without
the large request.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from _machine import describe_machine
from _service import Service, exchange, head, post, watch
from serve_load import WIDTH, K, create, rows

VECTORS = 10_000
RAW = "application/octet-stream"


def small_search() -> bytes:
    """A search as a watcher sends it, whose connection is kept."""
    body = json.dumps({"vectors": rows(1, 5)[0].round(4).tolist(), "k": K}).encode()
    return head("/api/search", len(body)).replace(b"Connection: close\r\n", b"") + body


def large_requests() -> dict[str, bytes]:
    queries = rows(VECTORS, 9)[0]
    text = json.dumps({"vectors": queries.astype(np.float64).round(4).tolist(), "k": K}).encode()
    facts = json.dumps({"k": K, "shape": [VECTORS, WIDTH]}).encode()
    raw = len(facts).to_bytes(4, "little") + facts + queries.astype("<f4").tobytes()
    both = post("/api/search", raw, kind=RAW)
    return {
        "JSON": post("/api/search", text),
        "raw, answered as JSON": both,
        "raw": both.replace(
            b"Host: localhost\r\n", b"Host: localhost\r\nAccept: %b\r\n" % RAW.encode()
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    print(describe_machine("fastapi", "uvicorn"))
    print(f"{chosen.items:,} items; one request for {VECTORS:,} vectors of {WIDTH}, k = {K}")
    asked = {"/health": b"", "a search of one vector": small_search()}
    with tempfile.TemporaryDirectory() as name:
        create(Path(name) / "items", chosen.items)
        service = Service(Path(name) / "items")
        try:
            requests = large_requests()
            _compare(service, requests, asked, chosen.rounds)
        finally:
            service.stop()


def _compare(
    service: Service, requests: dict[str, bytes], asked: dict[str, bytes], rounds: int
) -> None:
    def ask(content: bytes) -> None:
        status, body = exchange(service.port, content)
        if status != 200:
            raise SystemExit(f"FAILED: {status} {body[:200]!r}")

    for content in requests.values():  # what only the first of a kind needs
        ask(content)
    works: dict[str, Callable[[], None]] = {"nothing": lambda: time.sleep(1)}
    works |= {name: partial(ask, content) for name, content in requests.items()}
    print(
        f"{'meanwhile':<22} {'what waits':<23} {'seconds':>7} {'asked':>6} {'held up, ms':>12} "
        f"{'longest wait, ms':>17}  load"
    )
    for what, request in asked.items():
        for name, work in works.items():
            seen = [watch(service, work, request=request) for _ in range(rounds)]
            held = sorted(1000 * each.held_up for each in seen)
            waits = sorted(1000 * each.longest for each in seen)
            print(
                f"{name:<22} {what:<23} {np.median([each.seconds for each in seen]):>7.2f} "
                f"{sum(each.asked for each in seen):>6} {np.median(held):>5.1f} ≤{held[-1]:>5.1f} "
                f"{np.median(waits):>8.1f} ≤{waits[-1]:>7.1f}  {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
