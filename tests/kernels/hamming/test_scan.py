"""Searches against sorting, and on any number of threads."""

import numpy as np
import pytest

from hamming_cases import assert_all_equal, random_codes, random_items
from streamhash.codes import pack
from streamhash.kernels.hamming import items as items_of_search, planes, scan
from streamhash.kernels.hamming.items import Items
from streamhash.threads import using_threads


@pytest.mark.parametrize("deleted", [0, 0.3], ids="{}_deleted".format)
@pytest.mark.parametrize("loose", [0, 0.4, 1], ids="{}_loose".format)
@pytest.mark.parametrize("n_bits", [1, 12, 64, 128, 249])
def test_search_equals_sorting(n_bits, loose, deleted):
    rng = np.random.default_rng(n_bits)
    for n in (0, 1, 64, 700):
        items = random_items(rng, n, n_bits, loose=loose, deleted=deleted)
        for n_queries, k in ((0, 3), (1, 1), (7, 20), (4, 1000)):
            queries = random_codes(rng, n_queries, n_bits)
            if n and n_queries:
                queries[:1] = planes.from_planes(items.planes, np.array([n // 2]))
            found = scan.nearest(queries, items, k)
            assert_all_equal(found, scan.plain_nearest(queries, items, k))
        for radius in (0, n_bits // 4, 2 * n_bits):
            found = scan.within(queries, items, radius)
            assert_all_equal(found, scan.plain_within(queries, items, radius))


@pytest.mark.parametrize("n_bits", [5, 33, 130, 256, 257, 512, 1000, 1024])
def test_groups_of_queries_in_clusters_equal_sorting(n_bits):
    """Where blocks are left early: groups of all sizes, ties, and more asked than there are."""
    rng = np.random.default_rng(n_bits)
    n = 20_000
    centres = random_codes(rng, 20, n_bits)

    def near_centres(n):
        noise = [random_codes(rng, n, n_bits) for _ in range(3)]
        return centres[rng.integers(0, len(centres), n)] ^ (noise[0] & noise[1] & noise[2])

    codes, queries = near_centres(n), near_centres(13)
    codes[n // 2 : n // 2 + 3000] = codes[0]
    for loose, deleted, allowed in ((0, 0, 1), (0.4, 0.1, 1), (0.1, 0.1, 0.9)):
        items = random_items(rng, n, n_bits, loose=loose, deleted=deleted, allowed=allowed)
        items = items._replace(planes=planes.to_planes(codes))
        for k in (1, 100, n + 1):
            found = scan.nearest(queries, items, k)
            assert_all_equal(found, scan.plain_nearest(queries, items, k))
        found = scan.within(queries, items, n_bits // 4)
        assert_all_equal(found, scan.plain_within(queries, items, n_bits // 4))


@pytest.mark.parametrize("n_bits", [256, 512])
def test_codes_that_are_alike_to_their_last_bytes_are_found(n_bits):
    """Where leaving early never pays, and queries of one batch are as near as can be, and far."""
    rng = np.random.default_rng(n_bits)
    codes, queries = random_codes(rng, 40_000, n_bits), random_codes(rng, 27, n_bits)
    codes[:, : n_bits // 16] = queries[:, : n_bits // 16] = codes[0, : n_bits // 16]
    codes[::50] = queries[3]
    items = random_items(rng, len(codes), n_bits, loose=0.1, deleted=0.1)
    items = items._replace(planes=planes.to_planes(codes))
    for k in (1, 100):
        found = scan.nearest(queries, items, k)
        assert_all_equal(found, scan.plain_nearest(queries, items, k))
    with using_threads(2):
        assert_all_equal(scan.nearest(queries, items, 100), found)


@pytest.mark.parametrize("n_bits", [8, 33, 64, 249, 256, 512, 520])
def test_many_queries_equal_sorting(n_bits):
    """So many that items are sliced: some near by, which are not, others far from all."""
    rng = np.random.default_rng(n_bits)
    for n, n_queries in ((1, 64), (700, 70), (20_000, 150)):
        bits = rng.standard_normal((n + n_queries, n_bits))
        codes, queries = pack(bits[:n]), pack(bits[n:])
        queries[: n_queries // 2] = codes[rng.integers(0, n, n_queries // 2)]
        codes[n // 2 : n // 2 + 500] = codes[0]
        for loose, deleted, allowed in ((0, 0, 1), (0.4, 0.1, 1), (0.1, 0.1, 0.9)):
            items = random_items(rng, n, n_bits, loose=loose, deleted=deleted, allowed=allowed)
            items = items._replace(planes=planes.to_planes(codes))
            for k in (1, 100):
                found = scan.nearest(queries, items, k)
                assert_all_equal(found, scan.plain_nearest(queries, items, k))
            for radius in (n_bits // 8, n_bits // 2):
                found = scan.within(queries, items, radius)
                assert_all_equal(found, scan.plain_within(queries, items, radius))


@pytest.mark.parametrize("room", [0, 100, 3000])
def test_all_within_a_radius_are_found_however_much_room_there_was(monkeypatch, room):
    rng = np.random.default_rng(0)
    items = random_items(rng, 3000, 64, loose=0.3, deleted=0.2)
    queries = random_codes(rng, 13, 64)
    monkeypatch.setattr(scan, "FIRST_ROOM", room * len(queries))
    for radius in (0, 20, 64):
        found = scan.within(queries, items, radius)
        assert_all_equal(found, scan.plain_within(queries, items, radius))


@pytest.mark.parametrize("gathered", [0, 10**9], ids=["gathered", "passed over"])
@pytest.mark.parametrize("allowed", [0, 0.01, 0.5, 0.99], ids="{}_allowed".format)
def test_search_among_some_equals_sorting_them(monkeypatch, allowed, gathered):
    monkeypatch.setattr(items_of_search, "GATHERED", gathered)
    rng = np.random.default_rng(0)
    for n, loose, deleted in ((0, 0, 0), (700, 0, 0), (700, 0.3, 0.3), (40_000, 0.1, 0.1)):
        items = random_items(rng, n, 40, loose=loose, deleted=deleted, allowed=allowed)
        for n_queries, k in ((1, 3), (7, 20), (5, 1000)):
            queries = random_codes(rng, n_queries, 40)
            found = scan.nearest(queries, items, k)
            assert_all_equal(found, scan.plain_nearest(queries, items, k))
        found = scan.within(queries, items, 9)
        assert_all_equal(found, scan.plain_within(queries, items, 9))


@pytest.mark.parametrize("order", ["mixed", "sorted", "equal"])
@pytest.mark.parametrize("loose", [0, 0.4], ids="{}_loose".format)
def test_a_first_bound_from_a_sample_changes_no_result(order, loose):
    """Also where near items stand together, between the blocks that the sample looks at."""
    rng = np.random.default_rng(0)
    n = 50_000
    items = random_items(rng, n, 64, loose=loose)
    codes = planes.from_planes(items.planes, np.arange(n))
    if order == "sorted":
        codes = codes[np.lexsort(codes.T)]
    if order == "equal":
        codes[:] = codes[0]
    items = items._replace(planes=planes.to_planes(codes))
    queries = codes[rng.integers(0, n, 13)]  # two groups and one alone, where a group has 8
    for k in (1, 30, 1000):
        found = scan.nearest(queries, items, k)
        assert_all_equal(found, scan.plain_nearest(queries, items, k))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 50, 1000])
def test_positions_are_sorted_by_their_keys(n):
    rng = np.random.default_rng(n)
    keys, positions = rng.permutation(2000), rng.permutation(2000)[:n]
    expected = sorted(positions, key=lambda position: keys[position])
    scan.sort_by_key(positions, keys)
    assert positions.tolist() == expected


def test_falling_distances_keep_the_last_items():
    """The worst order for the bound of the search: every item is nearer than all before it."""
    bits = np.tril(np.ones((64, 64)))[::-1] > 0
    keys = np.arange(64)
    codes = planes.to_planes(np.packbits(bits, axis=1))
    items = Items(codes, keys, np.empty(0, np.int64), 64, 64, 64, 0)
    distances, positions = scan.nearest(np.zeros((1, 8), np.uint8), items, 3)
    assert distances.tolist() == [[1, 2, 3]]
    assert positions.tolist() == [[63, 62, 61]]


@pytest.mark.parametrize("n_queries", [1, 3, 100])
def test_three_threads_give_what_one_gives(monkeypatch, n_queries):
    monkeypatch.setattr(scan, "ITEMS_PER_THREAD", 100)  # so that few items are cut into ranges, too
    rng = np.random.default_rng(1)
    queries = random_codes(rng, n_queries, 40)
    items = random_items(rng, 700, 40, loose=0.2, deleted=0.1)
    results = []
    for n_threads in (1, 3):
        with using_threads(n_threads):
            results.append([*scan.nearest(queries, items, 10), *scan.within(queries, items, 9)])
    assert_all_equal(*results)
