"""Text, row by row: CSV with comma, semicolon or tab, and JSON lines."""

import csv
import json
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np

from streamhash.errors import FileError
from streamhash.files.columns import KNOWN_NAMES, METADATA, Piece, Request, Table, Taken

NUMBER = re.compile(r"-?(0|[1-9]\d{0,17})(\.\d+)?([eE][+-]?\d{1,2})?")

Rows = Iterator[tuple[int, Any]]  # cells or an object, each with the number of its line
Items = Iterator[tuple[Any, Any, Any, Any]]  # vector, id, label and metadata of each row


@contextmanager
def open_csv(request: Request) -> Iterator[Table]:
    """Open a CSV file; without a header its columns are called 0, 1, 2."""
    with request.open_text() as file:
        first_line = file.readline()
        delimiter = max("\t;,", key=first_line.count)
        reader = csv.reader(chain(filter(None, [first_line]), file), delimiter=delimiter)
        rows = ((reader.line_num, cells) for cells in reader if cells)
        top = list(islice(rows, 2))
        if not top:
            yield Table(request, Taken(), lambda _size: iter(()))
            return
        if _has_header([cells for _, cells in top], request):
            names = [name.strip() for name in top.pop(0)[1]]
        else:
            names = [str(i) for i in range(len(top[0][1]))]
        cells = dict(zip(names, top[0][1], strict=False)) if top else {}
        lists = {name for name, cell in cells.items() if cell.lstrip().startswith("[")}
        numbers = {name for name in names if _is_number(cells.get(name, ""))}
        taken = request.choose(names, lists.__contains__, numbers.__contains__)
        lists |= {*filter(None, [request.columns.vector])}
        items = _csv_items(request, taken, names, chain(top, rows), lists)
        read = partial(_pieces, request, taken, items, True)
        yield Table(request, taken, read, width=len(taken.vectors))


def _has_header(top: list[list[str]], request: Request) -> bool:
    """Tell whether the first row names the columns: by a known name, or as text over numbers.

    Names alone do not decide, as tools also write columns called 0, 1, 2.
    """
    first = [cell.strip() for cell in top[0]]
    known = chain(*KNOWN_NAMES.values(), [METADATA], request.columns.named())
    if any(name in first and not _is_number(name) for name in known):
        return True
    if len(top) < 2:
        return not any(map(_is_number, first))
    pairs = [*zip(first, top[1], strict=False)]
    return any(not _is_value(a) and _is_value(b) for a, b in pairs)


def _is_value(cell: str) -> bool:
    """Whether a cell is a number or a list, and so no name."""
    return _is_number(cell) or cell.lstrip().startswith("[")


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


def _csv_items(
    request: Request, taken: Taken, names: list[str], rows: Rows, lists: set[str]
) -> Items:
    at = {name: i for i, name in enumerate(names)}
    places = [at[name] for name in taken.vectors]
    is_list = bool(lists & {*taken.vectors})
    vector: Any = None
    for line, cells in rows:
        if len(cells) != len(names):
            raise request.error(
                f"has {len(cells)} cells in line {line} and {len(names)} in its first; save rows "
                "of one length.",
                FileError,
            )
        if is_list:
            name = taken.vectors[0]
            read = request.from_json(cells[at[name]], line)
            vector = request.check_list(read, vector and len(vector), line, name)
        elif taken.vectors:
            try:
                vector = array("f", [float(cells[i]) for i in places])
            except ValueError:  # an empty cell or a text: look at each
                numbers = (_number(cells[at[name]], line, name, request) for name in taken.vectors)
                vector = array("f", numbers)
        metadata: Any = None
        if taken.metadata == (METADATA,) and "metadata" in request.parts:
            metadata = request.from_json(cells[at[METADATA]].strip() or "null", line)
        elif taken.metadata and "metadata" in request.parts:
            metadata = {name: cells[at[name]].strip() for name in taken.metadata}
        yield (
            vector,
            None if taken.id is None else cells[at[taken.id]].strip(),
            None if taken.label is None else label_from_text(cells[at[taken.label]]),
            metadata,
        )


def _number(cell: str, line: int, name: str, request: Request) -> float:
    if not cell.strip():
        return math.nan
    try:
        return float(cell)
    except ValueError as error:
        raise request.error(
            f"has the text {cell!r} in line {line}, column {name!r}, where a number is wanted; "
            f"drop the column, or pass column={name!r} if it holds the labels."
        ) from error


@contextmanager
def open_jsonl(request: Request) -> Iterator[Table]:
    """Open JSON lines; the first tells which parts there are, but labels may come and go."""
    with request.open_text() as file:
        rows = _objects(file, request)
        first = next(rows, None)
        if first is None:
            yield Table(request, Taken(), lambda _size: iter(()))
            return
        keys = list(first[1])
        vector = request.find("vector", keys) if "vector" in request.parts else None
        if vector is None and "vector" in request.parts:
            text = f"has no vector, only {', '.join(keys) or 'nothing'}; name its key."
            raise request.error(text, at=f"line {first[0]} of ")
        label = request.columns.label
        # Items may be without a label, the first one too; rows of a table may not.
        if label is None or "id" not in request.parts:
            label = request.find("label", keys)
        taken = _taken(request, keys, vector, label)
        items = _json_items(request, taken, chain([first], rows))
        yield Table(request, taken, partial(_pieces, request, taken, items, False))


def _taken(request: Request, keys: list[str], vector: str | None, label: str | None) -> Taken:
    """Tell by the keys of the first line what is taken; further ones are metadata, if any are."""
    if request.columns.features:
        raise request.error("holds the features in one list; name it: Columns(vector='…').")
    id_name, metadata = request.find("id", keys), tuple(request.columns.metadata)
    if not metadata and METADATA in keys:
        metadata = (METADATA,)
    others = [key for key in keys if key not in (id_name, vector, label, *metadata)]
    left_out = request.matching(request.columns.ignore, others) if request.columns.ignore else []
    rest = [key for key in others if key not in left_out]
    if "id" in request.parts and id_name is None:
        request.ask_for_id(rest)
    if "metadata" in request.parts and "vector" in request.parts and not metadata:
        metadata, others = tuple(rest), left_out
    return Taken(id_name, tuple(filter(None, [vector])), label, metadata, tuple(others))


def _objects(file: Iterator[str], request: Request) -> Rows:
    for line, text in enumerate(file, start=1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except json.JSONDecodeError as error:
            said = (
                f"is not JSON ({error.msg}, column {error.colno}); write one whole object a line."
            )
            raise request.error(said, at=f"line {line} of ") from error
        except RecursionError as error:
            said = "has lists or objects in one another too many times; write fewer levels."
            raise request.error(said, at=f"line {line} of ") from error
        if not isinstance(row, dict):
            text = 'is not an object; write {"id": …, "vector": […]} in each.'
            raise request.error(text, at=f"line {line} of ")
        yield line, row


def _json_items(request: Request, taken: Taken, rows: Rows) -> Items:
    labels = [request.columns.label] if request.columns.label else KNOWN_NAMES["label"]
    # What is nothing else is metadata, unless these are named, or under a key of their own.
    is_rest = "metadata" in request.parts and not request.columns.metadata
    is_rest = is_rest and taken.metadata != (METADATA,)
    known = {taken.id, *taken.vectors, *labels, METADATA, *taken.ignored}
    vector: Any = None
    for line, row in rows:
        for name in (*taken.vectors, *filter(None, [taken.id])):
            if row.get(name) is None:
                text = f"has no {name!r}, and lines before have one; write it in every line."
                raise request.error(text, at=f"line {line} of ")
        for name in taken.vectors:
            vector = request.check_list(row[name], vector and len(vector), line, name)
        names = [name for name in row if name not in known] if is_rest else request.columns.metadata
        metadata = {name: row[name] for name in names if name in row}
        label = next((row[name] for name in labels if name in row), None)
        yield (
            vector,
            row.get(taken.id),
            label if request.find_labels else None,
            metadata or (None if request.columns.metadata else row.get(METADATA)),
        )


def _pieces(
    request: Request, taken: Taken, items: Items, ids_are_text: bool, size: int
) -> Iterator[Piece]:
    has_ids, id_kind = taken.id is not None and "id" in request.parts, request.id_kind
    readers: dict[str, Any] | None = None  # of the columns of metadata that CSV has as text
    while some := list(islice(items, size)):
        vectors, ids, labels, metadata = map(list, zip(*some, strict=True))
        if has_ids and ids_are_text:
            ids = ids_from_text(ids, id_kind)
            # What the first piece looks like, all are.
            id_kind = "strings" if isinstance(ids[0], str) else "whole numbers"
        if ids_are_text and taken.metadata and taken.metadata != (METADATA,) and metadata[0]:
            readers = readers or {n: _reader([row[n] for row in metadata]) for n in taken.metadata}
            metadata = [{name: readers[name](row[name]) for name in row} for row in metadata]
        has_labels = taken.label is not None or _has_some(labels)
        yield Piece(
            np.array(vectors, np.float32) if taken.vectors else None,
            ids if has_ids else None,
            labels if has_labels else None,
            metadata if "metadata" in request.parts and _has_some(metadata) else None,
        )


def _reader(cells: list[str]) -> Any:
    """Return what makes values of the cells of a column: numbers or truths if all of them are."""
    for read in (_number_from_text, _truth_from_text):
        if all(not isinstance(read(cell), str) for cell in cells) and any(cells):
            return read
    return lambda cell: cell or None


def _number_from_text(text: str) -> Any:
    """Return a number as people write it; other text, such as 007, stays text; none is None."""
    if NUMBER.fullmatch(text):
        return int(text) if _is_whole(text.removeprefix("-")) else float(text)
    return text or None


def _truth_from_text(text: str) -> Any:
    return {"true": True, "false": False, "": None}.get(text.lower(), text)


def _has_some(values: list[Any]) -> bool:
    return any(value is not None for value in values)


def ids_from_text(texts: Sequence[str], kind: str | None) -> list[Any]:
    """Return ids as they are in a collection with ids of this kind; of None, as they look.

    >>> ids_from_text(["1", "12"], None), ids_from_text(["1", "02"], None)
    ([1, 12], ['1', '02'])
    >>> ids_from_text(["1"], "strings")
    ['1']
    """
    if kind == "strings" or not all(_is_whole(text) for text in texts):
        return [*texts]
    return [int(text) for text in texts]


def label_from_text(text: str) -> Any:
    """Return a label: a whole number if it looks like one, None for an empty text.

    >>> [label_from_text(text) for text in ("7", "007", "cat", "")]
    [7, '007', 'cat', None]
    """
    text = text.strip()
    return int(text) if _is_whole(text.removeprefix("-")) else text or None


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdecimal() and (text == "0" or text[0] != "0")
