"""Runbooks: the streaming track of big-ann-benchmarks (NeurIPS 2023), read, made and run.

A runbook says, step by step, which rows of a data set come, go, and take the place of others, and
when queries are asked. Its file is YAML, as the track has it:

    mnist:
      max_pts: 3000
      1: {operation: insert, start: 0, end: 3000}
      2: {operation: search}
      3: {operation: replace, tags_start: 0, tags_end: 500, ids_start: 3000, ids_end: 3500}
      4: {operation: delete, start: 500, end: 1000}
      5: {operation: search}

Tags are what a system knows an item by, ids are rows of the data: a row comes under the tag that
is its own number, and ``replace`` puts other rows under tags that are there. ``max_pts`` is the
most items there are at once. Ends are not included.

:func:`make_task` makes runbooks by the rules of the track from any data, :func:`run_runbook` runs
one on anything that inserts, deletes, replaces and searches, and judges every answer.
"""

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError, InputError, MissingDataError
from streamhash.lab.rows import Row
from streamhash.labels import neighbours
from streamhash.metrics import mean_over_classes
from streamhash.optional import import_optional
from streamhash.parameters import Choice, Whole, check_parameters

# What a step of each operation names, in the order of ``Step``: tags, then rows.
OPERATIONS: dict[str, tuple[str, ...]] = {
    "insert": ("start", "end"),
    "delete": ("start", "end"),
    "replace": ("tags_start", "tags_end", "ids_start", "ids_end"),
    "search": (),
}
N_CLUSTERS = 32  # as the track has them
ROUNDS = 5  # of inserts and deletes
CLUSTERED_ROWS = 100_000  # that centres are learned from, at most
TURNS = 10  # of k-means
BLOCK_ROWS = 4096  # whose distances are taken at a time
ROUNDING = 1e-6  # of a squared distance, relative
log = logging.getLogger("streamhash.lab")

Matrix = NDArray[np.float32]
Rows = NDArray[np.int64]


class Step(NamedTuple):
    """One step: the tags it is about, and the rows that come under them."""

    operation: str
    tags: range = range(0)
    rows: range = range(0)

    @classmethod
    def insert(cls, start: int, end: int) -> "Step":
        """Return the step by which rows come under their own numbers."""
        return cls("insert", range(start, end), range(start, end))


SEARCH = Step("search")


@dataclass(frozen=True)
class Runbook:
    """The steps of a stream over one data set; what cannot be run is refused.

    Attributes
    ----------
    data : the name of the data set
    max_points : the most items there are at once
    steps : in their order; the first is step 1
    place : what errors begin with

    >>> Runbook("mine", 2, (Step.insert(0, 2), SEARCH, Step("delete", range(1, 3))))
    Traceback (most recent call last):
    streamhash.errors.InputError: Runbook: step 3 deletes 2, which is not there; delete what was
    inserted before, once.
    """

    data: str
    max_points: int
    steps: tuple[Step, ...]
    place: str = "Runbook"

    def __post_init__(self) -> None:
        is_there = np.zeros(max((step.tags.stop for step in self.steps), default=0), bool)
        sizes = _sizes(self.steps)
        for number, ((operation, tags, rows), n_items) in enumerate(
            zip(self.steps, sizes, strict=True), 1
        ):
            there = is_there[tags.start : tags.stop]
            if operation == "replace" and len(tags) != len(rows):
                raise self._error(
                    number, f"replaces {len(tags)} items by {len(rows)}; name as many ids as tags."
                )
            if operation == "insert" and there.any():
                tag = tags[int(there.argmax())]
                raise self._error(
                    number, f"inserts {tag}, which is there; delete it before, or replace it."
                )
            if operation in ("delete", "replace") and not there.all():
                tag = tags[int(there.argmin())]
                raise self._error(
                    number,
                    f"{operation}s {tag}, which is not there; {operation} what was inserted "
                    "before" + (", once." if operation == "delete" else "."),
                )
            if operation == "search" and not n_items:
                raise self._error(number, "searches before anything was inserted; insert first.")
            if operation in ("insert", "delete"):
                there[:] = operation == "insert"
            if n_items > self.max_points:
                raise self._error(
                    number,
                    f"makes {n_items} items, and max_pts is {self.max_points}; correct one of "
                    "them.",
                )

    def _error(self, number: int, text: str) -> InputError:
        return InputError(f"{self.place}: step {number} {text}")

    @property
    def n_rows(self) -> int:
        """How many rows the data must have."""
        return max((step.rows.stop for step in self.steps if len(step.rows)), default=0)

    def used_rows(self) -> NDArray[np.bool_]:
        """Return which of the first ``n_rows`` rows come at some time."""
        used = np.zeros(self.n_rows, bool)
        for step in self.steps:
            used[step.rows.start : step.rows.stop] = True
        return used

    def moments(self) -> Iterator[tuple[int, Step, Rows]]:
        """Go through the steps: number, step, and the row under each tag after it, or -1.

        The array is changed by the next step.
        """
        row_of = np.full(max((step.tags.stop for step in self.steps), default=0), -1, np.int64)
        for number, step in enumerate(self.steps, 1):
            tags = slice(step.tags.start, step.tags.stop)
            if step.operation == "delete":
                row_of[tags] = -1
            elif step.operation != "search":
                row_of[tags] = np.arange(step.rows.start, step.rows.stop)
            yield number, step, row_of

    def write(self, path: str | Path) -> None:
        """Write it as the track has it."""
        lines = [f"{_yaml_text(self.data)}:", f"  max_pts: {self.max_points}"]
        for number, step in enumerate(self.steps, 1):
            lines += [f"  {number}:", f"    operation: {step.operation}"]
            ends = (step.tags.start, step.tags.stop, step.rows.start, step.rows.stop)
            names = OPERATIONS[step.operation]
            lines += [f"    {name}: {end}" for name, end in zip(names, ends, strict=False)]
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _sizes(steps: Sequence[Step]) -> list[int]:
    """Return how many items there are after each step."""
    signs = {"insert": 1, "delete": -1}
    changes = [signs.get(step.operation, 0) * len(step.tags) for step in steps]
    sizes: list[int] = np.cumsum(changes, dtype=np.int64).tolist()
    return sizes


def _yaml_text(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z][\w.-]*", name) else repr(name)


def read_runbook(path: str | Path, data: str | None = None) -> Runbook:
    """Read a runbook of the track; errors name the step. Where max_pts is too small, it says so.

    Parameters
    ----------
    path : a YAML file
    data : the data set whose steps are wanted; it may be left out where the file has one only

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "small.yaml")
    ...     Runbook("mnist", 9, (Step.insert(0, 9), SEARCH)).write(path)
    ...     runbook = read_runbook(path)
    >>> runbook.data, runbook.max_points, runbook.steps
    ('mnist', 9, (Step(operation='insert', tags=range(0, 9), rows=range(0, 9)),
    Step(operation='search', tags=range(0, 0), rows=range(0, 0))))
    """
    if not Path(path).is_file():
        raise MissingDataError(f"read_runbook: there is no file {path}; check the path.")
    yaml = import_optional("yaml", extra="files", place="a runbook")
    try:
        sets = yaml.load(Path(path).read_text(encoding="utf-8"), _strict_loader(yaml))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise FileError(f"read_runbook: {path} cannot be read as YAML ({reason}).") from error
    if not isinstance(sets, dict) or not all(isinstance(each, dict) for each in sets.values()):
        raise FileError(
            f"read_runbook: {path} is not a runbook; it has the name of a data set at the top, "
            "and max_pts and numbered steps below it."
        )
    names = [str(name) for name in sets]
    if data is None and len(names) != 1:
        raise InputError(
            f"read_runbook: {path} has steps for {', '.join(names) or 'no data set'}; choose one "
            "by data=NAME."
        )
    wanted = names[0] if data is None else data
    if wanted not in names:
        raise InputError(
            f"read_runbook: {path} has no steps for {wanted!r}; it has some for {', '.join(names)}."
        )
    return _runbook(wanted, sets[[*sets][names.index(wanted)]], f"read_runbook: {path}")


def _strict_loader(yaml: Any) -> Any:
    """Return a loader of plain values that refuses a key that comes twice."""
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            seen: set[Any] = set()
            for (key, _), name in zip(node.value, keys, strict=True):
                if name in seen:
                    raise yaml.MarkedYAMLError(
                        problem=f"{name} is there twice", problem_mark=key.start_mark
                    )
                seen.add(name)
            return super().construct_mapping(node, deep)

    return Loader


def _runbook(data: str, given: Mapping[Any, Any], place: str) -> Runbook:
    """Return the runbook that a file holds of one data set."""
    most = given.get("max_pts")
    if type(most) is not int or most < 1:
        raise FileError(f"{place}: max_pts is {most!r}; give the most items there are at once.")
    numbers = {key for key in given if type(key) is int}
    absent = next((n for n in range(1, len(numbers) + 1) if n not in numbers), None)
    if absent is not None:
        raise FileError(
            f"{place}: step {absent} is missing, and there are {len(numbers)}; number them 1, 2, 3 "
            "and so on."
        )
    if not numbers:
        raise FileError(f"{place}: there is no step; number them 1, 2, 3 and so on.")
    steps = tuple(_step(given[n], f"{place}: step {n}") for n in range(1, len(numbers) + 1))
    true_most = max(_sizes(steps))
    runbook = Runbook(data, max(most, true_most), steps, place)
    if true_most > most:  # a generator of the track counts whole batches off that go in part
        log.warning(
            "%s: max_pts is %d, and there are up to %d items; going on with %d.",
            *(place, most, true_most, true_most),
        )
    return runbook


def _step(given: Any, place: str) -> Step:
    operation = given.get("operation") if isinstance(given, dict) else None
    if operation not in OPERATIONS:
        raise FileError(
            f"{place} has operation {operation!r}; it must be one of {', '.join(OPERATIONS)}."
        )
    names = OPERATIONS[operation]
    for name in names:
        value = given.get(name)
        if type(value) is not int or value < 0:
            raise FileError(f"{place} ({operation}) has {name} {value!r}; give a whole number.")
    ranges = []
    for start, end in zip(names[::2], names[1::2], strict=True):
        if given[end] < given[start]:
            raise FileError(f"{place} ({operation}) has {end} {given[end]} before {start}.")
        ranges.append(range(given[start], given[end]))
    return Step(operation, *(ranges * 2 if operation == "insert" else ranges))


def cluster_rows(X: Matrix, n_clusters: int, random_state: int = 0) -> tuple[Rows, list[int]]:
    """Sort rows by their cluster, as the track does: k-means++, ten turns, 100,000 rows at most.

    Returns the order of the rows, and where each cluster begins in it, with the end of the last.
    """
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(random_state)
    some = rng.permutation(len(X))[:CLUSTERED_ROWS]
    means = KMeans(n_clusters, n_init=1, max_iter=TURNS, random_state=random_state)
    clusters = means.fit(X[np.sort(some)]).predict(X)
    limits = np.concatenate([[0], np.bincount(clusters, minlength=n_clusters).cumsum()])
    return np.argsort(clusters, kind="stable"), limits.tolist()


def _clustered(limits: Sequence[int], rng: np.random.Generator) -> list[Step]:  # noqa: ARG001
    """Cluster after cluster comes."""
    return [Step.insert(start, end) for start, end in pairwise(limits)]


def _deleting(limits: Sequence[int], rng: np.random.Generator) -> list[Step]:
    """In each of five rounds a fifth of each cluster comes; then up to .9 of what is there goes."""
    steps = []
    came, gone = [*limits[:-1]], [*limits[:-1]]
    for turn in range(ROUNDS):
        for c, (start, end) in enumerate(pairwise(limits)):
            next_end = end if turn == ROUNDS - 1 else came[c] + (end - start) // ROUNDS
            steps.append(Step.insert(came[c], next_end))
            came[c] = next_end
        for c in range(len(limits) - 1):
            next_gone = gone[c] + int(rng.uniform(0, 0.9) * (came[c] - gone[c]))
            steps.append(Step("delete", range(gone[c], next_gone)))
            gone[c] = next_gone
    return steps


def _replacing(limits: Sequence[int], rng: np.random.Generator) -> list[Step]:
    """.5 to .9 of each cluster come; then a part of the rest takes the place of the first."""
    ends = [start + int(rng.uniform(0.5, 0.9) * (end - start)) for start, end in pairwise(limits)]
    steps = [Step.insert(start, end) for start, end in zip(limits, ends, strict=False)]
    for start, end, limit in zip(limits, ends, limits[1:], strict=False):
        n = int(rng.uniform(0, 1) * (limit - end))
        steps.append(Step("replace", range(start, start + n), range(end, end + n)))
    return steps


RULES: dict[str, Callable[[Sequence[int], np.random.Generator], list[Step]]] = {
    "clustered": _clustered,
    "deleting": _deleting,
    "replacing": _replacing,
}


def make_runbook(kind: str, data: str, limits: Sequence[int], random_state: int = 0) -> Runbook:
    """Make a runbook by a rule of the track over clusters that begin at ``limits``.

    A search follows every step; steps that are about no row are left out.

    Parameters
    ----------
    kind : "clustered", "deleting" (the track's final runbook) or "replacing"
    data : the name of the data set
    limits : where each cluster begins, and the end of the last
    random_state : draws the shares that go or are replaced

    >>> runbook = make_runbook("deleting", "mine", [0, 10, 20])
    >>> [(step.operation, step.tags) for step in runbook.steps[:6:2]]
    [('insert', range(0, 2)), ('insert', range(10, 12)), ('delete', range(0, 1))]
    """
    check_parameters("make_runbook", {"kind": kind}, {"kind": Choice(*RULES)})
    made = [s for s in RULES[kind](limits, np.random.default_rng(random_state)) if len(s.tags)]
    n_left = _sizes(made)
    steps: list[Step] = []
    for step, n in zip(made, n_left, strict=True):
        steps += [step, SEARCH] if n else [step]
    return Runbook(data, max(n_left, default=0), tuple(steps))


class Task(NamedTuple):
    """A runbook with its data, in its order, and the queries that are asked at each search."""

    runbook: Runbook
    X: Matrix
    y: NDArray[Any] | None  # as the stream gives them
    labels: NDArray[Any] | None  # as answers are judged
    queries: Matrix
    query_labels: NDArray[Any] | None


def make_task(
    kind: str,
    X: Matrix,
    y: NDArray[Any] | None = None,
    *,
    data: str,
    stream_labels: NDArray[Any] | None = None,
    n_items: int | None = None,
    n_clusters: int = N_CLUSTERS,
    n_queries: int = 500,
    random_state: int = 0,
) -> Task:
    """Set queries aside, sort the other rows by cluster, and make a runbook of them.

    Parameters
    ----------
    kind : as for :func:`make_runbook`
    X : (n, d) rows of a data set
    y : (n,) labels, or a 0/1 matrix (n, C)
    data : the name of the data set
    stream_labels : labels as the stream gives them, if some are wrong; answers are judged by ``y``
    n_items : rows that are drawn of it; None = all but the queries
    n_clusters, n_queries : how many
    random_state : draws queries and rows, the first centres, and the shares

    >>> task = make_task("clustered", np.eye(9, dtype=np.float32), data="nine", n_queries=2)
    Traceback (most recent call last):
    streamhash.errors.InputError: make_task: n_clusters=32 must be a whole number from 1 to 7.
    """
    place, n = "make_task", len(X)
    n_items = n - n_queries if n_items is None else n_items
    check_parameters(
        place,
        {"kind": kind, "n_items": n_items, "n_clusters": n_clusters, "n_queries": n_queries},
        {
            "kind": Choice(*RULES),
            "n_items": Whole(1),
            "n_clusters": Whole(1, max(1, n_items)),
            "n_queries": Whole(1),
        },
    )
    if n_items + n_queries > n:
        raise InputError(
            f"{place}: {n_items} items and {n_queries} queries are more than the {n} rows of "
            f"{data}; take fewer."
        )
    drawn = np.random.default_rng(random_state).permutation(n)[: n_queries + n_items]
    asking, coming = np.sort(drawn[:n_queries]), drawn[n_queries:]
    order, limits = cluster_rows(X[coming], n_clusters, random_state)
    coming = coming[order]
    return Task(
        make_runbook(kind, data, limits, random_state),
        X[coming],
        _some(y if stream_labels is None else stream_labels, coming),
        _some(y, coming),
        X[asking],
        _some(y, asking),
    )


def _some(labels: NDArray[Any] | None, rows: Any) -> NDArray[Any] | None:
    return None if labels is None else labels[rows]


def file_task(
    runbook: Runbook,
    X: Matrix,
    y: NDArray[Any] | None = None,
    *,
    stream_labels: NDArray[Any] | None = None,
    queries: tuple[Matrix, NDArray[Any] | None] | None = None,
    n_queries: int = 500,
    random_state: int = 0,
) -> Task:
    """Take the rows of a data set as a runbook numbers them, and queries.

    Parameters
    ----------
    runbook : from :func:`read_runbook`
    X, y, stream_labels : as for :func:`make_task`
    queries : vectors and labels that are asked; None = of the rows that the runbook leaves out, at
        most ``n_queries``
    random_state : draws these
    """
    n_rows = runbook.n_rows
    if n_rows > len(X):
        number = next(n for n, step in enumerate(runbook.steps, 1) if step.rows.stop > len(X))
        raise InputError(
            f"{runbook.place}: step {number} needs row {runbook.steps[number - 1].rows.stop - 1}, "
            f"and the data have {len(X)} rows; take the data that the runbook was made for."
        )
    if queries is None:
        is_left = np.ones(len(X), bool)
        is_left[:n_rows] = ~runbook.used_rows()
        asking = np.random.default_rng(random_state).permutation(np.flatnonzero(is_left))
        if not len(asking):
            raise InputError(
                f"{runbook.place}: all rows of the data come at some time, and none is left to "
                "ask; pass queries of their own."
            )
        asking = np.sort(asking[:n_queries])
        queries = X[asking], _some(y, asking)
    coming = slice(n_rows)
    given = y if stream_labels is None else stream_labels
    return Task(runbook, X[coming], _some(given, coming), _some(y, coming), *queries)


class Searched(Protocol):
    """What runs a runbook: a collection, an index, a database.

    ``search`` answers in one of several ``ways`` with the tags of the k nearest, -1 where there are
    no more; ``rank`` with all tags, the nearest first, or None if it cannot.
    """

    ways: Sequence[str]

    def insert(self, tags: Rows, X: Matrix, y: NDArray[Any] | None) -> None:
        """Take new items."""

    def delete(self, tags: Rows) -> None:
        """Let items go."""

    def replace(self, tags: Rows, X: Matrix, y: NDArray[Any] | None) -> None:
        """Put other vectors in the place of items that are there."""

    def search(self, X: Matrix, k: int, way: str) -> NDArray[Any]:
        """Return the tags of the k nearest of each query."""

    def rank(self, X: Matrix) -> NDArray[Any] | None:
        """Return all tags, the nearest of each query first."""


class Judge:
    """What answers are held to: exact distances of all rows, and which have a query's label.

    Takes 4 bytes for each row and query, and one more with labels.
    """

    def __init__(self, task: Task, k: int = 10) -> None:
        self.k = k
        self._distances = _squared_distances(task.queries, task.X)
        self._asked = task.query_labels
        self._relevant = (
            None
            if task.labels is None or task.query_labels is None
            else neighbours(task.query_labels, task.labels)
        )

    def recall(self, rows: Rows, there: Rows) -> float:
        """Return the share of the k exact neighbours found: what is as near as the last counts.

        ``rows`` (n, k) answer, -1 is none, and a row counts once; ``there`` are the rows that may
        be found.
        """
        k = min(self.k, len(there))
        last = np.partition(self._distances[:, there], k - 1, axis=1)[:, k - 1 : k]
        found = np.take_along_axis(self._distances, np.maximum(rows, 0), axis=1)
        near = (found <= last * (1 + ROUNDING)) & _counted(rows)
        return float(near[:, :k].sum(axis=1).mean() / k)

    def precision(self, rows: Rows) -> float | None:
        """Return the share of the answers that has the query's label; a row counts once."""
        if self._relevant is None:
            return None
        hits = np.take_along_axis(self._relevant, np.maximum(rows, 0), axis=1) & _counted(rows)
        return float(hits.mean())

    def mean_average_precision(self, rows: Rows) -> dict[str, float]:
        """Return mAP of whole rankings, over the queries (``map``) and over their classes.

        Queries whose label nothing has are left out; without labels, or such a query, it is empty.
        """
        if self._relevant is None or self._asked is None:
            return {}
        hits = np.take_along_axis(self._relevant, np.maximum(rows, 0), axis=1) & (rows >= 0)
        ranks = np.arange(1, rows.shape[1] + 1)
        sums = (hits.cumsum(axis=1) / ranks * hits).sum(axis=1)
        totals = hits.sum(axis=1)
        if not totals.any():
            return {}
        precision = np.divide(sums, totals, out=np.full(len(sums), np.nan), where=totals > 0)
        of_classes = mean_over_classes(precision, self._asked)
        return {"map": float(np.nanmean(precision)), "map_by_class": of_classes}

    def exact(self, there: Rows) -> Rows:
        """Return the rows that are there, the nearest of each query first."""
        order = np.argsort(self._distances[:, there], axis=1, kind="stable")
        return there[order]


def _counted(rows: Rows) -> NDArray[np.bool_]:
    """Return which of few answers (n, k) are a row, and the first time it comes."""
    same = rows[:, :, None] == rows[:, None, :]
    repeated: NDArray[np.bool_] = np.tril(same, -1).any(axis=2)
    return (rows >= 0) & ~repeated


def _squared_distances(queries: Matrix, X: Matrix) -> Matrix:
    """Squared Euclidean distances, taken in float64."""
    asked = queries.astype(np.float64)
    found = np.empty((len(queries), len(X)), np.float32)
    for start in range(0, len(X), BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS].astype(np.float64)
        lengths = (block**2).sum(axis=1) + (asked**2).sum(axis=1)[:, None]
        found[:, start : start + BLOCK_ROWS] = np.maximum(lengths - 2 * asked @ block.T, 0)
    return found


def run_runbook(
    task: Task, system: Searched, judge: Judge, *, labelled: bool = True
) -> Iterator[Row]:
    """Run the steps on a system, and yield what each took; of searches, how good they were.

    Parameters
    ----------
    task : the runbook and its data
    system : what is inserted into and searched
    judge : of the same task
    labelled : whether labels come with the items

    Yields
    ------
    dict
        ``step``, ``operation``, ``items`` (that the step is about), ``there`` (after it), and
        ``cpu`` and ``wall``, the seconds it took; of a search instead ``ways``, each with its
        ``recall``, ``precision`` (the share with the query's label), ``cpu`` and ``wall``; and
        ``map`` and ``map_by_class``, of the whole ranking by label, where labels come and the
        system has one: means over the queries and over their classes.
    """
    y = task.y if labelled else None
    for number, (operation, tags, rows), row_of in task.runbook.moments():
        n_there = int((row_of >= 0).sum())
        row: Row = {"step": number, "operation": operation, "items": len(tags), "there": n_there}
        if operation == "search":
            there = row_of[row_of >= 0]
            row["ways"] = {}
            for way in system.ways:
                found, seconds = _timed(system.search, task.queries, judge.k, way)
                answers = _rows_of(found, row_of)
                row["ways"][way] = {
                    "recall": judge.recall(answers, there),
                    "precision": judge.precision(answers),
                    **seconds,
                }
            if labelled and (ranking := system.rank(task.queries)) is not None:
                row |= judge.mean_average_precision(_rows_of(ranking, row_of))
            yield row
            continue
        named = np.arange(tags.start, tags.stop)
        change: Callable[..., None] = getattr(system, operation)
        if operation == "delete":
            _, seconds = _timed(change, named)
        else:
            new = slice(rows.start, rows.stop)
            _, seconds = _timed(change, named, task.X[new], None if y is None else y[new])
        yield row | seconds


def _rows_of(tags: NDArray[Any], row_of: Rows) -> Rows:
    """Return the rows under tags; -1 for none, and for a tag that is not there."""
    tags = np.asarray(tags, np.int64)
    is_tag = (tags >= 0) & (tags < len(row_of))
    return np.where(is_tag, row_of[np.where(is_tag, tags, 0)], -1)


def _timed(call: Callable[..., Any], *arguments: Any) -> tuple[Any, dict[str, float]]:
    cpu, wall = time.process_time(), time.perf_counter()
    found = call(*arguments)
    return found, {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def summarise_run(steps: Sequence[Row], n_queries: int) -> Row:
    """Return what a run comes to: each way's means over the searches, and the cost of the rest.

    ``ways``: ``recall`` and ``precision`` (means), ``last_recall``, ``ms`` (a query, processor
    time); ``map`` and ``map_by_class`` (means), ``last_map`` and ``last_map_by_class``; of
    ``insert``, ``delete`` and ``replace`` the ``items`` and how many ``a_second`` (processor time).
    """
    searches = [row for row in steps if row["operation"] == "search"]
    found: Row = {"ways": {}}
    for way in searches[0]["ways"] if searches else ():
        each = [row["ways"][way] for row in searches]
        judged = [one["precision"] for one in each if one["precision"] is not None]
        found["ways"][way] = {
            "recall": float(np.mean([one["recall"] for one in each])),
            "last_recall": each[-1]["recall"],
            "precision": float(np.mean(judged)) if judged else None,
            "ms": 1e3 * float(np.mean([one["cpu"] for one in each])) / n_queries,
        }
    for name in ("map", "map_by_class"):
        if ranked := [row[name] for row in searches if name in row]:
            found |= {name: float(np.mean(ranked)), f"last_{name}": ranked[-1]}
    for operation in ("insert", "delete", "replace"):
        done = [row for row in steps if row["operation"] == operation]
        if done:
            n, cpu = sum(row["items"] for row in done), sum(row["cpu"] for row in done)
            found[operation] = {"items": n, "a_second": n / cpu if cpu else None}
    return found
