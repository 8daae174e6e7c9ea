"""Answers with all that a service tells: which model, the queries' codes, and what was found."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.errors import UnreachableError
from streamhash.live.directory import Listing
from streamhash.live.inputs import from_json
from streamhash.live.lookup import find
from streamhash.live.store import Store
from streamhash.search.ids import MISSING

if TYPE_CHECKING:
    from streamhash.live.reading import Reading

__all__ = [
    "Answer",
    "MetadataReader",
    "answer",
    "list_items",
    "sample",
    "vectors_of_ids",
]

Integers = NDArray[np.int64]

RETRIES = 5  # of a search whose model was replaced, and its codes dropped, before it was through
KEPT = 100_000  # items whose metadata are remembered


class Answer(NamedTuple):
    """What a search found, all of it by one model."""

    model: int
    codes: Codes  # (n, bytes), of the queries
    distances: NDArray[np.int32]  # (n, k)
    keys: Integers  # (n, k), -1 where there are no more items
    listing: Listing  # that the keys are looked up in

    def rows(self, start: int, stop: int, k: int) -> "Answer":
        """Return the answer to some of the queries, with fewer neighbours."""
        return self._replace(
            codes=self.codes[start:stop],
            distances=self.distances[start:stop, :k],
            keys=self.keys[start:stop, :k],
        )

    def without(self, own: Integers) -> "Answer":
        """Leave each query, an item itself, out of its neighbours, of which one is too many."""
        drop = self.keys == own[:, None]
        drop[~drop.any(axis=1), -1] = True
        shape = (len(own), self.keys.shape[1] - 1)
        return self._replace(
            distances=self.distances[~drop].reshape(shape), keys=self.keys[~drop].reshape(shape)
        )

    def ids(self) -> NDArray[Any]:
        """The ids found, (n, k); -1 (None among strings) where there are no more items."""
        there = self.keys >= 0
        ids = np.full(self.keys.shape, MISSING[self.listing.kind], self.listing.ids.dtype)
        ids[there] = self.listing.ids_of(self.keys[there])
        return ids

    def labels(self) -> list[list[Any]]:
        """The labels of what was found, None for no label; rows end where there are no more."""
        return [self.listing.label_names_of(row[row >= 0]) for row in self.keys]


def answer(collection: "Reading", rows: NDArray[np.float32], k: int) -> Answer:
    """Search for checked rows."""
    collection._follow()
    for tries_left in range(RETRIES, -1, -1):
        number = collection._view.number
        try:
            found = _ask(collection, rows, k)
            if not found.listing.holds(found.keys[found.keys >= 0]):
                with collection._writing:  # items were removed between two looks: now nobody does
                    found = _ask(collection, rows, k)
            break
        except UnreachableError:
            collection._follow()
            # If another model serves meanwhile, the codes of the one before may be gone.
            if collection._view.number == number or not tries_left:
                raise
    return found


def _ask(collection: "Reading", rows: NDArray[np.float32], k: int) -> Answer:
    view = collection._view  # once: one model, its codes, and their ids
    if view.model is None or view.index is None:
        raise collection._not_ready("search")
    codes = view.model.transform(rows)
    distances, keys = view.search(codes, k)
    return Answer(view.number, codes, distances, keys, view.directory.listing)


def vectors_of_ids(
    collection: "Reading", ids: Sequence[Any]
) -> tuple[Integers, NDArray[np.float32]]:
    """Return the keys and the vectors of items by their ids, in that order."""
    collection._follow()
    with collection._writing:
        _, found = find(collection._view.directory, ids, "search")
        keys = collection._view.directory.keys_at(found)
        return keys, collection._vectors(keys).astype(np.float32, copy=False)


def sample(
    collection: "Reading", choose: Callable[[Integers], Integers]
) -> tuple[Integers, NDArray[np.float32], Listing]:
    """Return keys chosen among all, their vectors, and the listing that they belong to."""
    collection._follow()
    with collection._writing:
        directory = collection._view.directory
        keys, listing = choose(directory.keys), directory.listing
        if len(keys) == 0:
            return keys, np.empty((0, collection.n_features or 0), np.float32), listing
        return keys, collection._vectors(keys).astype(np.float32, copy=False), listing


def list_items(
    collection: "Reading", offset: int, limit: int, *, newest: bool
) -> tuple[int, Integers, list[Any], list[Any]]:
    """Return how many items there are, and the keys, ids and labels of some, as they were added."""
    collection._follow()
    with collection._writing:
        directory = collection._view.directory
        keys, listing = directory.keys, directory.listing
    chosen = (keys[::-1] if newest else keys)[offset : offset + limit]
    return len(keys), chosen, listing.ids_of(chosen).tolist(), listing.label_names_of(chosen)


class MetadataReader:
    """Reads metadata by key, beside a collection and without waiting for those who write to it.

    A key's metadata never change, so what was read once is kept. It has the files open for itself;
    what it has open may be older than the collection, and is renewed when a key is not found.
    """

    def __init__(self, collection: "Reading") -> None:
        self._collection = collection
        self._store: Store | None = None
        self._known: dict[int, Any] = {}
        self._reading = threading.Lock()

    def __call__(self, keys: Integers) -> dict[int, Any]:
        """Return the metadata of these keys, as far as there are any."""
        wanted = set(keys.ravel().tolist()) - {-1}
        known = self._known
        missing = [key for key in wanted if key not in known]
        if missing:
            with self._reading:
                if len(known) + len(missing) > KEPT:
                    known = self._known = {key: known[key] for key in wanted if key in known}
                known.update(self._read(missing))
        return {key: known.get(key) for key in wanted}

    def _read(self, keys: list[int]) -> dict[int, Any]:
        if self._store is not None:
            try:
                found = self._read_now(self._store, keys)
            except (OSError, ValueError):  # its files were deleted: it was too old
                found = {}
            if len(found) == len(keys):
                return found
        self._store = (self._store or self._collection._store).another()
        return self._read_now(self._store, keys)

    @staticmethod
    def _read_now(store: Store, keys: list[int]) -> dict[int, Any]:
        if not store.has_items:
            return {}
        table = store.read_items(["key", "metadata"], np.array(keys, np.int64))
        texts = from_json(table["metadata"].to_pylist())
        return dict(zip(table["key"].to_pylist(), texts, strict=True))
