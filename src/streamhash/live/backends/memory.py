"""The home in memory: an exact index in this process."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes, unpack
from streamhash.search import HammingIndex

if TYPE_CHECKING:
    from streamhash.live.backends import Keys, Read

__all__ = ["MemoryHome"]

PIECE = 100_000  # codes unpacked at a time


class MemoryHome(HammingIndex):
    """Codes by key, in this process."""

    is_shared = False

    def glance(self, codes: Codes, k: int) -> tuple[NDArray[np.int32], "Keys"]:
        """Search: it is quick enough."""
        return self.search(codes, k)

    def check(self) -> None:
        """It is here."""

    def prepare(self) -> None:
        """It is ready."""

    def fill(self, keys: "Keys", read: "Read") -> None:
        """Hold these keys and no others."""
        there = self.ids
        self.delete(np.setdiff1d(there, keys, assume_unique=True))
        for codes, some in read(np.setdiff1d(keys, there, assume_unique=True)):
            self.add(some, codes)

    def serve(self, keys: "Keys", read: "Read") -> None:
        """Hold these keys and no others."""
        self.fill(keys, read)

    def share_of_ones(self) -> list[float] | None:
        """Share of the codes in which each bit is one."""
        codes = self.codes
        if len(codes) == 0:
            return None
        ones = np.zeros(self.n_bits, np.int64)
        for start in range(0, len(codes), PIECE):
            ones += unpack(codes[start : start + PIECE], self.n_bits).sum(axis=0, dtype=np.int64)
        return [round(share, 4) for share in (ones / len(codes)).tolist()]

    def status(self) -> dict[str, Any]:
        """Say that it is here."""
        return {"home": "memory", "reachable": True, "lag": 0, "error": None}

    def retire(self) -> None:
        """It changes by itself in no case."""

    def sweep(self) -> None:
        """The others are gone when no search uses them."""

    def close(self) -> None:
        """Nothing is to be let go of."""
