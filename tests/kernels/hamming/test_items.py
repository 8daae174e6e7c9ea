"""Which items a search sees: bitmaps, keys that are looked up, codes that are gathered."""

import numpy as np
import pytest

from hamming_cases import assert_all_equal, random_items
from streamhash.kernels.hamming import items as seen


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 700])
def test_a_bitmap_holds_what_is_allowed_and_not_deleted(n):
    rng = np.random.default_rng(n)
    items = random_items(rng, n, 8, loose=0.2, deleted=0.3)
    first, second = rng.random(n) < 0.7, rng.random(n) < 0.7
    there = items.deleted[:n] > items.moment
    once = seen.only(items, first)
    np.testing.assert_array_equal(seen.places(once), np.flatnonzero(first & there))
    twice = seen.only(once, second)
    expected = np.flatnonzero(first & second & there)
    np.testing.assert_array_equal(seen.places(twice), expected)
    assert twice.live == len(expected)
    assert len(twice.allowed) == -(-n // 64)


@pytest.mark.parametrize("allowed", [1, 0.5])
@pytest.mark.parametrize("deleted", [0, 0.3])
@pytest.mark.parametrize("loose", [0, 0.2, 1])
def test_a_mask_in_the_order_of_keys_finds_its_places(loose, deleted, allowed):
    rng = np.random.default_rng(0)
    for n in (0, 1, 700):
        items = random_items(rng, n, 8, loose=loose, deleted=deleted, allowed=allowed)
        mask = rng.random(items.live) < 0.5
        expected = seen.plain_spread(items, mask)
        np.testing.assert_array_equal(seen.spread(items, mask), expected)
        assert expected.sum() == mask.sum()


@pytest.mark.parametrize("keys", ["all", "others", "dense", "some", "none", "after", "gaps"])
@pytest.mark.parametrize("loose", [0, 0.1])
def test_keys_are_found_as_by_looking_each_up(keys, loose):
    rng = np.random.default_rng(1)
    n = 3000
    items = random_items(rng, n, 8, loose=loose)
    stored = items.keys
    if keys in ("dense", "gaps"):
        stored = np.arange(n) if keys == "dense" else np.sort(rng.permutation(n + 20)[:n])
        items = items._replace(keys=stored, ordered=n)
    asked = {
        "all": np.sort(stored),
        "dense": np.arange(10, n + 10),
        "gaps": np.arange(n + 30),
        "others": np.sort(rng.permutation(2 * n)[:n]),
        "some": np.sort(rng.permutation(2 * n)[:5]),
        "none": np.empty(0, np.int64),
        "after": np.arange(2 * n, 2 * n + 100),
    }[keys]
    for share in (0, 0.5, 1):
        mask = rng.random(len(asked)) < share
        found = seen.have_keys(items, asked, mask)
        np.testing.assert_array_equal(found, seen.plain_have_keys(items, asked, mask))


@pytest.mark.parametrize("n_bits", [8, 100])
def test_codes_are_gathered_as_by_position(n_bits):
    rng = np.random.default_rng(2)
    for n, share in ((0, 0.5), (700, 0), (700, 0.01), (700, 0.9), (64, 1.1)):
        items = random_items(rng, n, n_bits, loose=0.2, deleted=0.1, allowed=share)
        (copied, places), (plain, expected) = seen.gathered(items), seen.plain_gathered(items)
        assert_all_equal([places, *copied[:3]], [expected, *plain[:3]])
        assert copied[3:7] == plain[3:7]
