"""What a small add costs, and what many at once: beside Lance's append and SQLite's insert.

Vectors of 128 dimensions, codes of 64 bits, all durable (``synchronous=FULL`` of SQLite, synced
here; Lance syncs nothing). Where the time of a single add goes; adds a second of 1, 8 and 64
threads; batches of 1,000; and adds, deletes and searches for long, by tenths.

    python benchmarks/commits.py [--adds 100000] [--folder DISK]

Read the ratios and the processor time: by the clock, waiting for a busy machine counts as well.
"""

import argparse
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from _machine import describe_machine
from streamhash import SDOH, set_threads
from streamhash.live import Collection, checksums, journal, log

D, BITS, BATCH = 128, 64, 1000
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((5000, D)).astype(np.float32)
Y = RANDOM.integers(10, size=5000).tolist()


class Timed:
    """Seconds of calls, by the clock and of this process's processors."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.processor = 0.0

    def call(self, work: Callable[[], Any]) -> None:
        start, used = time.perf_counter(), time.process_time()
        work()
        self.wall.append(time.perf_counter() - start)
        self.processor += time.process_time() - used

    def line(self, name: str) -> str:
        p50, p99 = 1e3 * np.quantile(self.wall, [0.5, 0.99])
        used = 1e3 * self.processor / len(self.wall)
        rate = len(self.wall) / sum(self.wall)
        return f"{name:<34}{p50:>9.2f}{p99:>9.2f}{used:>11.2f}{rate:>10,.0f}"


def made(folder: Path, name: str) -> Collection:
    hasher = SDOH(BITS, memory=0, features=None, random_state=0)
    items = Collection.create(folder / name, hasher, refresh="manual")
    items.add(range(2000), X[:2000], Y[:2000])
    items.add([2000], X[:1], Y[:1])
    return items


def row(i: int) -> slice:
    return slice(i % len(X), i % len(X) + 1)


def single(folder: Path, n: int) -> None:
    """One after the other: ours, the parts of ours, and peers."""
    import lance
    import pyarrow as pa

    print(
        f"\n{'one row after the other':<34}{'p50, ms':>9}{'p99, ms':>9}{'CPU, ms':>11}"
        f"{'a second':>10}"
    )
    items, tops = made(folder, "single"), iter(range(10_000, 10**9))
    kinds: dict[str, Timed] = {name: Timed() for name in ("SQLite", "Lance", "plain", "labelled")}
    database = sqlite3.connect(folder / "peer.db", isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, vector BLOB, label TEXT)")
    parts = {"write of the record": 0.0, "its sync": 0.0}
    write, sync, at = log._write, checksums.sync_handle, vars(log)

    def timed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any) -> Any:
            start = time.perf_counter()
            found = call(*arguments)
            parts[name] += time.perf_counter() - start
            return found

        return wrapped

    at |= {"_write": timed("write of the record", write), "sync_handle": timed("its sync", sync)}
    for i in range(n):  # by turns, so that what else the machine does strikes all alike
        vector, label, top = X[row(i)], Y[row(i)], next(tops)
        insert = "INSERT INTO items VALUES (?, ?, ?)"
        values = (top, vector.tobytes(), str(label[0]))
        kinds["SQLite"].call(lambda s=insert, v=values: database.execute(s, v))  # type: ignore[misc]
        flat = pa.FixedSizeListArray.from_arrays(pa.array(vector[0]), D)
        table = pa.table({"id": [top], "vector": flat, "label": [str(label[0])]})
        mode = "append" if i else "create"
        place = str(folder / "peer.lance")
        kinds["Lance"].call(lambda t=table, m=mode, p=place: lance.write_dataset(t, p, mode=m))  # type: ignore[misc]
        kinds["plain"].call(lambda t=top, v=vector: items.add([t], v))  # type: ignore[misc]
        top = next(tops)
        kinds["labelled"].call(lambda t=top, v=vector, y=label: items.add([t], v, y))  # type: ignore[misc]
    at |= {"_write": write, "sync_handle": sync}
    print(kinds["SQLite"].line("SQLite, insert (WAL, FULL)"))
    print(kinds["Lance"].line("Lance, append (not synced)"))
    print(kinds["plain"].line("collection, without a label"))
    print(kinds["labelled"].line("collection, with a label"))
    for name, seconds in parts.items():
        print(f"  of these, {name}: {1e3 * seconds / (2 * n):.3f} ms an add, mean")
    items.close()


def together(folder: Path, n: int) -> None:
    """Threads that add single rows."""
    print(f"\n{'threads, single rows':<34}{'a second':>10}{'CPU, ms':>10}{'rows a sync':>13}")
    items, start = made(folder, "threads"), 10_000
    for labelled in (False, True):
        for n_threads in (1, 8, 64):
            size = n if n_threads > 1 else max(100, n // 10)
            records: list[int] = []
            append = log.Log.append

            def counted(self: log.Log, change: log.Change) -> int:
                records.append(len(change.keys))  # noqa: B023
                return append(self, change)  # noqa: B023

            def work(number: int) -> None:
                for i in range(start + number, start + size, n_threads):  # noqa: B023
                    items.add([i], X[row(i)], Y[row(i)] if labelled else None)  # noqa: B023

            log.Log.append = counted  # type: ignore[method-assign]
            threads = [threading.Thread(target=work, args=(each,)) for each in range(n_threads)]
            began, used = time.perf_counter(), time.process_time()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            seconds, used = time.perf_counter() - began, time.process_time() - used
            log.Log.append = append  # type: ignore[method-assign]
            name = f"{n_threads}, {'with' if labelled else 'without'} labels"
            print(
                f"{name:<34}{size / seconds:>10,.0f}{1e3 * used / size:>10.2f}"
                f"{np.mean(records):>13.1f}"
            )
            start += size
    items.close()


def batches(folder: Path, n: int) -> None:
    """Batches without labels, by turns with Lance's append of the same rows."""
    import lance
    import pyarrow as pa

    items, ours, lances = made(folder, "batches"), Timed(), Timed()
    rows = RANDOM.standard_normal((BATCH, D)).astype(np.float32)
    for i in range(n):
        flat = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), D)
        ids = np.arange(10_000 + i * BATCH, 10_000 + (i + 1) * BATCH)
        table = pa.table({"id": ids, "vector": flat})
        mode, place = "append" if i else "create", str(folder / "batches.lance")
        lances.call(lambda t=table, m=mode, p=place: lance.write_dataset(t, p, mode=m))  # type: ignore[misc]
        ours.call(lambda ids=ids: items.add(ids, rows))  # type: ignore[misc]
    print(f"\n{'batches of 1,000, d = 128':<34}{'items/s':>10}{'items/s of CPU':>16}")
    rates = []
    for name, timed in (("Lance, append (not synced)", lances), ("collection", ours)):
        rates.append((n * BATCH / sum(timed.wall), n * BATCH / timed.processor))
        print(f"{name:<34}{rates[-1][0]:>10,.0f}{rates[-1][1]:>16,.0f}")
    print(f"{'ratio':<34}{rates[1][0] / rates[0][0]:>10.2f}{rates[1][1] / rates[0][1]:>16.2f}")
    items.close()


def lasting(folder: Path, n: int) -> None:
    """Adds with labels, deletes and searches in between: by tenths."""
    items, tenths = made(folder, "lasting"), []
    for tenth in range(10):
        adds, searches = Timed(), Timed()
        for i in range(tenth * n // 10, (tenth + 1) * n // 10):
            adds.call(lambda i=i: items.add([10_000 + i], X[row(i)], Y[row(i)]))  # type: ignore[misc]
            if i % 10 == 9:
                items.delete([10_000 + i - 5])
                searches.call(lambda i=i: items.search(X[row(i)], 10))  # type: ignore[misc]
        files = [path for path in (folder / "lasting").rglob("*") if path.is_file()]
        manifests = sum(path.suffix == ".manifest" for path in files)
        size = sum(path.stat().st_size for path in files)
        tenths.append((adds, searches, len(files), manifests, size / len(items)))
    head = f"{'tenth':<8}{'add p50':>9}{'p99':>9}{'most':>9}{'CPU':>8}{'search p50':>12}{'p99':>8}"
    print(f"\n{n:,} adds with labels; ms\n{head}{'files':>7}{'versions':>10}{'bytes/item':>12}")
    for number, (adds, searches, files_, versions, each) in enumerate(tenths, 1):
        p50, p99, most = 1e3 * np.quantile(adds.wall, [0.5, 0.99, 1])
        s50, s99 = 1e3 * np.quantile(searches.wall, [0.5, 0.99])
        used = 1e3 * adds.processor / len(adds.wall)
        print(
            f"{number:<8}{p50:>9.2f}{p99:>9.2f}{most:>9.1f}{used:>8.2f}{s50:>12.2f}{s99:>8.2f}"
            f"{files_:>7}{versions:>10}{each:>12.0f}"
        )
    second, last = tenths[1][0], tenths[9][0]
    ratios = np.quantile(last.wall, [0.5, 0.99]) / np.quantile(second.wall, [0.5, 0.99])
    used = last.processor / second.processor
    print(f"last tenth over second: p50 {ratios[0]:.2f}, p99 {ratios[1]:.2f}, processor {used:.2f}")
    items.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--adds", type=int, default=100_000)
    parser.add_argument("--folder", default=".", help="on the disk that is measured")
    options = parser.parse_args()
    set_threads(1)
    n = options.adds
    print(describe_machine("pylance"))
    print(f"load {os.getloadavg()[0]:.1f}; log of {journal.LOG_BYTES >> 20} MiB at most")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        single(folder, max(100, n // 250))
        together(folder, max(500, n // 25))
        batches(folder, max(40, n // 500))
        lasting(folder, n)
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
