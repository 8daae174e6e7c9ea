"""Backups of a collection: the files of one moment, taken while others write.

Files of Lance never change once they are written. So a moment is a list of them: those of one
version of each dataset, and the log up to some record; ``Journal.moment`` has it. The writer keeps
the items and labels of that moment as long as they are read. The other files are few, and opened
before anything is copied: what is open can be read though the writer deletes it.

A backup is one of two things:

- *A tar*, ``shop.tar``: the collection's files, and at the end ``backup.json`` with their
  checksums. Unpacked by any program it is a collection.
- *A folder*, here or in an object store, to which every backup adds only what is new:

      objects/3f/3f9a…              files, named by the SHA-256 of their content
      20261117T230512.345678Z.json  a backup: its files by name, with size, SHA-256 and CRC-32

A backup counts when its JSON file is there, which is written last and has a checksum of its own.
"""

import hashlib
import io
import json
import shutil
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from os import PathLike, fspath
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from streamhash.errors import FileError, InputError, NotFoundError
from streamhash.live import checksums, log
from streamhash.live.checksums import Sum, sync
from streamhash.live.journal import Journal, Moment
from streamhash.live.locks import ReaderLease
from streamhash.live.log import naming
from streamhash.live.places import Place

FORMAT, VERSION = "streamhash backup", 1
RECORD = "backup.json"
OBJECTS = "objects"
PIECE = 2**20  # bytes copied at a time
TRIES = 10  # to get hold of a moment, while another process writes
BESIDE = ("display.json",)  # small files of a collection's folder that others keep there
LEASED = ("items", "labels")  # whose files the writer keeps

Progress = Callable[[int, int], None]  # bytes done, and of how many


class Backup(NamedTuple):
    """One backup."""

    name: str  # of the tar, or when it was made (UTC)
    made: str
    items: int
    model: int  # the number of the one that serves; 0 before any does
    files: int
    bytes: int
    new_bytes: int  # that were written for it, as others had the rest


class _Copied(NamedTuple):
    """A file of a backup."""

    size: int
    sha256: str
    crc: int


Files = dict[str, _Copied]


class _Record(NamedTuple):
    """What a backup knows of itself."""

    name: str
    made: str
    items: int
    model: int
    files: Files

    def backup(self, new_bytes: int = 0) -> Backup:
        size = sum(file.size for file in self.files.values())
        return Backup(
            self.name, self.made, self.items, self.model, len(self.files), size, new_bytes
        )

    def to_bytes(self) -> bytes:
        from streamhash import __version__

        facts = {
            "format": FORMAT,
            "version": VERSION,
            "streamhash": __version__,
            "made": self.made,
            "items": self.items,
            "model": self.model,
            "files": self.files,
        }
        return json.dumps({**facts, "sha256": _sum(facts)}, indent=1).encode()

    @classmethod
    def from_bytes(cls, content: bytes, name: str, place: str) -> "_Record":
        try:
            facts = json.loads(content)
            if facts["format"] != FORMAT:
                raise FileError(f"{place}: is no backup of a collection.")
            if facts["version"] > VERSION:
                raise FileError(
                    f"{place}: is a backup of format {facts['version']}, and this version of "
                    f"streamhash reads up to {VERSION}; install a newer one."
                )
            if facts.pop("sha256") != _sum(facts):
                raise ValueError
            files = {name: _Copied(*known) for name, known in facts["files"].items()}
            return cls(name, facts["made"], facts["items"], facts["model"], files)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"{place}: is damaged; restore another backup.") from error


def _sum(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


# ----------------------------------------------------------------------------------- making one


def backup(
    path: str | PathLike[str],
    target: str | PathLike[str],
    *,
    keep: int | None = None,
    storage_options: dict[str, str] | None = None,
    target_options: dict[str, str] | None = None,
    progress: Progress = lambda _done, _of: None,
) -> Backup:
    """Copy a collection as it is at one moment; others may read and write meanwhile.

    Parameters
    ----------
    path : str or path
        The collection.
    target : str or path
        A file that ends in .tar, which must not be there yet; or a folder or address
        (``s3://…``), to which only files are added that no backup in it has.
    keep : int
        Of the backups in that folder, keep so many of the last, and delete the others. One
        process at a time may do so.
    storage_options, target_options : dict
        How to get to an address, as Lance has them: for the collection, and for the target.
    progress : callable
        Called with the bytes that were gone through so far, and of how many.
    """
    is_tar = _is_tar(target)
    if keep is not None and (is_tar or keep < 1):
        raise InputError("backup: keep goes with a folder of backups, and is 1 or more.")
    if is_tar and Path(target).exists():
        raise InputError(f"{target}: is there already; choose another name for this backup.")
    journal = Journal(fspath(path), storage_options)
    journal.open(read_only=True)
    with _opened(journal) as (moment, lease, source, handles):
        known = _sums(journal.folder)
        sink: _Tar | _Folder = (
            _Tar(Path(target), _name_of(journal.address))
            if is_tar
            else _Folder(Place(fspath(target), target_options))
        )
        with sink:
            names = {
                f"{dataset}.lance/{file.name}": file.size
                for dataset, files in moment.files.items()
                for file in files
            }
            for name, file in handles.items():
                names[name] = file.seek(0, io.SEEK_END)
                file.seek(0)
            sizes = {
                name: source.size(name) if size is None else size for name, size in names.items()
            }
            done, whole = 0, sum(sizes.values())
            copied: Files = {}
            for name, size in sizes.items():
                with handles.pop(name, None) or source.read(name) as file:
                    copied[name] = sink.add(name, size, file, known.get(name))
                done += size
                progress(done, whole)
                lease.renew()
            for name, content in _made_anew(journal, moment, copied):
                copied[name] = sink.add(name, len(content), io.BytesIO(content), None)
            made = datetime.now(UTC)
            record = _Record(
                Path(target).name if is_tar else made.strftime("%Y%m%dT%H%M%S.%fZ"),
                made.isoformat(timespec="seconds"),
                moment.items,
                moment.model,
                copied,
            )
            sink.finish(record)
    if keep is not None:
        _forget(Place(fspath(target), target_options), keep)
    return record.backup(sink.new_bytes)


@contextmanager
def _opened(
    journal: Journal,
) -> Iterator[tuple[Moment, ReaderLease, Place, dict[str, IO[bytes]]]]:
    """Get hold of a moment: its files are there until the end, or open and deleted meanwhile."""
    source = Place(journal.address, journal.options)
    for tries_left in reversed(range(TRIES)):
        with ExitStack() as stack:
            moment, lease = journal.moment()
            stack.enter_context(lease)
            handles = {}
            try:
                for dataset, files in moment.files.items():
                    for file in files if dataset not in LEASED else ():
                        name = f"{dataset}.lance/{file.name}"
                        handles[name] = stack.enter_context(source.read(name))
            except FileError:  # the writer has deleted it meanwhile
                if not tries_left:
                    raise
                continue
            yield moment, lease, source, handles
            return


def _sums(folder: Path | None) -> dict[str, Sum]:
    """Return the checksums that files were written with; an object store keeps its own."""
    if folder is None:
        return {}
    known = checksums.Checksums(folder)
    known.read()
    return known.files


def _made_anew(journal: Journal, moment: Moment, copied: Files) -> Iterator[tuple[str, bytes]]:
    """Give the files that are not copied as they are: the log up to the moment, and checksums."""
    if moment.log_name is not None:
        yield f"{log.FOLDER}/{moment.log_name}", moment.log
        yield f"{log.FOLDER}/{log.ACKNOWLEDGED}", log.note(moment.log_name, len(moment.log))
    for name in BESIDE if journal.folder is not None else ():
        with suppress(FileNotFoundError):
            yield name, (Path(journal.address) / name).read_bytes()
    if journal.folder is not None:
        sums = {name: Sum(file.size, file.crc) for name, file in copied.items()}
        yield checksums.NAME, checksums.to_bytes(moment.versions, sums)


def _is_tar(target: str | PathLike[str]) -> bool:
    return PurePosixPath(fspath(target)).suffix.lower() == ".tar"


def _name_of(address: str) -> str:
    return PurePosixPath(address.rstrip("/").replace("\\", "/")).name or "collection"


class _Hashed(io.RawIOBase):
    """A file that is read once, and hashed as it is."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file, self._sha256 = file, hashlib.sha256()
        self._size = self._crc = 0

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(min(size, PIECE) if size >= 0 else PIECE)
        self._sha256.update(piece)
        self._crc = zlib.crc32(piece, self._crc)
        self._size += len(piece)
        return piece

    def pieces(self) -> Iterator[bytes]:
        """Read it to its end."""
        while piece := self.read():
            yield piece

    def checked(self, name: str, size: int, known: Sum | None) -> _Copied:
        """Return what was read, if it is what it should be."""
        if self._size != size or known not in (None, Sum(self._size, self._crc)):
            raise FileError(
                f"{name}: is damaged, so there is no backup of now; restore an earlier one "
                "(`streamhash live verify` lists all that is damaged)."
            )
        return _Copied(self._size, self._sha256.hexdigest(), self._crc)


class _Tar:
    """A tar that is written, and there when it is whole."""

    def __init__(self, path: Path, folder: str) -> None:
        self._path, self._part = path, path.with_name(path.name + ".part")
        self._folder = folder
        self.new_bytes = 0

    def __enter__(self) -> "_Tar":
        with naming(self._path, "written"):
            self._file = self._part.open("wb")
        self._tar = tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._part.unlink(missing_ok=True)  # which has its name now, or is not whole

    def add(self, name: str, size: int, file: IO[bytes], known: Sum | None) -> _Copied:
        """Write a file."""
        hashed = _Hashed(file)
        entry = tarfile.TarInfo(f"{self._folder}/{name}")
        entry.size, entry.mtime = size, int(time.time())
        with naming(self._path, "written"):
            try:
                self._tar.addfile(entry, hashed)
            except OSError as error:
                if error.errno is None:  # it was shorter than it should be
                    hashed.checked(name, size, known)
                raise
        self.new_bytes += size
        return hashed.checked(name, size, known)

    def finish(self, record: _Record) -> None:
        """Write the record, and let the tar count."""
        content = record.to_bytes()
        self.add(RECORD, len(content), io.BytesIO(content), None)
        with naming(self._path, "written"):
            self._tar.close()
            self._file.close()
            sync([self._part])
            self._part.replace(self._path)
            sync([self._path.absolute().parent])


class _Folder:
    """A folder of backups, to which one is added."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.new_bytes = 0

    def __enter__(self) -> "_Folder":
        self._known: dict[tuple[str, int, int], _Copied] = {}
        for record in _records(self._place):
            self._known |= {
                (name, file.size, file.crc): file for name, file in record.files.items()
            }
        self._there = {file.sha256 for file in self._known.values()}
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def add(self, name: str, size: int, file: IO[bytes], known: Sum | None) -> _Copied:
        """Write a file, unless it is there."""
        there = None if known is None else self._known.get((name, known.size, known.crc))
        if there is not None:
            return there
        with self._place.new_file() as new:
            hashed = _Hashed(file)
            for piece in hashed.pieces():
                new.write(piece)
            copied = hashed.checked(name, size, known)
            if copied.sha256 not in self._there:
                new.keep(_object(copied.sha256))
                self._there.add(copied.sha256)
                self.new_bytes += size
        return copied

    def finish(self, record: _Record) -> None:
        """Write the record, from which on the backup counts."""
        content = record.to_bytes()
        with self._place.new_file() as new:
            new.write(content)
            new.keep(f"{record.name}.json")
        self.new_bytes += len(content)


def _object(sha256: str) -> str:
    return f"{OBJECTS}/{sha256[:2]}/{sha256}"


def _forget(place: Place, keep: int) -> None:
    """Delete all backups but the last, and the files that only they had."""
    records = [*_records(place)]
    kept = {file.sha256 for record in records[-keep:] for file in record.files.values()}
    for record in records[:-keep]:
        place.delete(f"{record.name}.json")
    for name in place.files(OBJECTS):
        if PurePosixPath(name).name not in kept:
            place.delete(name)


# ------------------------------------------------------------------------------- going back to it


def backups(
    source: str | PathLike[str], *, source_options: dict[str, str] | None = None
) -> list[Backup]:
    """List the backups of a folder, the last one last; of a tar, the one."""
    if _is_tar(source):
        return [_read_tar(Path(source)).backup()]
    return [record.backup() for record in _records(Place(fspath(source), source_options))]


def restore(
    source: str | PathLike[str],
    path: str | PathLike[str],
    *,
    name: str | None = None,
    source_options: dict[str, str] | None = None,
    progress: Progress = lambda _done, _of: None,
) -> Backup:
    """Make a collection of a backup, in a folder that is not there yet.

    Every file is compared with its checksum, and there is a folder only when all are right.

    Parameters
    ----------
    source : str or path
        A tar, or a folder or address of backups.
    path : str or path
        Where the collection shall be.
    name : str
        Which backup of a folder: its name, or the beginning of it; the last if it is not given.
    source_options : dict
        How to get to an address, as Lance has them.
    progress : callable
        Called with the bytes that were restored so far, and of how many.
    """
    folder = Path(path)
    if "://" in fspath(path):
        raise InputError(f"{path}: restore to a folder on this machine, and copy it from there.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: is there already; choose a folder that is not.")
    part = folder.absolute().with_name(folder.absolute().name + ".restoring")
    with naming(part, "written"):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
    try:
        if _is_tar(source):
            if name is not None:
                raise InputError("restore: name goes with a folder of backups; a tar has one.")
            record = _unpack(Path(source), part, progress)
        else:
            record = _fetch(Place(fspath(source), source_options), name, part, progress)
        journal = Journal(str(part))
        journal.open(read_only=True)
        journal.load()[-1].release()
        with naming(folder, "written"):
            shutil.rmtree(part / "readers", ignore_errors=True)
            sync(each for each in part.rglob("*"))
            if folder.exists():
                folder.rmdir()
            part.replace(folder)
            sync([folder.absolute().parent])
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return record.backup(sum(file.size for file in record.files.values()))


def check_backup(
    source: str | PathLike[str], *, source_options: dict[str, str] | None = None
) -> Iterator[tuple[str, int, str | None]]:
    """Read every file of a tar or a folder of backups: its name, size, and what is wrong."""
    if _is_tar(source):
        found = Files()
        for name, file in _read_tar(Path(source), found).files.items():
            right = found.get(name) == file
            yield f"{source}: {name}", file.size, None if right else "is missing or damaged"
        return
    place = Place(fspath(source), source_options)
    wanted = {file.sha256: file for record in _records(place) for file in record.files.values()}
    for sha256, known in wanted.items():
        name, problem = _object(sha256), None
        try:
            with place.read(name) as content:
                hashed = _Hashed(content)
                for _ in hashed.pieces():
                    pass
            if hashed.checked(name, known.size, None) != known:
                raise FileError(name)
        except FileError:
            problem = "is missing or damaged"
        yield place.uri(name), known.size, problem


def is_backup(path: str | PathLike[str]) -> bool:
    """Tell whether this is a tar, or a folder of backups, and no collection."""
    return _is_tar(path) or ("://" not in fspath(path) and (Path(path) / OBJECTS).is_dir())


def _records(place: Place) -> Iterator[_Record]:
    """Read what there is in a folder of backups, the oldest first."""
    for name in sorted(place.files("")):
        if name.endswith(".json") and "/" not in name:
            with place.read(name) as file:
                content = file.read()
            yield _Record.from_bytes(content, name.removesuffix(".json"), place.uri(name))


def _fetch(place: Place, name: str | None, folder: Path, progress: Progress) -> _Record:
    records = [*_records(place)]
    if not records:
        raise NotFoundError(
            f"{place.address}: there is no backup here; make one with `streamhash live backup`."
        )
    found = [record for record in records if record.name.startswith(name or "")]
    if not found or (name is not None and len(found) > 1):
        raise NotFoundError(
            f"restore: {len(found) or 'no'} backups begin with {name!r}; pass one of "
            f"{', '.join(record.name for record in found or records[-5:])}."
        )
    record = found[-1]
    done, whole = 0, sum(file.size for file in record.files.values())
    for path, known in record.files.items():
        with place.read(_object(known.sha256)) as file:
            _write(file, folder, path, known)
        done += known.size
        progress(done, whole)
    return record


def _write(file: IO[bytes], folder: Path, name: str, known: _Copied | None) -> _Copied:
    """Write a file of a backup, and see that it is what it should be."""
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or PurePosixPath(name).is_absolute() or ":" in name:
        raise FileError(f"{name}: is no name that a file of a backup has; restore another backup.")
    path = folder.joinpath(*parts)
    hashed = _Hashed(file)
    with naming(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            for piece in hashed.pieces():
                out.write(piece)
    if known is None:
        return hashed.checked(name, path.stat().st_size, None)
    try:
        copied = hashed.checked(name, known.size, Sum(known.size, known.crc))
    except FileError:
        copied = None
    if copied != known:
        raise FileError(f"{name}: is damaged in this backup; restore another one.")
    return known


@contextmanager
def _members(path: Path) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    """Go through the files of a tar, without the folder that they are in."""
    try:
        with tarfile.open(path, "r:") as tar:
            files = ((entry, tar.extractfile(entry)) for entry in tar if entry.isreg())
            yield (
                (entry.name.partition("/")[2], file) for entry, file in files if file is not None
            )
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: there is no such file.") from error
    except (tarfile.TarError, OSError, EOFError) as error:
        raise FileError(f"{path}: is damaged or no backup ({error}); restore another.") from error


def _read_tar(path: Path, found: Files | None = None) -> _Record:
    """Read the record of a tar; ``found`` takes what its files are."""
    record = None
    with _members(path) as members:
        for name, file in members:
            if name == RECORD:
                record = _Record.from_bytes(file.read(), path.name, str(path))
            elif found is not None:
                hashed = _Hashed(file)
                size = sum(map(len, hashed.pieces()))
                found[name] = hashed.checked(name, size, None)
    if record is None:
        raise _cut_short(path)
    return record


def _unpack(path: Path, folder: Path, progress: Progress) -> _Record:
    record, found, done = None, Files(), 0
    with _members(path) as members:
        whole = path.stat().st_size
        for name, file in members:
            if name == RECORD:
                record = _Record.from_bytes(file.read(), path.name, str(path))
                continue
            found[name] = _write(file, folder, name, None)
            done += found[name].size
            progress(done, whole)
    if record is None:
        raise _cut_short(path)
    for name in {*record.files, *found}:
        if found.get(name) != record.files.get(name):
            raise FileError(f"{path}: {name} is missing or damaged; restore another backup.")
    return record


def _cut_short(path: Path) -> FileError:
    return FileError(f"{path}: is cut short, or no backup of a collection; restore another.")
