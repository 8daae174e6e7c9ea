"""All results as CSV, one line for each cell and metric: for spreadsheets and data frames."""

import csv
import io
from collections.abc import Iterable, Iterator

from streamhash.lab.report.comparison import Comparison
from streamhash.lab.report.contents import Contents
from streamhash.lab.summary import METRICS, Line

__all__ = ["CSV_FIELDS", "results_csv"]

CSV_FIELDS = (
    "experiment",
    "data",
    "method",
    "settings",
    "changes",
    "n_bits",
    "metric",
    "mean",
    "std",
    "n_seeds",
    "paper",
    "difference",
    "command",
    "version",
)
Record = dict[str, str | int | float | None]


def results_csv(contents: Contents) -> str:
    """Write the comparisons, then the lines of no experiment, whose first field is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_FIELDS, lineterminator="\n")
    writer.writeheader()
    for comparison in contents.comparisons:
        writer.writerows(_compared(comparison))
    writer.writerows(_others(contents.rest))
    return text.getvalue()


def _compared(comparison: Comparison) -> Iterator[Record]:
    experiment = comparison.experiment
    name = f"{experiment.name} (quick)" if experiment.is_quick else experiment.name
    for entry in comparison.entries():
        for metric, bits in comparison.columns:
            line = entry.lines.get(bits)
            if line is not None and line.values(metric):
                yield {
                    **_record(name, line, metric),
                    "paper": comparison.paper(entry.run, metric, bits),
                    "difference": comparison.difference(entry, metric, bits),
                }


def _others(lines: Iterable[Line]) -> Iterator[Record]:
    for line in lines:
        for metric in METRICS:
            if line.values(metric):
                yield _record("", line, metric)


def _record(experiment: str, line: Line, metric: str) -> Record:
    row = line.rows[0]
    return {
        "experiment": experiment,
        "data": line.data,
        "method": line.method,
        "settings": row["settings"],
        "changes": " ".join(f"{name}={value}" for name, value in row["changes"].items()),
        "n_bits": line.n_bits,
        "metric": metric,
        "mean": line.mean(metric),
        "std": line.std(metric),
        "n_seeds": len(line.values(metric)),
        "command": row["command"],
        "version": row["version"],
    }
