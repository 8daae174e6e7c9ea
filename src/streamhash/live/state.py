"""What a collection holds in memory, and that it is always what is stored."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError, InUseError, ReadOnlyError, StreamhashError
from streamhash.live.backends import Homes, Pieces
from streamhash.live.learner import Learner
from streamhash.live.locks import ReaderLease, WriterLock, oldest_lease, uninterrupted
from streamhash.live.policy import Policy
from streamhash.live.store import MANY, Store
from streamhash.live.view import View, absent, advance, nothing

__all__ = ["State"]

logger = logging.getLogger(__name__)


class State:
    """The learner and the view of a collection, beside the store they are kept in.

    Changes are made by one thread at a time, inside ``_changing`` and ``_storing``. The store is
    not touched without ``_writing``: Lance's datasets cannot be read while another thread changes
    them. If a change fails, or Ctrl-C comes, memory is what is stored: as before, or after it.
    """

    def __init__(
        self,
        store: Store,
        *,
        read_only: bool,
        background: bool,
        lock: WriterLock | None,
        serving_options: dict[str, Any] | None = None,
    ) -> None:
        self._store, self._lock, self._lease = store, lock, None
        self.read_only, self._background = read_only, background
        self._writing, self._refreshing = threading.RLock(), threading.Lock()
        self._view: View = nothing()
        self._homes = Homes(
            serving_options, writes=not read_only, wanted=self._keys_now, read=self._read_codes
        )
        self._is_open = True
        self._learner_behind = False  # the last state that is stored waits for a change
        self._unsure = False  # whether memory is what is stored
        self._untidy = False  # whether something that does not count is still stored
        self._refresh_thread: threading.Thread | None = None
        self._refresh_error: BaseException | None = None
        self._progress = (0, 0)  # of the running refresh, or the last: items encoded, and in all
        self.encoded_items = 0  # by refreshes of this object, all together
        if read_only and store.folder is not None:
            self._lease = ReaderLease(store.folder)
        try:
            self._load()
        except BaseException:
            self._release()
            raise
        self._tidied = self._age()

    def _release(self) -> None:
        for held in (self._lock, self._lease):
            if held is not None:
                held.release()
        self._lock = self._lease = None

    # -------------------------------------------------------------------------------- reading

    def _load(self) -> None:
        """Read all that is stored; as the writer, put right what a crash has left behind."""
        self._unsure = True
        store = self._store
        store.update()
        seen = store.version("items"), store.version("labels")
        if self._lease is not None:
            self._lease.use(seen[0])
        learner, self._settings, is_last = store.read_learner(exact=not self.read_only)
        self._policy = Policy.parse(self._settings["refresh"], place="Collection.open")
        self._homes.address = self._settings.get("serving")
        if self._view.index is not None:
            self._view.index.retire()
        view = advance(nothing(), store, self._homes)
        self._learner, self._learner_behind, self._view = learner, not is_last, view
        self._seen = seen  # by a reader: the versions of items and labels in the view
        self._unsure = False
        if not self.read_only:
            self._mend()

    def _follow(self) -> None:
        """As a reader, see what the writer has stored meanwhile."""
        store = self._store
        if not self.read_only or not self._is_open:
            return
        with self._writing:
            if not self._unsure and self._seen == (store.latest("items"), store.latest("labels")):
                return
            for tries_left in (2, 1, 0):
                try:
                    self._step()
                    return
                except (StreamhashError, OSError, ValueError):
                    # The writer may delete what is looked at between two looks: look again.
                    self._unsure = True
                    if not tries_left:
                        raise

    def _step(self) -> None:
        if self._unsure:
            self._load()
            return
        store = self._store
        store.update()
        seen = store.version("items"), store.version("labels")
        self._view = advance(self._view, store, self._homes)
        self._learner = store.read_learner(exact=False)[0]
        self._seen = seen
        if self._lease is not None:
            self._lease.use(seen[0])

    def _keys_now(self) -> NDArray[np.int64]:
        """The keys of all items, told to a home that catches up."""
        with self._writing:
            return self._view.directory.keys

    def _read_codes(self, number: int, keys: NDArray[np.int64]) -> Pieces:
        """Read codes for a home that catches up, by datasets that no other thread changes."""
        return self._store.another().read_codes(number, keys)

    # -------------------------------------------------------------------------------- writing

    @contextmanager
    def _changing(self, verb: str) -> Iterator[None]:
        """Let this thread alone make changes."""
        with self._writing:
            if self.read_only:
                raise ReadOnlyError(
                    f"Collection.{verb}: this collection is open to read only, or closed; open it "
                    "with read_only=False."
                )
            if self._unsure:
                self._load()
            try:
                yield
            except InUseError:
                self.read_only = self._unsure = True  # from here on a reader like others
                raise

    @contextmanager
    def _storing(
        self, learner: Learner | None, *, items: int = 0, labels: int = 0
    ) -> Iterator[None]:
        """Store the learner with a change, that the block commits and follows in memory.

        ``items`` and ``labels`` are by how many versions the block takes them on.
        """
        store = self._store
        with uninterrupted():
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

    def _settle(self) -> None:
        """See to it that the last learner state stored is the one that counts."""
        if self._learner_behind:
            with self._storing(None):
                pass

    # ----------------------------------------------------------------------------- tidying up

    def _mend(self) -> None:
        """Delete what is stored and does not count; what cannot be done now is done later."""
        store = self._store
        try:
            with uninterrupted():
                self._settle()
                store.drop_old_codes()
                if store.has_items:
                    there = store.read_items(["key"])["key"].to_numpy()
                    store.delete_items(absent(np.sort(there), self._view.directory.keys))
            self._untidy = False
        except FileError as error:
            logger.warning("something is left to tidy up: %s", error)
            self._untidy = True

    def _age(self) -> int:
        """How many times there was something to tidy up."""
        return sum(self._store.version(name) for name in ("items", "labels", "learner")) // MANY

    def _tidy(self) -> None:
        """Join small fragments, fold labels and delete old versions, now and then."""
        store = self._store
        with self._writing:
            if self.read_only or self._unsure or self._refreshing.locked():
                return
            if self._untidy:
                self._mend()
            if self._untidy or self._age() == self._tidied:
                return
            self._tidied = self._age()
            pending = self._pending() is not None
            try:
                with uninterrupted():
                    self._settle()
                    # Joining fragments undoes what an interrupted refresh has encoded of them.
                    store.join_fragments("items", 16 * MANY if pending else MANY)
                    store.join_fragments("models", MANY)
                    self._fold_labels()
                    folder, latest = store.folder, store.version("items")
                    oldest = None if folder is None else oldest_lease(folder, latest)
                    store.forget_old_versions(oldest, all_files=not pending)
            except FileError as error:
                logger.warning("tidying up failed: %s", error)

    def _fold_labels(self) -> None:
        view, store = self._view, self._store
        if view.n_later_labels > 2 * len(view.directory) + MANY:
            kept = store.fold_labels(view.directory.keys)
            self._view = replace(view, n_later_labels=kept, fold=store.fold)
        else:
            store.join_fragments("labels", MANY)

    def _pending(self) -> int | None:
        """The number of the model of a refresh that was interrupted."""
        last = self._store.last_model
        return last if last > self._view.number else None
