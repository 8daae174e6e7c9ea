"""One writer, many readers: locks that the system lets go of when a process dies.

On a local disk only; an object store has no such locks. There a second writer is noticed when
both commit, and old versions are kept for a while instead of until no reader needs them.
"""

import fcntl
import os
import uuid
from pathlib import Path

from streamhash.errors import InUseError

__all__ = ["ReaderLease", "WriterLock", "oldest_lease"]


class WriterLock:
    """Held by the one process that may change a collection."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / "writer.lock").open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.seek(0)
            holder = self._file.read().strip() or "another process"
            self._file.close()
            raise InUseError(
                f"{folder}: {holder} is writing to this collection; close it there, or open it "
                "here with read_only=True."
            ) from error
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()}\n")
        self._file.flush()

    def release(self) -> None:
        """Let another process write."""
        self._file.close()


class ReaderLease:
    """Says which version a reader uses, so that the writer keeps it."""

    def __init__(self, folder: Path) -> None:
        (folder / "readers").mkdir(exist_ok=True)
        self._path = folder / "readers" / uuid.uuid4().hex
        self._file = self._path.open("w")
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def use(self, version: int) -> None:
        """Use this version from now on, and no other."""
        self._file.seek(0)
        self._file.truncate()
        self._file.write(f"{version}\n")
        self._file.flush()

    def release(self) -> None:
        """Use none any more."""
        self._path.unlink(missing_ok=True)
        self._file.close()


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
                    # Nothing written yet: about to open some version that is still there.
                    oldest = min(oldest, int(text) if text else 0)
                else:
                    path.unlink(missing_ok=True)
        except FileNotFoundError:
            continue
    return oldest
