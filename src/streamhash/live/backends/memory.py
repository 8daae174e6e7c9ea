"""The backend in memory: an exact index in this process."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes, code_bytes, unpack
from streamhash.errors import FileError
from streamhash.search import HammingIndex
from streamhash.search.code_store import CodeStore
from streamhash.search.directory import LiveKeys
from streamhash.search.id_table import Zeros
from streamhash.search.index import check_width

Keys = NDArray[np.int64]
# The codes of those of these keys there are; None: of all.
Read = Callable[[Keys | None], Iterable[tuple[Codes, Keys]]]


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

    def delete(self, keys: Keys) -> None:
        """Delete keys; those that are not here are passed over."""
        with self._writing:
            positions = self._store.find(keys)
            self._store.delete(positions[positions >= 0])

    def fill(self, keys: LiveKeys, read: Read) -> None:
        """Hold these keys and no others."""
        self.clear(len(keys) + len(keys) // 8)
        for piece in keys.pieces():
            self.append(piece, np.zeros((len(piece), code_bytes(self.n_bits)), np.uint8))
        self._recode(len(keys), read)

    serve = fill  # and be the one that is searched from now on

    def take_over(self, other: "MemoryBackend", n: int, read: Read) -> None:
        """Hold what another has held, which changes no more, with the new codes of ``n`` of them.

        Both use the same columns: only codes are there twice for a while.
        """
        with self._writing:
            self._store.take_places(other._store)
        self._recode(n, read)

    def _recode(self, n: int, read: Read) -> None:
        """Give all keys their codes; ``n`` must come."""
        for codes, keys in read(None):
            rows = check_width(codes, self.n_bits, place="MemoryBackend.serve")
            with self._writing:
                n -= self._store.recode(keys, rows)
        if n:
            raise FileError(f"the codes of {n} items are missing; refresh the collection.")

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
