"""What is in a collection, in memory: the id, the key and the label of every item.

A *key* is a number that ascends in the order of adding; it is never given twice, not even to an
item of the same id that was deleted and added again. Arrays are replaced when they must grow, and
what a search may have seen of them is never written again but labels, of which it reads none.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.search.ids import kind

__all__ = ["NO_LABEL", "Directory"]

Integers = NDArray[np.int64]

NO_LABEL = -1


class Directory:
    """Items by place, in the order of their keys; its caller lets one thread at a time write."""

    def __init__(
        self, keys: Integers, ids: NDArray[Any], labels: Sequence[Any] | NDArray[Any]
    ) -> None:
        self.size = len(keys)
        self._keys, self._ids = keys, ids
        self.label_names: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._labels = self._number(labels)
        self.n_labelled = int((self._labels != NO_LABEL).sum())
        self._places = dict(zip(ids.tolist(), range(self.size), strict=True))

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, item: object) -> bool:
        return item in self._places

    @property
    def kind(self) -> str:
        """What ids are: "whole numbers" or "strings"."""
        return kind(self._ids)

    @property
    def last_key(self) -> int:
        """The greatest key there ever was; -1 before the first item."""
        return int(self._keys[self.size - 1]) if self.size else -1

    @property
    def ids(self) -> list[Any]:
        """The ids, in the order of adding."""
        return [*self._places]

    @property
    def places(self) -> Integers:
        """The places of the items that are there, in the order of adding."""
        return np.fromiter(self._places.values(), np.int64, len(self._places))

    def find(self, ids: Sequence[Any]) -> Integers:
        """Places of ids; -1 where there is none."""
        return np.array([self._places.get(item, -1) for item in ids], np.int64)

    def keys_at(self, places: Integers) -> Integers:
        """Keys at places."""
        return self._keys[places]

    def places_of(self, keys: Integers) -> Integers:
        """Places of keys that are, or were, there."""
        return np.searchsorted(self._keys[: self.size], keys)

    def ids_of(self, keys: Integers) -> NDArray[Any]:
        """Ids of keys that are, or were, there."""
        return self._ids[self.places_of(keys)]

    def labels_of(self, keys: Integers) -> NDArray[np.int32]:
        """Numbers of the labels of keys, NO_LABEL where there is none."""
        return self._labels[self.places_of(keys)]

    def label_at(self, place: int) -> Any:
        """The label at a place, or None."""
        number = self._labels[place]
        return None if number == NO_LABEL else self.label_names[number]

    def label_number(self, label: Any) -> int:
        """The number of a label, NO_LABEL if no item ever had it."""
        return self._numbers.get(label, NO_LABEL)

    def append(self, keys: Integers, ids: NDArray[Any], labels: Sequence[Any]) -> None:
        """Add items with keys above all others."""
        numbers = self._number(labels)
        first, size = self.size, self.size + len(keys)
        if len(self._places) == 0 and kind(ids) != self.kind:
            self._ids = np.empty(len(self._keys), ids.dtype)
        if size > len(self._keys):
            room = max(size, 2 * first)
            self._keys, self._ids, self._labels = (
                _larger(array, first, room) for array in (self._keys, self._ids, self._labels)
            )
        self._keys[first:size], self._ids[first:size] = keys, ids
        self._labels[first:size] = numbers
        self.size = size
        self.n_labelled += int((numbers != NO_LABEL).sum())
        self._places.update(zip(ids.tolist(), range(first, size), strict=True))

    def set_labels(self, places: Integers, labels: Sequence[Any]) -> None:
        """Give items other labels."""
        numbers = self._number(labels)
        there = self._labels[places]
        self._labels[places] = numbers
        self.n_labelled += int((numbers != NO_LABEL).sum()) - int((there != NO_LABEL).sum())

    def remove(self, ids: Sequence[Any]) -> None:
        """Remove items that are there."""
        places = [self._places.pop(item) for item in ids]
        self.n_labelled -= int((self._labels[places] != NO_LABEL).sum())

    def tidy(self) -> "Directory":
        """Return one without the places of removed items, if they are more than half of it."""
        if 2 * len(self) >= self.size:
            return self
        places = self.places
        labels = [self.label_at(place) for place in places.tolist()]
        return Directory(self._keys[places], self._ids[places], labels)

    def _number(self, labels: Sequence[Any] | NDArray[Any]) -> NDArray[np.int32]:
        numbers = np.empty(len(labels), np.int32)
        for i, label in enumerate(labels):
            if label is None:
                numbers[i] = NO_LABEL
                continue
            number = self._numbers.get(label)
            if number is None:
                number = self._numbers[label] = len(self.label_names)
                self.label_names.append(label)
            numbers[i] = number
        return numbers


def _larger(array: NDArray[Any], size: int, room: int) -> NDArray[Any]:
    larger = np.empty(room, array.dtype)
    larger[:size] = array[:size]
    return larger
