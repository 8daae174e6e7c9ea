r"""Comparisons with a paper as LaTeX tables in the paper's form: plain ``tabular``, no packages."""

from collections.abc import Sequence
from itertools import groupby

from streamhash.lab.report.comparison import Comparison, Entry, Group, brief, heading, method_name
from streamhash.lab.report.verdicts import protocol_sentence

__all__ = ["TABLE_KINDS", "escape_latex", "latex_tables"]

TABLE_KINDS = ("table", "auc", "ablation", "unseen")
SPECIAL = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "±": r"$\pm$",
    "−": "$-$",
    "×": r"$\times$",
}


def latex_tables(comparisons: Sequence[Comparison]) -> str:
    """Write a ``table*`` for each comparison that is a table and for each kind of settings."""
    tables = []
    for comparison in comparisons:
        if comparison.experiment.kind not in TABLE_KINDS:
            continue
        for _, groups in groupby(comparison.groups, key=lambda group: group.settings):
            tables.append(_table(comparison, list(groups)))
    return "\n".join(tables)


def escape_latex(text: str) -> str:
    r"""Write text so that LaTeX prints it as it is.

    >>> escape_latex("P@H2, 50 % of a_b")
    'P@H2, 50 \\% of a\\_b'
    """
    return "".join(SPECIAL.get(sign, sign) for sign in text)


def _table(comparison: Comparison, groups: Sequence[Group]) -> str:
    experiment = comparison.experiment
    n_bits, n_metrics = len(experiment.bits), len(experiment.metrics)
    form = "c" + f"|{'c' * n_bits}" * n_metrics
    last = len(experiment.metrics) - 1
    over = [
        rf"\multicolumn{{{n_bits}}}{{c{'|' if number < last else ''}}}"
        rf"{{{escape_latex(heading(metric))}}}"
        for number, metric in enumerate(experiment.metrics)
    ]
    lengths = [f"{bits}-bit" for _, bits in comparison.columns]
    body = [_row(["Method", *over]), _row(["", *lengths]), r"\hline"]
    for number, group in enumerate(groups):
        if number:
            body.append(r"\hline")
        for entry in group.entries:
            body += _rows(comparison, group, entry)
    return "\n".join(
        [
            r"\begin{table*}[t]",
            r"\centering",
            rf"\caption{{{_caption(comparison, groups)}}}",
            rf"\label{{tab:{comparison.name}-{groups[0].settings}}}",
            r"\small\setlength{\tabcolsep}{4pt}",
            rf"\begin{{tabular}}{{{form}}}",
            r"\hline",
            *body,
            r"\hline",
            r"\end{tabular}",
            r"\end{table*}",
            "",
        ]
    )


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _rows(comparison: Comparison, group: Group, entry: Entry) -> list[str]:
    """Write the line of an entry and, where the paper prints it too, the paper's below it."""
    cells = [_cell(group, entry, metric, bits) for metric, bits in comparison.columns]
    rows = [_row([escape_latex(_label(comparison, entry)), *cells])]
    printed = [comparison.paper(entry.run, metric, bits) for metric, bits in comparison.columns]
    if any(value is not None for value in printed):
        values = [rf"{{\scriptsize {escape_latex(brief(value))}}}" for value in printed]
        rows.append(_row([r"{\scriptsize as printed}", *values]))
    return rows


def _label(comparison: Comparison, entry: Entry) -> str:
    """Name a line; the parts of an ablation by their notes, whose names are short."""
    if comparison.experiment.kind == "ablation" and entry.run.changes and entry.run.note:
        return f"{method_name(entry.run.method)}, {entry.run.note.split(':')[0]}"
    return entry.run.label


def _cell(group: Group, entry: Entry, metric: str, n_bits: int) -> str:
    mean, line = entry.mean(metric, n_bits), entry.lines.get(n_bits)
    if mean is None or line is None:
        return "--"
    mark = {1: r"\textbf", 2: r"\underline"}.get(group.place(entry, metric, n_bits))
    text = f"{mark}{{{brief(mean)}}}" if mark else brief(mean)
    std = line.std(metric)
    return text if std is None else rf"{text}{{\scriptsize$\pm${brief(std)}}}"


def _caption(comparison: Comparison, groups: Sequence[Group]) -> str:
    lines = [line for group in groups for entry in group.entries for line in entry.lines.values()]
    versions = sorted({str(row["version"]) for line in lines for row in line.rows})
    words = (
        f"{comparison.title}. {protocol_sentence(comparison, lines)} "
        f"{groups[0].settings.capitalize()} settings; mean ± standard deviation; "
        f"streamhash {', '.join(versions)}."
    )
    apart = comparison.why_apart
    marks = r" The best is bold, the second best \underline{underlined}, in each part."
    more = f" Not comparable with the printed values: {apart}." if apart else ""
    return escape_latex(words) + marks + escape_latex(more)
