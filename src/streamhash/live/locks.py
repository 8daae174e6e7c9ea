"""One writer, many readers: locks that the system lets go of when a process dies.

On a local disk only; an object store has no such locks. There a second writer is noticed when
both commit, and old versions are kept for a while instead of until no reader needs them.
"""

import os
import signal
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from streamhash.errors import FileError, InUseError

if TYPE_CHECKING:
    from filelock import BaseFileLock


def _lock(path: Path) -> "BaseFileLock | None":
    """Lock a file, which is made if it is missing; None where another holds it."""
    from filelock import FileLock, Timeout  # slow to import

    lock = FileLock(path, timeout=0, thread_local=False)
    try:
        path.parent.mkdir(exist_ok=True)
        lock.acquire()
    except Timeout:
        return None
    except OSError as error:
        raise FileError(
            f"{path}: cannot be opened ({error.strerror}); make room, or ask for the right to "
            "write there: readers leave a note, too."
        ) from error
    return lock


def _delete(lock: "BaseFileLock") -> None:
    """Delete a locked file: Windows does so when it is released, other systems before."""
    path = Path(lock.lock_file)
    with suppress(OSError):
        path.unlink()
    lock.release()
    with suppress(OSError):
        path.unlink()


class WriterLock:
    """Held by the one process that may change a collection."""

    def __init__(self, folder: Path) -> None:
        path = folder / "writer.lock"
        lock = _lock(path)
        if lock is None:
            holder = "another process"
            with suppress(OSError):  # Windows does not let others read it
                holder = path.read_text().strip() or holder
            raise InUseError(
                f"{folder}: {holder} is writing to this collection; close it there, or open it "
                "here with read_only=True."
            )
        self._held = lock
        with suppress(OSError):
            path.write_text(f"process {os.getpid()}\n")

    def release(self) -> None:
        """Let others write."""
        self._held.release()


class ReaderLease:
    """Says by its name which version a reader uses, so that the writer keeps it."""

    def __init__(self, folder: Path, version: int = 0) -> None:
        self._folder = folder
        self._held = self._lease(version)

    def _lease(self, version: int) -> "BaseFileLock":
        while True:
            lock = _lock(self._folder / "readers" / f"{version}-{uuid.uuid4().hex}")
            if lock is not None:  # else the writer has taken it for that of a dead reader
                return lock

    def use(self, version: int) -> None:
        """Use this version from now on, and no other."""
        with suppress(FileError):  # the disk is full: the older version is kept, and those after it
            before, self._held = self._held, self._lease(version)
            _delete(before)

    def release(self) -> None:
        """Use none any more."""
        _delete(self._held)


def oldest_lease(folder: Path, latest: int) -> int:
    """Return the oldest version that a living reader uses; ``latest`` if there is none."""
    oldest = latest
    for path in (folder / "readers").glob("*"):
        lock = _lock(path)
        if lock is None:  # its reader lives
            version = path.name.partition("-")[0]
            oldest = min(oldest, int(version) if version.isdecimal() else 0)
        else:
            _delete(lock)
    return oldest


@contextmanager
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
