"""A durable collection: learns from labelled items as they come, and is searched all the while."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streamhash.base import NotStartedError, OnlineHasher
from streamhash.codes import Codes
from streamhash.errors import InputError
from streamhash.live.encoding import vectors_of
from streamhash.live.inputs import check_labels, check_metadata, check_vectors, from_json, to_json
from streamhash.live.learner import Learner
from streamhash.live.locks import ReaderLease, WriterLock, oldest_lease
from streamhash.live.policy import Policy
from streamhash.live.refreshing import Refresh
from streamhash.live.reports import History, describe_history, describe_status
from streamhash.live.store import MANY, Store, codes_of
from streamhash.live.view import View, advance, nothing
from streamhash.parameters import Choice, Whole, check_parameters
from streamhash.search.ids import MISSING, check_ids, check_once, kind

__all__ = ["Collection", "Item"]

logger = logging.getLogger(__name__)

NEIGHBOURS = 10  # labelled neighbours whose labels an answer is judged by
LOOKED_AT = 50  # neighbours that are looked at to find so many labelled ones
KEY_BITS = 32  # lower bits of a key: the place in its commit; above them, the commit's version

Progress = Callable[[int, int], None]  # items encoded so far, and in all


class Item(NamedTuple):
    """What a collection holds of an item."""

    id: Any
    vector: NDArray[Any]
    label: Any
    metadata: Any
    code: Codes | None  # by the model that serves; None while there is none


class Collection:
    """Items that are learned from, stored and searched at once, never with codes of two models.

    Two models are at work. The *learner* moves with every labelled item. The *serving* model has
    made the codes of all items, and makes those of queries. ``refresh`` encodes all items with the
    learner and makes it the serving model, in one step that searches never see the middle of.

    What a call has stored when it returns is there after a crash. One process may write at a time,
    any number may read; any threads may share one object.

    Make one with ``create``, come back with ``open``, and ``close`` it or use ``with``.

    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import SDOH
    >>> from streamhash.live import Collection
    >>> X, y = load_digits(return_X_y=True)
    >>> folder = tempfile.TemporaryDirectory()
    >>> items = Collection.create(f"{folder.name}/digits", SDOH(32, random_state=0))
    >>> items.add(range(1000), X[:1000], y[:1000])
    1000
    >>> distances, ids = items.search(X[1500:1501], k=5)
    >>> [items.get([i])[0].label for i in ids[0]], int(y[1500])
    ([1, 1, 1, 1, 1], 1)
    >>> items.close()
    >>> folder.cleanup()
    """

    def __init__(
        self, store: Store, *, read_only: bool, background: bool, lock: WriterLock | None
    ) -> None:
        self._store, self._lock, self._lease = store, lock, None
        self.read_only, self._background = read_only, background
        self._writing, self._refreshing = threading.RLock(), threading.Lock()
        self._view: View = nothing()
        self._learner_behind = False
        self._refresh_thread: threading.Thread | None = None
        self._refresh_error: BaseException | None = None
        self.encoded_items = 0  # by refreshes of this object, all together
        if read_only and store.folder is not None:
            self._lease = ReaderLease(store.folder)
        self._load()

    # ------------------------------------------------------------------------ create and open

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        hasher: OnlineHasher,
        *,
        vectors: str = "float32",
        refresh: str | int = "gain",
        reservoir_size: int = 1000,
        random_state: int | None = 0,
        background: bool = False,
        storage_options: dict[str, str] | None = None,
    ) -> Self:
        """Make an empty collection.

        Parameters
        ----------
        path : str or path
            A folder, or an address that Lance knows, such as ``s3://bucket/name``.
        hasher : OnlineHasher
            The method that learns; one that has learned before goes on from there, and serves.
        vectors : "float32" or "float16"
            How vectors are stored; what is learned and encoded is what is stored.
        refresh : "gain", "gain=BITS", "manual" or a number of items
            When to refresh by itself: when it pays, or every so many learned items. The first model
            serves as soon as there is one, in any case.
        reservoir_size : int
            Items in the sample on which the gain is measured.
        random_state : int or None
            Seed of the sample.
        background : bool
            Refresh in a thread of its own, so that ``add`` need not wait for it.
        storage_options : dict
            Passed on to Lance: credentials and the like.
        """
        place = "Collection.create"
        if not isinstance(hasher, OnlineHasher):
            raise InputError(
                f"{place}: hasher={hasher!r} is not a hasher; pass one such as SDOH()."
            )
        check_parameters(place, {"vectors": vectors}, {"vectors": Choice("float32", "float16")})
        policy = Policy.parse(refresh, place=place)
        hasher._check_parameters()
        learner = Learner(hasher, reservoir_size=reservoir_size, random_state=random_state)
        learner.start()
        store = Store(fspath(path), storage_options)
        store.create(learner, {"vectors": vectors, "refresh": str(policy)})
        return cls.open(path, background=background, storage_options=storage_options)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        read_only: bool = False,
        background: bool = False,
        storage_options: dict[str, str] | None = None,
    ) -> Self:
        """Open a collection, to write (one process at a time) or to read only (any number)."""
        store = Store(fspath(path), storage_options)
        store.open()
        lock = None
        if not read_only and store.folder is not None:
            lock = WriterLock(store.folder)
        try:
            return cls(store, read_only=read_only, background=background, lock=lock)
        except BaseException:
            if lock is not None:
                lock.release()
            raise

    def close(self) -> None:
        """Wait for a running refresh, and let others write."""
        self.wait()
        with self._writing:
            for held in (self._lock, self._lease):
                if held is not None:
                    held.release()
            self._lock = self._lease = None
            self.read_only = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _load(self) -> None:
        """Read what is stored; as the writer, put right what a crash has left behind."""
        self._store.update()
        if self._lease is not None:
            self._lease.use(self._store.version("items"))
        self._learner, self._settings, is_last = self._store.read_learner()
        self._policy = Policy.parse(self._settings["refresh"], place="Collection.open")
        self._learner_behind = not is_last
        self._view = advance(nothing(), self._store)
        if not self.read_only:
            self._store.drop_old_codes()
            stored = (
                self._store.read_items(["key"])["key"].to_numpy() if self._view.directory else []
            )
            stale = np.setdiff1d(stored, self._keys_there())
            if len(stale):
                self._store.delete_items(stale)

    def _keys_there(self) -> NDArray[np.int64]:
        directory = self._view.directory
        return directory.keys_at(directory.places)

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
    def n_bits(self) -> int:
        """Length of the codes."""
        return int(self._learner.hasher_.n_bits)

    @property
    def n_features(self) -> int | None:
        """Length of the vectors, None while it is not known."""
        if self._store.has_items:
            return int(self._store.dataset("items").schema.field("vector").type.list_size)
        return getattr(self._learner.hasher_, "n_features_in_", None)

    @property
    def model_number(self) -> int:
        """The number of the model that serves; 0 while there is none."""
        self._follow()
        return self._view.number

    def _follow(self) -> None:
        """As a reader, see what the writer has stored meanwhile."""
        if not self.read_only or (self._lease is None and self._store.folder is not None):
            return
        store = self._store
        if store.latest("items") == store.version("items") and store.latest(
            "labels"
        ) == store.version("labels"):
            return
        with self._writing:
            store.update()
            self._view = advance(self._view, store)
            self._learner = store.read_learner()[0]
            if self._lease is not None:
                self._lease.use(store.version("items"))

    # ------------------------------------------------------------------------------------ changes

    def add(
        self,
        ids: Any,
        X: Any,
        y: Any = None,
        *,
        metadata: Sequence[Any] | None = None,
        existing: str = "refuse",
    ) -> int:
        """Store items, and learn from those that have labels; return how many were stored.

        Parameters
        ----------
        ids : whole numbers from 0 up or strings, one an item; None numbers them on
        X : array (n, d)
        y : whole numbers or strings, one an item; None, also for single items: without a label
        metadata : a dict (anything that JSON can say) or None an item
        existing : "refuse", "skip" or "replace"
            What to do with ids that are there: refuse the call, leave out those items (so that a
            call can be repeated when its answer was lost), or put the new ones in their place.
        """
        place = "Collection.add"
        check_parameters(
            place, {"existing": existing}, {"existing": Choice("refuse", "skip", "replace")}
        )
        with self._writing:
            self._refuse_readers("add")
            rows = check_vectors(X, self.n_features, self._settings["vectors"], place=place)
            labels = check_labels(y, len(rows), place=place)
            texts = check_metadata(metadata, len(rows), place=place)
            names = self._check_ids(ids, len(rows), place)
            found = self._view.directory.find(names.tolist())
            if (found >= 0).any() and existing == "refuse":
                raise InputError(
                    f"{place}: id {names[found >= 0].tolist()[0]!r} is there already; pass "
                    'existing="skip" or "replace", or another id.'
                )
            if existing == "skip" and (found >= 0).any():
                new = np.flatnonzero(found < 0)
                rows, names, found = rows[new], names[new], found[new]
                labels, texts = [labels[i] for i in new], [texts[i] for i in new]
            if len(rows) == 0:
                return 0
            self._add(names, rows, labels, texts, found[found >= 0])
        self._look_after()
        return len(rows)

    def _add(
        self,
        ids: NDArray[Any],
        rows: NDArray[Any],
        labels: list[Any],
        metadata: list[str | None],
        replaced: NDArray[np.int64],
    ) -> None:
        view, store = self._view, self._store
        learner, codes = self._taught(rows, labels, None)
        keys = ((store.version("items") + 1) << KEY_BITS) + np.arange(len(rows))
        names = [to_json(label, "label") for label in labels]
        old_keys = view.directory.keys_at(replaced)
        with self._durably(learner, items=1):
            store.append_items(keys, ids, rows, names, metadata, codes)
        with self._in_memory():
            old_ids = view.directory.ids_of(old_keys).tolist()
            view.directory.remove(old_ids)
            view.directory.append(keys, ids, labels)
            if view.index is not None and codes is not None:
                view.index.remove(old_keys)
                view.index.add(codes, keys)
            if len(old_keys):
                store.delete_items(old_keys)

    def label(self, ids: Any, y: Any) -> None:
        """Give items that are there (other) labels, and learn from them."""
        place = "Collection.label"
        with self._writing:
            self._refuse_readers("label")
            names, found = self._find(ids, place)
            labels = check_labels(y, len(names), place=place)
            if len(names) == 0:
                return
            view, store = self._view, self._store
            keys = view.directory.keys_at(found)
            learner, _ = self._taught(self._vectors(keys), labels, keys)
            with self._durably(learner, labels=1):
                store.append_labels(keys, [to_json(label, place) for label in labels])
            with self._in_memory():
                view.directory.set_labels(found, labels)
                later = view.n_later_labels + len(keys)
                self._view = replace(view, n_later_labels=later)
        self._look_after()

    def delete(self, ids: Any) -> None:
        """Delete items. What was learned from them stays learned."""
        place = "Collection.delete"
        with self._writing:
            self._refuse_readers("delete")
            names, found = self._find(ids, place)
            if len(names) == 0:
                return
            view = self._view
            keys = view.directory.keys_at(found)
            with self._durably(None, items=1):
                self._store.delete_items(keys)
            with self._in_memory():
                view.directory.remove(names.tolist())
                if view.index is not None:
                    view.index.remove(keys)
        self._tidy()

    def _taught(
        self, rows: NDArray[Any], labels: list[Any], keys: NDArray[np.int64] | None
    ) -> tuple[Learner | None, Codes | None]:
        """Return a learner that has learned from these rows, if there is anything to learn.

        Labelled rows ask for their neighbours first; ``keys`` are theirs, if they are there.
        """
        view, now = self._view, time.time()
        codes = None if view.model is None else view.model.transform(rows)
        known = [i for i, label in enumerate(labels) if label is not None]
        taught = known if self._learner.hasher_.needs_labels else [*range(len(rows))]
        if not taught:
            return None, codes
        learner = self._learner.copy()
        if codes is not None and known:
            own = None if keys is None else keys[known]
            precisions = self._precisions(codes[known], [labels[i] for i in known], own)
            labelled = view.directory.n_labelled + len(known)
            learner.monitor_.answers(precisions, time=now, labelled=labelled)
        learned = learner.learn(rows[taught].astype(np.float32), [labels[i] for i in taught])
        if learned and view.model is not None:
            learner.monitor_.point(
                time=now,
                items=len(view.directory) + (0 if keys is not None else len(rows)),
                labelled=view.directory.n_labelled + len(known),
                model=view.number,
                precision=learner.monitor_.recent_,
                balance=learner.balance(view.model),
                gain=_number(learner.gain(view.model)),
            )
        return learner, codes

    def _precisions(
        self, codes: Codes, labels: list[Any], own: NDArray[np.int64] | None
    ) -> NDArray[np.float64]:
        """Share of each query's nearest labelled neighbours that have its label; no item, none."""
        view = self._view
        if view.index is None or len(view.index) == 0:
            return np.empty(0)
        keys = view.index.search(codes, min(LOOKED_AT, len(view.index)))[1]
        numbers = view.directory.labels_of(keys)
        if own is not None:
            numbers[keys == own[:, None]] = -1
        precisions = []
        for row, label in zip(numbers, labels, strict=True):
            near = row[row >= 0][:NEIGHBOURS]
            if len(near):
                precisions.append((near == view.directory.label_number(label)).mean())
        return np.array(precisions)

    @contextmanager
    def _durably(
        self, learner: Learner | None, *, items: int = 0, labels: int = 0
    ) -> Iterator[None]:
        """Store the learner with a change, that the block commits; if it fails, nothing changes."""
        store = self._store
        before = store.version("items"), store.version("labels")
        try:
            if learner is not None or self._learner_behind:
                self._learner_behind = True
                store.write_learner(
                    learner or self._learner,
                    self._settings,
                    items=before[0] + items,
                    labels=before[1] + labels,
                )
            yield
        except BaseException:
            if (store.latest("items"), store.latest("labels")) != before:
                self._load()  # it was stored, and the failure came after
            raise
        self._learner_behind = False
        if learner is not None:
            self._learner = learner

    @contextmanager
    def _in_memory(self) -> Iterator[None]:
        """Follow a change that is stored; if that fails half-way, read all anew."""
        try:
            yield
        except BaseException:
            self._load()
            raise

    # ------------------------------------------------------------------------------------- reading

    def search(self, X: Any, k: int = 10) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Find the ``k`` nearest items of each vector: distances and ids, both (n, k).

        Among equal distances the item added first comes first. Where there are fewer than ``k``
        items, rows end in distance 2147483647 and id -1 (None among strings).
        """
        self._follow()
        view = self._view
        check_parameters("Collection.search", {"k": k}, {"k": Whole(1)})
        if view.model is None or view.index is None:
            raise self._not_ready("search")
        rows = check_vectors(X, self.n_features, "float32", place="Collection.search")
        distances, keys = view.index.search(view.model.transform(rows), k)
        missing = MISSING[view.directory.kind]
        if len(view.index) == 0 and len(view.directory) == 0:
            return distances, np.full(keys.shape, missing, object if missing is None else np.int64)
        there = keys >= 0
        ids = view.directory.ids_of(np.where(there, keys, 0))
        if not there.all():
            ids[~there] = missing
        return distances, ids

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
            names, found = self._find(ids, "Collection.get")
            view, store = self._view, self._store
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

    def models(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the number and the facts of every model that serves or has served."""
        return self._store.models()

    def model(self, number: int | None = None) -> OnlineHasher:
        """Return the model that serves, or another by its number."""
        self._follow()
        if number is None or number == self._view.number:
            if self._view.model is None:
                raise self._not_ready("model")
            return self._view.model
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

    def _not_ready(self, verb: str) -> NotStartedError:
        learner = self._learner
        needed = max(learner.hasher_.batch_size - learner.n_waiting, 0)
        return NotStartedError(
            f"Collection.{verb}: no model has been learned yet; add {needed} more "
            f"{'labelled ' if learner.hasher_.needs_labels else ''}items, or call refresh to learn "
            f"from the {learner.n_waiting} that wait."
        )

    # ------------------------------------------------------------------------------------- refresh

    def refresh(
        self, *, executor: Executor | None = None, progress: Progress | None = None
    ) -> bool:
        """Encode all items with what has been learned, and serve that; return if it changed.

        Searches and changes go on meanwhile. A refresh that was interrupted goes on where it was.

        Parameters
        ----------
        executor : any concurrent.futures.Executor
            What encodes, piece by piece. Its workers read the items themselves, by their address.
        progress : function of two numbers
            Called with the items encoded so far and their number in all.
        """
        self._refuse_readers("refresh")
        with self._refreshing:
            return Refresh(self, executor, progress).run()

    def wait(self) -> None:
        """Wait for a refresh that runs in the background; raise the error it met, if any."""
        thread = self._refresh_thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        error, self._refresh_error = self._refresh_error, None
        if error is not None:
            raise error

    def gain(self) -> float | None:
        """Return by how many bits of information the learner beats the serving model.

        Measured on the sample; None where nothing can be said.
        """
        view = self._view
        return None if view.model is None else self._learner.gain(view.model)

    def is_refresh_due(self) -> bool:
        """Whether the collection would refresh by itself now."""
        view, learner = self._view, self._learner
        if not learner.is_ready:
            return False
        if view.model is None:
            return True
        if self._pending() is not None:
            return self._policy != Policy()
        since = learner.n_learned_ - self._learned_by_serving()
        return self._policy.is_due(
            since, self.gain() if self._policy.threshold is not None else None
        )

    def _learned_by_serving(self) -> int:
        refreshes = self._learner.monitor_.refreshes_
        return int(refreshes[-1]["learned"]) if refreshes else 0

    def _pending(self) -> int | None:
        """The number of the model of a refresh that was interrupted."""
        numbers = [number for number, _ in self._store.models()]
        last = max(numbers, default=0)
        return last if last > self._view.number else None

    def _look_after(self) -> None:
        """Refresh if it is due, and tidy up."""
        if not self._refreshing.locked() and self.is_refresh_due():
            if self._background and self._view.model is not None:
                self._refresh_thread = threading.Thread(target=self._refresh_quietly, daemon=True)
                self._refresh_thread.start()
            else:
                self.refresh()
        self._tidy()

    def _refresh_quietly(self) -> None:
        try:
            self.refresh()
        except BaseException as error:  # noqa: BLE001  told by wait, close and status
            logger.warning("the refresh in the background failed: %s", error)
            self._refresh_error = error

    def _tidy(self) -> None:
        """Join small fragments and delete old versions now and then."""
        store = self._store
        if not store.has_items or self._refreshing.locked():
            return
        with self._writing:
            if store.version("items") % MANY or self.read_only:
                return
            if self._pending() is None:
                store.join_fragments()
            folder = store.folder
            latest = store.version("items")
            store.forget_old_versions(None if folder is None else oldest_lease(folder, latest))

    # -------------------------------------------------------------------------------------- checks

    def _refuse_readers(self, verb: str) -> None:
        if self.read_only:
            raise InputError(
                f"Collection.{verb}: this collection is open to read only, or closed; open it with "
                "read_only=False."
            )

    def _check_ids(self, ids: Any, n: int, place: str) -> NDArray[Any]:
        directory = self._view.directory
        if ids is None:
            if len(directory) and directory.kind == "strings":
                raise InputError(f"{place}: ids did not come, and this collection has strings.")
            first = max(directory.ids, default=-1) + 1
            return np.arange(first, first + n)
        names = check_ids(ids, place=place)
        if len(names) != n:
            raise InputError(f"{place}: {n} items and {len(names)} ids came; pass one id an item.")
        check_once(names, place=place)
        if n and self._store.has_items and kind(names) != self._id_kind():
            raise InputError(
                f"{place}: ids are {kind(names)}, those of this collection are "
                f"{self._id_kind()}; pass {self._id_kind()}."
            )
        return names

    def _id_kind(self) -> str:
        column = self._store.dataset("items").schema.field("id")
        return "strings" if str(column.type) == "string" else "whole numbers"

    def _find(self, ids: Any, place: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return checked ids, and their places in the directory."""
        names = check_ids(ids, place=place)
        check_once(names, place=place)
        found = self._view.directory.find(names.tolist())
        if (found < 0).any():
            raise InputError(
                f"{place}: id {names[found < 0].tolist()[0]!r} is not in this collection; ask "
                "`id in collection` first, or add it."
            )
        return names, found

    def _vectors(self, keys: NDArray[np.int64]) -> NDArray[Any]:
        """Stored vectors of items, in the order of their keys here."""
        table = self._store.read_items(["key", "vector"], keys)
        order = np.argsort(table["key"].to_numpy())
        place = order[np.searchsorted(table["key"].to_numpy()[order], keys)]
        return vectors_of(table["vector"])[place]


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
