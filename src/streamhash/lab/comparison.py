"""The experiments of a paper, run and put beside its numbers: groups, places and differences."""

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Unpack

from streamhash.errors import InputError
from streamhash.lab.datasets import available, load_data
from streamhash.lab.experiment import Experiment, Protocol, Run, experiment_names, read_experiment
from streamhash.lab.rows import (
    METRICS,
    ROWS_FILE,
    Line,
    method_name,
    read_folder,
    row_key,
    summarise,
)
from streamhash.lab.run import Method, Plan, Running, find_methods, run_cells

GROUP_TITLES = {
    "published": "Published settings",
    "tuned": "Tuned settings, found on data of the stream alone",
    "default": "Default settings of streamhash",
}
log = logging.getLogger("streamhash.lab")


def reproduce(
    names: str | Path | Sequence[str | Path] = "all",
    *,
    data: str | None = None,
    methods: Method | Sequence[Method] = "all",
    n_bits: int | Sequence[int] | None = None,
    seeds: int | None = None,
    first_seed: int = 0,
    quick: bool = False,
    out: str | Path = "streamhash-results",
    **running: Unpack[Running],
) -> "list[Comparison]":
    """Run the paper's experiments, and return each beside the paper's numbers.

    Rows are appended to ``out``, a folder for each data set, as they come; after an interruption
    the same call goes on where it stopped. Experiments share their cells, so that the figures of a
    data set cost nothing after its table. :func:`~streamhash.lab.write_report` shows them all.

    Parameters
    ----------
    names : experiments, of :func:`~streamhash.lab.experiment_names`; "all" for those whose data
        are here; or ``.toml`` files with experiments of your own
    data : the data set to run on; None for the paper's, or what stands in for it
    methods : only these
    n_bits : other code lengths than the experiment's
    seeds : how many; None for as many as the experiment has, 3
    first_seed : the first of them
    quick : a quick look, not a result: a short stream, one code length, one seed
    out : folder of the rows
    running : jobs, executor and progress, as :func:`~streamhash.lab.run_cells` takes them
    """
    wanted = [names] if isinstance(names, str | Path) else list(dict.fromkeys(names))
    everything = "all" in wanted
    experiments = [read_experiment(name) for name in (experiment_names() if everything else wanted)]
    if quick:
        experiments = [experiment.quick() for experiment in experiments]
    if n_bits is not None:
        lengths = [n_bits] if isinstance(n_bits, int) else list(n_bits)
        experiments = [experiment.at(lengths) for experiment in experiments]
    by_data = _by_data(experiments, data, skip_missing=everything)
    chosen = None if methods == "all" else find_methods(methods)
    for name, members in by_data.items():
        found = members[0].protocol(name).load()
        by_data[name] = members = [experiment.on(found) for experiment in members]
        plans: dict[str, Plan] = {}
        for experiment in members:
            for plan in experiment.plans(found, seeds, chosen, first_seed=first_seed):
                plans.setdefault(row_key(plan.identity()), plan)  # shared cells run once
        path = Path(out) / name / ROWS_FILE
        run_cells(list(plans.values()), rows_file=path, skip_failures=True, **running)
    lines = summarise(read_folder(Path(out)))
    return [compare(each, lines, name) for name, members in by_data.items() for each in members]


def _by_data(
    experiments: Iterable[Experiment], wanted: str | None, *, skip_missing: bool
) -> dict[str, list[Experiment]]:
    """Decide on which data set each experiment runs, and gather those of one set."""
    here = {card.name for card in available() if card.here}
    found: dict[str, list[Experiment]] = {}
    for experiment in experiments:
        known = [protocol.data for protocol in experiment.protocols]
        if wanted is not None and skip_missing and wanted not in known:
            continue
        name = wanted or experiment.choose_data(here)
        if name is None:
            if not skip_missing:
                load_data(experiment.data)  # says where it was looked for, and how to get it
            log.warning("%s is left out: its data are not here (streamhash data).", experiment.name)
            continue
        if note := experiment.protocol(name).note:
            log.warning("%s on %s: %s.", experiment.name, name, note)
        found.setdefault(name, []).append(experiment)
        _refuse_two_files(name, [each.protocol(name) for each in found[name]])
    return found


def _refuse_two_files(name: str, protocols: Sequence[Protocol]) -> None:
    """Refuse experiments on two files of one name: their rows would lie together."""
    files = dict.fromkeys(protocol.file for protocol in protocols)
    if len(files) > 1:
        raise InputError(
            f"reproduce: {' and '.join(str(file) for file in files)} are both called {name}; "
            "rename one, or run one after the other, into two folders."
        )


@dataclass(frozen=True)
class Entry:
    """A line of a table: a run of the experiment, and what was measured at each code length."""

    run: Run
    lines: Mapping[int, Line]

    def mean(self, metric: str, n_bits: int) -> float | None:
        """Mean over the seeds; None if it was not measured."""
        line = self.lines.get(n_bits)
        return None if line is None else line.mean(metric)

    @property
    def n_stages(self) -> int:
        """How many of its stages, the last perhaps in part, a run has seen at least."""
        rows = [row for line in self.lines.values() for row in line.rows]
        stages = [-(-row["stream"] // row["parameters"].get("batch_size", 1)) for row in rows]
        return int(min(stages))

    @property
    def looks(self) -> set[tuple[int, ...]]:
        """After how many instances its quality was measured."""
        rows = [row for line in self.lines.values() for row in line.rows]
        return {tuple(at["instances"] for at in row["curve"]) for row in rows}


@dataclass(frozen=True)
class Group:
    """Entries that compare with one another, under one heading."""

    title: str
    settings: str
    entries: tuple[Entry, ...]
    is_contest: bool = True  # else no entry is marked as the best

    @property
    def lines(self) -> list[Line]:
        """The lines of all entries."""
        return [line for entry in self.entries for line in entry.lines.values()]

    def place(self, entry: Entry, metric: str, n_bits: int) -> int:
        """Return 1 for the best of the group, 2 for the second, 0 for all others.

        Places go by the three digits that are shown, so that equal values are marked alike; one
        entry alone is no contest.
        """
        values = {
            round(mean, 3)
            for other in self.entries
            if (mean := other.mean(metric, n_bits)) is not None
        }
        mean = entry.mean(metric, n_bits)
        if mean is None or len(values) < 2 or not self.is_contest:
            return 0
        place = sorted(values, reverse=True).index(round(mean, 3)) + 1
        return place if place <= 2 else 0


@dataclass(frozen=True)
class Comparison:
    """An experiment on one data set: what was measured, beside what the paper printed."""

    experiment: Experiment
    data: str
    groups: tuple[Group, ...]
    missing: tuple[Run, ...]  # of which there is no row yet

    @property
    def name(self) -> str:
        """A name for files and links."""
        on = self.experiment.name
        name = on if self.data == self.experiment.data else f"{on}-on-{self.data}"
        return f"{name}-quick" if self.experiment.is_quick else name

    @property
    def title(self) -> str:
        """The experiment's title, and on what it was run if not on the paper's data."""
        title = self.experiment.title
        return title if self.data == self.experiment.data else f"{title}: here on {self.data}"

    @property
    def protocol(self) -> Protocol:
        """How it was run."""
        return self.experiment.protocol(self.data)

    @property
    def settings(self) -> list[str]:
        """The settings that there are, the paper's first."""
        return list(dict.fromkeys(group.settings for group in self.groups))

    @property
    def columns(self) -> list[tuple[str, int]]:
        """The columns of its table: code lengths for each metric."""
        return [
            (metric, bits) for metric in self.experiment.metrics for bits in self.experiment.bits
        ]

    def parts(self, settings: str | None = None) -> list[tuple[str, list[Group]]]:
        """Return the groups of each kind of settings, or of one kind."""
        return [
            (name, [group for group in self.groups if group.settings == name])
            for name in self.settings
            if settings in (None, name)
        ]

    def entries(self, settings: str | None = None) -> Iterator[Entry]:
        """Yield the entries of all groups, or of one kind of settings."""
        for group in self.groups:
            if settings in (None, group.settings):
                yield from group.entries

    @property
    def lines(self) -> list[Line]:
        """The lines of all groups."""
        return [line for group in self.groups for line in group.lines]

    def contenders(self, settings: str) -> list[Entry]:
        """Return the entries of the paper's methods, of each method the one that is the paper's."""
        methods = papers_methods(self.experiment.paper)
        entries = [entry for entry in self.entries(settings) if entry.run.method in methods]
        papers = [entry for entry in entries if entry.run.is_papers]
        return papers or [entry for entry in entries if not entry.run.changes]

    def why_unjudged(self, settings: str) -> str:
        """Say why a quick look compares no methods with some settings; empty if it does."""
        return _why_no_contest(self.experiment, self.contenders(settings))

    def paper(self, run: Run, metric: str, n_bits: int) -> float | None:
        """Return the paper's number beside a cell; None if it has none, or not for this run."""
        any_of_papers = any(entry.run.is_papers for entry in self.entries())
        if run.is_papers if any_of_papers else not run.changes:
            return self.experiment.published(run.method, metric, n_bits)
        return None

    def difference(self, entry: Entry, metric: str, n_bits: int) -> float | None:
        """Return ours minus the paper's; None where the two do not compare."""
        ours, paper = entry.mean(metric, n_bits), self.paper(entry.run, metric, n_bits)
        if self.why_apart or not entry.run.is_papers or ours is None or paper is None:
            return None
        return ours - paper

    @property
    def shares_cells(self) -> bool:
        """Whether it is another view of the cells of a table."""
        return self.experiment.kind in ("precision", "curve", "auc")

    @property
    def why_apart(self) -> str:
        """Say why no difference from the paper is taken; empty if it is."""
        if self.experiment.is_quick:
            return "a quick look learns from a small part of the paper's stream"
        if self.data != self.experiment.data:
            return f"{self.data} stands in for {self.experiment.data}"
        return ""


def compare(experiment: Experiment, lines: Iterable[Line], data: str) -> Comparison:
    """Put the lines of an experiment into groups that compare with one another.

    Published settings come in two groups, if both have lines: what the paper's numbers were made
    with, and other methods and variants. Places in the first are then places in the paper's table.
    """
    found = [Entry(run, by_bits) for run, by_bits in experiment.found(lines, data)]
    groups = []
    for settings in dict.fromkeys(entry.run.settings for entry in found):
        title = GROUP_TITLES[settings]
        entries = [entry for entry in found if entry.run.settings == settings and entry.lines]
        papers = [entry for entry in entries if _is_papers(entry, experiment)]
        others = [entry for entry in entries if entry not in papers]
        order = papers_methods(experiment.paper)
        papers.sort(key=lambda entry: order.index(entry.run.method))
        parts = {title: entries}
        if experiment.kind != "ablation" and papers and others:
            parts = {
                f"{title}: the paper's methods": papers,
                f"{title}: others and variants": others,
            }
        for name, members in parts.items():
            is_contest = not _why_no_contest(experiment, members)
            if members:
                groups.append(Group(name, settings, tuple(members), is_contest))
    missing = tuple(entry.run for entry in found if not entry.lines)
    return Comparison(experiment, data, tuple(groups), missing)


def _why_no_contest(experiment: Experiment, entries: Sequence[Entry]) -> str:
    """Say why entries of a quick look do not compare; empty if they do.

    Each must have seen two of its stages; along the stream, all must have been looked at alike.
    """
    if not experiment.is_quick:
        return ""
    short = [method_name(entry.run.method) for entry in entries if entry.n_stages < 2]
    if short:
        *others, last = dict.fromkeys(short)
        names = f"{', '.join(others)} and {last}" if others else last
        return f"a stream too short for {names}, of which it is less than two stages"
    looks = {look for entry in entries for look in entry.looks}
    if experiment.kind in ("curve", "auc") and len(looks) > 1:
        return "the methods were looked at after different numbers of instances"
    return ""


def _is_papers(entry: Entry, experiment: Experiment) -> bool:
    return entry.run.is_papers and entry.run.method in papers_methods(experiment.paper)


def compare_all(lines: Sequence[Line]) -> list[Comparison]:
    """Compare every experiment on every data set that has lines, those on the paper's data first.

    A quick look counts if there is nothing else, and a line alone only if it is the paper's: one
    of other settings has nothing to be compared with.
    """
    found = []
    for name in experiment_names():
        full = read_experiment(name)
        for protocol in full.protocols:
            tries = (compare(kind, lines, protocol.data) for kind in (full, full.quick()))
            found += [comparison for comparison in tries if _is_contest(comparison)][:1]
    return sorted(found, key=lambda comparison: bool(comparison.why_apart))


def _is_contest(comparison: Comparison) -> bool:
    entries = list(comparison.entries())
    return len(entries) > 1 or any(entry.run.is_papers for entry in entries)


def run_note(comparison: Comparison, run: Run) -> str:
    """Return what is to be known of a run, such as that the paper's number is of another one."""
    if run.note or run.settings != "published" or run.changes:
        return run.note
    for other in comparison.experiment.runs(comparison.data):
        if other.method == run.method and other.is_papers and other.changes:
            return f"the paper's number is that of {', '.join(other.changed)}"
    return ""


@cache
def papers_methods(paper: str) -> tuple[str, ...]:
    """Return the methods of which a paper prints numbers, in its order: its own comes last."""
    experiments = [read_experiment(name) for name in experiment_names()]
    methods = [
        numbers.method
        for experiment in experiments
        for numbers in experiment.numbers
        if (experiment.paper, numbers.source) == (paper, "paper")
    ]
    return tuple(dict.fromkeys(methods))


def own_method(experiment: Experiment) -> str:
    """Return the method that the paper is about."""
    return papers_methods(experiment.paper)[-1]


def heading(metric: str) -> str:
    """Return a metric's name as tables show it.

    >>> heading("precision@h2"), heading("precision@50")
    ('P@H2', 'P@50')
    """
    return METRICS[metric][0] if metric in METRICS else metric.replace("precision", "P")


def brief(value: float | None) -> str:
    """Write a value as papers do: three digits, no zero before the point.

    >>> brief(0.8099), brief(1.0), brief(None)
    ('.810', '1.000', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:.3f}"
    return text[1:] if text.startswith("0.") else text


def signed(difference: float) -> str:
    """Write a difference with its sign.

    >>> signed(0.012), signed(-0.0123), signed(-0.0001)
    ('+.012', '−.012', '±.000')
    """
    sign = "±" if round(difference, 3) == 0 else "+" if difference > 0 else "−"
    return sign + brief(abs(difference))
