"""What searches see: one model, the codes that it made, and the items they belong to.

A search takes the moment once and uses nothing else, so it cannot mix two models, nor miss an item
that is being replaced: every change is a new moment, put in place of the old one in a single
assignment. Searches wait for nobody; what a moment holds is never written again (but labels).

What is looked up by ids is looked up in the directory, which changes. So ``looking`` is held by
whoever looks, and by the writer while it changes the directory and the moment: never while anything
is read or stored.

A *key* is a number that ascends in the order of adding; it is never given twice, not even to an
item of the same id that was deleted and added again.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.base import NotStartedError, OnlineHasher
from streamhash.codes import Codes, pack
from streamhash.errors import InputError
from streamhash.labels import each_label, share_label
from streamhash.live.arrow import Keys
from streamhash.live.backends import Backend
from streamhash.live.backends.memory import MemoryBackend
from streamhash.live.calibration import Calibration
from streamhash.live.fields import Fields, Selection
from streamhash.live.filters import Filter
from streamhash.live.journal import Journal, Pieces, absent
from streamhash.live.search import SearchOptions
from streamhash.records import SearchResult
from streamhash.search.code_store import Snapshot
from streamhash.search.ids import kind

Note = tuple[Keys, Sequence[str | None]]

NO_LABEL = -1
SPARE_PLACES = 1024  # places of deleted items that never matter
NO_ITEM = np.iinfo(np.int32).max  # the distance of an item that is not there
NOTED_BYTES = 2**16  # of metadata of a change, at most: of more they are read again
NAMED_KEYS = 10_000  # at most, that such a backend is asked to search among
SHARED_LIMIT = 16_384  # looked at in a backend that others change, to find items that are there
RETRIES = 5  # of a search in such a backend, before the writer has to wait for it


class Listing(NamedTuple):
    """Items by place, in the order of their keys; the arrays may have room for more.

    What a search found is looked up in one listing, which no change makes invalid.
    """

    size: int
    keys: Keys
    ids: NDArray[Any]
    labels: NDArray[np.int32]
    names: list[Any]  # of labels, by their numbers; tuples where items have several

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
        """Numbers of the labels of keys; NO_LABEL where there is none, or the item is gone."""
        if self.size == 0:
            return np.full(keys.shape, NO_LABEL, np.int32)
        places = np.minimum(self.places(keys), self.size - 1)
        return np.where(self.keys[places] == keys, self.labels[places], NO_LABEL)

    def label_names_of(self, keys: Keys) -> list[Any]:
        """Labels of keys; None where there is none, or the item is gone."""
        numbers = self.labels_of(keys).tolist()
        return [None if number == NO_LABEL else self.names[number] for number in numbers]

    def are_similar(self, label: Any, numbers: NDArray[Any]) -> NDArray[np.bool_]:
        """Tell which of some labels, by their numbers, are equal to one, or share one with it."""
        names = (None if number == NO_LABEL else self.names[number] for number in numbers.tolist())
        return np.array(share_label(label, names), bool)


class Directory:
    """The id, the key and the label of every item; its caller lets one thread at a time write.

    Places of deleted items are used up; when they are most of all places, the others move up.
    """

    def __init__(self) -> None:
        self.last_key, self.n_deleted = -1, 0  # these are counted for ever
        self._fill(np.empty(0, np.int64), np.empty(0, np.int64), [])

    def _fill(self, keys: Keys, ids: NDArray[Any], labels: Sequence[Any]) -> None:
        self._numbers: dict[Any, int] = {}  # of labels, or of tuples of several
        self.classes: dict[Any, None] = {}  # single labels that items have or had
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
        numbers = np.unique(self.listing.labels_of(self.keys))
        names = [self.listing.names[number] for number in numbers[numbers != NO_LABEL]]
        return len({each for name in names for each in each_label(name)})

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
        self.n_deleted += len(places)
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
                self.classes.update(dict.fromkeys(each_label(label)))
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
    codes: Snapshot | None  # of a backend in memory
    listing: Listing

    @classmethod
    def of(
        cls, number: int, model: OnlineHasher | None, backend: Backend | None, directory: Directory
    ) -> "Moment":
        """Return what is here now: codes and listing of a moment do not change."""
        codes = None if backend is None else backend.moment()
        return cls(number, model, backend, directory, codes, directory.listing)

    def answer_real(self, rows: NDArray[np.float32], k: int) -> "Answer":
        """Search by the queries' projections: scores are what was nearest, distances Hamming's."""
        if not isinstance(self.backend, MemoryBackend):
            raise InputError(
                "Collection.search: query='real' needs the codes in memory, and those of this "
                "collection are in Milvus; search with rescore=4, by='projections' instead."
            )
        assert self.model is not None
        assert self.codes is not None
        projections = self.model.project(rows)
        scores, keys = self.backend.search_real(projections, k, at=self.codes)
        codes, there = pack(projections), keys >= 0
        different = self.codes.codes_of(keys[there]) ^ codes[np.nonzero(there)[0]]
        distances = np.full(keys.shape, NO_ITEM, np.int32)
        distances[there] = np.bitwise_count(different).sum(axis=1)
        scores[~there] = np.nan
        return Answer(self.number, codes, distances, keys, self.listing, scores)


class Answer(NamedTuple):
    """What a search found, all of it by one model."""

    model: int
    codes: Codes  # (n, bytes), of the queries
    distances: NDArray[np.int32]  # (n, k)
    keys: Keys  # (n, k), -1 where there are no more items
    listing: Listing  # that the keys are looked up in
    scores: NDArray[np.float32] | None = None  # (n, k), NaN where there are no more items
    calibration: Calibration | None = None  # that tells how probable they are

    @property
    def probabilities(self) -> NDArray[np.float32] | None:
        """How likely each has its query's label, (n, k), NaN where there are no more items.

        They follow from the distances of the codes, whatever the order; None while nothing is
        known.
        """
        known = self.calibration and self.calibration.probabilities(self.model, self.distances)
        return None if known is None else known.astype(np.float32)

    def at_least(self, probability: float | None, *, place: str) -> "Answer":
        """Leave out what is less probable."""
        if probability is None:
            return self
        known = self.probabilities
        if known is None:
            raise NotStartedError(
                f"{place}: min_probability={probability:g}, and nothing is known of probabilities "
                "yet; add labelled items, which ask before they are learned, or leave it out."
            )
        keep = known >= probability
        order = np.argsort(~keep, axis=1, kind="stable")  # what is kept, first
        ends = np.arange(keep.shape[1]) >= keep.sum(axis=1)[:, None]
        empty = self.with_each(lambda values: np.take_along_axis(values, order, axis=1))
        scores = None if empty.scores is None else np.where(ends, np.nan, empty.scores)
        distances = np.where(ends, NO_ITEM, empty.distances)
        return empty._replace(
            distances=distances, keys=np.where(ends, -1, empty.keys), scores=scores
        )

    def rows(self, start: int, stop: int, k: int) -> "Answer":
        """Return the answer to some of the queries, with fewer neighbours."""
        some = self._replace(codes=self.codes[start:stop])
        return some.with_each(lambda values: values[start:stop, :k])

    def with_each(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> "Answer":
        """Change all that is told of each neighbour, arrays (n, k), in the same way."""
        names = ("distances", "keys", "scores")
        known = [name for name in names if getattr(self, name) is not None]
        changed: dict[str, Any] = {name: change(getattr(self, name)) for name in known}
        return self._replace(**changed)

    def without(self, own: Keys) -> "Answer":
        """Leave each query, an item itself, out of its neighbours, of which one is too many."""
        drop = self.keys == own[:, None]
        drop[~drop.any(axis=1), -1] = True
        shape = (len(own), self.keys.shape[1] - 1)
        return self.with_each(lambda values: values[~drop].reshape(shape))

    def ids(self) -> NDArray[Any]:
        """The ids found, (n, k); -1 (None among strings) where there are no more items."""
        there, names = self.keys >= 0, self.listing.ids
        ids = np.full(self.keys.shape, None if names.dtype == object else -1, names.dtype)
        ids[there] = self.listing.ids_of(self.keys[there])
        return ids

    def labels(self) -> list[list[Any]]:
        """The labels of what was found, None for no label; rows end where there are no more."""
        return [self.listing.label_names_of(row[row >= 0]) for row in self.keys]

    def result(self) -> SearchResult:
        """What was found, as users see it."""
        return SearchResult(
            self.distances,
            self.ids(),
            labels=self.labels,
            model=self.model,
            scores=self.scores,
            probabilities=self.probabilities,
        )


class View:
    """The moment that searches see now, which follows what the journal stores.

    Its changes are made by one thread at a time, which holds the journal's lock.
    """

    def __init__(self, journal: Journal, backend_options: dict[str, Any] | None) -> None:
        self._journal, self.options = journal, backend_options
        self.fields: Fields  # the collection sets it
        self.notes: deque[Note] | None = None  # metadata that fields are to follow, if they do
        self.looking = threading.Lock()
        self.now = Moment.of(0, None, None, Directory())
        self._labels_read = (0, 0)  # how often labels were folded, and how many were read since
        self._prepared: tuple[int, Backend] | None = None  # a model, and what a refresh fills

    # ------------------------------------------------------------------------------- looking up

    def __len__(self) -> int:
        with self.looking:
            return len(self.now.directory)

    def __contains__(self, item: object) -> bool:
        with self.looking:
            return item in self.now.directory

    def has(self, keys: Keys) -> NDArray[np.bool_]:
        """Tell which keys are those of items that are there."""
        with self.looking:
            return self.now.directory.has(keys)

    def ids(self) -> list[Any]:
        """Return the ids of all items, in the order of adding."""
        with self.looking:
            return self.now.directory.ids

    def keys(self) -> Keys:
        """Return the keys of all items."""
        with self._journal.lock:
            return self.now.directory.keys

    def labels(self, ids: Sequence[Any]) -> list[Any]:
        """Return the labels of ids; None where there is no label, or no item."""
        with self.looking:
            directory = self.now.directory
            return directory.listing.label_names_of(directory.find(ids))

    def label_names(self) -> list[Any]:
        """Return the labels that items have or had."""
        with self.looking:
            return [*self.now.directory.classes]

    # -------------------------------------------------------------------------------- searching

    def answer(self, rows: NDArray[np.float32], k: int, options: SearchOptions) -> Answer:
        """Search for rows that are checked, when a model serves."""
        moment, where = self.now, options.where  # once: one model, its codes, and their ids
        if where is not None and isinstance(moment.backend, MemoryBackend):
            selection = self.fields.select(where)
            moment = selection.moment._replace(codes=selection.codes)
        assert moment.model is not None
        if options.query == "real":
            return moment.answer_real(rows, k)
        codes = moment.model.transform(rows)
        if isinstance(moment.backend, MemoryBackend):
            distances, keys = moment.backend.search(codes, k, at=moment.codes)
            return Answer(moment.number, codes, distances, keys, moment.listing)
        self._journal.store.refuse_forked()  # connections are the parent's, too
        for _ in range(RETRIES):
            answer = self._answer_shared(moment, codes, k, where)
            if answer is not None:
                return answer
        with self.fields.lock, self._journal.lock:  # now nobody changes anything
            answer = self._answer_shared(moment, codes, k, where)
        assert answer is not None
        return answer

    def _answer_shared(
        self, moment: Moment, codes: Codes, k: int, where: Filter | None
    ) -> Answer | None:
        """Search where others change what is searched, passing over what the directory lacks.

        None if something was passed over that may have been replaced meanwhile.
        """
        directory, n_deleted = moment.directory, moment.directory.n_deleted
        selection = None if where is None else self.fields.select(where)
        some = None if selection is None else selection.keys
        among = some if some is not None and len(some) <= NAMED_KEYS else None
        distances, keys, few, passed = self._look(moment, codes, k, selection, among)
        if some is not None and few.any():  # what matches lies far away: name it all, by parts
            parts = np.array_split(some, -(-len(some) // NAMED_KEYS))
            found = [self._look(moment, codes[few], k, selection, part) for part in parts]
            far, near = (np.concatenate([part[i] for part in found], axis=1) for i in (0, 1))
            first = np.lexsort((near, far))[:, :k]
            distances[few], keys[few] = (np.take_along_axis(v, first, axis=1) for v in (far, near))
        with self.looking:
            there, listing = directory.has(keys), directory.listing
            changed = self.now.directory is not directory or directory.n_deleted != n_deleted
        passed = passed or selection is not None or bool((~there & (keys >= 0)).any())
        return (
            None if changed and passed else Answer(moment.number, codes, distances, keys, listing)
        )

    def _look(
        self,
        moment: Moment,
        codes: Codes,
        k: int,
        selection: Selection | None,
        among: Keys | None,
    ) -> tuple[NDArray[np.int32], Keys, NDArray[np.bool_], bool]:
        """Look for items that are there and selected, among all codes or among some keys.

        Returns distances and keys; of which queries too few were found, though there may be more;
        and whether any code was passed over.
        """
        assert moment.backend is not None
        assert not isinstance(moment.backend, MemoryBackend)
        wanted = k
        while True:
            distances, keys = moment.backend.search(codes, wanted, among=among)
            with self.looking:
                there = moment.directory.has(keys)
            if selection is not None:
                there &= selection.holds(keys)
            few = (there.sum(axis=1) < k) & (keys[:, -1] >= 0)
            if not few.any() or wanted >= SHARED_LIMIT:
                break
            wanted = min(4 * max(wanted, 16), SHARED_LIMIT)
        passed = bool((~there & (keys >= 0)).any())
        first = np.argsort(~there, axis=1, kind="stable")[:, :k]  # those that are there, first
        there = np.take_along_axis(there, first, axis=1)
        distances = np.where(there, np.take_along_axis(distances, first, axis=1), NO_ITEM)
        keys = np.where(there, np.take_along_axis(keys, first, axis=1), -1)
        return distances, keys, few, passed

    # -------------------------------------------------------------------------------- following

    def load(self) -> None:
        """Read all anew."""
        if self.now.backend is not None:
            self.now.backend.retire()
        self._advance(Moment.of(0, None, None, Directory()), (0, 0))

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
        gone, new, later = np.empty(0, np.int64), None, np.empty(0, np.int64)
        labels: list[Any] = []
        if journal.has_items:
            gone = absent(directory.keys, journal.keys())
            new = journal.new_items(directory.last_key)
            later, labels = journal.read_labels(start)
            again = directory.find(new.ids.tolist())
            gone = np.union1d(gone, again[again >= 0])
        if changed and backend is not None:
            if before.backend is not None:
                before.backend.retire()
            keys = np.setdiff1d(directory.keys, gone, assume_unique=True)
            keys = keys if new is None else np.concatenate([keys, new.keys])
            backend.serve(keys, partial(journal.read_codes, number))
        elif backend is not None and new is not None and new.codes is not None:
            backend.delete(gone)
            backend.add(new.keys, new.codes)
        # All is read: from here on only memory changes.
        with self.looking:
            directory.delete(directory.listing.ids_of(gone).tolist())
            if new is not None:
                directory.append(new.keys, new.ids, new.labels)
            last = dict(zip(later.tolist(), labels, strict=True))  # the last of each counts
            keys = np.fromiter(last, np.int64, len(last))
            keys = keys[directory.has(keys)]
            directory.set_labels(keys, [last[key] for key in keys.tolist()])
            self.now = Moment.of(number, model, backend, directory)
            self._labels_read = fold, start + len(later)

    # -------------------------------------------------------------------- changes of the writer

    def append(
        self,
        keys: Keys,
        ids: NDArray[Any],
        labels: Sequence[Any],
        codes: Codes | None,
        old: Keys,
        metadata: Sequence[str | None],
    ) -> None:
        """Show new items, in place of those with the ``old`` keys; metadata are noted as JSON."""
        backend = self.now.backend
        if self.notes is not None and sum(len(text or "") for text in metadata) <= NOTED_BYTES:
            self.notes.append((keys, metadata))
        if backend is not None and codes is not None:
            backend.add(keys, codes)
        with self._without(old):
            self.now.directory.append(keys, ids, labels)

    def label(self, keys: Keys, labels: Sequence[Any]) -> None:
        """Show other labels of items."""
        with self.looking:
            self.now.directory.set_labels(keys, labels)
            self._labels_read = (self._labels_read[0], self._labels_read[1] + len(keys))

    def delete(self, keys: Keys, ids: Sequence[Any]) -> None:
        """Show items no more."""
        with self._without(keys):
            self.now.directory.delete(ids)

    @contextmanager
    def _without(self, keys: Keys) -> Iterator[None]:
        """Let a change of the directory be seen, and codes with these keys no more.

        A backend that is shared is searched as it is at that instant. So it deletes codes after the
        change: searches pass over what the directory lacks.
        """
        backend = self.now.backend
        if backend is not None and not backend.is_shared:
            backend.delete(keys)
        with self.looking:
            yield
            now = self.now
            self.now = Moment.of(now.number, now.model, backend, now.directory)
        if backend is not None and backend.is_shared:
            backend.delete(keys)

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
