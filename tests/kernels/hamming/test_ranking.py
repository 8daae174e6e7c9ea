"""Rankings against their plain twins, at every width, and on any number of threads."""

import numpy as np
import pytest

from hamming_cases import WIDTHS, assert_all_equal, random_side
from streamhash.kernels.hamming import ranking, scan
from streamhash.threads import using_threads


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
    n = 2 * ranking.ITEMS_MEASURED + 5
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
    monkeypatch.setattr(ranking, "QUERIES_HELD", 30)  # the last of three is not full
    rng = np.random.default_rng(n_bits)
    queries = random_side(rng, 75, n_bits, n_classes)
    items = random_side(rng, 2100, n_bits, n_classes)
    queries.codes[:20] = items.codes[:20]
    cutoffs = np.array([1, 7, 100, 333])
    sums, hits, counts = ranking.walk(queries, items, cutoffs)
    assert_all_equal(ranking.walk_top(queries, items, cutoffs), (sums, hits))
    assert hits[:, -1].sum() > 0
    for radius in (0, 2, n_bits // 4, n_bits, 2000):
        expected = counts[:, :, : radius + 1].sum(axis=2, dtype=np.int32)
        assert_all_equal([ranking.count_within(queries, items, radius)], [expected])
        assert expected.sum() > 0


@pytest.mark.parametrize("n_queries", [1, 3, 100])
def test_three_threads_give_what_one_gives(monkeypatch, n_queries):
    monkeypatch.setattr(scan, "ITEMS_PER_THREAD", 100)  # so that few items are cut into ranges, too
    rng = np.random.default_rng(1)
    queries, items = random_side(rng, n_queries, 40), random_side(rng, 700, 40)
    results = []
    for n_threads in (1, 3):
        with using_threads(n_threads):
            results.append(
                [
                    *ranking.walk(queries, items, np.array([10, 700])),
                    ranking.count_by_distance(queries, items),
                    *ranking.walk_top(queries, items, np.array([10, 70])),
                    ranking.count_within(queries, items, 9),
                ]
            )
    assert_all_equal(*results)
