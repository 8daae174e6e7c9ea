"""What items are made of, and the names that their parts have in files."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from streamhash.errors import InputError
from streamhash.files.columns import LABEL_NAMES

__all__ = ["Columns", "Piece", "ids_from_text", "label_from_text"]

GUESSES = {"id": ("id",), "vector": ("vector", "embedding", "features"), "label": LABEL_NAMES}
METADATA = "metadata"  # the column that holds all of it, as JSON or as a struct


class Piece(NamedTuple):
    """Some items of a file; each part is None where the file has none."""

    vectors: NDArray[Any] | None  # (n, d)
    ids: Sequence[Any] | None = None
    labels: Sequence[Any] | None = None  # None: this item has no label
    metadata: Sequence[Any] | None = None

    @property
    def n(self) -> int:
        """How many items."""
        return len(next(part for part in self if part is not None))


class Columns(NamedTuple):
    """Names of the columns (keys, arrays) that hold the parts; None where they are to be guessed.

    ``metadata`` names columns that become the metadata together, each under its name; without it, a
    column ``metadata`` is the metadata itself.
    """

    id: str | None = None
    vector: str | None = None
    label: str | None = None
    metadata: tuple[str, ...] = ()

    def find(self, part: str, there: Collection[str], place: str) -> str | None:
        """Return the name of the column of a part in a file that has these; None if it has none."""
        wanted: str | None = getattr(self, part)
        if wanted is None:
            return next((name for name in GUESSES[part] if name in there), None)
        return _check(wanted, there, place)

    def find_metadata(self, there: Collection[str], place: str) -> tuple[str, ...]:
        """Return the names of the columns of metadata."""
        if not self.metadata:
            return (METADATA,) if METADATA in there else ()
        return tuple(_check(name, there, place) for name in self.metadata)

    def named(self) -> set[str]:
        """All names that were told."""
        return {name for name in (*self[:3], *self.metadata) if name is not None}


def _check(name: str, there: Collection[str], place: str) -> str:
    if name not in there:
        few = ", ".join([*there][:12])
        raise InputError(
            f"read_items: {name!r} is not in {place}, which has {few or 'nothing'}; pass one of "
            "these."
        )
    return name


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
