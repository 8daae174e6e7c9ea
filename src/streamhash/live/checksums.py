"""What is whole on a local disk: files are synced, and their sizes and checksums kept beside them.

The file ``checksums`` of a collection has a line for every commit: its dataset and version, and the
size and CRC-32 of every new file, its manifest included. The first word is the CRC-32 of the rest:

    9c2e0b51 {"dataset": "items", "version": 7, "files": {"data/0101.lance": [3569, 2847301177]}}

A version is *acknowledged* when its line is there, which is written when all its files are synced.
The line itself is synced with the next change. If a power cut takes it, or half of it, its version
is whole all the same: it is only not known to be, and gets another line at the next change.

CRC-32 finds every damage within 32 bits in a row, flipped bits and bytes thus, for certain, and
misses one of four thousand million others. It is part of Python and as fast as reading a file that
was just written; nobody forges it, as whoever can write a file can write its checksum, too.
"""

import json
import os
import sys
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

NAME = "checksums"
ENDS = {".lance": b"LANC", ".manifest": b"LANC", ".arrow": b"ARROW1"}  # of whole files
PIECE = 2**20  # bytes read at a time
SYNC_THREADS = 8  # a file system writes what is synced at the same time in one go

Files = dict[str, "Sum"]  # by their paths in the collection's folder, with "/"


class Sum(NamedTuple):
    """The size of a file, and the checksum of its content."""

    size: int
    crc: int


def checksum(path: Path) -> tuple[Sum, bool]:
    """Return size and checksum of a file as it is now, and whether it has its end."""
    size, crc, end = 0, 0, b""
    # Few calls, as after each of them another thread may go first.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        while piece := os.read(handle, PIECE):
            size, crc, end = size + len(piece), zlib.crc32(piece, crc), (end + piece)[-8:]
    finally:
        os.close(handle)
    return Sum(size, crc), size > 0 and end.endswith(ENDS.get(path.suffix, b""))


def ends_whole(path: Path) -> bool:
    """Tell whether a file has its end, the part of it that is written last."""
    mark = ENDS.get(path.suffix, b"")
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(mark)))
        return size > 0 and file.read() == mark


# ------------------------------------------------------------------------------------- syncing


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Threads of this process; a fork has none of its parent's."""
    return ThreadPoolExecutor(SYNC_THREADS, f"streamhash-sync-{process}")


def sync(paths: Iterable[Path]) -> None:
    """Return when files and folders are on the disk, and not only handed to the system."""
    left = [*dict.fromkeys(paths)]
    if len(left) == 1:
        _sync_one(left[0])
    else:
        for _ in _threads(os.getpid()).map(_sync_one, left):
            pass


def _sync_one(path: Path) -> None:
    if sys.platform == "win32":  # folders are not synced there, and files by those who may write
        if path.is_dir():
            return
        handle = os.open(path, os.O_RDWR)
    else:
        handle = os.open(path, os.O_RDONLY)
    try:
        sync_handle(handle)
    finally:
        os.close(handle)


def sync_handle(handle: int) -> None:
    """Return when the file or folder that is open is on the disk."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)  # fsync leaves it in the disk's own memory
    else:
        os.fsync(handle)


# ---------------------------------------------------------------------------- the file of them


class Checksums:
    """The file ``checksums`` of a collection, and what it says."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / NAME
        self.is_there = False
        self.damaged: list[int] = []  # numbers of lines that are not whole
        self.files: Files = {}
        self._versions: dict[str, int] = {}
        self._unwritten: list[bytes] = []

    def read(self) -> None:
        """Read the file; without one, nothing is known."""
        self.files, self._versions, self.damaged = {}, {}, []
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            self.is_there = False
            return
        self.is_there = True
        content += b"".join(self._unwritten)
        for number, line in enumerate(content.split(b"\n"), 1):
            crc, _, text = line.partition(b" ")
            if not line:
                continue
            if crc != _crc(text):
                self.damaged.append(number)
                continue
            entry = json.loads(text)
            self._take(entry["dataset"], entry["version"], entry["files"])

    def _take(self, dataset: str, version: int, files: dict[str, tuple[int, int]]) -> None:
        self._versions[dataset] = max(version, self._versions.get(dataset, 0))
        self.files.update((f"{dataset}.lance/{name}", Sum(*known)) for name, known in files.items())

    def acknowledged(self, dataset: str) -> int:
        """Return the newest version of a dataset that was acknowledged; 0 if none was."""
        return self._versions.get(dataset, 0)

    def add(self, dataset: str, version: int, files: dict[str, Sum]) -> None:
        """Take a line, which ``write`` writes."""
        self._take(dataset, version, dict(files))
        self._unwritten.append(_line(dataset, version, files))

    @property
    def are_written(self) -> bool:
        """Whether all lines that were taken are in the file."""
        return not self._unwritten

    def write(self) -> None:
        """Append the lines that were taken since."""
        if self._unwritten:
            with self.path.open("ab") as file:
                file.write(b"".join(self._unwritten))
            self.is_there = True
            self._unwritten.clear()

    def write_anew(self) -> None:
        """Leave out what is said of files that are gone."""
        there = {
            f"{folder.parent.name}/{folder.name}/{entry.name}"
            for folder in self.folder.glob("*.lance/*")
            for entry in os.scandir(folder)
        }
        self.files = {name: known for name, known in self.files.items() if name in there}
        new = self.path.with_name(f"{NAME}.new")
        new.write_bytes(to_bytes(self._versions, self.files))
        sync([new])
        new.replace(self.path)
        sync([self.folder])
        self.is_there, self.damaged = True, []
        self._unwritten.clear()

    def problem(
        self, name: str, size: int | None = None, *, up_to: int | None = None
    ) -> str | None:
        """Say what is wrong with a file; of content, only if it has at most so many bytes.

        ``size`` is what a file should have that no line names.
        """
        path, known = self.folder / name, self.files.get(name)
        try:
            found, wanted = path.stat().st_size, size if known is None else known.size
            if wanted is not None and found != wanted:
                return f"has {found:,} bytes instead of {wanted:,}"
            if known is None:
                return None if ends_whole(path) else "is not whole"
            if (up_to is None or found <= up_to) and checksum(path)[0] != known:
                return "is damaged: its checksum is not the one that it was written with"
        except FileNotFoundError:
            return "is missing"
        except OSError as error:
            return f"cannot be read ({error.strerror})"
        return None


def to_bytes(versions: dict[str, int], files: Files) -> bytes:
    """Return the file of checksums that has one line for each dataset."""
    lines = []
    for dataset, version in versions.items():
        start = f"{dataset}.lance/"
        own = {
            name.removeprefix(start): known
            for name, known in files.items()
            if name.startswith(start)
        }
        lines.append(_line(dataset, version, own))
    return b"".join(lines)


def _crc(text: bytes) -> bytes:
    return f"{zlib.crc32(text):08x}".encode()


def _line(dataset: str, version: int, files: dict[str, Sum]) -> bytes:
    """Return a line; it begins with its end, so that half a line before it does no harm."""
    text = json.dumps({"dataset": dataset, "version": version, "files": files}).encode()
    return b"\n" + _crc(text) + b" " + text
