import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from hamming_cases import random_codes, random_items
from streamhash.kernels.hamming import scan, slices
from streamhash.kernels.hamming.planes import to_planes

N_BLOCKS = 21  # two whole slices and a part of one


@numba.njit
def measure(planes, codes, limit, out):
    """Distances below the limit, by slices; others stay as they are."""
    choices, n_bytes = slices.as_choices(codes), planes.shape[1]
    table, queue = slices.new_table(n_bytes), slices.new_queue(n_bytes)
    sums = np.zeros((slices.N_DIGITS + 1, slices.BLOCKS_PER_SLICE), np.uint64)
    for block in range(0, len(planes), slices.BLOCKS_PER_SLICE):
        slices.put_carries(planes, block, len(planes), 1, queue, table)
        for q in range(len(codes)):
            start = slices.first_sum(limit)
            near = slices.add_carries(table, choices.carries, q, start, sums)
            for w in range(min(slices.BLOCKS_PER_SLICE, len(planes) - block)):
                if near >> np.uint64(w) & np.uint64(1) == 0:
                    continue
                parity = queue[-1, w] ^ choices.parity[q]
                mask = slices.are_nearer(sums, w, parity, limit)
                for place in range(64):
                    if mask >> np.uint64(place) & np.uint64(1):
                        distance = slices.distance_of(sums, w, parity, place, limit)
                        out[q, 64 * (block + w) + place] = distance


def compare_with_counts(n_bytes):
    rng = np.random.default_rng(n_bytes)
    codes = rng.integers(0, 256, (64 * N_BLOCKS, n_bytes), dtype=np.uint8)
    queries = rng.integers(0, 256, (5, n_bytes), dtype=np.uint8)
    queries[0], queries[1] = codes[700], ~codes[701]
    counts = np.bitwise_count(queries[:, None] ^ codes).sum(axis=2, dtype=np.int64)
    n_bits = 8 * n_bytes
    for limit in [
        0,
        1,
        2,
        n_bits // 2 - 1,
        n_bits // 2,
        n_bits - 1,
        n_bits,
        n_bits + 1,
        n_bits + 2,
    ]:
        found = np.full(counts.shape, -1)
        measure(to_planes(codes), queries, limit, found)
        np.testing.assert_array_equal(found, np.where(counts < limit, counts, -1))


@pytest.mark.parametrize("n_bytes", [1, 2, 3, 7, 8, 9, 16, 31, 32, 63, slices.LONGEST_SLICED])
def test_distances_below_a_limit_are_those_that_counting_gives(n_bytes):
    compare_with_counts(n_bytes)


def test_processors_without_logic_of_three_add_the_same():
    """Compiled for the least of processors, in a process of its own."""
    environment = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    code = "import test_slices as t; t.compare_with_counts(9); print('the same')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "the same\n", done.stderr


@numba.njit
def add_up(planes, code, start):
    choices, n_bytes = slices.as_choices(code), planes.shape[1]
    table, queue = slices.new_table(n_bytes), slices.new_queue(n_bytes)
    sums = np.zeros((slices.N_DIGITS + 1, slices.BLOCKS_PER_SLICE), np.uint64)
    slices.put_carries(planes, 0, len(planes), 1, queue, table)
    slices.add_carries(table, choices.carries, 0, start, sums)
    return table, choices.carries[0], sums


def test_sums_are_those_of_the_plain_twin():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (512, 12), dtype=np.uint8)
    table, chosen, words = add_up(to_planes(codes), codes[:1], 480)
    digits = np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    sums, overflow = slices.plain_sums(table, chosen, 480)
    np.testing.assert_array_equal(digits[slices.N_DIGITS], overflow)
    found = (digits[: slices.N_DIGITS].T.astype(np.int64) << np.arange(slices.N_DIGITS)).sum(axis=1)
    np.testing.assert_array_equal(found, sums % (1 << slices.N_DIGITS))
    assert overflow.any()
    assert not overflow.all()


def test_carries_of_three_bits_are_their_majority():
    """By hand: bits 1 1 0 of an item; a query that differs in the last two has 1, one in the first
    alone has none of two.
    """
    table, _, _ = add_up(to_planes(np.full((1, 1), 0b011, np.uint8)), np.zeros((1, 1), np.uint8), 0)
    carries = [int(table[0, choice, 0] & np.uint64(1)) for choice in range(8)]
    # A choice is the query's bits; what differs from 1 1 0 is counted, two or more are a carry.
    differing = [2, 1, 1, 0, 3, 2, 2, 1]
    assert carries == [n >= 2 for n in differing]


@pytest.mark.parametrize("allowed", [1, 0.02], ids="{}_allowed".format)
def test_every_fifth_block_gives_the_same_bounds_as_by_counting(allowed):
    """As a first bound is got from a sample."""
    rng = np.random.default_rng(0)
    items = random_items(rng, 64 * 203, 64, loose=0.1, allowed=allowed)
    codes, n = random_codes(rng, 64, 64), len(items.planes)

    def candidates():
        return scan._begin(np.empty((64, 300), np.uint64), np.zeros(64, int), np.full(64, 65), 65)

    counted, added = candidates(), candidates()
    scan._collect(scan.as_queries(codes), np.int64(0), items, 0, n, np.int64(5), 9, counted)
    scan._collect_sliced(codes, items, 0, n, np.int64(5), 9, added)
    np.testing.assert_array_equal(added.bound, counted.bound)
    np.testing.assert_array_equal(added.nearer, counted.nearer)
    assert added.bound.max() < 64


@pytest.mark.parametrize(
    ("n_queries", "n_bytes", "worth"),
    [(64, 8, True), (63, 8, False), (64, 64, True), (64, 65, False)],
)
def test_items_are_sliced_for_many_queries_of_codes_that_are_not_too_long(
    n_queries, n_bytes, worth
):
    assert scan.is_worth_slicing.py_func(n_queries, n_bytes) is worth
