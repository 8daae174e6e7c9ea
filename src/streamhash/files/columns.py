"""What a file is asked for, which of its columns hold it, and the pieces that come out.

Nothing is guessed. Ids are never features. Where a column of lists and columns of numbers, or
numbered columns (x0, x1, …) and others of numbers, stand side by side, it is asked which of them
are the features; all that was taken, and all that was not, is in ``Taken``, and logged.
"""

import csv
import json
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from fnmatch import fnmatchcase
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
LISTED_NAMES = 12  # columns that a message lists
# Names of numbers that tell rows apart, and so are no features; and those that pandas gives to the
# numbers of rows when it writes a table.
LIKE_AN_ID = re.compile(r"(.*[_\-. ])?(id|ids|uid|uuid|guid|idx|index|rowid)", re.IGNORECASE)
LIKE_AN_ID_TOO = re.compile(r".*[a-z]I[dD]")  # itemId
ROW_NUMBERS = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
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
    column ``metadata`` is the metadata itself, or else all columns are that are nothing else.
    ``features`` names columns of numbers that are the vector together, ``ignore`` such that are not
    used. These three are tuples of names, or one text with commas, and the last two may be patterns
    such as ``"x*"``.
    """

    id: str | None = None
    vector: str | None = None
    label: str | None = None
    metadata: tuple[str, ...] | str = ()
    features: tuple[str, ...] | str = ()
    ignore: tuple[str, ...] | str = ()

    def split(self) -> "Columns":
        """Return the same with tuples of names."""
        return self._replace(
            metadata=_names(self.metadata),
            features=_names(self.features),
            ignore=_names(self.ignore),
        )

    def named(self) -> list[str]:
        """All names that were given."""
        several = (*self.metadata, *self.features, *self.ignore)
        return [name for name in (*self[:3], *several) if name is not None]


def _names(names: tuple[str, ...] | str) -> tuple[str, ...]:
    if not isinstance(names, str):
        return tuple(names)
    return tuple(name.strip() for name in names.split(",") if name.strip())


class Taken(NamedTuple):
    """The columns that a reader took: which holds what."""

    id: str | None = None
    vectors: tuple[str, ...] = ()  # one that holds lists or a matrix, or one for each feature
    label: str | None = None
    metadata: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()  # of no use, or not asked for

    def __str__(self) -> str:
        """Say which column holds what.

        >>> print(Taken("id", ("x0", "x1", "x2"), "kind", ignored=("price",)))
        features: x0 to x2 (3 columns); id: id; label: kind; ignored: price
        """
        features = short_list(self.vectors)
        if len(self.vectors) > 2 and len({*map(_stem, self.vectors)}) == 1:
            features = f"{self.vectors[0]} to {self.vectors[-1]} ({len(self.vectors)} columns)"
        parts = {"features": features, "id": self.id or "", "label": self.label or ""}
        parts |= {"metadata": short_list(self.metadata), "ignored": short_list(self.ignored)}
        return "; ".join(f"{part}: {names}" for part, names in parts.items() if names)


def _joined(names: Sequence[str]) -> str:
    return ",".join(names)


def short_list(names: Sequence[str]) -> str:
    """List names, the first of many."""
    more = len(names) - LISTED_NAMES
    shown = [name or "'' (without a name)" for name in names[:LISTED_NAMES]]
    return ", ".join(shown) + f" and {more} more" * (more > 0)


def _stem(name: str) -> str | None:
    """Return the name of a numbered column without its number; None of any other.

    >>> [_stem(name) for name in ("x12", "7", "price")]
    ['x', '', None]
    """
    stem = name.rstrip("0123456789")
    return None if stem == name else stem


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
            shown = shown or short_list(names)
            found = f"which has {shown or 'nothing'}; pass one of these."
            raise InputError(f"{self.place}: no column {wanted!r} is in {self.name}, {found}")
        return wanted

    def matching(self, patterns: Sequence[str], names: Sequence[str]) -> list[str]:
        """Return the columns that are named, also by patterns, in their order."""
        for pattern in patterns:
            if pattern not in names and not any(fnmatchcase(name, pattern) for name in names):
                self.check_name(pattern, names)
        return [
            name
            for name in names
            if any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)
        ]

    def choose(
        self,
        names: list[str],
        holds_lists: Callable[[str], bool],
        holds_numbers: Callable[[str], bool],
    ) -> Taken:
        """Choose among the columns of a table: the features are lists, or columns of numbers."""
        name, times = Counter(names).most_common(1)[0] if names else ("", 0)
        if times > 1:
            raise self.error(f"has several columns called {name!r}; give each its own name.")
        id_name, label = self.find("id", names), self.find("label", names)
        metadata = tuple(self.check_name(name, names) for name in self.columns.metadata)
        if not metadata and METADATA in names:
            metadata = (METADATA,)
        used = (id_name, label, *metadata)
        others = [name for name in names if name not in used]
        ignored = [name for name in self.matching(self.columns.ignore, names) if name in others]
        ignored += [n for n in others if ROW_NUMBERS.fullmatch(n) and n not in ignored]
        # A pattern such as * leaves out all that is nothing else, but not the vector.
        named = [n for n in ignored if n in self.columns.ignore or not holds_lists(n)]
        left = [name for name in others if name not in named]
        vectors = self._vectors(names, left, holds_lists, holds_numbers)
        ignored = [name for name in ignored if name not in vectors]
        rest = [name for name in others if name not in (*vectors, *ignored)]
        if "id" in self.parts and id_name is None:
            self.ask_for_id(rest)
        if "metadata" in self.parts and "vector" in self.parts and not metadata:
            metadata, rest = tuple(rest), []
        return Taken(
            id_name,
            tuple(vectors),
            label,
            metadata,
            tuple(name for name in others if name in ignored or name in rest),
        )

    def _vectors(
        self,
        names: list[str],
        others: list[str],
        holds_lists: Callable[[str], bool],
        holds_numbers: Callable[[str], bool],
    ) -> list[str]:
        """Return the columns of the features among those that are nothing else; ask first."""
        if "vector" not in self.parts:
            return []
        if self.columns.vector is not None:
            return [self.check_name(self.columns.vector, names)]
        if self.columns.features:
            self.matching(self.columns.features, names)
            return self.matching(self.columns.features, others)
        lists = [name for name in others if holds_lists(name)]
        numbers = [name for name in others if holds_numbers(name) and not looks_like_an_id(name)]
        usual = [name for name in KNOWN_NAMES["vector"] if name in lists]
        if len(lists) > 1 and not usual:
            raise self.error(
                f"has several columns of lists, {short_list(lists)}; say which holds the features: "
                f"pass Columns(vector={lists[0]!r})."
            )
        if lists and len(numbers) > 1 and not usual:
            raise self.error(
                f"has a column of lists, {lists[0]}, beside columns of numbers, "
                f"{short_list(numbers)}; say which hold the features: pass "
                f"Columns(vector={lists[0]!r}) or Columns(features={_joined(numbers)!r})."
            )
        if lists:
            return usual[:1] or lists
        count = Counter(map(_stem, numbers))
        series = [n for n in numbers if (stem := _stem(n)) is not None and count[stem] > 1]
        alone = [name for name in numbers if name not in series]
        if series and alone:
            patterns = _joined([f"{stem}*" for stem in dict.fromkeys(map(_stem, series))])
            raise self.error(
                f"has numbered columns, {series[0]} to {series[-1]}, beside other numbers, "
                f"{short_list(alone)}; say which are features: pass "
                f"Columns(features={patterns!r}), with '*' for all, or "
                f"Columns(ignore={_joined(alone)!r})."
            )
        stems = {*map(_stem, series)}
        found = [n for n in others if n in numbers or (stems and _stem(n) in stems)]
        if not found:
            all_names = ", ".join(map(repr, names)) or "any"
            raise self.error(
                f"has no columns of numbers or lists beside {all_names}; save the features with "
                "the labels."
            )
        return found

    def ask_for_id(self, names: list[str]) -> None:
        """Refuse to number items where a column may hold their ids."""
        if found := [name for name in names if looks_like_an_id(name)]:
            raise self.error(
                f"has no column 'id', and {short_list(found)} looks like one; pass "
                f"Columns(id={found[0]!r}), or Columns(ignore={_joined(found)!r}) if it is none."
            )

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


def looks_like_an_id(name: str) -> bool:
    """Whether a column is called as ids are.

    >>> [looks_like_an_id(name) for name in ("item_id", "productId", "UUID", "width", "void")]
    [True, True, True, False, False]
    """
    return bool(LIKE_AN_ID.fullmatch(name) or LIKE_AN_ID_TOO.fullmatch(name))


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
