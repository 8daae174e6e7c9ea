"""The five metrics as a table: for the terminal and for Markdown."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from streamhash.lab.summary import METRICS, Line, by_group

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

__all__ = ["Cells", "group_sizes", "group_title", "markdown_table", "rich_table", "table_cells"]

Cells = list[tuple[str, bool]]  # texts, and whether each is the best of its group
SECONDS = "learn, CPU s"
HEADINGS = ["method", *(heading for heading, _ in METRICS.values()), SECONDS]


def table_cells(lines: Sequence[Line]) -> Iterator[Cells]:
    """Yield the cells of the lines of one group, best values marked if there is a choice."""
    best = {
        metric: max((line.mean(metric) or 0.0 for line in lines), default=0.0) for metric in METRICS
    }
    for line in lines:
        values = [
            (line.text(metric), len(lines) > 1 and line.mean(metric) == best[metric])
            for metric in METRICS
        ]
        yield [(line.label, False), *values, (f"{line.seconds('learn'):.2f}", False)]


def group_title(lines: Sequence[Line]) -> str:
    """Say on what the lines of a group were measured."""
    return f"{lines[0].data}, {lines[0].n_bits} bits: {group_sizes(lines)}"


def group_sizes(lines: Sequence[Line]) -> str:
    """Say how much was learned from and searched, and how often."""
    row, seeds = lines[0].rows[0], max(len(line.rows) for line in lines)
    stream = " to ".join(f"{n:,}" for n in _ends(line.rows[0]["stream"] for line in lines))
    sizes = f"{row['queries']:,} queries, {row['database']:,} items, stream of {stream}"
    return sizes if seeds == 1 else f"{sizes}, mean ± std of {seeds} seeds"


def _ends(numbers: Iterable[int]) -> list[int]:
    """Return the least and the greatest, or the one that there is."""
    found = set(numbers)
    return sorted({min(found), max(found)})


def rich_table(lines: Sequence[Line]) -> "Group":
    """Make tables for the terminal, one for each data set and code length."""
    from rich.console import Group

    return Group(*(_one_table(group) for group in by_group(lines).values()))


def _one_table(lines: Sequence[Line]) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, title=group_title(lines), title_justify="left")
    table.title_style = "italic"
    for number, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if number else "left")
    for cells in table_cells(lines):
        table.add_row(*(Text(text, style="bold" if best else "") for text, best in cells))
    return table


def markdown_table(lines: Sequence[Line]) -> str:
    """Write the table in Markdown, best values bold, with a title line above each group."""
    parts = []
    for group in by_group(lines).values():
        rows = [HEADINGS, ["---"] + ["---:"] * (len(HEADINGS) - 1)]
        for cells in table_cells(group):
            rows.append([f"**{text}**" if best else text for text, best in cells])
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        parts.append(f"{group_title(group)}\n\n{table}\n")
    return "\n".join(parts)
