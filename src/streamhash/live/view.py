"""What searches see: one model, the codes that it made, and the items they belong to.

A search takes the moment once and uses nothing else, so it cannot mix two models, nor miss an item
that is being replaced: every change is a new moment, put in place of the old one in a single
assignment. Searches wait for nobody; what a moment holds is never written again (but labels).

What is looked up by ids is looked up in the directory, which changes. So ``looking`` is held by
whoever looks, and by the writer while it changes the directory and the moment: never while anything
is read or stored.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamhash.base import NotStartedError, OnlineHasher
from streamhash.codes import Codes, pack
from streamhash.errors import InputError
from streamhash.live.arrow import Columns, Keys, release_unused
from streamhash.live.backends import Backend
from streamhash.live.backends.memory import MemoryBackend
from streamhash.live.calibration import Calibration
from streamhash.live.fields import Fields, Selection
from streamhash.live.filters import Filter
from streamhash.live.journal import Journal, Pieces
from streamhash.live.mapped import MappedArrays
from streamhash.live.search import SearchOptions
from streamhash.records import SearchResult
from streamhash.search.code_store import Snapshot
from streamhash.search.directory import Coded, Directory, Listing as Listing, LiveKeys
from streamhash.search.id_table import Zeros

Note = tuple[Keys, Sequence[str | None]]

NO_ITEM = np.iinfo(np.int32).max  # the distance of an item that is not there
NOTED_BYTES = 2**16  # of metadata of a change, at most: of more they are read again
NAMED_KEYS = 10_000  # at most, that such a backend is asked to search among
SHARED_LIMIT = 16_384  # looked at in a backend that others change, to find items that are there
RETRIES = 5  # of a search in such a backend, before the writer has to wait for it
SPARE_ROOM = 1.125  # for what is added later; memory that was never written to costs nothing
PIECES_MAPPED = 32  # that are in memory at a time, where columns are mapped

Piece = TypeVar("Piece")


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

    model: int  # its number; 0 while there is none, and vectors were compared as they are
    codes: Codes  # (n, bytes), of the queries
    distances: NDArray[Any]  # (n, k), whole numbers; while there is no model, 1 - cosine
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
        return self._only(known >= probability)

    def within(self, radius: int | None) -> "Answer":
        """Leave out what is farther away."""
        return self if radius is None else self._only(self.distances <= radius)

    def _only(self, keep: NDArray[np.bool_]) -> "Answer":
        """Leave out all else; rows end earlier then."""
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
        there, strings = self.keys >= 0, self.listing.has_strings
        ids = np.full(self.keys.shape, None if strings else -1, object if strings else np.int64)
        ids[there] = self.listing.ids_of(self.keys[there])
        return ids

    def labels(self) -> list[list[Any]]:
        """The labels of what was found, None for no label; rows end where there are no more."""
        there = self.keys >= 0
        labels = iter(self.listing.label_names_of(self.keys[there]))
        return [[*islice(labels, n)] for n in there.sum(axis=1).tolist()]

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


def _set_labels(directory: Directory, keys: Keys, labels: Coded) -> None:
    """Give items that are there labels that came later."""
    there = directory.has(keys)
    directory.set_labels(keys[there], labels._replace(numbers=labels.numbers[there]))


class View:
    """The moment that searches see now, which follows what the journal stores.

    Its changes are made by one thread at a time, which holds the journal's lock.
    """

    def __init__(
        self,
        journal: Journal,
        backend_options: dict[str, Any] | None,
        mapped: MappedArrays | None = None,
    ) -> None:
        self._journal, self.options, self._mapped = journal, backend_options, mapped
        self._zeros: Zeros = np.zeros if mapped is None else mapped.zeros
        self.fields: Fields  # the collection sets it
        self.notes: deque[Note] | None = None  # metadata that fields are to follow, if they do
        self.looking = threading.Lock()
        self.now = Moment.of(0, None, None, Directory(self._zeros))
        self._labels_read = (0, 0)  # how often labels were folded, and how many were read since
        self._prepared: tuple[int, Backend] | None = None  # a model, and what a refresh fills

    def refuse_forked(self) -> None:
        """Raise an error in a child of this process, if it shares what its parent changes."""
        if self._mapped is not None:
            self._journal.store.refuse_forked()

    # ------------------------------------------------------------------------------- looking up

    @property
    def n_features(self) -> int | None:
        """Length of the vectors, None while it is not known."""
        model = self.now.model
        if model is not None:  # searches come here: nothing stored is looked at
            return int(model.n_features_in_)
        with self._journal.lock:
            return self._journal.n_features

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

    def keys(self) -> LiveKeys:
        """Return the keys of all items, as they are now."""
        with self._journal.lock:
            return self.now.directory.live_keys

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
        codes = moment.model.encode_rows(rows)
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
        self._advance(Moment.of(0, None, None, Directory(self._zeros)), (0, 0))

    def advance(self) -> None:
        """Follow what the journal holds now, reading only what is new."""
        self._advance(self.now, self._labels_read)

    def _advance(self, before: Moment, labels_read: tuple[int, int]) -> None:
        journal, model, backend = self._journal, before.model, before.backend
        number, fold = journal.serving, journal.fold
        if number != before.number:
            model = journal.read_model(number).hasher()
            backend = self._backend(number, model.n_bits)
        seen = self._labels_known(before, labels_read)
        after = Moment.of(number, model, backend, before.directory)
        if journal.has_items and before.directory.last_key < 0:
            after, seen = self._filled(before, after, seen)
            with self.looking:
                self.now, self._labels_read = after, (fold, seen)
        else:
            self._follow(before, after, (fold, seen))
        if number != before.number or before.directory.last_key < 0:  # all codes were read
            release_unused()
            if self._mapped is not None:
                self._mapped.let_go()

    def _labels_known(self, before: Moment, labels_read: tuple[int, int]) -> int:
        """How many of the labels that are stored now, the first of them, a moment has already."""
        if not self._journal.read_only and before.directory.last_key >= 0:
            return self._journal.n_labels  # all are of this process, which shows them as they come
        return self._journal.labels_left(*labels_read)

    def _filled(self, before: Moment, after: Moment, seen: int) -> tuple[Moment, int]:
        """Return a moment of all that is stored, and the number of labels; nobody sees it yet."""
        journal, backend = self._journal, after.backend
        strings, n = journal.id_kind == "strings", int(SPARE_ROOM * journal.n_rows)
        directory = Directory(self._zeros, strings=strings)
        directory.expect(n)
        filling = backend if isinstance(backend, MemoryBackend) else None
        if filling is not None:  # codes come in the same pass
            filling.clear(n)
        noted, is_unique = list[Future[None]](), journal.is_unique
        with ThreadPoolExecutor(1, thread_name_prefix="streamhash-ids") as beside:
            for piece in self._paced(journal.new_items(-1)):
                directory.extend(piece.keys, piece.ids, piece.labels)
                if not is_unique:  # else ids are looked at when the first is looked for
                    noted.append(beside.submit(directory.note_ids))  # while the next one is read
                if filling is not None:
                    assert piece.codes is not None
                    filling.append(piece.keys, piece.codes)
                    filling.adopt(directory.listing.keys)
        for each in noted:
            each.result()
        replaced = np.empty(0, np.int64) if is_unique else directory.settle()  # a crash's
        if filling is not None:
            filling.delete(replaced)
        for keys, labels in journal.read_labels(seen):
            _set_labels(directory, keys, labels)
            seen += len(keys)
        for keys, labels in journal.logged_labels():
            _set_labels(directory, keys, labels)
        if backend is not None and backend is not before.backend and filling is None:
            self._serve(before, after, directory, np.empty(0, np.int64))
        return Moment.of(after.number, after.model, backend, directory), seen

    def _follow(self, before: Moment, after: Moment, labels_read: tuple[int, int]) -> None:
        """Let directory and backend follow what is stored, and show it."""
        journal, directory, backend = self._journal, before.directory, after.backend
        fold, seen = labels_read
        gone, new, later = np.empty(0, np.int64), list[Columns](), list[tuple[Keys, Coded]]()
        logged = list[tuple[Keys, Coded]]()
        if journal.has_items:
            new = [*journal.new_items(directory.last_key)]
            if journal.n_rows - sum(len(piece.keys) for piece in new) != len(directory):
                gone = directory.absent(journal.key_pieces())
            later = [*journal.read_labels(seen)]
            logged = [*journal.logged_labels()]
            again = np.concatenate([gone, *(directory.find(piece.ids) for piece in new)])
            gone = np.unique(again[again >= 0])
        if after.number != before.number:
            self._serve(before, after, directory, gone)
        if backend is not None:
            for piece in new:
                if piece.codes is not None:
                    backend.add(piece.keys, piece.codes)
        # All is read: from here on only memory changes.
        with self.looking:
            directory.delete_keys(gone)
            replaced = [directory.append(each.keys, each.ids, each.labels) for each in new]
            for keys, labels in chain(later, logged):
                _set_labels(directory, keys, labels)
            if backend is not None:
                backend.delete(np.concatenate([gone, *replaced]))
            self.now = Moment.of(after.number, after.model, backend, directory)
            self._labels_read = fold, seen + sum(len(keys) for keys, _ in later)

    def _serve(self, before: Moment, after: Moment, directory: Directory, gone: Keys) -> None:
        """Let a new backend hold the codes of all items but the gone ones, and be searched."""
        new, old = after.backend, before.backend
        assert new is not None

        def read(keys: Keys | None) -> Pieces:
            for codes, some in self._paced(self._journal.read_codes(after.number, keys)):
                there = ~np.isin(some, gone) if len(gone) else slice(None)
                yield codes[there], some[there]

        if old is not None:
            old.retire()
        if isinstance(new, MemoryBackend) and isinstance(old, MemoryBackend):
            new.take_over(old, len(directory) - len(gone), read)
            return
        keys = directory.live_keys
        new.serve(keys.without(gone) if len(gone) else keys, read)
        if isinstance(new, MemoryBackend):
            new.adopt(directory.listing.keys)

    def _paced(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """Give pieces; what is mapped is let go of now and then, so that it does not add up."""
        for i, piece in enumerate(pieces, 1):
            yield piece
            if self._mapped is not None and i % PIECES_MAPPED == 0:
                self._mapped.let_go()

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
        backend, column = self.now.backend, self.now.listing.keys
        if self.notes is not None and sum(len(text or "") for text in metadata) <= NOTED_BYTES:
            self.notes.append((keys, metadata))
        if backend is not None and codes is not None:
            if isinstance(backend, MemoryBackend):
                backend.adopt(self.now.directory.column(len(keys)))
            backend.add(keys, codes)
        with self._without(old):
            self.now.directory.append(keys, ids, labels)
        if self._mapped is not None and self.now.listing.keys is not column:
            self._mapped.let_go()

    def label(self, keys: Keys, labels: Sequence[Any]) -> None:
        """Show other labels of items."""
        with self.looking:
            self.now.directory.set_labels(keys, labels)
            self.now = self.now._replace(listing=self.now.directory.listing)
            self._labels_read = (self._labels_read[0], self._labels_read[1] + len(keys))

    def delete(self, keys: Keys) -> None:
        """Show items no more."""
        with self._without(keys):
            self.now.directory.delete_keys(keys)

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
            return MemoryBackend(n_bits, self._zeros)
        from streamhash.live.backends.milvus import MilvusBackend, Server

        journal, server = self._journal, Server(self.address, self.options)

        def read(keys: Keys | None) -> Pieces:  # by datasets that no other thread changes
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
