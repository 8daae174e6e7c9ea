"""The Lance datasets of a collection, and the one way in which they are written.

1. New files are written that no version knows: rows, codes, lists of deleted rows.
2. Each is read again. Lance does not tell of every write that failed: a file that has not the size
   that Lance says, or not its end, is an error, and nothing is committed.
3. They are synced, and their folders.
4. A commit makes the next version, by its manifest. It is right after the version in use here, or
   it is refused: the commits are of kinds that Lance never puts on top of a version which this
   process has not seen. So a second writer gets an error before anything of it is stored, whatever
   became of the lock, and keys and learner states are known by versions.
5. The manifest is read again and synced, with its folder.
6. A line in ``checksums`` says so: the version is acknowledged.

Several commits may be one change, of which only the last one counts; those before it are *prepared*
and synced with the files of the last, before it is committed.

What a power cut leaves behind is thus a newest version that is whole, or that was not acknowledged
and can be told to be broken: ``settle_versions`` passes it over at the next opening. Nothing is
deleted before what replaces it is acknowledged.

With ``durability="process"`` nothing is synced: what was stored is there after a crash of the
process, not of the system. An object store has no folders to sync and keeps checksums of its own:
there a file is whole when it can be seen at all, and 1 and 4 are all there is to do.
"""

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamhash.errors import FileError, InUseError, StreamhashError
from streamhash.live.arrow import Keys, import_lance, import_pyarrow
from streamhash.live.checksums import Checksums, Sum, checksum, ends_whole, sync
from streamhash.live.locks import uninterrupted

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

logger = logging.getLogger(__name__)

CACHE_BYTES = 2**24  # of what Lance remembers of files and versions; by itself it takes gigabytes
ADDRESS_BITS = 32  # of a row's address: its place in the fragment, below the fragment's number
LAST = 2**64 - 1  # manifests are named by what is left to this number: the newest comes first
SMALL_FILE = 2**16  # bytes: the content of files up to this is checked, when a collection is opened
CHECKED_BYTES = 2**23  # of such files of a dataset, at most
DURABILITY = ("synced", "process")
MANIFEST = ".manifest"
PASSED_OVER = ".passed-over"  # put after the name of a manifest that does not count
WAY_BACK = (
    "restore the collection from a backup (`streamhash live restore`), made by `streamhash live "
    "backup`, as a plain copy of files that are written to is none (`streamhash live verify` lists "
    "all that is damaged)."
)


class File(NamedTuple):
    """A file by its path in its dataset, and the size that it should have, if it is known."""

    name: str
    size: int | None = None


class Store:
    """The datasets at one address: opened, read with errors in plain words, and written.

    ``is_unsure`` says that a commit failed of which nobody knows if it is there: what is in use
    here may be older than what is stored, until ``advance``.
    """

    def __init__(self, address: str, options: dict[str, str] | None = None) -> None:
        self.address, self.options = address, options
        self.folder = None if "://" in address else Path(address)
        self.durability = "synced"
        self.is_writer = self.is_unsure = self.is_forked = False
        self._open: dict[str, lance.LanceDataset] = {}
        self._old_names: set[str] = set()  # datasets whose manifests have the names of old Lance
        self._sums = None if self.folder is None else Checksums(self.folder)
        self._unsynced: dict[Path, bool] = {}  # files, and folders: these are True
        self._unacknowledged: list[tuple[str, int, dict[str, Sum]]] = []
        self._synced_folders: set[Path] = set()  # whose own entries are synced, too
        self._all_summed = False  # whether every file in use has a checksum

    def another(self) -> "Store":
        """Return the same datasets opened anew."""
        other = Store(self.address, self.options)
        other._session, other.is_forked = self._session, self.is_forked
        return other

    def forked(self) -> None:
        """Be of no use, in a child of the process that opened it.

        Lance would wait for ever for threads that only the parent has.
        """
        self.is_writer, self.is_forked = False, True

    def refuse_forked(self) -> None:
        """Raise an error where nothing can be read."""
        if self.is_forked:
            raise InUseError(
                f"{self.address}: this process was forked from the one that opened the collection, "
                "so only what was in memory then can be searched here; start processes by spawn or "
                "forkserver, and open the collection in each."
            )

    @cached_property
    def _session(self) -> Any:
        """Lance's caches, for all datasets; every commit adds to them, until they are full."""
        return import_lance().Session(
            index_cache_size_bytes=CACHE_BYTES, metadata_cache_size_bytes=CACHE_BYTES
        )

    # --------------------------------------------------------------------- datasets and versions

    def uri(self, name: str) -> str:
        """Where a dataset is."""
        return f"{self.address.rstrip('/')}/{name}.lance"

    def find(self, name: str) -> "lance.LanceDataset | None":
        """Return a dataset, None where there is none."""
        self.refuse_forked()
        if name not in self._open:
            if self.folder is not None and not self.versions(name):
                return None
            try:
                self._open[name] = self._opened(name)
            except FileError as error:
                if self.folder is not None or "not found" not in str(error).lower():
                    raise
                return None
        return self._open[name]

    def _opened(self, name: str, version: int | None = None) -> "lance.LanceDataset":
        with self.reading(name):
            opened: lance.LanceDataset = import_lance().dataset(
                self.uri(name), version=version, storage_options=self.options, session=self._session
            )
        return opened

    def dataset(self, name: str) -> "lance.LanceDataset":
        """Return a dataset that is there."""
        found = self.find(name)
        if found is None:
            raise FileError(f"{self.uri(name)}: is missing; {WAY_BACK}")
        return found

    def version(self, name: str) -> int:
        """Return the version in use here; 0 where nothing was ever stored."""
        found = self.find(name)
        return 0 if found is None else int(found.version)

    def latest(self, name: str) -> int:
        """Return the latest version, perhaps by another process."""
        found = self.find(name)
        if found is None:
            return 0
        with self.reading(name):
            return int(found.latest_version)

    def versions(self, name: str) -> list[int]:
        """Return the versions on the disk, the newest first."""
        assert self.folder is not None
        folder = self.folder / f"{name}.lance" / "_versions"
        with self._naming(folder):
            try:
                names = [path.stem for path in folder.iterdir() if path.suffix == MANIFEST]
            except (FileNotFoundError, NotADirectoryError):
                return []
        numbers = [int(each) for each in names if each.isdecimal()]
        if any(number < LAST // 2 for number in numbers):
            self._old_names.add(name)
        return sorted((LAST - n if n > LAST // 2 else n for n in numbers), reverse=True)

    def files(self, name: str, version: int) -> list[File]:
        """Return the files of a version: its manifest, and all that it names."""
        with self.reading(name):
            fragments = self.dataset(name).checkout_version(version).get_fragments()
            found = files_of(fragments)
        if self.folder is not None:
            self.versions(name)
        return [File(f"_versions/{self._manifest_name(name, version)}"), *found]

    def read(self, name: str, *, version: int | None = None, **options: Any) -> "pa.Table":
        """Read a table; Ctrl-C waits for its end, as Arrow would make another error of it."""
        dataset = self.dataset(name)
        with uninterrupted(), self.reading(name):
            used = dataset if version is None else dataset.checkout_version(version)
            return used.to_table(**options)

    def advance(self, name: str) -> None:
        """Turn to the latest version that counts."""
        found, latest = self.find(name), self.latest(name)
        if found is None or (latest == found.version and not self.is_unsure):
            return
        try:
            with self.reading(name):
                found.checkout_latest()  # type: ignore[no-untyped-call]
            broken = self.is_unsure or found.version < latest  # of zeros Lance reads version 0
        except FileError:
            if self._sums is None:
                raise
            broken = True
        if broken and self._sums is not None:
            self.check([name])

    # ------------------------------------------------------------------- what is there, and whole

    def check(self, names: Iterable[str]) -> None:
        """See if what was acknowledged is there, and pass over what was not and is broken.

        At a bounded cost: the sizes of all files, the content of small ones, manifests thus.
        """
        if self._sums is not None:
            self.read_sums()
            for name in names:
                self._settle(name)

    def read_sums(self) -> None:
        """Read what was acknowledged."""
        if self._sums is not None:
            with self._naming(self._sums.path):
                self._sums.read()

    def has_lost(self, name: str) -> bool:
        """Tell whether a dataset is gone that was there."""
        return self._sums is not None and self._sums.acknowledged(name) > 0 and not self.find(name)

    def is_acknowledged(self, name: str, version: int) -> bool:
        """Tell whether a version is known to be whole; in an object store every one is."""
        return self._sums is None or version <= self._sums.acknowledged(name)

    def _settle(self, name: str) -> None:
        """Find the newest version that counts; the writer moves broken ones out of the way."""
        assert self.folder is not None
        assert self._sums is not None
        self._open.pop(name, None)
        self._unacknowledged = [each for each in self._unacknowledged if each[0] != name]
        acknowledged, there = self._sums.acknowledged(name), self.versions(name)
        for version in there:
            if version < acknowledged:
                break
            problem = self._problem(name, version, is_acknowledged=version == acknowledged)
            if problem is None:
                return
            self._open.pop(name, None)
            if version == acknowledged or not self._sums.is_there:
                raise FileError(f"{problem}; {WAY_BACK}")
            logger.warning(
                "%s: version %d was never acknowledged and is passed over: a power cut or a failed "
                "write has left it broken (%s)",
                self.uri(name),
                version,
                problem,
            )
            if self.is_writer:
                path = self._manifest(name, version)
                with self._naming(path):
                    path.replace(path.with_name(path.name + PASSED_OVER))
                    sync([path.parent])
        if acknowledged:
            raise FileError(f"{self._manifest(name, acknowledged)}: is missing; {WAY_BACK}")

    def _problem(self, name: str, version: int, *, is_acknowledged: bool) -> str | None:
        """Say which file keeps a version from being read, and what is wrong with it."""
        assert self._sums is not None
        manifest = self._manifest(name, version)
        wrong = self._sums.problem(f"{name}.lance/_versions/{manifest.name}")
        if wrong is not None:
            return f"{manifest}: {wrong}"
        try:
            dataset = self._opened(name, version)
            with self.reading(name):
                fragments = dataset.get_fragments()
                files = files_of(fragments)
        except FileError as error:
            return f"{manifest}: cannot be read ({error})"
        if dataset.version != version:
            return f"{manifest}: is damaged"
        self._open[name] = dataset
        left = CHECKED_BYTES
        for file in files:
            place = f"{name}.lance/{file.name}"
            wrong = self._sums.problem(place, file.size, up_to=min(SMALL_FILE, left))
            if wrong is not None:
                return f"{self._sums.folder / place}: {wrong}"
            left -= min(left, file.size or 0)
        return None if is_acknowledged else self._unreadable(name, fragments)

    def _unreadable(self, name: str, fragments: list[Any]) -> str | None:
        """Say which of the files that have no checksum cannot be read."""
        assert self._sums is not None
        for fragment in fragments:
            places = {f"{name}.lance/{file.name}" for file in files_of([fragment])}
            if not places <= self._sums.files.keys():
                try:
                    with self.reading(name):
                        for _ in fragment.to_batches():
                            pass
                except FileError as error:
                    return str(error)
        return None

    def _manifest(self, name: str, version: int) -> Path:
        assert self.folder is not None
        folder = self.folder / f"{name}.lance" / "_versions"
        return folder / self._manifest_name(name, version)

    def _manifest_name(self, name: str, version: int) -> str:
        return f"{version if name in self._old_names else LAST - version}{MANIFEST}"

    def are_whole(self, name: str, files: Iterable[File]) -> bool:
        """Tell whether files have the size that they should have."""
        sums = self._sums
        return sums is None or not any(
            sums.problem(f"{name}.lance/{file.name}", file.size, up_to=0) for file in files
        )

    # -------------------------------------------------------------------------------------- errors

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """Say in plain words why a dataset cannot be read, and name the file if it is known."""
        try:
            yield
        except StreamhashError:
            raise
        except BaseException as error:
            if not _is_damage(error):
                raise
            raise FileError(f"{self._diagnosis(name, error)}; {WAY_BACK}") from error

    def _diagnosis(self, name: str, error: BaseException) -> str:
        if self._sums is not None and name in self._open:
            with suppress(Exception):
                for file in files_of(self._open[name].get_fragments()):
                    place = f"{name}.lance/{file.name}"
                    gone = "not found" in str(error).lower()  # then contents need not be read
                    wrong = self._sums.problem(place, file.size, up_to=0 if gone else None)
                    if wrong is not None:
                        return f"{self._sums.folder / place}: {wrong}"
        return f"{self.uri(name)}: cannot be read ({_words(error)})"

    @contextmanager
    def translate_errors(self, name: str) -> Iterator[None]:
        """Say in plain words why Lance could not write."""
        from lance.commit import CommitConflictError

        try:
            yield
        except CommitConflictError as error:
            raise self.in_use() from error
        except StreamhashError:
            raise
        except BaseException as error:
            if not _is_damage(error):
                raise
            if any(words in str(error).lower() for words in ("already exists", "concurrent")):
                raise self.in_use() from error
            raise FileError(
                f"{self.uri(name)}: cannot be written ({_words(error)}); make room or mend the "
                "access, and call again."
            ) from error

    @contextmanager
    def _naming(self, path: Path) -> Iterator[None]:
        """Name the file or folder that the disk refuses."""
        try:
            yield
        except OSError as error:
            raise FileError(
                f"{error.filename or path}: cannot be read or written ({error.strerror or error}); "
                "make room or mend the access, and call again."
            ) from error

    def in_use(self) -> InUseError:
        """Return the error of a second writer."""
        return InUseError(
            f"{self.address}: another process has written to this collection meanwhile, so nothing "
            "more is written from here; open it again."
        )

    # ------------------------------------------------------------------------------------- writing

    def append(
        self,
        name: str,
        table: "pa.Table",
        rows: int,
        *,
        loose: Sequence["Loose"] = (),
        is_followed: bool = False,
    ) -> None:
        """Commit rows, after those that are there and loose ones; ``rows`` at most a fragment."""
        operation, dataset = import_lance().LanceOperation, self.find(name)
        if dataset is None:
            return self.overwrite(name, table, rows)
        # Lance puts an append on top of anybody's commit, but never a merge.
        there = dataset.get_fragments()
        first = 1 + max((fragment.fragment_id for fragment in there), default=-1)
        written = self._write_fragments(name, table, "append", rows) if len(table) else []
        both = [*(fragment for each in loose for fragment in each.fragments), *written]
        new = [{**each.to_json(), "id": first + i} for i, each in enumerate(both)]
        merged = [*[fragment.metadata for fragment in there], *map(_fragment, new)]
        merge = operation.Merge(merged, dataset.lance_schema)
        kept = {file: known for each in loose for file, known in each.sums.items()}
        files = data_files(each.to_json() for each in written)
        return self._commit(name, merge, files, kept=kept, is_followed=is_followed)

    def write_loose(self, name: str, table: "pa.Table", place: Any, rows: int) -> "Loose":
        """Write rows that no version knows yet, checked and synced: any thread may do so."""
        written = self.write_fragments(name, table, place, rows)
        return Loose(written, self.keep(name, data_files(each.to_json() for each in written)))

    def overwrite(
        self, name: str, table: "pa.Table", rows: int, *, is_prepared: bool = False
    ) -> None:
        """Commit rows in place of those that are there."""
        mode = "create" if self.find(name) is None else "overwrite"
        new = self._write_fragments(name, table, mode, rows)
        operation = import_lance().LanceOperation.Overwrite(table.schema, new)
        files = data_files(each.to_json() for each in new)
        self._commit(name, operation, files, is_prepared=is_prepared)

    def _write_fragments(self, name: str, table: "pa.Table", mode: str, rows: int) -> list[Any]:
        place = self.uri(name) if mode == "create" else self.dataset(name)
        return self.write_fragments(name, table, place, rows, mode)

    def write_fragments(
        self, name: str, table: "pa.Table", place: Any, rows: int, mode: str = "append"
    ) -> list[Any]:
        """Write rows that no version knows yet, beside those of a dataset."""
        from lance.fragment import write_fragments

        with self.translate_errors(name):
            fragments: list[Any] = write_fragments(
                table,
                place,
                mode=mode,
                max_rows_per_file=rows,
                storage_options=self.options,
            )
        return fragments

    def delete(self, name: str, addresses: Keys, *, is_followed: bool = False) -> None:
        """Delete rows by their addresses."""
        places: dict[int, list[int]] = {}
        for address in np.unique(addresses).tolist():
            fragment, place = divmod(address, 2**ADDRESS_BITS)
            places.setdefault(fragment, []).append(place)
        changed: list[Any] = []
        left: list[Any] = []
        gone = []
        with self.translate_errors(name):
            for each in self.dataset(name).get_fragments():
                number = each.fragment_id
                new = each.delete_rows(places[number]) if number in places else each.metadata
                if new is None:
                    gone.append(number)
                else:
                    (changed if number in places else left).append(new)
        # It names all fragments, so that it is refused whatever another has committed of any.
        operation = import_lance().LanceOperation.Delete([*changed, *left], gone, "false")
        files = [_deletion_file(each.to_json()) for each in changed]
        self._commit(name, operation, files, is_followed=is_followed)

    def merge(self, name: str, fragments: list[dict[str, Any]], schema: Any) -> None:
        """Commit fragments with a new column, whose files are written."""
        known = {} if self._sums is None else self._sums.files
        new = [each for each in data_files(fragments) if f"{name}.lance/{each.name}" not in known]
        operation = import_lance().LanceOperation.Merge([*map(_fragment, fragments)], schema)
        self._commit(name, operation, new)

    def change_columns(self, name: str, change: Callable[["lance.LanceDataset"], None]) -> None:
        """Commit a change of columns that writes no file but its manifest."""
        self._commit(name, change, [])

    def joins(self, name: str, rows: int) -> list["Join"]:
        """Return which small fragments can be joined to such of so many rows."""
        from lance.optimize import Compaction

        dataset = self.dataset(name).checkout_version(self.version(name))
        with self.translate_errors(name):
            plan = Compaction.plan(dataset, options={"target_rows_per_fragment": rows})
            return [Join(self, name, dataset, task) for task in plan.tasks]

    def join(self, joins: Sequence["Join"]) -> bool:
        """Commit joins that are done; not if their fragments have changed since."""
        from lance.optimize import Compaction, RewriteResult

        if not joins:
            return False
        name = joins[0].name
        now = {
            each.fragment_id: each.metadata.to_json() for each in self.dataset(name).get_fragments()
        }
        if any(now.get(number) != old for each in joins for number, old in each.before.items()):
            return False
        described = [{**each.result, "read_version": self.version(name)} for each in joins]
        from_json = RewriteResult.from_json  # type: ignore[attr-defined]
        results = [from_json(json.dumps(each)) for each in described]
        kept = {file: known for each in joins for file, known in each.sums.items()}
        # Lance takes numbers for the fragments by a commit of its own, before.
        self._commit(
            name, lambda dataset: Compaction.commit(dataset, results), [], kept=kept, steps=2
        )
        return True

    def replace(self, rewrite: "Rewrite", **metadata: str) -> bool:
        """Commit rows that were written anew, before those that came since.

        Not if other rows than those have changed.
        """
        name, n = rewrite.name, len(rewrite.before)
        now = [each.metadata for each in self.dataset(name).get_fragments()]
        if [each.to_json() for each in now[:n]] != rewrite.before:
            return False
        schema = self.dataset(name).schema.with_metadata(metadata)
        operation = import_lance().LanceOperation.Overwrite(schema, [*rewrite.new, *now[n:]])
        self._commit(name, operation, [], kept=rewrite.sums)
        return True

    def keep(self, name: str, files: Iterable[File]) -> dict[str, Sum]:
        """Check files that no version knows yet, and sync them; return their checksums.

        Any thread may do so, while another changes the datasets.
        """
        sums, paths = {}, list[Path]()
        for file in files:
            sums[file.name] = self._checked(name, file)
            if self.folder is not None:
                path = self.folder / f"{name}.lance" / file.name
                paths += [path, path.parent]
        if self._sums is not None and self.durability == "synced":
            with self._naming(self._sums.folder):
                sync(paths)
        return sums

    # ---------------------------------------------------------------------------------- the commit

    def _commit(
        self,
        name: str,
        operation: Any,
        new: Iterable[File],
        *,
        kept: dict[str, Sum] | None = None,
        steps: int = 1,
        is_prepared: bool = False,
        is_followed: bool = False,
    ) -> None:
        """Commit an operation, or call it to; refuse if anybody has committed another meanwhile.

        Of its files those that are ``kept`` are synced already. One that ``is_followed`` by another
        is acknowledged with that.
        """
        before = self.version(name)
        sums = {**(kept or {}), **{file.name: self._summed(name, file) for file in new}}
        if not is_prepared:
            self._sync()
        if callable(operation) and self.latest(name) != before:
            raise self.in_use()  # which Lance itself would put on top of some
        try:
            with self.translate_errors(name):
                self._open[name] = self._committed(name, operation, before)
            after = self.version(name)
            if not before < after <= before + steps:
                raise self.in_use()
            for version in range(before + 1, after + 1):
                manifest = self._manifest_file(name, version)
                sums[manifest.name] = self._summed(name, manifest)
            self._unacknowledged.append((name, after, sums))
            if not (is_prepared or is_followed):
                self.acknowledge()
        except BaseException:
            self.is_unsure, self._all_summed = True, False
            raise

    def _committed(self, name: str, operation: Any, before: int) -> "lance.LanceDataset":
        if callable(operation):
            dataset = self.dataset(name)
            operation(dataset)
            return dataset
        committed = import_lance().LanceDataset.commit(
            self.dataset(name) if before else self.uri(name),
            operation,
            read_version=before,
            max_retries=0,
            storage_options=self.options,
        )
        # A new one is opened again, with the caches that all of them share.
        return committed if before else self._opened(name, int(committed.version))

    def _manifest_file(self, name: str, version: int) -> File:
        if self.folder is None:
            return File(str(version))
        return File(f"_versions/{self._manifest_name(name, version)}")

    def _summed(self, name: str, file: File) -> Sum:
        """Check a new file, and take it to be synced; return its checksum."""
        found = self._checked(name, file)
        if self._sums is None or self.folder is None:
            return found
        path = self.folder / f"{name}.lance" / file.name
        self._unsynced |= {path: False, path.parent: True}
        if path.parent not in self._synced_folders:  # it may be new, and those above it
            above = (path.parent.parent, self.folder, self.folder.absolute().parent)
            self._unsynced |= dict.fromkeys(above, True)
        return found

    def _checked(self, name: str, file: File) -> Sum:
        """See if a new file was written whole; return its checksum."""
        if self._sums is None or self.folder is None:
            return Sum(0, 0)
        path = self.folder / f"{name}.lance" / file.name
        with self._naming(path):
            found, has_end = checksum(path)
            whole = has_end and file.size in (None, found.size)
        if not whole:
            wanted = "" if file.size is None else f" of {file.size:,}"
            raise FileError(
                f"{path}: was not written whole ({found.size:,}{wanted} bytes are there), so it "
                "is not used; make room or mend the disk, and call again."
            )
        return found

    def _sync(self) -> None:
        """Sync all files and folders that are not, and the lines of checksums before."""
        paths, self._unsynced = self._unsynced, {}
        if self._sums is None or self.durability != "synced":
            return
        if self._sums.is_there:
            paths[self._sums.path] = False
        try:
            with self._naming(self._sums.folder):
                sync(paths)
        except FileError:
            # What could not be synced once may be lost though it can be read: it is not relied on.
            self._unacknowledged.clear()
            raise
        self._synced_folders.update(path for path, is_folder in paths.items() if is_folder)

    def acknowledge(self) -> None:
        """Sync what was committed, and say so in ``checksums``."""
        self._sync()
        done, self._unacknowledged = self._unacknowledged, []
        if self._sums is None:
            return
        for each in done:
            self._sums.add(*each)
        try:
            self._sums.write()
        except OSError as error:  # what was stored is; the line comes with the next change
            logger.warning("%s: cannot be written (%s)", self._sums.path, error.strerror)

    def sum_all(self, names: Iterable[str]) -> None:
        """Take the checksums of files that have none: they were written before there were any."""
        if self._all_summed or self._sums is None:
            return
        if self._sums.damaged:
            self._write_sums_anew()
        for name in names:
            dataset = self.find(name)
            if dataset is None:
                continue
            files = files_of(dataset.get_fragments())
            files.append(self._manifest_file(name, int(dataset.version)))
            new = [each for each in files if f"{name}.lance/{each.name}" not in self._sums.files]
            if new or not self.is_acknowledged(name, int(dataset.version)):
                sums = {file.name: self._summed(name, file) for file in new}
                self._unacknowledged.append((name, int(dataset.version), sums))
        self.acknowledge()
        self._all_summed = True

    # ---------------------------------------------------------------------------------- forgetting

    def forget(self, name: str, versions: Sequence[int], *, all_files: bool) -> None:
        """Delete versions, and files that none has; with ``all_files`` such as are young, too.

        Only when what is in use is acknowledged.
        """
        with self.translate_errors(name):
            if self._sums is not None:
                self.acknowledge()
                if not self._sums.are_written:
                    return
                for version in versions:
                    path = self._manifest(name, version)
                    if not ends_whole(path):  # of a commit that failed: Lance could not read it
                        path.unlink()
                versions = [*{*versions} & {*self.versions(name)}]
            if versions:
                self.dataset(name).cleanup_old_versions(
                    versions=[*versions], delete_unverified=all_files
                )

    def forget_sums(self) -> None:
        """Leave out checksums of files that are gone."""
        if self._sums is not None and self._sums.are_written:
            self._write_sums_anew()

    def _write_sums_anew(self) -> None:
        assert self._sums is not None
        with self._naming(self._sums.path):
            self._sums.write_anew()


class Loose(NamedTuple):
    """Rows in fragments that no version knows yet."""

    fragments: list[Any]
    sums: dict[str, Sum]  # of their files


class Join:
    """Some small fragments of a version, to be joined; their deleted rows are left out."""

    def __init__(self, store: Store, name: str, dataset: "lance.LanceDataset", task: Any) -> None:
        self._store, self.name, self._dataset, self._task = store, name, dataset, task
        there = {each.fragment_id: each for each in dataset.get_fragments()}
        numbers = [each["id"] for each in json.loads(task.json())["task"]["fragments"]]
        self.before = {number: there[number].metadata.to_json() for number in numbers}
        self.n_rows = sum(there[number].count_rows() for number in numbers)
        self.n_bytes = sum(file.size or 0 for file in data_files(self.before.values()))
        self.result: dict[str, Any] = {}
        self.sums: dict[str, Sum] = {}  # of the new files

    def do(self) -> None:
        """Write the new files, which no version knows yet; others may change the dataset."""
        with self._store.translate_errors(self.name):
            self.result = json.loads(self._task.execute(self._dataset).json())
        self.sums = self._store.keep(self.name, data_files(self.result["new_fragments"]))


class Rewrite:
    """The rows of a version, read from the last to the first, and what is put in their place.

    Others may append rows meanwhile. No version knows of what it writes before ``Store.replace``.
    New fragments have at most so many rows, and at least half, where there are as many.
    """

    def __init__(self, store: Store, name: str, rows: int) -> None:
        self._store, self.name, self._rows = store, name, rows
        self._waiting: list[pa.Table] = []  # rows to be written
        self._dataset = store.dataset(name).checkout_version(store.version(name))
        self._fragments = self._dataset.get_fragments()
        self.before = [each.metadata.to_json() for each in self._fragments]
        self.n_read = self.n_written = 0  # rows
        self.new: list[Any] = []  # fragments
        self.sums: dict[str, Sum] = {}  # of their files

    def tables(self) -> Iterator["pa.Table"]:
        """Read the rows, a fragment at a time, the last one first."""
        for fragment in reversed(self._fragments):
            with self._store.reading(self.name):
                table = fragment.to_table()
            self.n_read += len(table)
            yield table

    def put(self, table: "pa.Table") -> None:
        """Take rows of the new ones, in whatever order."""
        self._waiting.append(table)
        if 2 * sum(map(len, self._waiting)) >= self._rows:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        tables, self._waiting = [each for each in self._waiting if len(each)], []
        if tables:
            table = import_pyarrow().concat_tables(tables)
            written = self._store.write_loose(self.name, table, self._dataset, self._rows)
            self.sums |= written.sums
            self.new += written.fragments
            self.n_written += len(table)


# --------------------------------------------------------------------------------- files by name


def data_files(fragments: Iterable[dict[str, Any]]) -> list[File]:
    """Return the files with the rows of fragments, as these are described in JSON."""
    return [
        File(f"data/{file['path']}", file["file_size_bytes"])
        for fragment in fragments
        for file in fragment["files"]
    ]


def files_of(fragments: Iterable[Any]) -> list[File]:
    """Return all files of fragments: those with rows, and the lists of deleted ones."""
    files = []
    for fragment in fragments:
        files += [File(f"data/{each.path}", each.file_size_bytes) for each in fragment.data_files()]
        deleted = fragment.deletion_file()
        if deleted is not None:
            files.append(File(deleted))
    return files


def _deletion_file(fragment: dict[str, Any]) -> File:
    """Return the list of deleted rows of a fragment, as it is described in JSON."""
    file = fragment["deletion_file"]
    ending = "arrow" if file["file_type"] == "array" else "bin"
    return File(f"_deletions/{fragment['id']}-{file['read_version']}-{file['id']}.{ending}")


def _fragment(described: dict[str, Any]) -> Any:
    return import_lance().FragmentMetadata.from_json(json.dumps(described))


def _is_damage(error: BaseException) -> bool:
    """Tell whether an error may come from files that are damaged or a disk that fails.

    Lance raises errors of many kinds, and what Rust calls a panic, which is no Exception.
    """
    kinds = (OSError, ValueError, RuntimeError, LookupError, TypeError, MemoryError, OverflowError)
    return isinstance(error, kinds) or type(error).__name__ == "PanicException"


def _words(error: BaseException) -> str:
    """Return what an error says, without the place in Lance's source."""
    return re.sub(r",? /home/\S+\.rs:\d+:\d+", "", str(error)).strip() or type(error).__name__
