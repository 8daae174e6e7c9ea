"""What a search sees: the items, and which of them are there and allowed.

A bitmap has a word for each block, a bit for each place that is allowed. ``only`` makes it; what
was deleted is left out of it, so that a search looks at nothing else. The loops pass over blocks
without a place that is allowed, and over places that are not: that costs next to nothing, but they
are still read. Where few are allowed, or many queries come, it is quicker to search a copy of the
codes that are allowed: those ``gathered``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.kernels.compile import kernel, part
from streamhash.kernels.hamming.planes import (
    ITEMS_PER_BLOCK,
    Planes,
    first_bit,
    from_planes,
    n_blocks,
    to_planes,
)

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Words = NDArray[np.uint64]
Whole = int | np.int64

NOT_DELETED = np.iinfo(np.int64).max
GATHERED = 128  # gathering a code costs what it costs to compare it with so many queries
ONE = np.uint64(1)


class Items(NamedTuple):
    """What a search sees. Places from ``size`` on may be written to meanwhile, by other threads."""

    planes: Planes
    keys: Integers  # (capacity,)
    deleted: Integers  # (capacity,) when each was deleted, or (0,) if none ever was
    size: int  # places in use
    live: int  # items that are there and allowed
    ordered: int  # up to here, keys ascend
    moment: int  # what was deleted later than this is still there
    allowed: Words = np.empty(0, np.uint64)  # (n_blocks,) bitmap, or (0,) if all are


@part
def in_use(size: int, block: int) -> np.uint64:
    """A mask of the places of a block that are in use."""
    n = size - ITEMS_PER_BLOCK * block
    return ~np.uint64(0) if n >= ITEMS_PER_BLOCK else (ONE << np.uint64(n)) - ONE


def only(items: Items, mask: Mask) -> Items:
    """Leave of the items those at the places (size,) where the mask is true."""
    if len(items.deleted):
        mask = mask & (items.deleted[: items.size] > items.moment)
    packed = np.zeros((n_blocks(items.size), ITEMS_PER_BLOCK // 8), np.uint8)
    packed.reshape(-1)[: -(-items.size // 8)] = np.packbits(mask, bitorder="little")
    words = packed.view("<u8").astype(np.uint64, copy=False).ravel()
    if len(items.allowed):
        words &= items.allowed
    live = int(np.bitwise_count(words).sum(dtype=np.int64))
    return items._replace(deleted=np.empty(0, np.int64), live=live, allowed=words)


def places(items: Items) -> Integers:
    """Places of the items that are there and allowed, ascending."""
    return np.flatnonzero(_are_there(items))


def _are_there(items: Items) -> Mask:
    """Tell which places hold an item that is there and allowed."""
    if len(items.allowed):
        words = items.allowed.astype("<u8", copy=False).view(np.uint8)
        return np.unpackbits(words, bitorder="little", count=items.size).view(np.bool_)
    if len(items.deleted):
        return items.deleted[: items.size] > items.moment
    return np.ones(items.size, np.bool_)


def spread(items: Items, mask: Mask) -> Mask:
    """Turn a mask of the items that are there, in the order of their keys, into one by place."""
    loose = np.arange(items.ordered, items.size)
    loose = loose[np.argsort(items.keys[loose], kind="stable")]
    return _spread(items.keys, items.ordered, loose, _are_there(items), np.append(mask, False))


@kernel
def _spread(keys: Integers, ordered: int, loose: Integers, there: Mask, mask: Mask) -> Mask:
    """Walk along the places in the order of their keys, and along the mask, which has one more."""
    found = np.zeros(len(there), np.bool_)
    i = np.uint64(0)  # an index that cannot be below zero is quicker
    place: Whole = np.int64(0)
    for turn in range(len(loose) + 1):
        last = turn == len(loose)
        end = ordered if last else _first_from(keys, place, ordered, keys[loose[turn]])
        here, are_there = found[place:end], there[place:end]
        for j in range(len(here)):
            here[j] = mask[i] & are_there[j]
            i += np.uint64(are_there[j])  # no branch: nobody could foresee it
        if not last:
            found[loose[turn]] = mask[i] & there[loose[turn]]
            i += np.uint64(there[loose[turn]])
        place = end
    return found


def plain_spread(items: Items, mask: Mask) -> Mask:
    """Do as ``spread``, by sorting."""
    at, found = places(items), np.zeros(items.size, np.bool_)
    found[at[np.argsort(items.keys[at])]] = mask
    return found


# -------------------------------------------------------------------------------- which have keys


@kernel
def have_keys(items: Items, keys: Integers, mask: Mask) -> Mask:
    """Tell which places hold one of these keys, which ascend, where the mask of the keys is true.

    Keys and places are walked along together, in long steps where one side has nothing for the
    other, and in runs where both number on without a gap.
    """
    stored, ordered = items.keys, items.ordered
    found = np.zeros(items.size, np.bool_)
    i: Whole = np.int64(0)
    place: Whole = np.int64(0)
    while i < len(keys) and place < ordered:
        if keys[i] < stored[place]:
            i = _first_from(keys, i, len(keys), stored[place])
        elif keys[i] > stored[place]:
            place = _first_from(stored, place, ordered, keys[i])
        else:
            n, most = np.int64(0), min(len(keys) - i, ordered - place)
            ascending, here, values = keys[i:], found[place:], mask[i:]
            there = stored[place:]
            step = np.int64(ITEMS_PER_BLOCK)
            while step <= most and ascending[step - 1] == there[step - 1] == there[0] + step - 1:
                n, step = step, 2 * step  # both have every number from the first to the last
            for j in range(n):
                here[j] = values[j]
            if n == 0:
                while n < min(most, ITEMS_PER_BLOCK) and ascending[n] == there[n]:
                    here[n] = values[n]
                    n += 1
            i, place = i + n, place + n
    for place in range(ordered, items.size):
        i = _first_from(keys, np.int64(0), len(keys), stored[place])
        found[place] = i < len(keys) and keys[i] == stored[place] and mask[i]
    return found


@kernel
def _first_from(ascending: Integers, low: Whole, end: Whole, value: Whole) -> Whole:
    """The first place from ``low`` on of no lower number, by steps that double, then halve."""
    step = 1
    while low + step < end and ascending[low + step] < value:
        low += step
        step *= 2
    high = min(low + step, end)
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


def plain_have_keys(items: Items, keys: Integers, mask: Mask) -> Mask:
    """Do as ``have_keys``, by looking each up."""
    return np.isin(items.keys[: items.size], keys[mask])


# ---------------------------------------------------------------------------------------- gathering


def is_worth_gathering(items: Items, n_queries: int) -> bool:
    """Whether to copy the codes that are allowed costs less than to pass over the others."""
    return items.live * GATHERED < (items.size - items.live) * n_queries


def gathered(items: Items) -> tuple[Items, Integers]:
    """Copy the items that are allowed; and where each was."""
    n = items.live
    planes = np.zeros((n_blocks(n), *items.planes.shape[1:]), np.uint8)
    places = np.empty(n, np.int64)
    _copy(items.planes, items.allowed, planes, places)
    ordered = int(np.searchsorted(places, items.ordered))
    none = np.empty(0, np.int64)
    return Items(planes, items.keys[places], none, n, n, ordered, 0), places


@kernel
def _copy(planes: Planes, allowed: Words, copy: Planes, places: Integers) -> None:
    """Copy the codes that are allowed, and note where they were."""
    n_bytes, n = planes.shape[1], 0
    for block in range(len(allowed)):
        mask = allowed[block]
        while mask != 0:
            place = first_bit(mask)
            mask &= mask - ONE
            to, at = n // ITEMS_PER_BLOCK, n % ITEMS_PER_BLOCK
            for b in range(n_bytes):
                copy[to, b, at] = planes[block, b, place]
            places[n] = ITEMS_PER_BLOCK * block + place
            n += 1


def plain_gathered(items: Items) -> tuple[Items, Integers]:
    """Do as ``gathered``, by positions."""
    at = places(items)
    ordered = int((at < items.ordered).sum())
    planes = to_planes(from_planes(items.planes, at))
    return Items(planes, items.keys[at], items.deleted, len(at), len(at), ordered, 0), at
