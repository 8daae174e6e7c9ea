"""Comparisons with a paper in Markdown: ours, the paper's in brackets, the best two marked."""

from collections.abc import Sequence
from itertools import groupby

from streamhash.lab.experiment import Experiment
from streamhash.lab.report.comparison import Comparison, Entry, Group, compare, heading
from streamhash.lab.report.contents import Contents
from streamhash.lab.report.table import markdown_table
from streamhash.lab.report.verdicts import (
    closeness,
    lead_sentence,
    missing_sentence,
    protocol_sentence,
    verdicts,
)
from streamhash.lab.report.words import join
from streamhash.lab.summary import Line

__all__ = ["comparison_markdown", "report_markdown"]


def comparison_markdown(
    experiment: Experiment, lines: Sequence[Line], data: str, settings: str | None = None
) -> str:
    """Write the tables of an experiment on a data set, one for each metric.

    ``settings`` picks the lines with one kind of them, such as "published".
    """
    return _tables(compare(experiment, lines, data), settings)


def report_markdown(contents: Contents) -> str:
    """Write the whole report: the comparisons with their words, then all other lines."""
    parts = []
    if contents.comparisons:
        parts.append(
            f"# {join(list(dict.fromkeys(c.experiment.paper for c in contents.comparisons)))}"
        )
        leads = [sentence for c in contents.comparisons if (sentence := _lead(c))]
        parts.append("\n".join(f"- {sentence}" for sentence in leads))
        parts += [_section(comparison) for comparison in contents.comparisons]
        if contents.rest:
            parts.append("## Rows of no experiment")
    if contents.rest:
        parts.append(markdown_table(contents.rest).rstrip("\n"))
    return "\n\n".join(part for part in parts if part) + "\n"


def _lead(comparison: Comparison) -> str:
    return lead_sentence(comparison) if comparison.experiment.kind == "table" else ""


def _section(comparison: Comparison) -> str:
    experiment = comparison.experiment
    parts = [f"## {comparison.title}"]
    if comparison.why_apart:
        parts.append(f"**No differences from the paper are taken: {comparison.why_apart}.**")
    if comparison.protocol.note:
        parts.append(f"Note: {comparison.protocol.note}.")
    parts.append(f"In the paper: {experiment.where}. {protocol_sentence(comparison)}")
    parts += [f"> {claim}" for claim in experiment.claims]
    parts += [
        f"With {verdict.settings} settings this {verdict.words}. {' '.join(verdict.sentences)}"
        for verdict in verdicts(comparison)
    ]
    tables = "" if experiment.kind == "curve" else _tables(comparison, None)
    missing = "" if comparison.shares_cells else missing_sentence(comparison)
    parts += [" ".join(closeness(comparison)), tables, missing]
    return "\n\n".join(part for part in parts if part)


def _tables(comparison: Comparison, settings: str | None) -> str:
    metrics = comparison.experiment.metrics
    tables = []
    for of_settings, groups in groupby(comparison.groups, key=lambda group: group.settings):
        if settings in (None, of_settings):
            given = list(groups)
            tables += [_table(comparison, given, metric) for metric in metrics]
    return "\n\n".join(tables)


def _table(comparison: Comparison, groups: Sequence[Group], metric: str) -> str:
    bits = comparison.experiment.bits
    title = f"{comparison.data}, {groups[0].settings} settings, {heading(metric)}"
    rows = [
        [title, *(f"{k} bits" for k in bits)],
        ["---"] + ["---:"] * len(bits),
    ]
    for group in groups:
        if len(groups) > 1:
            rows.append([f"*{group.title.split(': ')[-1]}*", *("" for _ in bits)])
        for entry in group.entries:
            cells = [_cell(comparison, group, entry, metric, k) for k in bits]
            rows.append([entry.run.label, *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(comparison: Comparison, group: Group, entry: Entry, metric: str, n_bits: int) -> str:
    line = entry.lines.get(n_bits)
    text = "–" if line is None else line.text(metric)
    place = group.place(entry, metric, n_bits)
    text = {1: f"**{text}**", 2: f"<u>{text}</u>"}.get(place, text)
    paper = comparison.paper(entry.run, metric, n_bits)
    return text if paper is None else f"{text} ({paper:.3f})"
