"""A durable collection: learns from labelled items as they come, and is searched all the while."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamhash.base import OnlineHasher
from streamhash.errors import ConflictError, FileError, InputError
from streamhash.live.backends import check_serving
from streamhash.live.inputs import check_labels, check_metadata, check_vectors, to_json
from streamhash.live.learner import Learner
from streamhash.live.locks import WriterLock
from streamhash.live.lookup import find, new_ids
from streamhash.live.policy import Policy
from streamhash.live.reading import Reading
from streamhash.live.refreshing import Refresh
from streamhash.live.store import Model, Store
from streamhash.live.teaching import teach
from streamhash.parameters import Choice, check_parameters

__all__ = ["Collection"]

logger = logging.getLogger(__name__)

KEY_BITS = 32  # lower bits of a key: the place in its commit; above them, the commit's version

Progress = Callable[[int, int], None]  # items encoded so far, and in all


class Collection(Reading):
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
    >>> labels = [item.label for item in items.get(ids[0])]
    >>> labels.count(y[1500]) >= 3
    True
    >>> items.close()
    >>> folder.cleanup()
    """

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
        serving: str | None = None,
        serving_options: dict[str, Any] | None = None,
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
            When to refresh by itself: when it pays (``BITS`` of information are what encoding an
            item anew is worth, 0.001 if not given), or every so many learned items. The first
            model serves as soon as there is one, in any case.
        reservoir_size : int
            Items in the sample that labelled items ask, to measure the gain.
        random_state : int or None
            Seed of the sample.
        background : bool
            Refresh in a thread of its own, so that ``add`` need not wait for it.
        storage_options : dict
            Passed on to Lance: credentials and the like.
        serving : str
            Where codes are searched, if not in memory: ``milvus://host:port/name?option=value``.
            The address is stored, so it holds no secret: ``token_env=NAME`` names the variable of
            the environment that does.
        serving_options : dict
            Passed on to pymilvus and not stored: ``token``, ``server_pem_path`` and the like.
        """
        place = "Collection.create"
        if not isinstance(hasher, OnlineHasher):
            raise InputError(
                f"{place}: hasher={hasher!r} is not a hasher; pass one such as SDOH()."
            )
        check_parameters(place, {"vectors": vectors}, {"vectors": Choice("float32", "float16")})
        policy = Policy.parse(refresh, place=place)
        hasher.check_parameters()
        learner = Learner(hasher, reservoir_size=reservoir_size, random_state=random_state)
        learner.start()
        settings = {"vectors": vectors, "refresh": str(policy)}
        if serving is not None:
            settings["serving"] = check_serving(serving, serving_options, place=place)
        store = Store(fspath(path), storage_options)
        store.make_folder()
        lock = None if store.folder is None else WriterLock(store.folder)
        try:
            store.create(learner, settings, _first_model(learner))
            return cls(
                store,
                read_only=False,
                background=background,
                lock=lock,
                serving_options=serving_options,
            )
        except BaseException:
            if lock is not None:
                lock.release()
            raise

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        read_only: bool = False,
        background: bool = False,
        storage_options: dict[str, str] | None = None,
        serving_options: dict[str, Any] | None = None,
    ) -> Self:
        """Open a collection, to write (one process at a time) or to read only (any number)."""
        store = Store(fspath(path), storage_options)
        store.open()
        lock = None if read_only or store.folder is None else WriterLock(store.folder)
        return cls(
            store,
            read_only=read_only,
            background=background,
            lock=lock,
            serving_options=serving_options,
        )

    def close(self) -> None:
        """Wait for a running refresh, and let others write."""
        try:
            self.wait()
        finally:
            if self._view.index is not None:
                self._view.index.close()
            with self._refreshing, self._writing:
                self._release()
                self.read_only, self._is_open = True, False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        with self._changing("add"):
            names, rows, labels, texts, found = self._check_items(ids, X, y, metadata, existing)
            if existing == "skip" and (found >= 0).any():
                new = np.flatnonzero(found < 0)
                rows, names, found = rows[new], names[new], found[new]
                labels, texts = [labels[i] for i in new], [texts[i] for i in new]
            if len(rows) == 0:
                return 0
            self._add(names, rows, labels, texts, found[found >= 0])
        self._look_after()
        return len(rows)

    def check(
        self,
        ids: Any,
        X: Any,
        y: Any = None,
        *,
        metadata: Sequence[Any] | None = None,
        existing: str = "refuse",
    ) -> None:
        """Refuse what ``add`` would refuse, and store nothing: before adding piece by piece."""
        with self._changing("add"):
            self._check_items(ids, X, y, metadata, existing)

    def _check_items(
        self, ids: Any, X: Any, y: Any, metadata: Sequence[Any] | None, existing: str
    ) -> tuple[NDArray[Any], NDArray[Any], list[Any], list[str | None], NDArray[np.int64]]:
        """Return ids, rows, labels, metadata as JSON, and the places of ids that are there."""
        place = "Collection.add"
        check_parameters(
            place, {"existing": existing}, {"existing": Choice("refuse", "skip", "replace")}
        )
        rows = check_vectors(X, self.n_features, self._settings["vectors"], place=place)
        labels = check_labels(y, len(rows), place=place)
        texts = check_metadata(metadata, len(rows), place=place)
        directory = self._view.directory
        names = new_ids(directory, ids, len(rows), self._id_kind(), place)
        found = directory.find(names.tolist())
        if (found >= 0).any() and existing == "refuse":
            raise ConflictError(
                f"{place}: id {names[found >= 0].tolist()[0]!r} is there already; pass "
                'existing="skip" or "replace", or another id.'
            )
        return names, rows, labels, texts, found

    def _add(
        self,
        ids: NDArray[Any],
        rows: NDArray[Any],
        labels: list[Any],
        metadata: list[str | None],
        replaced: NDArray[np.int64],
    ) -> None:
        view, store = self._view, self._store
        learner, codes = teach(self._learner, view, rows, labels, None)
        keys = ((store.version("items") + 1) << KEY_BITS) + np.arange(len(rows))
        names = [to_json(label, "label") for label in labels]
        old_keys = view.directory.keys_at(replaced)
        with self._storing(learner, items=1):
            store.append_items(keys, ids, rows, names, metadata, codes, view.number)
            view.directory.append(keys, ids, labels)
            if view.index is not None and codes is not None:
                view.index.delete(old_keys)
                view.index.add(keys, codes)
        try:
            store.delete_items(old_keys)
        except FileError as error:  # they do not count any more
            logger.warning("replaced items are left to be deleted: %s", error)
            self._untidy = True

    def label(self, ids: Any, y: Any) -> None:
        """Give items that are there (other) labels, and learn from them."""
        place = "Collection.label"
        with self._changing("label"):
            view, store = self._view, self._store
            names, found = find(view.directory, ids, place)
            labels = check_labels(y, len(names), place=place)
            if len(names) == 0:
                return
            keys = view.directory.keys_at(found)
            learner, _ = teach(self._learner, view, self._vectors(keys), labels, keys)
            with self._storing(learner, labels=1):
                store.append_labels(keys, [to_json(label, place) for label in labels])
                view.directory.set_labels(found, labels)
                self._view = replace(view, n_later_labels=view.n_later_labels + len(keys))
        self._look_after()

    def delete(self, ids: Any) -> None:
        """Delete items. What was learned from them stays learned."""
        with self._changing("delete"):
            view = self._view
            names, found = find(view.directory, ids, "Collection.delete")
            if len(names) == 0:
                return
            keys = view.directory.keys_at(found)
            with self._storing(None, items=1):
                self._store.delete_items(keys)
                if view.index is not None:
                    view.index.delete(keys)
                view.directory.remove(names.tolist())
        self._tidy()

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
        return self._refresh(Refresh(self, executor, progress))

    def _refresh(self, work: Refresh) -> bool:
        with self._refreshing:
            changed = work.run()
        self._refresh_error = None
        return changed

    def wait(self) -> None:
        """Wait for a refresh that runs in the background; raise the error it met, if any."""
        thread = self._refresh_thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        error, self._refresh_error = self._refresh_error, None
        if error is not None:
            raise error

    def _look_after(self) -> None:
        """Refresh if it is due, and tidy up."""
        if not self._refreshing.locked() and self.is_refresh_due():
            if self._background and self._view.model is not None:
                self._refresh_thread = threading.Thread(target=self._refresh_quietly, daemon=True)
                self._refresh_thread.start()
            else:
                self._refresh_quietly()
        self._tidy()

    def _refresh_quietly(self) -> None:
        """Refresh; what was added is added, even if that fails."""
        try:
            self._refresh(Refresh(self, by_hand=False))
        except Exception as error:  # noqa: BLE001  told by wait, close and status
            logger.warning("a refresh failed, and will be tried again: %s", error)
            self._refresh_error = error


def _first_model(learner: Learner) -> Model | None:
    """Return the model of a hasher that has learned before, which serves from the first moment."""
    if not learner.is_ready:
        return None
    facts = {"made": time.time(), "learned": 0, "items": 0, "gain": None}
    return Model(1, learner.hasher_.to_bytes(), facts)
