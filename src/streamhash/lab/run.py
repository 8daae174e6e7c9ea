"""Cells of tables: one method on one data set at one code length with one seed; planned and run.

The protocol (methods of the papers): queries drawn from every class, all the rest is the database,
and the stream is the first rows of the database in random order. Here **the seed draws all that is
random**: the split, the order of the stream and the hasher's start. (The reference draws one split
for all its trials; so its spread over trials is smaller than ours.) Streams come in other orders
too, and with wrong labels (:mod:`~streamhash.lab.orders`); true labels are judged by. A set in
order of time has its own split, the first rows against the last, and comes as it is.

The database is *encoded*: its items pass through the hash function, as queries do. Papers after
2019 search one that is *labelled*: an item has the code of its label, whatever its features are.
Both can be had (``database``), where a method has codes of labels, and are not to be compared.

Features: default settings get them as they are, since they scale by themselves. Published settings
get what their authors fed them, the class fact ``published_features``: "raw", or "centre_unit",
where the mean is taken over everything, queries too, as the reference does. Tuned settings are the
default ones with what ``streamhash tune`` has found for the data set.

:func:`bench` compares methods, :func:`run_cells` runs any planned cells: in parallel processes or
on a cluster, each row kept as soon as it is there, and without those that are there already.
"""

import importlib
import logging
import os
import platform
import shlex
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

import streamhash
from streamhash.base import OnlineHasher
from streamhash.codes import Codes
from streamhash.errors import InputError, StreamhashError
from streamhash.estimators import clone
from streamhash.hashers import LSH, METHODS
from streamhash.lab import datasets
from streamhash.lab.datasets import DataSet, Request, Split, load_data
from streamhash.lab.orders import ORDERS, arrange, main_classes, with_wrong_labels
from streamhash.lab.rows import (
    LATER,
    ROWS_FILE,
    Row,
    append_row,
    describe_database,
    describe_stream,
    latest,
    read_rows,
    row_key,
)
from streamhash.metrics import (
    Retrieval,
    area_under_curve,
    evaluate,
    mean_average_precision,
    mean_over_classes,
)
from streamhash.parameters import Number, check_parameters
from streamhash.threads import get_threads, using_threads

SETTINGS = ("default", "published", "tuned")
# all: queries of every class, the rest is searched. unseen: a quarter of the classes is never
# learned, and only these are asked for and searched. validation: all of it from the stream alone.
SPLITS = ("all", "unseen", "validation")
DATABASES = ("encoded", "labelled")
CURVE_TOP = {"map": None, "map@1000": 1000}  # results that a curve's metric looks at
CHECKPOINTS = 10
STREAM = 20_000
QUICK_STREAM, QUICK_CHECKPOINTS = 2000, 3
QUERIES_PER_CLASS = 100
# So that a database of 1,497 is left; so that the rarest class keeps five sixths of its rows.
QUERIES_IN_SMALL_SETS = {"digits": 30, "long-tail": 40}
ASKED_OF_RARE = 5  # a class with few rows asks with a fifth of them
ASKED_OF_TIME = 5  # a validation of a set in order of time asks with the last fifth of its stream
# The random numbers of a seed that are not the split's, which so is the same in all orders.
ORDER_DRAW, NOISE_DRAW = 1, 2
# The data of the papers that stand nearest to ours: whose published settings are used.
PUBLISHED_FOR = {
    "mnist": "mnist",
    "cifar10-features": "cifar10",
    "cifar10-vgg16": "cifar10",
    "miniplaces-features": "places205",
    "places205-synthetic": "places205",
}
ROWS_AT_ONCE = 20_000  # of a large set that are held in memory: a multiple of every default stage
HELD_WHOLE_BYTES = 2**30  # up to which a set is put in order as a whole
WARM_UP_ROWS = 200  # twice, as some methods only begin to learn at their second stage
CONVENTIONS = {
    "ties": "index: items at equal distance stand in database order, which is random",
    "database_codes": "encoded: by the hash function, as queries; labelled: the codes of their "
    "labels, and those of labels that have none yet by the hash function",
    "map": "divided by all relevant items; queries without any are dropped",
    "map@1000": "divided by the relevant items among the 1000; queries without any are dropped",
    "precision@h2": "0 for a query without any item within distance 2",
    "auc": "mean of the curve over the checkpoints, of which the first is the first stage's end",
    "distances": "before = LSH with the same features, bits and seed; after = the whole stream",
    "seconds": "learn = whole stream; encode, evaluate = once, at the end; compilation left out",
}
log = logging.getLogger("streamhash.lab")

Method = str | type[OnlineHasher] | OnlineHasher
Matrix = NDArray[np.float32]
Result = Row | StreamhashError  # an error that the library raised on purpose, such as divergence


@dataclass(frozen=True)
class Plan:
    """All that decides the result of one cell."""

    method: str
    data: DataSet
    n_bits: int
    seed: int
    settings: str
    changes: Mapping[str, Any]
    stream: int
    queries_per_class: int
    checkpoints: int
    split: str = "all"
    curve_metric: str = "map"  # what is looked at on the way
    tuned: Mapping[str, Any] = field(default_factory=dict)
    test_seeds: int = 0  # of a validation: seeds whose queries must stay unseen
    order: str = "shuffled"  # in which the stream comes, one of ORDERS
    label_noise: float = 0.0  # share of the stream's labels that is drawn at random
    database_codes: str = "encoded"  # or "labelled": items have the codes of their labels
    curve_by_class: bool = False  # whether the row tells the quality of each class on the way
    query_share: float | None = None  # of a class's rows that ask at most, where classes are rare

    def hasher(self) -> OnlineHasher:
        """Make the hasher of this cell."""
        return make_hasher(
            self.method,
            self.n_bits,
            self.seed,
            published_for=self.data.name if self.settings == "published" else None,
            changes={**self.tuned, **self.changes},
        )

    @property
    def features(self) -> str:
        """What the hasher is fed: "raw" or "centre_unit"."""
        if self.settings != "published":
            return "raw"
        return str(getattr(find_method(self.method), "published_features", "centre_unit"))

    def identity(self) -> Row:
        """Return the part of the result row that is known beforehand."""
        numbers = ("n_bits", "seed", "stream", "queries_per_class", "checkpoints")
        return {
            "method": self.method,
            "settings": self.settings,
            "changes": dict(self.changes),
            "parameters": self.hasher().get_params(deep=False),
            "features": self.features,
            "data": self.data.name,
            "data_checksum": _checksum(self.data),
            **{name: getattr(self, name) for name in (*numbers, *LATER)},
        }

    def command(self) -> str:
        """Return the command that makes this cell's row again."""
        card = self.data.card
        where = str(Path(card.where or ".") / card.source)
        data, labels, column, rows, columns = self.data.request or Request(where)
        columns = columns.split()
        options = {
            "data": data,
            "labels": labels,
            "label-column": column or columns.label,
            "vector-column": columns.vector,
            "feature-columns": ",".join(columns.features) or None,
            "ignore-columns": ",".join(columns.ignore) or None,
            "rows": rows,
            "method": self.method,
            "bits": self.n_bits,
            "seeds": 1,
            "first-seed": self.seed,
            "settings": self.settings,
            "stream": self.stream,
            "queries-per-class": self.queries_per_class or None,
            "query-share": self.query_share,
            "checkpoints": self.checkpoints,
            "split": None if self.split == "all" else self.split,
            "test-seeds": self.test_seeds or None,
            "curve-metric": None if self.curve_metric == "map" else self.curve_metric,
            "order": None if self.order == usual_order(self.data) else self.order,
            "label-noise": self.label_noise or None,
            "database": None if self.database_codes == "encoded" else self.database_codes,
        }
        command = ["streamhash", "bench"]
        for name, value in options.items():
            command += [f"--{name}", str(value)] if value is not None else []
        command += ["--curve-by-class"] if self.curve_by_class else []
        for name, value in self.changes.items():
            command += ["--set", f"{name}={value}"]
        return shlex.join(command)

    def __str__(self) -> str:
        parts = [self.method, *([self.settings] if self.settings != "default" else [])]
        parts += [f"{name}={value}" for name, value in self.changes.items()]
        parts += [f"({self.split})"] if self.split != "all" else []
        cell = {name: getattr(self, name) for name in LATER}
        parts += [f"({note})" for note in (describe_stream(cell), describe_database(cell)) if note]
        return f"{' '.join(parts)}, {self.data.name}, {self.n_bits} bits, seed {self.seed}"


def plan_cell(
    method: Method,
    data: DataSet | str | Path,
    n_bits: int = 32,
    seed: int = 0,
    *,
    settings: str | Path = "default",
    changes: Mapping[str, Any] | None = None,
    stream: int | None = None,
    queries_per_class: int | None = None,
    checkpoints: int = CHECKPOINTS,
    split: str = "all",
    curve_metric: str = "map",
    test_seeds: int = 0,
    order: str | None = None,
    label_noise: float = 0.0,
    database: str = "encoded",
    curve_by_class: bool = False,
    query_share: float | None = None,
) -> Plan:
    """Decide all of a cell; what is None is chosen by the protocol and the size of the data.

    Parameters
    ----------
    method : a name such as "sdoh"; or any other hasher, by its import path
        ``package.module:Class``, its class, or an instance of it
    data : a data set, its name, or the path of a file with labels
    n_bits : length of the codes
    seed : draws the split, the order of the stream and the hasher's start
    settings : "default", "published", or "tuned" (found by :func:`~streamhash.lab.tune`); or a
        ``.toml`` file of settings, which are changes of the defaults
    changes : parameters of the hasher that differ from the settings
    stream : instances to learn from; None for 20,000, or all if there are fewer
    queries_per_class : None for 100, fewer for small data
    checkpoints : looks at the quality on the way
    split : "all", "unseen" (a quarter of the classes is never learned), or "validation"
    curve_metric : what is looked at: "map" or "map@1000"
    test_seeds : of a validation, the seeds whose queries are left out
    order : in which the stream comes: "shuffled", "sorted" (class by class), "halves" (of the
        classes), "runs" (of one class), "single" (one row a call) or "natural" (the set's own);
        None for the usual one, "shuffled" unless the set is in order of time
    label_noise : share of the stream's labels that is drawn anew from all classes
    database : "encoded", by the hash function as queries are; or "labelled", as later papers do:
        items have the codes of their labels, if the method has such (``has_label_codes``)
    curve_by_class : whether the row has the quality of each class at the checkpoints
    query_share : at most this share of a class's rows ask, as :func:`split` takes it; None for all
        of ``queries_per_class``, or a fifth if that is None, too, and classes are rare
    """
    found = data if isinstance(data, DataSet) else load_data(data)
    order = usual_order(found) if order is None else order
    name = _path_of(find_method(method))
    if is_settings_file(settings):
        from streamhash.lab.tuning import file_settings

        settings, changes = "default", {**file_settings(settings, name), **(changes or {})}
    for option, value, known in (
        ("settings", settings, SETTINGS),
        ("split", split, SPLITS),
        ("curve_metric", curve_metric, tuple(CURVE_TOP)),
        ("order", order, tuple(ORDERS)),
        ("database", database, DATABASES),
    ):
        if value not in known:
            raise InputError(f"{option}={value!r} is unknown; pass one of {', '.join(known)}.")
    check_parameters("plan_cell", locals(), {"label_noise": Number(at_least=0, at_most=1)})
    if (split == "validation") != (test_seeds > 0):
        raise InputError(
            "test_seeds are the seeds whose queries a validation split leaves out; pass both or "
            "neither."
        )
    _refuse_several_labels(name, found)
    if database == "labelled":
        _refuse_without_label_codes(name, split)
    if found.card.queries_from is None:
        per_class = queries_per_class
        if per_class is None:
            per_class, query_share = _usual_queries(found, split, query_share)
        n_items = max(1, len(found.X) - _n_queries(found, per_class, query_share))
    else:
        _refuse_other_queries(found, split, queries_per_class)
        per_class, n_items = 0, found.card.queries_from
    tuned: Mapping[str, Any] = {}
    if settings == "tuned":
        from streamhash.lab.tuning import tuned_settings

        tuned = tuned_settings(found.name, name)
    plan = Plan(
        method=name,
        data=found,
        n_bits=n_bits,
        seed=seed,
        settings=str(settings),
        changes=dict(changes or {}),
        stream=min(STREAM, n_items) if stream is None else stream,
        queries_per_class=per_class,
        checkpoints=checkpoints,
        split=split,
        curve_metric=curve_metric,
        tuned=tuned,
        test_seeds=test_seeds,
        order=order,
        label_noise=float(label_noise),
        database_codes=database,
        curve_by_class=curve_by_class,
        query_share=query_share,
    )
    plan.hasher()  # refuses what it cannot be made with before anything runs
    return plan


def is_settings_file(settings: str | Path) -> bool:
    """Whether settings are those of a file, not of a kind."""
    return str(settings).endswith(".toml")


def usual_order(data: DataSet) -> str:
    """Return the order in which a set comes unless another is asked for."""
    return "shuffled" if data.card.queries_from is None else "natural"


def _takes_labels_of(method: str, data: DataSet) -> bool:
    """Whether a method can learn from as many labels a row as the data have."""
    found = find_method(method)
    return data.y.ndim == 1 or found.multi_label or not found.needs_labels


def _refuse_several_labels(method: str, data: DataSet) -> None:
    if not _takes_labels_of(method, data):
        others = ", ".join(name for name in METHODS if _takes_labels_of(name, data))
        raise InputError(
            f"{method} learns from one label a row, and {data.name} has several; choose from "
            f"{others}."
        )


def _refuse_without_label_codes(method: str, split: str) -> None:
    if not find_method(method).has_label_codes:
        others = ", ".join(name for name in METHODS if METHODS[name].has_label_codes)
        raise InputError(
            f"database='labelled': labels have no codes in {method}; pass encoded, or choose from "
            f"{others}."
        )
    if split == "unseen":
        raise InputError(
            "database='labelled': classes that are never learned have no codes; pass encoded, or "
            "another split."
        )


def _refuse_other_queries(data: DataSet, split: str, queries_per_class: int | None) -> None:
    own = f"{data.name} is in order of time and has its own queries, from row "
    own += f"{data.card.queries_from:,} on"
    if queries_per_class is not None:
        raise InputError(f"queries_per_class={queries_per_class}: {own}; leave it out.")
    if split == "unseen":
        raise InputError(f"split='unseen': {own}; pass all or validation.")


def find_method(method: Method) -> type[OnlineHasher]:
    """Return the class of a method: by its name, or by its import path ``package.module:Class``.

    >>> find_method("sdoh") is find_method("streamhash.hashers.sdoh:SDOH")
    True
    """
    if not isinstance(method, str):
        given: Any = method
        return given if isinstance(given, type) else type(given)
    if method in METHODS:
        return METHODS[method]
    module, colon, name = method.partition(":")
    if not colon:
        raise InputError(
            f"there is no method {method!r}; choose from {', '.join(METHODS)}, or pass the import "
            "path of another, package.module:Class."
        )
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"method {method!r} cannot be imported ({error}); install its package, or run where "
            "its module lies."
        ) from error
    if not isinstance(found, type) or not issubclass(found, OnlineHasher):
        raise InputError(f"method {method!r} is not a subclass of streamhash.OnlineHasher.")
    return found


def find_methods(methods: Method | Sequence[Method]) -> list[str]:
    """Return the names of one or several methods, all of them for "all".

    >>> find_methods(["lsh", "streamhash.hashers.sdoh:SDOH"])
    ['lsh', 'sdoh']
    """
    if methods == "all":
        return list(METHODS)
    if isinstance(methods, str) or not isinstance(methods, Sequence):
        methods = [methods]
    return [_path_of(find_method(method)) for method in methods]


def fitting_methods(
    methods: Method | Sequence[Method], data: DataSet, database: str = "encoded"
) -> list[str]:
    """Return the names of methods; of "all", those that cannot learn from the data are left out.

    And so are those without codes of labels, if the database is to be coded by them.
    """
    names = find_methods(methods)
    if methods == "all" and database == "labelled":
        without = [name for name in names if not find_method(name).has_label_codes]
        log.warning("%s: left out, as labels have no codes in them.", ", ".join(without))
        names = [name for name in names if name not in without]
    unfit = [name for name in names if methods == "all" and not _takes_labels_of(name, data)]
    if unfit:
        left_out = f"{', '.join(unfit)}: left out"
        log.warning("%s, for one label a row, and %s has several.", left_out, data.name)
    return [name for name in names if name not in unfit]


def _with_settings(names: list[str], settings: Iterable[str | Path]) -> list[str]:
    """Leave out methods of which a file of settings has none."""
    from streamhash.lab.tuning import read_settings

    for each in filter(is_settings_file, settings):
        there = read_settings(each)
        without = [name for name in names if name not in there]
        if without:
            log.warning("%s: left out, as %s has no settings of them.", ", ".join(without), each)
        names = [name for name in names if name in there]
        if not names:
            raise InputError(f"settings: {each} has settings of none of the methods; name one.")
    return names


def _path_of(method: type[OnlineHasher]) -> str:
    """Return the name by which a class is found again, here and in other processes."""
    for name, known in METHODS.items():
        if known is method:
            return name
    path = f"{method.__module__}:{method.__qualname__}"
    if getattr(sys.modules.get(method.__module__), method.__qualname__, None) is not method:
        raise InputError(
            f"method {path!r} cannot be found by that name; define the class at the top level of "
            "a module."
        )
    return path


def make_hasher(
    method: Method,
    n_bits: int,
    random_state: int,
    *,
    published_for: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> OnlineHasher:
    """Make a hasher with default or published settings and some of them changed."""
    found = find_method(method)
    changes = dict(changes or {})
    known = [name for name in found().get_params() if name not in ("n_bits", "random_state")]
    for name in changes:
        if name not in known:
            raise InputError(
                f"{found.__name__} has no parameter {name!r} to set; it has {', '.join(known)}."
            )
    given = {"n_bits": n_bits, "random_state": random_state, **changes}
    if published_for is None:
        hasher = found(**given)
    else:
        hasher = found.published(PUBLISHED_FOR.get(published_for, published_for), **given)
    hasher.check_parameters()
    return hasher


def _settable(method: type[OnlineHasher]) -> set[str]:
    """Return the parameters that a method has a use for."""
    useless = set() if method.needs_labels and method.takes_memory else {"memory"}
    return set(method().get_params()) - useless


def _usual_queries(data: DataSet, split: str, share: float | None) -> tuple[int, float | None]:
    """Return the paper's 100 queries a class, or a fifth of each class if all are small.

    If some are much smaller than others, these ask with a fifth of their rows: the share.
    """
    most = QUERIES_IN_SMALL_SETS.get(data.name, QUERIES_PER_CLASS)
    if data.y.ndim == 2:
        return int(max(1, min(most, len(data.y) // data.y.shape[1] // ASKED_OF_RARE))), share
    counts = np.unique(data.y, return_counts=True)[1]
    smallest, largest = (int(min(most, n // ASKED_OF_RARE)) for n in (counts.min(), counts.max()))
    if share is None and 2 * smallest < largest and split != "unseen":
        share = 1 / ASKED_OF_RARE
    return (largest if share is not None and largest else max(1, smallest)), share


def _n_queries(data: DataSet, per_class: int, share: float | None) -> int:
    if data.y.ndim == 2:
        return int(per_class * data.y.shape[1])
    counts = np.unique(data.y, return_counts=True)[1].tolist()
    return sum(datasets.queries_of_class(n, per_class, share) for n in counts)


@lru_cache(maxsize=1)  # asked for by every cell of one data set
def _checksum(data: DataSet) -> str:
    """Tell apart two files of one name; not a guard against malice."""
    found = zlib.crc32(np.ascontiguousarray(data.X).data)
    for labels in (data.y, data.stream_labels):
        if labels is not None:
            found = zlib.crc32(np.ascontiguousarray(labels).tobytes(), found)
    return f"{found:08x}"


@dataclass(frozen=True, eq=False)
class Part:
    """Features and labels of a part of a split.

    Data of up to a gigabyte are put in order once; larger sets stay where they are, mostly a
    memory-mapped file, and are gathered and prepared a slice at a time, so that memory stays
    bounded.
    """

    X: Matrix
    labels: NDArray[Any]
    order: NDArray[np.int64] | None = None  # of the rows of X; None if they are in order
    mean: NDArray[np.float64] | None = None  # to subtract before rows get unit length

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, part: slice) -> Matrix:
        rows = np.asarray(self.X[part if self.order is None else self.order[part]])
        return rows if self.mean is None else datasets.unit_rows(rows, self.mean)


@dataclass(frozen=True, eq=False)
class PreparedSplit:
    """The three parts of a split, ready to be learned from, searched and asked for."""

    stream: Part
    database: Part
    queries: Part
    is_single: bool = False  # whether the stream is handed over one row a call

    def learn(self, hasher: OnlineHasher, start: int, stop: int) -> None:
        """Teach a part of the stream, whose ends are ends of stages."""
        whole_stages = max(1, ROWS_AT_ONCE // hasher.batch_size) * hasher.batch_size
        for part in _slices(start, stop, 1 if self.is_single else whole_stages):
            hasher.partial_fit(self.stream[part], self.stream.labels[part])

    def encode(
        self, hasher: OnlineHasher, database: str = "encoded"
    ) -> tuple[Codes, Any, Codes, Any]:
        """Return codes and labels, in the order that the metrics take them."""

        def codes(part: Part, encoded: Callable[[Matrix], Codes]) -> Codes:
            slices = _slices(0, len(part), ROWS_AT_ONCE)
            return np.concatenate([encoded(part[rows]) for rows in slices])

        if database == "labelled":
            items = self._of_labels(hasher)
        else:
            items = codes(self.database, hasher.transform)
        asked = codes(self.queries, hasher.transform_queries)
        return asked, self.queries.labels, items, self.database.labels

    def _of_labels(self, hasher: OnlineHasher) -> Codes:
        """Return the codes of the database's labels; items whose label has none are encoded."""
        codes, is_known = hasher.label_codes(self.database.labels)
        for rows in _slices(0, len(codes), ROWS_AT_ONCE):
            unknown = ~is_known[rows]
            if unknown.any():
                codes[rows][unknown] = hasher.transform(self.database[rows][unknown])
        return codes


def _slices(start: int, stop: int, size: int) -> list[slice]:
    return [slice(first, min(first + size, stop)) for first in range(start, stop, size)]


def prepare_split(plan: Plan) -> PreparedSplit:
    """Split the data as the plan says and prepare the features; the last split is kept."""
    facts = (plan.split, plan.seed, plan.stream, plan.queries_per_class, plan.features)
    return _prepare(
        plan.data, plan.test_seeds, *facts, plan.order, plan.label_noise, plan.query_share
    )


@lru_cache(maxsize=1)  # cells that differ in the method only follow one another
def _prepare(
    data: DataSet,
    test_seeds: int,
    kind: str,
    seed: int,
    stream: int,
    per_class: int,
    features: str,
    order: str,
    label_noise: float,
    query_share: float | None,
) -> PreparedSplit:
    X, y = data.X, data.y
    parts = _draw_split(data, kind, seed, test_seeds, per_class, stream, query_share)
    mean = datasets.mean_row(X) if features == "centre_unit" else None

    def prepared(rows: NDArray[np.int64]) -> Part:
        part = Part(X, y[rows], rows, mean)
        return part if X.nbytes > HELD_WHOLE_BYTES else Part(part[:], part.labels)

    said = (y if data.stream_labels is None else data.stream_labels)[parts.stream]
    if label_noise:
        classes, rng = np.unique(y), np.random.default_rng([seed, NOISE_DRAW])
        said = with_wrong_labels(said, label_noise, classes, rng)
    if order == "natural":
        places = np.argsort(parts.stream)
    else:
        rng, in_time = np.random.default_rng([seed, ORDER_DRAW]), usual_order(data) == "natural"
        places = arrange(order, main_classes(said), rng, in_time=in_time)
    rows = parts.stream[places]
    database = prepared(parts.database)
    same = np.array_equal(rows, parts.database[: len(rows)])  # most often: it is kept once
    stream_part = replace(database if same else prepared(rows), labels=said[places])
    queries = prepared(parts.queries)
    return PreparedSplit(stream_part, database, queries, is_single=order == "single")


def _draw_split(
    data: DataSet,
    kind: str,
    seed: int,
    test_seeds: int,
    per_class: int,
    stream: int,
    share: float | None,
) -> Split:
    queries_from = data.card.queries_from
    if queries_from is not None and kind == "validation":  # of the stream alone
        n = min(stream, queries_from)
        return datasets.split_by_time(n, n - n // ASKED_OF_TIME, random_state=seed)
    if queries_from is not None:
        n = len(data.y)
        return datasets.split_by_time(n, queries_from, stream=stream, random_state=seed)
    if kind == "validation":
        return validation_split(data.y, seed, test_seeds, per_class, stream, share)
    draw = datasets.split_unseen if kind == "unseen" else partial(datasets.split, query_share=share)
    return draw(data.y, queries_per_class=per_class, stream=stream, random_state=seed)


def validation_split(
    y: NDArray[Any],
    seed: int,
    test_seeds: int,
    queries_per_class: int,
    stream: int,
    query_share: float | None = None,
) -> Split:
    """Split the stream of seed 0 again, without any row that is a query of a test seed.

    What remains is all that a person who learns from that stream has: queries, database and
    stream of the search for settings come from it alone. Where it has too few rows of a class for
    so many queries, every class asks with a fifth of its rows at most.
    """
    draw = partial(datasets.split, queries_per_class=queries_per_class, query_share=query_share)
    usual = [draw(y, stream=stream, random_state=test_seed) for test_seed in range(test_seeds)]
    asked = np.concatenate([parts.queries for parts in usual])
    pool = usual[0].stream[~np.isin(usual[0].stream, asked)]
    if y.ndim == 1 and np.unique(y[pool], return_counts=True)[1].min() <= queries_per_class:
        draw = partial(draw, query_share=query_share or 1 / ASKED_OF_RARE)
    inner = draw(y[pool], stream=None, random_state=seed)
    return Split(pool[inner.queries], pool[inner.database], pool[inner.stream])


def run_cell(
    method: Method, data: DataSet | str | Path, n_bits: int = 32, seed: int = 0, **choices: Any
) -> Row:
    """Plan a cell (``choices`` are those of :func:`plan_cell`), run it and return its row."""
    return run_plan(plan_cell(method, data, n_bits, seed, **choices))


def run_plan(plan: Plan) -> Row:
    """Run a planned cell: learn, look at checkpoints, measure at the end; return its row."""
    began = time.perf_counter()
    parts, hasher = prepare_split(plan), plan.hasher()
    _warm_up(hasher, parts)
    seconds: dict[str, dict[str, float]] = {}
    curve: list[dict[str, float]] = []
    by_class = ClassCurve(parts) if plan.curve_by_class else None
    done = 0
    n_stream, metric = len(parts.stream), plan.curve_metric
    for stop in checkpoint_positions(n_stream, hasher.batch_size, plan.checkpoints):
        with _measured(seconds, "learn"):
            parts.learn(hasher, done, stop)
            hasher.settle()  # so that its time is counted here, not as encoding
        done = stop
        if done < n_stream:
            coded = parts.encode(hasher, plan.database_codes)
            value = mean_average_precision(*coded, top=CURVE_TOP[metric])
            curve.append({"instances": done, metric: value})
            if by_class is not None:
                by_class.look(coded, done, CURVE_TOP[metric])
    with _measured(seconds, "encode"):
        coded = parts.encode(hasher, plan.database_codes)
    with _measured(seconds, "evaluate"):
        metrics = evaluate(*coded)
    if metric not in metrics:
        raise InputError(
            f"curve_metric={metric!r} needs a database of more than 1,000 items, and this one has "
            f"{len(parts.database)}; pass map."
        )
    curve.append({"instances": done, metric: metrics[metric]})
    if by_class is not None:
        by_class.look(coded, done, CURVE_TOP[metric])
    instances, values = zip(*((at["instances"], at[metric]) for at in curve), strict=True)
    metrics["auc"] = area_under_curve(instances, values)
    before = LSH(plan.n_bits, random_state=plan.seed)
    parts.learn(before, 0, n_stream)
    found = {"before": Retrieval(*parts.encode(before)), "after": Retrieval(*coded)}
    metrics["map_by_class"] = mean_over_classes(
        found["after"].average_precision(), parts.queries.labels
    )
    seconds["cell"] = {"wall": time.perf_counter() - began}
    return {
        **plan.identity(),
        "database": len(parts.database),
        "queries": len(parts.queries),
        "instances": hasher.n_samples_seen_,
        "metrics": metrics,
        "curve": curve,
        **({} if by_class is None else {"class_curve": by_class.facts()}),
        "distances": {when: _distances(found[when], plan.n_bits) for when in found},
        "seconds": seconds,
        "conventions": CONVENTIONS,
        "version": streamhash.__version__,
        "machine": describe_machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": plan.command(),
    }


class ClassCurve:
    """The quality of each class's queries at the checkpoints, from the class's first row on.

    A class begins and ends where the stream's labels say so.
    """

    def __init__(self, parts: PreparedSplit) -> None:
        asked, came = parts.queries.labels, parts.stream.labels
        if asked.ndim == 2:
            self._classes: list[Any] = list(range(asked.shape[1]))
            self._asked, came = asked.T > 0, came.T > 0
        else:
            names = np.unique(asked)
            self._classes = names.tolist()
            self._asked, came = asked == names[:, None], came == names[:, None]
        # (C, n) to the first and the last row of each class, if it has any.
        self._first = [int(row.argmax()) if row.any() else None for row in came]
        self._last = [len(row) - int(row[::-1].argmax()) if row.any() else None for row in came]
        self._values: list[list[float | None]] = [[] for _ in self._classes]

    def look(self, coded: tuple[Codes, Any, Codes, Any], done: int, top: int | None) -> None:
        """Measure after ``done`` rows; None for a class that has not come yet or has no query."""
        found = Retrieval(*coded).average_precision(top)
        for values, asked, first in zip(self._values, self._asked, self._first, strict=True):
            own = found[asked & ~np.isnan(found)]
            has_come = first is not None and first < done
            values.append(round(float(own.mean()), 4) if has_come and len(own) else None)

    def facts(self) -> dict[str, list[Any]]:
        """Return what a row keeps: classes, where each begins and ends, and its values."""
        return {
            "classes": self._classes,
            "first": self._first,
            "last": self._last,
            "values": self._values,
        }


def _distances(found: Retrieval, n_bits: int) -> dict[str, list[int]]:
    """Count query-database pairs at each distance 0..n_bits, similar ones and others."""
    similar, others = found.histograms()
    return {"similar": similar[: n_bits + 1].tolist(), "dissimilar": others[: n_bits + 1].tolist()}


@contextmanager
def _measured(seconds: dict[str, dict[str, float]], what: str) -> Iterator[None]:
    """Add the processor and wall seconds of the block to those spent on ``what``."""
    cpu, wall = time.process_time(), time.perf_counter()
    yield
    spent = seconds.setdefault(what, {"cpu": 0.0, "wall": 0.0})
    spent["cpu"] += time.process_time() - cpu
    spent["wall"] += time.perf_counter() - wall


def checkpoint_positions(n: int, batch_size: int, count: int) -> list[int]:
    """Return after how many instances to look: after the first stage, evenly on, and at the end.

    Positions are ends of stages, so that looking never cuts a stage in two.

    >>> checkpoint_positions(1000, batch_size=100, count=4)
    [100, 400, 700, 1000]
    >>> checkpoint_positions(250, batch_size=100, count=10)
    [100, 200, 250]
    """
    n_stages = -(-n // batch_size)
    # With one look, it is the last: the one that is measured in full.
    stages = np.linspace(1, n_stages, count) if count > 1 else [n_stages]
    return sorted({min(round(stage) * batch_size, n) for stage in stages})


def _warm_up(hasher: OnlineHasher, parts: PreparedSplit) -> None:
    """Compile or load the kernels before time is taken."""
    rows = slice(min(WARM_UP_ROWS, len(parts.stream)))
    twin = clone(hasher)
    X, labels = parts.stream[rows], parts.stream.labels[rows]
    for _ in range(2):
        twin.partial_fit(X, labels)
    codes = twin.transform(X)
    evaluate(codes, labels, codes, labels)


def describe_machine() -> dict[str, Any]:
    """Describe this machine: processor, cores, threads in use, and the versions that matter."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 1,
        "threads": get_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba", "scikit-learn")},
    }


def _cpu_model() -> str:
    """Name the processor; Linux keeps the name out of reach of ``platform``."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


class Progress:
    """How far a run of many cells is; printed, it tells the time left.

    Attributes
    ----------
    n_done, n_total : cells that have come to their end, and all that were to be run
    plan : of the cell that came to its end last; None at the start
    seconds_left : guessed from cells of the same kind, or of any kind, that are done
    """

    def __init__(self, plans: Iterable[Plan], known: Iterable[Row], jobs: int) -> None:
        self._left = [_kind(plan) for plan in plans]
        self._jobs = max(1, min(jobs, len(self._left)))
        self._seconds: dict[tuple[object, ...], list[float]] = {}
        self._began = time.monotonic()
        self.n_total, self.n_done = len(self._left), 0
        self.plan: Plan | None = None
        for row in known:
            self._learn(row)

    def _learn(self, row: Row) -> None:
        if "cell" in row["seconds"]:
            for kind in (_kind(row), ()):
                self._seconds.setdefault(kind, []).append(row["seconds"]["cell"]["wall"])

    def done(self, plan: Plan, result: Result) -> None:
        """Take note of a cell that has come to its end."""
        self.plan, self.n_done = plan, self.n_done + 1
        self._left.remove(_kind(plan))
        if not isinstance(result, StreamhashError):
            self._learn(result)

    @property
    def seconds_left(self) -> float:
        """The time that the cells left are likely to take."""
        usual = self._seconds.get((), [0.0])
        guesses = [self._seconds.get(kind, usual) for kind in self._left]
        return sum(sum(guess) / len(guess) for guess in guesses) / self._jobs

    def __str__(self) -> str:
        if self.plan is None:
            return f"{self.n_total} cells"
        if self._left:
            return f"{self.plan}; about {_duration(self.seconds_left)} left"
        return f"{self.plan}; done in {_duration(time.monotonic() - self._began)}"


def _kind(cell: Plan | Row) -> tuple[object, ...]:
    """Cells that take about the same time."""
    if isinstance(cell, Plan):
        return cell.data.name, cell.method, cell.settings, cell.n_bits, cell.split, cell.order
    return tuple(cell[name] for name in ("data", "method", "settings", "n_bits", "split", "order"))


def _duration(seconds: float) -> str:
    """Tell a duration in the unit that fits.

    >>> _duration(42.3), _duration(200), _duration(8000)
    ('42 s', '3 min', '2 h 13 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


class Running(TypedDict, total=False):
    """How many cells are run: what :func:`run_cells` takes, and all that call it."""

    jobs: int | None
    executor: Executor | None
    progress: Callable[[Progress], object] | None


def run_cells(
    plans: Sequence[Plan],
    *,
    rows_file: Path | None = None,
    resume: bool = True,
    skip_failures: bool = False,
    **running: Unpack[Running],
) -> list[Row]:
    """Run planned cells in parallel, and return their rows in the order of the plans.

    No row depends on how many run at once: each cell has one thread of one process.

    Parameters
    ----------
    plans : the cells, from :func:`plan_cell`
    rows_file : where each row is appended as soon as it is there; None to keep none
    resume : whether cells whose rows are in ``rows_file`` already are left out, and these returned
    skip_failures : a cell that fails ends the run; True leaves it out and logs a warning instead
    jobs : processes to start, None for one on each core; with 1 the cells run in this process
    executor : any other pool to use instead, such as a cluster's. Plans travel there with the name
        of their data and method, which must be found there under the same names.
    progress : called at the start and after each cell with a :class:`Progress`
    """
    jobs, progress = running.get("jobs") or get_threads(), running.get("progress")
    known = latest(read_rows(rows_file)) if resume and rows_file is not None else []
    there = {row_key(row): row for row in known}
    rows = [_kept(there, plan) if there else None for plan in plans]
    todo = [number for number, row in enumerate(rows) if row is None]
    state = Progress([plans[number] for number in todo], known, jobs)
    if progress is not None:
        progress(state)
    waiting = [plans[number] for number in todo]
    for place, result in _results(waiting, jobs, running.get("executor")):
        plan = plans[todo[place]]
        if not isinstance(result, StreamhashError):
            rows[todo[place]] = result
            if rows_file is not None:
                append_row(rows_file, result)
        elif skip_failures:
            log.warning("%s: %s", plan, result)
        else:
            raise result
        state.done(plan, result)
        if progress is not None:
            progress(state)
    return [row for row in rows if row is not None]


def _kept(there: Mapping[str, Row], plan: Plan) -> Row | None:
    """Return the row of a plan if it is there and tells all that rows tell today."""
    row = there.get(row_key(plan.identity()))
    if row is None or "map_by_class" not in row["metrics"]:
        return None
    return None if plan.curve_by_class and "class_curve" not in row else row


def _results(
    plans: Sequence[Plan], jobs: int, executor: Executor | None
) -> Iterator[tuple[int, Result]]:
    """Yield (number of the plan, its result) in the order in which the cells end."""
    jobs = min(len(plans), jobs)
    if executor is None and jobs <= 1:
        yield from ((number, _one_thread(plan)) for number, plan in enumerate(plans))
        return
    with ExitStack() as stack:
        if executor is None:
            from streamhash.lab.workers import process_pool

            executor = stack.enter_context(process_pool(jobs))
        numbers = {executor.submit(_one_thread, plan): n for n, plan in enumerate(plans)}
        try:
            for done in as_completed(numbers):
                yield numbers[done], done.result()
        except BrokenProcessPool as error:
            raise ChildProcessError(
                "a worker process was killed (out of memory?); what is done is kept: run again to "
                "go on, with fewer --jobs if memory was short"
            ) from error
        finally:
            for future in numbers:
                future.cancel()


def _one_thread(plan: Plan) -> Result:
    """Run one cell on one thread; what it raises on purpose is its result."""
    try:
        with using_threads(1):
            return run_plan(plan)
    except StreamhashError as error:
        return error


def bench(
    methods: Method | Sequence[Method] = "all",
    data: DataSet | str | Path = "digits",
    *,
    n_bits: int | Sequence[int] = 32,
    seeds: int | Sequence[int] = 1,
    settings: str | Path | Sequence[str | Path] = "default",
    changes: Mapping[str, Any] | None = None,
    order: str | Sequence[str] | None = None,
    quick: bool = False,
    out: str | Path | None = None,
    resume: bool = False,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[Progress], object] | None = None,
    **choices: Any,
) -> list[Row]:
    """Compare methods by the papers' protocol, and return a row for each cell.

    Parameters
    ----------
    methods : one method or several, as :func:`plan_cell` takes them; "all" for those of streamhash
    data : a data set, its name, or the path of a file with labels
    n_bits : one code length or several
    seeds : how many seeds, from 0 on; or which ones
    settings : "default", "published", "tuned" or a ``.toml`` file, or several of them; of "all"
        methods, those that the file has no settings of are left out
    changes : parameters to change, each in the methods that have it
    order : in which the stream comes, one of them or several; None for the set's usual one
    quick : a quick look: a stream of at most 2,000 instances and 3 checkpoints
    out : folder whose ``rows.jsonl`` gets each row as soon as it is there
    resume : whether cells whose rows are in ``out`` are left out; their rows are returned
    jobs, executor, progress : as :func:`run_cells` takes them
    choices : what else :func:`plan_cell` takes: stream, queries_per_class, split, label_noise,
        database, ...

    >>> rows = bench(["lsh", "sdoh"], "digits", n_bits=16, quick=True, jobs=1)
    >>> [(row["method"], row["metrics"]["map"] > 0.6) for row in rows]
    [('lsh', False), ('sdoh', True)]
    """
    found = data if isinstance(data, DataSet) else load_data(data)
    names = fitting_methods(methods, found, choices.get("database") or "encoded")
    kinds = [settings] if isinstance(settings, str | Path) else list(settings)
    if methods == "all":
        names = _with_settings(names, kinds)
    lengths = [n_bits] if isinstance(n_bits, int) else list(n_bits)
    changes = dict(changes or {})
    has = {name: _settable(find_method(name)) for name in names}
    for name in changes:
        if not any(name in known for known in has.values()):
            make_hasher(names[0], lengths[0], 0, changes={name: changes[name]})  # says what it has
    choices = {name: value for name, value in choices.items() if value is not None}
    if quick:
        usual = plan_cell(names[0], found, lengths[0], **choices)
        short = {"stream": min(usual.stream, QUICK_STREAM), "checkpoints": QUICK_CHECKPOINTS}
        choices = {**short, **choices}
    plans = [
        plan_cell(
            name,
            found,
            length,
            seed,
            settings=which,
            changes={change: changes[change] for change in changes if change in has[name]},
            order=each,
            **choices,
        )
        for length in lengths
        for name in names
        for which in kinds
        for each in ([order] if order is None or isinstance(order, str) else order)
        for seed in (range(seeds) if isinstance(seeds, int) else seeds)
    ]
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
    return run_cells(
        plans,
        rows_file=None if out is None else Path(out) / ROWS_FILE,
        resume=resume,
        jobs=jobs,
        executor=executor,
        progress=progress,
    )
