"""The arrays of an index: they grow, and searches go on reading them while others change them.

What a search has seen of the arrays is never written again, so it needs no lock:

- ``add`` writes to places beyond the size that the search took note of;
- ``delete`` writes *when* an item was deleted; a search that began earlier still counts it in;
- ``replace`` adds the new code under the same id and deletes the old one, in one moment.

Places stand in the order of their keys (the whole-number ids; for strings, the order of adding) as
far as ``ordered``; items added out of order and replaced ones stand behind, loose. When more than
half of the places are loose or deleted, the arrays are made anew: on average that costs a change no
more than its own size. While a search reads the old arrays, they live on.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.kernels.hamming.items import NOT_DELETED, Items, have_keys, only, places, spread
from streamhash.kernels.hamming.planes import (
    ITEMS_PER_BLOCK,
    Planes,
    from_planes,
    n_blocks,
    put,
)
from streamhash.search.id_table import Zeros
from streamhash.search.ids import kind

Integers = NDArray[np.int64]

UNTIDY_PLACES = 64  # so many loose or deleted places never matter
PIECE = 2**17  # places that are looked at at a time


class Snapshot(NamedTuple):
    """What a search sees, or a save: one moment of the store."""

    items: Items
    ids: NDArray[Any]  # (capacity,) for whole numbers, the same array as the keys

    def positions(self) -> Integers:
        """Positions of the items, in the order of their keys."""
        positions = places(self.items)
        if self.items.ordered < self.items.size:  # a stable sort is quick where most are in order
            positions = positions[np.argsort(self.items.keys[positions], kind="stable")]
        return positions

    def where(self, mask: NDArray[np.bool_]) -> "Snapshot":
        """Leave the items where the mask (n,), in the order of their keys, is true."""
        items = self.items
        tidy = items.live == items.ordered == items.size
        return self._replace(items=only(items, mask if tidy else spread(items, mask)))

    def at(self, positions: Integers) -> "Snapshot":
        """Leave the items at these positions."""
        mask = np.zeros(self.items.size, np.bool_)
        mask[positions] = True
        return self._replace(items=only(self.items, mask))

    def with_keys(self, keys: Integers, mask: NDArray[np.bool_] | None = None) -> "Snapshot":
        """Leave the items that have one of these keys, where the mask (n_keys,) is true.

        Keys ascend; those that are not here are passed over. It takes about a millisecond for a
        million keys, and no looking up: this is how whoever has columns by key filters by them.
        """
        mask = np.ones(len(keys), np.bool_) if mask is None else mask
        # A read-only array would be another type to the kernels.
        keys, mask = np.require(keys, np.int64, ["C", "W"]), np.require(mask, np.bool_, ["C", "W"])
        return self._replace(items=only(self.items, have_keys(self.items, keys, mask)))

    def codes_of(self, keys: Integers) -> Codes:
        """Return the codes (n, bytes) of keys (n,) that are here."""
        items = self.items
        if items.ordered == items.size:
            return from_planes(items.planes, np.searchsorted(items.keys[: items.size], keys))
        positions = self.positions()
        return from_planes(items.planes, positions[np.searchsorted(items.keys[positions], keys)])

    def pieces(self) -> Iterator[tuple[Integers, Codes]]:
        """Positions and codes of all items, none of them filtered out, piece by piece."""
        items = self.items
        for first in range(0, items.size, PIECE):
            at = np.arange(first, min(first + PIECE, items.size))
            if len(items.deleted):
                at = at[items.deleted[at] > items.moment]
            yield at, from_planes(items.planes, at)

    def compact(self, zeros: Zeros = np.zeros) -> "Snapshot":
        """Copy to arrays without loose or deleted places."""
        items, n = self.items, self.items.live
        planes = zeros((n_blocks(n), *items.planes.shape[1:]), np.uint8)
        keys = zeros(n, np.int64)
        ids = keys if kind(self.ids) == "whole numbers" else np.empty(n, object)
        if n == items.ordered == items.size:
            planes[:] = items.planes[: n_blocks(n)]
            if n % ITEMS_PER_BLOCK:
                planes[-1, :, n % ITEMS_PER_BLOCK :] = 0
            keys[:], ids[:] = items.keys[:n], self.ids[:n]
            return _snapshot(planes, keys, ids)
        pieces: Iterable[tuple[Integers, Codes]] = self.pieces()
        if items.ordered < items.size:
            positions = self.positions()
            pieces = [(positions, from_planes(items.planes, positions))]
        first = 0
        for at, codes in pieces:
            put(codes, planes, first)
            some = slice(first, first + len(at))
            keys[some], ids[some] = items.keys[at], self.ids[at]
            first += len(at)
        return _snapshot(planes, keys, ids)


def _snapshot(planes: Planes, keys: Integers, ids: NDArray[Any]) -> Snapshot:
    n = len(keys)
    return Snapshot(Items(planes, keys, np.empty(0, np.int64), n, n, n, 0), ids)


class CodeStore:
    """Codes and their ids; its caller sees to it that only one thread changes it at a time."""

    def __init__(self, n_bytes: int, zeros: Zeros = np.zeros) -> None:
        self._zeros = zeros  # makes its arrays
        keys = np.empty(0, np.int64)
        self.now = _snapshot(np.zeros((0, n_bytes, ITEMS_PER_BLOCK), np.uint8), keys, keys)
        self._next_key = 0  # of strings
        self._refused: Integers | None = None  # a column of keys that is not like the own
        # Of strings: where each is (None: not looked up yet). Of whole numbers: the loose ones; the
        # others are found by bisection, without a dict of them all.
        self._places: dict[Any, int] | None = None

    def find(self, ids: NDArray[Any]) -> Integers:
        """Positions of the items with these ids; -1 where there is none."""
        items = self.now.items
        if len(ids) == 0 or kind(ids) != kind(self.now.ids):
            return np.full(len(ids), -1, np.int64)
        places = self._look_up()
        if kind(ids) == "strings":
            return np.array([places.get(value, -1) for value in ids.tolist()], np.int64)
        positions = np.searchsorted(items.keys[: items.ordered], ids)
        found = positions < items.ordered
        inside = positions[found]
        found[found] = items.keys[inside] == ids[found]
        if len(items.deleted):
            inside = positions[found]
            found[found] = items.deleted[inside] == NOT_DELETED
        positions[~found] = -1
        if places:
            for i in np.flatnonzero(~found):
                positions[i] = places.get(int(ids[i]), -1)
        return positions

    def add(self, ids: NDArray[Any], codes: Codes) -> None:
        """Add items under ids that are not here yet."""
        keys = ids
        if kind(ids) == "strings":
            keys = np.arange(self._next_key, self._next_key + len(ids))
            self._next_key += len(ids)
        self._append(ids, keys, codes, np.empty(0, np.int64))

    def reserve(self, n: int) -> None:
        """Have space for ``n`` items in all."""
        self._make_room(n - self.now.items.size, kind(self.now.ids))

    def take_places(self, other: "CodeStore") -> None:
        """Have the items of another store, which changes no more; codes come by ``recode``.

        All but the codes is the other's, so that nothing else takes memory twice. Its searches go
        on: what is deleted from here on is deleted later than they began.
        """
        items = other.now.items
        planes = self._zeros((len(items.planes), *self.now.items.planes.shape[1:]), np.uint8)
        self.now = Snapshot(items._replace(planes=planes), other.now.ids)
        self._places = None if other._places is None else dict(other._places)
        self._next_key, self._refused = other._next_key, other._refused

    def recode(self, ids: NDArray[Any], codes: Codes) -> int:
        """Give items that are here their codes, before anybody searches; return how many are."""
        positions = self.find(ids)
        if not len(positions):
            return 0
        first, planes = int(positions[0]), self.now.items.planes
        if np.array_equal(positions, np.arange(first, first + len(positions))) and first >= 0:
            put(codes, planes, first)
            return len(positions)
        here = positions >= 0
        at = positions[here]
        planes[at // ITEMS_PER_BLOCK, :, at % ITEMS_PER_BLOCK] = codes[here]
        return len(at)

    def adopt(self, column: Integers) -> None:
        """Use a column of keys in place of the own, if it begins with the same and has more room.

        Whoever made it writes there what is added here, in the same order, so that one will do.
        """
        items = self.now.items
        if column is self._refused or column is items.keys or self.now.ids is not items.keys:
            return
        if np.array_equal(column[: items.size], items.keys[: items.size]):
            self.now = Snapshot(items._replace(keys=column), column)
        else:
            self._refused = column

    def delete(self, positions: Integers) -> None:
        """Delete the items at these positions."""
        if len(positions) == 0:
            return
        items = self.now.items
        deleted = self._mark(positions, items.size)
        if kind(self.now.ids) == "strings" or items.ordered < items.size:
            places = self._look_up()
            for item in self.now.ids[positions].tolist():
                places.pop(item, None)
        live = items.live - len(positions)
        self._set(items._replace(deleted=deleted, live=live, moment=items.moment + 1))

    def replace(self, ids: NDArray[Any], positions: Integers, codes: Codes) -> None:
        """Give the items with these ids, which are at these positions, new codes."""
        self._append(ids, self.now.items.keys[positions], codes, positions)

    def fill(self, planes: Planes, ids: NDArray[Any], *, n_bits: int, trust: bool) -> None:
        """Fill an empty store with the arrays of a compact snapshot, checked unless trusted."""
        n, shape = len(ids), self.now.items.planes.shape
        if planes.dtype != np.uint8 or planes.shape != (n_blocks(n), *shape[1:]):
            raise ValueError(f"codes of shape {planes.shape} for {n} ids")
        if kind(ids) == "strings":
            keys, self._next_key = np.arange(n), n
            if len(set(ids.tolist())) < n:
                raise ValueError("equal ids")
        else:
            keys = ids
            if ids.dtype != np.int64 or ids.ndim != 1:
                raise ValueError(f"ids of type {ids.dtype}")
            if not trust and n and (ids[0] < 0 or (ids[1:] <= ids[:-1]).any()):
                raise ValueError("ids out of order")
        if not trust and (planes[:, -1] & ((1 << (8 * shape[1] - n_bits)) - 1)).any():
            raise ValueError(f"codes of more than {n_bits} bits")
        self.now, self._places = _snapshot(planes, keys, ids), None

    # ------------------------------------------------------------------------------------ helpers

    def _look_up(self) -> dict[Any, int]:
        if self._places is None:
            strings = kind(self.now.ids) == "strings"
            ids = self.now.ids[: self.now.items.size].tolist() if strings else []
            self._places = {item: place for place, item in enumerate(ids)}
        return self._places

    def _append(self, ids: NDArray[Any], keys: Integers, codes: Codes, old: Integers) -> None:
        """Add items, and delete those at the ``old`` positions in the same moment."""
        if len(ids) == 0:
            return
        if (keys[1:] < keys[:-1]).any():
            order = np.argsort(keys)
            ids, keys, codes = ids[order], keys[order], codes[order]
        self._make_room(len(ids), kind(ids))
        items = self.now.items
        first, size = items.size, items.size + len(ids)
        put(codes, items.planes, first)
        items.keys[first:size] = keys
        items.deleted[first:size] = NOT_DELETED
        self.now.ids[first:size] = ids
        in_order = items.ordered == first and (first == 0 or keys[0] > items.keys[first - 1])
        if kind(ids) == "strings" or not in_order:
            self._look_up().update(zip(ids.tolist(), range(first, size), strict=True))
        changed = items._replace(
            deleted=self._mark(old, size) if len(old) else items.deleted,
            size=size,
            live=items.live + len(ids) - len(old),
            ordered=size if in_order else items.ordered,
            moment=items.moment + (len(old) > 0),
        )
        self._set(changed)

    def _mark(self, positions: Integers, size: int) -> Integers:
        """Note that of ``size`` items those at these positions are deleted from the next moment."""
        items = self.now.items
        deleted = items.deleted
        if len(deleted) == 0:
            deleted = self._zeros(len(items.keys), np.int64)
            deleted[:size] = NOT_DELETED
        deleted[positions] = items.moment + 1
        return deleted

    def _make_room(self, n: int, new_kind: str) -> None:
        """Have space for ``n`` more items of this kind of ids; what is mapped is copied."""
        items, ids = self.now
        if items.live == 0 and kind(ids) != new_kind:
            keys = np.empty(0, np.int64)
            ids = np.empty(0, object) if new_kind == "strings" else keys
            self.now, self._places = _snapshot(items.planes[:0], keys, ids), None
            items = self.now.items
        size, planes, keys, deleted = items.size, items.planes, items.keys, items.deleted
        capacity = ITEMS_PER_BLOCK * n_blocks(max(size + n, 2 * size))
        if size + n > ITEMS_PER_BLOCK * len(planes) or not planes.flags.writeable:
            planes = self._zeros((n_blocks(capacity), *planes.shape[1:]), np.uint8)
            planes[: n_blocks(size)] = items.planes[: n_blocks(size)]
        if size + n > len(keys) or not keys.flags.writeable:
            keys = self._larger(keys[:size], capacity)
        if size + n > len(deleted) > 0:
            deleted = self._larger(deleted[:size], capacity)
        if new_kind == "whole numbers":
            ids = keys
        elif size + n > len(ids):
            ids = self._larger(ids[:size], capacity)
        self.now = Snapshot(items._replace(planes=planes, keys=keys, deleted=deleted), ids)

    def _set(self, items: Items) -> None:
        """Let searches see the change; make the arrays anew if more than half is untidy."""
        now = self.now._replace(items=items)
        untidy = (items.size - items.live) + (items.size - items.ordered)
        if untidy > UNTIDY_PLACES and 2 * untidy > items.size:
            now, self._places = now.compact(self._zeros), None
        self.now = now

    def _larger(self, array: NDArray[Any], capacity: int) -> NDArray[Any]:
        strings = array.dtype == object
        larger = np.empty(capacity, object) if strings else self._zeros(capacity, array.dtype)
        larger[: len(array)] = array
        return larger
