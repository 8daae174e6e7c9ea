"""The layout of codes, and distances against the plain twin, at every width."""

import numba
import numpy as np
import pytest

from hamming_cases import WIDTHS, random_codes
from streamhash.kernels.hamming import planes


@pytest.mark.parametrize("first", [0, 1, 63, 64, 70])
@pytest.mark.parametrize("n", [0, 1, 60, 64, 200])
def test_codes_are_laid_out_and_taken_back_and_no_other_byte_changes(first, n):
    codes = np.random.default_rng(n).integers(0, 256, (n, 3), dtype=np.uint8)
    laid_out = np.full((planes.n_blocks(first + n) + 1, 3, planes.ITEMS_PER_BLOCK), 7, np.uint8)
    planes.put(codes, laid_out, first)
    places = np.arange(laid_out.shape[0] * planes.ITEMS_PER_BLOCK)
    rows = planes.from_planes(laid_out, places)
    np.testing.assert_array_equal(rows[first : first + n], codes)
    assert (np.delete(rows, np.s_[first : first + n], axis=0) == 7).all()


@pytest.mark.parametrize("n_bits", WIDTHS)
def test_distances_equal_those_of_the_plain_twin(n_bits):
    rng = np.random.default_rng(n_bits)
    codes, queries = random_codes(rng, 130, n_bits), random_codes(rng, 3, n_bits)
    queries[0] = ~queries[1]  # as far as can be
    laid_out, asked = planes.to_planes(codes), planes.as_queries(queries)
    found = np.empty(3 * planes.ITEMS_PER_BLOCK, np.uint16)
    for q, expected in enumerate(planes.plain_distances(queries, laid_out, 130)):
        planes.measure(asked, q, laid_out, 0, 3, found)
        np.testing.assert_array_equal(found[:130], expected)
        bits = np.unpackbits(codes ^ queries[q], axis=1).sum(axis=1)
        np.testing.assert_array_equal(expected, bits)


@pytest.mark.parametrize("n_bytes", [8, 31, 32])
def test_counting_bits_gives_what_looking_up_gives(monkeypatch, n_bytes):
    """The way of machines without look-up in registers."""
    monkeypatch.setattr(planes, "_looks_up_bytes", lambda _: False)
    measure = numba.njit(planes.measure.py_func)
    rng = np.random.default_rng(0)
    codes, queries = (rng.integers(0, 256, (n, n_bytes), dtype=np.uint8) for n in (64, 2))
    laid_out, asked = planes.to_planes(codes), planes.as_queries(queries)
    found = np.empty(planes.ITEMS_PER_BLOCK, np.uint16)
    for q, expected in enumerate(planes.plain_distances(queries, laid_out, 64)):
        measure(asked, q, laid_out, 0, 1, found)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("limit", [0, 1, 100, 255, 256, 300])
@pytest.mark.parametrize("n_bytes", [1, 8, 31, 32, 70])
@pytest.mark.parametrize("group", planes.GROUPS)
def test_a_block_that_is_left_early_has_nothing_near(group, n_bytes, limit):
    """However few bytes are looked at first, the same items are near, at the same distances."""
    rng = np.random.default_rng(n_bytes)
    queries = rng.integers(0, 256, (group + 1, n_bytes), dtype=np.uint8)
    codes = rng.integers(0, 256, (128, n_bytes), dtype=np.uint8)
    codes[70:90] = queries[rng.integers(1, group + 1, 20)]  # near to some of them
    codes[80:90, 0] ^= 1
    laid_out, asked = planes.to_planes(codes), planes.as_queries(queries)
    limits = np.full(group + 1, min(limit, 8 * n_bytes + 2), np.uint16)
    limits[-1] = min(limit, 7)
    for block in (0, 1):
        expected = [
            distances[64 * block : 64 * (block + 1)]
            for distances in planes.plain_distances(queries[1:], laid_out, 128)
        ]
        near = [one < most for one, most in zip(expected, limits[1:], strict=True)]
        for telling in {0, 1, n_bytes // 2, n_bytes}:
            some, masks, out = _look(group, laid_out, asked, block, limits, telling)
            assert bool(some) == np.any(near)
            assert sum(map(np.any, near)) <= masks[-1] <= group or max(limits) > 255
            for g in range(group if some else 0):
                found = np.array([int(masks[g]) >> place & 1 for place in range(64)], bool)
                np.testing.assert_array_equal(found, near[g])
                distances = out[64 * g : 64 * (g + 1)]
                np.testing.assert_array_equal(distances[found], expected[g][found])


@numba.njit
def _look(group, laid_out, asked, block, limits, telling):
    """Ask for the queries from the second on, with the limits from the second on."""
    out = np.empty(planes.QUERIES_PER_GROUP * planes.ITEMS_PER_BLOCK, np.uint16)
    masks = np.zeros(planes.N_MASKS, np.uint64)
    codes, tables = asked
    some = planes.look(group, laid_out, codes, tables, block, 1, limits, 1, telling, out, masks)
    return some, masks, out


def test_few_bytes_tell_of_small_limits_and_none_of_large_ones():
    telling = planes.telling_bytes.py_func
    assert telling(3, 8) == 3
    assert telling(50, 32) == 17
    assert telling(32, 8) == 8


@pytest.mark.parametrize("n_bytes", [1, 8, 33])
def test_equal_codes_are_told(n_bytes):
    @numba.njit
    def equal(laid_out, codes, block, q):
        return planes.equal_to(laid_out, codes, block, q)

    rng = np.random.default_rng(n_bytes)
    kinds = rng.integers(0, 256, (3, n_bytes), dtype=np.uint8)
    numbers = rng.integers(0, 3, 128)
    for block, q in ((0, 0), (1, 2)):
        mask = int(equal(planes.to_planes(kinds[numbers]), kinds, block, q))
        expected = numbers[64 * block : 64 * (block + 1)] == q
        assert [mask >> place & 1 for place in range(64)] == expected.tolist()
