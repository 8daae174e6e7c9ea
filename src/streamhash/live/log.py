"""Small changes, quickly: one record at the end of a file, folded into the datasets later.

A commit of Lance writes several files, and each has to be synced; a record is one write and one
sync. So adds, labels and deletes of a few items go to a log first. What it holds is also in memory
(``Tail``), where whoever reads items finds it; when it has grown, or before anything else is
stored, it is *folded*: one commit takes its items into their dataset, as if they had come at once.

A record is a change, whole or not at all, and with it the learner's light state after it, or by how
much that differs from the one before (``delta.py``):

    length, CRC-32 of the content, its place in the file, CRC-32 of these three
    length of the head, the head (JSON), then vectors, codes, and the learner or its delta

A record counts if its checksums are right and all before it count. Each is written only when the
one before it is synced; so what a power cut leaves half-written is the last, which was never
acknowledged. Beside the log, ``acknowledged`` says how much of it was: damage before that place is
damage, and no half-written record. That file is never synced, as less does no harm.

The learner's row names the log in force, so that folding ends with the commit of a row that names
another: until then the log counts, whatever of it the datasets have already, and from then on no
more. A log belongs to the one process that made it.
"""

import json
import os
import struct
import uuid
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.errors import FileError
from streamhash.live import arrow
from streamhash.live.arrow import CODE, Batch, Keys
from streamhash.live.checksums import sync, sync_handle

if TYPE_CHECKING:
    from streamhash.live.ahead import Ahead

FOLDER, ACKNOWLEDGED = "log", "acknowledged"
HEAD = struct.Struct("<QIQI")  # of a record: length, checksum, place, checksum of these
WIDTH = struct.Struct("<I")  # of the length of the head
ROOM = 2**23  # bytes of vectors in memory, at first; where none was written, it takes none
NO_KEYS = np.empty(0, np.int64)
# Of records; those of format 1 do not say so, and have the whole learner each. In those of format 2
# a delta has fewer parts.
FORMAT = 3


class Change(NamedTuple):
    """What a record holds; labels and metadata are JSON, as they are stored."""

    keys: Keys = NO_KEYS  # of new items, one after the other
    ids: Any = NO_KEYS
    vectors: Any = None  # (n, d)
    labels: Sequence[str | None] = ()
    metadata: Sequence[str | None] = ()
    codes: Codes | None = None
    gone: Keys = NO_KEYS  # items that were deleted, or whose place new ones take
    labelled: Keys = NO_KEYS  # items that were there, and have other labels now
    new_labels: Sequence[str | None] = ()
    learner: bytes | None = None  # if it has learned something
    state: int | None = None  # the version of its heavy part
    delta: bytes | None = None  # if it has hardly changed

    def to_bytes(self) -> list[bytes]:
        """Return it as pieces of a record."""
        vectors, codes = self.vectors, self.codes
        head = {
            "format": FORMAT,
            "first": int(self.keys[0]) if len(self.keys) else 0,
            "ids": self.ids.tolist(),
            "labels": _if_any(self.labels),
            "metadata": _if_any(self.metadata),
            "vectors": None if vectors is None else [str(vectors.dtype), vectors.shape[1]],
            "codes": None if codes is None else codes.shape[1],
            "gone": self.gone.tolist(),
            "labelled": self.labelled.tolist(),
            "new_labels": [*self.new_labels],
            "learner": None if self.learner is None else len(self.learner),
            "state": self.state,
            "delta": None if self.delta is None else len(self.delta),
        }
        text = json.dumps(head, ensure_ascii=True).encode()
        arrays = [each.tobytes() for each in (vectors, codes) if each is not None]
        return [WIDTH.pack(len(text)), text, *arrays, self.learner or self.delta or b""]

    @classmethod
    def from_bytes(cls, content: bytes) -> "Change":
        """Undo ``to_bytes``."""
        (length,) = WIDTH.unpack_from(content)
        at = WIDTH.size + length
        head = json.loads(content[WIDTH.size : at])
        if head.get("format", 1) > FORMAT:
            raise ValueError(f"its records have format {head['format']}, of a later streamhash")
        n, vectors, codes = len(head["ids"]), None, None
        if head["vectors"] is not None:
            kind, width = np.dtype(head["vectors"][0]), head["vectors"][1]
            vectors = np.frombuffer(content, kind, n * width, at).reshape(n, width)
            at += vectors.nbytes
        if head["codes"] is not None:
            codes = np.frombuffer(content, np.uint8, n * head["codes"], at).reshape(n, -1)
            at += codes.nbytes
        is_text = n > 0 and isinstance(head["ids"][0], str)
        return cls(
            np.arange(head["first"], head["first"] + n),
            np.array(head["ids"], object if is_text else np.int64),
            vectors,
            head["labels"] or [None] * n,
            head["metadata"] or [None] * n,
            codes,
            np.array(head["gone"], np.int64),
            np.array(head["labelled"], np.int64),
            head["new_labels"],
            None if head["learner"] is None else content[at:],
            head["state"],
            None if head.get("delta") is None else content[at:],
        )


def _if_any(values: Sequence[str | None]) -> Sequence[str | None] | None:
    """Return values, or None if all are None."""
    return None if [*values].count(None) == len(values) else [*values]


# ------------------------------------------------------------------------------------- the file


class Log:
    """The log of one writer: it is made, appended to, and left for another."""

    def __init__(self, folder: Path, *, is_synced: bool) -> None:
        self.name, self.size = uuid.uuid4().hex, 0
        self._is_synced = is_synced
        self.path = path_of(folder, self.name)
        with naming(self.path, "written"):
            self.path.parent.mkdir(exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._file = os.open(self.path, flags | os.O_EXCL)
            self._notes = os.open(self.path.with_name(ACKNOWLEDGED), flags)
            if is_synced:
                sync([self.path, self.path.parent, folder])

    def append(self, change: Change) -> int:
        """Write a change, and return its bytes when it is on the disk.

        If that fails, the change is taken back as far as the disk lets it, and this log is not to
        be used any more: what could not be synced once may be lost, though it can be read.
        """
        content = change.to_bytes()
        length, crc = sum(map(len, content)), 0
        for piece in content:
            crc = zlib.crc32(piece, crc)
        start = struct.pack("<QIQ", length, crc, self.size)
        record = b"".join([start, WIDTH.pack(zlib.crc32(start)), *content])
        with naming(self.path, "written"):
            try:
                _write(self._file, self.size, record)
                if self._is_synced:
                    sync_handle(self._file)
            except OSError:
                os.ftruncate(self._file, self.size)
                raise
        self.size += len(record)
        return len(record)

    def acknowledge(self) -> None:
        """Take note that all so far was acknowledged; without a sync, and if it can be."""
        with suppress(OSError):
            _write(self._notes, 0, note(self.name, self.size))

    def close(self) -> None:
        """Use it no more."""
        for handle in (self._file, self._notes):
            os.close(handle)


def note(name: str, size: int) -> bytes:
    """Return what the file ``acknowledged`` says of a log."""
    text = f"{name} {size:020d}"
    return f"{text} {zlib.crc32(text.encode()):08x}\n".encode()


def path_of(folder: Path, name: str) -> Path:
    """Where a log is."""
    return folder / FOLDER / name


def size_of(folder: Path, name: str) -> int:
    """Return how large a log is now; -1 if it is gone."""
    try:
        return path_of(folder, name).stat().st_size
    except OSError:
        return -1


def read(folder: Path, name: str, start: int = 0) -> Iterator[tuple[Change, int]]:
    """Go through the changes of a log from a place on, each with the place where it ends."""
    path = path_of(folder, name)
    with naming(path, "read"):
        acknowledged = _acknowledged(folder, name)  # before: more may come
        with path.open("rb") as file:
            file.seek(start)
            content = file.read()
    at = 0
    while at < len(content) or start + at < acknowledged:
        length = _length(content, at, start + at)
        if length is None:
            if start + at < acknowledged:
                raise FileError(f"{path}: is damaged at byte {start + at:,}")
            return
        body = at + HEAD.size
        at = body + length
        yield Change.from_bytes(content[body:at]), start + at


def _length(content: bytes, at: int, place: int) -> int | None:
    """Return the length of a record's content; None if it is not whole."""
    if at + HEAD.size > len(content):
        return None
    length, crc, said, own = HEAD.unpack_from(content, at)
    body = at + HEAD.size
    if own != zlib.crc32(content[at : body - WIDTH.size]) or said != place:
        return None
    if body + length > len(content) or zlib.crc32(content[body : body + length]) != crc:
        return None
    return int(length)


def _acknowledged(folder: Path, name: str) -> int:
    """Return how much of a log was acknowledged, as far as that is known."""
    try:
        words = path_of(folder, ACKNOWLEDGED).read_text().split()
    except (OSError, ValueError):
        return 0
    if (
        len(words) != 3
        or words[0] != name
        or f"{zlib.crc32(' '.join(words[:2]).encode()):08x}" != words[2]
    ):
        return 0
    return int(words[1])


def forget(folder: Path, but: set[str]) -> None:
    """Delete all logs but some."""
    if (folder / FOLDER).is_dir():
        for path in (folder / FOLDER).iterdir():
            if path.name not in but:
                path.unlink(missing_ok=True)


def _write(handle: int, place: int, content: bytes) -> None:
    os.lseek(handle, place, os.SEEK_SET)
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]


class naming:  # noqa: N801  a context manager
    """Name the file that the disk refuses."""

    def __init__(self, path: Path | str, verb: str) -> None:
        self._path, self._verb = path, verb

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError):
            raise FileError(
                f"{self._path}: cannot be {self._verb} ({error.strerror or error}); make room or "
                "mend the access, and call again."
            ) from error


# ------------------------------------------------------------------------------- what is in memory


class Rows(NamedTuple):
    """The items of a log, by ascending keys; arrays and lists may have room for more."""

    size: int
    keys: Keys
    ids: NDArray[Any]
    vectors: NDArray[Any]
    codes: Codes | None
    labels: list[str | None]
    metadata: list[str | None]

    def holds(self, keys: Keys) -> NDArray[np.bool_]:
        """Tell which keys are here."""
        if self.size == 0:
            return np.zeros(keys.shape, bool)
        places = np.minimum(self.places(keys), self.size - 1)
        return np.equal(self.keys[places], keys)

    def places(self, keys: Keys) -> Keys:
        """Places of keys that are here."""
        return np.searchsorted(self.keys[: self.size], keys)

    def batch(self, places: Keys, columns: Sequence[str]) -> Batch:
        """Return the items at some places, with these columns."""
        coded = any(name.startswith(CODE) for name in columns) and self.codes is not None
        return Batch(
            self.ids[places] if "id" in columns else None,
            self.vectors[places] if "vector" in columns else None,
            arrow.labels_from_json([self.labels[i] for i in places])
            if "label" in columns
            else None,
            arrow.from_json([self.metadata[i] for i in places]) if "metadata" in columns else None,
            self.codes[places] if coded and self.codes is not None else None,
            self.keys[places],
        )


class Tail:
    """What the log holds, in memory. Its rows are replaced and never written to, but behind."""

    def __init__(self) -> None:
        self.rows = Rows(0, NO_KEYS, NO_KEYS, np.empty((0, 0), np.float32), None, [], [])
        self.gone: set[int] = set()
        self.labelled: list[int] = []
        self.new_labels: list[str | None] = []
        self.n_changes = self.n_bytes = 0
        self.learner: tuple[bytes, int | None] | None = None  # the last that came whole,
        self.deltas: list[bytes] = []  # and what it differs by since then
        self.ahead: Ahead | None = None  # rows of it that are in files already

    def __bool__(self) -> bool:
        return self.n_changes > 0

    def add(self, change: Change, n_bytes: int) -> None:
        """Follow a change that was written."""
        n = len(change.keys)
        if n:
            self._widen(change)
            now = self.rows
            new = slice(now.size, now.size + n)
            now.keys[new], now.ids[new], now.vectors[new] = change.keys, change.ids, change.vectors
            if now.codes is not None and change.codes is not None:
                now.codes[new] = change.codes
            now.labels.extend(change.labels)
            now.metadata.extend(change.metadata)
            self.rows = now._replace(size=now.size + n)
        self.gone.update(change.gone.tolist())
        self.labelled += change.labelled.tolist()
        self.new_labels += change.new_labels
        self.n_changes, self.n_bytes = self.n_changes + 1, self.n_bytes + n_bytes
        if change.learner is not None:
            self.learner, self.deltas = (change.learner, change.state), []
        if change.delta is not None:
            self.deltas.append(change.delta)

    def _widen(self, change: Change) -> None:
        now, n = self.rows, self.rows.size
        if n + len(change.keys) <= len(now.keys):
            return
        room = max(n + len(change.keys), 2 * n, ROOM // max(change.vectors[0].nbytes, 1))

        def wider(old: NDArray[Any] | None, new: Any) -> Any:
            if new is None:
                return None
            array = np.empty((room, *new.shape[1:]), new.dtype)
            if n and old is not None:
                array[:n] = old[:n]
            return array

        self.rows = Rows(
            n,
            wider(now.keys, change.keys),
            wider(now.ids, change.ids),
            wider(now.vectors, change.vectors),
            wider(now.codes, change.codes),
            now.labels,
            now.metadata,
        )

    def without(self, known: NDArray[np.bool_]) -> None:
        """Leave out rows that their dataset has already."""
        kept = np.flatnonzero(~known)
        now = self.rows
        self.rows = Rows(
            len(kept),
            now.keys[kept],
            now.ids[kept],
            now.vectors[kept],
            None if now.codes is None else now.codes[kept],
            [now.labels[i] for i in kept],
            [now.metadata[i] for i in kept],
        )

    def places(self) -> Keys:
        """Places of the items that are there."""
        keys = self.rows.keys[: self.rows.size]
        return (
            np.flatnonzero(~np.isin(keys, self.gone_keys())) if self.gone else np.arange(len(keys))
        )

    def gone_keys(self) -> Keys:
        """The keys of items that are gone, ascending."""
        return np.sort(np.fromiter(self.gone, np.int64, len(self.gone)))

    @property
    def last_key(self) -> int:
        """The greatest key, also of an item that is gone; -1 where there is none."""
        return int(self.rows.keys[self.rows.size - 1]) if self.rows.size else -1
