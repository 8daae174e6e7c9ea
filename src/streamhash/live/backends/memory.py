"""The backend in memory: an exact index in this process."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes, code_bytes, unpack
from streamhash.search import HammingIndex
from streamhash.search.code_store import CodeStore
from streamhash.search.id_table import Zeros
from streamhash.search.index import check_width

Keys = NDArray[np.int64]
Read = Callable[[Keys], Iterable[tuple[Codes, Keys]]]  # the codes of those of these keys there are


class MemoryBackend(HammingIndex):
    """Codes by key, in this process: an index, with what a collection asks of a backend."""

    is_shared = False  # other processes search, or change, the same codes

    def __init__(self, n_bits: int, zeros: Zeros = np.zeros) -> None:
        super().__init__(n_bits)
        self._zeros = zeros  # makes its arrays
        self.clear()

    search_soon = HammingIndex.search  # equals in any order, the last changes perhaps not seen

    def check(self) -> None:
        """Raise an UnreachableError if it is known to be away: it is here."""

    def prepare(self) -> None:
        """Get ready to be filled, by whoever makes codes."""

    def clear(self, n: int = 0) -> None:
        """Hold nothing, with room for ``n`` codes to come."""
        with self._writing:
            self._store = CodeStore(code_bytes(self.n_bits), self._zeros)
            self._store.reserve(n)

    def append(self, keys: Keys, codes: Codes) -> None:
        """Add codes under keys that ascend, above all that are here."""
        rows = check_width(codes, self.n_bits, place="MemoryBackend.append")
        with self._writing:
            self._store.add(keys, rows)

    def adopt(self, column: Keys) -> None:
        """Use a column of keys in place of the own, if it begins with the same."""
        with self._writing:
            self._store.adopt(column)

    def fill(self, keys: Keys, read: Read) -> None:
        """Hold these keys and no others, and be the one that is searched from now on."""
        self.clear(len(keys) + len(keys) // 8)
        for codes, some in read(keys):
            self.append(some, codes)

    serve = fill

    def share_of_ones(self) -> list[float] | None:
        """Share of the codes in which each bit is one."""
        now = self.moment()
        ones = np.zeros(self.n_bits, np.int64)
        for _, codes in now.pieces():
            ones += unpack(codes, self.n_bits).sum(axis=0, dtype=np.int64)
        n = now.items.live
        return [round(share, 4) for share in (ones / n).tolist()] if n else None

    def status(self) -> dict[str, Any]:
        """Say that it is here."""
        return {"address": "memory", "reachable": True, "lag": 0, "error": None}

    def retire(self) -> None:
        """Change nothing any more: another backend serves."""

    def drop_replaced(self) -> None:
        """Drop what backends of older models have left: their searches hold it."""

    def drop(self) -> None:
        """Delete what it holds elsewhere: nothing."""

    def close(self) -> None:
        """Let go of it."""
