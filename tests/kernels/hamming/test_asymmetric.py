"""Real-valued queries against sorting, at every width, and what their sums promise."""

import numba
import numpy as np
import pytest

from hamming_cases import WIDTHS, assert_all_equal, random_codes, random_items
from streamhash.codes import pack
from streamhash.kernels.hamming import asymmetric, items as items_of_search, planes, scan
from streamhash.threads import using_threads


def projections(rng, n, n_bits):
    return rng.standard_normal((n, n_bits)).astype(np.float32)


def assert_found(queries, items, k):
    found = asymmetric.nearest(queries, items, k)
    assert_all_equal(found, asymmetric.plain_nearest(queries, items, k))


@pytest.mark.parametrize("n_bits", WIDTHS)
def test_the_nearest_are_those_of_sorting(n_bits):
    rng = np.random.default_rng(n_bits)
    for n, loose, deleted in ((0, 0, 0), (1, 0, 0), (64, 0, 0), (700, 0.4, 0.3)):
        items = random_items(rng, n, n_bits, loose=loose, deleted=deleted)
        for n_queries, k in ((0, 3), (1, 1), (7, 20), (4, 1000)):
            assert_found(projections(rng, n_queries, n_bits), items, k)


@pytest.mark.parametrize("gathered", [0, 10**9], ids=["gathered", "passed over"])
@pytest.mark.parametrize("allowed", [0, 0.01, 0.9], ids="{}_allowed".format)
def test_the_nearest_of_some(monkeypatch, allowed, gathered):
    monkeypatch.setattr(items_of_search, "GATHERED", gathered)
    rng = np.random.default_rng(0)
    for n in (700, 40_000):
        items = random_items(rng, n, 40, loose=0.1, deleted=0.1, allowed=allowed)
        for n_queries, k in ((1, 3), (7, 20), (5, 1000)):
            assert_found(projections(rng, n_queries, 40), items, k)


@pytest.mark.parametrize("n_bits", [64, 256])
@pytest.mark.parametrize("order", ["mixed", "near first", "far first", "equal"])
def test_a_first_bound_from_a_sample_changes_no_result(order, n_bits):
    """Nor does a bound that falls with every item, or never."""
    rng = np.random.default_rng(0)
    n, queries = 30_000, projections(rng, 6, n_bits)
    items = random_items(rng, n, n_bits, loose=0.3)
    codes = planes.from_planes(items.planes, np.arange(n))
    if order == "equal":
        codes[:] = codes[0]
    elif order != "mixed":
        far = (np.unpackbits(codes, axis=1) != (queries[0] > 0)) @ np.abs(queries[0])
        codes = codes[np.argsort(far if order == "near first" else -far)]
    items = items._replace(planes=planes.to_planes(codes))
    for k in (1, 30, 1000):
        assert_found(queries, items, k)


@pytest.mark.parametrize("loose", [0, 0.3])
def test_many_equal_codes_as_learned_ones_are(loose):
    """Also where the query's own code is among them, and where equals are the last of the near."""
    rng = np.random.default_rng(3)
    items = random_items(rng, 20_000, 64, loose=loose, deleted=0.1)
    kinds = random_codes(rng, 5, 64)
    kinds[0] = 0
    laid_out = planes.to_planes(kinds[rng.choice(5, 20_000, p=[0.4, 0.3, 0.2, 0.0999, 0.0001])])
    queries = projections(rng, 5, 64)
    queries[:4] = np.abs(queries[:4]) * (np.unpackbits(kinds[:4], axis=1) * np.float32(2) - 1)
    queries[2:4, 5] *= -1
    for k in (1, 10, 3000):
        assert_found(queries, items._replace(planes=laid_out), k)


@pytest.mark.parametrize("n_bits", [40, 200])
def test_extreme_projections(n_bits):
    """Zeros, ties of all kinds, sums beyond float32, and values 1e76 apart."""
    rng = np.random.default_rng(1)
    items = random_items(rng, 700, n_bits, loose=0.3)
    some = projections(rng, 1, n_bits)
    rows = [np.zeros(n_bits), np.where(some[0] > 0, 1, -1), np.round(some[0]), some[0] * 1e-44]
    rows += [np.full(n_bits, 3e38), np.where(np.arange(n_bits) % 2, 3e38, 1e-38)]
    one = np.zeros(n_bits)
    one[n_bits // 2] = -7
    with np.errstate(over="ignore"):
        queries = np.array([*rows, one], np.float32)
        for k in (1, 10, 700):
            assert_found(queries, items, k)


def test_signs_alone_give_hamming_distances():
    rng = np.random.default_rng(2)
    items, codes = random_items(rng, 5000, 63, loose=0.2), random_codes(rng, 5, 63)
    signs = np.unpackbits(codes, axis=1, count=63) * np.float32(2) - 1
    distances, positions = asymmetric.nearest(signs, items, 50)
    expected = scan.nearest(codes, items, 50)
    assert_all_equal((distances.astype(np.int32), positions), expected)


@pytest.mark.parametrize("n_queries", [1, 3, 100])
def test_three_threads_give_what_one_gives(monkeypatch, n_queries):
    monkeypatch.setattr(scan, "ITEMS_PER_THREAD", 100)
    rng = np.random.default_rng(1)
    queries = projections(rng, n_queries, 40)
    items = random_items(rng, 700, 40, loose=0.2, deleted=0.1)
    results = []
    for n_threads in (1, 3):
        with using_threads(n_threads):
            results.append(asymmetric.nearest(queries, items, 10))
    assert_all_equal(*results)


@pytest.mark.parametrize("n_bytes", [8, 16, 17, 40])
@pytest.mark.parametrize("looks_up", [True, False], ids=["looked up", "bit by bit"])
def test_bounds_are_sums_of_the_tables_cut_off_at_255(monkeypatch, n_bytes, looks_up):
    """In the way of machines with look-up in registers, and without."""
    if not looks_up:
        monkeypatch.setattr(planes, "_looks_up_bytes", lambda _: False)
    look = planes._looking(planes._WEIGHTS, leaves=False)

    @numba.njit
    def bounds(laid_out, codes, tables, out, limits):
        masks = np.empty(planes.QUERIES_PER_GROUP, np.uint64)
        look(1, laid_out, codes, tables, 0, 0, limits, 0, codes.shape[1], out, masks)
        return masks[0]

    rng = np.random.default_rng(n_bytes)
    short = n_bytes <= planes.SATURATED_BYTES
    items = rng.integers(0, 256, (64, n_bytes), dtype=np.uint8)
    query = projections(rng, 1, 8 * n_bytes)
    weights = rng.integers(0, 8 if short else 16, 8 * n_bytes)
    code = pack(query)
    halves = np.stack([code[0] & 15, code[0] >> 4], axis=1).ravel()
    places = weights.reshape(n_bytes, 2, 4)[:, ::-1, ::-1].reshape(-1, 4)  # the lower half first
    differ = np.unpackbits((halves[:, None] ^ np.arange(16, dtype=np.uint8))[..., None], axis=2)
    tables = (differ[..., :3:-1] * places[:, None]).sum(axis=2).astype(np.uint8)
    differ = np.unpackbits(items, axis=1) != (query[0] > 0)
    expected = differ @ weights
    expected = np.minimum(expected, 255) if short else expected
    limit, out = int(np.median(expected)) + 1, np.empty(64, np.uint16)
    limits = np.full(planes.QUERIES_PER_GROUP, limit, np.uint16)
    mask = bounds(planes.to_planes(items), code, tables[None], out, limits)
    np.testing.assert_array_equal(out, expected)
    assert [int(mask) >> place & 1 for place in range(64)] == (expected < limit).tolist()
