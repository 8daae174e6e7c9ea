"""The experiments of a paper, one TOML file each in ``papers``: what is run, and what was printed.

A file names the paper's data and what stands in for them where they are not at hand, the protocol
on each, the methods with their settings, and the published numbers. A figure that is drawn from the
cells of a table names that table (``cells``) and holds only what is its own. So several experiments
share rows, and none of them is run twice.
"""

import math
import tomllib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

from streamhash.errors import InputError
from streamhash.hashers import METHODS
from streamhash.lab.datasets import DataSet
from streamhash.lab.plan import Plan, plan_cell
from streamhash.lab.summary import Line

__all__ = ["Experiment", "Numbers", "Protocol", "Run", "experiment_names", "read_experiment"]

QUICK = {"stream": 2000, "checkpoints": 3, "rows": 100_000}
QUICK_BITS = (32,)


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
        name = METHODS[self.method].__name__
        return ", ".join([name, *(f"{name}={value}" for name, value in self.changes.items())])


@dataclass(frozen=True)
class Numbers:
    """Published numbers of one method: a value for each code length, NaN where there is none."""

    method: str
    source: str
    values: Mapping[str, tuple[float, ...]]


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
        planned = [
            plan_cell(
                run.method,
                data,
                n_bits,
                seed,
                settings=run.settings,
                changes=run.changes,
                stream=protocol.stream,
                queries_per_class=protocol.queries_per_class,
                checkpoints=protocol.checkpoints,
                split=protocol.split,
                curve_metric=protocol.curve_metric,
            )
            for seed in range(self.seeds if seeds is None else seeds)
            for n_bits in self.bits
            for run in self.runs(data.name)
            if n_bits in run.bits and (methods is None or run.method in methods)
        ]
        return sorted(
            planned, key=lambda plan: (plan.seed, plan.features)
        )  # one arena after another

    def found(self, lines: Iterable[Line], data: str) -> list[tuple[Run, dict[int, Line]]]:
        """Find the lines of each run by code length, among all that were summarised from rows."""
        protocol = self.protocol(data)
        fitting = [line for line in lines if _fits(line, protocol)]
        table = []
        for run in self.runs(data):
            by_bits = {line.n_bits: line for line in fitting if _is_of(line, run)}
            table.append((run, {bits: by_bits[bits] for bits in run.bits if bits in by_bits}))
        return table

    def published(self, method: str, metric: str, n_bits: int) -> float | None:
        """Return the paper's number for a cell; None if it printed none."""
        for numbers in self.numbers:
            if (numbers.method, numbers.source) == (method, "paper") and metric in numbers.values:
                value = numbers.values[metric][self.bits.index(n_bits)]
                return None if math.isnan(value) else value
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
        keep = [place for place, bits in enumerate(self.bits) if bits in QUICK_BITS] or [0]
        return replace(
            self,
            title=f"{self.title} (a quick look: a stream of {QUICK['stream']:,}, one seed)",
            bits=tuple(self.bits[place] for place in keep),
            numbers=tuple(
                replace(
                    numbers,
                    values={
                        metric: tuple(values[place] for place in keep)
                        for metric, values in numbers.values.items()
                    },
                )
                for numbers in self.numbers
            ),
            protocols=protocols,
            seeds=1,
            is_quick=True,
        )


def _fits(line: Line, protocol: Protocol) -> bool:
    row = line.rows[0]
    facts = ("data", "stream", "queries_per_class", "split", "checkpoints", "curve_metric")
    return all(row[name] == getattr(protocol, name) for name in facts)


def _is_of(line: Line, run: Run) -> bool:
    row = line.rows[0]
    mine = (run.method, run.settings, dict(run.changes))
    return (row["method"], row["settings"], row["changes"]) == mine


def experiment_names() -> list[str]:
    """Return the names of all experiments.

    >>> [name for name in experiment_names() if name.startswith("mnist")]
    ['mnist-table', 'mnist-precision', 'mnist-curve', 'mnist-auc', 'mnist-unseen', 'mnist-ablation']
    """
    kinds = ("table", "precision", "curve", "auc", "unseen", "ablation")
    names = [place.name.removesuffix(".toml") for place in _papers().iterdir() if place.is_file()]
    return sorted(names, key=lambda name: (name.split("-")[0], kinds.index(name.split("-")[-1])))


@cache
def read_experiment(name: str) -> Experiment:
    """Read an experiment by its name."""
    place = _papers().joinpath(f"{name}.toml")
    if name not in experiment_names():
        known = ", ".join(experiment_names())
        raise InputError(f"there is no experiment {name!r}; choose from {known}.")
    given = tomllib.loads(place.read_text(encoding="utf-8"))
    if "cells" in given:  # the same cells as those of another
        base = read_experiment(given.pop("cells"))
        return replace(
            base,
            name=name,
            title=given["title"],
            kind=given["kind"],
            where=given["where"],
            metrics=tuple(given["metrics"]),
            numbers=_numbers(given),
            claims=tuple(given.get("claims", ())),
        )
    shared = given.get("protocol", {})
    return Experiment(
        name=name,
        **{part: given[part] for part in ("title", "kind", "where", "paper")},
        bits=tuple(given["bits"]),
        metrics=tuple(given["metrics"]),
        methods=tuple(given["methods"]),
        protocols=tuple(
            Protocol(**{**shared, **on, "settings": tuple(on["settings"])}) for on in given["on"]
        ),
        extra_runs=tuple(
            {**run, "bits": tuple(run.get("bits", given["bits"]))} for run in given.get("run", ())
        ),
        numbers=_numbers(given),
        claims=tuple(given.get("claims", ())),
        seeds=given.get("seeds", 3),
    )


def _numbers(given: Mapping[str, Any]) -> tuple[Numbers, ...]:
    return tuple(
        Numbers(
            line["method"],
            line["source"],
            {name: tuple(line[name]) for name in line if name not in ("method", "source")},
        )
        for line in given.get("numbers", ())
    )


def _papers() -> Any:
    return files("streamhash.lab").joinpath("experiments")
