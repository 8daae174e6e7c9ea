"""Where an index keeps its items: arrays that grow, and that running searches may go on reading.

What a search has seen of the arrays is never written again, so it needs no lock:

- ``add`` writes to places beyond the size that the search took note of;
- ``remove`` writes *when* an item was removed; a search that began earlier still counts it in;
- ``replace`` adds the new code under the same id and removes the old one, in one moment.

Places stand in the order of their keys (the whole-number ids; the turns of strings) as far as
``ordered``; items added out of order and replaced ones stand behind, loose. When more than half of
the places are loose or removed, the shelf is laid out anew: on average that costs a change no more
than its own size. While a search reads the old arrays, they live on.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.kernels.hamming.planes import ITEMS_PER_BLOCK, from_planes, n_blocks, put, to_planes
from streamhash.kernels.hamming.scan import NOT_DELETED, Items
from streamhash.search.ids import kind

__all__ = ["Shelf", "Snapshot"]

Integers = NDArray[np.int64]

FEW = 64  # loose or removed places that never matter


class Snapshot(NamedTuple):
    """What a search sees, or a save."""

    items: Items
    ids: NDArray[Any]  # (capacity,) for whole numbers, the same array as the keys

    def there(self) -> Integers:
        """Positions of the items, in the order of their keys."""
        items = self.items
        positions = np.arange(items.size)
        if len(items.deleted):
            positions = positions[items.deleted[: items.size] > items.moment]
        if items.ordered < items.size:
            positions = positions[np.argsort(items.keys[positions])]
        return positions

    def in_order(self) -> tuple[NDArray[Any], Codes]:
        """Copies of the ids and the codes, in the order of the keys."""
        positions = self.there()
        return self.ids[positions], from_planes(self.items.planes, positions)

    def tidy(self) -> "Snapshot":
        """Copy to arrays without loose or removed places."""
        items = self.items
        if items.live == items.ordered == items.size:
            planes = items.planes[: n_blocks(items.size)].copy()
            if items.size % ITEMS_PER_BLOCK:
                planes[-1, :, items.size % ITEMS_PER_BLOCK :] = 0
            keys, ids = items.keys[: items.size].copy(), self.ids[: items.size]
        else:
            positions = self.there()
            planes = to_planes(from_planes(items.planes, positions))
            keys, ids = items.keys[positions], self.ids[positions]
        return _snapshot(planes, keys, keys if kind(ids) == "whole numbers" else ids.copy())


def _snapshot(planes: NDArray[np.uint8], keys: Integers, ids: NDArray[Any]) -> Snapshot:
    n = len(keys)
    return Snapshot(Items(planes, keys, np.empty(0, np.int64), n, n, n, 0), ids)


class Shelf:
    """Items by position; its caller sees to it that only one thread changes it at a time."""

    def __init__(self, n_bytes: int) -> None:
        keys = np.empty(0, np.int64)
        self.now = _snapshot(np.zeros((0, n_bytes, ITEMS_PER_BLOCK), np.uint8), keys, keys)
        self._next_turn = 0
        # Of strings: where each is (None: not looked up yet). Of whole numbers: the loose ones; the
        # others are found by bisection, without a dict of them all.
        self._places: dict[Any, int] | None = None

    # ------------------------------------------------------------------------------------ finding

    def find(self, ids: NDArray[Any]) -> Integers:
        """Positions of the items with these ids; -1 where there is none."""
        items = self.now.items
        if len(ids) == 0 or kind(ids) != kind(self.now.ids):
            return np.full(len(ids), -1, np.int64)
        places = self._look_up()
        if kind(ids) == "strings":
            return np.array([places.get(value, -1) for value in ids.tolist()], np.int64)
        keys = items.keys[: items.ordered]
        positions = np.searchsorted(keys, ids)
        inside = np.minimum(positions, max(items.ordered - 1, 0))
        found = (positions < items.ordered) & (items.keys[inside] == ids if len(keys) else False)
        if len(items.deleted):
            found &= items.deleted[inside] == NOT_DELETED
        positions[~found] = -1
        if places:
            for i in np.flatnonzero(~found):
                positions[i] = places.get(int(ids[i]), -1)
        return positions

    def holds(self, item: object) -> bool:
        """Whether there is an item of this id."""
        if isinstance(item, str):
            ids = np.array([item], object)
        elif isinstance(item, int | np.integer) and 0 <= item <= np.iinfo(np.int64).max:
            ids = np.array([item], np.int64)
        else:
            return False
        return bool(self.find(ids)[0] >= 0)

    def _look_up(self) -> dict[Any, int]:
        if self._places is None:
            strings = kind(self.now.ids) == "strings"
            size = self.now.items.size
            ids = self.now.ids[:size].tolist() if strings else []
            self._places = dict(zip(ids, range(size), strict=False))
        return self._places

    # ------------------------------------------------------------------------------------ changes

    def add(self, codes: Codes, ids: NDArray[Any]) -> None:
        """Add items under ids that are not here yet."""
        if kind(ids) == "strings":
            keys = np.arange(self._next_turn, self._next_turn + len(ids))
            self._next_turn += len(ids)
        else:
            keys = ids
        self._append(codes, ids, keys, np.empty(0, np.int64))

    def remove(self, positions: Integers) -> None:
        """Remove the items at these positions."""
        if len(positions) == 0:
            return
        items = self.now.items
        removed = self._mark(positions)
        if kind(self.now.ids) == "strings" or items.ordered < items.size:
            places = self._look_up()
            for item in self.now.ids[positions].tolist():
                places.pop(item, None)
        live, moment = items.live - len(positions), items.moment + 1
        self.now = self.now._replace(
            items=items._replace(deleted=removed, live=live, moment=moment)
        )
        self._tidy()

    def replace(self, codes: Codes, ids: NDArray[Any], positions: Integers) -> None:
        """Give the items at these positions, which have these ids, new codes."""
        self._append(codes, ids, self.now.items.keys[positions], positions)

    def take(
        self, planes: NDArray[np.uint8], ids: NDArray[Any], *, n_bits: int, trust: bool
    ) -> None:
        """Fill an empty shelf with arrays of ``Snapshot.tidy``, checked unless they are trusted."""
        n, shape = len(ids), self.now.items.planes.shape
        if planes.dtype != np.uint8 or planes.shape != (n_blocks(n), *shape[1:]):
            raise ValueError(f"codes of shape {planes.shape} for {n} ids")
        if kind(ids) == "strings":
            keys, self._next_turn = np.arange(n), n
            if len(set(ids.tolist())) < n:
                raise ValueError("equal ids")
        else:
            if ids.dtype != np.int64 or ids.ndim != 1:
                raise ValueError(f"ids of type {ids.dtype}")
            if not trust and n and (ids[0] < 0 or (ids[1:] <= ids[:-1]).any()):
                raise ValueError("ids out of order")
            keys = ids
        if not trust and (planes[:, -1] & ((1 << (8 * shape[1] - n_bits)) - 1)).any():
            raise ValueError(f"codes of more than {n_bits} bits")
        self.now, self._places = _snapshot(planes, keys, ids), None

    def _append(self, codes: Codes, ids: NDArray[Any], keys: Integers, old: Integers) -> None:
        """Add items, and remove those at the ``old`` positions in the same moment."""
        if len(ids) == 0:
            return
        if len(keys) > 1 and (keys[1:] < keys[:-1]).any():
            order = np.argsort(keys)
            codes, ids, keys = codes[order], ids[order], keys[order]
        self._make_room(len(ids), kind(ids))
        items = self.now.items
        first, size = items.size, items.size + len(ids)
        put(codes, items.planes, first)
        items.keys[first:size] = keys
        self.now.ids[first:size] = ids
        in_order = items.ordered == first and (first == 0 or keys[0] > items.keys[first - 1])
        if kind(ids) == "strings" or not in_order:
            self._look_up().update(zip(ids.tolist(), range(first, size), strict=True))
        removed = self._mark(old) if len(old) else items.deleted
        self.now = self.now._replace(
            items=items._replace(
                deleted=removed,
                size=size,
                live=items.live + len(ids) - len(old),
                ordered=size if in_order else items.ordered,
                moment=items.moment + (len(old) > 0),
            )
        )
        self._tidy()

    def _mark(self, positions: Integers) -> Integers:
        """Note that the items at these positions are removed from the next moment on."""
        items = self.now.items
        removed = items.deleted
        if len(removed) == 0:
            removed = np.full(len(items.keys), NOT_DELETED, np.int64)
        removed[positions] = items.moment + 1
        return removed

    def _make_room(self, n: int, new_kind: str) -> None:
        """Have space for ``n`` more items of this kind of ids; what is mapped is copied."""
        items, ids = self.now
        if items.live == 0 and kind(ids) != new_kind:
            keys = np.empty(0, np.int64)
            ids = np.empty(0, object) if new_kind == "strings" else keys
            self.now = _snapshot(np.zeros((0, *items.planes.shape[1:]), np.uint8), keys, ids)
            self._places, items = None, self.now.items
        size = items.size
        if size + n <= len(items.keys):
            return
        capacity = ITEMS_PER_BLOCK * n_blocks(max(size + n, 2 * size if size else n))
        planes = np.zeros((capacity // ITEMS_PER_BLOCK, *items.planes.shape[1:]), np.uint8)
        planes[: n_blocks(size)] = items.planes[: n_blocks(size)]
        keys = _larger(items.keys, size, capacity)
        ids = keys if new_kind == "whole numbers" else _larger(ids, size, capacity)
        removed = items.deleted
        if len(removed):
            removed = np.full(capacity, NOT_DELETED, np.int64)
            removed[:size] = items.deleted[:size]
        self.now = Snapshot(items._replace(planes=planes, keys=keys, deleted=removed), ids)

    def _tidy(self) -> None:
        """Lay the shelf out anew if more than half of it is loose or removed."""
        items = self.now.items
        untidy = (items.size - items.live) + (items.size - items.ordered)
        if untidy > FEW and 2 * untidy > items.size:
            self.now, self._places = self.now.tidy(), None


def _larger(array: NDArray[Any], size: int, capacity: int) -> NDArray[Any]:
    larger = np.empty(capacity, array.dtype)
    larger[:size] = array[:size]
    return larger
