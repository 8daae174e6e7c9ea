"""The exact index: every code is looked at, so every answer is right."""

import os
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamhash import storage
from streamhash.codes import Codes, check_codes, code_bytes, to_words
from streamhash.errors import FileError, InputError
from streamhash.kernels.hamming import count_within, nearest, word_major
from streamhash.parameters import Whole, check_parameters
from streamhash.search.ids import LARGEST, MISSING, check_ids, from_bytes, kind, to_bytes

__all__ = ["HammingIndex"]

FAR = np.iinfo(np.int32).max  # the distance of an item that is not there, as in faiss


class _Snapshot(NamedTuple):
    """What a search sees: the first ``size`` columns never change once this is published."""

    words: NDArray[np.uint64]  # (n_words, capacity)
    ids: NDArray[Any]  # (capacity,)
    size: int


class HammingIndex:
    """Codes with ids, searched exactly by Hamming distance.

    Ids are whole numbers from 0 up or strings, not both, each at most once. Results are the
    nearest first; **among items at equal distance, the one added first comes first** (replacing a
    code keeps the item's turn). Without ids of your own, items are numbered as they come, and the
    lowest id wins.

    Any number of threads may search while others add, remove or replace: a search sees the index
    as it was when the search began. A call that raises an error has changed nothing.

    Adding takes time in proportion to what is added; removing and replacing also copy the codes
    that stay.

    Parameters
    ----------
    n_bits : int
        Length of the codes, 1 to 1024.

    >>> index = HammingIndex(n_bits=8)
    >>> index.add(np.array([[0b0000], [0b0111], [0b0001]], dtype=np.uint8), ids=["a", "b", "c"])
    >>> distances, ids = index.search(np.array([[0b0011]], dtype=np.uint8), k=2)
    >>> distances, ids
    (array([[1, 1]], dtype=int32), array([['b', 'c']], dtype=object))
    >>> index.remove(["b"])
    >>> "b" in index, len(index)
    (False, 2)
    """

    def __init__(self, n_bits: int) -> None:
        check_parameters("HammingIndex", {"n_bits": n_bits}, {"n_bits": Whole(1, 1024)})
        self.n_bits = int(n_bits)
        n_words = (self.n_bits + 63) // 64
        self._now = _Snapshot(np.zeros((n_words, 0), np.uint64), np.zeros(0, np.int64), 0)
        self._places: dict[Any, int] = {}
        self._next_id = 0
        self._writing = threading.Lock()

    # ------------------------------------------------------------------------------ what it holds

    def __len__(self) -> int:
        return self._now.size

    def __contains__(self, item: object) -> bool:
        return item in self._places

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ids.tolist())

    def __repr__(self) -> str:
        return f"HammingIndex(n_bits={self.n_bits}) of {len(self)} items"

    @property
    def ids(self) -> NDArray[Any]:
        """The ids in the order of adding: int64, or objects (strings)."""
        now = self._now
        return now.ids[: now.size].copy()

    @property
    def codes(self) -> Codes:
        """The packed codes in the order of ``ids``: (n, bytes)."""
        return self._codes(self._now)

    # ------------------------------------------------------------------------------------ changes

    def add(self, codes: ArrayLike, ids: Any = None) -> None:
        """Add codes (n, bytes) under new ids.

        Without ``ids``, they go on from the greatest whole number ever used here, from 0 at first.
        """
        words = self._words(codes, "add")
        n = words.shape[1]
        with self._writing:
            now = self._now
            new_ids = self._number(n) if ids is None else self._check_ids(ids, n, "add")
            for item in new_ids.tolist():
                if item in self._places:
                    raise InputError(
                        f"HammingIndex.add: id {item!r} is already in the index; change its code "
                        "with replace."
                    )
            if n == 0:
                return
            words_now, ids_now = self._room_for(n, new_ids.dtype)
            size = now.size + n
            words_now[:, now.size : size] = words
            ids_now[now.size : size] = new_ids
            self._places.update(zip(new_ids.tolist(), range(now.size, size), strict=True))
            if kind(new_ids) == "whole numbers":
                self._next_id = max(self._next_id, int(new_ids.max()) + 1)
            self._now = _Snapshot(words_now, ids_now, size)

    def remove(self, ids: Any) -> None:
        """Remove the items with these ids."""
        with self._writing:
            now = self._now
            stay = np.ones(now.size, bool)
            stay[self._find(ids, None, "remove")] = False
            left = now.ids[: now.size][stay]
            words = np.compress(stay, now.words[:, : now.size], axis=1)
            self._places = dict(zip(left.tolist(), range(len(left)), strict=True))
            self._now = _Snapshot(words, left, len(left))

    def replace(self, codes: ArrayLike, ids: Any) -> None:
        """Give the items with these ids new codes (n, bytes)."""
        words = self._words(codes, "replace")
        with self._writing:
            places = self._find(ids, words.shape[1], "replace")
            changed = self._now.words.copy()
            changed[:, places] = words
            self._now = self._now._replace(words=changed)

    # ------------------------------------------------------------------------------------- search

    def search(self, codes: ArrayLike, k: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Find the ``k`` nearest items of each query: distances and ids, both (n_queries, k).

        Where the index holds fewer than ``k`` items, rows end in distance 2147483647 and id -1
        (None among strings).
        """
        queries = self._words(codes, "search")
        check_parameters("HammingIndex.search", {"k": k}, {"k": Whole(1)})
        now = self._now
        n_queries, n_found = queries.shape[1], min(k, now.size)
        distances = np.full((n_queries, k), FAR, np.int32)
        ids = np.full((n_queries, k), MISSING[kind(now.ids)], now.ids.dtype)
        limits = n_found * np.arange(n_queries + 1)
        found, positions = nearest(queries, now.words, now.size, limits)
        distances[:, :n_found] = found.reshape(n_queries, n_found)
        ids[:, :n_found] = now.ids[positions].reshape(n_queries, n_found)
        return distances, ids

    def range_search(
        self, codes: ArrayLike, radius: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
        """Find every item at distance ≤ ``radius``: ``limits``, distances, ids.

        The items of query ``q`` stand from ``limits[q]`` up to ``limits[q + 1]``, nearest first.
        (faiss's radius is strict for binary indexes: its 3 is 2 here.)
        """
        queries = self._words(codes, "range_search")
        check_parameters("HammingIndex.range_search", {"radius": radius}, {"radius": Whole(0)})
        now = self._now
        limits = np.zeros(queries.shape[1] + 1, np.int64)
        # No distance exceeds n_bits: so any radius fits the kernel's integers.
        reach = min(int(radius), self.n_bits)
        np.cumsum(count_within(queries, now.words, now.size, reach), out=limits[1:])
        distances, positions = nearest(queries, now.words, now.size, limits)
        return limits, distances, now.ids[positions]

    # -------------------------------------------------------------------------------------- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to one file, whole or not at all; never pickled."""
        with self._writing:
            now, next_id = self._now, self._next_id
        ids = now.ids[: now.size]
        arrays = to_bytes(ids) if kind(ids) == "strings" else {"ids": ids}
        header = {"n_bits": self.n_bits, "next_id": next_id}
        storage.write(path, "index", header, {"codes": self._codes(now), **arrays})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an index that ``save`` wrote."""
        header, arrays = storage.read(path, "index")
        try:
            index = cls(header["n_bits"])
            index.add(arrays["codes"], arrays["ids"] if "ids" in arrays else from_bytes(arrays))
            index._next_id = max(index._next_id, int(header["next_id"]))
        except (InputError, KeyError, ValueError, TypeError) as error:
            raise FileError(
                f"{os.fspath(path)}: the index in this file does not fit together ({error}); "
                "save it again."
            ) from error
        return index

    # ------------------------------------------------------------------------------------ helpers

    def _words(self, codes: ArrayLike, method: str) -> NDArray[np.uint64]:
        place = f"HammingIndex.{method}: codes"
        packed = check_codes(codes, n_bits=self.n_bits, name=place)
        n_spare = 8 * packed.shape[1] - self.n_bits
        if (packed[:, -1] & ((1 << n_spare) - 1)).any():
            raise InputError(
                f"{place}: the last {n_spare} bits of a row, which fill up the last byte of "
                f"{self.n_bits}-bit codes, must be zero; pass codes of {self.n_bits} bits."
            )
        return word_major(to_words(packed))

    def _codes(self, now: _Snapshot) -> Codes:
        rows = np.ascontiguousarray(now.words[:, : now.size].T)  # (n, n_words)
        return rows.view(np.uint8)[:, : code_bytes(self.n_bits)].copy()

    def _number(self, n: int) -> NDArray[np.int64]:
        if len(self) and kind(self._now.ids) == "strings":
            raise InputError(
                "HammingIndex.add: ids did not come, and this index has strings; pass one string "
                "an item."
            )
        if self._next_id + n > LARGEST:
            raise InputError("HammingIndex.add: no greater id is left; pass ids of your own.")
        return np.arange(self._next_id, self._next_id + n)

    def _check_ids(self, ids: Any, n: int | None, method: str) -> NDArray[Any]:
        place = f"HammingIndex.{method}"
        array = check_ids(ids, place=place)
        if n is not None and len(array) != n:
            raise InputError(f"{place}: {n} codes and {len(array)} ids came; pass one id a code.")
        values = array.tolist()
        if len(set(values)) < len(values):
            twice = Counter(values).most_common(1)[0][0]
            raise InputError(f"{place}: id {twice!r} came twice; pass each id once.")
        if len(array) and len(self) and kind(array) != kind(self._now.ids):
            raise InputError(
                f"{place}: ids are {kind(array)}, those of this index are "
                f"{kind(self._now.ids)}; pass {kind(self._now.ids)}."
            )
        return array

    def _find(self, ids: Any, n: int | None, method: str) -> NDArray[np.int64]:
        values = self._check_ids(ids, n, method).tolist()
        for value in values:
            if value not in self._places:
                raise InputError(
                    f"HammingIndex.{method}: id {value!r} is not in the index; "
                    "ask `id in index` first, or add it."
                )
        return np.array([self._places[value] for value in values], np.int64)

    def _room_for(self, n: int, id_type: np.dtype[Any]) -> tuple[NDArray[np.uint64], NDArray[Any]]:
        """Arrays with space for ``n`` more: the present ones, or larger copies."""
        words, ids, size = self._now
        if size + n <= len(ids) and ids.dtype == id_type:
            return words, ids
        capacity = max(size + n, 2 * size, 64)
        more_words, more_ids = (
            np.zeros((len(words), capacity), np.uint64),
            np.empty(capacity, id_type),
        )
        more_words[:, :size], more_ids[:size] = words[:, :size], ids[:size]
        return more_words, more_ids
