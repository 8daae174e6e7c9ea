"""Items as text in columns: CSV with comma, semicolon or tab."""

import csv
import itertools
import json
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError, InputError
from streamhash.files.csv_table import has_header, number_from_cell
from streamhash.files.items.piece import (
    GUESSES,
    METADATA,
    Columns,
    Piece,
    ids_from_text,
    label_from_text,
)

__all__ = ["csv_rows"]

Rows = list[tuple[int, list[str]]]  # each with the number of its line


def csv_rows(
    file: IO[str], place: str, columns: Columns, id_kind: str | None, with_vectors: bool, size: int
) -> Iterator[Piece]:
    """Read items from rows; without a header all columns are numbers of the vector."""
    head = file.readline()
    delimiter = max("\t;,", key=head.count)
    reader = csv.reader(itertools.chain([head] if head else [], file), delimiter=delimiter)
    rows = ((reader.line_num, cells) for cells in reader if cells)
    top = list(itertools.islice(rows, 2))
    if not top:
        return
    known = {name for names in GUESSES.values() for name in names} | {METADATA} | columns.named()
    if has_header([cells for _, cells in top], known):
        names = [name.strip() for name in top.pop(0)[1]]
    else:
        names = [str(i) for i in range(len(top[0][1]))]
    if len({*names}) < len(names):
        raise InputError(f"read_items: {place} has two columns of one name; give each its own.")
    table = _Table(names, place, columns, with_vectors)
    rest = itertools.chain(top, rows)
    while piece := list(itertools.islice(rest, size)):
        made = table.piece(piece, id_kind)
        if made.ids and id_kind is None:  # what the first piece looks like, all are
            id_kind = "strings" if isinstance(made.ids[0], str) else "whole numbers"
        yield made


class _Table:
    """Which column holds what."""

    def __init__(self, names: list[str], place: str, columns: Columns, with_vectors: bool) -> None:
        self.names, self.place = names, place
        self.id, self.label = (columns.find(part, names, place) for part in ("id", "label"))
        self.metadata = columns.find_metadata(names, place)
        self.is_json = not columns.metadata
        self.list = columns.find("vector", names, place) if with_vectors else None
        taken = {self.id, self.label, *self.metadata}
        self.numbers = [name for name in names if name not in taken and with_vectors]
        if with_vectors and self.list is None and not self.numbers:
            raise InputError(f"read_items: {place} has no columns for vectors; save them with it.")

    def piece(self, rows: Rows, id_kind: str | None) -> Piece:
        for line, cells in rows:
            if len(cells) != len(self.names):
                raise FileError(
                    f"read_items: {self.place} has {len(cells)} cells in line {line} and "
                    f"{len(self.names)} in its first; save rows of one length."
                )
        ids = labels = metadata = vectors = None
        if self.id is not None:
            ids = ids_from_text([cell.strip() for cell in self._cells(rows, self.id)], id_kind)
        if self.label is not None:
            labels = [label_from_text(cell) for cell in self._cells(rows, self.label)]
        if self.metadata and self.is_json:
            metadata = [
                self._json(cell, line) if cell.strip() else None
                for (line, _), cell in zip(rows, self._cells(rows, METADATA), strict=True)
            ]
        elif self.metadata:
            parts = zip(*(self._cells(rows, name) for name in self.metadata), strict=True)
            metadata = [dict(zip(self.metadata, part, strict=True)) for part in parts]
        if self.list is not None:
            vectors = self._lists(rows, self.list)
        elif self.numbers:
            vectors = self._numbers(rows)
        return Piece(vectors, ids, labels, metadata)

    def _cells(self, rows: Rows, name: str) -> list[str]:
        at = self.names.index(name)
        return [cells[at] for _, cells in rows]

    def _numbers(self, rows: Rows) -> NDArray[np.float32]:
        places = [self.names.index(name) for name in self.numbers]
        try:
            values = [[float(cells[at]) for at in places] for _, cells in rows]
        except ValueError:  # an empty cell or a text: look at each
            values = [
                [number_from_cell(cells[at], self.place, line, self.names[at]) for at in places]
                for line, cells in rows
            ]
        with np.errstate(over="ignore"):  # beyond float32: infinite, and refused as that
            return np.array(values, np.float64).astype(np.float32)

    def _lists(self, rows: Rows, name: str) -> NDArray[np.float32]:
        cells = zip(rows, self._cells(rows, name), strict=True)
        lists = [self._json(cell, line) for (line, _), cell in cells]
        try:
            array = np.array(lists, np.float32)
        except (TypeError, ValueError):
            array = np.empty(0, np.float32)
        if array.ndim != 2:
            raise InputError(
                f"read_items: column {name!r} of {self.place} has other things than lists of "
                f"numbers of one length in lines {rows[0][0]} to {rows[-1][0]}; mend them."
            )
        return array

    def _json(self, cell: str, line: int) -> Any:
        try:
            return json.loads(cell)
        except json.JSONDecodeError as error:
            raise InputError(
                f"read_items: {cell[:40]!r} in line {line} of {self.place} is not JSON; write it "
                "as JSON, or name the columns."
            ) from error
