"""One writer, many readers: locks that the system lets go of when a process dies.

On a local disk only; an object store has no such locks. There a second writer is noticed when
both commit, and old versions are kept for a while instead of until no reader needs them.
"""

import contextlib
import fcntl
import os
import signal
import threading
import uuid
import weakref
from collections.abc import Iterator
from pathlib import Path

from streamhash.errors import FileError, InUseError

__all__ = ["ReaderLease", "WriterLock", "oldest_lease", "uninterrupted"]


class _Locked:
    """An open file with a lock on it, and a line of text for others."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(exist_ok=True)
            self.number = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise FileError(
                f"{path}: cannot be opened ({error.strerror}); make room, or ask for the right to "
                "write there: readers leave a note, too."
            ) from error
        _open.add(self)

    def write(self, text: str) -> None:
        """Replace the text; on a full disk there is none."""
        with contextlib.suppress(OSError):
            os.truncate(self.number, 0)
            os.pwrite(self.number, text.encode(), 0)

    def release(self) -> None:
        """Close the file, and so let go of the lock."""
        if self.number >= 0:
            os.close(self.number)
            self.number = -1


# A forked child must not hold on to the locks of its parent, which may die before it.
_open: "weakref.WeakSet[_Locked]" = weakref.WeakSet()


def _let_go() -> None:
    for each in _open:
        _Locked.release(each)


os.register_at_fork(after_in_child=_let_go)


class WriterLock(_Locked):
    """Held by the one process that may change a collection."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "writer.lock")
        try:
            fcntl.flock(self.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self.number, 100, 0).decode().strip() or "another process"
            self.release()
            raise InUseError(
                f"{folder}: {holder} is writing to this collection; close it there, or open it "
                "here with read_only=True."
            ) from error
        self.write(f"process {os.getpid()}\n")


class ReaderLease(_Locked):
    """Says which version a reader uses, so that the writer keeps it; while it says nothing, all."""

    def __init__(self, folder: Path) -> None:
        while True:
            self._path = folder / "readers" / uuid.uuid4().hex
            super().__init__(self._path)
            fcntl.flock(self.number, fcntl.LOCK_SH)
            if self._path.exists():  # the writer may have taken it for that of a dead reader
                return
            super().release()

    def use(self, version: int) -> None:
        """Use this version from now on, and no other."""
        self.write(f"{version}\n")

    def release(self) -> None:
        """Use none any more."""
        self._path.unlink(missing_ok=True)
        super().release()


def oldest_lease(folder: Path, latest: int) -> int:
    """Return the oldest version that a living reader uses; ``latest`` if there is none."""
    oldest = latest
    for path in (folder / "readers").glob("*"):
        try:
            with path.open() as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:  # it is held: its reader lives
                    text = file.read().strip()
                    oldest = min(oldest, int(text) if text else 0)
                else:
                    path.unlink(missing_ok=True)
        except FileNotFoundError:
            continue
    return oldest


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off Ctrl-C to the end of the block, which stores something and follows in memory.

    Lance would leave a commit half waited for: it may come to pass afterwards.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return
    came = []
    signal.signal(signal.SIGINT, lambda *_: came.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)
