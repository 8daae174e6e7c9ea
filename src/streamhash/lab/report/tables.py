"""The metrics as a table: its cells, and the table for the terminal."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamhash.lab.rows import METRICS, Line, by_group, describe_items

if TYPE_CHECKING:
    from rich.console import Group

SECONDS = "learn, CPU s"
MOST_COLUMNS = 10  # of values, that fit on a page
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
    items = describe_items(line.rows[0] for line in lines)
    sizes = f"{row['queries']:,} queries, {items}, stream of {stream}"
    return sizes if seeds == 1 else f"{sizes}, mean ± std of {seeds} seeds"


@dataclass(frozen=True)
class PaperTable:
    """Lines of one data set as papers print them: a row a method, a column a metric and length."""

    name: str  # for labels
    lines: tuple[Line, ...]
    metrics: tuple[str, ...]
    lengths: tuple[int, ...]

    @property
    def columns(self) -> list[tuple[str, int]]:
        """Code lengths for each metric."""
        return [(metric, bits) for metric in self.metrics for bits in self.lengths]

    @property
    def rows(self) -> dict[str, dict[int, Line]]:
        """The lines of each label by code length, in the order in which the labels came."""
        found: dict[str, dict[int, Line]] = {}
        for line in self.lines:
            found.setdefault(line.label, {})[line.n_bits] = line
        return found

    def place(self, line: Line, metric: str) -> int:
        """Return 1 for the best at its code length, 2 for the second, by the digits shown."""
        means = [each.mean(metric) for each in self.lines if each.n_bits == line.n_bits]
        values = sorted({round(mean, 3) for mean in means if mean is not None}, reverse=True)
        mean = line.mean(metric)
        if mean is None or len(values) < 2:
            return 0
        place = values.index(round(mean, 3)) + 1
        return place if place <= 2 else 0


def paper_tables(lines: Iterable[Line]) -> Iterator[PaperTable]:
    """Yield tables for a paper, one for each data set, or several where it would be too wide."""
    by_data: dict[str, list[Line]] = {}
    for line in lines:
        by_data.setdefault(line.data, []).append(line)
    for data, members in by_data.items():
        lengths = tuple(sorted({line.n_bits for line in members}))
        metrics = [metric for metric in METRICS if any(line.values(metric) for line in members)]
        at_once = max(1, MOST_COLUMNS // len(lengths))
        for start in range(0, len(metrics), at_once):
            shown = tuple(metrics[start : start + at_once])
            number = f"-{start // at_once + 1}" if len(metrics) > at_once else ""
            yield PaperTable(f"{data}{number}", tuple(members), shown, lengths)


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
