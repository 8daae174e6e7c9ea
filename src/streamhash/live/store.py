"""Where a collection lives on disk or in an object store: five Lance datasets.

    items     key, id, vector, label, metadata, code_N: the codes of model N, which serves
    labels    key, label: labels that came after their item, the last one counts
    learner   the state of the learner, one row; each version goes with versions of the others
    models    number, content: every model that serves or has served
    encoded   fragments of items that a running refresh has encoded so far

Every change is one commit of ``items`` or of ``labels``: it is there whole or not at all. What a
process that dies leaves behind, at whatever point, is this:

- *The learner's state is written before its change*, with the versions that the change will have.
  If the change never comes, the state does not fit the versions, and the one before it counts. The
  next commit of any kind would make it fit, so it is put right before any other is made
  (``State._settle``); nothing old is deleted until it is.
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
"""

import json
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.base import OnlineHasher
from streamhash.codes import Codes
from streamhash.errors import FileError, InputError, NotFoundError
from streamhash.live.addresses import Addresses
from streamhash.live.arrow import binary_array, codes_of, vector_array
from streamhash.live.datasets import NAMES, Datasets, lance_module, most_rows, pyarrow
from streamhash.live.learner import Learner

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CODE", "MANY", "Model", "Store"]

CODE = "code_"
SMALL = 32_768  # rows: fragments of fewer are joined when there are many
MANY = 64  # fragments or versions that are worth tidying up
KEPT = timedelta(hours=1)  # how long old versions are kept where readers leave no lease
NOTED = (
    24 * 3600.0
)  # seconds that a note of encoded codes is good for; Lance sweeps up after a week


class Model(NamedTuple):
    """A model that serves or has served."""

    number: int
    content: bytes
    facts: dict[str, Any]

    def hasher(self) -> OnlineHasher:
        """The model itself."""
        return OnlineHasher.from_bytes(self.content, place=f"model {self.number}")


class Store(Datasets):
    """The datasets of one collection. It knows rows and versions, and nothing of searching."""

    def __init__(self, address: str, storage_options: dict[str, str] | None = None) -> None:
        super().__init__(address, storage_options)
        self._last_model = (0, 0)  # a version of models, and the greatest number in it
        self._addresses = Addresses()

    def another(self) -> "Store":
        """Return the same datasets opened anew: for another thread, or for another version."""
        other = Store(self.address, self.options)
        other._session, other._addresses = self._session, Addresses(self._addresses)
        return other

    # ------------------------------------------------------------------------ create and open

    def make_folder(self) -> None:
        """Make the folder, where the address is one."""
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise FileError(
                    f"{self.address}: cannot be made a folder ({error.strerror}); choose a path "
                    "that you may write to."
                ) from error

    def create(self, learner: Learner, settings: dict[str, Any], model: Model | None) -> None:
        """Lay out an empty collection, which a model may serve already."""
        pa = pyarrow()
        if self.find("learner") is not None:
            raise InputError(
                f"{self.address}: there is a collection already; open it, or choose another path."
            )
        empty = {
            "labels": pa.schema([("key", pa.int64()), ("label", pa.string())]),
            "models": pa.schema(
                [("number", pa.int64()), ("content", pa.large_binary()), ("facts", pa.string())]
            ),
            "encoded": pa.schema(
                [("model", pa.int64()), ("fragment", pa.int64()), ("result", pa.string())]
            ),
        }
        for name, schema in empty.items():
            self.overwrite(name, schema.empty_table())
        if model is not None:
            self.append_model(model)
        self.write_learner(learner, settings, items=0, labels=self.version("labels"))

    def open(self) -> None:
        """Find the datasets."""
        for name in NAMES:
            if self.find(name) is None and name != "items":
                raise FileError(
                    f"{self.address}: there is no collection here; make one with "
                    "Collection.create or `streamhash live create`."
                )

    # ---------------------------------------------------------------------------------- items

    @property
    def has_items(self) -> bool:
        """Whether any item was ever stored."""
        return self.find("items") is not None

    @property
    def serving(self) -> int:
        """The number of the model whose codes the items carry; 0 if none."""
        if not self.has_items:
            return self.last_model
        return max(self._code_columns(), default=0)

    def _code_columns(self) -> list[int]:
        names = self.dataset("items").schema.names
        return [int(name.removeprefix(CODE)) for name in names if name.startswith(CODE)]

    def append_items(
        self,
        keys: NDArray[np.int64],
        ids: NDArray[Any],
        vectors: NDArray[Any],
        labels: Sequence[str | None],
        metadata: Sequence[str | None],
        codes: Codes | None,
        model: int,
    ) -> None:
        """Store new items, with codes of the model that serves if there is one."""
        pa = pyarrow()
        columns = {
            "key": pa.array(keys),
            "id": pa.array(ids.tolist(), pa.string() if ids.dtype == object else pa.int64()),
            "vector": vector_array(vectors),
            "label": pa.array(labels, pa.string()),
            "metadata": pa.array(metadata, pa.string()),
        }
        if codes is not None:
            columns[f"{CODE}{model}"] = binary_array(codes)
        self.append("items", pa.table(columns))

    def delete_items(self, keys: NDArray[np.int64]) -> None:
        """Delete the items with these keys."""
        if len(keys):
            with self.committing("items"), self.told("items"):
                self.dataset("items").delete(self._among(keys))

    def read_items(
        self, columns: Sequence[str], keys: NDArray[np.int64] | None = None
    ) -> "pa.Table":
        """Read columns of all items, or of those with these keys."""
        condition = None if keys is None else self._among(keys)
        return self.read("items", columns=list(columns), filter=condition)

    def _among(self, keys: NDArray[np.int64]) -> str:
        """Say to Lance which items are meant: by their addresses, so that it need not scan."""
        found = self._addresses.find(self.dataset("items"), keys).tolist()
        return f"_rowaddr IN ({', '.join(map(str, found))})" if found else "false"

    def scan_items(
        self, column: str, keys: NDArray[np.int64], rows: int = 8192
    ) -> "Iterator[tuple[pa.ChunkedArray, NDArray[np.int64]]]":
        """Read a column of items with these keys, in one pass, a piece of ``rows`` at a time."""
        pa, wanted = pyarrow(), np.sort(keys)
        if not len(wanted):
            return
        between = f"key >= {wanted[0]} AND key <= {wanted[-1]}"
        items = self.dataset("items")
        for batch in items.to_batches(columns=["key", column], filter=between, batch_size=rows):
            here = batch["key"].to_numpy()
            hit = wanted[np.minimum(np.searchsorted(wanted, here), len(wanted) - 1)] == here
            if hit.any():
                yield pa.Table.from_batches([batch]).filter(hit)[column], here[hit]

    def read_codes(
        self, number: int, keys: NDArray[np.int64]
    ) -> Iterator[tuple[Codes, NDArray[np.int64]]]:
        """Read the codes of a model by keys, piece by piece."""
        for column, here in self.scan_items(f"{CODE}{number}", keys, rows=SMALL):
            yield codes_of(column), here

    # --------------------------------------------------------------------------------- labels

    @property
    def fold(self) -> int:
        """How often the labels were folded: written anew without those that no longer count."""
        return int((self.dataset("labels").schema.metadata or {}).get(b"fold", 0))

    def append_labels(self, keys: NDArray[np.int64], labels: Sequence[str | None]) -> None:
        """Store labels of items that are there."""
        self.append("labels", _label_table(keys, labels))

    def read_labels(self, start: int = 0) -> tuple[NDArray[np.int64], list[str | None]]:
        """Read labels that came after their items, from the ``start``-th on."""
        table = self.read("labels", offset=start)
        return table["key"].to_numpy(), table["label"].to_pylist()

    def fold_labels(self, live: NDArray[np.int64]) -> int:
        """Keep only the last label of each key that is there; return how many were kept."""
        keys, labels = self.read_labels()
        last = dict(zip(keys.tolist(), labels, strict=True))
        kept = np.fromiter(last, np.int64, len(last))
        kept = kept[np.isin(kept, live)]
        table = _label_table(kept, [last[key] for key in kept.tolist()])
        table = table.replace_schema_metadata({"fold": str(self.fold + 1)})
        self.overwrite("labels", table)
        return len(kept)

    # -------------------------------------------------------------------------------- learner

    def write_learner(
        self, learner: Learner, settings: dict[str, Any], *, items: int, labels: int
    ) -> None:
        """Store the learner as it is from these versions of items and labels on."""
        pa = pyarrow()
        row = {
            "items": pa.array([items], pa.int64()),
            "labels": pa.array([labels], pa.int64()),
            "settings": pa.array([json.dumps(settings)]),
            "content": pa.array([learner.to_bytes()], pa.large_binary()),
        }
        self.overwrite("learner", pa.table(row))

    def read_learner(self, *, exact: bool = True) -> tuple[Learner, dict[str, Any], bool]:
        """Return the learner that goes with the items and labels, its settings, if it is the last.

        It is not the last where a process died between the learner and its change. A reader, who
        only reports it, takes the last where the writer has forgotten the one that fits.
        """
        dataset = self.dataset("learner")
        last = version = int(dataset.version)
        first = row = self.read("learner").to_pylist()[0]
        while row["items"] > self.version("items") or row["labels"] > self.version("labels"):
            version -= 1
            try:
                row = dataset.checkout_version(version).to_table().to_pylist()[0]
            except (OSError, ValueError) as error:
                if exact:
                    raise FileError(
                        f"{self.uri('learner')}: no state goes with these items ({error}); restore "
                        "it from a copy."
                    ) from error
                row = first
                break
        learner = Learner.from_bytes(row["content"], place=self.uri("learner"))
        return learner, json.loads(row["settings"]), version == last

    # --------------------------------------------------------------------------------- models

    def append_model(self, model: Model) -> None:
        """Store a model, before its codes."""
        pa = pyarrow()
        row = {
            "number": pa.array([model.number], pa.int64()),
            "content": pa.array([model.content], pa.large_binary()),
            "facts": pa.array([json.dumps(model.facts)]),
        }
        self.append("models", pa.table(row))

    def read_model(self, number: int) -> Model:
        """Return a model."""
        table = self.read("models", filter=f"number = {number}")
        if len(table) != 1:
            raise NotFoundError(
                f"Collection.model: there is no model {number!r}; models() lists those there are."
            )
        row = table.to_pylist()[0]
        return Model(number, row["content"], json.loads(row["facts"]))

    @property
    def last_model(self) -> int:
        """The number of the newest model, 0 if there is none; read when models have changed."""
        version = self.version("models")
        if self._last_model[0] != version:
            self._last_model = version, max((number for number, _ in self.models()), default=0)
        return self._last_model[1]

    def models(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the number and the facts of every model, the oldest first."""
        rows = self.read("models", columns=["number", "facts"]).to_pylist()
        return sorted((row["number"], json.loads(row["facts"])) for row in rows)

    # --------------------------------------------------------------- encoding a new column

    def append_encoded(self, number: int, results: dict[int, dict[str, Any]]) -> None:
        """Take note of fragments that were encoded with a model."""
        pa = pyarrow()
        columns = {
            "model": pa.array([number] * len(results), pa.int64()),
            "fragment": pa.array([*results], pa.int64()),
            "result": pa.array([json.dumps(result) for result in results.values()]),
        }
        self.append("encoded", pa.table(columns))

    def read_encoded(self, number: int) -> dict[int, dict[str, Any]]:
        """Return what was noted of a model's fragments, not long ago."""
        rows = self.read("encoded", filter=f"model = {number}").to_pylist()
        results = {row["fragment"]: json.loads(row["result"]) for row in rows}
        since = time.time() - NOTED
        return {number: result for number, result in results.items() if result["made"] > since}

    def fragments(self) -> list[Any]:
        """Return the fragments of the items."""
        return [*self.dataset("items").get_fragments()] if self.has_items else []

    def commit_codes(
        self, number: int, n_bytes: int, results: dict[int, dict[str, Any]], schema: Any
    ) -> None:
        """Make the encoded fragments the codes that serve, in one commit."""
        lance, pa = lance_module(), pyarrow()
        merged = []
        for fragment in self.fragments():
            now = fragment.metadata.to_json()
            there = {file["path"] for file in now["files"]}
            new = results[fragment.fragment_id]["fragment"]["files"]
            # Rows may have been deleted since it was encoded: all else is taken as it is now.
            now["files"] += [file for file in new if file["path"] not in there]
            merged.append(lance.FragmentMetadata.from_json(json.dumps(now)))
        if merged:
            self.commit("items", lance.LanceOperation.Merge(merged, schema))
        else:
            column = pa.field(f"{CODE}{number}", pa.binary(n_bytes))
            with self.committing("items"), self.told("items"):
                self.dataset("items").add_columns(pa.schema([column]))

    # ----------------------------------------------------------------------------- tidying up

    def drop_old_codes(self) -> None:
        """Drop the codes of all models but the one that serves, and notes of refreshes gone by."""
        if not self.has_items:
            return
        old = [f"{CODE}{number}" for number in self._code_columns() if number != self.serving]
        if old:
            with self.committing("items"), self.told("items"):
                self.dataset("items").drop_columns(old)
        notes = self.dataset("encoded")
        if notes.count_rows(filter=f"model <= {self.serving}"):
            self.overwrite("encoded", notes.schema.empty_table())

    def join_fragments(self, name: str, many: int) -> None:
        """Join small fragments if there are many, and leave out rows that were deleted."""
        dataset = self.find(name)
        if dataset is None:
            return
        fragments = dataset.get_fragments()
        dead = sum(fragment.num_deletions for fragment in fragments)
        if len(fragments) > many or dead > max(dataset.count_rows(), SMALL):
            with self.told(name):
                target = min(SMALL, most_rows(dataset.schema))
                dataset.optimize.compact_files(target_rows_per_fragment=target)

    def forget_old_versions(self, oldest_in_use: int | None, *, all_files: bool) -> None:
        """Delete versions that nobody uses: older than ``oldest_in_use``, or than an hour.

        With ``all_files``, those that belong to no version, too; they may be from a process that
        died, or from a refresh that goes on.
        """
        for name in NAMES:
            dataset = self.find(name)
            if dataset is None:
                continue
            if self.folder is None:
                with self.told(name):
                    dataset.cleanup_old_versions(KEPT)
                continue
            old = sorted(int(each["version"]) for each in dataset.versions())[:-3]
            if name == "items" and oldest_in_use is not None:
                old = [version for version in old if version < oldest_in_use]
            if old:
                with self.told(name):
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


def _label_table(keys: NDArray[np.int64], labels: Sequence[str | None]) -> "pa.Table":
    pa = pyarrow()
    return pa.table({"key": pa.array(keys, pa.int64()), "label": pa.array(labels, pa.string())})
