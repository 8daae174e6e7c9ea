"""What a collection stores: seven Lance datasets and a log; all points where a process may die.

    items     key, id, vector, label, metadata, code_N: the codes of model N, which serves
    labels    key, label: labels that came after their item, the last one counts
    learner   the light state of the learner, one row; each version goes with versions of the others
    state     the heavy one, what was learned, one row; a row of ``learner`` names its version
    models    number, content: every model that serves or has served
    encoded   fragments of items that a running refresh has encoded so far
    feedback  judged pairs, numbered (judgements.py); not there before the first

Every change is one commit of ``items`` or of ``labels``, or, if it is small, one record of the log
(``log.py``): it is there whole or not at all. What is read is what the datasets hold, less what the
log says is gone, and then the log's own items, whose keys are above all others. What a process that
dies leaves behind, at whatever point, is this:

- *The learner's state is written before its change*, with the versions that the change will have.
  If the change never comes, the state does not fit the versions, and the one before it counts. The
  next commit of any kind would make it fit, so it is put right before any other is made; nothing
  old is deleted until it is.
- *What was learned*, which may be large, is written before the row that names it, and only when it
  has changed. A version that no row names, as its row never came, does not count. Older ones are
  deleted as soon as the change is there whose row names a newer one.
- *Judged pairs* are written before the learner's state that knows their numbers, and count from
  its commit on. Those with later numbers never came to that, and are deleted before others come.
- *An item that replaces another* is stored first and the other deleted after, by a second commit.
  In between, of two rows with one id the greater key counts; the other is deleted at the next
  opening.
- *A refresh* stores its model, then writes files of codes that no version knows, and notes them in
  ``encoded``; the model that is newer than the codes tells that a refresh was interrupted. One
  commit then brings all codes in as a new column, and with it the learner's state that knows of the
  refresh. The greatest column serves. That the column before it is dropped, by another commit, and
  the notes with it, changes nothing; it is made up for at the next opening.
- *Folding the log* commits its items, deletes and labels, and then the learner with the name of
  another log. Until that row is there the log counts, and doing it again does no harm: an item that
  the dataset has is not taken from the log, and a label that comes twice is the same. Of many items
  a thread writes files before (``ahead.py``), which no version knows until then.
- *A second writer*, if the lock fails, commits the learner's row anew before its first change where
  there is a log, and looks at the log once more. The first one looks at the versions after each
  record; so either the second has seen the record, or the first is refused.
- *Joining fragments, dropping columns and forgetting old versions* change no item.
- *Folding labels* writes the last label of each item into files that no version knows, while others
  go on. One commit puts them in the place of the rows that were read; those that came since follow.
- *The first items* make the dataset ``items``. Until then the last model serves, if there is one.
- *The learner* is the last thing that ``create`` writes: without it there is no collection.

How a commit is made, so that a power cut or a failed write leaves nothing half there and a second
writer is refused, is said in ``store.py``. The learner's row and what it has learned are prepared:
synced just before the change that makes them count. A row has a checksum of its own, since after a
power cut it may be there without its content.
"""

import io
import json
import logging
import threading
import time
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, OnlineHasher
from streamhash.codes import Codes, code_bytes, unpack
from streamhash.errors import (
    FileError,
    InputError,
    InUseError,
    NotFoundError,
    ReadOnlyError,
    StreamhashError,
    UnreachableError,
)
from streamhash.live import arrow, log
from streamhash.live.addresses import Addresses
from streamhash.live.ahead import Ahead
from streamhash.live.arrow import CODE, Batch, Columns, Keys, import_lance, import_pyarrow
from streamhash.live.delta import Delta
from streamhash.live.judgements import Judgements, judgements_of
from streamhash.live.learner import Learner
from streamhash.live.locks import ReaderLease, WriterLock, leased, uninterrupted
from streamhash.live.log import Change, Log, Tail
from streamhash.live.pages import VectorFiles
from streamhash.live.store import WAY_BACK, File, Join, Loose, Rewrite, Store, data_files
from streamhash.search.directory import Coded, Directory, LiveKeys

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

logger = logging.getLogger(__name__)

Found = TypeVar("Found")
Pieces = Iterator[tuple[Codes, Keys]]
Send = Callable[[Keys, Codes], None]  # takes codes to a backend
Result = dict[str, Any]  # of a fragment: its metadata; rows; flips, bit by bit; when it was made

LOGGED = 2**31  # added to the place in a key of an item that came by the log
KEY_BITS = 32  # lower bits of a key: the place in its commit; above them, the commit's version
FRAGMENT_ROWS = 131_072  # at most: a piece of work for one worker of a refresh,
FRAGMENT_NUMBERS = 2**24  # and numbers of their vectors: Lance may have a whole fragment in memory
SMALL_FRAGMENT = 32_768  # rows: fragments of fewer are joined when there are many
REWRITTEN_AT_ONCE = 4096  # rows that are written anew while writers wait, at most,
REWRITTEN_BYTES = 2**22  # of so many bytes
LABEL_ROWS = 2  # of an item, from which on labels are folded
TIDY_AFTER = 64  # fragments or versions that are worth tidying up
MANY_ITEMS = 100_000  # whose ids take time to look at, when a collection is opened
KEPT = 3  # versions of each dataset, at least
LOG_BYTES = 2**23  # of the log, from which on it is folded,
LOG_CHANGES = 2048  # or so many records
AHEAD_BYTES = 2**21  # of its vectors that are written to files before, by a thread
MOST_DELTAS = 64  # of the learner, one after the other, before it is stored whole again
SMALL_BYTES = 2**21  # of vectors of a change that goes to the log, at most,
SMALL_KEYS = 4096  # or so many items
TRIES = 10  # of a reader to get hold of a version before the writer has gone on
SCAN_ROWS = 8192  # read at a time
COLUMN_ROWS = 65_536  # read at a time, of columns that are small,
READ_AHEAD = (
    4  # and how many such pieces of a column Lance has in memory before they are asked for,
)
READ_BYTES = 2**26  # of at most so many bytes; by itself it takes two gigabytes
ENCODED_NUMBERS = 2**19  # of vectors that are encoded at a time; Lance reads ahead
OLD_VERSIONS = timedelta(hours=1)  # are kept so long where readers leave no lease
NOTE_SECONDS = 24 * 3600.0  # that a note of encoded codes is good for; Lance keeps files a week

# The order in which to look for what is new, while another process writes. A label comes after its
# item, so labels are looked at first, lest one be passed over whose item is not there yet; a model
# comes before its codes, so models last. The learner's state is written before its change.
NAMES = ("learner", "state", "labels", "items", "models", "encoded", "feedback")
# Not there before the first item or judgement; not up to version 0.1.
OPTIONAL = ("items", "state", "feedback")


class Model(NamedTuple):
    """A model that serves or has served."""

    number: int
    content: bytes
    facts: dict[str, Any]

    def hasher(self) -> OnlineHasher:
        """The model itself."""
        return OnlineHasher.from_bytes(self.content, place=f"model {self.number}")


class Moment(NamedTuple):
    """What a collection consists of at one moment."""

    items: int
    model: int  # the number of the one that serves
    versions: dict[str, int]  # of each dataset
    files: dict[str, list[File]]  # of each dataset
    log_name: str | None
    log: bytes  # as far as it counts


class Journal:
    """The datasets of one collection. It knows rows and versions, and nothing of searching.

    ``lock`` is held by whoever touches the datasets: Lance cannot read them while another thread
    changes them. Changes are made inside ``changing`` and ``storing``. If one fails after it was
    stored, memory is not what is stored: ``is_stale`` says so until ``reload``, which the
    collection sets, has read all anew.
    """

    def __init__(self, address: str, storage_options: dict[str, str] | None = None) -> None:
        self.store = Store(address, storage_options)
        self.lock = threading.RLock()
        self.read_only, self.is_closed = True, False
        self.reload: Callable[[], None] = lambda: None
        self.settings: dict[str, Any] = {}
        self._is_stale = True
        self._held: WriterLock | None = None
        self._seen = (-1, -1)  # the versions of items and labels that memory follows,
        self._seen_learner = 0  # and of the learner
        self._feedback = 0  # that of feedback
        self._learner_behind = False  # the last state that is stored waits for a change
        self._learner_row_version = 0  # of the learner's row that counted at ``load``
        self._state: int | None = None  # the version of the heavy state that counts
        self._untidy = False  # something that does not count is still stored
        self._tidied: int | None = None  # how often there was something to tidy up
        self._last_model = (0, 0)  # a version of models, and the greatest number in it
        self._addresses, self._vector_files = Addresses(), VectorFiles()
        self._id_kind: str | None = None
        self._tail = Tail()  # what the log in force holds
        self._log_name: str | None = None  # the log in force
        self._log_read = self._log_size = 0  # how far it is read, and how large it was then
        self._log: Log | None = None  # the one that this process appends to
        self._is_fenced = False  # no other process can append to the log in force
        self._learner_now: Learner  # that counts
        self._rewriting: dict[str, threading.Thread] = {}  # by the dataset
        self._is_closing = False  # so that nothing is begun that others need not wait for
        self._chores: Iterator[None] | None = None  # what is left of tidying up,
        self._live: Directory  # and the items that are there meanwhile

    def another(self) -> "Journal":
        """Return the same datasets opened anew: for another thread, or for another version."""
        other = Journal(self.address, self.options)
        other.store, other._addresses = self.store.another(), Addresses(self._addresses)
        other._tail = self._tail
        return other

    @property
    def address(self) -> str:
        """Where the collection is."""
        return self.store.address

    @property
    def options(self) -> dict[str, str] | None:
        """How Lance gets there."""
        return self.store.options

    @property
    def folder(self) -> Path | None:
        """The folder, where it is a local one."""
        return self.store.folder

    @property
    def vector_type(self) -> str:
        """How vectors are stored: "float32" or "float16"."""
        return str(self.settings["vectors"])

    @property
    def forget_deleted(self) -> bool:
        """Whether what was learned from items is forgotten when they are deleted."""
        return bool(self.settings.get("forget_deleted", True))

    @property
    def is_stale(self) -> bool:
        """Whether memory may not be what is stored."""
        return self._is_stale or self.store.is_unsure

    @is_stale.setter
    def is_stale(self, value: bool) -> None:
        self._is_stale = value
        if not value:
            self.store.is_unsure = False

    # ---------------------------------------------------------------------- create, open, close

    def create(self, learner: Learner, settings: dict[str, Any], model: Model | None) -> None:
        """Lay out an empty collection, which a model may serve already."""
        try:
            if self.folder is not None:
                self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(
                f"{self.address}: cannot be made a folder ({error.strerror}); choose a path that "
                "you may write to."
            ) from error
        self._hold(read_only=False)
        try:
            self.store.read_sums()
            there = (self.store.find(name) is not None for name in ("learner", "items"))
            if any(there) or self.store.has_lost("learner"):
                raise InputError(
                    f"{self.address}: there is a collection already; open it, or choose another "
                    "path."
                )
            self._use(settings)
            for name in ("labels", "models", "encoded"):
                self._overwrite(name, {})
            if model is not None:
                self.append_model(model)
            self._store_state(learner)
            self._learner_now = learner
            self._write_learner((0, self.version("labels")))
        except BaseException:
            self.release()
            raise

    def open(self, *, read_only: bool) -> None:
        """Find the datasets, and take the lock of the writer."""
        if self.folder is not None and not self.folder.is_dir():
            raise self.nothing_here()
        self._hold(read_only=read_only)
        try:
            self._repeated(self._check)
        except BaseException:
            self.release()
            raise

    @staticmethod
    def is_at(folder: Path) -> bool:
        """Tell whether a folder has datasets of a collection, whatever became of them."""
        return any((folder / f"{name}.lance").is_dir() for name in NAMES)

    def _check(self) -> None:
        """Refuse what is no collection, or has lost something of it."""
        store = self.store
        store.check(NAMES)
        missing = [name for name in NAMES if store.find(name) is None]
        if "learner" in missing and "items" in missing and not store.has_lost("learner"):
            raise self.nothing_here()  # or one whose making was interrupted
        for name in missing:
            if name not in OPTIONAL or store.has_lost(name):
                raise FileError(f"{store.uri(name)}: is missing; {WAY_BACK}")

    def nothing_here(self) -> FileError:
        """Return the error of a place without a collection."""
        return FileError(
            f"{self.address}: there is no collection here; make one with Collection.create or "
            "`streamhash live create`."
        )

    def _hold(self, *, read_only: bool) -> None:
        if self.folder is not None and not read_only:
            self._held = WriterLock(self.folder)
        self.read_only = read_only
        self.store.is_writer = not read_only

    def release(self) -> None:
        """Let others write."""
        self._drop_log()
        if self._held is not None:
            self._held.release()
        self._held, self.read_only, self.is_closed = None, True, True

    def forked(self) -> None:
        """Touch nothing any more, in a child of the process that opened it, which has the lock."""
        self.lock, self._held, self.read_only = threading.RLock(), None, True
        self._log, self._chores, self._rewriting = None, None, {}
        self.store.forked()

    @property
    def is_forked(self) -> bool:
        """Whether this is a child of the process that opened it."""
        return self.store.is_forked

    # -------------------------------------------------------------------- datasets and versions

    def uri(self, name: str) -> str:
        """Where a dataset is."""
        return self.store.uri(name)

    def dataset(self, name: str) -> "lance.LanceDataset":
        """Return a dataset that is there."""
        return self.store.dataset(name)

    def version(self, name: str) -> int:
        """Return the version in use here; 0 where nothing was ever stored."""
        return self.store.version(name)

    @property
    def _versions(self) -> tuple[int, int]:
        return self.version("items"), self.version("labels")

    @property
    def _latest(self) -> tuple[int, int]:
        """The latest versions of items and labels, perhaps by another process."""
        return self.store.latest("items"), self.store.latest("labels")

    @property
    def is_current(self) -> bool:
        """Whether nothing was stored since ``load``, by another process."""
        if self._seen != self._latest or self._seen_learner != self.store.latest("learner"):
            return False
        if self.folder is None:
            # Each look is a request: a reader there sees new feedback with the next change.
            return True
        if self._feedback != self.store.latest("feedback"):
            return False
        return self._log_name is None or self._log_size == log.size_of(self.folder, self._log_name)

    def load(self) -> tuple[Learner, ReaderLease]:
        """Turn to the latest versions; return the learner that goes with them.

        The writer keeps these versions until the lease is released.
        """
        return self._repeated(self._load_all)

    def _load_all(self) -> tuple[Learner, ReaderLease]:
        self._seen_learner = self.store.latest("learner")
        for name in NAMES:
            self.store.advance(name)
        lease = self.lease()
        try:
            found = self._load()
            if self.read_only and self._log_name is not None:
                self._check_log()
            return found, lease
        except BaseException:
            lease.release()
            raise

    def moment(self) -> tuple[Moment, ReaderLease]:
        """Find the files of one moment, as a reader; the writer keeps its items and labels.

        Other files may be gone at any time.
        """
        return self._repeated(self._moment)

    def _moment(self) -> tuple[Moment, ReaderLease]:
        *_, lease = self._load_all()
        try:
            self._check_log()
            if not self._learner_row_version:
                raise self._too_fast()
            there = [name for name in NAMES if self.store.find(name) is not None]
            versions = {name: self.version(name) for name in there}
            versions["learner"] = self._learner_row_version
            if self._state is not None:
                versions["state"] = self._state
            files = {name: self.store.files(name, each) for name, each in versions.items()}
            content, name = b"", self._log_name
            if name is not None and self.folder is not None:
                with log.naming(log.path_of(self.folder, name), "read"):
                    content = log.path_of(self.folder, name).read_bytes()[: self._log_read]
            found = Moment(
                self.n_rows,
                self.serving if self.has_items else self.last_model,
                versions,
                files,
                name,
                content,
            )
        except BaseException:
            lease.release()
            raise
        return found, lease

    def _too_fast(self) -> FileError:
        return FileError(
            f"{self.address}: is written to faster than it can be read; try again, or write more "
            "items at a time."
        )

    def _check_log(self) -> None:
        """As a reader, see that the log was not folded while it was read beside the items."""
        if self.store.latest("learner") != self._seen_learner:
            raise self._too_fast()

    def _repeated(self, look: Callable[[], Found]) -> Found:
        """Look at what is stored; as a reader again, if the writer deletes it between two looks."""
        for tries_left in reversed(range(TRIES)):
            try:
                return look()
            except FileError:
                if not tries_left or not self.read_only:
                    raise
        raise AssertionError("the last try returns or raises")

    def _load(self) -> Learner:
        versions, self._feedback, self._id_kind = self._versions, self.version("feedback"), None
        row, self._learner_row_version = self._read_learner()
        self._use(json.loads(row["settings"]))
        self._learner_behind = self._learner_row_version != self.version("learner")
        if self._tidied is None:
            self._tidied = self._age
        self._load_log(row.get("log"), is_same=versions == self._seen)
        self._seen = versions
        self._learner_now = self._stored_learner(row)
        self._state = self._learner_now.state
        return self._learner_now

    def _stored_learner(self, row: dict[str, Any]) -> Learner:
        """Return the learner of a row, or of the log, with all that it differs by since then."""
        content, state = self._tail.learner or (row["content"], row.get("state"))
        deltas, place = map(Delta.from_bytes, self._tail.deltas), self.uri("learner")
        try:
            return Learner.stored(content, state, self.read_state, deltas, place=place)
        except (LookupError, TypeError) as error:
            raise FileError(f"{place}: cannot be followed ({error}); {WAY_BACK}") from error

    def _load_log(self, name: str | None, *, is_same: bool) -> None:
        """Read what the log in force holds and the items do not."""
        if self._log is not None and (name != self._log.name or self._log_read != self._log.size):
            self._drop_log()  # something failed: it is folded before it is used again
        if name != self._log_name or not is_same or self._log_read == 0:
            self._tail, self._log_read, self._is_fenced = Tail(), 0, self._log is not None
        self._log_name = name
        if name is None or self.folder is None:
            return
        self._log_size = log.size_of(self.folder, name)
        tail = self._tail if self._log_read else Tail()
        try:
            for change, end in log.read(self.folder, name, self._log_read):
                tail.add(change, end - self._log_read)
                self._log_read = end
        except (LookupError, ValueError, TypeError) as error:
            raise FileError(f"{error}; {WAY_BACK}") from error
        rows = tail.rows
        if not is_same and rows.size and self.has_items:
            with self.store.reading("items"):
                found = self._addresses.find(self.dataset("items"), rows.keys[: rows.size])
            if (found >= 0).any():
                tail.without(found >= 0)
        self._tail = tail

    def _use(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.store.durability = settings.get("durability", "synced")

    # ---------------------------------------------------------------------------------- changes

    @contextmanager
    def changing(self, verb: str, *, may_log: bool = False) -> Iterator[None]:
        """Let this thread alone make changes; what ``may_log`` need not find the log empty."""
        with self.lock:
            if self.is_forked:
                raise ReadOnlyError(
                    f"Collection.{verb}: this process was forked from the one that opened the "
                    "collection, which alone can write to it; change it there."
                )
            if self.read_only:
                raise ReadOnlyError(
                    f"Collection.{verb}: this collection is open to read only, or closed; open it "
                    "with read_only=False."
                )
            if self.is_stale:
                self.reload()
            try:
                self._refuse_second()
                self.store.sum_all(NAMES)
                self._fence()
                if not may_log:
                    self.fold_log()
                yield
            except InUseError:
                self.read_only = self.is_stale = True  # from here on a reader like others
                raise

    def _refuse_second(self) -> None:
        """Raise an error if another process has stored anything meanwhile."""
        if self._latest != self._versions or (
            self.store.latest("learner") != self.version("learner")
        ):
            raise self.store.in_use()

    @contextmanager
    def storing(
        self, learner: Learner, twin: Learner | None, *, items: int = 0, labels: int = 0
    ) -> Iterator[None]:
        """Store the learner with a change, that the block commits and does in memory.

        If it has a ``twin`` that has learned more, that is stored, and it becomes that. ``items``
        and ``labels`` are by how many versions the block takes them on.
        """
        with uninterrupted():
            assert not self._tail
            before, after = self._versions, twin or self._learner_now
            try:
                if twin is not None or self._learner_behind:
                    self._learner_behind = True
                    self._store_state(after)
                    self._write_learner((before[0] + items, before[1] + labels), after)
                yield
                if twin is not None:
                    learner.become(twin)
            except BaseException as error:
                if self._versions != before:
                    self.is_stale = True  # it was stored, and the failure came after
                elif isinstance(error, InUseError):
                    with suppress(FileError, InUseError):  # the other's change would make it fit
                        self.settle()
                raise
            self._learner_behind, self._learner_now = False, after
            self._follow_state(learner)

    def _follow_state(self, learner: Learner) -> None:
        """Delete what was learned before, if something else has been since."""
        if learner.state != self._state:
            self._state = learner.state
            with self._or_later():
                self._forget_old_states()

    def settle(self) -> None:
        """See to it that the last learner state stored is the one that counts."""
        if self._learner_behind:
            with uninterrupted():
                self._write_learner(self._versions)
                self._learner_behind = False

    def _append(self, name: str, columns: "dict[str, Any] | pa.Table", **options: Any) -> None:
        """Commit rows, after those that are there."""
        table = _table(name, columns) if isinstance(columns, dict) else columns
        self.store.append(name, table, _fragment_rows(table.schema), **options)

    def _overwrite(
        self, name: str, columns: dict[str, Any], *, is_prepared: bool = False, **metadata: str
    ) -> None:
        """Commit rows in place of those that are there."""
        table = _table(name, columns).replace_schema_metadata(metadata or None)
        self.store.overwrite(name, table, FRAGMENT_ROWS, is_prepared=is_prepared)

    # -------------------------------------------------------------------------------------- log

    def takes(self, n: int, n_new: int = 0) -> bool:
        """Whether a change of so many items, so many of them to be stored, goes to the log."""
        if self.folder is None or n > SMALL_KEYS or self.n_features is None:
            return False
        return n_new * self.n_features * np.dtype(self.vector_type).itemsize <= SMALL_BYTES

    @contextmanager
    def recording(self, learner: Learner, twin: Learner | None, change: Change) -> Iterator[None]:
        """Store a small change in the log, and with it the learner, as ``storing`` does.

        The block does it in memory.
        """
        with uninterrupted():
            self.settle()
            if twin is not None:
                change = self._with_learner(change, twin)
            self._record(change)
            self._learner_now = twin or self._learner_now
            try:
                yield
                if twin is not None:
                    learner.become(twin)
            except BaseException:
                self.is_stale = True  # it was stored, and the failure came after
                raise
            self._follow_state(learner)

    def _with_learner(self, change: Change, twin: Learner) -> Change:
        """Put the learner into a record: by how much it differs, or now and then the whole."""
        is_little = twin.delta is not None and twin.state is not None
        if twin.delta is not None and is_little and len(self._tail.deltas) < MOST_DELTAS:
            return change._replace(delta=twin.delta.to_bytes())
        if twin.state is None:
            self._store_state(twin)
            self.store.acknowledge()  # it is there before the record that names it
        return change._replace(learner=twin.to_bytes(), state=twin.state)

    def _record(self, change: Change) -> None:
        if self._log is None:
            self.fold_log(anew=True)
        used = self._log
        assert used is not None
        try:
            n_bytes = used.append(change)
        except BaseException:
            self._drop_log()
            raise
        try:
            self._refuse_second()
        except BaseException:
            self.is_stale = True
            raise
        used.acknowledge()
        self._tail.add(change, n_bytes)
        self._log_read = self._log_size = used.size

    def _drop_log(self) -> None:
        """Append no more to this log; it is in force until it is folded."""
        if self._log is not None:
            self._log.close()
        self._log = None

    def _fence(self) -> None:
        """Let no other process append to the log in force: its next record would be refused."""
        if self._log_name is None or self._is_fenced or self.folder is None:
            return
        with uninterrupted():
            self._write_learner(self._versions)
            if log.size_of(self.folder, self._log_name) != self._log_size:
                raise self.store.in_use()
            self._is_fenced = True

    def fold_log(self, *, anew: bool = False, is_last: bool = False) -> None:
        """Take what the log holds into the datasets; ``anew`` begins another in any case.

        With ``is_last`` there is no log after it.
        """
        tail, folder = self._tail, self.folder
        is_unused = self._log is None and self._log_name is not None  # what another has left
        if folder is None or not (tail or anew or is_unused or (is_last and self._log_name)):
            return
        with uninterrupted():
            before, begun = self._log_name, None
            self._drop_log()
            try:
                self._fold_tail(tail)
                if not is_last:
                    begun = Log(folder, is_synced=self.store.durability == "synced")
                self._log_name = None if begun is None else begun.name
                self._write_learner(self._versions)
            except BaseException:
                self._log_name, self.is_stale = before, True
                if begun is not None:
                    begun.close()
                raise
            self._tail, self._log = Tail(), begun
            self._log_read = self._log_size = 0
            self._is_fenced, self._learner_behind = True, False
            with self._or_later():
                # Readers may still look at the log before.
                log.forget(folder, {log.ACKNOWLEDGED, self._log_name or "", before or ""})

    def finish(self, live: Directory) -> None:
        """Leave no log behind; if that cannot be, whoever opens the collection next folds it.

        What was begun of tidying up is done. Of many items, say if none is stored twice: then the
        next opening need not look.
        """
        if not (self.read_only or self.is_stale):
            with self._or_later():
                self.fold_log(is_last=True)
                self._live, self._is_closing = live, True
                deque(self._chores or (), 0)
                if len(live) >= MANY_ITEMS and not self.is_unique and self.n_rows == len(live):
                    self.settings = {**self.settings, "unique": self.version("items")}
                    self._write_learner(self._versions)

    @property
    def is_unique(self) -> bool:
        """Whether it is known that no id is stored twice: a crash may have left some."""
        return self.has_items and self.settings.get("unique") == self.version("items")

    def _fold_tail(self, tail: Tail) -> None:
        """Commit items, deletes and labels; they count when the learner's row is there."""
        rows, places, n_ahead = tail.rows, tail.places(), 0
        if rows.size and not len(places):  # the version has to go on, lest keys come again
            places = np.array([rows.size - 1])
        if len(places):
            loose: Sequence[Loose] = ()
            if tail.ahead is not None:  # some of these may be gone, and are deleted below
                n_ahead, loose = tail.ahead.taken(self.dataset("items").schema)
            table = self._items_table(rows, places[places >= n_ahead])
            self._append("items", table, loose=loose, is_followed=True)
        if tail.gone:
            found = self._found(tail.gone_keys())
            if len(found):
                self.store.delete("items", found, is_followed=True)
        if tail.labelled:
            columns = {"key": tail.labelled, "label": tail.new_labels}
            self._append("labels", columns, is_followed=True)

    def _write_ahead(self) -> None:
        """Write rows of the log to files, in a thread, if there are enough of them."""
        tail, rows = self._tail, self._tail.rows
        n = rows.size - (0 if tail.ahead is None else tail.ahead.n_begun)
        if n == 0 or n * rows.vectors[:1].nbytes < AHEAD_BYTES:
            return
        ahead = tail.ahead = tail.ahead or Ahead()
        if not ahead.is_ready:
            return
        table = self._items_table(rows, np.arange(ahead.n_begun, rows.size))
        dataset = self.dataset("items").checkout_version(self.version("items"))
        n_fragment = _fragment_rows(table.schema)
        write = partial(self.store.write_loose, "items", table, dataset, n_fragment)
        ahead.begin(rows.size, dataset.schema, write)

    def _items_table(self, rows: log.Rows, places: Keys) -> "pa.Table":
        first, end = (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
        is_run = end - first == len(places)
        some: Any = slice(first, end) if is_run else places  # which copies nothing
        lists = (rows.labels, rows.metadata)
        labels, metadata = (
            each[first:end] if is_run else [each[i] for i in places.tolist()] for each in lists
        )
        return self._as_table(
            rows.keys[some],
            rows.ids[some],
            rows.vectors[some],
            labels,
            metadata,
            None if rows.codes is None else rows.codes[some],
        )

    # ------------------------------------------------------------------------------------ items

    @property
    def has_items(self) -> bool:
        """Whether any item was ever stored."""
        return self.store.find("items") is not None

    @property
    def id_kind(self) -> str | None:
        """What ids are, "whole numbers" or "strings"; None before the first item."""
        if self._id_kind is None and self.has_items:  # asked for at every add: looked up once
            is_text = str(self.dataset("items").schema.field("id").type) == "string"
            self._id_kind = "strings" if is_text else "whole numbers"
        return self._id_kind

    @property
    def n_features(self) -> int | None:
        """Length of the vectors; None before the first item."""
        if not self.has_items:
            return None
        return int(self.dataset("items").schema.field("vector").type.list_size)

    @property
    def serving(self) -> int:
        """The number of the model whose codes the items carry; 0 if none."""
        return max(self._code_columns(), default=0) if self.has_items else self.last_model

    def _code_columns(self) -> list[int]:
        names = self.dataset("items").schema.names
        return [int(name.removeprefix(CODE)) for name in names if name.startswith(CODE)]

    def next_keys(self, n: int, *, is_logged: bool = False) -> Keys:
        """Return the keys of the next items, if no other change is stored before.

        Those of the log are others than those of the next commit, whoever makes it.
        """
        first = (self.version("items") + 1) << KEY_BITS
        if is_logged:
            first = max(first + LOGGED, self._tail.last_key + 1)
        return first + np.arange(n)

    def append_items(
        self,
        ids: NDArray[Any],
        vectors: NDArray[Any],
        labels: Sequence[Any],
        metadata: Sequence[str | None],
        codes: Codes | None,
    ) -> Keys:
        """Store new items, with codes of the model that serves if there is one; return keys."""
        keys, texts = self.next_keys(len(ids)), arrow.labels_to_json(labels)
        self._append("items", self._as_table(keys, ids, vectors, texts, metadata, codes))
        return keys

    def _as_table(
        self,
        keys: Keys,
        ids: NDArray[Any],
        vectors: NDArray[Any],
        labels: Sequence[str | None],
        metadata: Sequence[str | None],
        codes: Codes | None,
    ) -> "pa.Table":
        pa = import_pyarrow()
        columns = {
            "key": pa.array(keys),
            "id": pa.array(ids) if ids.dtype != object else pa.array(ids.tolist(), pa.string()),
            "vector": arrow.vector_array(vectors),
            "label": pa.array(labels, pa.string()),
            "metadata": pa.array(metadata, pa.string()),
        }
        if codes is not None:
            columns[f"{CODE}{self.serving}"] = arrow.code_array(codes)
        return pa.table(columns)

    def delete_items(self, keys: Keys) -> None:
        """Delete the items with these keys."""
        if len(keys):
            self.store.delete("items", self._found(keys))

    def delete_replaced(self, keys: Keys) -> None:
        """Delete items that do not count any more."""
        with self._or_later():
            self.delete_items(keys)

    @contextmanager
    def _or_later(self) -> Iterator[None]:
        """Do something that changes no item that counts; if it fails, it is made up for later."""
        try:
            with uninterrupted():
                yield
        except (FileError, OSError) as error:
            logger.warning("something is left to tidy up: %s", error)
            self._untidy = True
        except InUseError as error:
            logger.warning("%s", error)
            self.read_only = self.is_stale = True  # from here on a reader like others

    def _found(self, keys: Keys) -> Keys:
        """Return the addresses of those keys that are stored."""
        with self.store.reading("items"):
            found = self._addresses.find(self.dataset("items"), keys)
        return found[found >= 0]

    def _among(self, keys: Keys) -> str:
        """Say to Lance which items are meant: by their addresses, so that it need not scan."""
        found = self._found(keys).tolist()
        return f"_rowaddr IN ({', '.join(map(str, found))})" if found else "false"

    @property
    def n_rows(self) -> int:
        """How many items are stored, with those that wait to be deleted."""
        if not self.has_items:
            return 0
        tail = self._tail
        # While the log is folded, what is gone may be so in both: it is too few then, never right.
        return int(self.dataset("items").count_rows()) + tail.rows.size - len(tail.gone)

    def keys(self) -> Keys:
        """Return the keys of all items, ascending."""
        keys = np.concatenate([np.empty(0, np.int64), *self.key_pieces()])
        return keys if _ascend(keys) else np.sort(keys)

    def key_pieces(self) -> Iterator[Keys]:
        """Read the keys of all items, piece by piece."""
        tail = self._tail
        gone = tail.gone_keys()
        for part in self._streamed("items", columns=["key"]) if self.has_items else ():
            keys = part["key"].to_numpy()
            yield keys[~_is_among(keys, gone)] if len(gone) else keys
        yield tail.rows.keys[tail.places()]

    def new_items(self, last_key: int) -> Iterator[Columns]:
        """Read the items with keys above ``last_key``, piece by piece, in the order of their keys.

        There may be two of one id, where a process died between storing an item and deleting the
        one that it replaces: the last one counts.
        """
        columns = ["key", "id", "label", *arrow.code_columns(self.serving)]
        options: dict[str, Any] = {"columns": columns}
        if last_key >= 0:
            options["filter"] = f"key > {last_key}"
        if last_key >= 0 or not self._are_in_order():
            options["order_by"] = ["key"]
        tail = self._tail
        gone, rows, places = tail.gone_keys(), tail.rows, tail.places()
        places = places[rows.keys[places] > last_key]
        for part in self._streamed("items", **options):
            with self.store.reading("items"):
                if len(gone):
                    part = part.filter(
                        import_pyarrow().array(~_is_among(part["key"].to_numpy(), gone))
                    )
                piece = arrow.columns_of(part)
                if len(piece.keys) and (piece.keys[0] <= last_key or not _ascend(piece.keys)):
                    raise ValueError("two items have one key")
            if len(piece.keys):
                last_key = int(piece.keys[-1])
                yield piece
        if len(places):
            (part,) = self._items_table(rows, places).combine_chunks().to_batches()
            yield arrow.columns_of(part)

    def _are_in_order(self) -> bool:
        """Whether the rows are stored in the order of their keys, as they are unless damaged."""
        last = -1
        for keys in self.key_pieces():
            if len(keys) and (keys[0] <= last or not _ascend(keys)):
                return False
            last = int(keys[-1]) if len(keys) else last
        return True

    def _streamed(self, name: str, **options: Any) -> Iterator[Any]:
        """Read rows as record batches, in bounded memory; Ctrl-C waits for the end of each."""
        with self.store.reading(name):
            parts = self.dataset(name).to_batches(
                batch_size=COLUMN_ROWS,
                batch_readahead=READ_AHEAD,
                io_buffer_size=READ_BYTES,
                scan_in_order=True,
                **options,
            )
        while True:
            with uninterrupted(), self.store.reading(name):
                part = next(parts, None)
            if part is None:
                return
            yield part

    def items(self, keys: Keys, *, vectors: bool = True, codes: int = 0) -> Batch:
        """Read items by their keys, in that order, those of them that there are."""
        columns = ["key", "metadata", *["vector"][:vectors], *arrow.code_columns(codes)]
        rows = self._tail.rows
        new = rows.holds(keys)
        if len(keys) and new.all():
            return rows.batch(rows.places(keys), columns)
        old = keys[~new] if new.any() else keys
        with self.store.reading("items"):
            table = self.store.read("items", columns=columns, filter=self._among(old))
            there = table["key"].to_numpy()
            order = np.argsort(there)
            batch = arrow.batch_of(
                table, order[np.searchsorted(there[order], old[np.isin(old, there)])]
            )
        if not new.any():
            return batch
        both = arrow.joined([batch, rows.batch(rows.places(keys[new]), columns)])
        order = np.argsort(both.keys)
        return both.some(order[np.searchsorted(both.keys[order], keys[np.isin(keys, both.keys)])])

    def vectors(self, keys: Keys) -> Matrix:
        """Read the vectors of items that are there, in the order of these keys."""
        if len(keys) == 0:
            return np.empty((0, self.n_features or 0), np.float32)
        batch = self.stored_vectors(keys)
        if len(batch.keys) != len(keys):
            raise FileError(
                f"{self.uri('items')}: {len(keys) - len(batch.keys)} items that should be there "
                f"are missing; {WAY_BACK}"
            )
        return np.asarray(batch.vectors, np.float32)

    def stored_vectors(self, keys: Keys) -> Batch:
        """Read the vectors of those of these keys that there are, quickly, as they are stored."""
        rows = self._tail.rows
        new = rows.holds(keys)
        if new.any():
            parts = [rows.batch(rows.places(keys[new]), ["vector"])]
            if not new.all():
                parts.append(self._stored_vectors(keys[~new]))
            parts = [Batch(None, each.vectors, None, None, None, each.keys) for each in parts]
            both = arrow.joined(parts)
            order = np.argsort(both.keys)
            found = keys[np.isin(keys, both.keys)]
            return both.some(order[np.searchsorted(both.keys[order], found)])
        return self._stored_vectors(keys)

    def _stored_vectors(self, keys: Keys) -> Batch:
        with self.store.reading("items"):
            items = self.dataset("items")
            if "vector" not in items.schema.names:
                raise InputError(
                    f"{self.address}: stores no vectors to score by; search without rescore."
                )
            found = self._addresses.find(items, keys)
            vectors = self._vector_files.read(items, found[found >= 0])
        if vectors is None:
            return self.items(keys)  # which are not in the log
        return Batch(None, vectors, None, None, None, keys[found >= 0])

    def scan(self, keys: Keys | None, *columns: str, size: int = SCAN_ROWS) -> Iterator[Batch]:
        """Go through the items with these keys as they are now, in their order.

        Without keys, through all that are stored, those that wait to be deleted with them.
        """
        rows, places, wanted = self._tail.rows, self._tail.places(), keys
        if wanted is not None:
            wanted = wanted if _ascend(wanted) else np.sort(wanted)
            places = places[:0]
            if rows.size:
                new = rows.holds(wanted)
                wanted, places = wanted[~new], rows.places(wanted[new])
        pieces = np.split(places, range(size, len(places), size)) if len(places) else []
        later = (rows.batch(piece, columns) for piece in pieces)
        if not self.has_items or (wanted is not None and not len(wanted)):
            return later
        with self.store.reading("items"):
            items, between = self.dataset("items").checkout_version(self.version("items")), None
            if wanted is not None and len(wanted) != items.count_rows():
                between = f"key >= {wanted[0]} AND key <= {wanted[-1]}"
            parts = items.to_batches(
                columns=["key", *columns],
                filter=between,
                batch_size=size,
                batch_readahead=READ_AHEAD,
                io_buffer_size=READ_BYTES,
                scan_in_order=True,
            )
        return chain(self._batches(parts, wanted), later)

    def _batches(self, parts: Iterator[Any], wanted: Keys | None) -> Iterator[Batch]:
        while True:
            with self.store.reading("items"):
                part = next(parts, None)
                if part is None:
                    return
                if wanted is not None:
                    # Others are not wanted, or were replaced and wait to be deleted.
                    part = part.filter(_is_among(part["key"].to_numpy(), wanted))
                batch = arrow.batch_of(part)
            if len(batch.keys):
                yield batch

    def lease(self) -> ReaderLease:
        """Keep the writer from deleting the items as they are here, until it is released.

        A version that is among the last KEPT even now was not deleted before, so it never will be.
        """
        used = self._versions
        lease = ReaderLease(self.folder, *used)
        latest = self._latest if self.read_only and self.folder is not None else used
        if any(last - version >= KEPT for last, version in zip(latest, used, strict=True)):
            lease.release()
            raise self._too_fast()
        return lease

    def read_codes(self, number: int, keys: Keys | None) -> Pieces:
        """Read the codes of a model by keys, or of all items, piece by piece."""
        for batch in self.scan(keys, *arrow.code_columns(number), size=SMALL_FRAGMENT):
            yield batch.codes, batch.keys

    # ----------------------------------------------------------------------------------- labels

    @property
    def fold(self) -> int:
        """How often the labels were folded: written anew without those that no longer count."""
        return int((self.dataset("labels").schema.metadata or {}).get(b"fold", 0))

    @property
    def n_labels(self) -> int:
        """How many labels are stored, all of one item counted."""
        return int(self.dataset("labels").count_rows())

    def labels_left(self, fold: int, seen: int) -> int:
        """Return how many labels now say what the first ``seen`` said, after so many folds.

        They are the first again; 0 where the fold since had more than these, or there were several.
        """
        if fold == self.fold:
            return seen
        folded = (self.dataset("labels").schema.metadata or {}).get(b"folded")  # not in version 0.1
        found, left = map(int, folded.split()) if folded else (0, 0)
        return left + seen - found if folded and fold + 1 == self.fold and seen >= found else 0

    def append_labels(self, keys: Keys, labels: Sequence[Any]) -> None:
        """Store labels of items that are there."""
        texts = arrow.labels_to_json(labels)
        self._append("labels", {"key": keys, "label": texts})

    def read_labels(self, start: int = 0) -> Iterator[tuple[Keys, Coded]]:
        """Read labels that came after their items, from the ``start``-th on, piece by piece."""
        for part in self._streamed("labels", columns=["key", "label"], offset=start):
            with self.store.reading("labels"):
                piece = part["key"].to_numpy(), arrow.coded(part["label"])
            yield piece

    def logged_labels(self) -> Iterator[tuple[Keys, Coded]]:
        """Give the labels of the log, which come after those of the dataset.

        While they are folded they may be in both, which does no harm: the last one counts.
        """
        tail = self._tail
        if tail.labelled:
            texts = import_pyarrow().array(tail.new_labels, import_pyarrow().string())
            yield np.array(tail.labelled, np.int64), arrow.coded(texts)

    def _fold_labels(self) -> None:
        """Keep only the last label of each item that is there."""
        rewrite = Rewrite(self.store, "labels", FRAGMENT_ROWS)
        fold = partial(self._fold_rows, rewrite, self._live.live_keys)
        if self.n_labels > REWRITTEN_AT_ONCE:
            self._aside("labels", fold)
        else:
            fold()

    def _fold_rows(self, rewrite: Rewrite, live: LiveKeys) -> None:
        """Write the last label of each item, from the last row to the first, and commit them."""
        for table in rewrite.tables():
            is_last = live.take_last(table["key"].to_numpy())
            rewrite.put(table.filter(import_pyarrow().array(is_last)))
        rewrite.flush()
        folded = f"{rewrite.n_read} {rewrite.n_written}"  # for readers that have read so far
        self._commit_aside(
            lambda: self.store.replace(rewrite, fold=str(self.fold + 1), folded=folded)
        )

    # --------------------------------------------------------------------------------- feedback

    def append_feedback(self, columns: dict[str, Any]) -> None:
        """Store judged pairs; they count when a learner is stored that knows their numbers."""
        first = int(columns["number"][0])
        with uninterrupted():
            self._delete_feedback(f"number >= {first}")  # of a call that was interrupted
            self._append("feedback", columns)

    def read_feedback(self, last: int, *, first: int = 0, vectors: bool = False) -> Judgements:
        """Read the judged pairs from one number on, up to another, by the keys of today.

        Without ``vectors``, their queries are left out.
        """
        columns = ["number", "key", "query_key", "good", *["query"][:vectors]]
        if last == 0:
            return judgements_of(_table("feedback", {}), last=0)
        # A later row may say that items have other keys.
        table = self.store.read(
            "feedback", columns=columns, filter=f"number >= {first} OR good IS NULL"
        )
        with self.store.reading("feedback"):
            return judgements_of(table, last=last)

    def delete_feedback(self, numbers: Keys) -> None:
        """Delete judged pairs that do not count any more."""
        if len(numbers):
            with self._or_later():
                self._delete_feedback(f"number IN ({', '.join(map(str, numbers.tolist()))})")

    def _delete_feedback(self, which: str) -> None:
        if self.store.find("feedback") is not None:
            table = self.store.read("feedback", columns=[], filter=which, with_row_address=True)
            if len(table):
                self.store.delete("feedback", table["_rowaddr"].to_numpy().astype(np.int64))

    # ----------------------------------------------------------------------- learner and models

    def _store_state(self, learner: Learner) -> None:
        """Store what a learner has learned, if that is not stored yet."""
        if learner.state is None:
            if self.store.latest("learner") != self.version("learner"):
                raise self.store.in_use()  # before it is in the way of the other writer
            content = {"content": [learner.knowledge.to_bytes()]}
            self._overwrite("state", content, is_prepared=True)
            learner.state = self.version("state")

    def read_state(self, number: int) -> bytes:
        """Return the heavy state of a learner; a reader, who only reports it, may get a later."""
        with self.lock:
            try:
                row = self._row("state", number)
            except FileError:
                if not self.read_only:
                    raise
                self.store.advance("state")
                row = self._row("state", None)
            content: bytes = row["content"]
            with self.store.reading("state"):
                _check_archive(content)
            return content

    def _row(self, name: str, version: int | None) -> dict[str, Any]:
        """Return the one row of a version."""
        with self.store.reading(name):
            row: dict[str, Any] = self.store.read(name, version=version).to_pylist()[0]
        return row

    def _forget_old_states(self) -> None:
        """Delete heavy states older than the one that counts; elsewhere, if they are an hour old.

        A state may be the last without counting, so that this is not left to Lance.
        """
        if self._state is not None and self.store.find("state") is not None:
            old = [version for version in self._old_versions("state") if version < self._state]
            self.store.forget("state", old, all_files=self.folder is not None)

    def _old_versions(self, name: str) -> list[int]:
        """Return the versions that there are; elsewhere those that are an hour old."""
        if self.folder is not None:
            return self.store.versions(name)
        with self.store.reading(name):
            return [
                int(each["version"])
                for each in self.dataset(name).versions()
                if datetime.now() - cast("datetime", each["timestamp"]) > OLD_VERSIONS
            ]

    def _write_learner(self, versions: tuple[int, int], learner: Learner | None = None) -> None:
        """Store the learner that counts, or another that will, from these versions on."""
        learner = learner or self._learner_now
        self._store_state(learner)
        row = {
            "items": versions[0],
            "labels": versions[1],
            "settings": json.dumps(self.settings),
            "content": learner.to_bytes(),
            "state": learner.state,
            "log": self._log_name,
        }
        columns = {name: [value] for name, value in {**row, "sum": _sum_of(row)}.items()}
        # Unless a change is to come with it, it counts from now on.
        self._overwrite("learner", columns, is_prepared=versions != self._versions)

    def _read_learner(self) -> tuple[dict[str, Any], int]:
        """Return the learner's row that goes with the items and labels, and its version.

        It is not the last where a process died between the learner and its change. A reader, who
        only reports it, takes the last where the writer has forgotten the one that fits, as 0.
        """
        last, first = self.version("learner"), None
        for version in range(last, 0, -1):
            try:
                row = self._learner_row(version)
            except FileError:
                if self.store.is_acknowledged("learner", version) and not self.read_only:
                    raise
                continue  # a power cut has left it broken, or the writer has deleted it
            first = first or row
            for name, there in (("items", row["items"] > 1), ("state", row.get("state"))):
                if there and self.store.find(name) is None:
                    raise FileError(f"{self.uri(name)}: is missing; {WAY_BACK}")
            if row["items"] <= self.version("items") and row["labels"] <= self.version("labels"):
                return row, version
            if self.read_only and last - version > TIDY_AFTER:
                break
        if first is not None and self.read_only:
            return first, 0
        raise FileError(f"{self.uri('learner')}: no state goes with these items; {WAY_BACK}")

    def _learner_row(self, version: int) -> dict[str, Any]:
        row = self._row("learner", version)
        if row.pop("sum", None) not in (None, _sum_of(row)):
            raise FileError(f"{self.uri('learner')}: version {version} is damaged; {WAY_BACK}")
        return row

    def append_model(self, model: Model) -> None:
        """Store a model, before its codes."""
        facts = json.dumps(model.facts)
        columns = {"number": [model.number], "content": [model.content], "facts": [facts]}
        with uninterrupted():
            self._append("models", columns)

    def read_model(self, number: int) -> Model:
        """Return a model."""
        table = self.store.read("models", filter=f"number = {number}")
        if len(table) != 1:
            raise NotFoundError(
                f"{self.uri('models')}: there is no model {number!r}; models() lists those there "
                "are."
            )
        row = table.to_pylist()[0]
        with self.store.reading("models"):
            _check_archive(row["content"])
            return Model(number, row["content"], json.loads(row["facts"]))

    def models(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the number and the facts of every model, the oldest first."""
        with self.store.reading("models"):
            rows = self.store.read("models", columns=["number", "facts"]).to_pylist()
            return sorted((row["number"], json.loads(row["facts"])) for row in rows)

    @property
    def last_model(self) -> int:
        """The number of the newest model, 0 if there is none; read when models have changed."""
        version = self.version("models")
        if self._last_model[0] != version:
            self._last_model = version, max((number for number, _ in self.models()), default=0)
        return self._last_model[1]

    @property
    def pending(self) -> int | None:
        """The number of the model of a refresh that was interrupted, or that runs."""
        last = self.last_model
        return last if last > self.serving else None

    # -------------------------------------------------------------------- encoding a new column

    def append_encoded(self, number: int, results: dict[int, dict[str, Any]]) -> None:
        """Take note of fragments that were encoded with a model."""
        texts = [json.dumps(result) for result in results.values()]
        columns = {"model": [number] * len(results), "fragment": [*results], "result": texts}
        files = data_files(result["fragment"] for result in results.values())
        with uninterrupted():
            self.store.keep("items", files)
            self._append("encoded", columns)

    def read_encoded(self, number: int) -> dict[int, dict[str, Any]]:
        """Return what was noted of a model's fragments, not long ago, if its files are whole."""
        with self.store.reading("encoded"):
            rows = self.store.read("encoded", filter=f"model = {number}").to_pylist()
            results = {row["fragment"]: json.loads(row["result"]) for row in rows}
        since = time.time() - NOTE_SECONDS
        return {
            number: each
            for number, each in results.items()
            if each["made"] > since
            and self.store.are_whole("items", data_files([each["fragment"]]))
        }

    def fragments(self) -> list[Any]:
        """Return the fragments of the items."""
        return [*self.dataset("items").get_fragments()] if self.has_items else []

    def commit_codes(
        self, number: int, n_bytes: int, results: dict[int, dict[str, Any]], schema: Any
    ) -> None:
        """Make the encoded fragments the codes that serve, in one commit."""
        pa, merged = import_pyarrow(), []
        for fragment in self.fragments():
            now = fragment.metadata.to_json()
            there = {file["path"] for file in now["files"]}
            new = results[fragment.fragment_id]["fragment"]["files"]
            # Rows may have been deleted since it was encoded: all else is taken as it is now.
            now["files"] += [file for file in new if file["path"] not in there]
            merged.append(now)
        if merged:
            self.store.merge("items", merged, schema)
        else:
            column = pa.schema([(f"{CODE}{number}", pa.binary(n_bytes))])
            self.store.change_columns("items", lambda items: items.add_columns(column))

    # ------------------------------------------------------------------------------- tidying up

    def mend(self, live: Directory) -> None:
        """Delete what is stored and does not count: old codes, and all items but the live ones."""
        self._untidy = False
        with self._or_later():
            self.settle()
            if self.has_items:
                self._drop_old_codes()
                if self.n_rows != len(live):  # all of these are stored, so there are others
                    others = [keys[~live.has(keys)] for keys in self.key_pieces()]
                    self.delete_items(np.concatenate(others))

    def _drop_old_codes(self) -> None:
        """Drop the codes of all models but the one that serves, and notes of refreshes gone by."""
        old = [f"{CODE}{number}" for number in self._code_columns() if number != self.serving]
        if old:
            self.store.change_columns("items", lambda items: items.drop_columns(old))
        notes = self.dataset("encoded")
        if notes.count_rows(filter=f"model <= {self.serving}"):
            self._overwrite("encoded", {})

    @property
    def _age(self) -> int:
        """How many times there was something to tidy up."""
        return sum(map(self.version, ("items", "labels", "learner"))) // TIDY_AFTER

    def tidy(self, live: Directory, may_go_on: Callable[[], bool]) -> None:
        """Tidy up now and then, a piece at each call, so that nobody waits for all of it."""
        with self.lock:
            if self.read_only or self.is_stale:
                self._chores = None
                return
            self._live = live  # which may be another than at the piece before
            if self._untidy:
                self.mend(live)
            if self._tail.n_bytes > LOG_BYTES or self._tail.n_changes > LOG_CHANGES:
                with self._or_later():
                    self.fold_log()
                return
            with self._or_later():
                self._write_ahead()
            if self._chores is not None:
                with self._or_later():
                    self.settle()
                    if next(self._chores, self) is self:
                        self._chores = None
            elif not self._untidy and self._age != self._tidied:
                self._tidied, self._chores = self._age, self._tidying(may_go_on)

    def _tidying(self, may_go_on: Callable[[], bool]) -> Iterator[None]:
        """Join small fragments, fold labels and delete old versions, piece by piece.

        Between two pieces there may be any other change.
        """
        # Joining fragments undoes what an interrupted refresh has encoded of them.
        many = 16 * TIDY_AFTER if self.pending is not None else None
        self.join_fragments("items", many, may_go_on)
        yield
        self.join_fragments("models", aside=_always)
        self.join_fragments("feedback", aside=_always)
        yield
        self._tidy_labels()
        yield
        yield from self._forget_old_versions()

    def _tidy_labels(self) -> None:
        if self._is_rewriting("labels"):
            return
        if self.n_labels > LABEL_ROWS * len(self._live) + TIDY_AFTER:
            self._fold_labels()
        else:
            self.join_fragments("labels", aside=_always)

    def join_fragments(
        self, name: str, many: int | None = None, aside: Callable[[], bool] | None = None
    ) -> None:
        """Join small fragments if there are many, and leave out rows that were deleted.

        What takes long is done in a thread, as long as ``aside`` is true.
        """
        dataset = self.store.find(name)
        if dataset is None:
            return
        fragments = dataset.get_fragments()
        dead = sum(fragment.num_deletions for fragment in fragments)
        too_many_dead = dead > max(dataset.count_rows(), SMALL_FRAGMENT)
        if len(fragments) <= (many or TIDY_AFTER) and not too_many_dead:
            return
        joins = self.store.joins(name, min(SMALL_FRAGMENT, _fragment_rows(dataset.schema)))
        if aside is not None and _are_many(joins):
            self._aside(name, partial(self._join_all, name, aside))
            return
        with uninterrupted():
            for each in joins:
                each.do()
            self.store.join(joins)

    def _join_all(self, name: str, may_go_on: Callable[[], bool]) -> None:
        while self._join_some(name, may_go_on):
            pass

    def _join_some(self, name: str, may_go_on: Callable[[], bool]) -> bool:
        """Join a few fragments; return whether there are more."""
        with self.lock:
            if self.read_only or self.is_stale or not may_go_on():
                return False
            rows = min(SMALL_FRAGMENT, _fragment_rows(self.dataset(name).schema))
            joins = self.store.joins(name, rows)[:1]
        for each in joins:
            each.do()
        return self._commit_aside(lambda: may_go_on() and self.store.join(joins))

    def _aside(self, name: str, rewrite: Callable[[], None]) -> None:
        """Write a dataset's rows anew in a thread of its own: others wait for the commits only."""
        if self._is_closing:
            rewrite()
            return
        if self._is_rewriting(name):
            return

        def work() -> None:
            try:
                rewrite()
            except (StreamhashError, OSError) as error:  # it is tried again at the next time
                logger.warning("something is left to tidy up: %s", error)

        thread = threading.Thread(target=work, name=f"streamhash-tidy-{name}", daemon=True)
        self._rewriting[name] = thread
        thread.start()

    def _commit_aside(self, commit: Callable[[], bool]) -> bool:
        """Commit what was written while others could write; return whether it could be."""
        with self.changing("tidy", may_log=True), uninterrupted():
            self.settle()
            return commit()

    def _is_rewriting(self, name: str) -> bool:
        """Whether another thread writes a dataset's rows anew."""
        return name in self._rewriting and self._rewriting[name].is_alive()

    def stop_rewriting(self) -> None:
        """Wait until no other thread writes files."""
        if self._tail.ahead is not None:
            self._tail.ahead.wait()
        for thread in [*self._rewriting.values()]:
            if thread is not threading.current_thread():
                thread.join()

    def _forget_old_versions(self) -> Iterator[None]:
        """Delete versions that nobody uses, a dataset at a time: of no lease, or an hour old.

        So there are never more than those of TIDY_AFTER changes and of LEASES readers, and a few.

        Files that belong to no version go, too, unless they may be those of a refresh that goes
        on.
        """
        self._forget_old_states()
        for name in NAMES:
            if self.store.find(name) is None or name == "state":
                continue
            yield
            if self.folder is None:
                with self.store.translate_errors(name):
                    self.dataset(name).cleanup_old_versions(OLD_VERSIONS)
                continue
            used = leased(self.folder)._asdict()
            old = self._old_versions(name)[KEPT:]
            old = [version for version in old if version not in used.get(name, ())]
            is_all = self.pending is None and not any(map(self._is_rewriting, NAMES))
            self.store.forget(name, old, all_files=is_all and self._tail.ahead is None)
        self.store.forget_sums()

    def disk_bytes(self) -> int | None:
        """Return the size of the files, where they are local."""
        if self.folder is None:
            return None
        total = 0
        for path in self.folder.rglob("*"):
            try:
                total += path.stat().st_size if path.is_file() else 0
            except FileNotFoundError:  # deleted by the writer meanwhile
                continue
        return total

    @property
    def log_bytes(self) -> int:
        """The size of the log in force, as far as it was read: 0 where there is none."""
        return self._log_read


# ---------------------------------------------------------------------- encoding a fragment


def encode(
    fragment: Any, number: int, hasher: OnlineHasher, send: Send | None = None
) -> tuple[Result, Any]:
    """Encode a fragment; return the result, and the schema with the new column.

    Codes are given to ``send``, with their keys, as they are made.
    """
    pa = import_pyarrow()
    old = [name for name in fragment.schema.names if name.startswith(CODE)]
    old = sorted(old, key=lambda name: int(name.removeprefix(CODE)))[-1:]
    flips = np.zeros(hasher.n_bits, np.int64)
    away: list[UnreachableError] = []

    def new_column(batch: Any) -> Any:
        codes = hasher.transform(arrow.vectors_of(batch["vector"]))
        if old:
            before = arrow.codes_of(batch[old[0]])
            if before.shape != codes.shape:  # of another length: no bit is the same one
                flips[:] = -1
            else:
                changed = unpack(codes ^ before, hasher.n_bits)
                flips[:] += changed.sum(axis=0, dtype=np.int64)
        if send is not None:
            try:
                send(batch["key"].to_numpy(), codes)
            except UnreachableError as error:
                away.append(error)
                raise
        return pa.record_batch([arrow.code_array(codes)], [f"{CODE}{number}"])

    # Knowing its schema, Lance calls it once for each batch, and not before to see what comes.
    schema = pa.schema([(f"{CODE}{number}", pa.binary(code_bytes(hasher.n_bits)))])
    transform = import_lance().batch_udf(schema)(new_column)
    rows = max(256, ENCODED_NUMBERS // fragment.schema.field("vector").type.list_size)
    try:
        with uninterrupted():  # Ctrl-C inside would come out as an error of Lance's
            metadata, schema = fragment.merge_columns(transform, ["key", "vector", *old], rows)
    except ValueError:  # what Lance makes of any error
        if away:
            raise away[0] from None
        raise
    described = metadata.to_json()
    result = {
        "fragment": json.loads(described) if isinstance(described, str) else described,
        "model": number,
        "rows": int(fragment.count_rows()),
        "flips": flips.tolist(),
        "made": time.time(),
    }
    return result, schema


def _always() -> bool:
    return True


def _are_many(joins: Sequence[Join]) -> bool:
    """Whether joining so many rows would hold writers up."""
    n_rows, n_bytes = (sum(each.n_rows for each in joins), sum(each.n_bytes for each in joins))
    return n_rows > REWRITTEN_AT_ONCE or n_bytes > REWRITTEN_BYTES


def _is_among(keys: Keys, wanted: Keys) -> NDArray[np.bool_]:
    """Tell which keys are wanted; those are ascending, and at least one."""
    at = np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)
    return np.equal(wanted[at], keys)


def _ascend(keys: Keys) -> bool:
    return bool((keys[1:] > keys[:-1]).all())


def _check_archive(content: bytes) -> None:
    """Refuse a stored model whose parts have not the checksums that it has of them."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            damaged = archive.testzip() or next(  # nothing in it is ever compressed
                (
                    each.filename
                    for each in archive.infolist()
                    if each.compress_type or each.compress_size != each.file_size
                ),
                None,
            )
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise ValueError(str(error)) from error
    if damaged is not None:
        raise ValueError(f"{damaged} is damaged")


def _sum_of(row: dict[str, Any]) -> int:
    """Return the checksum of a learner's row."""
    rest = json.dumps(
        [row["items"], row["labels"], row["settings"], row.get("state")]
        + ([row["log"]] if row.get("log") else [])
    )
    return zlib.crc32(rest.encode(), zlib.crc32(row["content"]))


def _table(name: str, columns: dict[str, Any]) -> "pa.Table":
    """Return columns as a table of a dataset; without any, an empty one."""
    pa = import_pyarrow()
    number, text, content = pa.int64(), pa.string(), pa.large_binary()
    schemas = {
        "labels": {"key": number, "label": text},
        "learner": {
            "items": number,
            "labels": number,
            "settings": text,
            "content": content,
            "state": number,
            "sum": number,
            "log": text,
        },
        "state": {"content": content},
        "models": {"number": number, "content": content, "facts": text},
        "encoded": {"model": number, "fragment": number, "result": text},
        "feedback": {
            "number": number,
            "key": number,
            "query_key": number,
            "good": pa.bool_(),
            "query": content,
        },
    }
    schema = pa.schema(schemas[name])
    return pa.table(columns, schema) if columns else schema.empty_table()


def _fragment_rows(schema: "pa.Schema") -> int:
    """Return how many rows a fragment may have."""
    if "vector" not in schema.names:
        return FRAGMENT_ROWS
    width = int(schema.field("vector").type.list_size)
    return max(1024, min(FRAGMENT_ROWS, FRAGMENT_NUMBERS // width))
