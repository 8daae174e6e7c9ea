"""The id, the key and the label of every item, in columns of numbers: no Python object an item.

An item takes 8 bytes for its key and 1 to 4 for its label; 8 for an id that is a whole number, and
5 to 8 more unless ids ascend as they were added; for a string its bytes and 13 to 16 more; one byte
more once anything was deleted. Each different label, or list of labels, is held once.

A *key* is a number that ascends in the order of adding; it is never given twice, not even to an
item of the same id that was deleted and added again.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.labels import each_label, share_label
from streamhash.search.id_table import Ids, IdTable, Zeros
from streamhash.search.ids import Strings
from streamhash.threads import ProcessLock

Keys = NDArray[np.int64]

NO_LABEL = -1
SPARE_PLACES = 1024  # places of deleted items that never matter
PIECE = 2**18  # places that are looked at at a time
GROWTH = 1.5

_noting = ProcessLock()  # held by whoever notes ids, which others may look for at the same time


class Coded(NamedTuple):
    """The labels of some items: a number each, -1 for none, and what the numbers mean."""

    numbers: NDArray[np.int32]
    names: list[Any]  # tuples where items have several


class Listing(NamedTuple):
    """Items by place, in the order of their keys; the arrays may have room for more.

    What a search found is looked up in one listing, which no change makes invalid.
    """

    size: int
    keys: Keys
    ids: Ids
    labels: NDArray[Any]  # whole numbers of the smallest type that holds them
    names: list[Any]  # of labels, by their numbers; tuples where items have several

    @property
    def has_strings(self) -> bool:
        """Whether ids are strings."""
        return isinstance(self.ids, Strings)

    def places(self, keys: Keys) -> Keys:
        """Places of keys that are here."""
        return np.searchsorted(self.keys[: self.size], keys)

    def holds(self, keys: Keys) -> NDArray[np.bool_]:
        """Tell which keys are here; they may be of items deleted lately."""
        places = self.places(keys)
        held = places < self.size
        held[held] = self.keys[places[held]] == keys[held]
        return held

    def ids_of(self, keys: Keys) -> NDArray[Any]:
        """Ids of keys that are here."""
        return self.ids[self.places(keys)]

    def ids_between(self, start: int, stop: int) -> Iterator[NDArray[Any]]:
        """Ids of places, piece by piece."""
        for first in range(start, stop, PIECE):
            yield self.ids[np.arange(first, min(first + PIECE, stop))]

    def labels_of(self, keys: Keys) -> NDArray[Any]:
        """Numbers of the labels of keys; NO_LABEL where there is none, or the item is gone."""
        if self.size == 0:
            return np.full(keys.shape, NO_LABEL, self.labels.dtype)
        places = np.minimum(self.places(keys), self.size - 1)
        return np.where(self.keys[places] == keys, self.labels[places], NO_LABEL)

    def label_names_of(self, keys: Keys) -> list[Any]:
        """Labels of keys; None where there is none, or the item is gone."""
        numbers = self.labels_of(keys).tolist()
        return [None if number == NO_LABEL else self.names[number] for number in numbers]

    def look_up(self, keys: Keys) -> tuple[NDArray[Any], list[Any]]:
        """Ids and labels of keys that are here, None for no label: by one look."""
        places = self.places(keys)
        names, numbers = self.names, self.labels[places].tolist()
        return self.ids[places], [None if each == NO_LABEL else names[each] for each in numbers]

    def are_similar(self, label: Any, numbers: NDArray[Any]) -> NDArray[np.bool_]:
        """Tell which of some labels, by their numbers, are equal to one, or share one with it."""
        names = (None if number == NO_LABEL else self.names[number] for number in numbers.tolist())
        return np.array(share_label(label, names), bool)


class LiveKeys:
    """The keys of the items there are at one moment, ascending: a bit an item, and no copy of them.

    Changes of the directory do not touch it, and are not touched by it.
    """

    def __init__(self, keys: Keys, gone: NDArray[np.uint8] | None, n_items: int) -> None:
        self._keys, self._gone, self._n_items = keys, gone, n_items  # gone: bits, by place

    def __len__(self) -> int:
        return self._n_items

    def without(self, keys: Keys) -> "LiveKeys":
        """Return all but these, which are among them."""
        gone = np.zeros(-(-len(self._keys) // 8), np.uint8) if self._gone is None else self._gone
        gone, places = gone.copy(), np.searchsorted(self._keys, keys)
        np.bitwise_or.at(gone, places // 8, _bits(places))
        return LiveKeys(self._keys, gone, len(self) - len(keys))

    def take_last(self, keys: Keys) -> NDArray[np.bool_]:
        """Tell which keys are here, each where it comes last, and take these out for ever."""
        found, last = np.unique(keys[::-1], return_index=True)
        places = np.searchsorted(self._keys, found)
        held = places < len(self._keys)
        held[held] = self._keys[places[held]] == found[held]
        if self._gone is None:
            self._gone = np.zeros(-(-len(self._keys) // 8), np.uint8)
        gone = self._gone
        held[held] = gone[places[held] // 8] & _bits(places[held]) == 0
        places, last = places[held], last[held]
        np.bitwise_or.at(gone, places // 8, _bits(places))
        self._n_items -= len(places)
        taken = np.zeros(len(keys), np.bool_)
        taken[len(keys) - 1 - last] = True
        return taken

    def pieces(self) -> Iterator[Keys]:
        """Give all, piece by piece."""
        for first in range(0, len(self._keys), PIECE):
            keys = self._at(first, min(first + PIECE, len(self._keys)))
            if len(keys):
                yield keys

    def between(self, after: int, last: int) -> Keys:
        """Return those above ``after``, up to ``last``."""
        first, stop = np.searchsorted(self._keys, [after, last], side="right").tolist()
        return self._at(first, stop)

    def _at(self, first: int, stop: int) -> Keys:
        keys: Keys = self._keys[first:stop]
        if self._gone is None or not len(keys):
            return keys
        gone = np.unpackbits(self._gone[first // 8 : -(-stop // 8)])[first % 8 :]
        there: Keys = keys[gone[: len(keys)] == 0]
        return there


def _bits(places: Keys) -> NDArray[np.uint8]:
    """The bits of places in their bytes, as packbits has them."""
    return (128 >> places % 8).astype(np.uint8)


class Directory:
    """What is looked up by ids, and by keys; its caller lets one thread at a time write.

    Places of deleted items are used up; when they are most of all places, the others move up.
    ``zeros`` makes its arrays.
    """

    def __init__(self, zeros: Zeros = np.zeros, *, strings: bool = False) -> None:
        self.last_key, self.n_deleted = -1, 0  # these are counted for ever
        self.classes: dict[Any, None] = {}  # single labels that items have or had
        self.n_labelled = self._n_items = 0
        self._zeros = zeros
        self._numbers: dict[Any, int] = {}  # of labels, or of tuples of several
        self._table = IdTable(zeros)
        self._again: list[Keys] = []  # places of items whose ids came again, before ``settle``
        self._is_gone: NDArray[np.bool_] | None = None  # by place, once anything was deleted
        keys = np.empty(0, np.int64)
        ids = Strings.of([]) if strings else keys
        self.listing = Listing(0, keys, ids, np.empty(0, np.int8), [])

    def __len__(self) -> int:
        return self._n_items

    def __contains__(self, item: object) -> bool:
        is_id = isinstance(item, str if self.listing.has_strings else int | np.integer)
        return is_id and bool(self.find([item])[0] >= 0)

    @property
    def next_id(self) -> int:
        """A whole number above all ids, those of deleted items with them."""
        assert isinstance(self.listing.ids, np.ndarray)
        return int(self.listing.ids[: self.listing.size].max(initial=-1)) + 1

    @property
    def ids(self) -> list[Any]:
        """The ids, in the order of adding."""
        pieces = (self.listing.ids[places].tolist() for places in self._places())
        return [item for piece in pieces for item in piece]

    @property
    def keys(self) -> Keys:
        """The keys of the items that are there, ascending; not to be written to."""
        if self._is_gone is None:
            return self.listing.keys[: self.listing.size]
        keys, n = self._zeros(len(self), np.int64), 0
        for places in self._places():
            keys[n : n + len(places)] = self.listing.keys[places]
            n += len(places)
        return keys

    @property
    def live_keys(self) -> LiveKeys:
        """The same, in little memory and for ever."""
        size = self.listing.size
        gone = None if self._is_gone is None else np.packbits(self._is_gone[:size])
        return LiveKeys(self.listing.keys[:size], gone, len(self))

    @property
    def n_classes(self) -> int:
        """How many different labels the items have."""
        listing, names = self.listing, self.listing.names
        used = np.zeros(len(names), np.bool_)
        for places in self._places():
            numbers = listing.labels[places]
            used[numbers[numbers != NO_LABEL]] = True
        return len({each for at in np.flatnonzero(used) for each in each_label(names[at])})

    def _places(self) -> Iterator[Keys]:
        """Places of the items that are there, piece by piece."""
        for first in range(0, self.listing.size, PIECE):
            last = min(first + PIECE, self.listing.size)
            if self._is_gone is None:
                yield np.arange(first, last)
            else:
                yield first + np.flatnonzero(~self._is_gone[first:last])

    def find(self, ids: Any) -> Keys:
        """Keys of ids, an array or a list; -1 where there is none."""
        if len(ids) == 0 or len(self) == 0:
            return np.full(len(ids), -1, np.int64)
        places = self._find(ids)
        return np.where(places >= 0, self.listing.keys[places], -1)

    def _find(self, ids: Any) -> Keys:
        """Places of ids, -1 where there is none."""
        wanted: Ids | None = None
        if isinstance(ids, Strings) or all(isinstance(item, str) for item in ids):
            if self.listing.has_strings:
                wanted = ids if isinstance(ids, Strings) else Strings.of(ids)
        elif not self.listing.has_strings:
            array = np.asarray(ids)
            if array.dtype.kind in "iu":
                wanted = array.astype(np.int64, copy=False)
        if wanted is None:  # ids of another kind
            return np.full(len(ids), -1, np.int64)
        if self._table.size < self.listing.size:
            self.note_ids()
        places = self._table.find(self.listing.ids, wanted)
        if self._is_gone is not None:
            places[self._is_gone[places]] = -1
        return places

    def has(self, keys: Keys) -> NDArray[np.bool_]:
        """Tell which keys are those of items that are there."""
        held = self.listing.holds(keys)
        if self._is_gone is not None:
            held[held] = ~self._is_gone[self.listing.places(keys[held])]
        return held

    def absent(self, there: Iterable[Keys]) -> Keys:
        """Return the keys of items that are not among these, which come in pieces."""
        listing = self.listing
        missing = np.ones(listing.size, np.bool_)
        if self._is_gone is not None:
            missing &= ~self._is_gone[: listing.size]
        for keys in there:
            missing[listing.places(keys[listing.holds(keys)])] = False
        return listing.keys[: listing.size][missing]

    def expect(self, n: int) -> None:
        """Have room for ``n`` items in all, at once."""
        self._table.expect(n)
        self._make_room(n, 0)

    def column(self, n: int) -> Keys:
        """Return the column of keys, with room for ``n`` more items than there are."""
        self._make_room(self.listing.size + n, 0)
        return self.listing.keys

    def append(self, keys: Keys, ids: Any, labels: Sequence[Any] | Coded) -> Keys:
        """Add items with keys above all others; return those of items whose place they take."""
        self.extend(keys, ids, labels)
        return self.settle()

    def extend(self, keys: Keys, ids: Any, labels: Sequence[Any] | Coded) -> None:
        """Add items with ids that nobody else has; if that is not sure, ``settle`` will tell."""
        if len(keys) == 0:
            return
        if not isinstance(ids, Strings):
            ids = np.asarray(ids)
            ids = Strings.of(ids.tolist()) if ids.dtype == object else ids
        if self.listing.size == 0 and isinstance(ids, Strings) != self.listing.has_strings:
            empty = Strings.of([]) if isinstance(ids, Strings) else np.empty(0, np.int64)
            self.listing = self.listing._replace(ids=empty)
        numbers = self._number(labels)
        size = self.listing.size + len(keys)
        self._make_room(size, len(ids.content) if isinstance(ids, Strings) else 0)
        now = self.listing
        new = slice(now.size, size)
        now.keys[new], now.labels[new] = keys, numbers
        if isinstance(now.ids, Strings):
            start = now.ids.offsets[now.size]
            now.ids.offsets[now.size + 1 : size + 1] = start + ids.offsets[1:]
            now.ids.content[start : start + len(ids.content)] = ids.content
        else:
            now.ids[new] = ids
        self.listing = now._replace(size=size)
        self._n_items += len(keys)
        self.n_labelled += int((numbers != NO_LABEL).sum())
        self.last_key = int(keys[-1])

    def note_ids(self) -> None:
        """Have the ids so far in the table, perhaps in a thread beside the one that adds items."""
        with _noting:
            listing = self.listing
            while self._table.size < listing.size:
                size = min(self._table.size + PIECE, listing.size)
                again = self._table.put(listing.ids, size)
                if len(again):
                    self._again.append(again)

    def settle(self) -> Keys:
        """Delete items whose ids came again since, and return their keys."""
        self.note_ids()
        again = np.unique(np.concatenate([np.empty(0, np.int64), *self._again]))
        self._again = []
        if self._is_gone is not None:
            again = again[~self._is_gone[again]]
        replaced: Keys = self.listing.keys[again]
        self._delete(again)
        return replaced

    def set_labels(self, keys: Keys, labels: Sequence[Any] | Coded) -> None:
        """Give items other labels; of a key that comes twice, the last one counts."""
        places, numbers = self.listing.places(keys), self._number(labels)
        ordered = (places[1:] > places[:-1]).all()
        if not ordered:
            places, last = np.unique(places[::-1], return_index=True)
            numbers = numbers[::-1][last]
        before = self.listing.labels[places]
        self.listing.labels[places] = numbers
        self.n_labelled += int((numbers != NO_LABEL).sum()) - int((before != NO_LABEL).sum())

    def delete(self, ids: Any) -> None:
        """Delete items that are there."""
        self._delete(self._find(ids))

    def delete_keys(self, keys: Keys) -> None:
        """Delete items that are there, by their keys."""
        self._delete(self.listing.places(keys))

    def _delete(self, places: Keys) -> None:
        if len(places) == 0:
            return
        if self._is_gone is None:
            self._is_gone = self._zeros(len(self.listing.keys), np.bool_)
        self._is_gone[places] = True
        self.n_deleted += len(places)
        self._n_items -= len(places)
        self.n_labelled -= int((self.listing.labels[places] != NO_LABEL).sum())
        if self.listing.size > 2 * len(self) + SPARE_PLACES:
            self._move_up()

    def _move_up(self) -> None:
        """Make the columns anew, without the places of deleted items, and labels nobody has."""
        kept = Directory(self._zeros, strings=self.listing.has_strings)
        kept.last_key, kept.n_deleted = self.last_key, self.n_deleted
        kept.expect(len(self))
        old = self.listing
        for places in self._places():
            ids = old.ids.taken(places) if isinstance(old.ids, Strings) else old.ids[places]
            kept.append(old.keys[places], ids, Coded(old.labels[places], old.names))
        kept.last_key = self.last_key
        vars(self).update(vars(kept))

    # ------------------------------------------------------------------------------------ helpers

    def _make_room(self, size: int, n_bytes: int) -> None:
        """Have room for so many items in all, and for so many bytes more of strings."""
        now = self.listing
        if size > len(now.keys):
            room = max(size, int(GROWTH * now.size))
            ids: Ids = now.ids
            if isinstance(ids, Strings):
                offsets = self._wider(ids.offsets, now.size + 1, room + 1)
                ids = Strings(ids.content, offsets)
            else:
                ids = self._wider(ids, now.size, room)
            keys, labels = (self._wider(each, now.size, room) for each in (now.keys, now.labels))
            self.listing = now._replace(keys=keys, ids=ids, labels=labels)
            if self._is_gone is not None:
                self._is_gone = self._wider(self._is_gone, now.size, room)
        ids, room = self.listing.ids, len(self.listing.keys)
        if isinstance(ids, Strings):
            used = int(ids.offsets[now.size])
            if used + n_bytes > len(ids.content):
                all_bytes = int(1.1 * n_bytes / max(size - now.size, 1) * room)  # if so go on
                wide = max(used + n_bytes, int(GROWTH * used), all_bytes)
                ids = Strings(self._wider(ids.content, used, wide), ids.offsets)
                self.listing = self.listing._replace(ids=ids)

    def _wider(self, array: NDArray[Any], size: int, room: int) -> NDArray[Any]:
        wider = self._zeros(room, array.dtype)
        wider[:size] = array[:size]
        return wider

    def _number(self, labels: Sequence[Any] | Coded) -> NDArray[np.int32]:
        """Return the numbers of labels, and give new ones theirs."""
        if isinstance(labels, Coded):
            n = len(labels.names)
            used = np.flatnonzero(np.bincount(labels.numbers + 1, minlength=n + 1)[1:]).tolist()
            table = np.full(n + 1, NO_LABEL, np.int32)
            table[used] = self._number([labels.names[number] for number in used])
            return table[labels.numbers]
        numbers, names = self._numbers, self.listing.names
        for label in dict.fromkeys(labels):
            if label is not None and label not in numbers:
                numbers[label] = len(names)
                names.append(label)
                self.classes.update(dict.fromkeys(each_label(label)))
        kind = np.min_scalar_type(-len(names) - 1)
        if kind.itemsize > self.listing.labels.itemsize:
            wider = self._zeros(len(self.listing.labels), kind)
            wider[: self.listing.size] = self.listing.labels[: self.listing.size]
            self.listing = self.listing._replace(labels=wider)
        return np.fromiter(map(numbers.get, labels, repeat(NO_LABEL)), np.int32, len(labels))
