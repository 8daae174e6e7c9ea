"""Result rows: one JSON object a line, only ever appended to; and the lines that tables show.

A row holds all that its cell of a table needs, so that tables, figures and pages are rebuilt from
rows and never typed. ``docs/cli.md`` lists the fields. A line of a table gathers the rows that
differ in their seed only.
"""

import json
import logging
import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from streamhash.errors import FileError
from streamhash.storage import new_parameters

Row = dict[str, Any]
ROWS_FILE = "rows.jsonl"
log = logging.getLogger("streamhash.lab")

# What makes two rows the same cell: all parameters, so that changed defaults are a new cell.
IDENTITY = (
    *("method", "settings", "parameters", "features", "data", "data_checksum", "n_bits"),
    *("seed", "stream", "queries_per_class", "checkpoints"),
)
# Came later: what a row without them was.
LATER = {
    **{"split": "all", "curve_metric": "map", "test_seeds": 0},
    **{"order": "shuffled", "label_noise": 0.0, "database_codes": "encoded", "query_share": None},
}
LATER_PARAMETERS: dict[str, Any] = {"memory": 0, "features": None}
# The five metrics of the papers, and mAP by class beside mAP: name in the row, heading, and what it
# says in plain words.
METRICS = {
    "map": ("mAP", "how near the top of the whole ranking the similar items stand"),
    "map_by_class": ("mAP by class", "its mean over the classes: a rare one counts as any other"),
    "map@1000": ("mAP@1000", "the same, looking at the first 1000 results only"),
    "precision@h2": ("P@H2", "share of similar items within Hamming distance 2 (nothing found: 0)"),
    "precision@100": ("P@100", "share of similar items among the first 100 results"),
    "auc": ("AUC", "mean mAP over the stream: high for codes that are good early"),
}


def row_key(row: Mapping[str, Any]) -> str:
    """Return what identifies the cell of a row, whatever its results: for resuming."""
    later = {name: row.get(name, default) for name, default in LATER.items()}
    later["parameters"] = {**LATER_PARAMETERS, **(row.get("parameters") or {})}
    return to_json({**{name: row.get(name) for name in IDENTITY}, **later}, sort=True)


def to_json(row: Mapping[str, Any], *, sort: bool = False) -> str:
    """Write a row as one line of strict JSON: what is not a number becomes null."""
    return json.dumps(strict_json(row), ensure_ascii=False, sort_keys=sort, allow_nan=False)


def strict_json(value: Any) -> Any:
    """Replace what strict JSON cannot hold: NaN and infinities become None."""
    if isinstance(value, Mapping):
        return {str(name): strict_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Append a row in a single write, and wait until it is on disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b", buffering=0) as file:
        line = (to_json(row) + "\n").encode()
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # a killed run left half a row: keep it apart from this one
                line = b"\n" + line
        file.write(line)
        os.fsync(file.fileno())


def read_rows(path: Path) -> list[Row]:
    """Read all rows; none if there is no file. Half a row of a killed run is skipped and logged."""
    if not path.exists():
        return []
    rows = []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            log.warning("%s: line %d is not a whole row and was skipped", path, number)
            continue
        if not isinstance(row, dict) or not {"method", "metrics", *IDENTITY} <= row.keys():
            raise FileError(
                f"{path}: line {number} is not a result row of streamhash; choose a folder whose "
                f"{ROWS_FILE} was written by streamhash bench."
            )
        rows.append({**LATER, **_with_class_mean(_by_new_names(row))})
    return rows


def _with_class_mean(row: Row) -> Row:
    """Return a row with mAP by class, also of a version that had none, where the two are one."""
    metrics = row["metrics"]
    if "map_by_class" in metrics or not row["queries_per_class"] or row.get("query_share"):
        return row
    return {**row, "metrics": {**metrics, "map_by_class": metrics.get("map")}}


def _by_new_names(row: Row) -> Row:
    """Return a row of version 0.1 as it is written now: it may differ from today's defaults.

    Parameters, also of its command, have their new names. Those that came later are added, and
    where they are on by default, as SDOH's memory is, the row tells that they were off.
    """
    if not str(row.get("version")).startswith("0.1."):
        return row
    method = str(row["method"])
    parameters, changes = (
        new_parameters(method, row.get(part) or {}) for part in ("parameters", "changes")
    )
    defaults = _defaults(method)
    parameters = {**defaults, **LATER_PARAMETERS, **parameters}
    command = re.sub(
        r"(?<=--set )(\w+)=(\S+)",
        lambda match: "=".join(*new_parameters(method, {match[1]: match[2]}).items()),
        row.get("command", ""),
    )
    if row["settings"] == "default":  # others name all that they need
        off = {k: v for k, v in LATER_PARAMETERS.items() if defaults.get(k, v) != v}
        changes = {**off, **changes}
        command += "".join(f" --set {name}={value}" for name, value in off.items())
    renamed = {"parameters": dict(sorted(parameters.items())), "changes": changes}
    return {**row, **renamed, "command": command}


@cache
def _defaults(method: str) -> dict[str, Any]:
    """Return the parameters of a method by default; nothing of one that is not in the library."""
    from streamhash.hashers import METHODS

    return METHODS[method]().get_params(deep=False) if method in METHODS else {}


def read_folder(folder: Path) -> list[Row]:
    """Read the rows of a folder, and of the folders in it: one for each data set, say."""
    places = [folder / ROWS_FILE, *sorted(folder.glob(f"*/{ROWS_FILE}"))]
    return [row for place in places for row in read_rows(place)]


def latest(rows: Iterable[Row]) -> list[Row]:
    """Keep the last row of every cell, in the order in which the cells first came."""
    return list({row_key(row): row for row in rows}.values())


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
        lines[seedless_key(row)].append(row)
    labels = _labels([members[0] for members in lines.values()])
    found = [
        Line(label, members[0]["data"], members[0]["n_bits"], tuple(members))
        for label, members in zip(labels, lines.values(), strict=True)
    ]
    order = list(dict.fromkeys(line.data for line in found))
    return sorted(found, key=lambda line: (order.index(line.data), line.n_bits))


def seedless_key(row: Row) -> str:
    """Return what rows of one setting share, whatever their seeds."""
    parameters = {**row["parameters"], "random_state": None}
    return row_key({**row, "seed": None, "parameters": parameters})


def by_group(lines: Iterable[Line]) -> dict[tuple[str, int], list[Line]]:
    """Gather the lines that compare with one another: same data set and code length."""
    groups: dict[tuple[str, int], list[Line]] = defaultdict(list)
    for line in lines:
        groups[line.data, line.n_bits].append(line)
    return dict(groups)


def method_name(method: str) -> str:
    """Return the name of a method as papers write it; the class of one with an import path.

    >>> method_name("sdoh"), method_name("package.module:MyHash")
    ('SDOH', 'MyHash')
    """
    from streamhash.hashers import METHODS

    return METHODS[method].__name__ if method in METHODS else method.rpartition(":")[2]


def describe_stream(cell: Mapping[str, Any]) -> str:
    """Say how a stream came; empty if shuffled, with the labels as they are.

    >>> describe_stream({"order": "sorted", "label_noise": 0.2})
    'sorted, 20 % wrong labels'
    """
    order, noise = (cell.get(name, LATER[name]) for name in ("order", "label_noise"))
    wrong = [f"{100 * noise:g} % wrong labels"] if noise else []
    return ", ".join([*([order] if order != LATER["order"] else []), *wrong])


def describe_database(cell: Mapping[str, Any]) -> str:
    """Say where the database's codes come from; empty if from the hash function.

    >>> describe_database({"database_codes": "labelled"})
    'database labelled'
    """
    codes = cell.get("database_codes", LATER["database_codes"])
    return f"database {codes}" if codes != LATER["database_codes"] else ""


def describe_items(rows: Iterable[Mapping[str, Any]]) -> str:
    """Say how many items are searched, and whether hash functions or labels have coded them.

    >>> describe_items([{"database": 69_000}])
    '69,000 items (encoded)'
    """
    rows = list(rows)
    codes = {row.get("database_codes", LATER["database_codes"]) for row in rows}
    return f"{rows[0]['database']:,} items ({' or '.join(sorted(codes))})"


def _labels(rows: list[Row]) -> list[str]:
    """Name lines by method and what was set; those still alike also by their stream and number."""
    labels = []
    for row in rows:
        settings = [row["settings"]] if row["settings"] != "default" else []
        changes = [f"{name}={value}" for name, value in row["changes"].items()]
        notes = describe_stream(row), describe_database(row)
        changes += [f"({each})" for each in notes if each]
        labels.append(" ".join([method_name(row["method"]), *settings, *changes]))
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
