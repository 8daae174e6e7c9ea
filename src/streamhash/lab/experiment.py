"""The experiments of a paper, a TOML file each in ``experiments``: what is run, what was printed.

A file names the paper's data and what stands in for them where they are not at hand, the protocol
on each, the methods with their settings, and the published numbers. A figure that is drawn from the
cells of a table names that table (``cells``) and holds only what is its own. So several experiments
share rows, and none of them is run twice.
"""

import math
import tomllib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

from streamhash.errors import InputError
from streamhash.hashers import METHODS
from streamhash.lab.datasets import DataSet
from streamhash.lab.rows import LATER, Line, method_name
from streamhash.lab.run import Plan, plan_cell

QUICK = {"stream": 4000, "checkpoints": 3, "rows": 100_000}
QUICK_BITS = (32,)
PROTOCOL_FACTS = ("stream", "queries_per_class", "split", "checkpoints", "curve_metric")
# The papers' streams and database.
STREAM_FACTS = {name: LATER[name] for name in ("order", "label_noise", "database_codes")}


@dataclass(frozen=True)
class Run:
    """One line of a table: a method with its settings, at some code lengths."""

    method: str
    settings: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    bits: tuple[int, ...] = ()
    note: str = ""
    is_papers: bool = False  # whether this is what the paper's numbers were made with

    @property
    def label(self) -> str:
        """Name of the line."""
        return ", ".join([method_name(self.method), *self.changed])

    @property
    def changed(self) -> list[str]:
        """What is changed in the settings, as ``name=value``."""
        return [f"{name}={value}" for name, value in self.changes.items()]


@dataclass(frozen=True)
class Numbers:
    """Published numbers of one method: by metric and code length."""

    method: str
    source: str
    values: Mapping[str, Mapping[int, float]]


@dataclass(frozen=True)
class Protocol:
    """How an experiment is run on one data set."""

    data: str
    stream: int
    queries_per_class: int
    settings: tuple[str, ...]
    checkpoints: int = 10
    curve_metric: str = "map"
    split: str = "all"
    note: str = ""
    rows: int | None = None  # of a set that is made up: all if None
    only_if_asked: bool = False  # too large, or too unlike the paper's, to stand in by itself


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper."""

    name: str
    title: str
    kind: str  # table, precision, curve, auc, unseen or ablation
    where: str  # in the paper
    paper: str
    bits: tuple[int, ...]
    metrics: tuple[str, ...]
    methods: tuple[str, ...]
    protocols: tuple[Protocol, ...]  # the paper's data first, then what stands in
    extra_runs: tuple[Mapping[str, Any], ...] = ()
    numbers: tuple[Numbers, ...] = ()
    claims: tuple[str, ...] = ()  # what the paper says of it in words
    seeds: int = 3
    is_quick: bool = False

    @property
    def data(self) -> str:
        """The paper's own data set."""
        return self.protocols[0].data

    def choose_data(self, here: Container[str]) -> str | None:
        """Return the data set to run on among those that are here: the paper's if it is one."""
        fitting = (on.data for on in self.protocols if not on.only_if_asked and on.data in here)
        return next(fitting, None)

    def protocol(self, data: str) -> Protocol:
        """Return how to run on a data set."""
        for protocol in self.protocols:
            if protocol.data == data:
                return protocol
        known = ", ".join(protocol.data for protocol in self.protocols)
        raise InputError(f"{self.name} is not defined on {data}; pass one of {known}.")

    def runs(self, data: str) -> list[Run]:
        """Return the lines of the experiment on a data set, those of the paper first."""
        protocol = self.protocol(data)
        own = [Run(**given) for given in self.extra_runs if given["method"] in METHODS]
        replaced = {(run.method, run.settings) for run in own if run.is_papers}
        given = {(run.method, run.settings) for run in own if not run.changes}
        found = []
        for settings in protocol.settings:
            for method in self.methods:
                papers = settings == "published" and (method, settings) not in replaced
                if (method, settings) not in given:
                    found.append(Run(method, settings, is_papers=papers))
            found += [run for run in own if run.settings == settings]
        if "default" not in protocol.settings:  # which exist for any data, so these always run
            found += [run for run in own if run.settings == "default"]
        return [run if run.bits else replace(run, bits=self.bits) for run in found]

    def plans(
        self, data: DataSet, seeds: int | None = None, methods: Sequence[str] | None = None
    ) -> list[Plan]:
        """Plan all cells on a data set, seed by seed, so that a stopped run has whole tables."""
        protocol = self.protocol(data.name)
        how = {name: getattr(protocol, name) for name in PROTOCOL_FACTS}
        planned = [
            plan_cell(
                run.method, data, n_bits, seed, settings=run.settings, changes=run.changes, **how
            )
            for seed in range(self.seeds if seeds is None else seeds)
            for n_bits in self.bits
            for run in self.runs(data.name)
            if n_bits in run.bits and (methods is None or run.method in methods)
        ]
        return sorted(planned, key=lambda plan: (plan.seed, plan.features))  # splits in their order

    def found(self, lines: Iterable[Line], data: str) -> list[tuple[Run, dict[int, Line]]]:
        """Find the lines of each run by code length, among all that were summarised from rows."""
        protocol = self.protocol(data)
        how = {"data": data, **{name: getattr(protocol, name) for name in PROTOCOL_FACTS}}
        how |= STREAM_FACTS
        fitting = [line for line in lines if how.items() <= (LATER | line.rows[0]).items()]
        table = []
        for run in self.runs(data):
            mine = {"method": run.method, "settings": run.settings, "changes": dict(run.changes)}
            own = [line for line in fitting if mine.items() <= line.rows[0].items()]
            by_bits = {line.n_bits: line for line in own}
            table.append((run, {bits: by_bits[bits] for bits in run.bits if bits in by_bits}))
        return table

    def printed(self, method: str, n_bits: int) -> Iterator[tuple[str, str, float]]:
        """Yield what was printed or measured elsewhere of a method: source, metric, value."""
        for numbers in self.numbers:
            for metric, values in numbers.values.items():
                if numbers.method == method and n_bits in values:
                    yield numbers.source, metric, values[n_bits]

    def published(self, method: str, metric: str, n_bits: int) -> float | None:
        """Return the paper's number for a cell; None if it printed none."""
        for source, name, value in self.printed(method, n_bits):
            if (source, name) == ("paper", metric):
                return value
        return None

    def quick(self) -> "Experiment":
        """Return a smaller run of the same, for a look: a short stream, one length, one seed."""
        protocols = tuple(
            replace(
                protocol,
                stream=min(QUICK["stream"], protocol.stream),
                checkpoints=min(QUICK["checkpoints"], protocol.checkpoints),
                rows=QUICK["rows"] if protocol.only_if_asked else None,
            )
            for protocol in self.protocols
        )
        return replace(
            self,
            title=f"{self.title} (a quick look: a stream of {QUICK['stream']:,}, one seed)",
            bits=tuple(bits for bits in self.bits if bits in QUICK_BITS) or self.bits[:1],
            protocols=protocols,
            seeds=1,
            is_quick=True,
        )


def experiment_names() -> list[str]:
    """Return the names of all experiments.

    >>> [name for name in experiment_names() if name.startswith("mnist")]
    ['mnist-table', 'mnist-precision', 'mnist-curve', 'mnist-auc', 'mnist-unseen', 'mnist-ablation']
    """
    kinds = ("table", "precision", "curve", "auc", "unseen", "ablation")
    names = [place.name.removesuffix(".toml") for place in _folder().iterdir() if place.is_file()]
    return sorted(names, key=lambda name: (name.split("-")[0], kinds.index(name.split("-")[-1])))


@cache
def read_experiment(name: str) -> Experiment:
    """Read an experiment by its name."""
    place = _folder().joinpath(f"{name}.toml")
    if name not in experiment_names():
        known = ", ".join(experiment_names())
        raise InputError(f"there is no experiment {name!r}; choose from {known}.")
    given = tomllib.loads(place.read_text(encoding="utf-8"))
    base = read_experiment(given["cells"]) if "cells" in given else None
    bits = tuple(given["bits"]) if base is None else base.bits
    own = {
        **{part: given[part] for part in ("title", "kind", "where")},
        "name": name,
        "metrics": tuple(given["metrics"]),
        "numbers": _numbers(given, bits),
        "claims": tuple(given.get("claims", ())),
    }
    if base is not None:  # the same cells as those of another
        return replace(base, **own)
    shared = given.get("protocol", {})
    return Experiment(
        **own,
        paper=given["paper"],
        bits=bits,
        methods=tuple(given["methods"]),
        protocols=tuple(
            Protocol(**{**shared, **on, "settings": tuple(on["settings"])}) for on in given["on"]
        ),
        extra_runs=tuple(
            {**run, "bits": tuple(run.get("bits", bits)), "changes": _changes(run)}
            for run in given.get("run", ())
        ),
        seeds=given.get("seeds", 3),
    )


def _changes(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run changes; TOML has no null, and "none" stands for it."""
    changes = run.get("changes", {})
    return {name: None if value == "none" else value for name, value in changes.items()}


def _numbers(given: Mapping[str, Any], bits: Sequence[int]) -> tuple[Numbers, ...]:
    """Read published numbers: a list of values at the code lengths, NaN where there is none."""
    found = []
    for line in given.get("numbers", ()):
        lists = {name: line[name] for name in line if name not in ("method", "source")}
        values = {
            metric: {n_bits: v for n_bits, v in zip(bits, row, strict=True) if not math.isnan(v)}
            for metric, row in lists.items()
        }
        found.append(Numbers(line["method"], line["source"], values))
    return tuple(found)


def _folder() -> Any:
    return files("streamhash.lab").joinpath("experiments")
