"""Ids of items: whole numbers from 0 up, or strings; checked, and in the form that files hold."""

import itertools
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError, shown
from streamhash.labels import as_numpy

LARGEST_ID = np.iinfo(np.int64).max
MISSING_ID = {"whole numbers": -1, "strings": None}  # what stands where a search finds no item


def kind(ids: NDArray[Any]) -> str:
    """Whether ids are "whole numbers" or "strings"."""
    return "strings" if ids.dtype == object else "whole numbers"


def check_ids(ids: Any, *, place: str) -> NDArray[Any]:
    """Return ids as an array (n,) of int64, or of Python strings; say what is wrong."""
    ids = as_numpy(ids)
    if hasattr(ids, "__array__"):
        array = np.asarray(ids)
    elif isinstance(ids, Iterable) and not isinstance(ids, str | bytes):
        array = np.fromiter(ids, object)
    else:
        array = np.array(ids, object)
    if array.ndim != 1:
        raise InputError(f"{place}: ids={ids!r} is not a list of ids; pass one id an item.")
    if array.dtype.kind not in "iu":
        values = array.tolist()
        if values and all(isinstance(value, str) for value in values):
            return np.fromiter(map(str, values), object, len(values))
        if {*map(type, values)} == {int}:  # as most are: a tenth of the time
            with suppress(OverflowError):
                array, values = np.array(values, np.int64), []
        for value in values:
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise InputError(
                    f"{place}: ids hold {value!r}; pass whole numbers from 0 up, or strings, "
                    "but not both."
                )
    if len(array) and not (array.min() >= 0 and array.max() <= LARGEST_ID):
        least, most = shown(int(array.min())), shown(int(array.max()))
        raise InputError(
            f"{place}: ids from {least} to {most} came; pass whole numbers from 0 to {LARGEST_ID}, "
            "or strings."
        )
    return array.astype(np.int64)


def check_once(ids: NDArray[Any], *, place: str) -> None:
    """Refuse ids of which one comes twice."""
    if (ids[1:] > ids[:-1]).all():
        return
    counts = Counter(ids.tolist())
    if len(counts) < len(ids):
        raise InputError(
            f"{place}: id {counts.most_common(1)[0][0]!r} came twice; pass each id once."
        )


@dataclass(frozen=True, slots=True)
class Strings:
    """Strings laid end to end: no Python object each."""

    content: NDArray[np.uint8]  # UTF-8; there may be room for more
    offsets: NDArray[np.int64]  # (n + 1,) where each begins, and the last ends

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of(cls, strings: Iterable[str]) -> "Strings":
        """Lay strings end to end."""
        encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(part) for part in encoded], out=offsets[1:])
        return cls(np.frombuffer(bytearray(b"".join(encoded)), np.uint8), offsets)

    def __getitem__(self, places: NDArray[np.int64]) -> NDArray[Any]:
        """Return the strings at these places, as Python has them."""
        taken = self.taken(places)
        text, ends = taken.content.tobytes(), taken.offsets.tolist()
        parts = (text[start:end] for start, end in itertools.pairwise(ends))
        decoded = (part.decode("utf-8", "surrogatepass") for part in parts)
        return np.fromiter(decoded, object, len(ends) - 1)

    def taken(self, places: NDArray[np.int64]) -> "Strings":
        """Lay the strings at these places end to end."""
        starts, ends = self.offsets[places], self.offsets[places + 1]
        offsets = np.zeros(len(places) + 1, np.int64)
        np.cumsum(ends - starts, out=offsets[1:])
        at = np.repeat(starts - offsets[:-1], ends - starts) + np.arange(offsets[-1])
        return Strings(self.content[at], offsets)


def to_bytes(strings: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Lay strings end to end: any length, any character, and no pickle."""
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    return {
        "id_bytes": np.frombuffer(b"".join(encoded), np.uint8),
        "id_ends": np.cumsum([len(part) for part in encoded], dtype=np.int64),
    }


def from_bytes(arrays: dict[str, NDArray[Any]]) -> list[str]:
    """Undo ``to_bytes``."""
    lengths = arrays["id_ends"]
    if arrays["id_bytes"].dtype != np.uint8 or lengths.dtype != np.int64 or lengths.ndim != 1:
        raise ValueError("ids of another type")
    text, ends = arrays["id_bytes"].tobytes(), lengths.tolist()
    if sorted(ends) != ends or min(ends, default=0) < 0 or max(ends, default=0) != len(text):
        raise ValueError("ids that overlap")
    parts = (text[start:end] for start, end in itertools.pairwise([0, *ends]))
    return [part.decode("utf-8", "surrogatepass") for part in parts]
