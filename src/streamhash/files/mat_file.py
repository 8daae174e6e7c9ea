"""Fields of MATLAB files, rows at a time: format 5 to 7 with scipy, format 7.3 (HDF5) with h5py.

MATLAB stores columns first, so in HDF5 its n × d matrix appears as d × n. Here every field has the
shape that MATLAB shows.
"""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError, MissingDataError, StreamhashError
from streamhash.files.mat_tags import check_tags
from streamhash.optional import import_optional

__all__ = ["MatFile", "open_mat"]

_HDF5 = b"\x89HDF\r\n\x1a\n"  # how HDF5 begins, after the 512 bytes that MATLAB puts before it
_BYTES = 2**25  # of a field in memory at a time


class MatFile(ABC):
    """An open MATLAB file: the shapes of its fields of numbers, and their rows.

    ``place`` begins the message of every error.
    """

    def __init__(self, path: Path, place: str, shapes: dict[str, tuple[int, ...]]) -> None:
        self.path = path
        self.place = place
        self.shapes = shapes

    def fields(self) -> str:
        """Return the fields with their shapes, for messages."""
        shapes = [f"{name} {'×'.join(map(str, shape))}" for name, shape in self.shapes.items()]
        return ", ".join(shapes) or "no fields of numbers"

    def chunks(self, name: str, turned: bool) -> Iterator[NDArray[Any]]:
        """Yield a matrix in chunks of rows; ``turned`` if its rows are MATLAB's columns."""
        with _reading(self.path, self.place):
            yield from self._chunks(name, turned)

    @abstractmethod
    def _chunks(self, name: str, turned: bool) -> Iterator[NDArray[Any]]: ...


class _Format5(MatFile):
    """One field at a time is in memory: this format has no access to rows."""

    def _chunks(self, name: str, turned: bool) -> Iterator[NDArray[Any]]:
        from scipy.io import loadmat

        field = loadmat(self.path, variable_names=[name])[name]
        if getattr(field, "dtype", np.dtype(object)).kind not in "fiub":
            raise ValueError(f"{name} does not hold plain numbers")
        rows = field.T if turned else field
        step = _step(rows.shape, rows.itemsize)
        return (rows[start : start + step] for start in range(0, len(rows), step))


class _Format73(MatFile):
    """Only the rows asked for are in memory."""

    def __init__(self, path: Path, place: str, file: Any) -> None:
        fields = {
            name: field
            for name, field in file.items()
            if hasattr(field, "chunks") and field.dtype.kind in "fiub"  # neither group nor type
        }
        # Programs other than MATLAB also write vectors of one dimension: here a single row.
        shapes = {name: (1, *field.shape)[-max(2, field.ndim) :] for name, field in fields.items()}
        super().__init__(path, place, {name: shape[::-1] for name, shape in shapes.items()})
        self._fields = fields

    def _chunks(self, name: str, turned: bool) -> Iterator[NDArray[Any]]:
        field = self._fields[name]
        if field.ndim == 1:
            yield field[:][None] if turned else field[:][:, None]
            return
        shape = field.shape if turned else field.shape[::-1]
        # Whole compressed blocks, if they are not too large, as each is decompressed as a whole.
        block = (field.chunks or (1, 1))[0 if turned else 1]
        step = _step(shape, field.dtype.itemsize)
        step = max(step // block * block, min(block, 8 * step))
        for start in range(0, shape[0], step):
            rows = slice(start, start + step)
            yield field[rows] if turned else field[:, rows].T


def _step(shape: tuple[int, ...], itemsize: int) -> int:
    return max(1, _BYTES // max(1, shape[1] * itemsize))


@contextmanager
def open_mat(path: Path, place: str) -> Iterator[MatFile]:
    """Open a MATLAB file, whichever its format."""
    if not path.is_file():
        raise MissingDataError(f"{place}: there is no file {path}; check the path.")
    with ExitStack() as opened:
        with _reading(path, place):
            file = _open(path, place, opened)
        yield file


def _open(path: Path, place: str, opened: ExitStack) -> MatFile:
    with path.open("rb") as start:
        first = start.read(520)
    if _HDF5 in (first[:8], first[512:]):
        h5py = _h5py(path, place)
        return _Format73(path, place, opened.enter_context(h5py.File(path, "r")))
    if not first.startswith(b"MATLAB 5.0"):
        raise ValueError("it does not begin as one")
    from scipy.io import whosmat

    check_tags(path)
    fields = whosmat(path)
    return _Format5(
        path, place, {name: tuple(shape) for name, shape, kind in fields if _is_number(kind)}
    )


def _is_number(kind: str) -> bool:
    return kind.startswith(("double", "single", "int", "uint", "logical"))


@contextmanager
def _reading(path: Path, place: str) -> Iterator[None]:
    """Turn whatever scipy and h5py meet in files that are cut off or damaged into one FileError."""
    from scipy.io.matlab import MatReadError

    plain = (OSError, EOFError, ValueError, TypeError, LookupError, RuntimeError, MemoryError)
    try:
        yield
    except StreamhashError:
        raise
    except (*plain, zlib.error, MatReadError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise FileError(
            f"{place}: {path} cannot be read as a MATLAB file ({reason}); save it again, or copy "
            "it again if it came from elsewhere."
        ) from error


def _h5py(path: Path, place: str) -> Any:
    return import_optional(
        "h5py",
        extra="mat",
        place=f"{place}: {path} is of MATLAB's format 7.3 and",
        otherwise="save it in MATLAB with -v7",
    )
