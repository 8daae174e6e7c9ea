"""What a file is asked for, which of its columns hold it, and the pieces that come out."""

import csv
import json
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError, InputError, MissingDataError, StreamhashError

KNOWN_NAMES = {
    "id": ("id",),
    "vector": ("vector", "embedding", "features"),
    "label": ("label", "y", "labels"),
}
PARTS = ("id", "vector", "label", "metadata")
METADATA = "metadata"  # the column that holds all metadata, as JSON or as a struct
LISTED_NAMES = 12  # columns that an error message lists
# What readers raise on a broken file. RuntimeError: an encrypted or unsupported .npz. MemoryError:
# a header that promises too much. OverflowError: a whole number beyond all floats.
BROKEN_NUMBERS = (ValueError, OverflowError, RuntimeError, MemoryError)
BROKEN_FILES = (OSError, EOFError, BadZipFile, zlib.error, csv.Error, *BROKEN_NUMBERS)


class Piece(NamedTuple):
    """Some rows of a file; each part is None where the file has none, or it was not asked for."""

    vectors: NDArray[Any] | None  # (n, d)
    ids: Sequence[Any] | None = None
    labels: Any = None  # one for each row, or a list of several, None for a row without a label
    metadata: Sequence[Any] | None = None

    @property
    def n(self) -> int:
        """How many rows."""
        return len(next(part for part in self if part is not None))


class Columns(NamedTuple):
    """Names of the columns (keys, arrays, fields) that hold each part; None = the usual names.

    ``metadata`` names columns that become the metadata together, each under its name; without it, a
    column ``metadata`` is the metadata itself.
    """

    id: str | None = None
    vector: str | None = None
    label: str | None = None
    metadata: tuple[str, ...] = ()

    def named(self) -> list[str]:
        """All names that were given."""
        return [name for name in (*self[:3], *self.metadata) if name is not None]


class Taken(NamedTuple):
    """The columns that a reader took: which holds what."""

    id: str | None = None
    vectors: tuple[str, ...] = ()  # one that holds lists or a matrix, or one for each feature
    label: str | None = None
    metadata: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """What is asked of a file.

    ``place`` is the function that was called: every error message begins with it.
    """

    place: str
    source: Path | IO[str]
    format: str
    columns: Columns = Columns()  # noqa: RUF009  it cannot change
    parts: Sequence[str] = PARTS
    find_labels: bool = True  # False: they come from elsewhere, and no column is taken for them
    id_kind: str | None = None

    @property
    def path(self) -> Path:
        """The file, of a format that is not text."""
        assert isinstance(self.source, Path)  # the caller has looked
        return self.source

    @property
    def name(self) -> str:
        """What error messages call the file."""
        return str(self.source) if isinstance(self.source, Path) else "standard input"

    def open_text(self) -> AbstractContextManager[IO[str]]:
        """Open the file as text; text that is open stays so."""
        if isinstance(self.source, Path):
            return self.source.open(encoding="utf-8-sig", newline="")
        return nullcontext(self.source)

    def error(
        self, text: str, kind: type[StreamhashError] = InputError, *, at: str = ""
    ) -> StreamhashError:
        """Return an error about the file, or about a part ``at`` some place in it."""
        return kind(f"{self.place}: {at}{self.name} {text}")

    def find(
        self, part: str, names: Sequence[str], usual: Sequence[str] = (), shown: str = ""
    ) -> str | None:
        """Return the column of a part: the one that is named, or the first with a usual name."""
        wanted: str | None = getattr(self.columns, part)
        if wanted is not None:
            return self.check_name(wanted, names, shown)
        if part == "label" and not self.find_labels:
            return None
        return next((name for name in usual or KNOWN_NAMES[part] if name in names), None)

    def check_name(self, wanted: str, names: Sequence[str], shown: str = "") -> str:
        """Return a name, if there is such a column."""
        if wanted not in names:
            more = len(names) - LISTED_NAMES
            shown = shown or ", ".join(names[:LISTED_NAMES]) + (f" and {more} more" * (more > 0))
            found = f"which has {shown or 'nothing'}; pass one of these."
            raise InputError(f"{self.place}: column={wanted!r} is not in {self.name}, {found}")
        return wanted

    def choose(self, names: list[str], holds_lists: Callable[[str], bool]) -> Taken:
        """Choose among the columns of a table: the features are lists, or all other columns."""
        name, times = Counter(names).most_common(1)[0] if names else ("", 0)
        if times > 1:
            raise self.error(f"has several columns called {name!r}; give each its own name.")
        id_name, label = self.find("id", names), self.find("label", names)
        metadata = tuple(self.check_name(name, names) for name in self.columns.metadata)
        if not metadata and METADATA in names:
            metadata = (METADATA,)
        taken = Taken(id_name, (), label, metadata)
        if "vector" not in self.parts:
            return taken
        if self.columns.vector is not None:
            return taken._replace(vectors=(self.check_name(self.columns.vector, names),))
        others = [name for name in names if name not in (id_name, label, *metadata)]
        lists = [name for name in others if holds_lists(name)]
        usual = [name for name in KNOWN_NAMES["vector"] if name in lists]
        if len(lists) > 1 and not usual:
            raise self.error(
                f"has several columns of lists, {', '.join(lists)}; save the one that holds the "
                "features without the others, or name it."
            )
        if not others:
            used = ", ".join(map(repr, filter(None, (id_name, label, *metadata))))
            raise self.error(f"has no columns beside {used}; save the features with the labels.")
        return taken._replace(vectors=tuple(usual[:1] or lists or others))

    def from_json(self, cell: str, line: int) -> Any:
        """Return what a cell of JSON holds."""
        try:
            return json.loads(cell)
        except (json.JSONDecodeError, RecursionError) as error:
            at = f"{cell[:40]!r} in line {line} of "
            text = "is not JSON; write it as JSON, or name the columns."
            raise self.error(text, at=at) from error

    def check_list(self, values: Any, width: int | None, line: int, name: str) -> "array[float]":
        """Return a list of numbers, ``width`` of them unless it is the first."""
        is_list = isinstance(values, list) and {*map(type, values)} <= {float, int}
        if not is_list or len(values) != (len(values) if width is None else width):
            wanted = len(values) if width is None and isinstance(values, list) else width
            text = f"is not a list of {wanted or 'some'} numbers, as in the first line; write one"
            raise self.error(f"{text} of that length.", at=f"{name!r} in line {line} of ")
        return array("f", values)  # beyond float32: infinite, and the hasher's to judge

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn whatever a reader meets in a broken file into one FileError."""
        if isinstance(self.source, Path) and not self.source.exists():
            raise MissingDataError(f"{self.place}: there is no file {self.source}; check the path.")
        try:
            yield
        except StreamhashError:
            raise
        except BROKEN_FILES as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            if "pickle" in reason or "Python objects" in reason:  # NumPy's two wordings
                text = (
                    "holds pickled Python objects, which are never loaded, as they can run code; "
                    "save arrays of numbers (or text, for labels)."
                )
            else:
                kind = "a MATLAB file" if self.format == "mat" else f".{self.format}"
                text = (
                    f"cannot be read as {kind} ({reason}); save it again, or copy it again if it "
                    "came from elsewhere."
                )
            raise self.error(text, FileError) from error


@dataclass(frozen=True)
class Table:
    """An open file: what was found in it, and its rows."""

    request: Request
    taken: Taken
    read: Callable[[int], Iterator[Piece]]  # pieces of at most so many rows
    rows: int | None = None  # where the file says it beforehand
    width: int | None = None  # features, likewise
    mapped: NDArray[Any] | None = None  # all features, where they can be mapped into memory
    fields: str = ""  # of a MATLAB file: all that it holds, for messages
    classes: list[Any] | None = None  # names of the columns of a 0/1 matrix of labels

    def pieces(self, size: int) -> Iterator[Piece]:
        """Yield the rows in their order, at most ``size`` at a time; text can be read once."""
        with self.request.reading():
            yield from self.read(size)


def as_labels(values: Sequence[Any], request: Request) -> NDArray[Any]:
    """Return labels as an array, texts as whole numbers if all are; none may be missing."""
    for row, value in enumerate(values, start=1):
        if value is None or value == "":
            raise request.error(f"has no label in row {row}; fill it in or drop the row.")
    try:
        numbers = [int(value) for value in values]
        # Texts such as 007 and floats such as 0.5 are not the number that int makes of them.
        if all(str(number) == str(value) for number, value in zip(numbers, values, strict=True)):
            return np.array(numbers, np.int64)
    except (ValueError, OverflowError, TypeError):
        pass
    has_text = any(isinstance(value, str) for value in values)
    return np.array([str(value) for value in values] if has_text else values)


def check_labels(y: NDArray[Any], n: int, request: Request) -> NDArray[Any]:
    """Return the labels of ``n`` rows: (n,), or an (n, C) matrix of 0 and 1 as uint8."""
    wanted = "save (n,) labels or an (n, C) matrix of 0 and 1."
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim not in (1, 2) or y.dtype.kind not in "fiubUS":
        raise request.error(f"are {y.dtype} of shape {y.shape}; {wanted}", at="the labels in ")
    if len(y) != n:
        raise request.error(f"has {len(y)} labels for {n} rows of features; save one for each.")
    if y.ndim == 1:
        return y
    if not np.isin(y, (0, 1)).all():
        text = f"have shape {y.shape} and values other than 0 and 1; {wanted}"
        raise request.error(text, at="the labels in ")
    return y.astype(np.uint8)
