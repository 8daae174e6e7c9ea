"""Arrays in files that are mapped to memory: for more items than memory holds.

The files have no name, and are gone with the process that made them: what they hold is read from
the collection at opening, so that they can never be old or damaged. Their pages count as memory of
the process while they are used, but the system takes them back when it needs room.
"""

import mmap
import os
import tempfile
import weakref
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError

SMALL = 2**20  # bytes: arrays up to here are in memory


class MappedArrays:
    """Makes arrays in files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()

    def zeros(self, shape: Any, dtype: Any) -> NDArray[Any]:
        """Return an array of zeros; its place on the disk is taken, so that writing cannot fail."""
        n_bytes = int(prod(np.atleast_1d(shape).tolist())) * np.dtype(dtype).itemsize
        if n_bytes <= SMALL:
            return np.zeros(shape, dtype)
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, n_bytes)
                else:
                    file.truncate(n_bytes)
                mapped = mmap.mmap(file.fileno(), n_bytes)
        except OSError as error:
            raise FileError(
                f"{self._folder}: cannot hold {n_bytes >> 20} MiB of mapped columns "
                f"({error.strerror}); make room, or pass another folder as mmap."
            ) from error
        self._maps.add(mapped)
        return np.frombuffer(mapped, dtype).reshape(shape)

    def let_go(self) -> None:
        """Have nothing in memory of what is not used just now; it is read again when it is."""
        for mapped in [*self._maps]:
            if hasattr(mapped, "madvise"):
                mapped.madvise(mmap.MADV_DONTNEED)
