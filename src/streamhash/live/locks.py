"""One writer, many readers: locks that the system lets go of when a process dies.

On a local disk only; an object store has no such locks. There a second writer is noticed when
both commit, and old versions are kept for a while instead of until no reader needs them.

A lock belongs to the process that took it. A child that ``os.fork`` makes holds none, and lets go
of none of its parent's: filelock sees to that.
"""

import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from streamhash.errors import FileError, InUseError

if TYPE_CHECKING:
    from filelock import BaseFileLock

LEASE_SECONDS = 600.0  # that a reader may take from one piece to the next, before it is given up
LEASES = 16  # older versions that are kept for readers, at most


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
            "write there."
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
    """Says by its name which versions of items and labels are read, so that the writer keeps them.

    It is held while something is read, never by a reader that is idle. Where none can be left, as
    on a disk that is full or may only be read, it goes without: what the writer has deleted
    meanwhile is looked for again, in a newer version.
    """

    def __init__(self, folder: Path | None, items: int, labels: int) -> None:
        self._held: BaseFileLock | None = None
        while folder is not None and self._held is None:
            try:
                name = f"{items}.{labels}-{uuid.uuid4().hex}"
                self._held = _lock(folder / "readers" / name)
            except FileError:
                return
            # None: the writer has taken it for that of a dead reader.

    def renew(self) -> None:
        """Say that it is still needed."""
        if self._held is not None:
            with suppress(OSError):
                os.utime(self._held.lock_file)

    def release(self) -> None:
        """Use none any more."""
        held, self._held = self._held, None
        if held is not None:
            _delete(held)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Leased(NamedTuple):
    """The versions that living readers use."""

    items: set[int]
    labels: set[int]


def leased(folder: Path) -> Leased:
    """Return the versions in use: by processes that live, renewed lately, and not too many.

    A reader that has stopped cannot say so; what it reads is given up after a while.
    """
    found: set[tuple[int, int]] = set()
    for path in (folder / "readers").glob("*"):
        with suppress(FileError):  # of another user: it counts until it is old
            lock = _lock(path)
            if lock is not None:  # its reader is dead
                _delete(lock)
                continue
        with suppress(OSError, ValueError):  # gone meanwhile; of version 0.1, which looks again
            if time.time() - path.stat().st_mtime < LEASE_SECONDS:
                items, labels = map(int, path.name.partition("-")[0].split("."))
                found.add((items, labels))
    last = sorted(found)[-LEASES:]
    return Leased({items for items, _ in last}, {labels for _, labels in last})


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
