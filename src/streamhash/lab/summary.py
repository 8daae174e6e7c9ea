"""Rows of several seeds, gathered into the lines of a table."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamhash.lab.plan import find_method
from streamhash.lab.rows import Row, latest, row_key

__all__ = ["METRICS", "Line", "by_group", "summarise"]

# The five metrics of the papers: name in the row, heading, and what it says in plain words.
METRICS = {
    "map": ("mAP", "how near the top of the whole ranking the similar items stand"),
    "map@1000": ("mAP@1000", "the same, looking at the first 1000 results only"),
    "precision@h2": ("P@H2", "share of similar items within Hamming distance 2 (nothing found: 0)"),
    "precision@100": ("P@100", "share of similar items among the first 100 results"),
    "auc": ("AUC", "mean mAP over the stream: high for codes that are good early"),
}


@dataclass(frozen=True)
class Line:
    """One method, with its settings, on one data set at one code length: a row for each seed."""

    label: str
    data: str
    n_bits: int
    rows: tuple[Row, ...]

    @property
    def method(self) -> str:
        """Name of the method on the command line."""
        return str(self.rows[0]["method"])

    def values(self, metric: str) -> list[float]:
        """Values of a metric, one for each seed that has it."""
        found = [row["metrics"].get(metric) for row in self.rows]
        return [value for value in found if value is not None]

    def mean(self, metric: str) -> float | None:
        """Mean over the seeds; None if no row has the metric."""
        values = self.values(metric)
        return float(np.mean(values)) if values else None

    def std(self, metric: str) -> float | None:
        """Standard deviation over the seeds (n - 1); None with fewer than two."""
        values = self.values(metric)
        return float(np.std(values, ddof=1)) if len(values) > 1 else None

    def seconds(self, what: str) -> float:
        """Mean processor seconds spent on ``what``."""
        return float(np.mean([row["seconds"][what]["cpu"] for row in self.rows]))

    def text(self, metric: str) -> str:
        """Mean, and ± the deviation where there is one, as tables show it."""
        mean, std = self.mean(metric), self.std(metric)
        if mean is None:
            return "–"
        return f"{mean:.3f}" if std is None else f"{mean:.3f} ± {std:.3f}"


def summarise(rows: Iterable[Row]) -> list[Line]:
    """Gather rows that differ in the seed only; of rows of one cell the latest counts."""
    lines: dict[str, list[Row]] = defaultdict(list)
    for row in latest(rows):
        parameters = {**row["parameters"], "random_state": None}
        lines[row_key({**row, "seed": None, "parameters": parameters})].append(row)
    labels = _labels([members[0] for members in lines.values()])
    found = [
        Line(label, members[0]["data"], members[0]["n_bits"], tuple(members))
        for label, members in zip(labels, lines.values(), strict=True)
    ]
    order = list(dict.fromkeys(line.data for line in found))
    return sorted(found, key=lambda line: (order.index(line.data), line.n_bits))


def by_group(lines: Iterable[Line]) -> dict[tuple[str, int], list[Line]]:
    """Gather the lines that compare with one another: same data set and code length."""
    groups: dict[tuple[str, int], list[Line]] = defaultdict(list)
    for line in lines:
        groups[line.data, line.n_bits].append(line)
    return dict(groups)


def _labels(rows: list[Row]) -> list[str]:
    """Name lines by method and what was set; those still alike also by their stream and number."""
    labels = [_label(row) for row in rows]
    for more in (
        lambda row, _: f"{row['stream']:,} instances",
        lambda _, number: f"variant {number}",
    ):
        groups: list[Any] = [
            (label, row["data"], row["n_bits"]) for label, row in zip(labels, rows, strict=True)
        ]
        count, seen = Counter(groups), Counter[Any]()
        for i, group in enumerate(groups):
            if count[group] > 1:
                seen[group] += 1
                labels[i] += f" ({more(rows[i], seen[group])})"
    return labels


def _label(row: Row) -> str:
    words = [find_method(row["method"]).__name__]
    if row["settings"] != "default":
        words.append(row["settings"])
    return " ".join([*words, *(f"{name}={value}" for name, value in row["changes"].items())])
