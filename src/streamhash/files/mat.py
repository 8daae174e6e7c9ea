"""MATLAB's files: format 5 to 7 with scipy, format 7.3 (HDF5) with h5py.

MATLAB stores columns first, so in HDF5 its n × d matrix appears as d × n. Here every field has the
shape that MATLAB shows.
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError
from streamhash.files.columns import Piece, Request, Table, Taken
from streamhash.optional import import_optional

# The fields that are known: features and labels, of the training rows first.
TRAIN_AND_TEST = (("trainCNN", "trainLabels"), ("testCNN", "testLabels"))
FEATURE_NAMES, LABEL_NAMES = ("X", "features", "pca_feats"), ("y", "labels")
WANTED_FIELDS = f"{' or '.join(FEATURE_NAMES)} with {' or '.join(LABEL_NAMES)}, or " + ", ".join(
    name for pair in TRAIN_AND_TEST for name in pair
)
HDF5_START = b"\x89HDF\r\n\x1a\n"  # how HDF5 begins, after the 512 bytes MATLAB puts before it
CHUNK_BYTES = 2**25  # of a field in memory at a time


class Fields(NamedTuple):
    """The fields of numbers in an open file: their shapes, and how each is loaded.

    ``load`` gives a field as HDF5 has it, d × n, in memory or on disk.
    """

    shapes: dict[str, tuple[int, ...]]
    load: Callable[[str], Any]

    def __str__(self) -> str:
        shapes = [f"{name} {'×'.join(map(str, shape))}" for name, shape in self.shapes.items()]
        return ", ".join(shapes) or "no fields of numbers"

    def chunks(self, name: str, turned: bool) -> Iterator[NDArray[Any]]:
        """Yield the rows of a field chunk by chunk, ``turned`` if they are MATLAB's columns."""
        field = self.load(name)
        if field.ndim == 1:
            field = field[:][None]
        shape = field.shape if turned else field.shape[::-1]
        step = max(1, CHUNK_BYTES // max(1, shape[1] * field.dtype.itemsize))
        # Whole compressed blocks, if they are not too large, as each is decompressed as a whole.
        block = (getattr(field, "chunks", None) or (1, 1))[0 if turned else 1]
        step = max(step // block * block, min(block, 8 * step))
        for start in range(0, shape[0], step):
            rows = slice(start, start + step)
            yield field[rows] if turned else field[:, rows].T


class Part(NamedTuple):
    """A field of features (n, d) with its labels (None = it has none)."""

    chunks: Callable[[], Iterator[NDArray[Any]]]
    shape: tuple[int, int]
    y: NDArray[Any] | None

    def pieces(self, size: int) -> Iterator[Piece]:
        """Yield the rows, at most ``size`` at a time."""
        done = 0
        for chunk in self.chunks():
            for first in range(0, len(chunk), size):
                X = chunk[first : first + size]
                yield Piece(X, labels=None if self.y is None else self.y[done : done + len(X)])
                done += len(X)


@contextmanager
def open_mat(request: Request) -> Iterator[Table]:
    """Open a file: one field of features, or one of training and one of test rows."""
    if request.columns.id or request.columns.metadata:
        raise request.error("is read without ids and metadata; use .npz, JSON lines or Parquet.")
    if request.columns.features:
        raise request.error("holds the features in one field; name it: Columns(vector='…').")
    with ExitStack() as opened:
        with _plain_errors():
            fields = _open_fields(request, opened)
            pairs = _pairs(fields, request)
            parts = [_part(fields, x, y, request) for x, y in pairs]
        if len({part.shape[1] for part in parts}) > 1:
            raise request.error(
                f"has {fields}, of several widths; save fields of the same features.", FileError
            )

        def pieces(size: int) -> Iterator[Piece]:
            with _plain_errors():
                for part in parts:
                    yield from part.pieces(size)

        used = {name for pair in pairs for name in pair}
        taken = Taken(
            vectors=tuple(x for x, _ in pairs),
            label=pairs[0][1],
            ignored=tuple(name for name in fields.shapes if name not in used),
        )
        shape = sum(part.shape[0] for part in parts), parts[0].shape[1]
        yield Table(request, taken, pieces, *shape, fields=str(fields))


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn what scipy and h5py raise on files that are cut off or damaged into a ValueError."""
    from scipy.io.matlab import MatReadError

    try:
        yield
    except (TypeError, LookupError, MatReadError) as error:
        raise ValueError(str(error) or type(error).__name__) from error


def _open_fields(request: Request, opened: ExitStack) -> Fields:
    path = request.path
    with path.open("rb") as file:
        start = file.read(520)
    if HDF5_START in (start[:8], start[512:]):
        h5py = import_optional(
            "h5py",
            extra="mat",
            place=f"{request.place}: {path} is of MATLAB's format 7.3 and",
            otherwise="save it in MATLAB with -v7",
        )
        return _format_73(opened.enter_context(h5py.File(path, "r")))
    if not start.startswith(b"MATLAB 5.0"):
        raise ValueError("it does not begin as one")
    from scipy.io import whosmat

    _check_tags(path)
    numbers = ("double", "single", "int", "uint", "logical")
    shapes = {name: tuple(shape) for name, shape, kind in whosmat(path) if kind.startswith(numbers)}
    return Fields(shapes, partial(_load_5, path))


def _load_5(path: Path, name: str) -> NDArray[Any]:
    """Load a field as a whole: this format has no access to rows."""
    from scipy.io import loadmat

    field: NDArray[Any] = loadmat(path, variable_names=[name])[name]
    if getattr(field, "dtype", np.dtype(object)).kind not in "fiub":
        raise ValueError(f"{name} does not hold plain numbers")
    return field.T


def _format_73(file: Any) -> Fields:
    fields = {
        name: field
        for name, field in file.items()
        if hasattr(field, "chunks") and field.dtype.kind in "fiub"  # neither group nor type
    }
    # Programs other than MATLAB also write vectors of one dimension: here a single row.
    shapes = {name: (1, *field.shape)[-max(2, field.ndim) :] for name, field in fields.items()}
    return Fields({name: shape[::-1] for name, shape in shapes.items()}, fields.__getitem__)


def _pairs(fields: Fields, request: Request) -> list[tuple[str, str | None]]:
    """Return the fields of features, each with that of its labels."""
    names = [*fields.shapes]
    y = request.find("label", names, LABEL_NAMES, str(fields))
    x = request.find("vector", [name for name in names if name != y], FEATURE_NAMES, str(fields))
    if x is not None:
        return [(x, y)]
    known = [name for pair in TRAIN_AND_TEST for name in pair]
    if request.columns.label is None and {*known} <= {*names}:
        return [(x, y if request.find_labels else None) for x, y in TRAIN_AND_TEST]
    raise request.error(
        f"has {fields}, where {WANTED_FIELDS} are wanted; save it with these fields.", FileError
    )


def _part(fields: Fields, x: str, y: str | None, request: Request) -> Part:
    """Read the labels, and tell from their number which way the features lie."""
    shape = fields.shapes[x]
    if len(shape) != 2 or 0 in shape:
        raise request.error(f"has {fields}; save {x} as a matrix with at least one row.", FileError)
    if y is None:
        return Part(partial(fields.chunks, x, False), (shape[0], shape[1]), None)
    labels = fields.shapes[y]
    is_vector = len(labels) == 2 and 1 in labels
    # As MATLAB's users have it, rows are items; then all other ways.
    for turned, labels_turned in [(False, False), (True, True), (True, False), (False, True)]:
        if is_vector:
            labels_turned = labels[1] != 1
        if len(labels) == 2 and shape[turned] == labels[labels_turned]:
            values = np.concatenate(list(fields.chunks(y, labels_turned)))
            chunks, labelled = partial(fields.chunks, x, turned), _labels(values, y, request)
            return Part(chunks, (shape[turned], shape[not turned]), labelled)
    raise request.error(
        f"has {fields}; save as many labels in {y} as there are rows in {x}.", FileError
    )


def _labels(values: NDArray[Any], name: str, request: Request) -> NDArray[Any]:
    """Return MATLAB's doubles as whole numbers: (n,) labels, or an (n, C) matrix."""
    with np.errstate(invalid="ignore"):  # NaN and infinity are refused below
        numbers = values.astype(np.int64)
    if (numbers != values).any():
        raise request.error(
            f"has labels in {name} that are not whole numbers; number the classes.", FileError
        )
    return numbers[:, 0] if numbers.shape[1] == 1 else numbers


# The skeleton of format 5 is checked before scipy sees it, as scipy can crash on a damaged one.
HEADER_BYTES = 128  # before the first element; the last two tell the byte order
MATRIX, COMPRESSED = 14, 15  # types of elements
FLAGS = 6  # the type of a matrix's first element,
SHAPE_TYPES, NAME_TYPES = {5, 6}, {1, 16}  # of its second and third,
NUMBER_TYPES = {1, 2, 3, 4, 5, 6, 7, 9, 12, 13}  # of its values, a second time if complex
NUMBER_CLASSES = range(6, 16)  # double to uint64: the low byte of the flags
COMPLEX_FLAG = 1 << 11


def _check_tags(path: Path) -> None:
    """Raise ValueError unless every matrix of numbers has the elements that it must have.

    A file is a row of elements, each with a tag: its type and its bytes. A matrix is a row of
    elements itself. What is compressed has a checksum of its own, and is left to scipy.
    """
    with path.open("rb") as file:
        order = ">" if file.read(HEADER_BYTES)[-2:] == b"MI" else "<"
        end = path.stat().st_size
        for kind, start, stop in _elements(file, order, HEADER_BYTES, end, padded=False):
            if kind == COMPRESSED:
                continue
            if kind != MATRIX:
                raise ValueError(f"there is no matrix before byte {start}")
            kinds = [kind for kind, _, _ in _elements(file, order, start, stop, padded=True)]
            if kinds[:1] != [FLAGS]:
                raise ValueError(f"the matrix in byte {start} does not begin as one")
            file.seek(start + 8)
            (flags,) = struct.unpack(f"{order}I", file.read(4))
            known = [{FLAGS}, SHAPE_TYPES, NAME_TYPES, NUMBER_TYPES, NUMBER_TYPES]
            known = known[: 5 if flags & COMPLEX_FLAG else 4]
            are_known = len(kinds) == len(known) and all(map(set.__contains__, known, kinds))
            if flags & 0xFF in NUMBER_CLASSES and not are_known:  # others are never read
                raise ValueError(f"the matrix in byte {start} does not hold numbers")


def _elements(
    file: BinaryIO, order: str, start: int, end: int, *, padded: bool
) -> Iterator[tuple[int, int, int]]:
    """Yield type, first byte and end of each element; inside a matrix they fill up 8 bytes."""
    while start < end:
        file.seek(start)
        tag = file.read(8)
        if len(tag) < 8:
            raise ValueError("it ends in the middle")
        kind, size = struct.unpack(f"{order}II", tag)
        start += 8
        if kind >> 16:  # up to four bytes of content stand in the tag itself
            kind, size = kind & 0xFFFF, 0
        if start + size > end:
            raise ValueError("it ends in the middle")
        yield kind, start, start + size
        start += -(-size // 8) * 8 if padded else size
