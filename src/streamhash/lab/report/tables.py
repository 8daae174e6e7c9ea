"""The five metrics as a table: its cells, and the table for the terminal."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from streamhash.lab.rows import METRICS, Line, by_group

if TYPE_CHECKING:
    from rich.console import Group

SECONDS = "learn, CPU s"
HEADINGS = ["method", *(heading for heading, _ in METRICS.values()), SECONDS]


def table_cells(lines: Sequence[Line]) -> Iterator[list[tuple[str, bool]]]:
    """Yield the cells of the lines of one group: texts, and whether each is the best of several."""
    best = {
        metric: max((line.mean(metric) or 0.0 for line in lines), default=0.0) for metric in METRICS
    }
    for line in lines:
        values = [
            (line.text(metric), len(lines) > 1 and line.mean(metric) == best[metric])
            for metric in METRICS
        ]
        yield [(line.label, False), *values, (f"{line.seconds('learn'):.2f}", False)]


def group_name(lines: Sequence[Line]) -> str:
    """Return the name of a group, for files."""
    return f"{lines[0].data}-{lines[0].n_bits}"


def group_title(lines: Sequence[Line]) -> str:
    """Say on what the lines of a group were measured."""
    return f"{lines[0].data}, {lines[0].n_bits} bits: {group_sizes(lines)}"


def group_sizes(lines: Sequence[Line]) -> str:
    """Say how much was learned from and searched, and how often."""
    row, seeds = lines[0].rows[0], max(len(line.rows) for line in lines)
    streams = [line.rows[0]["stream"] for line in lines]
    stream = " to ".join(f"{n:,}" for n in sorted({min(streams), max(streams)}))
    sizes = f"{row['queries']:,} queries, {row['database']:,} items, stream of {stream}"
    return sizes if seeds == 1 else f"{sizes}, mean ± std of {seeds} seeds"


def rich_table(lines: Sequence[Line]) -> "Group":
    """Make tables for the terminal, one for each data set and code length."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    tables = []
    for group in by_group(lines).values():
        table = Table(box=box.SIMPLE_HEAD, title=group_title(group), title_justify="left")
        table.title_style = "italic"
        for number, heading in enumerate(HEADINGS):
            table.add_column(heading, justify="right" if number else "left")
        for cells in table_cells(group):
            table.add_row(*(Text(text, style="bold" if best else "") for text, best in cells))
        tables.append(table)
    return Group(*tables)
