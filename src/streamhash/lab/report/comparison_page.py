"""The part of a page that puts results beside a paper's: what came out, tables, figures."""

from collections.abc import Sequence
from html import escape

from streamhash.lab.report.cell_details import CellDetails
from streamhash.lab.report.comparison import (
    Comparison,
    Entry,
    Group,
    brief,
    heading,
    run_note,
    signed,
)
from streamhash.lab.report.page_parts import Picture, figure_part
from streamhash.lab.report.verdicts import (
    closeness,
    lead_sentence,
    missing_sentence,
    protocol_sentence,
    verdicts,
)

__all__ = ["comparison_parts", "overview"]

BANDS = (0.02, 0.05, 0.1)  # differences from the paper at which the tint grows
SIGNS = {"yes": "✓", "part": "◐", "no": "✗"}
# Figures that say all of it: their values wait in a closed table.
FIGURE_KINDS = ("precision", "curve")


def overview(comparisons: Sequence[Comparison]) -> str:
    """Write what came out, in a sentence for each data set and a line for each experiment."""
    tables = [c for c in comparisons if c.experiment.kind == "table"] or comparisons
    told = []
    for comparison in tables:
        loud, lead = "" if comparison.why_apart else ' class="lead"', lead_sentence(comparison)
        told += [f"<p{loud}>{escape(lead)}</p>"] if lead else []
        told += [f"<p>{escape(sentence)}</p>" for sentence in closeness(comparison)[:1]]
    rows = "".join(map(_overview_row, comparisons))
    return f"""{"".join(told)}
<nav aria-label="Contents"><div class="scroll"><table class="contents">
<thead><tr><th scope="col">experiment</th><th scope="col">data</th>
<th scope="col">does what the paper says of it hold?</th></tr></thead>
<tbody>{rows}</tbody></table></div></nav>
"""


def _overview_row(comparison: Comparison) -> str:
    judged = "<br>".join(
        f'<span class="{verdict.kind}">{SIGNS[verdict.kind]}</span> '
        f"{escape(verdict.words)}, {escape(verdict.settings)} settings"
        for verdict in verdicts(comparison)
    )
    quick = " <b>quick look</b>" if comparison.experiment.is_quick else ""
    return (
        f'<tr><th scope="row"><a href="#{comparison.name}">'
        f"{escape(comparison.experiment.title)}</a>{quick}</th>"
        f"<td>{escape(comparison.data)}</td><td>{judged or 'too few rows to say'}</td></tr>"
    )


def comparison_parts(
    comparison: Comparison, details: CellDetails, pictures: Sequence[Picture]
) -> str:
    """Write the section of one experiment on one data set."""
    experiment = comparison.experiment
    where = f"In the paper: {experiment.where}."
    table = _table(comparison, details) + _legend(comparison)
    if experiment.kind in FIGURE_KINDS:
        table = f"<details><summary>The values, as a table</summary>{table}</details>"
    figures = f'<div class="figures">{"".join(map(figure_part, pictures))}</div>'
    body = figures + table if experiment.kind in FIGURE_KINDS else table + figures
    return f"""<section id="{comparison.name}">
<h2>{escape(comparison.title)}</h2>
{_warning(comparison)}<p class="quiet">{escape(where)} {escape(protocol_sentence(comparison))}</p>
{_claims(comparison)}
{body}
</section>
"""


def _warning(comparison: Comparison) -> str:
    """Say loudly what is not the paper's."""
    protocol, told = comparison.protocol, []
    if comparison.experiment.is_quick:
        told.append(
            f"A quick look, not a reproduction: it learns from {protocol.stream:,} instances only."
        )
    if protocol.note:
        told.append(f"{protocol.note[0].upper()}{protocol.note[1:]}.")
    return f'<p class="loud">{escape(" ".join(told))}</p>\n' if told else ""


def _claims(comparison: Comparison) -> str:
    claims = "".join(
        f"<blockquote><p>The paper: {escape(claim)}</p></blockquote>"
        for claim in comparison.experiment.claims
    )
    judged = "".join(
        f'<p><span class="{verdict.kind}">{SIGNS[verdict.kind]} With '
        f"{escape(verdict.settings)} settings this {escape(verdict.words)}.</span> "
        f"{escape(' '.join(verdict.sentences))}</p>"
        for verdict in verdicts(comparison)
    )
    near = " ".join(closeness(comparison))
    # Figures share the cells of a table, which has named them.
    missing = "" if comparison.shares_cells else missing_sentence(comparison)
    return f"{claims}{judged}{f'<p>{escape(near)}</p>' if near else ''}" + (
        f'<p class="quiet">{escape(missing)}</p>' if missing else ""
    )


def _table(comparison: Comparison, details: CellDetails) -> str:
    experiment = comparison.experiment
    span = len(experiment.bits)
    over = "".join(
        f'<th scope="colgroup" colspan="{span}" class="first">{escape(heading(metric))}</th>'
        for metric in experiment.metrics
    )
    lengths = "".join(
        f'<th scope="col"{_first(comparison, bits)}>{bits} bits</th>'
        for _, bits in comparison.columns
    )
    bodies = "".join(_group(comparison, group, details) for group in comparison.groups)
    return (
        f'<div class="scroll"><table class="comparison"><thead><tr><td></td>{over}</tr>'
        f"<tr><td></td>{lengths}</tr></thead>{bodies}</table></div>"
    )


def _first(comparison: Comparison, bits: int) -> str:
    return ' class="first"' if bits == comparison.experiment.bits[0] else ""


def _group(comparison: Comparison, group: Group, details: CellDetails) -> str:
    width = len(comparison.columns) + 1
    rows = [
        f'<tr class="group"><th scope="rowgroup" colspan="{width}"><span>{escape(group.title)}'
        "</span></th></tr>"
    ]
    for entry in group.entries:
        words = run_note(comparison, entry.run)
        note = f"<small>{escape(words)}</small>" if words else ""
        cells = "".join(
            f"<td{_first(comparison, bits)}>"
            f"{_cell(comparison, group, entry, metric, bits, details)}</td>"
            for metric, bits in comparison.columns
        )
        label = escape(entry.run.label).replace(", ", ",<br>")
        rows.append(f'<tr><th scope="row">{label}{note}</th>{cells}</tr>')
    return f"<tbody>{''.join(rows)}</tbody>"


def _cell(
    comparison: Comparison,
    group: Group,
    entry: Entry,
    metric: str,
    n_bits: int,
    details: CellDetails,
) -> str:
    """Write ours with its deviation, below it the paper's with the difference."""
    paper = comparison.paper(entry.run, metric, n_bits)
    beside = f"<small>{brief(paper)}</small>" if paper is not None else ""
    line, mean = entry.lines.get(n_bits), entry.mean(metric, n_bits)
    if line is None or mean is None:
        return f"–{beside}"
    difference = comparison.difference(entry, metric, n_bits)
    if difference is not None:
        beside = f"<small>{brief(paper)} <i{_tint(difference)}>{signed(difference)}</i></small>"
    mark = {1: "b", 2: "u"}.get(group.place(entry, metric, n_bits), "span")
    std = line.std(metric)
    spread = "" if std is None else f'<span class="std">±{brief(std)}</span>'
    return (
        f'<button popovertarget="{details.name(line)}"><{mark}>{brief(mean)}</{mark}>{spread}'
        f"{beside}</button>"
    )


def _tint(difference: float) -> str:
    step = sum(abs(round(difference, 3)) > band for band in BANDS)  # of what is shown
    return f' class="{"up" if difference > 0 else "down"}{step}"' if step else ""


def _legend(comparison: Comparison) -> str:
    """Say how to read the table."""
    told = [
        "Ours is the mean over the seeds ± their standard deviation; "
        "<b>bold</b> is the best of its group, <u>underlined</u> the second.",
        "A click on a value, or Enter, opens its settings, seeds and commands.",
    ]
    columns = [
        (entry, metric, bits)
        for entry in comparison.entries()
        for metric, bits in comparison.columns
    ]
    if any(comparison.difference(*column) is not None for column in columns):
        tints = " ".join(
            f'<i class="{way}{step}">{sign}{brief(band)}</i>'
            for way, sign in (("down", "−"), ("up", "+"))
            for step, band in enumerate(BANDS, start=1)
        )
        told.append(f"Small: the paper's value, and ours minus it, tinted from these on: {tints}.")
    elif any(comparison.paper(entry.run, metric, bits) for entry, metric, bits in columns):
        told.append(
            "Small: the paper's value. No difference is taken, since "
            f"{escape(comparison.why_apart)}."
        )
    return f'<p class="quiet legend">{" ".join(told)}</p>'
