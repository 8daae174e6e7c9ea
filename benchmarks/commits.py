"""What a small add costs, and what many at once: beside Lance's append and SQLite's insert.

Vectors of 128 dimensions, codes of 64 bits, all durable (``synchronous=FULL`` of SQLite, synced
here; Lance syncs nothing). Where the time of a single add goes; writes of every kind, of one row
each, by 1, 8 and 64 threads, and by 1, 8 and 64 clients of a service in another process, who are
``wrk``; batches of 1,000; and adds, deletes and searches for long, by tenths, and then by turns
with a collection of the size of the second tenth, so that what else the machine does strikes both
alike. At last another thread searches all the while, and the log is folded, and all tidied up, far
more often.

    python benchmarks/commits.py [--adds 100000] [--folder DISK] [--part threads]

Read the ratios and the processor time: by the clock, waiting for a busy machine counts as well.
"""

import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from _machine import describe_machine
from serve_empty import processor
from serve_load import service
from streamhash import SDOH, set_threads
from streamhash.live import Collection, arrow, journal, learner, log, validation, view, writer

D, BITS, BATCH = 128, 64, 1000
TURN = 50  # batches, one after the other
SEARCHED = 5000  # adds beside searches, at least,
FOLDED = 64  # of which so many are in the log when it is folded
PAUSE = 0.001  # seconds from a search to the next
IDLE = 0.0005  # seconds of a look for something to tidy up, when there is nothing
SERVED, ASKED = 60_000, 20_000  # items of the service, and requests of one kind and length, at most
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


def vector(i: int) -> list[float]:
    values: list[float] = X[i % len(X)].astype(float).round(4).tolist()
    return values


# Writes of one row: as a call, and as a request (its method, path and body).
KINDS: dict[str, tuple[Callable[[Collection, int], Any], Callable[[int], tuple[str, str, str]]]] = {
    "add": (
        lambda items, i: items.add([i], X[row(i)]),
        lambda i: ("POST", "items", json.dumps({"ids": [i], "vectors": [vector(i)]})),
    ),
    "add, with a label": (
        lambda items, i: items.add([i], X[row(i)], Y[row(i)]),
        lambda i: (
            "POST",
            "items",
            json.dumps({"ids": [i], "vectors": [vector(i)], "labels": Y[row(i)]}),
        ),
    ),
    "label": (
        lambda items, i: items.label([i], Y[row(i)]),
        lambda i: ("POST", "labels", json.dumps({"ids": [i], "labels": Y[row(i)]})),
    ),
    "metadata": (
        lambda items, i: items.set_metadata([i], [{"n": i}]),
        lambda i: ("POST", "metadata", json.dumps({"ids": [i], "metadata": [{"n": i}]})),
    ),
    "replace": (
        lambda items, i: items.add([i], X[row(i)], Y[row(i)], existing="replace"),
        lambda i: (
            "PUT",
            f"items/{i}",
            json.dumps({"vector": vector(i), "label": Y[i % len(Y)]}),
        ),
    ),
    "delete": (
        lambda items, i: items.delete([i]),
        lambda i: ("DELETE", f"items/{i}", ""),
    ),
}
# Asks wrk's server by these, one after the other: each line has a method, a path and a body.
WRITE = """
local lines, n = {}, 0
for line in io.lines(os.getenv("REQUESTS")) do lines[#lines + 1] = line end
function request()
  n = n % #lines + 1
  local method, path, body = lines[n]:match("([^\t]*)\t([^\t]*)\t(.*)")
  return wrk.format(method, "/api/" .. path, {["Content-Type"] = "application/json"}, body)
end
function done(summary, latency)
  local e = summary.errors
  local failed = e.connect + e.read + e.write + e.status + e.timeout
  io.write(string.format("DONE %d %d %d %f %f", summary.requests, summary.duration, failed,
    latency.mean, latency:percentile(99)))
end
"""


class Parts:
    """Seconds that calls of some functions take, each without those that it calls of the others."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inner: list[float] = []  # of the calls that are under way
        self._before: list[tuple[Any, str, Any]] = []

    def time(self, name: str, owner: Any, function: str) -> None:
        call = getattr(owner, function)

        def timed(*arguments: Any, **named: Any) -> Any:
            self._inner.append(0.0)
            start = time.perf_counter()
            try:
                return call(*arguments, **named)
            finally:
                seconds = time.perf_counter() - start
                own = seconds - self._inner.pop()
                self.seconds[name] = self.seconds.get(name, 0.0) + own
                if self._inner:
                    self._inner[-1] += seconds

        self._before.append((owner, function, call))
        setattr(owner, function, timed)

    def stop(self) -> None:
        for owner, function, call in self._before:
            setattr(owner, function, call)


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
    parts = {name: Parts() for name in ("plain", "labelled")}

    def ours(kind: str, top: int, vector: Any, label: Any) -> None:
        spent = parts[kind]
        spent.time("sync of the record", log, "sync_handle")
        spent.time("write of the record", log, "_write")
        spent.time("Lance: what was learned, folds, tidying", journal.Journal, "_store_state")
        spent.time("Lance: what was learned, folds, tidying", journal.Journal, "tidy")
        spent.time("Lance: what was learned, folds, tidying", journal.Journal, "_follow_state")
        spent.time("Lance: is it the only writer?", journal.Journal, "_refuse_second")
        spent.time("ours: checks", validation.Validation, "part")
        spent.time("ours: codes", writer.Writer, "_completed")
        spent.time("ours: a stage is learned", learner.Learner, "learn")
        spent.time("ours: neighbours, counted", writer.Writer, "_learned")
        spent.time("ours: memory that searches see", view.View, "append")
        spent.time("ours: all else", items, "add")
        try:
            kinds[kind].call(lambda: items.add([top], vector, label))
        finally:
            spent.stop()
            del items.__dict__["add"]

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
        ours("plain", top, vector, None)
        ours("labelled", next(tops), vector, label)
    print(kinds["SQLite"].line("SQLite, insert (WAL, FULL)"))
    print(kinds["Lance"].line("Lance, append (not synced)"))
    print(kinds["plain"].line("collection, without a label"))
    print(kinds["labelled"].line("collection, with a label"))
    print(
        f"\n{'where the time of one add goes':<44}{'plain, ms':>10}{'labelled, ms':>14}   (means)"
    )
    for name in sorted({*parts["plain"].seconds, *parts["labelled"].seconds}, reverse=True):
        mean = [1e3 * parts[kind].seconds.get(name, 0.0) / n for kind in ("plain", "labelled")]
        print(f"  {name:<42}{mean[0]:>10.3f}{mean[1]:>14.3f}")
    total = [1e3 * np.mean(kinds[kind].wall) for kind in ("plain", "labelled")]
    print(f"  {'together':<42}{total[0]:>10.3f}{total[1]:>14.3f}")
    items.close()


def together(folder: Path, n: int) -> None:
    """Threads that write single rows."""
    print(f"\n{'threads, single rows':<34}{'a second':>10}{'CPU, ms':>10}{'rows a sync':>13}")
    items, starts = made(folder, "threads"), dict.fromkeys(KINDS, 10_000)
    starts["add, with a label"] = 10**6
    for kind, (write, _) in KINDS.items():
        for n_threads in (1, 8, 64):
            size = n if n_threads > 1 else max(100, n // 10)
            records: list[int] = []
            append, start = log.Log.append, starts[kind]
            starts[kind] += size

            def counted(self: log.Log, change: log.Change) -> int:
                records.append(max(map(len, (change.keys, change.labelled, change.gone))))  # noqa: B023
                return append(self, change)  # noqa: B023

            def work(number: int) -> None:
                for i in range(start + number, start + size, n_threads):  # noqa: B023
                    write(items, i)  # noqa: B023

            log.Log.append = counted  # type: ignore[method-assign]
            threads = [threading.Thread(target=work, args=(each,)) for each in range(n_threads)]
            began, used = time.perf_counter(), time.process_time()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            seconds, used = time.perf_counter() - began, time.process_time() - used
            log.Log.append = append  # type: ignore[method-assign]
            print(
                f"{f'{n_threads}, {kind}':<34}{size / seconds:>10,.0f}{1e3 * used / size:>10.2f}"
                f"{np.mean(records):>13.1f}",
                flush=True,
            )
    items.close()


def served(folder: Path, seconds: int) -> None:
    """Clients of a service that write single rows, each waiting for its answer."""
    if shutil.which("wrk") is None:
        print("\nno wrk (apt-get install wrk): clients over HTTP are left out")
        return
    items, asked = made(folder, "served"), folder / "requests"
    starts = dict.fromkeys(KINDS, 10_000)
    starts |= {"add": 10**6, "add, with a label": 2 * 10**6}
    for start in range(10_000, 10_000 + SERVED, BATCH):
        items.add(range(start, start + BATCH), X[:BATCH])
    items.close()
    (folder / "write.lua").write_text(WRITE)
    head = f"{'clients over HTTP, single rows':<34}{'a second':>10}{'CPU, ms':>10}"
    print(f"\n{head}{'mean, ms':>10}{'p99, ms':>10}{'failed':>8}")
    with service(folder / "served") as (url, pid):
        for kind, (_, request) in KINDS.items():
            for clients in (1, 8, 64):
                ids = range(starts[kind], starts[kind] + ASKED)
                asked.write_text("\n".join("\t".join(request(i)) for i in ids))
                command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "-s"]
                command += [str(folder / "write.lua"), url]
                environment, used = {**os.environ, "REQUESTS": str(asked)}, processor(pid)
                said = subprocess.run(
                    command, env=environment, capture_output=True, text=True, check=True
                )
                used = processor(pid) - used
                n, duration, failed, mean, p99 = said.stdout.rpartition("DONE ")[2].split()
                starts[kind] += int(n) + clients  # some were sent, and no answer awaited
                print(
                    f"{f'{clients}, {kind}':<34}{int(n) / (int(duration) / 1e6):>10,.0f}"
                    f"{1e3 * used / max(int(n), 1):>10.2f}{float(mean) / 1000:>10.1f}"
                    f"{float(p99) / 1000:>10.1f}{failed:>8}",
                    flush=True,
                )


def ids_of(batch: int) -> Any:
    """The ids of a batch."""
    return np.arange(10_000 + batch * BATCH, 10_000 + (batch + 1) * BATCH)


def batches(folder: Path, n: int) -> None:
    """Batches without labels, by turns with Lance's append of the same rows."""
    import lance
    import pyarrow as pa

    items, ours, lances = made(folder, "batches"), Timed(), Timed()
    for turn in range(0, n, TURN):
        # Others each time: Lance takes longer over a file in which rows come again.
        rows = RANDOM.standard_normal((TURN, BATCH, D)).astype(np.float32)
        tables = [
            pa.table({"id": ids_of(turn + i), "vector": arrow.vector_array(each)})
            for i, each in enumerate(rows)
        ]

        def append(turn: int = turn, tables: list[Any] = tables) -> None:
            for i, table in enumerate(tables, turn):
                lance.write_dataset(
                    table, str(folder / "batches.lance"), mode="append" if i else "create"
                )

        def add(turn: int = turn, rows: Any = rows) -> None:
            for i, each in enumerate(rows, turn):
                items.add(ids_of(i), each)
            for thread in threading.enumerate():  # what is written aside counts
                if thread.name.startswith(("streamhash-ahead", "streamhash-tidy")):
                    thread.join()

        lances.call(append)
        ours.call(add)
    print(f"\n{'batches of 1,000, d = 128':<34}{'items/s':>10}{'items/s of CPU':>16}")
    rates = []
    for name, timed in (("Lance, append (not synced)", lances), ("collection", ours)):
        rates.append((n * BATCH / sum(timed.wall), n * BATCH / timed.processor))
        print(f"{name:<34}{rates[-1][0]:>10,.0f}{rates[-1][1]:>16,.0f}")
    print(f"{'ratio':<34}{rates[1][0] / rates[0][0]:>10.2f}{rates[1][1] / rates[0][1]:>16.2f}")
    items.close()


def lasting(folder: Path, n: int) -> None:
    """Adds with labels, deletes and searches in between: by tenths, and what tidying takes."""
    items, tenths, tidying, folding = made(folder, "lasting"), [], Timed(), Timed()
    tidy, fold_log = journal.Journal.tidy, journal.Journal.fold_log

    def timed_tidy(self: journal.Journal, *arguments: Any) -> None:
        tidying.call(lambda: tidy(self, *arguments))

    def timed_fold(self: journal.Journal, **named: Any) -> None:
        folding.call(lambda: fold_log(self, **named))

    journal.Journal.tidy = timed_tidy  # type: ignore[method-assign,assignment]
    journal.Journal.fold_log = timed_fold  # type: ignore[method-assign]
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
    for name, timed in (("a piece of tidying up", tidying), ("of these, folding the log", folding)):
        worst = sorted(timed.wall)[-10:]
        print(f"{name}: the ten longest took {', '.join(f'{1e3 * t:.0f}' for t in worst)} ms")
    journal.Journal.tidy = tidy  # type: ignore[method-assign]
    journal.Journal.fold_log = fold_log  # type: ignore[method-assign]
    by_turns(folder, items, n)
    searched(items, max(SEARCHED, n // 10))
    items.close()


def by_turns(folder: Path, large: Collection, n: int) -> None:
    """The same adds to a large collection and to one as large as that was in its second tenth."""
    small, n_small = made(folder, "small"), max(1, n * 3 // 20)
    for start in range(0, n_small, BATCH):
        size = min(BATCH, n_small - start)
        small.add(range(10_000 + start, 10_000 + start + size), X[:size])
    met = {id(each): Timed() for each in (small, large)}
    for i in range(2 * n, 2 * n + max(100, n // 25)):
        for each in (small, large) if i % 2 else (large, small):
            adding = met[id(each)]
            adding.call(lambda c=each, i=i: c.add([10_000 + i], X[row(i)], Y[row(i)]))  # type: ignore[misc]
            if i % 10 == 9:
                each.delete([10_000 + i - 5])
    few, many = met[id(small)], met[id(large)]
    ratios = np.quantile(many.wall, [0.5, 0.99]) / np.quantile(few.wall, [0.5, 0.99])
    print(
        f"by turns, {len(large):,} items over {len(small):,}, {len(few.wall):,} adds each: p50 "
        f"{ratios[0]:.2f}, p99 {ratios[1]:.2f}, processor {many.processor / few.processor:.2f}"
    )
    small.close()


def searched(items: Collection, n: int) -> None:
    """Adds and deletes, and a thread that searches: how long both take, beside tidying and else."""
    spans: dict[str, list[tuple[float, float]]] = {"tidying": [], "adding": [], "searching": []}
    names = ("tidy", "_fold_rows", "_join_all")  # the last two in threads of their own, if of many
    before = {name: getattr(journal.Journal, name) for name in names}

    def spent(kind: str, work: Callable[[], Any]) -> None:
        start = time.perf_counter()
        try:
            work()
        finally:
            spans[kind].append((start, time.perf_counter()))

    for name, call in before.items():
        timed = lambda *arguments, c=call: spent("tidying", lambda: c(*arguments))  # noqa: E731
        setattr(journal.Journal, name, timed)
    ids, done = items.ids, threading.Event()
    for turn in range(3):  # so that there is a fold of labels, too
        items.label(ids, [(turn + i) % 10 for i in range(len(ids))])

    def search() -> None:
        for i in range(10**9):
            if done.is_set():
                return
            spent("searching", lambda i=i: items.search(X[row(i)], 10))  # type: ignore[misc]
            time.sleep(PAUSE)  # else the two threads wait for Python itself

    changes, journal.LOG_CHANGES = journal.LOG_CHANGES, FOLDED
    searching = threading.Thread(target=search)
    searching.start()
    first = max(ids) + 1
    for i in range(first, first + n):
        spent("adding", lambda i=i: items.add([i], X[row(i)], Y[row(i)]))  # type: ignore[misc]
        if i % 10 == 9:
            items.delete([i - 5])
    done.set()
    searching.join()
    journal.LOG_CHANGES = changes
    for name, call in before.items():
        setattr(journal.Journal, name, call)
    print(
        f"\n{f'{n:,} adds, the log folded every {FOLDED}':<44}{'times':>8}{'p50, ms':>9}"
        f"{'p99, ms':>9}{'most, ms':>10}"
    )
    tidied = [(start, end) for start, end in spans["tidying"] if end - start > IDLE]
    for what, kind in (("search", "searching"), ("add", "adding")):
        beside = [any(a < end and b > start for a, b in tidied) for start, end in spans[kind]]
        for name, wanted in (("beside tidying up", True), ("else", False)):
            found = [
                end - start
                for (start, end), each in zip(spans[kind], beside, strict=True)
                if each == wanted
            ]
            p50, p99, most = 1e3 * np.quantile(found or [np.nan], [0.5, 0.99, 1])
            print(f"{f'{what}, {name}':<44}{len(found):>8,}{p50:>9.2f}{p99:>9.2f}{most:>10.1f}")


PARTS: dict[str, Callable[[Path, int], None]] = {
    "single": lambda folder, n: single(folder, max(100, n // 250)),
    "threads": lambda folder, n: together(folder, max(500, n // 25)),
    "http": lambda folder, n: served(folder, 2 if n < 50_000 else 3),
    "batches": lambda folder, n: batches(folder, max(200, n // 500)),
    "lasting": lasting,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--adds", type=int, default=100_000)
    parser.add_argument("--folder", default=".", help="on the disk that is measured")
    parser.add_argument("--part", choices=[*PARTS], action="append", help="this alone; may repeat")
    options = parser.parse_args()
    set_threads(1)
    n = options.adds
    print(describe_machine("pylance"))
    print(f"load {os.getloadavg()[0]:.1f}; log of {journal.LOG_BYTES >> 20} MiB at most")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        for part in options.part or PARTS:
            PARTS[part](Path(name), n)
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
