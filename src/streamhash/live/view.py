"""What searches see: one model, the codes that it made, and the items they belong to.

A search takes the moment once and uses nothing else, so it cannot mix two models: a new serving
model means a new moment, put in place of the old one in a single assignment.

A *key* is a number that ascends in the order of adding; it is never given twice, not even to an
item of the same id that was deleted and added again. Searches look ids up without a lock: they take
the arrays once, what they may have seen of them is never written again (but labels, of which they
read none), and where a key is not there any more, the search is made again.
"""

from collections.abc import Sequence
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.base import OnlineHasher
from streamhash.codes import Codes
from streamhash.live.arrow import Keys
from streamhash.live.backends import Backend
from streamhash.live.backends.memory import MemoryBackend
from streamhash.live.journal import Journal, Pieces, absent
from streamhash.search.ids import kind

NO_LABEL = -1
SPARE_PLACES = 1024  # places of deleted items that never matter
NO_ITEM = np.iinfo(np.int32).max  # the distance of an item that is not there
SHARED_LIMIT = 16_384  # looked at in a backend that others change, to find items that are there


class Listing(NamedTuple):
    """Items by place, in the order of their keys; the arrays may have room for more.

    What a search found is looked up in one listing, which no change makes invalid.
    """

    size: int
    keys: Keys
    ids: NDArray[Any]
    labels: NDArray[np.int32]
    names: list[Any]  # of labels, by their numbers

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

    def labels_of(self, keys: Keys) -> NDArray[np.int32]:
        """Numbers of the labels of keys that are here, NO_LABEL where there is none."""
        return self.labels[self.places(keys)]

    def label_names_of(self, keys: Keys) -> list[Any]:
        """Labels of keys that are here, None where there is none."""
        numbers = self.labels_of(keys).tolist()
        return [None if number == NO_LABEL else self.names[number] for number in numbers]


class Directory:
    """The id, the key and the label of every item; its caller lets one thread at a time write.

    Places of deleted items are used up; when they are most of all places, the others move up.
    """

    def __init__(self) -> None:
        self.last_key = -1
        self._fill(np.empty(0, np.int64), np.empty(0, np.int64), [])

    def _fill(self, keys: Keys, ids: NDArray[Any], labels: Sequence[Any]) -> None:
        self._numbers: dict[Any, int] = {}  # of labels
        self._places = dict(zip(ids.tolist(), range(len(keys)), strict=True))
        self.listing = Listing(len(keys), keys, ids, np.empty(0, np.int32), [])
        numbers = self._number(labels)
        self.listing = self.listing._replace(labels=numbers)
        self.n_labelled = int((numbers != NO_LABEL).sum())

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, item: object) -> bool:
        return item in self._places

    @property
    def next_id(self) -> int:
        """A whole number above all ids, those of deleted items with them."""
        return int(self.listing.ids[: self.listing.size].max(initial=-1)) + 1

    @property
    def ids(self) -> list[Any]:
        """The ids, in the order of adding."""
        return [*self._places]

    @property
    def keys(self) -> Keys:
        """The keys of the items that are there, ascending."""
        return self.listing.keys[np.fromiter(self._places.values(), np.int64, len(self))]

    @property
    def n_classes(self) -> int:
        """How many different labels the items have."""
        numbers = self.listing.labels_of(self.keys)
        return len(np.unique(numbers[numbers != NO_LABEL]))

    def find(self, ids: Sequence[Any]) -> Keys:
        """Keys of ids; -1 where there is none."""
        if not self._places:
            return np.full(len(ids), -1, np.int64)
        places = np.array([self._places.get(item, -1) for item in ids], np.int64)
        return np.where(places >= 0, self.listing.keys[places], -1)

    def has(self, keys: Keys) -> NDArray[np.bool_]:
        """Tell which keys are those of items that are there."""
        held = self.listing.holds(keys)
        held[held] = self.find(self.listing.ids_of(keys[held]).tolist()) == keys[held]
        return held

    def label_number(self, label: Any) -> int:
        """The number of a label, NO_LABEL if no item ever had it."""
        return self._numbers.get(label, NO_LABEL)

    def append(self, keys: Keys, ids: NDArray[Any], labels: Sequence[Any]) -> None:
        """Add items with keys above all others; they take the place of those with their ids."""
        if len(self) == self.listing.size == 0 and kind(ids) != kind(self.listing.ids):
            self.listing = self.listing._replace(ids=ids[:0])
        if len(keys) == 0:
            return
        names = ids.tolist()
        self.delete([name for name in names if name in self._places])
        numbers, now = self._number(labels), self.listing
        size = now.size + len(keys)
        if size > len(now.keys):
            room = max(size, 2 * now.size)
            keys_, ids_, labels_ = (
                _widened(each, now.size, room) for each in (now.keys, now.ids, now.labels)
            )
            now = now._replace(keys=keys_, ids=ids_, labels=labels_)
        new = slice(now.size, size)
        now.keys[new], now.ids[new], now.labels[new] = keys, ids, numbers
        self._places.update(zip(names, range(now.size, size), strict=True))
        self.listing = now._replace(size=size)
        self.n_labelled += int((numbers != NO_LABEL).sum())
        self.last_key = int(keys[-1])

    def set_labels(self, keys: Keys, labels: Sequence[Any]) -> None:
        """Give items other labels."""
        places, numbers = self.listing.places(keys), self._number(labels)
        before = self.listing.labels[places]
        self.listing.labels[places] = numbers
        self.n_labelled += int((numbers != NO_LABEL).sum()) - int((before != NO_LABEL).sum())

    def delete(self, ids: Sequence[Any]) -> None:
        """Delete items that are there."""
        places = [self._places.pop(item) for item in ids]
        self.n_labelled -= int((self.listing.labels[places] != NO_LABEL).sum())
        if self.listing.size > 2 * len(self) + SPARE_PLACES:
            keys, now = self.keys, self.listing
            self._fill(keys, now.ids_of(keys), now.label_names_of(keys))

    def _number(self, labels: Sequence[Any]) -> NDArray[np.int32]:
        numbers, names = self._numbers, self.listing.names
        for label in dict.fromkeys(labels):
            if label is not None and label not in numbers:
                numbers[label] = len(names)
                names.append(label)
        return np.fromiter(map(numbers.get, labels, repeat(NO_LABEL)), np.int32, len(labels))


def _widened(array: NDArray[Any], size: int, room: int) -> NDArray[Any]:
    wider = np.empty(room, array.dtype)
    wider[:size] = array[:size]
    return wider


class Moment(NamedTuple):
    """The items of a collection with the codes of one model."""

    number: int  # of the model that serves, 0 while there is none
    model: OnlineHasher | None
    backend: Backend | None  # codes by key
    directory: Directory


class Answer(NamedTuple):
    """What a search found, all of it by one model."""

    model: int
    codes: Codes  # (n, bytes), of the queries
    distances: NDArray[np.int32]  # (n, k)
    keys: Keys  # (n, k), -1 where there are no more items
    listing: Listing  # that the keys are looked up in

    def rows(self, start: int, stop: int, k: int) -> "Answer":
        """Return the answer to some of the queries, with fewer neighbours."""
        return self._replace(
            codes=self.codes[start:stop],
            distances=self.distances[start:stop, :k],
            keys=self.keys[start:stop, :k],
        )

    def without(self, own: Keys) -> "Answer":
        """Leave each query, an item itself, out of its neighbours, of which one is too many."""
        drop = self.keys == own[:, None]
        drop[~drop.any(axis=1), -1] = True
        shape = (len(own), self.keys.shape[1] - 1)
        return self._replace(
            distances=self.distances[~drop].reshape(shape), keys=self.keys[~drop].reshape(shape)
        )

    def ids(self) -> NDArray[Any]:
        """The ids found, (n, k); -1 (None among strings) where there are no more items."""
        there, names = self.keys >= 0, self.listing.ids
        ids = np.full(self.keys.shape, None if names.dtype == object else -1, names.dtype)
        ids[there] = self.listing.ids_of(self.keys[there])
        return ids

    def labels(self) -> list[list[Any]]:
        """The labels of what was found, None for no label; rows end where there are no more."""
        return [self.listing.label_names_of(row[row >= 0]) for row in self.keys]


class View:
    """The moment that searches see now, which follows what the journal stores.

    Its changes are made by one thread at a time, which holds the journal's lock.
    """

    def __init__(self, journal: Journal, backend_options: dict[str, Any] | None) -> None:
        self._journal, self.options = journal, backend_options
        self.now = Moment(0, None, None, Directory())
        self._labels_read = (0, 0)  # how often labels were folded, and how many were read since
        self._prepared: tuple[int, Backend] | None = None  # a model, and what a refresh fills

    def keys(self) -> Keys:
        """Return the keys of all items."""
        with self._journal.lock:
            return self.now.directory.keys

    # -------------------------------------------------------------------------------- searching

    def answer(self, rows: NDArray[np.float32], k: int) -> Answer:
        """Search for rows that are checked, when a model serves."""
        answer = self._answer(rows, k)
        if not answer.listing.holds(answer.keys[answer.keys >= 0]).all():
            with self._journal.lock:  # items were deleted between two looks: now nobody does
                answer = self._answer(rows, k)
        return answer

    def _answer(self, rows: NDArray[np.float32], k: int) -> Answer:
        moment = self.now  # once: one model, its codes, and their ids
        assert moment.model is not None
        assert moment.backend is not None
        codes = moment.model.transform(rows)
        distances, keys = _search(moment.backend, moment.directory, codes, k)
        return Answer(moment.number, codes, distances, keys, moment.directory.listing)

    # -------------------------------------------------------------------------------- following

    def load(self) -> None:
        """Read all anew."""
        if self.now.backend is not None:
            self.now.backend.retire()
        self._advance(Moment(0, None, None, Directory()), (0, 0))

    def advance(self) -> None:
        """Follow what the journal holds now, reading only what is new."""
        self._advance(self.now, self._labels_read)

    def _advance(self, before: Moment, labels_read: tuple[int, int]) -> None:
        journal, directory, model, backend = (
            self._journal,
            before.directory,
            before.model,
            before.backend,
        )
        number, fold = journal.serving, journal.fold
        changed = number != before.number
        if changed:
            model = journal.read_model(number).hasher()
            backend = self._backend(number, model.n_bits)
        start = labels_read[1] if fold == labels_read[0] else 0
        if journal.has_items:
            gone = absent(directory.keys, journal.keys())
            new = journal.new_items(directory.last_key)
            later, labels = journal.read_labels(start)
            # All is read but the codes of a new model: from here on only memory changes.
            again = set(new.ids.tolist())
            replaced = directory.find([*again])
            lost = directory.listing.ids_of(gone).tolist()
            directory.delete([name for name in lost if name not in again])
            directory.append(new.keys, new.ids, new.labels)
            if not changed and backend is not None and new.codes is not None:
                backend.delete(np.union1d(gone, replaced[replaced >= 0]))
                backend.add(new.keys, new.codes)
            last = dict(zip(later.tolist(), labels, strict=True))  # the last of each counts
            keys = np.fromiter(last, np.int64, len(last))
            keys = keys[directory.has(keys)]
            directory.set_labels(keys, [last[key] for key in keys.tolist()])
            start += len(later)
        if changed and backend is not None:
            if before.backend is not None:
                before.backend.retire()
            backend.serve(directory.keys, partial(journal.read_codes, number))
        self.now, self._labels_read = Moment(number, model, backend, directory), (fold, start)

    # -------------------------------------------------------------------- changes of the writer

    def append(
        self, keys: Keys, ids: NDArray[Any], labels: Sequence[Any], codes: Codes | None, old: Keys
    ) -> None:
        """Show new items, in place of those with the ``old`` keys."""
        self.now.directory.append(keys, ids, labels)
        if self.now.backend is not None and codes is not None:
            self.now.backend.delete(old)
            self.now.backend.add(keys, codes)

    def label(self, keys: Keys, labels: Sequence[Any]) -> None:
        """Show other labels of items."""
        self.now.directory.set_labels(keys, labels)
        self._labels_read = (self._labels_read[0], self._labels_read[1] + len(keys))

    def delete(self, keys: Keys, ids: Sequence[Any]) -> None:
        """Show items no more."""
        if self.now.backend is not None:
            self.now.backend.delete(keys)
        self.now.directory.delete(ids)

    # --------------------------------------------------------------------------------- backends

    @property
    def address(self) -> str | None:
        """Where codes are searched; None: in memory."""
        settings = self._journal.settings
        return settings.get("backend", settings.get("serving"))  # so called by version 0.1

    def _backend(self, number: int, n_bits: int) -> Backend:
        """Return a backend for the codes of a model: the one that was prepared, or a new one."""
        if self._prepared is not None and self._prepared[0] == number:
            return self._prepared[1]
        if self.address is None:
            return MemoryBackend(n_bits)
        from streamhash.live.backends.milvus import MilvusBackend, Server

        journal, server = self._journal, Server(self.address, self.options)

        def read(keys: Keys) -> Pieces:  # by datasets that no other thread changes
            return journal.another().read_codes(number, keys)

        return MilvusBackend(server, number, n_bits, self.keys, None if journal.read_only else read)

    def prepare(self, number: int, n_bits: int) -> Backend | None:
        """Return a backend to be filled before its model serves; None where that is needless."""
        if self.address is None:
            return None
        if self.now.backend is not None:
            self.now.backend.check()
        backend = self._backend(number, n_bits)
        backend.prepare()
        self._prepared = number, backend
        return backend

    def drop_replaced(self) -> None:
        """Drop the codes of models that served before, where a backend keeps them."""
        self._prepared = None
        if self.now.backend is not None:
            self.now.backend.drop_replaced()

    def status(self) -> dict[str, Any]:
        """Say where the codes are, and how the backend does."""
        if self.now.backend is None:
            return {"address": self.address or "memory", "reachable": None, "lag": 0, "error": None}
        return self.now.backend.status()


def _search(
    backend: Backend, directory: Directory, codes: Codes, k: int
) -> tuple[NDArray[np.int32], Keys]:
    """Search; where others change what is searched, pass over what the directory does not hold."""
    if not backend.is_shared:
        return backend.search(codes, k)
    wanted = k
    while True:
        distances, keys = backend.search(codes, wanted)
        there = directory.has(keys)
        enough = (there.sum(axis=1) >= k) | (keys[:, -1] < 0)
        if enough.all() or wanted >= SHARED_LIMIT:
            break
        wanted = min(4 * max(wanted, 16), SHARED_LIMIT)
    first = np.argsort(~there, axis=1, kind="stable")[:, :k]  # those that are there, first
    there = np.take_along_axis(there, first, axis=1)
    distances = np.where(there, np.take_along_axis(distances, first, axis=1), NO_ITEM)
    return distances, np.where(there, np.take_along_axis(keys, first, axis=1), -1)
