"""Kill a process that writes, labels, deletes, learns and refreshes, again and again.

A child process works on a live collection and says what it is about to do and what is done; this
one kills it (SIGKILL) at random moments, opens the collection, and checks that

- every acknowledged change is there, exactly once, and the one under way whole or not at all;
- all codes are those of the serving model, and the index finds what is stored;
- the learner is, byte for byte, one that learned in memory from the calls that are there.

    python benchmarks/faults.py --kills 300
    python benchmarks/faults.py service  # or extreme, …: the faults of the file fault_service.py
"""

import argparse
import contextlib
import copy
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streamhash import SDOH, HammingIndex, InputError, set_threads
from streamhash.live import Collection, journal, refresh
from streamhash.live.arrow import Keys
from streamhash.live.backends.memory import MemoryBackend
from streamhash.live.journal import Journal
from streamhash.live.judgements import Pairs
from streamhash.live.learner import Learner, Lesson, is_fitted
from streamhash.live.view import Moment
from streamhash.search.directory import Directory
from streamhash.storage import describe

WIDTH, CLASSES, BITS = 16, 5, 32
EVERY = 150  # learned items, after which it refreshes by itself
PIECE = 50  # kills of one collection; then their row is kept, and another one begins

Task = dict[str, Any]


# --------------------------------------------------------------------------- what is stored


def vectors(ids: Any, versions: Any) -> NDArray[np.float32]:
    """The vectors of items: any process can make them up again."""
    number = np.asarray(ids)[:, None] * 31.0 + np.asarray(versions)[:, None] * 7.0
    noise = np.sin(number * np.arange(1, WIDTH + 1) * 0.737 + 0.1)
    centres = 2 * np.eye(CLASSES, WIDTH)
    return np.asarray(noise + centres[np.asarray(ids) % CLASSES], np.float32)


def hasher() -> SDOH:
    return SDOH(BITS, batch_size=20, n_features=64, memory=100, random_state=0)


class Stored(NamedTuple):
    version: int
    label: int | None


def after(task: Task, there: dict[int, Stored]) -> dict[int, Stored]:
    """What is stored after a task."""
    new = dict(there)
    if task["do"] in ("add", "replace"):
        for i, version, label in zip(task["ids"], task["versions"], task["labels"], strict=True):
            new.pop(i, None)
            new[i] = Stored(version, label)
    elif task["do"] == "label":
        for i, label in zip(task["ids"], task["labels"], strict=True):
            new[i] = Stored(new[i].version, label)
    elif task["do"] == "delete":
        for i in task["ids"]:
            del new[i]
    return new


class Twin:
    """A learner in memory, and the items that it learns from, as the collection has them."""

    def __init__(self) -> None:
        self.learner = Learner(hasher(), random_state=0)
        self.learner.start()
        self.directory, self.rows = Directory(), dict[int, NDArray[np.float32]]()
        self.judged: list[tuple[int, int, int, bool]] = []  # number, item, query, whether good

    def copy(self) -> "Twin":
        return copy.deepcopy(self)

    def read(self, keys: Keys) -> NDArray[np.float32]:
        return np.array([self.rows[key] for key in keys.tolist()], np.float32)

    def do(self, task: Task) -> None:
        """Learn from a task, as the collection does."""
        directory, learner = self.directory, self.learner
        moment = Moment.of(0, None, None, directory)
        keys = directory.find(task.get("ids", []))
        if task["do"] in ("add", "replace"):
            ids, labels = np.array(task["ids"]), task["labels"]
            rows, gone = vectors(ids, task["versions"]), keys[keys >= 0]
            keys = directory.last_key + 1 + np.arange(len(ids))
            lesson, n_items = Lesson(keys, rows, labels, keys < 0), len(directory) + len(ids)
            taught = learner.taught(moment, lesson, None, self.read, gone=gone, n_items=n_items)
            taught = self.without_judged(gone, taught)
            self.rows.update(zip(keys.tolist(), rows, strict=True))
            directory.append(keys, ids, labels)
        elif task["do"] == "label":
            before = directory.listing.label_names_of(keys)
            others = [i for i, label in enumerate(task["labels"]) if label != before[i]]
            lesson, gone = Lesson(keys, self.read(keys), task["labels"], keys >= 0), keys[others]
            some = lesson.some(others) if learner.hasher.can_forget else lesson
            n_items = len(directory)
            taught = learner.taught(moment, some, None, self.read, gone=gone, n_items=n_items)
            taught = self.without_judged(keys[others], taught)
            directory.set_labels(keys, task["labels"])
        elif task["do"] == "delete":
            taught = self.without_judged(keys, learner.let_go(moment, keys, self.read, forget=True))
            directory.delete(task["ids"])
        elif task["do"] == "feedback":
            queries, numbers = (
                directory.find(task["queries"]),
                learner.n_judged_ + np.arange(len(keys)),
            )
            columns = (numbers.tolist(), keys.tolist(), queries.tolist(), task["good"])
            self.judged += zip(*columns, strict=True)
            taught = learner.judged(len(keys), self.pairs, None)
        else:
            return
        if taught is not None:
            self.learner = taught

    def there(self) -> list[tuple[int, int, int, bool]]:
        """The judgements of items that are there."""
        has = {*self.directory.keys.tolist()}
        return [each for each in self.judged if each[1] in has and each[2] in has]

    def pairs(self, first: int) -> Pairs:
        """The judged pairs from a number on."""
        found = [each for each in self.there() if each[0] >= first]
        numbers, items, queries, good = (np.array([each[i] for each in found]) for i in range(4))
        names = self.directory.listing.label_names_of
        asked, found_rows = (self.read(keys).reshape(-1, WIDTH) for keys in (queries, items))
        labels = [names(keys.astype(np.int64)) for keys in (queries, items)]
        return Pairs(numbers, asked, found_rows, good.astype(bool), labels[0], labels[1])

    def without_judged(self, keys: Keys, taught: Learner | None) -> Learner | None:
        """Let what pairs have taught of items leave."""
        there = self.there()
        if not any(key in each[1:3] for each in there for key in keys.tolist()):
            return taught
        learned = [each for each in there if each[0] < self.learner.judged_to_]
        paired = {key for each in learned for key in each[1:3]}
        twin = taught or self.learner.copy()
        twin.leave_pairs(self.read(np.array([k for k in keys.tolist() if k in paired])))
        return twin

    def learn_all(self) -> None:
        """Learn and forget all that waits, as a refresh does first."""
        self.learner.forget_leaving()
        self.learner.learn_waiting(Moment.of(0, None, None, self.directory), self.read)
        if self.learner.has_waiting_pairs:
            self.learner.learn_pairs(self.pairs(self.learner.judged_to_), all_now=True)
        self.refill()

    def refill(self) -> None:
        """Forget what leaves, and fill the memory up, as a refresh does that began by itself."""
        self.learner.forget_leaving()
        self.learner.refill(Moment.of(0, None, None, self.directory), self.read)

    def learned(self) -> bytes:
        return learned(self.learner, self.directory)


# -------------------------------------------------------------------------------- the child


def say(**what: Any) -> None:
    os.write(1, (json.dumps(what) + "\n").encode())


def tasks(collection: Collection, seed: int, eager: bool) -> Iterator[Task]:
    """Make up changes for ever."""
    choose = random.Random(seed)
    versions = Counter[int]()
    top = max(collection.ids, default=-1) + 1

    def labels(ids: list[int]) -> list[int | None]:
        if choose.random() < 0.3:
            return [None] * len(ids)
        wrong = choose.random() < 0.2  # so that another label comes later
        return [(i + wrong) % CLASSES if choose.random() < 0.8 else None for i in ids]

    while True:
        there = collection.ids
        kind = choose.choices(
            ["add", "label", "replace", "delete", "feedback", "refresh"],
            [6, 3, 2, 2, 4, 8 if eager else 1],
        )[0]
        if kind == "add" or len(there) < 50:
            ids = [*range(top, top + choose.choice([1, 3, 20, 60]))]
            top = ids[-1] + 1
            yield {"do": "add", "ids": ids, "versions": [0] * len(ids), "labels": labels(ids)}
            continue
        ids = choose.sample(there, min(len(there), choose.choice([1, 3, 20])))
        if kind == "label":
            yield {"do": "label", "ids": ids, "labels": labels(ids)}
        elif kind == "replace":
            versions.update(ids)
            fresh = [seed * 1000 + versions[i] for i in ids]
            yield {"do": "replace", "ids": ids, "versions": fresh, "labels": labels(ids)}
        elif kind == "delete":
            yield {"do": "delete", "ids": ids}
        elif kind == "feedback":
            queries = [choose.choice([other for other in there if other != i]) for i in ids]
            good = [
                (i % CLASSES == q % CLASSES) != (choose.random() < 0.1)
                for i, q in zip(ids, queries, strict=True)
            ]
            yield {"do": "feedback", "ids": ids, "queries": queries, "good": good}
        else:
            # So that there is something to refresh to.
            yield {"do": "label", "ids": ids, "labels": [choose.randrange(CLASSES) for _ in ids]}
            yield {"do": "refresh"}
            if collection.model_number > 1 and choose.random() < 0.3:
                yield {"do": "revert", "model": choose.randrange(1, collection.model_number)}


def work(path: str, seed: int, eager: bool) -> None:
    """Change the collection until the end, which comes from outside."""
    # So that small collections, too, are encoded in several pieces, with notes in between.
    refresh.LEFT_FOR_THE_END, refresh.NOTE_SECONDS = 64, 0.0
    journal.LOG_CHANGES = 3  # the log is folded often, and labels, by a thread, in small pieces
    journal.TIDY_AFTER, journal.LABEL_ROWS = 5, 0
    journal.REWRITTEN_AT_ONCE, journal.FRAGMENT_ROWS = 0, 8
    collection = Collection.open(path)
    say(ready=True)
    for task in tasks(collection, seed, eager):
        say(task=task)
        if task["do"] in ("add", "replace"):
            rows = vectors(task["ids"], task["versions"])
            extra = [{"version": version} for version in task["versions"]]
            collection.add(task["ids"], rows, task["labels"], metadata=extra, existing="replace")
        elif task["do"] == "label":
            collection.label(task["ids"], task["labels"])
        elif task["do"] == "delete":
            collection.delete(task["ids"])
        elif task["do"] == "feedback":
            collection.feedback(query_id=task["queries"], id=task["ids"], good=task["good"])
        elif task["do"] == "revert":
            collection.revert(task["model"], progress=lambda done, n: say(encoded=done, of=n))
        else:
            with contextlib.suppress(InputError):  # nothing was learned yet
                collection.refresh(progress=lambda done, n: say(encoded=done, of=n))
        learner = collection._learner
        waiting = learner.n_waiting + learner.n_leaving + learner.has_waiting_pairs
        say(done=True, waiting=waiting, model=collection.model_number)


# ------------------------------------------------------------------------------- the parent


def warm_up() -> None:
    """Load the compiled kernels."""
    ids = [*range(60)]
    learner = Learner(hasher(), random_state=0)
    learner.start()
    learner.learn(vectors(ids, ids), [i % CLASSES for i in ids])
    codes = learner.hasher_.transform(vectors(ids, ids))
    learner.learn(vectors(ids, ids), [i % CLASSES for i in ids], serving=learner.hasher_)
    index = HammingIndex(BITS)
    index.add(ids, codes)
    index.search(codes, 5)


def serve() -> None:
    """Start children when asked to: loading all that they need takes longer than they live."""
    set_threads(1)  # no thread must be there when it forks
    warm_up()
    for line in sys.stdin:
        path, seed, eager = json.loads(line)
        child = os.fork()
        if child == 0:
            say(child=os.getpid())
            work(path, seed, eager)
        say(ended=os.waitpid(child, 0)[1])


class Server:
    """The process that starts children; there is one at a time."""

    def __enter__(self) -> Self:
        command = [sys.executable, __file__, "--serve"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def start(self, path: str, seed: int, eager: bool) -> Iterator[dict[str, Any]]:
        """Start a child, and return what it says."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write((json.dumps([path, seed, eager]) + "\n").encode())
        self.process.stdin.flush()
        return map(json.loads, self.process.stdout)


class Trial:
    """One collection, and what is known of it."""

    def __init__(self, path: Path, seed: int, n_items: int, server: "Server") -> None:
        self.server = server
        self.path, self.random, self.seed = str(path), random.Random(seed), seed
        self.there: dict[int, Stored] = {}
        self.twin, self.model = Twin(), 0
        self.twins = [self.twin]
        self.openings: list[float] = []
        self.seen: Counter[str] = Counter()
        self.n_done = 0
        self.lasts = defaultdict[str, float](lambda: 0.1)  # seconds that a task takes, about
        with Collection.create(self.path, hasher(), refresh=EVERY, random_state=0) as collection:
            for start in range(0, n_items, 20_000):
                ids = [*range(start, min(start + 20_000, n_items))]
                extra = [{"version": 0}] * len(ids)
                collection.add(ids, vectors(ids, [0] * len(ids)), metadata=extra)
                n = len(ids)
                self.twin.do({"do": "add", "ids": ids, "versions": [0] * n, "labels": [None] * n})
                self.there.update((i, Stored(0, None)) for i in ids)

    def kill_one(self) -> None:
        """Start a child, kill it, and check what it has left."""
        self.seed += 1
        self._replay(self._listen(eager=self.random.random() < 0.5))

    def _listen(self, *, eager: bool) -> list[Task]:
        """Return what a child said before it was killed."""
        lines = []
        n_before = self.random.randrange(1, 6)
        lines_said = self.server.start(self.path, self.seed, eager)
        child = next(lines_said)["child"]
        kind, start = "", 0.0
        for said in lines_said:
            lines.append(said)
            check("ended" not in said, f"the child ended by itself: {said}")
            if "task" in said:
                kind, start = said["task"]["do"], time.perf_counter()
                if n_before <= 0 and (kind in ("refresh", "revert") or not eager):
                    break
            elif "done" in said:
                n_before -= 1
                self.lasts[kind] = 0.7 * self.lasts[kind] + 0.3 * (time.perf_counter() - start)
        time.sleep(self.random.random() * 1.3 * self.lasts[kind])
        os.kill(child, signal.SIGKILL)
        for said in lines_said:
            if "ended" in said:
                check(said["ended"] == signal.SIGKILL, f"the child ended by itself: {said}")
                return lines
            lines.append(said)
        raise SystemExit("FAILED: no child")

    def _replay(self, lines: list[Task]) -> None:
        """Follow the changes in memory, and compare with what is stored."""
        task: Task | None = None
        self.twins = [self.twin]
        for said in lines:
            if "task" in said:
                task = said["task"]
            elif "done" in said and task is not None:
                self._do(task, said)
                task, self.n_done = None, self.n_done + 1
        self.seen[self._phase(task)] += 1
        start = time.perf_counter()
        collection = Collection.open(self.path)
        self.openings.append(time.perf_counter() - start)
        with collection:
            self._settle(collection, task)
            self._compare(collection)

    def _do(self, task: Task, said: Task) -> None:
        """Follow a change. A refresh by itself fills up the memory, unless it had begun before."""
        for twin in self.twins:
            twin.do(task)
            if said["waiting"] == 0 and task["do"] == "refresh":
                twin.learn_all()
        self.there = after(task, self.there)
        if said["model"] != self.model and task["do"] not in ("refresh", "revert"):
            others = [twin.copy() for twin in self.twins]
            for twin in others:
                twin.refill()
            self.twins += others
        self.model = said["model"]

    def _phase(self, task: Task | None) -> str:
        """Tell where the child was killed, from what it has left."""
        store = Journal(self.path)
        columns = [name for name in store.dataset("items").schema.names if "code" in name]
        if len(columns) > 1:
            return "refresh: committed, old codes still there"
        if store.serving < store.last_model:
            noted = store.read_encoded(store.last_model)
            return f"refresh: {'some' if noted else 'no'} fragments noted"
        if store.dataset("encoded").count_rows():
            return "refresh: old codes dropped, notes still there"
        return "between two calls" if task is None else task["do"]

    def _settle(self, collection: Collection, task: Task | None) -> None:
        """Find out the fate of the change that was under way."""
        learners = [twin.copy() for twin in self.twins]
        if task is not None:
            expected = after(task, self.there)
            if self._contents(collection) == self._listing(expected) and (
                expected != self.there or task["do"] in ("label", "feedback")
            ):
                taught = [twin.copy() for twin in self.twins]
                for twin in taught:
                    twin.do(task)
                # Labels as before, or judgements: only the learner can tell.
                learners = [*learners, *taught] if expected == self.there else taught
                self.there = expected
        if task is not None:
            for learner in [*learners]:
                waited, filled = learner.copy(), learner.copy()
                waited.learn_all()
                filled.refill()
                learners += [waited, filled]
        content = learned(collection._learner, collection._view.now.directory)
        fitting = [learner for learner in learners if learner.learned() == content]
        check(bool(fitting), f"the learner is none that learned what is there, after {task}")
        self.twin, self.model = fitting[0], collection.model_number

    def _listing(self, there: dict[int, Stored]) -> list[tuple[int, int, int | None]]:
        return sorted((i, item.version, item.label) for i, item in there.items())

    def _contents(self, collection: Collection) -> list[tuple[int, int, int | None]]:
        stored = collection._journal
        metadata = stored.items(stored.keys(), vectors=False).metadata
        versions = [each["version"] for each in metadata]
        ids = [*collection._view.now.directory.listing.ids_of(stored.keys())]
        listed = zip(ids, versions, collection.labels(ids), strict=True)
        return sorted(listed, key=lambda item: item[:2])

    def _compare(self, collection: Collection) -> None:
        check(self._contents(collection) == self._listing(self.there), "items or labels differ")
        check(sorted(collection.ids) == sorted(self.there), "ids differ")
        number = collection.model_number
        stored = collection._journal
        keys = stored.keys()
        batch, ids = stored.items(keys, codes=number), collection.ids
        rows = batch.vectors
        versions = [self.there[i].version for i in ids]
        check(np.array_equal(rows, vectors(ids, versions)), "vectors differ")
        check(len(collection) == len(ids) == len(self.there), "numbers of items differ")
        if not number:
            return
        codes = batch.codes
        check(np.array_equal(codes, collection.model().transform(rows)), "codes are of two models")
        index = collection._view.now.backend
        assert isinstance(index, MemoryBackend)
        check(np.array_equal(index.codes, codes), "the index differs from what is stored")
        check(np.array_equal(index.ids, keys), "the index has other keys")
        check(collection.history().refreshes[-1]["model"] == number, "the history lacks a refresh")
        distances, _ = collection.search(rows[:3], 1)
        check(bool((distances == 0).all()), "a search does not find what is stored")


def learned(learner: Learner, directory: Directory) -> bytes:
    """All that makes up what a learner has learned, as bytes."""
    hasher = learner.copy().hasher_  # whose hash functions may be worked out, or not yet
    model = _exactly(hasher.settle() if is_fitted(hasher) else hasher)
    model += _exactly(learner.reservoir_)
    waiting = directory.listing.ids_of(learner.waiting_keys).tolist()
    leaving = learner.leaving_labels_, learner.leaving_rows_.tolist()
    judged = learner.n_judged_, learner.judged_to_, learner.leaving_pairs_.tolist()
    return model + json.dumps([waiting, leaving, learner.n_learned_, judged]).encode()


def _exactly(model: Any) -> bytes:
    """A model as bytes, in whatever order its attributes came to be."""
    arrays: dict[str, NDArray[Any]] = {}
    text = json.dumps(describe(model, arrays, "model"), sort_keys=True)
    return text.encode() + b"".join(arrays[name].tobytes() for name in sorted(arrays))


def check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise SystemExit(f"FAILED: {otherwise}")


def run(kills: int, n_items: int, seed: int) -> dict[str, Any]:
    """Kill so often; return the row of it, and say it."""
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        trial, lost, done = Trial(Path(folder) / "items", seed, n_items, server), [], 0
        for done in range(1, kills + 1):
            try:
                trial.kill_one()
            except SystemExit as error:
                lost.append(f"{error} (kill {done}, seed {trial.seed})")
                break
        disk = Journal(trial.path).disk_bytes() or 0
    openings = [round(seconds, 3) for seconds in sorted(trial.openings)] or [0.0]
    return {
        "fault": "kills",
        "items": n_items,
        "seed": seed,
        "tried": done,
        "calls": trial.n_done,
        "during": dict(sorted(trial.seen.items())),
        "opened_s": {"median": openings[len(openings) // 2], "slowest": openings[-1]},
        "disk_mb": round(disk / 1e6, 1),
        "lost": lost,
    }


def main() -> None:
    from fault_durable import ROWS, keep

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--items", type=int, help="default: 3,000, and 100,000 for a fifth")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=ROWS, help="a file of rows to add to")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve()
        return
    large, seed = arguments.kills // 5, arguments.seed
    runs = [(arguments.kills - large, 3_000, seed), (large, 100_000, seed + 1_000_000)]
    if arguments.items is not None:
        runs = [(arguments.kills, arguments.items, seed)]
    pieces = [
        (min(PIECE, kills - done), n_items, first + done)
        for kills, n_items, first in runs
        for done in range(0, kills, PIECE)
    ]
    for kills, n_items, first in pieces:
        start = time.perf_counter()
        row = run(kills, n_items, first)
        keep(row, time.perf_counter() - start, arguments.out)
        if row["lost"]:
            sys.exit(1)


if __name__ == "__main__":
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    if Path(__file__).with_name(f"fault_{part}.py").exists():  # such as: service, extreme
        importlib.import_module(f"fault_{part}").run()
    else:
        main()
