"""Where ids are: a table of places that is looked up by hashing, beside the column of the ids.

A table holds no id, only places (int32) in a column, FREE where there is none: some six bytes an
item, whatever the ids are. An id belongs where its hash says, or in the next slot that is free. An
id that comes again takes its slot over, so that the last place counts; nothing is ever taken out.
The hash is salted, so that nobody can choose ids that all belong to one slot.

Columns are whole numbers (n,), or strings laid end to end: their bytes, and offsets (n + 1,).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.kernels.compile import kernel, part

Slots = NDArray[np.int32]
Places = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Salt = np.uint64

FREE = -1
AHEAD = 16  # ids whose slots are looked at together, so that the waits for memory overlap
_ODD, _PRIME = np.uint64(0xD6E8FEB86659FD93), np.uint64(0x100000001B3)
_HALF = np.uint64(32)


@part
def _mixed(x: Any) -> Any:
    """Spread 64 bits over all others."""
    x = (x ^ (x >> _HALF)) * _ODD
    x = (x ^ (x >> _HALF)) * _ODD
    return x ^ (x >> _HALF)


@part
def _slot(hashed: Any, n: Any) -> Any:
    """The slot that a hash belongs to."""
    return ((hashed >> _HALF) * np.uint64(n)) >> _HALF


@part
def _next(slot: Any, n: Any) -> Any:
    slot += np.uint64(1)
    return np.uint64(0) if slot == np.uint64(n) else slot


# ---------------------------------------------------------------------------------- whole numbers


@part
def _number_slot(value: Any, n: Any, salt: Any) -> Any:
    return _slot(_mixed(np.uint64(value) ^ salt), n)


@kernel
def put_numbers(slots: Slots, ids: Places, first: int, last: int, salt: Salt) -> Places:
    """Note the places from ``first`` to ``last``; return those whose ids came again."""
    n, again = len(slots), np.empty(last - first, np.int64)
    n_again, ahead = 0, np.empty(AHEAD, np.uint64)
    for start in range(first, last, AHEAD):
        stop, seen = min(start + AHEAD, last), np.int64(0)
        for place in range(start, stop):
            ahead[place - start] = _number_slot(ids[place], n, salt)
        for place in range(start, stop):
            there = slots[ahead[place - start]]
            seen += ids[there] if there != FREE else 0
        for place in range(start, stop):
            slot = ahead[place - start]
            while slots[slot] != FREE and ids[slots[slot]] != ids[place]:
                slot = _next(slot, n)
            if slots[slot] != FREE:
                again[n_again] = slots[slot]
                n_again += 1
            slots[slot] = place
        ahead[0] = np.uint64(seen)  # used, so that the reading ahead is not left out
    return again[:n_again]


@kernel
def find_numbers(slots: Slots, ids: Places, wanted: Places, salt: Salt) -> Places:
    """Return the places of ids, FREE where there is none."""
    n, places = len(slots), np.empty(len(wanted), np.int64)
    for i in range(len(wanted)):
        slot = _number_slot(wanted[i], n, salt)
        while slots[slot] != FREE and ids[slots[slot]] != wanted[i]:
            slot = _next(slot, n)
        places[i] = slots[slot]
    return places


@kernel
def move_numbers(old: Slots, slots: Slots, ids: Places, salt: Salt) -> None:
    """Note all places of another table, which has no id twice."""
    n = len(slots)
    for place in old:
        if place != FREE:
            slot = _number_slot(ids[place], n, salt)
            while slots[slot] != FREE:
                slot = _next(slot, n)
            slots[slot] = place


# ---------------------------------------------------------------------------------------- strings


@part
def _string_slot(content: Any, start: Any, stop: Any, n: Any, salt: Any) -> Any:
    hashed = salt
    for at in range(start, stop):
        hashed = (hashed ^ np.uint64(content[at])) * _PRIME
    return _slot(_mixed(hashed ^ np.uint64(stop - start)), n)


@part
def _are_equal(a: Any, start: Any, stop: Any, b: Any, other: Any, end: Any) -> Any:
    n = stop - start
    if n != end - other:
        return False
    i = 0
    while i < n and a[start + i] == b[other + i]:
        i += 1
    return i == n


@kernel
def put_strings(
    slots: Slots, content: Bytes, offsets: Places, first: int, last: int, salt: Salt
) -> Places:
    """Do as ``put_numbers``."""
    n, again, n_again = len(slots), np.empty(last - first, np.int64), 0
    for place in range(first, last):
        start, stop = offsets[place], offsets[place + 1]
        slot = _string_slot(content, start, stop, n, salt)
        while True:
            there = slots[slot]
            if there == FREE:
                break
            if _are_equal(content, start, stop, content, offsets[there], offsets[there + 1]):
                again[n_again] = there
                n_again += 1
                break
            slot = _next(slot, n)
        slots[slot] = place
    return again[:n_again]


@kernel
def find_strings(
    slots: Slots,
    content: Bytes,
    offsets: Places,
    wanted: Bytes,
    wanted_offsets: Places,
    salt: Salt,
) -> Places:
    """Do as ``find_numbers``."""
    n, places = len(slots), np.full(len(wanted_offsets) - 1, FREE, np.int64)
    for i in range(len(places)):
        start, stop = wanted_offsets[i], wanted_offsets[i + 1]
        slot = _string_slot(wanted, start, stop, n, salt)
        while True:
            there = slots[slot]
            if there == FREE:
                break
            if _are_equal(wanted, start, stop, content, offsets[there], offsets[there + 1]):
                places[i] = there
                break
            slot = _next(slot, n)
    return places


@kernel
def move_strings(old: Slots, slots: Slots, content: Bytes, offsets: Places, salt: Salt) -> None:
    """Do as ``move_numbers``."""
    n = len(slots)
    for place in old:
        if place != FREE:
            slot = _string_slot(content, offsets[place], offsets[place + 1], n, salt)
            while slots[slot] != FREE:
                slot = _next(slot, n)
            slots[slot] = place


# ------------------------------------------------------------------------------------ plain twins


def plain_put(table: dict[Any, int], ids: list[Any], first: int) -> list[int]:
    """Do as ``put_numbers`` and ``put_strings``, with a dict."""
    again = []
    for place, item in enumerate(ids, first):
        if item in table:
            again.append(table[item])
        table[item] = place
    return again


def plain_find(table: dict[Any, int], wanted: list[Any]) -> list[int]:
    """Do as ``find_numbers`` and ``find_strings``, with a dict."""
    return [table.get(item, FREE) for item in wanted]
