"""What a collection stores: six Lance datasets, and every point at which a process may die.

    items     key, id, vector, label, metadata, code_N: the codes of model N, which serves
    labels    key, label: labels that came after their item, the last one counts
    learner   the light state of the learner, one row; each version goes with versions of the others
    state     the heavy one, what was learned, one row; a row of ``learner`` names its version
    models    number, content: every model that serves or has served
    encoded   fragments of items that a running refresh has encoded so far

Every change is one commit of ``items`` or of ``labels``: it is there whole or not at all. What a
process that dies leaves behind, at whatever point, is this:

- *The learner's state is written before its change*, with the versions that the change will have.
  If the change never comes, the state does not fit the versions, and the one before it counts. The
  next commit of any kind would make it fit, so it is put right before any other is made; nothing
  old is deleted until it is.
- *What was learned*, which may be large, is written before the row that names it, and only when it
  has changed. A version that no row names, as its row never came, does not count. Older ones are
  deleted as soon as the change is there whose row names a newer one.
- *An item that replaces another* is stored first and the other deleted after, by a second commit.
  In between, of two rows with one id the greater key counts; the other is deleted at the next
  opening.
- *A refresh* stores its model, then writes files of codes that no version knows, and notes them in
  ``encoded``; the model that is newer than the codes tells that a refresh was interrupted. One
  commit then brings all codes in as a new column, and with it the learner's state that knows of the
  refresh. The greatest column serves. That the column before it is dropped, by another commit, and
  the notes with it, changes nothing; it is made up for at the next opening.
- *Joining fragments, dropping columns and forgetting old versions* change no item.
- *The first items* make the dataset ``items``. Until then the last model serves, if there is one.
- *The learner* is the last thing that ``create`` writes: without it there is no collection.

A process that dies loses nothing that Lance has handed to the system; what a power cut loses is up
to the file system.

Every commit is the version right after the one in use here, or it is refused: on a local disk
nobody else holds the lock of the writer; in an object store, which has no locks, the commits are of
kinds that Lance never puts on top of a version which this process has not seen. So a second writer
gets an error before anything of it is stored, and keys and learner states are known by versions.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

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
from streamhash.live import arrow
from streamhash.live.addresses import Addresses
from streamhash.live.arrow import CODE, Batch, Keys, import_lance, import_pyarrow
from streamhash.live.locks import ReaderLease, WriterLock, oldest_lease, uninterrupted

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

    from streamhash.live.learner import Learner

logger = logging.getLogger(__name__)

Pieces = Iterator[tuple[Codes, Keys]]
Send = Callable[[Keys, Codes], None]  # takes codes to a backend
Result = dict[str, Any]  # of a fragment: its metadata; rows; flips, bit by bit; when it was made

KEY_BITS = 32  # lower bits of a key: the place in its commit; above them, the commit's version
FRAGMENT_ROWS = 131_072  # at most: a piece of work for one worker of a refresh,
FRAGMENT_NUMBERS = 2**24  # and numbers of their vectors: Lance may have a whole fragment in memory
SMALL_FRAGMENT = 32_768  # rows: fragments of fewer are joined when there are many
TIDY_AFTER = 64  # fragments or versions that are worth tidying up
CACHE_BYTES = 2**24  # of what Lance remembers of files and versions; by itself it takes gigabytes
SCAN_ROWS = 8192  # read at a time
ENCODED_NUMBERS = 2**19  # of vectors that are encoded at a time; Lance reads ahead
OLD_VERSIONS = timedelta(hours=1)  # are kept so long where readers leave no lease
NOTE_SECONDS = 24 * 3600.0  # that a note of encoded codes is good for; Lance keeps files a week

# The order in which to look for what is new, while another process writes. A label comes after its
# item, so labels are looked at first, lest one be passed over whose item is not there yet; a model
# comes before its codes, so models last. The learner's state is written before its change.
NAMES = ("learner", "state", "labels", "items", "models", "encoded")
OPTIONAL = ("items", "state")  # not there before the first item; not up to version 0.1


class Model(NamedTuple):
    """A model that serves or has served."""

    number: int
    content: bytes
    facts: dict[str, Any]

    def hasher(self) -> OnlineHasher:
        """The model itself."""
        return OnlineHasher.from_bytes(self.content, place=f"model {self.number}")


class Journal:
    """The datasets of one collection. It knows rows and versions, and nothing of searching.

    ``lock`` is held by whoever touches the datasets: Lance cannot read them while another thread
    changes them. Changes are made inside ``changing`` and ``storing``. If one fails after it was
    stored, memory is not what is stored: ``is_stale`` says so until ``reload``, which the
    collection sets, has read all anew.
    """

    def __init__(self, address: str, storage_options: dict[str, str] | None = None) -> None:
        self.address, self.options = address, storage_options
        self.folder = None if "://" in address else Path(address)
        self.lock = threading.RLock()
        self.read_only, self.is_stale, self.is_closed = True, True, False
        self.reload: Callable[[], None] = lambda: None
        self.settings: dict[str, Any] = {}
        self._open: dict[str, lance.LanceDataset] = {}
        self._held: WriterLock | ReaderLease | None = None
        self._seen = (0, 0)  # the versions of items and labels that memory follows
        self._learner_behind = False  # the last state that is stored waits for a change
        self._state: int | None = None  # the version of the heavy state that counts
        self._untidy = False  # something that does not count is still stored
        self._tidied: int | None = None  # how often there was something to tidy up
        self._last_model = (0, 0)  # a version of models, and the greatest number in it
        self._addresses = Addresses()

    def another(self) -> "Journal":
        """Return the same datasets opened anew: for another thread, or for another version."""
        other = Journal(self.address, self.options)
        other._session, other._addresses = self._session, Addresses(self._addresses)
        return other

    # ---------------------------------------------------------------------- create, open, close

    def create(self, learner: "Learner", settings: dict[str, Any], model: Model | None) -> None:
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
            if self.find("learner") is not None:
                raise InputError(
                    f"{self.address}: there is a collection already; open it, or choose another "
                    "path."
                )
            for name in ("labels", "models", "encoded"):
                self._overwrite(name, {})
            if model is not None:
                self.append_model(model)
            self.settings = settings
            self._store_learner(learner, (0, self.version("labels")))
        except BaseException:
            self.release()
            raise

    def open(self, *, read_only: bool) -> None:
        """Find the datasets, and take the lock of the writer or a lease of readers."""
        if any(self.find(name) is None for name in NAMES if name not in OPTIONAL):
            raise FileError(
                f"{self.address}: there is no collection here; make one with Collection.create or "
                "`streamhash live create`."
            )
        self._hold(read_only=read_only)

    def _hold(self, *, read_only: bool) -> None:
        if self.folder is not None:
            self._held = (ReaderLease if read_only else WriterLock)(self.folder)
        self.read_only = read_only

    def release(self) -> None:
        """Let others write."""
        if self._held is not None:
            self._held.release()
        self._held, self.read_only, self.is_closed = None, True, True

    # -------------------------------------------------------------------- datasets and versions

    @cached_property
    def _session(self) -> Any:
        """Lance's caches, for all datasets; every commit adds to them, until they are full."""
        return import_lance().Session(
            index_cache_size_bytes=CACHE_BYTES, metadata_cache_size_bytes=CACHE_BYTES
        )

    def uri(self, name: str) -> str:
        """Where a dataset is."""
        return f"{self.address.rstrip('/')}/{name}.lance"

    def find(self, name: str) -> "lance.LanceDataset | None":
        """Return a dataset, None where there is none."""
        if name not in self._open:
            try:
                self._open[name] = import_lance().dataset(
                    self.uri(name), storage_options=self.options, session=self._session
                )
            except (ValueError, OSError) as error:
                if "not found" not in str(error).lower():
                    raise FileError(f"{self.address}: cannot be opened ({error}).") from error
                return None
        return self._open[name]

    def dataset(self, name: str) -> "lance.LanceDataset":
        """Return a dataset that is there."""
        found = self.find(name)
        if found is None:
            raise FileError(f"{self.uri(name)}: is missing; restore it from a copy.")
        return found

    def version(self, name: str) -> int:
        """Return the version in use here; 0 where nothing was ever stored."""
        found = self.find(name)
        return 0 if found is None else int(found.version)

    @property
    def _versions(self) -> tuple[int, int]:
        return self.version("items"), self.version("labels")

    @property
    def _latest(self) -> tuple[int, int]:
        """The latest versions of items and labels, perhaps by another process."""
        found = self.find("items"), self.find("labels")
        first, second = (0 if each is None else int(each.latest_version) for each in found)
        return first, second

    @property
    def is_current(self) -> bool:
        """Whether nothing was stored since ``load``, by another process."""
        return self._seen == self._latest

    def load(self) -> tuple[bytes, int | None]:
        """Turn to the latest versions; return the learner that goes with them, and its state."""
        for name in NAMES:
            found = self.find(name)
            if found is not None:
                found.checkout_latest()  # type: ignore[no-untyped-call]
        self._seen = self._versions
        if isinstance(self._held, ReaderLease):
            self._held.use(self._seen[0])
        row, is_last = self._read_learner()
        self.settings, self._learner_behind = json.loads(row["settings"]), not is_last
        if self._tidied is None:
            self._tidied = self._age
        self._state = row.get("state")
        return row["content"], self._state

    def _read(self, name: str, **options: Any) -> "pa.Table":
        """Read a table; Ctrl-C waits for its end, as Arrow would make another error of it."""
        with uninterrupted():
            return self.dataset(name).to_table(**options)

    # ---------------------------------------------------------------------------------- changes

    @contextmanager
    def changing(self, verb: str) -> Iterator[None]:
        """Let this thread alone make changes."""
        with self.lock:
            if self.read_only:
                raise ReadOnlyError(
                    f"Collection.{verb}: this collection is open to read only, or closed; open it "
                    "with read_only=False."
                )
            if self.is_stale:
                self.reload()
            try:
                yield
            except InUseError:
                self.read_only = self.is_stale = True  # from here on a reader like others
                raise

    @contextmanager
    def storing(
        self, learner: "Learner", twin: "Learner | None", *, items: int = 0, labels: int = 0
    ) -> Iterator[None]:
        """Store the learner with a change, that the block commits and does in memory.

        If it has a ``twin`` that has learned more, that is stored, and it becomes that. ``items``
        and ``labels`` are by how many versions the block takes them on.
        """
        with uninterrupted():
            before = self._versions
            try:
                if twin is not None or self._learner_behind:
                    self._learner_behind = True
                    after = before[0] + items, before[1] + labels
                    self._store_learner(twin or learner, after)
                elif self.folder is None and self._latest != before:
                    raise self._in_use()  # which else the learner's commit would tell
                yield
                if twin is not None:
                    learner.become(twin)
            except BaseException:
                if self._latest != before:
                    self.is_stale = True  # it was stored, and the failure came after
                raise
            self._learner_behind = False
            if learner.state != self._state:
                self._state = learner.state
                with self._or_later():
                    self._forget_old_states()

    def settle(self) -> None:
        """See to it that the last learner state stored is the one that counts."""
        if self._learner_behind:
            with uninterrupted():
                row = self._read_learner()[0]
                self._write_learner(row["content"], row.get("state"), self._versions)
                self._learner_behind = False

    def _append(self, name: str, columns: "dict[str, Any] | pa.Table") -> None:
        """Commit rows, after those that are there."""
        table = _table(name, columns) if isinstance(columns, dict) else columns
        lance, dataset, rows = import_lance(), self.find(name), _fragment_rows(table.schema)
        if dataset is None:
            with self.translate_errors(name):
                lance.write_dataset(
                    table, self.uri(name), storage_options=self.options, max_rows_per_file=rows
                )
                self.dataset(name)  # opened anew, with the caches that all of them share
        elif self.folder is not None:
            with self._committing(name):
                self._open[name] = lance.write_dataset(
                    table, dataset, mode="append", max_rows_per_file=rows
                )
        else:  # Lance puts an append on top of anybody's commit, but never a merge.
            there = dataset.get_fragments()
            first = 1 + max((fragment.fragment_id for fragment in there), default=-1)
            merged = [fragment.metadata for fragment in there]
            for i, new in enumerate(self._write_fragments(name, table, "append")):
                described = {**new.to_json(), "id": first + i}
                merged.append(lance.FragmentMetadata.from_json(json.dumps(described)))
            self._commit(name, lance.LanceOperation.Merge(merged, dataset.lance_schema))

    def _overwrite(self, name: str, columns: dict[str, Any], **metadata: str) -> None:
        """Commit rows in place of those that are there."""
        table = _table(name, columns).replace_schema_metadata(metadata or None)
        if self.find(name) is None:
            return self._append(name, table)
        new = self._write_fragments(name, table, "overwrite")
        return self._commit(name, import_lance().LanceOperation.Overwrite(table.schema, new))

    def _write_fragments(self, name: str, table: "pa.Table", mode: str) -> list[Any]:
        from lance.fragment import write_fragments

        with self.translate_errors(name):
            fragments: list[Any] = write_fragments(
                table,
                self.dataset(name),
                mode=mode,
                max_rows_per_file=_fragment_rows(table.schema),
                storage_options=self.options,
            )
        return fragments

    def _commit(self, name: str, operation: Any) -> None:
        """Commit an operation, if nobody has committed another meanwhile."""
        dataset = self.dataset(name)
        with self._committing(name):
            self._open[name] = import_lance().LanceDataset.commit(
                dataset,
                operation,
                read_version=int(dataset.version),
                max_retries=0,
                storage_options=self.options,
            )

    @contextmanager
    def _committing(self, name: str) -> Iterator[None]:
        """Check that the block's commit came right after the version before it."""
        before = self.version(name)
        with self.translate_errors(name):
            yield
        if self.version(name) != before + 1:
            raise self._in_use()

    @contextmanager
    def translate_errors(self, name: str) -> Iterator[None]:
        """Say in plain words why Lance could not write."""
        from lance.commit import CommitConflictError

        try:
            yield
        except CommitConflictError as error:
            raise self._in_use() from error
        except StreamhashError:
            raise
        except OSError as error:
            if "already exists" in str(error).lower():
                raise self._in_use() from error
            raise FileError(
                f"{self.uri(name)}: cannot be written ({error}); make room or mend the access, "
                "and call again."
            ) from error

    def _in_use(self) -> InUseError:
        return InUseError(
            f"{self.address}: another process has written to this collection meanwhile, so nothing "
            "more is written from here; open it again."
        )

    # ------------------------------------------------------------------------------------ items

    @property
    def has_items(self) -> bool:
        """Whether any item was ever stored."""
        return self.find("items") is not None

    @property
    def id_kind(self) -> str | None:
        """What ids are, "whole numbers" or "strings"; None before the first item."""
        if not self.has_items:
            return None
        is_text = str(self.dataset("items").schema.field("id").type) == "string"
        return "strings" if is_text else "whole numbers"

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

    def next_keys(self, n: int) -> Keys:
        """Return the keys of the next items, if no other change is stored before."""
        return ((self.version("items") + 1) << KEY_BITS) + np.arange(n)

    def append_items(
        self,
        ids: NDArray[Any],
        vectors: NDArray[Any],
        labels: Sequence[Any],
        metadata: Sequence[str | None],
        codes: Codes | None,
    ) -> Keys:
        """Store new items, with codes of the model that serves if there is one; return keys."""
        pa = import_pyarrow()
        keys = self.next_keys(len(ids))
        columns = {
            "key": pa.array(keys),
            "id": pa.array(ids.tolist(), pa.string() if ids.dtype == object else pa.int64()),
            "vector": arrow.vector_array(vectors),
            "label": pa.array([arrow.to_json(label, "label") for label in labels], pa.string()),
            "metadata": pa.array(metadata, pa.string()),
        }
        if codes is not None:
            columns[f"{CODE}{self.serving}"] = arrow.code_array(codes)
        self._append("items", pa.table(columns))
        return keys

    def delete_items(self, keys: Keys) -> None:
        """Delete the items with these keys."""
        if len(keys):
            with self._committing("items"):
                self.dataset("items").delete(self._among(keys))

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
        except FileError as error:
            logger.warning("something is left to tidy up: %s", error)
            self._untidy = True

    def _among(self, keys: Keys) -> str:
        """Say to Lance which items are meant: by their addresses, so that it need not scan."""
        found = self._addresses.find(self.dataset("items"), keys).tolist()
        return f"_rowaddr IN ({', '.join(map(str, found))})" if found else "false"

    def keys(self) -> Keys:
        """Return the keys of all items, ascending."""
        keys = self._read("items", columns=["key"])["key"].to_numpy() if self.has_items else []
        return np.sort(np.asarray(keys, np.int64))

    def new_items(self, last_key: int) -> Batch:
        """Read the items with keys above ``last_key``; of those with one id, only the last."""
        columns = ["id", "label", *arrow.code_columns(self.serving)]
        table = self._read("items", columns=["key", *columns], filter=f"key > {last_key}")
        batch = arrow.batch_of(table.sort_by("key"))
        last = dict(zip(batch.ids.tolist(), batch.keys.tolist(), strict=True))
        if len(last) < len(batch.ids):  # a process died between storing and deleting the old
            return arrow.batch_of(
                table.filter(np.isin(table["key"], [*last.values()])).sort_by("key")
            )
        return batch

    def items(self, keys: Keys, *, vectors: bool = True, codes: int = 0) -> Batch:
        """Read items by their keys, in that order, those of them that there are."""
        columns = ["key", "metadata", *["vector"][:vectors], *arrow.code_columns(codes)]
        table = self._read("items", columns=columns, filter=self._among(keys))
        there = table["key"].to_numpy()
        order = np.argsort(there)
        return arrow.batch_of(
            table, order[np.searchsorted(there[order], keys[np.isin(keys, there)])]
        )

    def vectors(self, keys: Keys) -> Matrix:
        """Read the vectors of items that are there, in the order of these keys."""
        if len(keys) == 0:
            return np.empty((0, self.n_features or 0), np.float32)
        batch = self.items(keys)
        if len(batch.keys) != len(keys):
            raise FileError(
                f"{self.uri('items')}: {len(keys) - len(batch.keys)} items that should be there "
                "are missing; restore it from a copy."
            )
        return np.asarray(batch.vectors, np.float32)

    def scan(self, keys: Keys, *columns: str, size: int = SCAN_ROWS) -> Iterator[Batch]:
        """Go through the items with these keys as they are now, in their order."""
        if not len(keys):
            return iter(())
        wanted = np.sort(keys)
        items = self.dataset("items").checkout_version(self.version("items"))
        parts = items.to_batches(
            columns=["key", *columns],
            filter=f"key >= {wanted[0]} AND key <= {wanted[-1]}",
            batch_size=size,
            scan_in_order=True,
        )
        # Others are not wanted, or were replaced and wait to be deleted.
        batches = (
            arrow.batch_of(part.filter(_is_among(part["key"].to_numpy(), wanted))) for part in parts
        )
        return (batch for batch in batches if len(batch.keys))

    def lease(self) -> ReaderLease | None:
        """Keep the writer from deleting the items as they are now, until it is released."""
        return None if self.folder is None else ReaderLease(self.folder, self.version("items"))

    def read_codes(self, number: int, keys: Keys) -> Pieces:
        """Read the codes of a model by keys, piece by piece."""
        for batch in self.scan(keys, *arrow.code_columns(number), size=SMALL_FRAGMENT):
            yield batch.codes, batch.keys

    # ----------------------------------------------------------------------------------- labels

    @property
    def fold(self) -> int:
        """How often the labels were folded: written anew without those that no longer count."""
        return int((self.dataset("labels").schema.metadata or {}).get(b"fold", 0))

    def append_labels(self, keys: Keys, labels: Sequence[Any]) -> None:
        """Store labels of items that are there."""
        texts = [arrow.to_json(label, "label") for label in labels]
        self._append("labels", {"key": keys, "label": texts})

    def read_labels(self, start: int = 0) -> tuple[Keys, list[Any]]:
        """Read labels that came after their items, from the ``start``-th on."""
        table = self._read("labels", offset=start)
        return table["key"].to_numpy(), arrow.from_json(table["label"].to_pylist())

    def _fold_labels(self, live: Keys) -> None:
        """Keep only the last label of each key that is there."""
        table = self._read("labels")
        last = dict(zip(table["key"].to_pylist(), table["label"].to_pylist(), strict=True))
        kept = np.fromiter(last, np.int64, len(last))
        kept = kept[np.isin(kept, live)]
        columns = {"key": kept, "label": [last[key] for key in kept.tolist()]}
        self._overwrite("labels", columns, fold=str(self.fold + 1))

    # ----------------------------------------------------------------------- learner and models

    def _store_learner(self, learner: "Learner", versions: tuple[int, int]) -> None:
        """Store the learner, what it has learned first, if that is not stored yet."""
        if learner.state is None:
            if self.folder is None and self.find("learner") is not None:
                dataset = self.dataset("learner")
                if int(dataset.latest_version) != int(dataset.version):
                    raise self._in_use()  # before it is in the way of the other writer
            self._overwrite("state", {"content": [learner.knowledge.to_bytes()]})
            learner.state = self.version("state")
        self._write_learner(learner.to_bytes(), learner.state, versions)

    def read_state(self, number: int) -> bytes:
        """Return the heavy state of a learner; a reader, who only reports it, may get a later."""
        with self.lock:
            dataset = self.dataset("state")
            try:
                with uninterrupted():
                    row = dataset.checkout_version(number).to_table().to_pylist()[0]
            except (OSError, ValueError) as error:
                if not self.read_only:
                    raise FileError(
                        f"{self.uri('state')}: version {number} cannot be read ({error}); restore "
                        "it from a copy."
                    ) from error
                dataset.checkout_latest()  # type: ignore[no-untyped-call]
                row = self._read("state").to_pylist()[0]
            content: bytes = row["content"]
            return content

    def _forget_old_states(self) -> None:
        """Delete heavy states older than the one that counts; elsewhere, if they are an hour old.

        A state may be the last without counting, so that this is not left to Lance.
        """
        dataset = self.find("state")
        if dataset is None or self._state is None:
            return
        here = self.folder is not None
        with self.translate_errors("state"):
            old = [
                int(each["version"])
                for each in dataset.versions()
                if int(each["version"]) < self._state
                and (here or datetime.now() - cast("datetime", each["timestamp"]) > OLD_VERSIONS)
            ]
            if old:
                dataset.cleanup_old_versions(versions=old, delete_unverified=here)

    def _write_learner(self, content: bytes, state: int | None, versions: tuple[int, int]) -> None:
        """Store the learner as it is from these versions of items and labels on."""
        columns = {
            "items": versions[:1],
            "labels": versions[1:],
            "settings": [json.dumps(self.settings)],
            "content": [content],
            "state": [state],
        }
        self._overwrite("learner", columns)

    def _read_learner(self) -> tuple[dict[str, Any], bool]:
        """Return the learner's row that goes with the items and labels, and if it is the last.

        It is not the last where a process died between the learner and its change. A reader, who
        only reports it, takes the last where the writer has forgotten the one that fits.
        """
        dataset = self.dataset("learner")
        last = version = int(dataset.version)
        first = row = self._read("learner").to_pylist()[0]
        while row["items"] > self.version("items") or row["labels"] > self.version("labels"):
            version -= 1
            try:
                row = dataset.checkout_version(version).to_table().to_pylist()[0]
            except (OSError, ValueError) as error:
                if self.read_only:
                    return first, False
                raise FileError(
                    f"{self.uri('learner')}: no state goes with these items ({error}); restore it "
                    "from a copy."
                ) from error
        return row, version == last

    def append_model(self, model: Model) -> None:
        """Store a model, before its codes."""
        facts = json.dumps(model.facts)
        columns = {"number": [model.number], "content": [model.content], "facts": [facts]}
        with uninterrupted():
            self._append("models", columns)

    def read_model(self, number: int) -> Model:
        """Return a model."""
        table = self._read("models", filter=f"number = {number}")
        if len(table) != 1:
            raise NotFoundError(
                f"{self.uri('models')}: there is no model {number!r}; models() lists those there "
                "are."
            )
        row = table.to_pylist()[0]
        return Model(number, row["content"], json.loads(row["facts"]))

    def models(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the number and the facts of every model, the oldest first."""
        rows = self._read("models", columns=["number", "facts"]).to_pylist()
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
        with uninterrupted():
            self._append("encoded", columns)

    def read_encoded(self, number: int) -> dict[int, dict[str, Any]]:
        """Return what was noted of a model's fragments, not long ago."""
        rows = self._read("encoded", filter=f"model = {number}").to_pylist()
        results = {row["fragment"]: json.loads(row["result"]) for row in rows}
        since = time.time() - NOTE_SECONDS
        return {fragment: result for fragment, result in results.items() if result["made"] > since}

    def fragments(self) -> list[Any]:
        """Return the fragments of the items."""
        return [*self.dataset("items").get_fragments()] if self.has_items else []

    def commit_codes(
        self, number: int, n_bytes: int, results: dict[int, dict[str, Any]], schema: Any
    ) -> None:
        """Make the encoded fragments the codes that serve, in one commit."""
        lance, pa, merged = import_lance(), import_pyarrow(), []
        for fragment in self.fragments():
            now = fragment.metadata.to_json()
            there = {file["path"] for file in now["files"]}
            new = results[fragment.fragment_id]["fragment"]["files"]
            # Rows may have been deleted since it was encoded: all else is taken as it is now.
            now["files"] += [file for file in new if file["path"] not in there]
            merged.append(lance.FragmentMetadata.from_json(json.dumps(now)))
        if merged:
            self._commit("items", lance.LanceOperation.Merge(merged, schema))
        else:
            column = pa.field(f"{CODE}{number}", pa.binary(n_bytes))
            with self._committing("items"):
                self.dataset("items").add_columns(pa.schema([column]))

    # ------------------------------------------------------------------------------- tidying up

    def mend(self, keys: Keys) -> None:
        """Delete what is stored and does not count: old codes, and all items but these keys."""
        self._untidy = False
        with self._or_later():
            self.settle()
            if self.has_items:
                self._drop_old_codes()
                self.delete_items(absent(self.keys(), keys))

    def _drop_old_codes(self) -> None:
        """Drop the codes of all models but the one that serves, and notes of refreshes gone by."""
        old = [f"{CODE}{number}" for number in self._code_columns() if number != self.serving]
        if old:
            with self._committing("items"):
                self.dataset("items").drop_columns(old)
        notes = self.dataset("encoded")
        if notes.count_rows(filter=f"model <= {self.serving}"):
            self._overwrite("encoded", {})

    @property
    def _age(self) -> int:
        """How many times there was something to tidy up."""
        return sum(map(self.version, ("items", "labels", "learner"))) // TIDY_AFTER

    def tidy(self, live: Callable[[], Keys]) -> None:
        """Join small fragments, fold labels and delete old versions, now and then."""
        with self.lock:
            if self.read_only or self.is_stale:
                return
            if self._untidy:
                self.mend(live())
            if self._untidy or self._age == self._tidied:
                return
            self._tidied, pending = self._age, self.pending is not None
            with self._or_later():
                self.settle()
                # Joining fragments undoes what an interrupted refresh has encoded of them.
                self.join_fragments("items", 16 * TIDY_AFTER if pending else None)
                self.join_fragments("models")
                keys = live()
                if self.dataset("labels").count_rows() > 2 * len(keys) + TIDY_AFTER:
                    self._fold_labels(keys)
                else:
                    self.join_fragments("labels")
                self._forget_old_versions(all_files=not pending)

    def join_fragments(self, name: str, many: int | None = None) -> None:
        """Join small fragments if there are many, and leave out rows that were deleted."""
        dataset = self.find(name)
        if dataset is None:
            return
        fragments = dataset.get_fragments()
        dead = sum(fragment.num_deletions for fragment in fragments)
        too_many_dead = dead > max(dataset.count_rows(), SMALL_FRAGMENT)
        if len(fragments) > (many or TIDY_AFTER) or too_many_dead:
            rows = min(SMALL_FRAGMENT, _fragment_rows(dataset.schema))
            with uninterrupted(), self.translate_errors(name):
                dataset.optimize.compact_files(target_rows_per_fragment=rows)

    def _forget_old_versions(self, *, all_files: bool) -> None:
        """Delete versions that nobody uses: that no reader has a lease of, or older than an hour.

        With ``all_files``, those that belong to no version, too; they may be from a process that
        died, or from a refresh that goes on.
        """
        self._forget_old_states()
        for name in NAMES:
            dataset = self.find(name)
            if dataset is None or name == "state":
                continue
            with self.translate_errors(name):
                if self.folder is None:
                    dataset.cleanup_old_versions(OLD_VERSIONS)
                    continue
                old = sorted(int(each["version"]) for each in dataset.versions())[:-3]
                if name == "items":
                    oldest = oldest_lease(self.folder, self.version("items"))
                    old = [version for version in old if version < oldest]
                if old:
                    dataset.cleanup_old_versions(versions=old, delete_unverified=all_files)

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
            changed = unpack(codes ^ arrow.codes_of(batch[old[0]]), hasher.n_bits)
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


def _is_among(keys: Keys, wanted: Keys) -> NDArray[np.bool_]:
    """Tell which keys are wanted; those are ascending, and at least one."""
    at = np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)
    return np.equal(wanted[at], keys)


def absent(keys: Keys, others: Keys) -> Keys:
    """Return the keys, ascending, that are not among others; quickly where those begin with all."""
    if np.array_equal(keys, others[: len(keys)]):
        return keys[:0]
    return np.setdiff1d(keys, others, assume_unique=True)


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
        },
        "state": {"content": content},
        "models": {"number": number, "content": content, "facts": text},
        "encoded": {"model": number, "fragment": number, "result": text},
    }
    schema = pa.schema(schemas[name])
    return pa.table(columns, schema) if columns else schema.empty_table()


def _fragment_rows(schema: "pa.Schema") -> int:
    """Return how many rows a fragment may have."""
    if "vector" not in schema.names:
        return FRAGMENT_ROWS
    width = int(schema.field("vector").type.list_size)
    return max(1024, min(FRAGMENT_ROWS, FRAGMENT_NUMBERS // width))
