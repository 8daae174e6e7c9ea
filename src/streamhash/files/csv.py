"""Rows of text: CSV with comma, semicolon or tab, with or without a header."""

import csv
import math
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice

import numpy as np

from streamhash.errors import FileError
from streamhash.files.columns import (
    KNOWN_NAMES,
    METADATA,
    Piece,
    Request,
    Table,
    Taken,
    ids_from_text,
    label_from_text,
)

__all__ = ["open_csv"]

Rows = Iterator[tuple[int, list[str]]]  # each with the number of its line


@contextmanager
def open_csv(request: Request) -> Iterator[Table]:
    """Open a file; without a header its columns are called 0, 1, 2."""
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
        lists = {
            name
            for _, cells in top[:1]
            for name, cell in zip(names, cells, strict=False)
            if cell.lstrip().startswith("[")
        }
        taken = request.choose(names, lists.__contains__)
        is_list = taken.vectors == (request.columns.vector,) or bool(lists & {*taken.vectors})
        table = _Reader(request, names, taken, is_list, chain(top, rows))
        yield Table(request, taken, table.pieces, width=len(taken.vectors))


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
    return any(not _is_number(a) and _is_number(b) for a, b in zip(first, top[1], strict=False))


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


class _Reader:
    """The rows after the header."""

    def __init__(
        self, request: Request, names: list[str], taken: Taken, is_list: bool, rows: Rows
    ) -> None:
        self.request, self.names, self.taken, self.is_list = request, names, taken, is_list
        self.rows = rows
        self.at = {name: i for i, name in enumerate(names)}
        self.width = None if is_list else len(taken.vectors)
        self.id_kind = request.id_kind

    def pieces(self, size: int) -> Iterator[Piece]:
        parts, taken = self.request.parts, self.taken
        has_ids = taken.id is not None and "id" in parts
        has_metadata = bool(taken.metadata) and "metadata" in parts
        n = size
        while n == size:
            n, values = 0, array("f")  # beyond float32: infinite, and the hasher's to judge
            ids, labels, metadata = [], [], []
            for line, cells in islice(self.rows, size):
                n += 1
                if len(cells) != len(self.names):
                    raise self.request.error(
                        f"has {len(cells)} cells in line {line} and {len(self.names)} in its "
                        "first; save rows of one length.",
                        FileError,
                    )
                if has_ids:
                    ids.append(cells[self.at[str(taken.id)]].strip())
                if taken.label is not None:
                    labels.append(label_from_text(cells[self.at[taken.label]]))
                if has_metadata:
                    metadata.append(self._metadata(cells, line))
                if taken.vectors:
                    self._add_numbers(values, cells, line)
            if not n:
                return
            rows = np.array(values, np.float32).reshape(n, self.width or 0)
            yield Piece(
                rows if taken.vectors else None,
                self._ids(ids) if has_ids else None,
                labels if taken.label is not None else None,
                metadata if has_metadata else None,
            )

    def _ids(self, texts: list[str]) -> list[int] | list[str]:
        ids = ids_from_text(texts, self.id_kind)
        # What the first piece looks like, all are.
        self.id_kind = "strings" if isinstance(ids[0], str) else "whole numbers"
        return ids

    def _metadata(self, cells: list[str], line: int) -> object:
        if not self.request.columns.metadata:
            return self.request.whole_metadata(cells[self.at[METADATA]], line)
        return {name: cells[self.at[name]] for name in self.taken.metadata}

    def _add_numbers(self, values: "array[float]", cells: list[str], line: int) -> None:
        names = self.taken.vectors
        if self.is_list:
            read = self.request.from_json(cells[self.at[names[0]]], line)
            numbers = self.request.check_list(read, self.width, line, names[0])
            self.width = len(numbers)
            values.extend(numbers)
            return
        before = len(values)
        try:
            values.extend(float(cells[self.at[name]]) for name in names)
        except ValueError:  # an empty cell or a text: look at each
            del values[before:]
            values.extend(self._number(cells[self.at[name]], line, name) for name in names)

    def _number(self, cell: str, line: int, name: str) -> float:
        if not cell.strip():
            return math.nan
        try:
            return float(cell)
        except ValueError as error:
            raise self.request.error(
                f"has the text {cell!r} in line {line}, column {name!r}, where a number is wanted; "
                f"drop the column, or pass column={name!r} if it holds the labels."
            ) from error
