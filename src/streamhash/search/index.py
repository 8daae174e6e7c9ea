"""The exact index: every code is looked at, so every answer is right."""

import os
import threading
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamhash import storage
from streamhash.codes import Codes, check_codes, code_bytes
from streamhash.errors import FileError, InputError, shown
from streamhash.kernels.hamming import asymmetric
from streamhash.kernels.hamming.planes import from_planes
from streamhash.kernels.hamming.scan import nearest, within
from streamhash.labels import as_numpy
from streamhash.parameters import Whole, check_parameters
from streamhash.search.code_store import CodeStore, Snapshot
from streamhash.search.ids import (
    LARGEST_ID,
    MISSING_ID,
    check_ids,
    check_once,
    from_bytes,
    kind,
    to_bytes,
)

NO_DISTANCE = np.iinfo(np.int32).max  # the distance of an item that is not there, as in faiss
MOST_ANSWERS = 10**8  # of a search, 1.2 GB, unless that many items are there


def check_width(codes: ArrayLike, n_bits: int, *, place: str) -> Codes:
    """Return codes of ``n_bits`` whose last byte is filled up with zeros, or say what is wrong."""
    rows = check_codes(codes, n_bits=n_bits, name=f"{place}: codes")
    n_spare = 8 * rows.shape[1] - n_bits
    if n_spare and (rows[:, -1] & ((1 << n_spare) - 1)).any():
        raise InputError(
            f"{place}: codes: the last {n_spare} bits of a row, which fill up the last byte of "
            f"{n_bits}-bit codes, must be zero; pass codes of {n_bits} bits."
        )
    return rows


def check_projections(projections: ArrayLike, n_bits: int, *, place: str) -> NDArray[np.float32]:
    """Return projections (n, n_bits) as float32, or say what is wrong."""
    array = np.asarray(projections)
    if array.dtype.kind not in "fiu" or array.ndim != 2 or array.shape[1] != n_bits:
        raise InputError(
            f"{place}: projections: expected numbers of shape (n, {n_bits}), but came "
            f"{array.dtype} of shape {array.shape}; make them with a hasher's project(X)."
        )
    with np.errstate(over="ignore"):
        rows = array.astype(np.float32, copy=False)
    if not np.isfinite(rows).all():
        raise InputError(
            f"{place}: projections hold values that are not finite in float32; pass numbers."
        )
    return rows


def check_k(k: Any, n_queries: int, n_items: int, *, place: str) -> None:
    """Refuse what is no number of neighbours, or more answers than anybody has memory for."""
    if type(k) is not int or k < 1:
        check_parameters(place, {"k": k}, {"k": Whole(1)})
    if n_queries * k > max(MOST_ANSWERS, n_queries * n_items):
        raise InputError(
            f"{place}: {n_queries} queries with k={shown(k)} are more than {MOST_ANSWERS} answers, "
            f"and there are {n_items} items; pass a smaller k, or fewer queries at a time."
        )


def _filled_up(
    now: Snapshot, k: int, found: NDArray[Any], positions: NDArray[np.int64], missing: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return rows of ``k`` distances and ids, also where fewer items were found."""
    if found.shape[1] == k:
        return found, now.ids[positions]
    distances = np.full((len(found), k), missing, found.dtype)
    ids = np.full((len(found), k), MISSING_ID[kind(now.ids)], now.ids.dtype)
    distances[:, : found.shape[1]] = found
    ids[:, : found.shape[1]] = now.ids[positions]
    return distances, ids


class HammingIndex:
    """Codes with ids, searched exactly by Hamming distance.

    Ids are whole numbers from 0 up or strings, not both, each at most once. Results are the
    nearest first; **among items at equal distance the lowest id comes first**, and among string ids
    the one added first (replacing a code keeps the item's turn). Without ids of your own, items are
    numbered as they come. How many threads search is set by ``streamhash.set_threads``; it changes
    no result.

    Any number of threads may search while others add, delete or replace: a search sees the index
    as it was when the search began, and nobody waits for it. A call that raises an error has
    changed nothing.

    Adding, deleting and replacing take time in proportion to what is added, deleted or replaced,
    on average: now and then the index is laid out anew. A code takes its bytes, its id eight more
    (and eight more once something was deleted).

    Parameters
    ----------
    n_bits : int
        Length of the codes, 1 to 1024.

    >>> index = HammingIndex(n_bits=8)
    >>> index.add(["a", "b", "c"], np.array([[0b0000], [0b0111], [0b0001]], dtype=np.uint8))
    >>> distances, ids = index.search(np.array([[0b0011]], dtype=np.uint8), k=2)
    >>> distances, ids
    (array([[1, 1]], dtype=int32), array([['b', 'c']], dtype=object))
    >>> index.delete(["b"])
    >>> "b" in index, len(index)
    (False, 2)
    """

    def __init__(self, n_bits: int) -> None:
        check_parameters("HammingIndex", {"n_bits": n_bits}, {"n_bits": Whole(1, 1024)})
        self.n_bits = int(n_bits)
        self._store = CodeStore(code_bytes(self.n_bits))
        self._next_id = 0
        self._writing = threading.Lock()

    # ------------------------------------------------------------------------------ what it holds

    def __len__(self) -> int:
        return self._store.now.items.live

    def __contains__(self, item: object) -> bool:
        try:
            ids = check_ids([item], place="")
        except InputError:
            return False
        with self._writing:
            return bool(self._store.find(ids)[0] >= 0)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ids.tolist())

    def __repr__(self) -> str:
        return f"HammingIndex(n_bits={self.n_bits}) of {len(self)} items"

    @property
    def ids(self) -> NDArray[Any]:
        """The ids: int64 from the lowest up, or objects (strings) in the order of adding."""
        now = self._store.now
        return now.ids[now.positions()]

    @property
    def codes(self) -> Codes:
        """The packed codes in the order of ``ids``: (n, bytes)."""
        return self.contents()[1]

    def contents(self) -> tuple[NDArray[Any], Codes]:
        """Copies of the ids and their codes, both of one moment, while others change the index."""
        now = self._store.now
        positions = now.positions()
        return now.ids[positions], from_planes(now.items.planes, positions)

    # ------------------------------------------------------------------------------------ changes

    def add(self, ids: Any, codes: ArrayLike) -> None:
        """Add codes (n, bytes) under new ids.

        With None for ``ids``, they go on from the greatest whole number ever used here, from 0 at
        first.
        """
        rows = check_width(codes, self.n_bits, place="HammingIndex.add")
        with self._writing:
            if ids is None:
                new = self._number(len(rows))
            else:
                new = self._check_ids(ids, len(rows), "add")
                here = self._store.find(new) >= 0
                if here.any():
                    raise InputError(
                        f"HammingIndex.add: id {new[here].tolist()[0]!r} is already in the index; "
                        "change its code with replace."
                    )
            self._store.add(new, rows)
            if len(new) and kind(new) == "whole numbers":
                self._next_id = max(self._next_id, int(new.max()) + 1)

    def replace(self, ids: Any, codes: ArrayLike) -> None:
        """Give the items with these ids new codes (n, bytes)."""
        rows = check_width(codes, self.n_bits, place="HammingIndex.replace")
        with self._writing:
            self._store.replace(*self._find(ids, len(rows), "replace"), rows)

    def delete(self, ids: Any) -> None:
        """Delete the items with these ids."""
        with self._writing:
            self._store.delete(self._find(ids, None, "delete")[1])

    # ------------------------------------------------------------------------------------- search

    def moment(self) -> Snapshot:
        """Return the index as it is now, to be searched later: it costs nothing."""
        return self._store.now

    def search(
        self, codes: ArrayLike, k: int, *, at: Snapshot | None = None, allowed: Any = None
    ) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Find the ``k`` nearest items of each query: distances and ids, both (n_queries, k).

        Where there are fewer than ``k`` items, rows end in distance 2147483647 and id -1 (None
        among strings). ``at`` is a ``moment`` of this index, if not this one.

        ``allowed`` are the items to search among: a mask (n,) in the order of ``ids``, or ids, of
        which those that are not in the index are passed over. The nearest *of these* are found. To
        filter by columns of your own without looking ids up, see ``Snapshot.with_keys``.
        """
        queries = check_width(codes, self.n_bits, place="HammingIndex.search")
        now = self._seen(at, allowed, "search")
        check_k(k, len(queries), now.items.live, place="HammingIndex.search")
        return _filled_up(now, int(k), *nearest(queries, now.items, int(k)), NO_DISTANCE)

    def search_real(
        self, projections: ArrayLike, k: int, *, at: Snapshot | None = None, allowed: Any = None
    ) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """Find the ``k`` nearest items of queries that are not rounded to bits.

        ``projections`` (n_queries, n_bits) are what a hasher's ``project`` gives. The distance of
        an item is the sum of their sizes |p| over the bits in which it differs from their signs,
        exact and then rounded to float32. Else all is as in ``search``; where there are fewer than
        ``k`` items, rows end in an infinite distance.
        """
        rows = check_projections(projections, self.n_bits, place="HammingIndex.search_real")
        now = self._seen(at, allowed, "search_real")
        check_k(k, len(rows), now.items.live, place="HammingIndex.search_real")
        return _filled_up(now, int(k), *asymmetric.nearest(rows, now.items, int(k)), np.inf)

    def range_search(
        self, codes: ArrayLike, radius: int, *, at: Snapshot | None = None, allowed: Any = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
        """Find every item at distance ≤ ``radius``: ``limits``, distances, ids.

        The items of query ``q`` stand from ``limits[q]`` up to ``limits[q + 1]``, nearest first.
        (faiss's radius is strict for binary indexes: its 3 is 2 here.) ``at`` and ``allowed`` are
        those of ``search``.
        """
        queries = check_width(codes, self.n_bits, place="HammingIndex.range_search")
        check_parameters("HammingIndex.range_search", {"radius": radius}, {"radius": Whole(0)})
        now = self._seen(at, allowed, "range_search")
        limits, distances, positions = within(queries, now.items, int(radius))
        return limits, distances, now.ids[positions]

    # -------------------------------------------------------------------------------------- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to one file, whole or not at all; never pickled."""
        with self._writing:
            now, next_id = self._store.now, self._next_id
        compact = now.compact()
        ids = to_bytes(compact.ids) if kind(compact.ids) == "strings" else {"ids": compact.ids}
        header = {"n_bits": self.n_bits, "next_id": next_id}
        storage.write(path, "index", header, {"planes": compact.items.planes, **ids})

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap: bool = False) -> Self:
        """Read an index that ``save`` wrote.

        With ``mmap=True`` codes and whole-number ids are not read but mapped: opening takes no
        time, and processes that map the same file share its memory. Checksums of what is mapped
        are not looked at, that would read it all. The first change copies what is mapped to memory;
        the file is never written to. Leave it in place while it is mapped (``save`` to the same
        path does: it writes a new file).
        """
        header, arrays = storage.read(path, "index", mapped=("planes", "ids") if mmap else ())
        try:
            self = cls(header["n_bits"])
            unknown = arrays.keys() - {"planes", "codes", "ids", "id_bytes", "id_ends"}
            if unknown or not Whole(0).allows(header["next_id"]):
                raise ValueError(f"next_id={header['next_id']!r}, {sorted(unknown)}")
            ids = arrays["ids"] if "ids" in arrays else check_ids(from_bytes(arrays), place="ids")
            if "codes" in arrays:  # written before codes were laid out in planes
                self.add(ids, arrays["codes"])
            else:
                self._store.fill(arrays["planes"], ids, n_bits=self.n_bits, trust=mmap)
                if len(ids) and kind(ids) == "whole numbers":
                    self._next_id = int(ids[-1]) + 1
            self._next_id = max(self._next_id, int(header["next_id"]))
        except (InputError, LookupError, ValueError, TypeError, ArithmeticError) as error:
            raise FileError(
                f"{os.fspath(path)}: the index in this file does not fit together ({error}); "
                "save it again."
            ) from error
        return self

    # ------------------------------------------------------------------------------------ helpers

    def _seen(self, at: Snapshot | None, allowed: Any, method: str) -> Snapshot:
        """What a search sees: a moment, and of its items those that are allowed."""
        now = self._store.now if at is None else at
        if allowed is None:
            return now
        place = f"HammingIndex.{method}: allowed"
        mask = np.asarray(as_numpy(allowed))
        if mask.dtype == np.bool_:
            if mask.shape != (now.items.live,):
                raise InputError(
                    f"{place}: a mask of shape {mask.shape} came, and the index has "
                    f"{now.items.live} items; pass one value an item, in the order of `ids`."
                )
            return now.where(mask)
        ids = check_ids(allowed, place=place)
        if len(ids) and now.items.live and kind(ids) != kind(now.ids):
            raise InputError(
                f"{place}: ids are {kind(ids)}, those of this index are {kind(now.ids)}; "
                f"pass {kind(now.ids)}, or a mask."
            )
        if kind(ids) == "whole numbers":
            ascending = (ids[1:] > ids[:-1]).all()
            return now.with_keys(ids if ascending else np.unique(ids))
        if at is None:
            with self._writing:  # what is looked up now is of now
                positions = self._store.find(ids)
                return self._store.now.at(positions[positions >= 0])
        wanted = set(ids.tolist())
        there = now.ids[now.positions()].tolist()
        return now.where(np.fromiter((one in wanted for one in there), np.bool_, len(there)))

    def _number(self, n: int) -> NDArray[np.int64]:
        if len(self) and kind(self._store.now.ids) == "strings":
            raise InputError(
                "HammingIndex.add: ids did not come, and this index has strings; pass one string "
                "an item."
            )
        if self._next_id + n > LARGEST_ID:
            raise InputError("HammingIndex.add: no greater id is left; pass ids of your own.")
        return np.arange(self._next_id, self._next_id + n)

    def _check_ids(self, ids: Any, n: int | None, method: str) -> NDArray[Any]:
        place = f"HammingIndex.{method}"
        array = check_ids(ids, place=place)
        if n is not None and len(array) != n:
            raise InputError(f"{place}: {n} codes and {len(array)} ids came; pass one id a code.")
        check_once(array, place=place)
        now = self._store.now.ids
        if len(array) and len(self) and kind(array) != kind(now):
            raise InputError(
                f"{place}: ids are {kind(array)}, those of this index are {kind(now)}; "
                f"pass {kind(now)}."
            )
        return array

    def _find(self, ids: Any, n: int | None, method: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return checked ids, and the positions of their items."""
        wanted = self._check_ids(ids, n, method)
        positions = self._store.find(wanted)
        if (positions < 0).any():
            value = wanted[positions < 0].tolist()[0]
            raise InputError(
                f"HammingIndex.{method}: id {value!r} is not in the index; "
                "ask `id in index` first, or add it."
            )
        return wanted, positions
