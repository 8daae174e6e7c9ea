"""Where the processor time of a search over HTTP goes, layer by layer, beside an empty route.

    python benchmarks/serve_profile.py [--items 10000] [--linear] [--clients 1] [--clients 64]

The service, and the empty FastAPI application of ``serve_empty.py``, are asked by ``wrk`` as there.
A timer of each serving process looks every millisecond of its processor time at what it does: the
innermost function that belongs to a layer has it. A layer's share times the processor time of a
request, by the system's own count, are its microseconds.
"""

import argparse
import collections
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import numpy as np

from _machine import describe_machine
from serve_empty import QUERIES, SCRIPT, Served, ask, has_wrk, post
from serve_load import K, create, rows

LAYERS = {  # where code lies; what is in none, such as NumPy, belongs to its caller
    "encoding the row": (
        "streamhash/hashers/",
        "streamhash/kernels/learning/",
        "streamhash/base.py",
        "streamhash/features.py",
        "streamhash/random_features.py",
        "streamhash/extremes.py",
        "streamhash/codes.py",
    ),
    "searching the codes": (
        "streamhash/search/index.py",
        "streamhash/search/code_store.py",
        "streamhash/kernels/hamming/",
        "streamhash/live/backends/",
    ),
    "ids, labels, probabilities": ("streamhash/live/", "streamhash/search/"),
    "reading the body": ("streamhash/service/bodies.py", "streamhash/service/frames.py"),
    "writing the answer": ("streamhash/service/answers.py",),
    "batching": ("streamhash/service/batching.py",),
    "host, token, limits, measures": (
        "streamhash/service/guard.py",
        "streamhash/service/metrics.py",
        "prometheus_client/",
    ),
    "route, and pydantic's checks": ("streamhash/service/", "pydantic/", "_empty_service.py"),
    "Starlette and FastAPI": ("starlette/", "fastapi/", "anyio/"),
    "uvicorn and httptools": ("uvicorn/",),
    "event loop and sockets": ("asyncio/", "selectors.py"),
}
OURS = [*LAYERS][:8]


def layer_of(frame: FrameType | None) -> str:
    while frame is not None:
        path = frame.f_code.co_filename.replace(os.sep, "/")
        for layer, places in LAYERS.items():
            if any(place in path for place in places):
                return layer
        frame = frame.f_back
    return "other"


class Sampler:
    """Counts samples by layer, and writes them down at SIGUSR1, to begin anew."""

    def __init__(self, out: Path) -> None:
        self._out, self._found = out, collections.Counter[str]()
        signal.signal(signal.SIGPROF, self._sample)
        signal.signal(signal.SIGUSR1, self._write)
        signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)

    def _sample(self, _: int, frame: FrameType | None) -> None:
        self._found[layer_of(frame)] += 1

    def _write(self, *_: object) -> None:
        found, self._found = self._found, collections.Counter()
        new = self._out.with_suffix(".new")
        new.write_text(json.dumps(found))
        new.replace(self._out)


def serve(what: str, place: str, out: str) -> None:
    """Serve a collection, or the empty application, and count samples."""
    if what == "streamhash":
        from streamhash.service import serve as serve_collection

        def started(address: str, _: int) -> None:
            Sampler(Path(out))
            print(address.rstrip("/"), flush=True)

        serve_collection(place, port=0, started=started)
        return
    import _empty_service

    Sampler(Path(out))
    sys.argv = ["", place]
    _empty_service.main()


@contextlib.contextmanager
def serving(what: str, place: Path, out: Path) -> Iterator[tuple[str, int]]:
    command = [sys.executable, __file__, "--serve", what, str(place), str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = process.stdout.readline().strip()
        yield said if said.startswith("http") else f"http://127.0.0.1:{said}", process.pid
    finally:
        process.terminate()
        process.communicate()


def samples(pid: int, out: Path) -> dict[str, int]:
    """Return the samples since the last call."""
    out.unlink(missing_ok=True)
    os.kill(pid, signal.SIGUSR1)
    while not out.exists():
        time.sleep(0.01)
    found: dict[str, int] = json.loads(out.read_text())
    return found


def profile(
    served: Served, clients: int, seconds: int, folder: Path, out: Path
) -> dict[str, float]:
    """Microseconds of each layer for a request, and the requests a second."""
    ask(served, clients, 1, folder)
    samples(served.pid, out)
    met = ask(served, clients, seconds, folder)
    found = samples(served.pid, out)
    assert met.failed == 0
    total = sum(found.values())
    return {name: met.cpu * n / total for name, n in found.items()} | {"a second": met.a_second}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--linear", action="store_true", help="codes without random features")
    parser.add_argument("--clients", type=int, action="append", help="may repeat")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve(*chosen.serve)
        return
    if not has_wrk():
        return
    print(describe_machine("fastapi", "starlette", "uvicorn", "pydantic"))
    kind = "SDOH(memory=0, features=None)" if chosen.linear else "SDOH()"
    print(
        f"{chosen.items:,} items by {kind}; processor µs a request; load {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        create(folder / "items", chosen.items, linear=chosen.linear)
        queries = rows(QUERIES, 7)[0].astype(np.float64).round(4).tolist()
        bodies = [json.dumps({"vectors": [query], "k": K}) for query in queries]
        (folder / "bodies").write_text("\n".join(bodies))
        (folder / "ask.lua").write_text(SCRIPT)
        clients = chosen.clients or [1, 64]
        columns: dict[str, dict[str, float]] = {}
        with serving("streamhash", folder / "items", folder / "out1") as (url, pid):
            answers = [post(f"{url}/api/search", body) for body in bodies]
            (folder / "answer").write_bytes(sorted(answers, key=len)[QUERIES // 2])
            with serving("empty", folder / "answer", folder / "out2") as (empty, empty_pid):
                for n in clients:
                    for title, served, out in (
                        ("service", Served(f"{url}/api/search", pid), "out1"),
                        ("empty", Served(f"{empty}/ready-made", empty_pid), "out2"),
                    ):
                        found = profile(served, n, chosen.seconds, folder, folder / out)
                        columns[f"{title}, {n} client{'s' * (n > 1)}"] = found
    print(f"{'':<32}" + "".join(f"{title:>20}" for title in columns))
    for layer in [*LAYERS, "other"]:
        if layer == [*LAYERS][8]:
            values = [sum(each.get(name, 0.0) for name in OURS) for each in columns.values()]
            print(f"{'  all of ours':<32}" + "".join(f"{value:>20.0f}" for value in values))
        values = [each.get(layer, 0.0) for each in columns.values()]
        print(f"{layer:<32}" + "".join(f"{value:>20.0f}" for value in values))
    values = [sum(v for name, v in each.items() if name != "a second") for each in columns.values()]
    print(f"{'together':<32}" + "".join(f"{value:>20.0f}" for value in values))
    values = [each["a second"] for each in columns.values()]
    print(f"{'requests a second':<32}" + "".join(f"{value:>20,.0f}" for value in values))


if __name__ == "__main__":
    main()
