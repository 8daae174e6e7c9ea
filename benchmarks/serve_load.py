"""The service under load, on loopback: searches per second and p99 while items are added and a
refresh runs; no error, no answer of two models, and memory that stays flat.

    python benchmarks/serve_load.py                  100,000 and 1,000,000 items, about 20 s each
    python benchmarks/serve_load.py --minutes 10     ten minutes at each size, for memory
    python benchmarks/serve_load.py --items 100000   one size alone
    python benchmarks/serve_load.py --steady         what was added is deleted, once it is learned
    python benchmarks/serve_load.py --json           searches as JSON, with labels and metadata

Each of 1, 8 and 64 clients (threads of a process of their own) sends one search of one vector after
the other, k = 10, as raw numbers by default; one more adds 50 labelled items after the
other, and half-way through the time of 8 clients a refresh begins. Every hundredth answer is
checked: its codes are computed again, with the model that it names.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _machine import describe_machine
from streamhash import SDOH
from streamhash.live import Collection
from streamhash.service import Client
from streamhash.service.frames import read_array

WIDTH, BITS, K, CLASSES = 128, 64, 10, 100
NEW = 10**9  # ids of added items, from here on
LEFT = 2000  # added items that are not deleted: those before are learned
CHECKED = 100  # of so many answers, one is checked
QUERIES = 20_000  # different ones: their neighbours are more items than the service remembers
MAIN = "from streamhash.cli import main; main()"


@dataclass
class Load:
    """What the clients of one run met."""

    seconds: list[float] = field(default_factory=list)  # of each search
    checked: list[tuple[int, int, bytes]] = field(default_factory=list)  # model, query, code
    errors: list[str] = field(default_factory=list)


def rows(n: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((CLASSES, WIDTH)).astype(np.float32)
    y = rng.integers(0, CLASSES, n)
    return centres[y] + rng.standard_normal((n, WIDTH), np.float32), y


def create(path: Path, n: int, *, linear: bool = False) -> None:
    """Make a collection; ``linear`` is the method without memory and random features."""
    options: dict[str, Any] = {"memory": 0, "features": None} if linear else {}
    hasher = SDOH(BITS, random_state=0, **options)
    with Collection.create(path, hasher, refresh="manual") as collection:
        for start in range(0, n, 50_000):
            X, y = rows(min(50_000, n - start), start)
            labels = [*y[:2000].tolist(), *[None] * (len(y) - 2000)] if start == 0 else None
            ids = range(start, start + len(X))
            collection.add(ids, X, labels, metadata=[{"name": f"item {i}"} for i in ids])


@contextmanager
def service(path: Path) -> Iterator[tuple[str, int]]:
    """Serve it; yield the address and the process's number."""
    command = [sys.executable, "-c", MAIN, "serve", str(path), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split(" at ")[1].split("/ ")[0], process.pid
    finally:
        process.terminate()
        process.communicate()


class Memory:
    """The memory that a process has of the machine, over time."""

    def __init__(self, pid: int) -> None:
        self._file, self._start = Path(f"/proc/{pid}/statm"), time.monotonic()
        self._minutes, self._megabytes = list[float](), list[float]()
        self.look()

    def look(self) -> None:
        pages = int(self._file.read_text(encoding="ascii").split()[1])
        self._minutes.append((time.monotonic() - self._start) / 60)
        self._megabytes.append(pages * 4096 / 2**20)

    def summary(self) -> str:
        """In MB every minute, and how fast it grew in the second half."""
        self.look()
        at, used = np.array(self._minutes), np.array(self._megabytes)
        minutes = np.searchsorted(at, np.arange(int(at[-1]) + 1))
        late = at >= at[-1] / 2
        slope = np.polyfit(at[late], used[late], 1)[0]
        return (
            f"memory in MB, minute by minute: {' '.join(f'{used[i]:.0f}' for i in minutes)}, at "
            f"the end {used[-1]:.0f}; in the second half {slope:+.1f} MB a minute"
        )


def ask_raw(client: Client, query: NDArray[np.float32]) -> tuple[int, bytes]:
    """Search for one vector; return the model that answered and the vector's code."""
    head, content = client._frame("/search", {"k": K}, query[None])
    return head["model"], read_array(content, "uint8", [1, head["code_bytes"]])[0].tobytes()


def ask_json(client: Client, query: NDArray[np.float32]) -> tuple[int, bytes]:
    """Do so as JSON, which brings labels and metadata along."""
    answer = client._json("/search", {"vectors": [query.tolist()], "k": K})
    assert all(each["id"] >= NEW or each["metadata"] for each in answer["results"][0])
    return answer["model"], bytes.fromhex(answer["codes"][0])


def search(url: str, clients: int, seconds: float, json: bool, out: Any) -> None:
    """Search with many threads; the body of a process."""
    load, queries, ask = Load(), rows(QUERIES, 7)[0], ask_json if json else ask_raw
    end = time.monotonic() + seconds

    def one(number: int) -> None:
        rng, n = np.random.default_rng(number), 0
        with Client(url) as client:
            while time.monotonic() < end:
                query = int(rng.integers(len(queries)))
                start = time.perf_counter()
                try:
                    model, code = ask(client, queries[query])
                except Exception as error:  # noqa: BLE001  all are counted
                    load.errors.append(repr(error))
                    continue
                load.seconds.append(time.perf_counter() - start)
                n += 1
                if n % CHECKED == 1:
                    load.checked.append((model, query, code))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out.put(load)


class Adding:
    """A thread that adds labelled items all the while, and refreshes when asked to."""

    def __init__(self, url: str, *, steady: bool) -> None:
        self.n_added, self.n_deleted = 0, 0
        self.errors, self.refreshes = list[str](), list[float]()
        self._steady = steady
        self._url, self._stop, self._threads = url, threading.Event(), list[threading.Thread]()

    def __enter__(self) -> "Adding":
        self._start(self._add)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def refresh_after(self, seconds: float) -> None:
        self._start(self._refresh, seconds)

    def _start(self, work: Any, *arguments: Any) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments))
        self._threads[-1].start()

    def _add(self) -> None:
        with Client(self._url) as client:
            while not self._stop.wait(0.1):
                X, y = rows(50, 10**6 + self.n_added)
                ids = range(NEW + self.n_added, NEW + self.n_added + len(X))
                try:
                    self.n_added += client.add(ids, X, y)
                    if self._steady and self.n_added > LEFT:
                        client.delete([each - LEFT for each in ids])
                        self.n_deleted += len(ids)
                except Exception as error:  # noqa: BLE001
                    self.errors.append(repr(error))

    def _refresh(self, seconds: float) -> None:
        time.sleep(seconds)
        start = time.monotonic()
        with Client(self._url, timeout=600) as client:
            try:
                client.refresh()
            except Exception as error:  # noqa: BLE001
                self.errors.append(repr(error))
        self.refreshes.append(time.monotonic() - start)


def check(path: Path, load: Load) -> int:
    """Compute the codes of answers again; return how many differ."""
    queries, wrong = rows(QUERIES, 7)[0], 0
    with Collection.open(path, read_only=True) as collection:
        codes = {n: collection.model(n).transform(queries) for n, _ in collection.models()}
    for model, query, code in load.checked:
        wrong += codes[model][query].tobytes() != code
    return wrong


def run(n: int, seconds: float, *, steady: bool, json: bool) -> bool:
    """Load a service of ``n`` items, print what was measured; return whether all went well."""
    process, good = get_context("spawn"), True
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items"
        create(path, n)
        with service(path) as (url, pid):
            with Client(url) as client:
                client.search(rows(1, 1)[0], K)
            memory = Memory(pid)
            with Adding(url, steady=steady) as adding:
                for clients in (1, 8, 64):
                    out = process.Queue()
                    worker = process.Process(target=search, args=(url, clients, seconds, json, out))
                    worker.start()
                    if clients == 8:
                        adding.refresh_after(seconds / 2)
                    load: Load | None = None
                    while load is None:
                        memory.look()
                        try:
                            load = out.get(timeout=5)
                        except Empty:
                            continue
                    worker.join()
                    if not load.seconds:
                        raise SystemExit(f"no search was answered: {load.errors[0]}")
                    wrong = check(path, load)
                    ms = np.array(load.seconds) * 1000
                    models = sorted({model for model, _, _ in load.checked})
                    print(
                        f"{n:>9,} items {clients:>3} clients {len(ms) / seconds:8.0f} searches/s"
                        f"{', JSON' if json else ''}  "
                        f"p50 {np.median(ms):7.2f} ms  p99 {np.quantile(ms, 0.99):7.2f} ms  "
                        f"errors {len(load.errors)}  checked {len(load.checked)}, wrong {wrong}, "
                        f"models {models}",
                        flush=True,
                    )
                    good &= not load.errors and not wrong
            print(
                f"{n:>9,} items, {adding.n_added} added and {adding.n_deleted} deleted meanwhile, "
                f"errors {len(adding.errors)}; refresh {adding.refreshes[0]:.1f} s\n"
                f"{n:>9,} items, {memory.summary()}",
                flush=True,
            )
            good &= not adding.errors
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, action="append", help="a size; may repeat")
    parser.add_argument("--steady", action="store_true", help="delete what was added")
    parser.add_argument("--json", action="store_true", help="search as JSON, with metadata")
    parser.add_argument("--minutes", type=float, default=1 / 3, help="at each size, in all")
    chosen = parser.parse_args()
    print(describe_machine("pylance", "fastapi", "uvicorn"))
    sizes = chosen.items or [100_000, 1_000_000]
    seconds = chosen.minutes * 60 / 3
    results = [run(n, seconds, steady=chosen.steady, json=chosen.json) for n in sizes]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
