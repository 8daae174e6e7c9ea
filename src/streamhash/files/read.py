"""Reading files of every format: as arrays, or as items piece by piece."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError, InputError
from streamhash.files.columns import PARTS, Columns, Piece, Request, Table, as_labels, check_labels
from streamhash.files.mat import open_mat
from streamhash.files.numpy import array_pieces, load_npy, open_npy, open_npz
from streamhash.files.parquet import open_parquet
from streamhash.files.text import label_from_text, open_csv, open_jsonl
from streamhash.labels import label_lists

FORMATS = {
    "npy": open_npy,
    "npz": open_npz,
    "parquet": open_parquet,
    "csv": open_csv,
    "tsv": open_csv,
    "jsonl": open_jsonl,
    "ndjson": open_jsonl,
    "mat": open_mat,
}
ROWS_AT_ONCE = 16_384  # in memory beside the result, while a whole table is read
ITEMS_AT_ONCE = 1000

log = logging.getLogger("streamhash.files")

Source = str | Path | IO[str]
Arrays = tuple[NDArray[Any], NDArray[Any] | None]  # features (n, d) and labels


@contextmanager
def open_table(
    source: Source,
    *,
    format: str | None = None,
    columns: Columns = Columns(),  # noqa: B008  it cannot change
    place: str = "open_table",
    log_columns: bool = True,
    **more: Any,
) -> Iterator[Table]:
    """Open a file, or text that is open: what it holds, and its rows piece by piece.

    Which columns hold what is ``taken`` of the table, and logged by ``streamhash.files`` (INFO).

    Parameters
    ----------
    source : a file, or text that is open (JSON lines or CSV)
    format : "npy", "npz", "parquet", "csv", "jsonl" or "mat"; None = what the file's ending says
    columns : names of other columns than the usual ones
    place : what error messages begin with
    log_columns : False for files whose columns nobody has to be told of, such as a named data set's
    more : ``parts``, ``find_labels`` and ``id_kind`` of the request
    """
    if isinstance(source, str | Path):
        source = Path(source)
        format = format or source.suffix[1:].lower()
        if format not in FORMATS:
            *endings, last = (f".{ending}" for ending in FORMATS)
            raise InputError(
                f"{place}: {source} does not end in {', '.join(endings)} or {last}; save it as one "
                "of these, or pass its format."
            )
    elif FORMATS.get(format or "") not in (open_csv, open_jsonl):
        raise InputError(
            f"{place}: standard input is read as text; its format is jsonl or csv, not {format}."
        )
    request = Request(place, source, str(format), columns.split(), **more)
    with ExitStack() as stack:
        with request.reading():
            table = stack.enter_context(FORMATS[str(format)](request))
        if log_columns and any(table.taken):
            log.info("%s: %s.", request.name, table.taken)
        yield table


def read_table(
    path: str | Path,
    *,
    labels: str | Path | None = None,
    column: str | int | None = None,
    columns: Columns = Columns(),  # noqa: B008  it cannot change
) -> Arrays:
    """Read features X (n, d) and labels y from a file; y is None where there are none.

    - ``.npy``: the features, memory-mapped as they are stored; labels come from ``labels``.
    - ``.npz``: arrays ``X`` and ``y``, or ``features`` and ``labels``; ``column`` names another
      array of labels.
    - ``.csv``, ``.tsv``: separated by comma, semicolon or tab, with or without a header row; an
      empty cell is NaN. ``column`` names the labels (a number from 0 if there is no header), else
      a column ``label`` or ``y`` is taken. A column of JSON lists holds the features, or all
      columns of numbers do, in order, but for ids (``id``, ``item_id``, …) and labels. Numbered
      columns (``x0``, ``x1``, …) beside other numbers are refused: ``columns`` says which it is.
    - ``.parquet`` (needs pyarrow): as ``.csv``, with lists as columns of lists.
    - ``.jsonl``, ``.ndjson``: an object a line, ``{"vector": […], "label": …}``.
    - ``.mat`` (needs h5py for MATLAB's format 7.3): fields ``X``, ``features`` or ``pca_feats``
      with ``y`` or ``labels`` of whole numbers; or ``trainCNN``, ``trainLabels``, ``testCNN`` and
      ``testLabels``. ``column`` names another field of labels. Items may be rows or columns: it
      is seen from the number of labels.

    Labels are one a row, or a multi-label matrix (n, C) of 0 and 1 in ``.npy``, ``.npz`` and
    ``.mat`` (in ``.parquet`` a column of lists).
    Features are float32, and as stored in ``.npy``. Pickled objects are never loaded. NaN and
    infinities pass: the hasher judges them.

    Parameters
    ----------
    path : the file
    labels : a file of labels of its own: ``.npy``, or ``.txt`` or ``.csv`` with one a line. Then
        no column of ``path`` is taken for labels.
    column : name of the label column
    columns : names of the other columns: ``Columns(features=("x*",))``, ``Columns(vector="emb")``

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "items.csv")
    ...     _ = path.write_text("width,height,label\\n1,2,cat\\n3,4,dog\\n")
    ...     X, y = read_table(path)
    >>> X, y
    (array([[1., 2.], [3., 4.]], dtype=float32), array(['cat', 'dog'], dtype='<U3'))
    """
    if labels is not None and column is not None:
        raise InputError(
            f"read_table: labels={str(labels)!r} and column={column!r} both name the labels; "
            "pass one of them."
        )
    columns = columns if column is None else columns._replace(label=str(column))
    read = read_whole(
        path, labels=labels, columns=columns, parts=("vector", "label"), place="read_table"
    )
    assert read.vectors is not None  # they were asked for
    return read.vectors, read.labels


def read_whole(
    path: str | Path,
    *,
    labels: str | Path | None = None,
    columns: Columns = Columns(),  # noqa: B008  it cannot change
    parts: Sequence[str] = PARTS,
    place: str = "read_whole",
    log_columns: bool = True,
) -> Piece:
    """Read a file as one piece: what :func:`read_table` reads, with its ids and metadata.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "items.csv")
    ...     _ = path.write_text('id,title,vector\\np,Pear,"[1, 2]"\\nq,Quince,"[3, 4]"\\n')
    ...     piece = read_whole(path)
    >>> piece.ids, piece.metadata
    (['p', 'q'], [{'title': 'Pear'}, {'title': 'Quince'}])
    """
    with open_table(
        path,
        columns=columns,
        place=place,
        log_columns=log_columns,
        parts=parts,
        find_labels=labels is None,
    ) as table:
        piece = _join(table) if table.mapped is None else Piece(table.mapped)
    assert piece.vectors is not None  # they were asked for
    if not piece.vectors.size:
        shape = piece.vectors.shape
        raise table.request.error(f"is empty, of shape {shape}; save at least one row.")
    if labels is None:
        return piece
    return piece._replace(labels=read_labels(Path(labels), len(piece.vectors)))


def _join(table: Table) -> Piece:
    """Put the pieces of a table together."""
    X: NDArray[np.float32] | None = None
    labels: list[Any] = []
    beside: dict[str, list[Any]] = {"ids": [], "metadata": []}
    done = 0
    for piece in table.pieces(ROWS_AT_ONCE):
        assert piece.vectors is not None  # they were asked for
        stop, width = done + len(piece.vectors), piece.vectors.shape[1]
        if X is None:
            X = np.empty((table.rows or stop, width), np.float32)
        elif stop > len(X):
            X.resize((2 * stop, width), refcheck=False)
        # Beyond float32: infinite, and the hasher's to judge.
        with np.errstate(over="ignore", invalid="ignore"):
            X[done:stop] = piece.vectors
        done = stop
        if piece.labels is not None and "label" in table.request.parts:
            labels.append(piece.labels)
        for name, values in beside.items():
            if (part := getattr(piece, name)) is not None:
                values += [None] * (done - piece.n - len(values)) + [*part]
    request = table.request
    if X is None and table.width is None:
        raise request.error("is empty; save at least one row.", FileError)
    if X is None:
        return Piece(np.empty((0, table.width or 0), np.float32))
    X.resize((done, X.shape[1]), refcheck=False)
    whole = Piece(X, beside["ids"] or None, metadata=beside["metadata"] or None)
    if labels and isinstance(labels[0], np.ndarray):
        return whole._replace(labels=check_labels(np.concatenate(labels), done, request))
    values = [label for part in labels for label in part]
    has_labels = table.taken.label is not None and "label" in request.parts
    if not has_labels and all(label is None for label in values):
        return whole
    return whole._replace(labels=check_labels(as_labels(values, request), done, request))


def read_items(
    source: Source | Arrays,
    *,
    format: str | None = None,
    columns: Columns = Columns(),  # noqa: B008  it cannot change
    labels: Path | None = None,
    id_kind: str | None = None,
    with_vectors: bool = True,
    with_metadata: bool = True,
    label_separator: str | None = None,
    size: int = ITEMS_AT_ONCE,
) -> Iterator[Piece]:
    """Read items piece by piece, ``size`` at a time, so that a file is never in memory as a whole.

    - JSON lines: an object a line, ``{"id": …, "vector": […], "label": …, "metadata": {…}}``.
    - CSV: a header with ``id``, ``label`` and ``metadata`` (JSON) where there are such columns;
      all others of numbers are together the vector, or a column ``vector`` holds JSON lists.
    - ``.parquet``: likewise; the vector is a column of lists, or all columns of numbers.
    - ``.npz``: arrays ``X`` (or ``features``), ``y`` (or ``labels``) and ``ids``; with a 0/1 matrix
      of labels ``classes``, the names of its columns.
    - ``.npy``: vectors alone. ``.mat``: fields as for :func:`read_table`.

    Columns that are nothing else are metadata, where there is no column ``metadata`` and none are
    named; those of CSV are numbers, or true and false, where all of the first piece are. What would
    be a guess is asked for by an error (see ``Columns``).

    A label that is empty or null is none. Several labels of a row are a list in JSON lines and
    Parquet, text with a ``label_separator`` in CSV, and the columns of a 0/1 matrix elsewhere.

    Parameters
    ----------
    source : a file, text that is open (JSON lines or CSV), or arrays (X, y) that are here already
    format : "npy", "npz", "parquet", "csv", "jsonl" or "mat"; what the file's ending says if None
    columns : names of other columns
    labels : a file of labels of its own, where the source says how many rows it has
    id_kind : "whole numbers" or "strings", what ids in CSV become; as they look if None
    with_vectors : False to leave out vectors
    with_metadata : False to leave out metadata
    label_separator : what stands between several labels of a row, where they are one text

    >>> import io
    >>> text = io.StringIO('{"id": "a", "vector": [1, 2]}\\n{"id": "b", "vector": [3, 4]}\\n')
    >>> [piece] = read_items(text, format="jsonl")
    >>> piece.ids, piece.vectors
    (['a', 'b'], array([[1., 2.], [3., 4.]], dtype=float32))
    """
    if label_separator == "":
        raise InputError('read_items: label_separator="" separates nothing; pass a sign such as |.')
    plain = partial(_with_plain_labels, separator=label_separator)
    if isinstance(source, tuple):
        yield from map(plain, array_pieces(*source, size))
        return
    with open_table(
        source,
        format=format,
        columns=columns,
        place="read_items",
        parts=("id", *["vector"] * with_vectors, "label", *["metadata"] * with_metadata),
        find_labels=labels is None,
        id_kind=id_kind,
    ) as table:
        if labels is None:
            yield from (plain(piece, table.classes) for piece in table.pieces(size))
            return
        if table.rows is None:
            raise InputError(
                "read_items: labels in a file of their own go with .npy, .npz, .parquet and .mat; "
                f"those of {table.request.name} are in it."
            )
        y, done = read_labels(Path(labels), table.rows), 0
        for piece in table.pieces(size):
            yield plain(piece._replace(labels=y[done : done + piece.n]))
            done += piece.n


def _with_plain_labels(
    piece: Piece, classes: list[Any] | None = None, *, separator: str | None = None
) -> Piece:
    """Return labels as Python's own values, several of a row as a list; an empty text is none."""
    y: Any = piece.labels
    if y is None:
        return piece
    if isinstance(y, np.ndarray):
        y = label_lists(y, classes) if y.ndim == 2 else y.tolist()
    if separator is not None:
        y = [_split(label, separator) for label in y]
    return piece._replace(labels=[None if label == "" else label for label in y])


def _split(label: Any, separator: str) -> Any:
    if not isinstance(label, str):
        return label if label is None or isinstance(label, list) else [label]
    parts = map(label_from_text, label.split(separator))
    return [part for part in parts if part is not None]


def read_labels(path: str | Path, n: int) -> NDArray[Any]:
    """Read the labels of ``n`` rows from a file of their own: .npy, or text with one a line."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".txt", ".csv"):
        raise InputError(
            f"read_table: labels={str(path)!r} does not end in .npy, .txt or .csv; save one label "
            "a line."
        )
    request = Request("read_table", path, suffix[1:])
    with request.reading():
        if suffix == ".npy":
            return check_labels(load_npy(path), n, request)
        text = path.read_text(encoding="utf-8-sig").rstrip()
    lines = [line.strip().strip('"') for line in text.splitlines()]
    if suffix == ".csv" and len(lines) == n + 1 and _is_title(lines[0], lines[1:]):
        del lines[0]
    return check_labels(as_labels(lines, request), n, request)


def _is_title(first: str, rest: list[str]) -> bool:
    """Tell a header from a label: it is no number, and the text appears nowhere else."""
    return first not in rest and not first.lstrip("+-").isdigit()
