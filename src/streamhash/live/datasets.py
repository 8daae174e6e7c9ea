"""The Lance datasets of a collection: opened, followed, and committed to by one writer only.

Every commit is the version right after the one in use here, or it is refused: on a local disk
nobody else holds the lock of the writer; in an object store, which has no locks, the commits are of
kinds that Lance never puts on top of a version which this process has not seen. So a second writer
is told so before anything of his is stored, and keys and learner states can be told by versions.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamhash.errors import FileError, InUseError, StreamhashError
from streamhash.live.locks import uninterrupted
from streamhash.optional import import_optional

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

__all__ = ["Datasets", "pyarrow"]

LARGE = 131_072  # rows of a fragment at most: a piece of work for one worker of a refresh,
NUMBERS = 2**24  # and numbers of their vectors, as Lance may have a whole fragment in memory
CACHED = 2**24  # bytes of what Lance remembers of files and versions; by itself it takes gigabytes

# The order in which to look for what is new, while another process writes. A label comes after its
# item, so labels are looked at first, lest one be passed over whose item is not there yet; a model
# comes before its codes, so models last. The learner's state is written before its change.
NAMES = ("learner", "labels", "items", "models", "encoded")


class Datasets:
    """Datasets by name, at one address."""

    def __init__(self, address: str, storage_options: dict[str, str] | None = None) -> None:
        self.address, self.options = address, storage_options
        self.folder = None if "://" in address else Path(address)
        self._open: dict[str, lance.LanceDataset] = {}

    @cached_property
    def _session(self) -> Any:
        """Lance's caches, for all datasets; every commit adds to them, until they are full."""
        return lance_module().Session(
            index_cache_size_bytes=CACHED, metadata_cache_size_bytes=CACHED
        )

    def uri(self, name: str) -> str:
        """Where a dataset is."""
        return f"{self.address.rstrip('/')}/{name}.lance"

    def find(self, name: str) -> "lance.LanceDataset | None":
        """Return a dataset, None where there is none."""
        if name not in self._open:
            try:
                self._open[name] = lance_module().dataset(
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

    # ------------------------------------------------------------------------------- versions

    def version(self, name: str) -> int:
        """Return the version in use here; 0 where nothing was ever stored."""
        found = self.find(name)
        return 0 if found is None else int(found.version)

    def latest(self, name: str) -> int:
        """Return the version that is the latest, perhaps by another process."""
        found = self.find(name)
        return 0 if found is None else int(found.latest_version)

    def update(self) -> None:
        """Use the latest versions."""
        for name in NAMES:
            found = self.find(name)
            if found is not None:
                found.checkout_latest()  # type: ignore[no-untyped-call]

    def read(self, name: str, **options: Any) -> "pa.Table":
        """Read a table; Ctrl-C waits for its end, as Arrow would make another error of it."""
        with uninterrupted():
            return self.dataset(name).to_table(**options)

    # -------------------------------------------------------------------------------- commits

    def append(self, name: str, table: "pa.Table") -> None:
        """Commit rows, after those that are there."""
        lance, dataset = lance_module(), self.find(name)
        if dataset is None:
            with self.told(name):
                lance.write_dataset(
                    table,
                    self.uri(name),
                    storage_options=self.options,
                    max_rows_per_file=most_rows(table.schema),
                )
                self.dataset(name)  # opened anew, with the caches that all of them share
        elif self.folder is not None:
            with self.committing(name), self.told(name):
                self._open[name] = lance.write_dataset(
                    table, dataset, mode="append", max_rows_per_file=most_rows(table.schema)
                )
        else:  # Lance puts an append on top of anybody's commit, but never a merge.
            there = dataset.get_fragments()
            first = 1 + max((fragment.fragment_id for fragment in there), default=-1)
            merged = [fragment.metadata for fragment in there]
            for i, new in enumerate(self._write_fragments(name, table, "append")):
                described = {**new.to_json(), "id": first + i}
                merged.append(lance.FragmentMetadata.from_json(json.dumps(described)))
            self.commit(name, lance.LanceOperation.Merge(merged, dataset.lance_schema))

    def overwrite(self, name: str, table: "pa.Table") -> None:
        """Commit rows in place of those that are there."""
        if self.find(name) is None:
            return self.append(name, table)
        new = self._write_fragments(name, table, "overwrite")
        return self.commit(name, lance_module().LanceOperation.Overwrite(table.schema, new))

    def _write_fragments(self, name: str, table: "pa.Table", mode: str) -> list[Any]:
        lance_module()
        from lance.fragment import write_fragments

        with self.told(name):
            fragments: list[Any] = write_fragments(
                table,
                self.dataset(name),
                mode=mode,
                max_rows_per_file=most_rows(table.schema),
                storage_options=self.options,
            )
        return fragments

    def commit(self, name: str, operation: Any) -> None:
        """Commit an operation, if nobody has committed another meanwhile."""
        dataset = self.dataset(name)
        with self.committing(name), self.told(name):
            self._open[name] = lance_module().LanceDataset.commit(
                dataset,
                operation,
                read_version=int(dataset.version),
                max_retries=0,
                storage_options=self.options,
            )

    @contextmanager
    def committing(self, name: str) -> Iterator[None]:
        """Check that the block's commit came right after the version before it."""
        before = self.version(name)
        yield
        if self.version(name) != before + 1:
            raise self._in_use()

    @contextmanager
    def told(self, name: str) -> Iterator[None]:
        """Tell in plain words why Lance could not write."""
        from lance.commit import CommitConflictError

        try:
            yield
        except CommitConflictError as error:
            raise self._in_use() from error
        except StreamhashError:  # told already
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


def most_rows(schema: "pa.Schema") -> int:
    """Return how many rows a fragment may have."""
    if "vector" not in schema.names:
        return LARGE
    return max(1024, min(LARGE, NUMBERS // int(schema.field("vector").type.list_size)))


def lance_module() -> Any:
    """Return Lance, or say how to get it."""
    return import_optional("lance", extra="live", place="a collection")


def pyarrow() -> Any:
    """Return pyarrow, which Lance brings along."""
    lance_module()
    import pyarrow

    return pyarrow
