"""Compiled kernels against their plain twins, at every width, and on any number of threads."""

import numba
import numpy as np
import pytest

from streamhash.codes import pack, to_words
from streamhash.kernels.hamming import items as parts
from streamhash.kernels.hamming import near_ranking, planes, ranking
from streamhash.kernels.hamming.nearest import nearest, plain_nearest
from streamhash.kernels.hamming.within import plain_within, within
from streamhash.threads import set_threads

WIDTHS = [1, 12, 63, 64, 65, 128, 247, 249, 1024]


@pytest.fixture(autouse=True)
def _restore_threads():
    yield
    set_threads(None)


def random_codes(rng, n, n_bits):
    """Codes of few kinds, so that equal distances abound."""
    kinds = rng.standard_normal((7, n_bits))
    noise = rng.random((n, n_bits)) < 0.05
    return pack(kinds[rng.integers(0, 7, n)] * (1 - 2 * noise))


def random_side(rng, n, n_bits, n_classes=0):
    labels = rng.integers(0, 5, n).astype(np.int32)
    masks = np.packbits(rng.random((n, n_classes)) < 2 / max(n_classes, 1), axis=1)
    return ranking.Side(random_codes(rng, n, n_bits), labels, to_words(masks).T.copy())


def random_items(rng, n, n_bits, *, loose=0.0, removed=0.0):
    """Items of which a share stands out of order at the end, and a share was removed."""
    ordered = n - int(loose * n)
    keys = rng.permutation(2 * n)[:n]
    keys[:ordered].sort()
    moments = np.full(n, parts.ALIVE)
    moments[rng.random(n) < removed] = 3
    moments[rng.random(n) < removed] = 5  # later than what the search sees
    live = int((moments > 4).sum())
    codes = planes.to_planes(random_codes(rng, n, n_bits))
    gone = moments if removed else np.empty(0, np.int64)
    return parts.Items(codes, keys, gone, n, live, ordered, 4)


def assert_all_equal(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


# -------------------------------------------------------------------------------------- the layout


@pytest.mark.parametrize("first", [0, 1, 63, 64, 70])
@pytest.mark.parametrize("n", [0, 1, 60, 64, 200])
def test_codes_are_laid_out_and_taken_back_and_no_other_byte_changes(first, n):
    codes = np.random.default_rng(n).integers(0, 256, (n, 3), dtype=np.uint8)
    laid_out = np.full((planes.n_blocks(first + n) + 1, 3, planes.LANES), 7, np.uint8)
    planes.put(codes, laid_out, first)
    places = np.arange(laid_out.shape[0] * planes.LANES)
    rows = planes.from_planes(laid_out, places)
    np.testing.assert_array_equal(rows[first : first + n], codes)
    assert (np.delete(rows, np.s_[first : first + n], axis=0) == 7).all()


@pytest.mark.parametrize("n_bits", WIDTHS)
def test_distances_equal_those_of_the_plain_twin(n_bits):
    rng = np.random.default_rng(n_bits)
    codes, queries = random_codes(rng, 130, n_bits), random_codes(rng, 3, n_bits)
    queries[0] = ~queries[1]  # as far as can be
    laid_out, asked = planes.to_planes(codes), planes.as_queries(queries)
    found = np.empty(3 * planes.LANES, np.uint16)
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
    found = np.empty(planes.LANES, np.uint16)
    for q, expected in enumerate(planes.plain_distances(queries, laid_out, 64)):
        measure(asked, q, laid_out, 0, 1, found)
        np.testing.assert_array_equal(found, expected)


# ------------------------------------------------------------------------------------- the metrics


@pytest.mark.parametrize("n_bits", WIDTHS)
@pytest.mark.parametrize("n_classes", [0, 10, 64, 150], ids="{}_classes_multilabel".format)
def test_counts_equal_those_of_the_plain_twin(n_bits, n_classes):
    rng = np.random.default_rng(n_bits)
    queries = random_side(rng, 5, n_bits, n_classes)
    items = random_side(rng, 300, n_bits, n_classes)
    counts = ranking.count_by_distance(queries, items)
    np.testing.assert_array_equal(counts, ranking.plain_count_by_distance(queries, items))
    assert counts[:, 1].sum() > 0  # the case is not an empty one
    assert counts[:, 0].sum() > 0


@pytest.mark.parametrize("n_bits", WIDTHS)
@pytest.mark.parametrize("n_classes", [0, 10, 150], ids="{}_classes_multilabel".format)
def test_walk_equals_a_stable_sort(n_bits, n_classes):
    rng = np.random.default_rng(n_bits)
    queries = random_side(rng, 5, n_bits, n_classes)
    items = random_side(rng, 300, n_bits, n_classes)
    cutoffs = np.array([1, 2, 50, 299, 300])
    sums, hits, counts = ranking.walk(queries, items, cutoffs)
    plain_sums, plain_hits, plain_counts = ranking.plain_walk(queries, items, cutoffs)
    np.testing.assert_allclose(sums, plain_sums, rtol=1e-13, atol=0)
    np.testing.assert_array_equal(hits, plain_hits)
    np.testing.assert_array_equal(counts, plain_counts)


def test_more_items_than_a_chunk_are_all_seen_in_order():
    rng = np.random.default_rng(0)
    n = 2 * ranking.CHUNK * planes.LANES + 5
    queries, items = random_side(rng, 3, 16), random_side(rng, n, 16)
    cutoffs = np.array([100, n])
    sums, hits, counts = ranking.walk(queries, items, cutoffs)
    plain_sums, plain_hits, plain_counts = ranking.plain_walk(queries, items, cutoffs)
    np.testing.assert_allclose(sums, plain_sums, rtol=1e-12, atol=0)
    np.testing.assert_array_equal(hits, plain_hits)
    np.testing.assert_array_equal(counts, plain_counts)
    np.testing.assert_array_equal(ranking.count_by_distance(queries, items), plain_counts)


@pytest.mark.parametrize("n_bits", [1, 12, 64, 249])
@pytest.mark.parametrize("n_classes", [0, 10, 150], ids="{}_classes_multilabel".format)
def test_the_near_items_alone_give_the_same_to_the_last_digit(monkeypatch, n_bits, n_classes):
    monkeypatch.setattr(near_ranking, "SLAB", 30)  # the last of three is not full
    rng = np.random.default_rng(n_bits)
    queries = random_side(rng, 75, n_bits, n_classes)
    items = random_side(rng, 2100, n_bits, n_classes)
    queries.codes[:20] = items.codes[:20]
    cutoffs = np.array([1, 7, 100, 333])
    sums, hits, counts = ranking.walk(queries, items, cutoffs)
    assert_all_equal(near_ranking.walk_top(queries, items, cutoffs), (sums, hits))
    assert hits[:, -1].sum() > 0
    for radius in (0, 2, n_bits // 4, n_bits, 2000):
        expected = counts[:, :, : radius + 1].sum(axis=2, dtype=np.int32)
        assert_all_equal([near_ranking.count_within(queries, items, radius)], [expected])
        assert expected.sum() > 0


# -------------------------------------------------------------------------------------- the search


@pytest.mark.parametrize("removed", [0, 0.3], ids="{}_removed".format)
@pytest.mark.parametrize("loose", [0, 0.4, 1], ids="{}_loose".format)
@pytest.mark.parametrize("n_bits", [1, 12, 64, 128, 249])
def test_search_equals_sorting(n_bits, loose, removed):
    rng = np.random.default_rng(n_bits)
    for n in (0, 1, 64, 700):
        items = random_items(rng, n, n_bits, loose=loose, removed=removed)
        for n_queries, k in ((0, 3), (1, 1), (7, 20), (4, 1000)):
            queries = random_codes(rng, n_queries, n_bits)
            if n and n_queries:
                queries[:1] = planes.from_planes(items.planes, np.array([n // 2]))
            found = nearest(queries, items, k)
            assert_all_equal(found, plain_nearest(queries, items, k))
        for radius in (0, n_bits // 4, 2 * n_bits):
            found = within(queries, items, radius)
            assert_all_equal(found, plain_within(queries, items, radius))


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
    queries = codes[rng.integers(0, n, 6)]
    for k in (1, 30, 1000):
        found = nearest(queries, items, k)
        assert_all_equal(found, plain_nearest(queries, items, k))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 50, 1000])
def test_positions_are_sorted_by_their_keys(n):
    rng = np.random.default_rng(n)
    keys, positions = rng.permutation(2000), rng.permutation(2000)[:n]
    expected = sorted(positions, key=lambda position: keys[position])
    parts.sort_by_key(positions, keys)
    assert positions.tolist() == expected


def test_falling_distances_keep_the_last_items():
    """The worst order for the bound of the search: every item is nearer than all before it."""
    bits = np.tril(np.ones((64, 64)))[::-1] > 0
    keys = np.arange(64)
    codes = planes.to_planes(np.packbits(bits, axis=1))
    items = parts.Items(codes, keys, np.empty(0, np.int64), 64, 64, 64, 0)
    distances, positions = nearest(np.zeros((1, 8), np.uint8), items, 3)
    assert distances.tolist() == [[1, 2, 3]]
    assert positions.tolist() == [[63, 62, 61]]


@pytest.mark.parametrize("n_queries", [1, 3, 100])
def test_three_threads_give_what_one_gives(monkeypatch, n_queries):
    monkeypatch.setattr(parts, "RANGE", 100)  # so that few items are cut into ranges, too
    rng = np.random.default_rng(1)
    queries, side = random_side(rng, n_queries, 40), random_side(rng, 700, 40)
    items = random_items(rng, 700, 40, loose=0.2, removed=0.1)
    results = []
    for n_threads in (1, 3):
        set_threads(n_threads)
        results.append(
            [
                *ranking.walk(queries, side, np.array([10, 700])),
                ranking.count_by_distance(queries, side),
                *near_ranking.walk_top(queries, side, np.array([10, 70])),
                near_ranking.count_within(queries, side, 9),
                *nearest(queries.codes, items, 10),
                *within(queries.codes, items, 9),
            ]
        )
    assert_all_equal(*results)
