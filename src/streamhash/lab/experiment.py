"""The experiments of a paper, a TOML file each in ``experiments``: what is run, what was printed.

A file names the paper's data and what stands in for them where they are not at hand, the protocol
on each, the methods with their settings, and the published numbers. A figure that is drawn from the
cells of a table names that table (``cells``) and holds only what is its own. So several experiments
share rows, and none of them is run twice. One's own experiments are such files, too, with less in
them (``own.py``).
"""

import math
import tomllib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from streamhash.errors import InputError
from streamhash.files import Columns
from streamhash.hashers import METHODS
from streamhash.lab.datasets import DataSet, load_data
from streamhash.lab.rows import LATER, Line, method_name
from streamhash.lab.run import Plan, plan_cell, usual_order

QUICK = {"stream": 4000, "checkpoints": 3, "rows": 100_000}
QUICK_BITS = (32,)
PROTOCOL_FACTS = (
    *("stream", "queries_per_class", "split", "checkpoints", "curve_metric"),
    *("order", "label_noise"),
)

Values = dict[str, Any]


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
    settings: tuple[str, ...]
    stream: int | None = None  # None: as the size of the data says
    queries_per_class: int | None = None
    checkpoints: int = 10
    curve_metric: str = "map"
    split: str = "all"
    order: str | None = None
    label_noise: float = 0.0
    database: str = "encoded"
    note: str = ""
    rows: int | None = None  # of a set that is made up: all if None
    only_if_asked: bool = False  # too large, or too unlike the paper's, to stand in by itself
    file: str | None = None  # of one's own data
    labels: str | None = None
    label_column: str | None = None
    columns: Columns = Columns()  # noqa: RUF009  it cannot change

    def load(self) -> DataSet:
        """Load the data."""
        return load_data(
            self.file or self.data,
            labels=self.labels,
            column=self.label_column,
            rows=self.rows,
            columns=self.columns,
        )

    @property
    def facts(self) -> Values:
        """What rows of it have in common; what is not decided yet is left out."""
        named = {name: getattr(self, name) for name in PROTOCOL_FACTS}
        known = {name: value for name, value in named.items() if value is not None}
        return {"data": self.data, **known, "database_codes": self.database}


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
        for on in self.protocols:
            if on.file is not None or (on.data in here and not on.only_if_asked):
                return on.data
        return None

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
        own = [Run(**given) for given in self.extra_runs if _is_here(given["method"])]
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

    def at(self, bits: Sequence[int]) -> "Experiment":
        """Return the same at other code lengths."""
        runs = []
        for run in self.extra_runs:
            own = tuple(bits) if run["bits"] == self.bits else run["bits"]
            if fitting := tuple(n_bits for n_bits in own if n_bits in bits):
                runs.append({**run, "bits": fitting})
        return replace(self, bits=tuple(bits), extra_runs=tuple(runs))

    def on(self, data: DataSet) -> "Experiment":
        """Return the same with all decided that the size of the data decides."""
        protocol = self.protocol(data.name)
        order = protocol.order or usual_order(data)
        stream = protocol.stream
        if stream is None:
            how = {name: getattr(protocol, name) for name in ("queries_per_class", "split")}
            stream = plan_cell("lsh", data, self.bits[0], **how).stream
            stream = min(stream, QUICK["stream"]) if self.is_quick else stream
        decided = replace(protocol, order=order, stream=stream)
        protocols = (decided if each is protocol else each for each in self.protocols)
        return replace(self, protocols=tuple(protocols))

    def plans(
        self,
        data: DataSet,
        seeds: int | None = None,
        methods: Sequence[str] | None = None,
        *,
        first_seed: int = 0,
    ) -> list[Plan]:
        """Plan all cells on a data set, seed by seed, so that a stopped run has whole tables."""
        protocol = self.protocol(data.name)
        how = {name: getattr(protocol, name) for name in (*PROTOCOL_FACTS, "database")}
        n_seeds = self.seeds if seeds is None else seeds
        planned = [
            plan_cell(
                run.method, data, n_bits, seed, settings=run.settings, changes=run.changes, **how
            )
            for seed in range(first_seed, first_seed + n_seeds)
            for n_bits in self.bits
            for run in self.runs(data.name)
            if n_bits in run.bits and (methods is None or run.method in methods)
        ]
        return sorted(planned, key=lambda plan: (plan.seed, plan.features))  # splits in their order

    def found(self, lines: Iterable[Line], data: str) -> list[tuple[Run, dict[int, Line]]]:
        """Find the lines of each run by code length, among all that were summarised from rows."""
        how = self.protocol(data).facts
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
                stream=protocol.stream and min(QUICK["stream"], protocol.stream),
                checkpoints=min(QUICK["checkpoints"], protocol.checkpoints),
                rows=QUICK["rows"] if protocol.only_if_asked else protocol.rows,
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


def _is_here(method: str) -> bool:
    """Whether a method is one of ours, or of somebody else, by its import path."""
    return method in METHODS or ":" in method


def read_experiment(name: str | Path) -> Experiment:
    """Read an experiment by its name, or one's own, a ``.toml`` file."""
    if str(name).endswith(".toml"):
        from streamhash.lab.own import read_own_experiment

        return read_own_experiment(name)
    return _read(str(name))


@cache
def _read(name: str) -> Experiment:
    place = _folder().joinpath(f"{name}.toml")
    if name not in experiment_names():
        known = ", ".join(experiment_names())
        raise InputError(
            f"there is no experiment {name!r}; choose from {known}, or pass a .toml file of yours."
        )
    given = tomllib.loads(place.read_text(encoding="utf-8"))
    base = _read(given["cells"]) if "cells" in given else None
    bits = tuple(given["bits"]) if base is None else base.bits
    own = {
        **{part: given[part] for part in ("title", "kind", "where")},
        "name": name,
        "metrics": tuple(given["metrics"]),
        "numbers": read_numbers(given.get("numbers", ()), bits),
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
            Protocol(**{"order": "shuffled", **shared, **on, "settings": tuple(on["settings"])})
            for on in given["on"]
        ),
        extra_runs=tuple(
            {**run, "bits": tuple(run.get("bits", bits)), "changes": read_changes(run)}
            for run in given.get("run", ())
        ),
        seeds=given.get("seeds", 3),
    )


def read_changes(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run changes; TOML has no null, and "none" stands for it."""
    changes = run.get("changes", {})
    return {name: None if value == "none" else value for name, value in changes.items()}


def read_numbers(given: Iterable[Mapping[str, Any]], bits: Sequence[int]) -> tuple[Numbers, ...]:
    """Read published numbers: a list of values at the code lengths, NaN where there is none."""
    found = []
    for line in given:
        lists = {name: line[name] for name in line if name not in ("method", "source")}
        values = {
            metric: {n_bits: v for n_bits, v in zip(bits, row, strict=True) if not math.isnan(v)}
            for metric, row in lists.items()
        }
        found.append(Numbers(line["method"], line["source"], values))
    return tuple(found)


def _folder() -> Any:
    return files("streamhash.lab").joinpath("experiments")
