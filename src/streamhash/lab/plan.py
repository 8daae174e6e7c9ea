"""One cell of a table, decided in full before it runs: the paper's protocol and its exceptions.

The protocol (methods of the papers): queries drawn from every class, all the rest is the database,
and the stream is the first rows of the database in random order. Here **the seed draws all that is
random**: the split, the order of the stream and the hasher's start. (The reference draws one split
for all its trials; so its spread over trials is smaller than ours.)

Features: default settings get them as they are, since they scale by themselves. Published settings
get what their authors fed them, the class fact ``published_features``: "raw", or "centre_unit",
where the mean is taken over everything, queries too, as the reference does. Tuned settings are the
default ones with what ``streamhash tune`` has found for the data set.
"""

import shlex
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from streamhash.base import OnlineHasher
from streamhash.errors import InputError
from streamhash.hashers import METHODS
from streamhash.lab.datasets import DataSet, available, load_data
from streamhash.lab.tuned import tuned_settings
from streamhash.parameters import check_parameters

__all__ = ["CHECKPOINTS", "SETTINGS", "SPLITS", "Plan", "find_method", "make_hasher", "plan_cell"]

SETTINGS = ("default", "published", "tuned")
# all: queries of every class, the rest is searched. unseen: a quarter of the classes is never
# learned, and only these are asked for and searched. validation: all of it from the stream alone.
SPLITS = ("all", "unseen", "validation")
CURVE_METRICS = ("map", "map@1000")
CHECKPOINTS = 10
STREAM = 20_000
QUERIES_PER_CLASS = 100
QUERIES_IN_SMALL_SETS = {"digits": 30}  # so that a database of 1,497 is left
# The data of the papers that stand nearest to ours: whose published settings are used.
PUBLISHED_FOR = {
    "mnist": "mnist",
    "cifar10-features": "cifar10",
    "cifar10-vgg16": "cifar10",
    "miniplaces-features": "places205",
    "places205-synthetic": "places205",
}


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
        return str(getattr(METHODS[self.method], "published_features", "centre_unit"))

    def identity(self) -> dict[str, Any]:
        """Return the part of the result row that is known beforehand."""
        return {
            "method": self.method,
            "settings": self.settings,
            "changes": dict(self.changes),
            "parameters": self.hasher().get_params(deep=False),
            "features": self.features,
            "data": self.data.name,
            "data_checksum": _checksum(self.data),
            "n_bits": self.n_bits,
            "seed": self.seed,
            "stream": self.stream,
            "queries_per_class": self.queries_per_class,
            "checkpoints": self.checkpoints,
            "split": self.split,
            "curve_metric": self.curve_metric,
            "test_seeds": self.test_seeds,
        }

    def command(self) -> str:
        """Return the command that makes this cell's row again."""
        named = self.data.name in {card.name for card in available()}
        where = Path(self.data.card.where or ".") / self.data.card.source
        words = ["streamhash", "bench", "--data", self.data.name if named else str(where)]
        if self.data.request is not None and self.data.request[3] is not None:
            words += ["--rows", str(self.data.request[3])]
        options = {
            "method": self.method,
            "bits": self.n_bits,
            "seeds": 1,
            "first-seed": self.seed,
            "settings": "published" if self.settings == "published" else "default",
            "stream": self.stream,
            "queries-per-class": self.queries_per_class,
            "checkpoints": self.checkpoints,
        }
        if self.split != "all":
            options["split"] = self.split
        if self.split == "validation":
            options["test-seeds"] = self.test_seeds
        if self.curve_metric != "map":
            options["curve-metric"] = self.curve_metric
        for name, value in options.items():
            words += [f"--{name}", str(value)]
        for name, value in {**self.tuned, **self.changes}.items():  # tuned: said in full
            words += ["--set", f"{name}={value}"]
        return shlex.join(words)


def plan_cell(
    method: str,
    data: DataSet | str | Path,
    n_bits: int,
    seed: int,
    *,
    settings: str = "default",
    changes: Mapping[str, Any] | None = None,
    stream: int | None = None,
    queries_per_class: int | None = None,
    checkpoints: int = CHECKPOINTS,
    split: str = "all",
    curve_metric: str = "map",
    test_seeds: int = 0,
) -> Plan:
    """Decide all of a cell; what is None is chosen by the protocol and the size of the data."""
    if settings not in SETTINGS:
        raise InputError(f"settings={settings!r} is unknown; pass one of {', '.join(SETTINGS)}.")
    if split not in SPLITS:
        raise InputError(f"split={split!r} is unknown; pass one of {', '.join(SPLITS)}.")
    if curve_metric not in CURVE_METRICS:
        known = " or ".join(CURVE_METRICS)
        raise InputError(f"curve_metric={curve_metric!r} is unknown; pass {known}.")
    if (split == "validation") != (test_seeds > 0):
        raise InputError(
            "test_seeds are the seeds whose queries a validation split leaves out; pass both or "
            "neither."
        )
    find_method(method)
    found = data if isinstance(data, DataSet) else load_data(data)
    per_class = _queries_per_class(found) if queries_per_class is None else queries_per_class
    n_classes = found.y.shape[1] if found.y.ndim == 2 else len(np.unique(found.y))
    database = max(1, len(found.X) - per_class * n_classes)
    return Plan(
        method=method,
        data=found,
        n_bits=n_bits,
        seed=seed,
        settings=settings,
        changes=dict(changes or {}),
        stream=min(STREAM, database) if stream is None else stream,
        queries_per_class=per_class,
        checkpoints=checkpoints,
        split=split,
        curve_metric=curve_metric,
        tuned=tuned_settings(found.name, method) if settings == "tuned" else {},
        test_seeds=test_seeds,
    )


def find_method(name: str) -> type[OnlineHasher]:
    """Return the class of a method by its name on the command line."""
    if name not in METHODS:
        raise InputError(f"there is no method {name!r}; choose from {', '.join(METHODS)}.")
    return METHODS[name]


def make_hasher(
    method: str,
    n_bits: int,
    seed: int,
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
    if published_for is None:
        hasher = found(n_bits=n_bits, random_state=seed, **changes)
    else:
        stands_for = PUBLISHED_FOR.get(published_for, published_for)
        hasher = found.published(stands_for, n_bits=n_bits, random_state=seed, **changes)
    check_parameters(found.__name__, hasher.get_params(deep=False), found.rules)
    return hasher


def _queries_per_class(data: DataSet) -> int:
    """Return the paper's 100 queries a class, but at most a fifth of the smallest class."""
    if data.name in QUERIES_IN_SMALL_SETS:
        return QUERIES_IN_SMALL_SETS[data.name]
    if data.y.ndim == 2:
        smallest = len(data.y) // data.y.shape[1]
    else:
        smallest = int(np.unique(data.y, return_counts=True)[1].min())
    return int(max(1, min(QUERIES_PER_CLASS, smallest // 5)))


@lru_cache(maxsize=1)  # asked for by every cell of one data set
def _checksum(data: DataSet) -> str:
    """Tell apart two files of one name; not a guard against malice."""
    features = zlib.crc32(np.ascontiguousarray(data.X).data)
    return f"{zlib.crc32(np.ascontiguousarray(data.y).tobytes(), features):08x}"
