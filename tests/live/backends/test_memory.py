"""Codes in memory: a new model's take the places of the old one's, and nothing else is copied."""

import numpy as np
import pytest

from streamhash import FileError
from streamhash.live.backends.memory import MemoryBackend
from streamhash.search.directory import Directory

RANDOM = np.random.default_rng(0)
OLD, NEW = (RANDOM.integers(256, size=(1000, n), dtype=np.uint8) for n in (2, 4))


def backends():
    """Two hundred keys, of which some are gone, and what is to hold their new codes."""
    old, keys = MemoryBackend(16), np.arange(0, 400, 2)
    old.append(keys, OLD[keys])
    old.delete(keys[[3, 64, 65, 199]])
    return old, MemoryBackend(32), np.delete(keys, [3, 64, 65, 199])


def reading(*pieces):
    """Codes of all keys in these pieces, also of some that nobody has."""
    return lambda _: ((NEW[some], some) for some in map(np.asarray, pieces))


def same(backend, keys, codes):
    index = MemoryBackend(backend.n_bits)
    index.append(keys, codes[keys])
    for ours, theirs in zip(
        backend.search(codes[::7], 5), index.search(codes[::7], 5), strict=True
    ):
        assert ours.tolist() == theirs.tolist()
    assert len(backend) == len(keys)


def test_new_codes_take_the_places_of_the_old():
    old, new, keys = backends()
    then = old.moment()
    new.take_over(old, len(keys), reading(range(150), range(150, 399)))
    same(new, keys, NEW)
    assert new.moment().items.keys is then.items.keys
    assert new.moment().items.deleted is then.items.deleted
    found = old.search(OLD[::7], 5, at=then)
    new.delete(keys[:100])
    new.add(np.arange(500, 600), NEW[500:600])
    new.delete(np.array([7, 500]))  # one of them is not there
    same(new, np.concatenate([keys[100:], np.arange(501, 600)]), NEW)
    for before, now in zip(found, old.search(OLD[::7], 5, at=then), strict=True):
        assert before.tolist() == now.tolist()  # a search that began before goes on


def test_keys_without_a_code_are_an_error():
    old, new, keys = backends()
    with pytest.raises(FileError, match="the codes of 3 items are missing"):
        new.take_over(old, len(keys), reading(range(5, 399)))
    same(old, keys, OLD)
    old.delete(keys[:1])
    old.add(np.array([700]), OLD[700:701])
    same(old, np.append(keys[1:], 700), OLD)


def test_keys_and_codes_of_a_directory():
    items, new = Directory(), MemoryBackend(32)
    items.append(np.arange(300), np.arange(300), [None] * 300)
    items.delete([5, 77])
    new.serve(items.live_keys, reading(range(100), range(100, 400)))
    same(new, np.delete(np.arange(300), [5, 77]), NEW)
    with pytest.raises(FileError, match="the codes of 1 items are missing"):
        new.serve(items.live_keys, reading(range(1, 400)))
