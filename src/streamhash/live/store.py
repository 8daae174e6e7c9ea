"""Where a collection lives on disk or in an object store: five Lance datasets.

    items     key, id, vector, label, metadata, code_N: the codes of model N, which serves
    labels    key, label: labels that came after their item, the last one counts
    learner   the state of the learner, one row; each version goes with a version of the others
    models    number, content: every model that serves or has served
    encoded   fragments of items that a running refresh has encoded so far

Every change is one commit of ``items`` or of ``labels``: it is there whole or not at all. The
learner's state is written just before, with the versions that the change will have; a state whose
change never came is ignored, and put right before the next change.
"""

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.base import OnlineHasher
from streamhash.codes import Codes
from streamhash.errors import FileError, InputError, InUseError, MissingPartError
from streamhash.live.learner import Learner

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

__all__ = ["Model", "Store"]

CODE = "code_"
SMALL = 32_768  # rows: fragments of fewer are joined when there are many
LARGE = 131_072  # rows of a fragment at most: a piece of work for one worker of a refresh
MANY = 64  # fragments or versions that are worth tidying up
KEPT = timedelta(hours=1)  # how long old versions are kept where readers leave no lease
TOGETHER = 10_000  # keys that one condition names


class Model(NamedTuple):
    """A model that serves or has served."""

    number: int
    content: bytes
    facts: dict[str, Any]

    def hasher(self) -> OnlineHasher:
        """The model itself."""
        return OnlineHasher.from_bytes(self.content, place=f"model {self.number}")


class Store:
    """The datasets of one collection. It knows rows and versions, and nothing of searching."""

    def __init__(self, address: str, storage_options: dict[str, str] | None = None) -> None:
        self.address, self.options = address, storage_options
        self.folder = None if "://" in address else Path(address)
        self._open: dict[str, lance.LanceDataset] = {}

    # ------------------------------------------------------------------------ create and open

    def create(self, learner: Learner, settings: dict[str, Any]) -> None:
        """Lay out an empty collection."""
        pa = _pyarrow()
        if self._find("learner") is not None:
            raise InputError(
                f"{self.address}: there is a collection already; open it, or choose another path."
            )
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise FileError(
                    f"{self.address}: cannot be made a folder ({error.strerror}); choose a path "
                    "that you may write to."
                ) from error
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
            self._write(name, schema.empty_table(), mode="overwrite")
        # Last of all, as it is what says that there is a collection.
        self.write_learner(learner, settings, items=0, labels=self.version("labels"))

    def open(self) -> None:
        """Find the datasets."""
        for name in ("learner", "labels", "models", "encoded"):
            if self._find(name) is None:
                raise FileError(
                    f"{self.address}: there is no collection here; make one with "
                    "Collection.create or `streamhash live create`."
                )
        self._find("items")

    def _uri(self, name: str) -> str:
        return f"{self.address.rstrip('/')}/{name}.lance"

    def _find(self, name: str) -> "lance.LanceDataset | None":
        if name not in self._open:
            try:
                self._open[name] = _lance().dataset(self._uri(name), storage_options=self.options)
            except (ValueError, FileNotFoundError) as error:
                if "not found" not in str(error).lower():
                    raise FileError(f"{self.address}: cannot be opened ({error}).") from error
                return None
        return self._open[name]

    def dataset(self, name: str) -> "lance.LanceDataset":
        """Return a dataset that is there."""
        found = self._find(name)
        if found is None:
            raise FileError(f"{self._uri(name)}: is missing; restore it from a copy.")
        return found

    # ------------------------------------------------------------------------------- versions

    def version(self, name: str) -> int:
        """Return the version in use here; 0 where nothing was ever stored."""
        found = self._find(name)
        return 0 if found is None else int(found.version)

    def latest(self, name: str) -> int:
        """Return the version that is the latest, perhaps by another process."""
        found = self._find(name)
        return 0 if found is None else int(found.latest_version)

    def update(self) -> None:
        """Use the latest versions."""
        self._find("items")
        for name in [*self._open]:
            self._open[name].checkout_latest()  # type: ignore[no-untyped-call]

    def _write(self, name: str, table: "pa.Table", *, mode: str = "append") -> None:
        """Commit rows, as the version after the one in use."""
        before = self.version(name)
        to: Any = self._find(name) if before else self._uri(name)
        mode = mode if before else "create"
        try:
            written = _lance().write_dataset(
                table, to, mode=mode, storage_options=self.options, max_rows_per_file=LARGE
            )
        except OSError as error:
            raise FileError(
                f"{self._uri(name)}: cannot be written ({error}); nothing of this call was "
                "stored. Make room or mend the access, and call again."
            ) from error
        self._committed(name, written, before)

    def _committed(self, name: str, written: "lance.LanceDataset", before: int) -> None:
        self._open[name] = written
        if before and written.version != before + 1:
            raise InUseError(
                f"{self.address}: another process has written to this collection meanwhile; "
                "close this one and open it again."
            )

    # ---------------------------------------------------------------------------------- items

    @property
    def has_items(self) -> bool:
        """Whether any item was ever stored."""
        return self._find("items") is not None

    @property
    def serving(self) -> int:
        """The number of the model whose codes the items carry; 0 if none."""
        return max(self._code_columns(), default=0)

    def _code_columns(self) -> list[int]:
        found = self._find("items")
        names = [] if found is None else found.schema.names
        return [int(name.removeprefix(CODE)) for name in names if name.startswith(CODE)]

    def append_items(
        self,
        keys: NDArray[np.int64],
        ids: NDArray[Any],
        vectors: NDArray[Any],
        labels: Sequence[str | None],
        metadata: Sequence[str | None],
        codes: Codes | None,
    ) -> None:
        """Store new items, as one commit."""
        pa = _pyarrow()
        kind = pa.float16() if vectors.dtype == np.float16 else pa.float32()
        flat = pa.array(np.ascontiguousarray(vectors).ravel(), kind)
        columns = {
            "key": pa.array(keys),
            "id": pa.array(ids.tolist(), pa.string() if ids.dtype == object else pa.int64()),
            "vector": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]),
            "label": pa.array(labels, pa.string()),
            "metadata": pa.array(metadata, pa.string()),
        }
        if codes is not None:
            columns[f"{CODE}{self.serving}"] = binary_array(codes)
        self._write("items", pa.table(columns))

    def delete_items(self, keys: NDArray[np.int64]) -> None:
        """Delete the items with these keys."""
        items = self.dataset("items")
        for start in range(0, len(keys), TOGETHER):
            before = int(items.version)
            try:
                items.delete(_among(keys[start : start + TOGETHER]))
            except OSError as error:
                raise FileError(f"{self._uri('items')}: cannot be written ({error}).") from error
            self._committed("items", items, before)

    def read_items(
        self, columns: Sequence[str], keys: NDArray[np.int64] | None = None
    ) -> "pa.Table":
        """Read columns of all items, or of those with these keys."""
        condition = None if keys is None else _among(keys)
        return self.dataset("items").to_table(columns=list(columns), filter=condition)

    # --------------------------------------------------------------------------------- labels

    def append_labels(self, keys: NDArray[np.int64], labels: Sequence[str | None]) -> None:
        """Store labels of items that are there."""
        pa = _pyarrow()
        self._write("labels", pa.table({"key": keys, "label": pa.array(labels, pa.string())}))

    def read_labels(self, start: int = 0) -> tuple[NDArray[np.int64], list[str | None]]:
        """Read labels that came after their items, from the ``start``-th on."""
        table = self.dataset("labels").to_table(offset=start)
        return table["key"].to_numpy(), table["label"].to_pylist()

    # -------------------------------------------------------------------------------- learner

    def write_learner(
        self, learner: Learner, settings: dict[str, Any], *, items: int, labels: int
    ) -> None:
        """Store the learner as it is from these versions of items and labels on."""
        pa = _pyarrow()
        row = {
            "items": pa.array([items], pa.int64()),
            "labels": pa.array([labels], pa.int64()),
            "settings": pa.array([json.dumps(settings)]),
            "content": pa.array([learner.to_bytes()], pa.large_binary()),
        }
        self._write("learner", pa.table(row), mode="overwrite")

    def read_learner(self) -> tuple[Learner, dict[str, Any], bool]:
        """Return the learner that goes with the items and labels, its settings, if it is the last.

        It is not the last where a process died between the learner and its change.
        """
        dataset = self.dataset("learner")
        last = int(dataset.version)
        versions = sorted((int(v["version"]) for v in dataset.versions()), reverse=True)
        for version in versions:
            if version > last:
                continue
            row = dataset.checkout_version(version).to_table().to_pylist()[0]
            if row["items"] <= self.version("items") and row["labels"] <= self.version("labels"):
                learner = Learner.from_bytes(row["content"], place=self._uri("learner"))
                return learner, json.loads(row["settings"]), version == last
        raise FileError(
            f"{self._uri('learner')}: no state goes with these items; restore it from a copy."
        )

    # --------------------------------------------------------------------------------- models

    def append_model(self, model: Model) -> None:
        """Store a model, before its codes."""
        pa = _pyarrow()
        row = {
            "number": pa.array([model.number], pa.int64()),
            "content": pa.array([model.content], pa.large_binary()),
            "facts": pa.array([json.dumps(model.facts)]),
        }
        self._write("models", pa.table(row))

    def read_model(self, number: int) -> Model:
        """Return a model."""
        table = self.dataset("models").to_table(filter=f"number = {number}")
        if len(table) != 1:
            raise FileError(f"{self._uri('models')}: model {number} is missing.")
        row = table.to_pylist()[0]
        return Model(number, row["content"], json.loads(row["facts"]))

    def models(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the number and the facts of every model, the oldest first."""
        rows = self.dataset("models").to_table(columns=["number", "facts"]).to_pylist()
        return sorted((row["number"], json.loads(row["facts"])) for row in rows)

    # --------------------------------------------------------------- encoding a new column

    def append_encoded(self, number: int, results: dict[int, dict[str, Any]]) -> None:
        """Take note of fragments that were encoded with a model."""
        pa = _pyarrow()
        columns = {
            "model": pa.array([number] * len(results), pa.int64()),
            "fragment": pa.array([*results], pa.int64()),
            "result": pa.array([json.dumps(result) for result in results.values()]),
        }
        self._write("encoded", pa.table(columns))

    def read_encoded(self, number: int) -> dict[int, dict[str, Any]]:
        """Return what was noted of a model's fragments."""
        rows = self.dataset("encoded").to_table(filter=f"model = {number}").to_pylist()
        return {row["fragment"]: json.loads(row["result"]) for row in rows}

    def fragments(self) -> dict[int, int]:
        """Return the numbers of the fragments of items, and how many rows each has."""
        if not self.has_items:
            return {}
        found = self.dataset("items").get_fragments()
        return {fragment.fragment_id: int(fragment.count_rows()) for fragment in found}

    def commit_codes(self, results: dict[int, dict[str, Any]], schema: Any) -> None:
        """Make the encoded fragments the codes that serve, in one commit; then drop the old."""
        lance = _lance()
        items, before = self.dataset("items"), self.version("items")
        merged = []
        for fragment in items.get_fragments():
            now = fragment.metadata.to_json()
            there = {file["path"] for file in now["files"]}
            new = results[fragment.fragment_id]["fragment"]["files"]
            # Rows may have been deleted since it was encoded: all else is taken as it is now.
            now["files"] += [file for file in new if file["path"] not in there]
            merged.append(lance.FragmentMetadata.from_json(json.dumps(now)))
        operation = lance.LanceOperation.Merge(merged, schema)
        try:
            written = lance.LanceDataset.commit(
                items, operation, read_version=before, max_retries=0, storage_options=self.options
            )
        except OSError as error:
            raise FileError(f"{self._uri('items')}: cannot be written ({error}).") from error
        self._committed("items", written, before)
        self.drop_old_codes()
        self._write("encoded", self.dataset("encoded").schema.empty_table(), mode="overwrite")

    def drop_old_codes(self) -> None:
        """Drop the codes of all models but the one that serves."""
        old = [f"{CODE}{number}" for number in self._code_columns() if number != self.serving]
        if old:
            self.dataset("items").drop_columns(old)

    # ----------------------------------------------------------------------------- tidying up

    def join_fragments(self) -> None:
        """Join small fragments, if there are many."""
        items = self._find("items")
        if items is not None and len(items.get_fragments()) > MANY:
            items.optimize.compact_files(target_rows_per_fragment=SMALL)

    def forget_old_versions(self, oldest_in_use: int | None) -> None:
        """Delete versions that nobody uses: older than ``oldest_in_use``, or than an hour."""
        for name in ("items", "learner", "encoded", "labels", "models"):
            dataset = self._find(name)
            if dataset is None:
                continue
            versions = sorted(int(each["version"]) for each in dataset.versions())
            old = versions[:-3]
            if name == "items" and oldest_in_use is not None:
                old = [version for version in old if version < oldest_in_use]
            if self.folder is None:
                dataset.cleanup_old_versions(KEPT)
            elif old:
                dataset.cleanup_old_versions(versions=old)

    def disk_bytes(self) -> int | None:
        """Return the size of the files, where they are local."""
        if self.folder is None:
            return None
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


def _among(keys: NDArray[np.int64]) -> str:
    return f"key IN ({', '.join(map(str, keys.tolist()))})"


def binary_array(codes: Codes) -> "pa.Array":
    """Return codes (n, bytes) as Arrow has them."""
    pa = _pyarrow()
    content = pa.py_buffer(np.ascontiguousarray(codes))
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(codes.shape[1]), len(codes), [None, content]
    )


def codes_of(column: "pa.ChunkedArray") -> Codes:
    """Undo ``binary_array``, of a column without gaps."""
    width = column.type.byte_width
    parts = [np.empty((0, width), np.uint8)]
    for chunk in column.chunks:
        if chunk.null_count:
            raise FileError("items without a code: the collection is damaged; refresh it.")
        content = np.frombuffer(chunk.buffers()[1], np.uint8)
        parts.append(content.reshape(-1, width)[chunk.offset : chunk.offset + len(chunk)])
    return np.concatenate(parts)


def _lance() -> Any:
    try:
        import lance
    except ImportError as error:
        raise MissingPartError(
            'a collection needs Lance: pip install "streamhash[live]".'
        ) from error
    return lance


def _pyarrow() -> Any:
    _lance()
    import pyarrow

    return pyarrow
