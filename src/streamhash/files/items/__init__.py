"""Items in files, for a live collection: read piece by piece, never as a whole."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO

from streamhash.errors import InputError
from streamhash.files.items.csv_rows import csv_rows
from streamhash.files.items.json_lines import json_lines
from streamhash.files.items.numpy_rows import npy_rows, npz_rows, set_rows
from streamhash.files.items.parquet_rows import parquet_rows
from streamhash.files.items.piece import Columns, Piece, ids_from_text, label_from_text
from streamhash.files.tables import reading
from streamhash.lab.datasets.sets import available

__all__ = ["FORMS", "Columns", "Piece", "ids_from_text", "label_from_text", "read_items"]

FORMS = {
    ".npy": "npy",
    ".npz": "npz",
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
SIZE = 1000


def read_items(
    source: str | Path | IO[str],
    *,
    form: str | None = None,
    columns: Columns = Columns(),  # noqa: B008  it cannot change
    labels: Path | None = None,
    id_kind: str | None = None,
    with_vectors: bool = True,
    size: int = SIZE,
) -> Iterator[Piece]:
    """Read items, about ``size`` at a time.

    - JSON lines: an object a line, ``{"id": …, "vector": […], "label": …, "metadata": {…}}``.
    - CSV: a header with ``id``, ``label`` and ``metadata`` (JSON) where there are such columns;
      all others are numbers and together the vector, or a column ``vector`` holds JSON lists.
    - ``.parquet``: likewise; the vector is a column of lists, or all columns of numbers.
    - ``.npz``: arrays ``X`` (or ``features``), ``y`` (or ``labels``) and ``ids``.
    - ``.npy``: vectors alone.
    - The name of a data set.

    A label that is empty or null is none.

    Parameters
    ----------
    source : a file, the name of a data set, or text that is open (JSON lines or CSV)
    form : "npy", "npz", "parquet", "csv" or "jsonl"; what the file's ending says if None
    columns : names of other columns
    labels : a file of labels of its own, beside ``.npy``
    id_kind : "whole numbers" or "strings", what ids in CSV become; as they look if None
    with_vectors : False for ids and labels alone

    >>> import io
    >>> text = io.StringIO('{"id": "a", "vector": [1, 2]}\\n{"id": "b", "vector": [3, 4]}\\n')
    >>> [piece] = read_items(text, form="jsonl")
    >>> piece.ids, piece.vectors
    (['a', 'b'], array([[1., 2.], [3., 4.]], dtype=float32))
    """
    if not isinstance(source, str | Path):
        yield from _read_text(source, "standard input", form, columns, id_kind, with_vectors, size)
        return
    path = Path(source)
    if str(source) in {card.name for card in available()} and not path.exists():
        yield from set_rows(str(source), size)
        return
    form = form or FORMS.get(path.suffix.lower())
    if form is None:
        raise InputError(
            f"read_items: {path} does not end in {', '.join(FORMS)}; pass its form, such as jsonl."
        )
    if labels is not None and form != "npy":
        raise InputError(
            f"read_items: labels in a file of their own go with .npy; those of {path} are in it."
        )
    with reading(path):
        if form == "npy":
            yield from npy_rows(path, labels, size)
        elif form == "npz":
            yield from npz_rows(path, columns, with_vectors, size)
        elif form == "parquet":
            yield from parquet_rows(path, columns, with_vectors, size)
        else:
            with path.open(encoding="utf-8-sig", newline="") as file:
                yield from _read_text(file, str(path), form, columns, id_kind, with_vectors, size)


def _read_text(
    file: IO[str],
    place: str,
    form: str | None,
    columns: Columns,
    id_kind: str | None,
    with_vectors: bool,
    size: int,
) -> Iterator[Piece]:
    if form == "jsonl":
        return json_lines(file, place, columns, with_vectors, size)
    if form == "csv":
        return csv_rows(file, place, columns, id_kind, with_vectors, size)
    raise InputError(f"read_items: {place} is read as text; its form is jsonl or csv, not {form}.")
