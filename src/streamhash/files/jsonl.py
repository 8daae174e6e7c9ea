"""JSON lines: an object a line."""

import json
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import IO, Any

import numpy as np

from streamhash.errors import InputError
from streamhash.files.columns import KNOWN_NAMES, METADATA, Piece, Request, Table, Taken

__all__ = ["open_jsonl"]

Line = tuple[int, dict[str, Any]]  # an object with the number of its line


@contextmanager
def open_jsonl(request: Request) -> Iterator[Table]:
    """Open a file; the first line tells which parts there are, but labels may come and go."""
    with request.open_text() as file:
        lines = _objects(file, request)
        first = next(lines, None)
        if first is None:
            yield Table(request, Taken(), lambda _size: iter(()))
            return
        number, keys = first[0], list(first[1])
        vector = request.find("vector", keys) if "vector" in request.parts else None
        if vector is None and "vector" in request.parts:
            raise InputError(
                f"{request.place}: line {number} of {request.name} has no vector, only "
                f"{', '.join(keys) or 'nothing'}; name its key."
            )
        label = request.columns.label
        # Items may be without a label, the first one too; rows of a table may not.
        if label is None or "id" not in request.parts:
            label = request.find("label", keys)
        taken = Taken(
            request.find("id", keys),
            () if vector is None else (vector,),
            label,
            request.columns.metadata or tuple({METADATA} & {*keys}),
        )
        rows = chain([first], lines)
        yield Table(request, taken, lambda size: _pieces(request, taken, rows, size))


def _objects(file: IO[str], request: Request) -> Iterator[Line]:
    for number, text in enumerate(file, start=1):
        if not text.strip():
            continue
        at = f"{request.place}: line {number} of {request.name}"
        try:
            row = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(
                f"{at} is not JSON ({error.msg}, column {error.colno}); write one whole object a "
                "line."
            ) from error
        if not isinstance(row, dict):
            raise InputError(f'{at} is not an object; write {{"id": …, "vector": […]}} in each.')
        yield number, row


def _pieces(request: Request, taken: Taken, lines: Iterator[Line], size: int) -> Iterator[Piece]:
    width = None
    while some := list(islice(lines, size)):
        values = array("f")
        for line in some if taken.vectors else ():
            vector = _need(line, taken.vectors[0], request)
            width = len(request.check_list(vector, width, line[0], taken.vectors[0]))
            values.extend(vector)
        rows = np.array(values, np.float32).reshape(len(some), width or 0)
        yield Piece(
            rows if taken.vectors else None,
            None if taken.id is None else [_need(line, taken.id, request) for line in some],
            [_label(row, request) for _, row in some],
            [_metadata(row, request) for _, row in some] if "metadata" in request.parts else None,
        )


def _need(line: Line, name: str, request: Request) -> Any:
    number, row = line
    if row.get(name) is None:
        raise InputError(
            f"{request.place}: line {number} of {request.name} has no {name!r}, and lines before "
            "have one; write it in every line."
        )
    return row[name]


def _label(row: dict[str, Any], request: Request) -> Any:
    if not request.find_labels:
        return None
    names = [request.columns.label] if request.columns.label else KNOWN_NAMES["label"]
    return next((row[name] for name in names if name in row), None)


def _metadata(row: dict[str, Any], request: Request) -> Any:
    if not request.columns.metadata:
        return row.get(METADATA)
    return {name: row[name] for name in request.columns.metadata if name in row} or None
