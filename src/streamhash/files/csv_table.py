"""Tables as text: .csv."""

import csv
import itertools
import math
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError, InputError
from streamhash.files.columns import LABEL_NAMES, as_labels, choose_columns

__all__ = ["has_header", "number_from_cell", "read_csv"]


def read_csv(
    path: Path, column: str | None, find_labels: bool
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Read a .csv; ``find_labels`` False takes all columns for features."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        delimiter = max("\t;,", key=file.readline().count)
        file.seek(0)
        reader = csv.reader(file, delimiter=delimiter)
        rows = ((reader.line_num, cells) for cells in reader if cells)
        top = list(itertools.islice(rows, 2))
        if not top:
            raise FileError(f"read_table: {path} is empty; save at least one row.")
        wanted = (column,) if column is not None else LABEL_NAMES
        if has_header([cells for _, cells in top], wanted if find_labels else ()):
            names = [name.strip() for name in top.pop(0)[1]]
        else:
            names = [str(i) for i in range(len(top[0][1]))]
        features, label = choose_columns(names, column, find_labels, path)
        at = None if label is None else names.index(label)
        return _collect(path, itertools.chain(top, rows), features, at)


def has_header(top: list[list[str]], wanted: Iterable[str]) -> bool:
    """Tell whether the first row names the columns: by a wanted name, or as text over numbers.

    Names alone do not decide, as tools also write columns called 0, 1, 2.
    """
    first = [cell.strip() for cell in top[0]]
    if any(name in first and not _is_number(name) for name in wanted):
        return True
    if len(top) < 2:
        return not any(map(_is_number, first))
    return any(not _is_number(a) and _is_number(b) for a, b in zip(first, top[1], strict=False))


def _collect(
    path: Path, rows: Iterable[tuple[int, list[str]]], features: list[str], at: int | None
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Read all rows, with the labels in column number ``at`` if there are any."""
    width = len(features) + (at is not None)
    values, labels = array("f"), []
    for line, cells in rows:
        if len(cells) != width:
            raise FileError(
                f"read_table: {path} has {len(cells)} cells in line {line} and {width} in "
                "its first; save rows of one length."
            )
        if at is not None:
            labels.append(cells.pop(at).strip())
        before = len(values)
        try:
            values.extend(map(float, cells))
        except ValueError:  # an empty cell or a text: look at each
            del values[before:]
            for name, cell in zip(features, cells, strict=True):
                values.append(number_from_cell(cell, path, line, name))
    X = np.array(values, np.float32).reshape(-1, len(features))
    return X, None if at is None else as_labels(labels, path)


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


def number_from_cell(cell: str, path: Path | str, line: int, name: str) -> float:
    """Return the number in a cell, NaN if it is empty; say where there is a text."""
    if not cell.strip():
        return math.nan
    try:
        return float(cell)
    except ValueError as error:
        raise InputError(
            f"read_table: {path} has the text {cell!r} in line {line}, column {name!r}, where a "
            f"number is wanted; drop the column, or pass column={name!r} if it holds the labels."
        ) from error
