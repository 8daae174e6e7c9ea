"""What a collection tells of itself: its items, answers to queries, its models and how it does."""

from collections.abc import Callable, Iterator
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import NotStartedError, OnlineHasher
from streamhash.codes import Codes
from streamhash.live.answers import (
    Answer,
    MetadataReader,
    answer,
    list_items,
    sample,
    vectors_of_ids,
)
from streamhash.live.arrow import codes_of, vectors_of
from streamhash.live.directory import Listing
from streamhash.live.export import export
from streamhash.live.inputs import check_vectors, from_json
from streamhash.live.lookup import find
from streamhash.live.policy import Policy
from streamhash.live.reports import describe_history, describe_status
from streamhash.live.scanning import Batch, scan
from streamhash.live.state import State
from streamhash.parameters import Whole, check_parameters
from streamhash.records import History, Item
from streamhash.search.ids import check_ids

__all__ = ["Reading"]


class Reading(State):
    """The half of a collection that changes nothing, for writers and readers alike."""

    # ------------------------------------------------------------------------------ what it holds

    def __len__(self) -> int:
        self._follow()
        return len(self._view.directory)

    def __contains__(self, item: object) -> bool:
        self._follow()
        return item in self._view.directory

    @property
    def ids(self) -> list[Any]:
        """The ids, in the order of adding."""
        self._follow()
        return self._view.directory.ids

    @property
    def id_kind(self) -> str | None:
        """What ids are, "whole numbers" or "strings"; None before the first item."""
        self._follow()
        return self._id_kind() if self._store.has_items else None

    @property
    def n_bits(self) -> int:
        """Length of the codes."""
        return int(self._learner.hasher_.n_bits)

    @property
    def n_features(self) -> int | None:
        """Length of the vectors, None while it is not known."""
        model = self._view.model or self._learner.hasher_
        if hasattr(model, "n_features_in_"):  # searches come here: nothing stored is looked at
            return int(model.n_features_in_)
        with self._writing:
            if not self._store.has_items:
                return None
            return int(self._store.dataset("items").schema.field("vector").type.list_size)

    @property
    def model_number(self) -> int:
        """The number of the model that serves; 0 while there is none."""
        self._follow()
        return self._view.number

    # ------------------------------------------------------------------------------------- reading

    def search(self, X: Any, k: int = 10) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Find the ``k`` nearest items of each vector: distances and ids, both (n, k).

        Among equal distances the item added first comes first. Where there are fewer than ``k``
        items, rows end in distance 2147483647 and id -1 (None among strings).
        """
        self._follow()
        check_parameters("Collection.search", {"k": k}, {"k": Whole(1)})
        if self._view.model is None:
            raise self._not_ready("search")
        rows = check_vectors(X, self.n_features, "float32", place="Collection.search")
        found = answer(self, rows, k)
        return found.distances, found.ids()

    def answer(self, rows: NDArray[np.float32], k: int) -> Answer:
        """Search for rows that are checked; return all that is known of what was found."""
        return answer(self, rows, k)

    def encode(self, X: Any) -> Codes:
        """Return the codes of vectors by the model that serves."""
        self._follow()
        view = self._view
        if view.model is None:
            raise self._not_ready("encode")
        return view.model.transform(
            check_vectors(X, self.n_features, "float32", place="Collection.encode")
        )

    def get(self, ids: Any) -> list[Item]:
        """Return items by their ids, in that order."""
        self._follow()
        with self._writing:
            view, store = self._view, self._store
            names, found = find(view.directory, ids, "Collection.get")
            if len(names) == 0:
                return []
            keys = view.directory.keys_at(found)
            code = [f"code_{view.number}"] if view.number else []
            table = store.read_items(["key", "vector", "metadata", *code], keys)
            labels = [view.directory.label_at(place) for place in found.tolist()]
        rows = {key: i for i, key in enumerate(table["key"].to_pylist())}
        vectors = vectors_of(table["vector"])
        codes = codes_of(table[code[0]]) if code else None
        metadata = from_json(table["metadata"].to_pylist())
        items = []
        for name, key, label in zip(names.tolist(), keys.tolist(), labels, strict=True):
            i = rows[key]
            items.append(
                Item(name, vectors[i], label, metadata[i], None if codes is None else codes[i])
            )
        return items

    def labels(self, ids: Any) -> list[Any]:
        """Return the labels of ids, from memory; None where there is no label, or no item."""
        self._follow()
        directory = self._view.directory
        names = check_ids(ids, place="Collection.labels").tolist()
        places = directory.find(names).tolist()
        return [None if place < 0 else directory.label_at(place) for place in places]

    def metadata(self, keys: NDArray[np.int64]) -> dict[int, Any]:
        """Return metadata by the keys of an answer, without waiting for those who write."""
        return self._metadata(keys)

    def vectors_of(self, ids: Any) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the keys and the vectors of items by their ids, in that order."""
        return vectors_of_ids(self, ids)

    def sample(
        self, choose: Callable[[NDArray[np.int64]], NDArray[np.int64]]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], Listing]:
        """Return keys chosen among all, their vectors, and the listing that they belong to."""
        return sample(self, choose)

    def list_items(
        self, offset: int, limit: int, *, newest: bool = False
    ) -> tuple[int, NDArray[np.int64], list[Any], list[Any]]:
        """Return how many items there are, and the keys, ids and labels of some, as they came."""
        return list_items(self, offset, limit, newest=newest)

    def scan(self, *, vectors: bool = True, size: int = 8192) -> Iterator[Batch]:
        """Go through all items, about ``size`` at a time, in the order of adding.

        It sees the moment of its first batch, and no change after it.
        """
        check_parameters("Collection.scan", {"size": size}, {"size": Whole(1)})
        self._follow()
        return scan(self, vectors=vectors, size=size)

    def export(self, path: str | PathLike[str], *, vectors: bool = False) -> int:
        """Write all items to a file for other programs; return how many.

        What is written is told by the ending of ``path``:

        - ``.parquet``: a row an item with ``id``, ``label``, ``metadata`` (JSON), ``code`` and, if
          wanted, ``vector``; piece by piece, in bounded memory.
        - ``.npz``: arrays ``ids``, ``y`` (labels), ``codes`` and, if wanted, ``X``.
        - ``.faiss``: codes and ids as a ``faiss.IndexBinaryIDMap2``. Ids that are strings are
          numbered from 0, and listed in that order in ``path`` with ``.ids.json`` at its end.
        - ``milvus://host:port/name``: codes, and their places in the order of ``ids``, to a server.
        """
        return export(self, path, vectors=vectors)

    def models(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the number and the facts of every model that serves or has served."""
        self._follow()
        with self._writing:
            return self._store.models()

    def model(self, number: int | None = None) -> OnlineHasher:
        """Return the model that serves, or another by its number."""
        self._follow()
        if number is None or number == self._view.number:
            if self._view.model is None:
                raise self._not_ready("model")
            return self._view.model
        with self._writing:
            return self._store.read_model(number).hasher()

    def status(self) -> dict[str, Any]:
        """Return how the collection does, as plain values."""
        self._follow()
        with self._writing:
            return describe_status(self)

    def history(self) -> History:
        """Return the refreshes, the alarms of drift, and quality over time."""
        self._follow()
        return describe_history(self)

    def gain(self) -> float | None:
        """Return by how many bits of information the learner beat the serving model.

        Measured on the last labelled items, before they were learned; None while no model serves.
        """
        return None if self._view.model is None else self._learner.gain_

    def is_refresh_due(self) -> bool:
        """Whether the collection would refresh by itself now."""
        with self._writing:
            return self._is_due()

    def _is_due(self) -> bool:
        view, learner = self._view, self._learner
        if not learner.is_ready:
            return False
        if view.model is None:
            return True
        if self._pending() is not None:
            return self._policy != Policy()
        since = learner.n_learned_ - self._learned_by_serving()
        return self._policy.is_due(since, learner.missed_, len(view.directory))

    def _learned_by_serving(self) -> int:
        last = self._learner.monitor_.last_refresh
        return 0 if last is None else int(last["learned"])

    # ----------------------------------------------------------------------------------- parts

    @cached_property
    def _metadata(self) -> MetadataReader:
        return MetadataReader(self)

    def _id_kind(self) -> str | None:
        """What ids are, None before the first item."""
        if not self._store.has_items:
            return None
        column = self._store.dataset("items").schema.field("id")
        return "strings" if str(column.type) == "string" else "whole numbers"

    def _vectors(self, keys: NDArray[np.int64]) -> NDArray[Any]:
        """Stored vectors of items, in the order of their keys here."""
        table = self._store.read_items(["key", "vector"], keys)
        order = np.argsort(table["key"].to_numpy())
        place = order[np.searchsorted(table["key"].to_numpy()[order], keys)]
        return vectors_of(table["vector"])[place]

    def _not_ready(self, verb: str) -> NotStartedError:
        learner = self._learner
        needed = max(learner.hasher_.batch_size - learner.n_waiting, 0)
        return NotStartedError(
            f"Collection.{verb}: no model has been learned yet; add {needed} more "
            f"{'labelled ' if learner.hasher_.needs_labels else ''}items, or call refresh to learn "
            f"from the {learner.n_waiting} that wait."
        )
