"""What is in a collection, in memory: the id, the key and the label of every item.

A *key* is a number that ascends in the order of adding; it is never given twice, not even to an
item of the same id that was deleted and added again. Searches look ids up without a lock: they take
the arrays once, what they may have seen of them is never written again (but labels, of which they
read none), and a key that is not there any more is told, so that the search can be made again.
"""

from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.search.ids import kind

__all__ = ["NO_LABEL", "Directory", "Listing"]

Integers = NDArray[np.int64]

NO_LABEL = -1
FEW = 1024  # places of removed items that never matter


class Listing(NamedTuple):
    """Items by place, in the order of their keys; the arrays may have room for more.

    What a search found is looked up in one listing, which no change makes invalid.
    """

    size: int
    keys: Integers
    ids: NDArray[Any]
    labels: NDArray[np.int32]
    names: list[Any]  # of labels, by their numbers

    @property
    def kind(self) -> str:
        """What ids are: "whole numbers" or "strings"."""
        return kind(self.ids)

    def holds(self, keys: Integers) -> bool:
        """Whether all keys are here; they may be of items removed lately."""
        there = self.keys[: self.size]
        places = np.searchsorted(there, keys)
        inside = places.size == 0 or places.max() < self.size
        return bool(inside and (there[places] == keys).all())

    def ids_of(self, keys: Integers) -> NDArray[Any]:
        """Ids of keys that are here."""
        return self.ids[np.searchsorted(self.keys[: self.size], keys)]

    def labels_of(self, keys: Integers) -> NDArray[np.int32]:
        """Numbers of the labels of keys that are here, NO_LABEL where there is none."""
        return self.labels[np.searchsorted(self.keys[: self.size], keys)]

    def label_names_of(self, keys: Integers) -> list[Any]:
        """Labels of keys that are here, None where there is none."""
        numbers = self.labels_of(keys).tolist()
        return [None if number == NO_LABEL else self.names[number] for number in numbers]


class Directory:
    """Items by place; its caller lets one thread at a time write.

    Places of removed items are used up; when they are most of all places, the others move up.
    """

    def __init__(
        self, keys: Integers, ids: NDArray[Any], labels: Sequence[Any] | NDArray[Any]
    ) -> None:
        self._fill(keys, ids, labels)

    def _fill(
        self, keys: Integers, ids: NDArray[Any], labels: Sequence[Any] | NDArray[Any]
    ) -> None:
        self._label_names: list[Any] = []
        self._numbers: dict[Any, int] = {}
        numbers = self._number(labels)
        self.n_labelled = int((numbers != NO_LABEL).sum())
        self._places = dict(zip(ids.tolist(), range(len(keys)), strict=True))
        self._arrays = Listing(len(keys), keys, ids, numbers, self._label_names)
        self.last_key = max(getattr(self, "last_key", -1), int(keys[-1]) if len(keys) else -1)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, item: object) -> bool:
        return item in self._places

    @property
    def listing(self) -> Listing:
        """The items as they are now."""
        return self._arrays

    @property
    def kind(self) -> str:
        """What ids are: "whole numbers" or "strings"."""
        return self._arrays.kind

    @property
    def next_id(self) -> int:
        """A whole number above all ids, those of removed items with them."""
        return int(self._arrays.ids[: self._arrays.size].max(initial=-1)) + 1

    @property
    def ids(self) -> list[Any]:
        """The ids, in the order of adding."""
        return [*self._places]

    @property
    def places(self) -> Integers:
        """The places of the items that are there, in the order of adding."""
        return np.fromiter(self._places.values(), np.int64, len(self._places))

    @property
    def keys(self) -> Integers:
        """The keys of the items that are there, ascending."""
        return self.keys_at(self.places)

    @property
    def label_names(self) -> list[Any]:
        """The labels that items have or had, by their numbers."""
        return [*self._label_names]

    @property
    def n_classes(self) -> int:
        """How many different labels the items have."""
        numbers = self._arrays.labels[self.places]
        return len(np.unique(numbers[numbers != NO_LABEL]))

    def find(self, ids: Sequence[Any]) -> Integers:
        """Places of ids; -1 where there is none."""
        if not self._places:
            return np.full(len(ids), -1, np.int64)
        return np.array([self._places.get(item, -1) for item in ids], np.int64)

    def keys_at(self, places: Integers) -> Integers:
        """Keys at places."""
        return self._arrays.keys[places]

    def ids_at(self, places: Integers) -> NDArray[Any]:
        """Ids at places."""
        return self._arrays.ids[places]

    def has(self, keys: Integers) -> NDArray[np.bool_]:
        """Tell which keys are those of items that are there."""
        arrays = self._arrays
        there = arrays.keys[: arrays.size]
        places = np.searchsorted(there, keys)
        held = places < arrays.size
        held[held] = there[places[held]] == keys[held]
        at = places[held]
        held[held] = self.find(arrays.ids[at].tolist()) == at
        return held

    def label_at(self, place: int) -> Any:
        """The label at a place, or None."""
        number = self._arrays.labels[place]
        return None if number == NO_LABEL else self._label_names[number]

    def label_number(self, label: Any) -> int:
        """The number of a label, NO_LABEL if no item ever had it."""
        return self._numbers.get(label, NO_LABEL)

    def append(self, keys: Integers, ids: NDArray[Any], labels: Sequence[Any]) -> None:
        """Add items with keys above all others; they take the place of those with their ids."""
        if len(self) == self._arrays.size == 0 and kind(ids) != self.kind:
            self._arrays = self._arrays._replace(ids=ids[:0])
        if len(keys) == 0:
            return
        names = ids.tolist()
        self.remove([name for name in names if name in self._places])
        numbers, now = self._number(labels), self._arrays
        size = now.size + len(keys)
        if size > len(now.keys):
            room = max(size, 2 * now.size)
            now = now._replace(
                keys=_larger(now.keys, now.size, room),
                ids=_larger(now.ids, now.size, room),
                labels=_larger(now.labels, now.size, room),
            )
        new = slice(now.size, size)
        now.keys[new], now.ids[new], now.labels[new] = keys, ids, numbers
        self._places.update(zip(names, range(now.size, size), strict=True))
        self._arrays = now._replace(size=size)
        self.n_labelled += int((numbers != NO_LABEL).sum())
        self.last_key = int(keys[-1])

    def set_labels(self, places: Integers, labels: Sequence[Any]) -> None:
        """Give items other labels."""
        numbers = self._number(labels)
        there = self._arrays.labels[places]
        self._arrays.labels[places] = numbers
        self.n_labelled += int((numbers != NO_LABEL).sum()) - int((there != NO_LABEL).sum())

    def remove(self, ids: Sequence[Any]) -> None:
        """Remove items that are there."""
        places = [self._places.pop(item) for item in ids]
        self.n_labelled -= int((self._arrays.labels[places] != NO_LABEL).sum())
        if self._arrays.size > 2 * len(self) + FEW:
            kept, now = self.places, self._arrays
            labels = [self.label_at(place) for place in kept.tolist()]
            self._fill(now.keys[kept], now.ids[kept], labels)

    def _number(self, labels: Sequence[Any] | NDArray[Any]) -> NDArray[np.int32]:
        numbers = self._numbers
        for label in dict.fromkeys(labels):
            if label is not None and label not in numbers:
                numbers[label] = len(self._label_names)
                self._label_names.append(label)
        return np.fromiter(map(numbers.get, labels, repeat(NO_LABEL)), np.int32, len(labels))


def _larger(array: NDArray[Any], size: int, room: int) -> NDArray[Any]:
    larger = np.empty(room, array.dtype)
    larger[:size] = array[:size]
    return larger
