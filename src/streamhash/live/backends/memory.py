"""The backend in memory: an exact index in this process."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes, unpack
from streamhash.search import HammingIndex

UNPACKED_CODES = 100_000  # at a time

Keys = NDArray[np.int64]
Read = Callable[[Keys], Iterable[tuple[Codes, Keys]]]  # the codes of those of these keys there are


class MemoryBackend(HammingIndex):
    """Codes by key, in this process: an index, with what a collection asks of a backend."""

    is_shared = False  # other processes search, or change, the same codes

    search_soon = HammingIndex.search  # equals in any order, the last changes perhaps not seen

    def check(self) -> None:
        """Raise an UnreachableError if it is known to be away: it is here."""

    def prepare(self) -> None:
        """Get ready to be filled, by whoever makes codes."""

    def fill(self, keys: Keys, read: Read) -> None:
        """Hold these keys and no others, reading only codes that are missing."""
        there = self.ids
        self.delete(np.setdiff1d(there, keys, assume_unique=True))
        for codes, some in read(np.setdiff1d(keys, there, assume_unique=True)):
            self.add(some, codes)

    serve = fill  # and be the one that is searched from now on

    def share_of_ones(self) -> list[float] | None:
        """Share of the codes in which each bit is one."""
        codes = self.codes
        if len(codes) == 0:
            return None
        ones = np.zeros(self.n_bits, np.int64)
        for start in range(0, len(codes), UNPACKED_CODES):
            some = codes[start : start + UNPACKED_CODES]
            ones += unpack(some, self.n_bits).sum(axis=0, dtype=np.int64)
        return [round(share, 4) for share in (ones / len(codes)).tolist()]

    def status(self) -> dict[str, Any]:
        """Say that it is here."""
        return {"address": "memory", "reachable": True, "lag": 0, "error": None}

    def retire(self) -> None:
        """Change nothing any more: another backend serves."""

    def drop_replaced(self) -> None:
        """Drop what backends of older models have left: their searches hold it."""

    def close(self) -> None:
        """Let go of it."""
