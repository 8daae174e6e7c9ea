"""Result rows: one JSON object a line, only ever appended to.

A row holds all that its cell of a table needs, so that tables, figures and pages are rebuilt from
rows and never typed. ``docs/cli.md`` lists the fields.
"""

import json
import logging
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from streamhash.errors import FileError
from streamhash.storage import new_parameters

__all__ = [
    "ROWS_FILE",
    "Row",
    "append_row",
    "latest",
    "read_folder",
    "read_rows",
    "row_key",
    "strict_json",
    "to_json",
]

Row = dict[str, Any]
ROWS_FILE = "rows.jsonl"
log = logging.getLogger("streamhash.lab")

# What makes two rows the same cell: all parameters, so that changed defaults are a new cell.
IDENTITY = (
    "method",
    "settings",
    "parameters",
    "features",
    "data",
    "data_checksum",
    "n_bits",
    "seed",
    "stream",
    "queries_per_class",
    "checkpoints",
)
# Came later: what a row without them was.
LATER = {"split": "all", "curve_metric": "map", "test_seeds": 0}


def row_key(row: Mapping[str, Any]) -> str:
    """Return what identifies the cell of a row, whatever its results: for resuming."""
    later = {name: row.get(name, default) for name, default in LATER.items()}
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
        rows.append({**LATER, **_by_new_names(row)})
    return rows


def _by_new_names(row: Row) -> Row:
    """Return a row of version 0.1 with its parameters as they are called now."""
    method = str(row["method"])
    parameters, changes = (
        new_parameters(method, row.get(part) or {}) for part in ("parameters", "changes")
    )
    if method in ("hmoh", "okh"):
        parameters = {"anchors": None, **parameters}  # came later
    return {**row, "parameters": dict(sorted(parameters.items())), "changes": changes}


def read_folder(folder: Path) -> list[Row]:
    """Read the rows of a folder, and of the folders in it: one for each data set, say."""
    places = [folder / ROWS_FILE, *sorted(folder.glob(f"*/{ROWS_FILE}"))]
    return [row for place in places for row in read_rows(place)]


def latest(rows: Iterable[Row]) -> list[Row]:
    """Keep the last row of every cell, in the order in which the cells first came."""
    return list({row_key(row): row for row in rows}.values())
