"""Items as JSON lines: an object a line."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError
from streamhash.files.items.piece import METADATA, Columns, Piece

__all__ = ["json_lines"]

Lines = list[tuple[int, dict[str, Any]]]  # each with its number in the file


def json_lines(
    file: IO[str], place: str, columns: Columns, with_vectors: bool, size: int
) -> Iterator[Piece]:
    """Read items from lines; the first one tells which parts there are, labels may come and go."""
    lines = _objects(file, place)
    first = list(islice(lines, size))
    if not first:
        return
    there = first[0][1]
    id_name = columns.find("id", there, place)
    vector = columns.find("vector", there, place) if with_vectors else None
    if with_vectors and vector is None:
        raise InputError(
            f"read_items: line {first[0][0]} of {place} has no vector, only "
            f"{', '.join(there) or 'nothing'}; name its key."
        )
    width = None
    while first:
        rows = None
        if vector is not None:
            rows = _vectors(first, vector, width, place)
            width = rows.shape[1]
        yield Piece(
            rows,
            None if id_name is None else [_need(row, id_name, place) for row in first],
            [_label(row, columns) for _, row in first],
            [_metadata(row, columns) for _, row in first],
        )
        first = list(islice(lines, size))


def _objects(file: IO[str], place: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(
                f"read_items: line {number} of {place} is not JSON ({error.msg}, column "
                f"{error.colno}); write one whole object a line."
            ) from error
        if not isinstance(row, dict):
            raise InputError(
                f"read_items: line {number} of {place} is not an object; write "
                '{"id": …, "vector": […]} in each.'
            )
        yield number, row


def _need(line: tuple[int, dict[str, Any]], name: str, place: str) -> Any:
    number, row = line
    if row.get(name) is None:
        raise InputError(
            f"read_items: line {number} of {place} has no {name!r}, and lines before have one; "
            "write it in every line."
        )
    return row[name]


def _vectors(lines: Lines, name: str, width: int | None, place: str) -> NDArray[np.float32]:
    rows = []
    for line in lines:
        vector = _need(line, name, place)
        width = len(vector) if width is None and isinstance(vector, list) else width
        if (
            not isinstance(vector, list)
            or len(vector) != width
            or not all(type(value) in (float, int) for value in vector)
        ):
            raise InputError(
                f"read_items: {name!r} in line {line[0]} of {place} is not a list of "
                f"{width or 'some'} numbers, as in the first line; write one of that length."
            )
        rows.append(vector)
    with np.errstate(over="ignore"):  # beyond float32: infinite, and refused as that
        return np.array(rows, np.float64).astype(np.float32)


def _label(row: dict[str, Any], columns: Columns) -> Any:
    if columns.label is not None:
        return row.get(columns.label)
    return row.get("label", row.get("y"))


def _metadata(row: dict[str, Any], columns: Columns) -> Any:
    if not columns.metadata:
        return row.get(METADATA)
    return {name: row[name] for name in columns.metadata if name in row} or None
