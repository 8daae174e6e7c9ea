"""A disk that fails when it is told to, is watched, and loses its power at any moment.

``Disk`` steers ``faults/disk.c`` in this process, which from then on cannot do without it.
``Replay`` goes through a log of it and builds what a power cut may leave, at the worst: of files
and folders only what was synced is sure; all else is there, or not, or in parts, by chance.
"""

import ctypes
import errno
import hashlib
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parent / "faults" / "disk.c"
ENTRY = struct.Struct("iiiiiq") if struct.calcsize("iiiiiq") == 32 else struct.Struct("iiiii4xq")
PAGE = 4096
ERRORS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC}
ALL = "orwsnlumt"  # open, read, write, sync, rename, link, unlink, make a folder, truncate


def why_not():
    """Say why there is no such disk here; None where there is."""
    if not sys.platform.startswith("linux"):
        return "calls to the system are watched on Linux only"
    if compiler() is None:
        return "no C compiler is installed, and neither is ziglang"
    return None


def compiler():
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    try:
        import ziglang  # noqa: F401
    except ImportError:
        return None
    return [sys.executable, "-m", "ziglang", "cc"]


class Disk:
    """All calls of this process that touch files below a folder."""

    def __init__(self):
        digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
        library = Path(tempfile.gettempdir()) / f"streamhash-disk-{digest}-{os.getuid()}.so"
        if not library.exists():
            made = library.with_suffix(f".{os.getpid()}")
            command = [*compiler(), "-O1", "-shared", "-fPIC", "-o", str(made), str(SOURCE)]
            subprocess.run(command, check=True)
            made.replace(library)
        self._library = ctypes.CDLL(str(library))
        self._library.disk_counted.restype = ctypes.c_long
        self._library.disk_tally.restype = ctypes.c_long
        error = self._library.disk_start()
        if error:
            raise OSError(error, os.strerror(error))

    def watch(self, folder):
        self._library.disk_folder(str(folder).encode())

    def fail(self, kinds=ALL, at=1, error="EIO", *, lasting=False):
        """Fail the ``at``-th call of these kinds from now on, and those after it if it lasts."""
        code = ERRORS[error]
        self._library.disk_fail(kinds.encode(), ctypes.c_long(at), code, int(lasting))

    def tally(self):
        """How many calls there were of each kind."""
        return Counter({kind: self._library.disk_tally(ord(kind)) for kind in ALL})

    @property
    def counted(self):
        return self._library.disk_counted()

    def work(self):
        """Fail no more."""
        self._library.disk_fail(b"", ctypes.c_long(0), 0, 0)

    def log(self, path):
        file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self._library.disk_log(file)

    def mark(self, number):
        self._library.disk_mark(number)


class File:
    def __init__(self):
        self.synced = b""
        self.content = bytearray()
        self.written = []  # since it was synced: from where to where

    def write(self, offset, data):
        offset = len(self.content) if offset < 0 else offset
        if offset > len(self.content):
            self.content.extend(bytes(offset - len(self.content)))
        self.content[offset : offset + len(data)] = data
        self.written.append((offset, offset + len(data)))

    def sync(self):
        self.synced, self.written = bytes(self.content), []

    def after_cut(self, choose):
        """What may be left of it."""
        if bytes(self.content) == self.synced:
            return self.synced
        kind = choose.choice(["none", "all", "part", "zeros", "pages"])
        if kind == "none":
            return self.synced
        if kind == "part":
            return bytes(self.content[: choose.randrange(len(self.content) + 1)])
        left = bytearray(self.content)
        if kind in ("zeros", "pages"):
            for start, stop in self.written:
                for at in range(start - start % PAGE, stop, PAGE):
                    if kind == "zeros" or choose.random() < 0.5:
                        first, last = max(at, start), min(at + PAGE, stop)
                        left[first:last] = bytes(last - first)
        return bytes(left)


class Folder:
    def __init__(self):
        self.entries, self.synced, self.changes = {}, {}, []

    def change(self, change):
        change(self.entries)
        self.changes.append(change)

    def sync(self):
        self.synced, self.changes = dict(self.entries), []

    def after_cut(self, choose):
        entries = dict(self.synced)
        kind = choose.choice(["none", "all", "first", "some"])
        n = choose.randrange(len(self.changes) + 1)
        for i, change in enumerate(self.changes):
            if (
                kind == "all"
                or (kind == "first" and i < n)
                or (kind == "some" and choose.random() < 0.5)
            ):
                change(entries)
        return entries


def put(name, what):
    def change(entries):
        entries[name] = what

    return change


def move(name, other, what):
    def change(entries):
        entries.pop(name, None)
        entries[other] = what

    return change


def take(name):
    return lambda entries: entries.pop(name, None)


class Replay:
    """The folder after some of the calls of a log, beginning with what was there and is synced."""

    def __init__(self, folder, start):
        self.folder, self.root = str(folder), Folder()
        self._opened = {}
        self._read(start, self.root)

    def _read(self, path, folder):
        for entry in os.scandir(path):
            made = Folder() if entry.is_dir() else File()
            folder.entries[entry.name] = made
            if entry.is_dir():
                self._read(entry.path, made)
            else:
                made.content = bytearray(Path(entry.path).read_bytes())
                made.sync()
        folder.sync()

    def _find(self, path):
        """The folder that a path is in, and its name there."""
        parts = [part for part in path[len(self.folder) :].split("/") if part]
        if not parts:
            return None, ""
        folder = self.root
        for part in parts[:-1]:
            folder = folder.entries[part]
        return folder, parts[-1]

    def _at(self, path):
        folder, name = self._find(path)
        return self.root if folder is None else folder.entries.get(name)

    def apply(self, entry):
        kind, number, flags, offset, data, other = entry
        if kind == "o":
            folder, name = self._find(data.decode())
            what = self._at(data.decode())
            if what is None:
                what = File()
                folder.change(put(name, what))
            elif flags & os.O_TRUNC and isinstance(what, File):
                what.content = bytearray()
            self._opened[number] = what
        elif kind == "w":
            self._opened[number].write(offset, data)
        elif kind == "t":
            del self._opened[number].content[offset:]
        elif kind == "s":
            self._opened[number].sync()
        elif kind == "m":
            folder, name = self._find(data.decode())
            folder.change(put(name, Folder()))
        elif kind == "u":
            folder, name = self._find(data.decode())
            folder.change(take(name))
        elif kind in "nl":
            what = self._at(data.decode())
            (before, name), (folder, new) = self._find(data.decode()), self._find(other.decode())
            if kind == "l":
                folder.change(put(new, what))
            elif before is folder:
                folder.change(move(name, new, what))
            else:
                before.change(take(name))
                folder.change(put(new, what))

    def build(self, path, seed):
        """Write what is left after a power cut."""
        choose = random.Random(seed)
        contents = {}
        self._build(self.root, Path(path), choose, contents)

    def _build(self, folder, path, choose, contents):
        path.mkdir()
        for name, what in folder.after_cut(choose).items():
            if isinstance(what, Folder):
                self._build(what, path / name, choose, contents)
            else:  # one file may have two names
                if id(what) not in contents:
                    contents[id(what)] = what.after_cut(choose)
                (path / name).write_bytes(contents[id(what)])


def read_log(path):
    """The entries of a log: kind, number, flags, offset, data, second path."""
    content, at = Path(path).read_bytes(), 0
    while at < len(content):
        kind, number, flags, length, second, offset = ENTRY.unpack_from(content, at)
        at += ENTRY.size
        data, other = content[at : at + length], content[at + length : at + length + second]
        at += length + second
        yield chr(kind), number, flags, offset, data, other
