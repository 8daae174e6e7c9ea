"""Threads, processes, idle readers and forks: what a collection promises while all go on at once.

history   eight threads in three processes (one writes and reads, two read) make random calls
          on a few items. What was called, when, and what came is recorded, and checked: the
          calls of a process that reads, with those that write, could have been made one after
          another; every search, scan and export is of one model, and models never go back.
leases    items are added one by one beside readers that do nothing, stand still or were
          killed; files and versions are counted.
forks     a process that writes is forked at random moments. Children read, and are refused
          when they write; the parent goes on, and what it has stored is there.

python benchmarks/fault_threads.py history --operations 50000 --seed 1
python benchmarks/faults.py threads  # all of it, with rows in results/faults/threads.jsonl
"""

import argparse
import faulthandler
import json
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from histories import GONE, Impossible, Step, violation
from streamhash import SDOH, ConflictError, InUseError, NotFoundError, ReadOnlyError, __version__
from streamhash.codes import Codes
from streamhash.lab.run import describe_machine
from streamhash.live import Collection

ITEMS, WIDTH, CLASSES = 40, 8, 3
WRITERS, READERS = 4, 2  # threads: of the process that writes, and of each of two that read
PROCESSES = 3
ALL = 2 * ITEMS  # more than there are: such a search finds every item

Rows = NDArray[np.float32]


def vector(value: int) -> Rows:
    """The vector that goes with a value: any process can make it up again."""
    noise = np.sin((value + 1) * np.arange(1, WIDTH + 1) * 0.737)
    return np.asarray(noise + 2 * np.eye(CLASSES, WIDTH)[value % CLASSES], np.float32)


def hasher() -> SDOH:
    return SDOH(16, batch_size=20, n_features=32, memory=60, random_state=0)


# -------------------------------------------------------------------------------- what was called


class Call(NamedTuple):
    """A call, when it was made, and what came."""

    process: int
    start: int
    end: int
    verb: str
    ids: tuple[int, ...]
    given: Any
    came: Any


class Caller:
    """One thread that makes random calls, and takes note of them."""

    def __init__(self, collection: Collection, process: int, thread: int, seed: int, folder: str):
        self.collection, self.process, self.folder = collection, process, folder
        self.random = random.Random(f"{seed} {process} {thread}")
        self.next_value = (process * 100 + thread) * 10_000_000  # every write has its own
        self.file = f"{folder}/export-{process}-{thread}.parquet"
        self.calls: list[Call] = []
        self.errors: list[str] = []
        self.writes = [self.add, self.replace, self.label, self.delete]
        self.reads = [self.get, self.labels, self.contains, self.ids, self.search]

    def call_one(self) -> None:
        """Make a random call."""
        dice = self.random.random()
        if self.process == 0 and dice < 0.5:
            self.random.choice(self.writes)()
        elif dice > 0.997:
            self.export()
        elif dice > 0.99:
            self.scan()
        elif dice > 0.985 and self.process == 0:
            self.refresh()
        else:
            self.random.choice(self.reads)()

    def _record(
        self,
        verb: str,
        ids: tuple[int, ...],
        given: Any,
        call: Callable[[], Any],
        *expected: type[Exception],
    ) -> None:
        start = time.monotonic_ns()
        try:
            came = call()
        except expected as error:
            came = type(error).__name__
        except BaseException:  # noqa: BLE001  counted, and shown
            self.errors.append(f"{verb}: {traceback.format_exc()}")
            return
        self.calls.append(Call(self.process, start, time.monotonic_ns(), verb, ids, given, came))

    def _item(self) -> int:
        return self.random.randrange(ITEMS)

    def _value(self) -> int:
        self.next_value += 1
        return self.next_value

    def store(self, verb: str, ids: tuple[int, ...], existing: str) -> None:
        value, label = self._value(), self.random.randrange(CLASSES)
        rows, extra = np.array([vector(value)] * len(ids)), [{"value": value}] * len(ids)
        labels = [label] * len(ids)
        self._record(
            verb,
            ids,
            (value, label),
            lambda: self.collection.add(ids, rows, labels, metadata=extra, existing=existing),
            ConflictError,
        )

    def add(self) -> None:
        self.store("add", (self._item(),), "refuse")

    def replace(self) -> None:
        self.store("replace", tuple({self._item(), self._item()}), "replace")

    def label(self) -> None:
        item, label = self._item(), self.random.randrange(CLASSES)
        call = lambda: self.collection.label([item], [label])  # noqa: E731
        self._record("label", (item,), label, call, NotFoundError)

    def delete(self) -> None:
        item = self._item()
        self._record("delete", (item,), None, lambda: self.collection.delete([item]), NotFoundError)

    def get(self) -> None:
        item = self._item()

        def call() -> tuple[int, int, bytes]:
            (found,) = self.collection.get([item])
            return found.metadata["value"], found.label, found.vector.tobytes()

        self._record("get", (item,), None, call, NotFoundError)

    def labels(self) -> None:
        ids = tuple(range(ITEMS))
        self._record("labels", ids, None, lambda: self.collection.labels(ids))

    def contains(self) -> None:
        item = self._item()
        self._record("contains", (item,), None, lambda: item in self.collection)

    def ids(self) -> None:
        self._record("ids", tuple(range(ITEMS)), None, lambda: self.collection.ids)

    def search(self) -> None:
        value = self.random.choice(self.calls).given if self.calls else None
        value = value[0] if isinstance(value, tuple) else self.random.randrange(1000)

        def call() -> tuple[int, dict[int, int]]:
            answer = self.collection.answer(vector(value)[None], ALL)
            found = dict(zip(answer.ids()[0].tolist(), answer.distances[0].tolist(), strict=True))
            found.pop(-1, None)
            return answer.model, found

        self._record("search", tuple(range(ITEMS)), value, call)

    def scan(self) -> None:
        def call() -> dict[int, tuple[int, int, bytes, bytes]]:
            return {
                item: (extra["value"], label, row.tobytes(), code.tobytes())
                for batch in self.collection.scan(size=16)
                for item, label, extra, row, code in zip(
                    batch.ids.tolist(),
                    batch.labels,
                    batch.metadata,
                    batch.vectors,
                    batch.codes,
                    strict=True,
                )
            }

        self._record("scan", tuple(range(ITEMS)), None, call)

    def export(self) -> None:
        def call() -> dict[int, tuple[int, int, bytes, bytes]]:
            self.collection.export(self.file, vectors=True)
            return {
                row["id"]: (
                    json.loads(row["metadata"])["value"],
                    row["label"],
                    np.array(row["vector"], np.float32).tobytes(),
                    row["code"],
                )
                for row in parquet.read_table(self.file).to_pylist()
            }

        self._record("export", tuple(range(ITEMS)), None, call)

    def refresh(self) -> None:
        def call() -> int:
            self.collection.refresh()
            return self.collection.model_number

        self._record("refresh", (), None, call)


def run_threads(
    collection: Collection, process: int, seed: int, folder: str, made: Any, n: int
) -> tuple[list[Call], list[str]]:
    """Let threads call until all processes together have made ``n`` calls."""
    n_threads = READERS if process else WRITERS
    callers = [Caller(collection, process, i, seed, folder) for i in range(n_threads)]

    def work(caller: Caller) -> None:
        while True:
            with made.get_lock():
                if made.value >= n:
                    return
                made.value += 1
            caller.call_one()

    threads = [threading.Thread(target=work, args=[caller]) for caller in callers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (
        [call for caller in callers for call in caller.calls],
        [error for caller in callers for error in caller.errors],
    )


def read_beside(path: str, process: int, seed: int, folder: str, made: Any, n: int) -> None:
    """Be a process that reads."""
    with Collection.open(path, read_only=True) as collection:
        came = run_threads(collection, process, seed, folder, made, n)
    Path(f"{folder}/calls-{process}").write_bytes(pickle.dumps(came))


# ------------------------------------------------------------------------------------ the checking


class Models:
    """The codes of all values, by every model."""

    def __init__(self, collection: Collection, calls: list[Call]) -> None:
        stored = {call.given[0] for call in calls if call.verb in ("add", "replace")}
        values = sorted(stored | {call.given for call in calls if call.verb == "search"})
        rows = np.array([vector(value) for value in values])
        self._codes: dict[int, Codes] = {
            number: collection.model(number).transform(rows) for number, _ in collection.models()
        }
        self._places = {value: place for place, value in enumerate(values)}

    def code(self, model: int, value: int) -> bytes:
        """The code of a value's vector."""
        return bytes(self._codes[model][self._places[value]])

    def distance(self, model: int, first: int, second: int) -> int:
        """Hamming distance of two values' codes."""
        codes, places = self._codes[model], self._places
        return int(np.bitwise_count(codes[places[first]] ^ codes[places[second]]).sum())

    def of(self, came: dict[int, tuple[int, int, bytes, bytes]]) -> bool:
        """Whether all these codes are those of one model."""
        return any(
            all(self.code(model, value) == code for value, _, _, code in came.values())
            for model in self._codes
        )


def expect(holds: bool) -> None:
    if not holds:
        raise Impossible


def step_of(call: Call, item: int, models: Models) -> Step:
    """What a call says of one item: a state is a value and a label, or GONE."""
    verb, given, came = call.verb, call.given, call.came

    def apply(state: Any) -> Any:
        if verb == "add":
            expect((state is GONE) == (came == 1))
            return given if came == 1 else state
        if verb == "replace":
            return given
        if verb in ("label", "delete"):
            expect((state is GONE) == (came == "NotFoundError"))
            if state is GONE or verb == "delete":
                return GONE
            return state[0], given
        if verb == "get":
            there = None if came == "NotFoundError" else came[:2]
            expect(state == there)
        elif verb == "labels":
            expect((GONE if state is GONE else state[1]) == came[item])
        elif verb == "contains":
            expect((state is not GONE) == came)
        elif verb == "ids":
            expect((state is not GONE) == (item in came))
        elif verb == "search":
            number, found = came
            expect((state is not GONE) == (item in found))
            if state is not GONE:
                expect(models.distance(number, given, state[0]) == found[item])
        else:  # scan, export
            expect(state == (came[item][:2] if item in came else GONE))
        return state

    return Step(call.start, call.end, call, apply)


WRITES = {"add", "replace", "label", "delete"}


def check_calls(calls: list[Call], models: Models) -> list[str]:
    """Return all that cannot be."""
    found = []
    for process in range(PROCESSES):
        # Writes with the reads of one process: two processes need not see a change at the same
        # instant while the call that makes it is under way.
        seen = [call for call in calls if call.verb in WRITES or call.process == process]
        by_item = defaultdict[int, list[Call]](list)
        for call in seen:
            for item in call.ids:
                by_item[item].append(call)
        for item, theirs in by_item.items():
            text = violation([step_of(call, item, models) for call in theirs])
            if text is not None:
                found.append(f"item {item}: {text}")
    for call in calls:
        if call.verb == "get" and call.came != "NotFoundError":
            value, _, row = call.came
            if row != vector(value).tobytes():
                found.append(f"get of {call.ids}: the vector is not that of the metadata")
        if call.verb in ("scan", "export"):
            if any(row != vector(value).tobytes() for value, _, row, _ in call.came.values()):
                found.append(f"{call.verb}: a vector is not that of its metadata")
            if not models.of(call.came):
                found.append(f"{call.verb}: codes of two models")
    return found + [text for process in range(PROCESSES) for text in check_models(calls, process)]


def check_models(calls: list[Call], process: int) -> Iterator[str]:
    """Models never go back: what a call saw that has ended, later ones see, or a newer one."""
    seen = []
    for call in calls:
        if call.verb == "search" and call.process == process:
            seen.append((call.start, call.end, call.came[0]))
        elif call.verb == "refresh":
            seen.append((call.start, call.end, call.came))
    ended = sorted(seen, key=lambda each: each[1])
    newest, at = 0, 0
    for start, _, model in sorted(seen):
        while ended[at][1] < start:
            newest, at = max(newest, ended[at][2]), at + 1
        if model < newest:
            yield f"process {process} searched with model {model} after one with {newest}"


def history(n: int, seed: int) -> dict[str, Any]:
    """Record a history of ``n`` calls, and check it."""
    context = multiprocessing.get_context("spawn")
    made, start = context.Value("q", 0), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/items"
        collection = Collection.create(path, hasher(), refresh="manual", random_state=0)
        first = Caller(collection, 0, 99, seed, folder)
        for item in range(ITEMS):  # so that a model serves
            first.store("add", (item,), "refuse")
        collection.refresh()
        others = [
            context.Process(target=read_beside, args=(path, i, seed, folder, made, n))
            for i in range(1, PROCESSES)
        ]
        for other in others:
            other.start()
        calls, errors = run_threads(collection, 0, seed, folder, made, n)
        for number, other in enumerate(others, 1):
            other.join()
            theirs = pickle.loads(Path(f"{folder}/calls-{number}").read_bytes())
            calls, errors = calls + theirs[0], errors + theirs[1]
        recorded = time.perf_counter() - start
        counted = Counter(call.verb for call in calls)
        collection.close()
        with Collection.open(path) as again:
            last = Caller(again, 0, 98, seed, folder)
            for look in (last.ids, last.labels, last.scan, last.search):
                look()
            calls, errors = [*first.calls, *calls, *last.calls], errors + last.errors
            n_models, models = again.model_number, Models(again, calls)
    wrong = check_calls(calls, models)
    for text in [*errors[:3], *wrong[:10]]:
        print(text, file=sys.stderr)
    return {
        "fault": "history",
        "operations": sum(counted.values()) + len(errors),
        "threads": WRITERS + READERS * (PROCESSES - 1),
        "processes": PROCESSES,
        "calls": dict(sorted(counted.items())),
        "models": n_models,
        "violations": len(wrong),
        "errors": len(errors),
        "seconds": round(recorded, 1),
    }


# ------------------------------------------------------------------------------------ idle readers

READER = """
import sys
from streamhash.live import Collection
collection = Collection.open(sys.argv[1], read_only=True)
batches = collection.scan(size=1)
n = len(next(batches).ids) if sys.argv[2] == "scan" else 0
print("ready", flush=True)
sys.stdin.readline()
n += sum(len(batch.ids) for batch in batches)
print(n, len(collection), len(collection.get(collection.ids)), flush=True)
"""


def count_files(path: Path) -> tuple[int, int]:
    """How many files a collection has, and versions of its items."""
    return (
        sum(each.is_file() for each in path.rglob("*")),
        sum(1 for _ in (path / "items.lance" / "_versions").glob("*.manifest")),
    )


def leases(n: int, seed: int, *, idle: int = 3) -> dict[str, Any]:
    """Add ``n`` items one by one beside readers that do nothing, and count what is left over.

    Besides ``idle`` ones that wait, one stands still and one was killed, both in the middle of a
    scan.
    """
    start, before = 2 * ITEMS, 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items"
        collection = Collection.create(path, hasher(), refresh="manual", random_state=seed)
        rows = np.array([vector(value) for value in range(start + n + 64)])
        collection.add(range(start), rows[:start], [i % CLASSES for i in range(start)])
        before = _time_adds(collection, rows, range(start, start + 64))[0]
        start += 64
        command = [sys.executable, "-c", READER, str(path)]
        kinds = [*["wait"] * idle, "scan", "scan"]
        readers = [
            subprocess.Popen(
                [*command, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for kind in kinds
        ]
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "ready\n"
        os.kill(readers[-2].pid, signal.SIGSTOP)
        readers[-1].kill()
        files, versions, seconds = 0, 0, []
        for i in range(start, start + n):
            seconds.append(_time_adds(collection, rows, range(i, i + 1))[0])
            if i % 16 == 0:
                now = count_files(path)
                files, versions = max(files, now[0]), max(versions, now[1])
        os.kill(readers[-2].pid, signal.SIGCONT)
        lost = 0
        for kind, reader in zip(kinds[:-1], readers[:-1], strict=True):
            said = reader.communicate("\n", timeout=120)[0].split()
            seen = start if kind == "scan" else start + n  # a scan sees the moment it began
            lost += said != [*map(str, (seen, start + n, start + n))]
        readers[-1].communicate()
        collection.close()
    return {
        "fault": "leases",
        "operations": n,
        "readers": {"idle": idle, "stopped": 1, "killed": 1},
        "files": files,
        "versions": versions,
        "lost": lost,
        "milliseconds": {
            "without readers": round(1e3 * before, 2),
            "median": round(1e3 * float(np.median(seconds)), 2),
            "last tenth": round(1e3 * float(np.median(seconds[-n // 10 :])), 2),
            "p99": round(1e3 * float(np.quantile(seconds, 0.99)), 2),
        },
    }


def _time_adds(collection: Collection, rows: Rows, ids: range) -> list[float]:
    """The median of the seconds of an add, in a list."""
    seconds = []
    for i in ids:
        start = time.perf_counter()
        collection.add([i], rows[i : i + 1])
        seconds.append(time.perf_counter() - start)
    return [float(np.median(seconds))]


# ------------------------------------------------------------------------------------------ forks


def forks(n: int, seed: int) -> dict[str, Any]:
    """Fork a process that writes ``n`` times, at random moments; two other threads go on."""
    warnings.filterwarnings("ignore", message=".*fork.*")
    dice, failed = random.Random(seed), []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/items"
        collection = Collection.create(
            path, hasher(), refresh=60, background=True, random_state=seed
        )
        there, done = [*range(60)], threading.Event()
        rows = np.array([vector(value) for value in range(100_000)])
        collection.add(there, rows[:60], [i % CLASSES for i in there])

        def write() -> None:
            while not done.is_set():
                i = len(there)
                collection.add([i], rows[i : i + 1], [i % CLASSES])
                there.append(i)
                if i % 10 == 0:
                    collection.label([i], [0])

        def read() -> None:
            while not done.is_set():
                collection.search(rows[:4], 3)
                collection.get([1, 2])

        def guard(work: Callable[[], None]) -> None:
            try:
                work()
            except BaseException:  # noqa: BLE001  counted
                failed.append(f"parent: {traceback.format_exc()}")

        threads = [threading.Thread(target=guard, args=[work]) for work in (write, read)]
        for thread in threads:
            thread.start()
        for _ in range(n):
            time.sleep(dice.random() * 0.05)
            acknowledged = len(there)
            child = os.fork()
            if child == 0:
                _be_a_child(collection, acknowledged, polite=dice.random() < 0.5)
            _, status = os.waitpid(child, 0)
            if status:
                failed.append(f"a child ended with {status}")
        done.set()
        for thread in threads:
            thread.join()
        try:
            Collection.open(path).close()
            failed.append("the lock of the writer is gone")
        except InUseError:
            pass
        collection.close()
        with Collection.open(path) as again:
            if again.ids != there:
                failed.append("items differ")
            models = again.model_number
    for text in failed[:5]:
        print(text, file=sys.stderr)
    return {
        "fault": "forks",
        "operations": n,
        "lost": len(failed),
        "stored": len(there),
        "models": models,
    }


def _be_a_child(collection: Collection, n: int, *, polite: bool) -> NoReturn:
    """Read, try to write, and end: 0 if all was as it should be."""
    faulthandler.enable()
    faulthandler.dump_traceback_later(120, exit=True)
    status = 1
    try:
        row = vector(1)[None]
        assert collection.read_only
        assert len(collection) >= n
        assert collection.search(row, 1)[0].tolist() == [[0]]
        assert collection.labels([0, n - 1]) == [0, (n - 1) % CLASSES] or (n - 1) % 10 == 0
        assert {0, n - 1} < {*collection.ids}
        for verb, kind in (
            (lambda: collection.add([10**9], row), ReadOnlyError),
            (lambda: collection.label([0], [1]), ReadOnlyError),
            (lambda: collection.delete([0]), ReadOnlyError),
            (lambda: collection.refresh(), ReadOnlyError),
            (lambda: collection.get([0]), InUseError),
            (lambda: collection.export("items.parquet"), InUseError),
            (lambda: collection.status(), InUseError),
        ):
            refused = ""
            try:
                verb()
            except kind as error:
                refused = str(error)
            assert "this process was forked" in refused
        collection.wait()
        if polite:
            collection.close()
        status = 0
    except Exception:  # noqa: BLE001  told by the status
        traceback.print_exc()
    os._exit(status)


# ------------------------------------------------------------------------------------------- rows

RESULTS = Path(__file__).parents[1] / "results" / "faults" / "threads.jsonl"
FAULTS = {"history": history, "leases": leases, "forks": forks}
FULL = {"history": 200_000, "leases": 5_000, "forks": 500}  # times


def row(fault: str, n: int, seed: int) -> dict[str, Any]:
    """Try a fault, and return what came of it."""
    return {
        **FAULTS[fault](n, seed),
        "seed": seed,
        "version": __version__,
        "machine": describe_machine(),
    }


def run() -> None:
    """Try all, as ``faults.py threads`` does, and keep the rows."""
    main([*sys.argv[2:], "--out", str(RESULTS)])


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fault", choices=[*FAULTS], nargs="*", default=[*FAULTS])
    parser.add_argument("--operations", type=int, help=f"default: {FULL}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a file of JSON lines, to add to")
    arguments = parser.parse_args(words)
    for fault in arguments.fault:
        came = json.dumps(row(fault, arguments.operations or FULL[fault], arguments.seed))
        print(came, flush=True)
        if arguments.out is not None:
            with arguments.out.open("a") as file:
                file.write(came + "\n")


if __name__ == "__main__":
    main()
