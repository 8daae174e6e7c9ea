"""What a report shows: every row in its place, and none lost in silence."""

from collections.abc import Iterable
from dataclasses import dataclass

from streamhash.lab.report.comparison import Comparison, compare_all
from streamhash.lab.report.words import join
from streamhash.lab.rows import Row, latest
from streamhash.lab.summary import Line, summarise

__all__ = ["Contents", "sort_rows"]


@dataclass(frozen=True)
class Contents:
    """Rows as comparisons with a paper, all other lines, and how many rows went where."""

    comparisons: tuple[Comparison, ...]
    rest: tuple[Line, ...]  # lines of no experiment, and those that belong beside them
    n_rows: int
    n_trials: int  # rows of a search for settings
    n_replaced: int  # rows of a cell that has a later one

    @property
    def has_lines(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.comparisons or self.rest)

    def _count(self) -> tuple[int, int]:
        """Count the rows of experiments and all others, each once."""
        compared = {id(line): line for each in self.comparisons for line in each.lines()}
        others = [line for line in self.rest if id(line) not in compared]
        return sum(len(line.rows) for line in compared.values()), sum(
            len(line.rows) for line in others
        )

    def account(self) -> str:
        """Say how many rows were used for what."""
        compared, others = self._count()
        told = {
            "in experiments of a paper": compared,
            "by data set and code length": others,
            "left out as trials of a search for settings": self.n_trials,
            "left out as their cells have later rows": self.n_replaced,
        }
        parts = [f"{number:,} {what}" for what, number in told.items() if number]
        return f"{self.n_rows:,} rows: {join(parts)}." if parts else "No rows."


def sort_rows(rows: Iterable[Row]) -> Contents:
    """Put rows where a report shows them; trials of a search for settings are no results."""
    given = list(rows)
    results = [row for row in given if row.get("split") != "validation"]
    lines = summarise(results)
    comparisons = tuple(compare_all(lines))
    compared = {id(line) for comparison in comparisons for line in comparison.lines()}
    others = {_contest(line) for line in lines if id(line) not in compared}
    return Contents(
        comparisons=comparisons,
        rest=tuple(line for line in lines if id(line) not in compared or _contest(line) in others),
        n_rows=len(given),
        n_trials=len(given) - len(results),
        n_replaced=len(results) - len(latest(results)),
    )


def _contest(line: Line) -> tuple[object, ...]:
    """Return what lines share that are compared with each other where no paper is.

    Only lines with default settings have company outside their experiment.
    """
    row = line.rows[0]
    alone = id(line) if row["settings"] != "default" else None
    return (line.data, line.n_bits, row["stream"], row["split"], row["checkpoints"], alone)
