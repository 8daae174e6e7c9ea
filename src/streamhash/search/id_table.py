"""A table that finds the place of an id in a column of ids: compact, and without Python objects.

Whole numbers that ascend from place to place need no table: they are found by bisection, as far as
they do. The others are in a table of places by hash, which takes 5 to 8 bytes each.
"""

import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.kernels.ids import (
    FREE,
    Places,
    find_numbers,
    find_strings,
    move_numbers,
    move_strings,
    put_numbers,
    put_strings,
)
from streamhash.search.ids import Strings

Ids = NDArray[np.int64] | Strings
Zeros = Callable[[Any, Any], NDArray[Any]]  # makes an array of a shape and a type

FULLEST, EMPTIEST = 0.75, 0.5  # share of the slots in use: when they grow, and after that
LEAST_SLOTS = 16
MOST_PLACES = 2**31 - 1


class IdTable:
    """Where the ids of a column are; its caller lets one thread at a time change it.

    Of an id that was put twice, the last place counts.
    """

    def __init__(self, zeros: Zeros = np.zeros) -> None:
        self._zeros = zeros
        self._salt = np.uint64(secrets.randbits(64))
        self._ordered = 0  # up to this place ids ascend, and are not in the table
        self.size = 0  # places that were put
        self._used = self._expected = 0  # slots
        self._slots = np.full(LEAST_SLOTS, FREE, np.int32)

    def expect(self, n: int) -> None:
        """Grow to have slots for ``n`` ids at once, if any is needed."""
        self._expected = n

    def put(self, ids: Ids, size: int) -> Places:
        """Note the places from the last one on up to ``size``; return those whose ids came again.

        A place may be returned more than once, and by later calls again.
        """
        if size > MOST_PLACES:
            raise MemoryError(f"{size} items are more than a table of ids can hold")
        again = self._put(ids, self.size, size)
        self.size = size
        return again

    def _put(self, ids: Ids, first: int, size: int) -> Places:
        before = np.empty(0, np.int64)
        if isinstance(ids, Strings):
            self._make_room(ids, size - first)
            again = put_strings(self._slots, ids.content, ids.offsets, first, size, self._salt)
        else:
            first = self._ascending(ids, first, size)
            if first == size:
                return before
            before = self._bisected(ids, ids[first:size])
            before = before[before != FREE]
            self._make_room(ids, size - first)
            again = put_numbers(self._slots, ids, first, size, self._salt)
        self._used += size - first - len(again)
        return np.concatenate([before, again])

    def _ascending(self, ids: NDArray[np.int64], first: int, size: int) -> int:
        """Take the new ids into the part that ascends, as far as they do; return up to where."""
        if self._ordered < first or first == size:
            return first
        if first and ids[first] <= ids[first - 1]:
            return first
        falls = np.flatnonzero(ids[first + 1 : size] <= ids[first : size - 1])
        self._ordered = size if len(falls) == 0 else first + 1 + int(falls[0])
        return self._ordered

    def find(self, ids: Ids, wanted: Ids) -> Places:
        """Return the places of ids, -1 where there is none."""
        if isinstance(ids, Strings):
            assert isinstance(wanted, Strings)
            texts = ids.content, ids.offsets, wanted.content, wanted.offsets
            return find_strings(self._slots, *texts, self._salt)
        assert not isinstance(wanted, Strings)
        places = self._bisected(ids, wanted)
        if self._used:
            # An id that is in both was put again.
            later = find_numbers(self._slots, ids, np.require(wanted, requirements="W"), self._salt)
            places = np.where(later == FREE, places, later)
        return places

    def _bisected(self, ids: NDArray[np.int64], wanted: NDArray[np.int64]) -> Places:
        """Return the places of ids in the part that ascends."""
        places = np.searchsorted(ids[: self._ordered], wanted)
        found = places < self._ordered
        found[found] = ids[places[found]] == wanted[found]
        return np.where(found, places, FREE)

    def _make_room(self, ids: Ids, n: int) -> None:
        """Have slots for ``n`` more ids."""
        if self._used + n <= FULLEST * len(self._slots):
            return
        n_slots = max((self._used + n) / EMPTIEST, LEAST_SLOTS)
        if self._expected > self._used + n:
            n_slots = self._expected / FULLEST
        old, self._slots = self._slots, self._zeros(int(n_slots) + 1, np.int32)
        self._slots.fill(FREE)
        if not self._used:
            return
        if isinstance(ids, Strings):
            move_strings(old, self._slots, ids.content, ids.offsets, self._salt)
        else:
            move_numbers(old, self._slots, ids, self._salt)
