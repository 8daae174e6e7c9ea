"""Compiled kernels against their plain twins, at every width, and on any number of threads."""

import numpy as np
import pytest

from streamhash.codes import pack, to_words
from streamhash.kernels import hamming, ranking
from streamhash.threads import set_threads

WIDTHS = [1, 12, 63, 64, 65, 128, 1024]


@pytest.fixture(autouse=True)
def _restore_threads():
    yield
    set_threads(None)


def random_words(rng, n, n_bits):
    """Codes of few kinds, so that equal distances abound."""
    kinds = rng.standard_normal((7, n_bits))
    noise = rng.random((n, n_bits)) < 0.05
    return hamming.word_major(to_words(pack(kinds[rng.integers(0, 7, n)] * (1 - 2 * noise))))


def random_side(rng, n, n_bits, n_classes=0):
    labels = rng.integers(0, 5, n).astype(np.int32)
    masks = np.packbits(rng.random((n, n_classes)) < 2 / max(n_classes, 1), axis=1)
    return ranking.Side(random_words(rng, n, n_bits), labels, hamming.word_major(to_words(masks)))


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
    queries, items = random_side(rng, 3, 16), random_side(rng, 2 * hamming.CHUNK + 5, 16)
    cutoffs = np.array([100, 2 * hamming.CHUNK + 5])
    sums, hits, counts = ranking.walk(queries, items, cutoffs)
    plain_sums, plain_hits, plain_counts = ranking.plain_walk(queries, items, cutoffs)
    np.testing.assert_allclose(sums, plain_sums, rtol=1e-12, atol=0)
    np.testing.assert_array_equal(hits, plain_hits)
    np.testing.assert_array_equal(counts, plain_counts)
    np.testing.assert_array_equal(ranking.count_by_distance(queries, items), plain_counts)
    arguments = (queries.words, items.words, items.words.shape[1])
    for found, expected in zip(
        hamming.nearest(*arguments, np.arange(4) * 5000),
        hamming.plain_nearest(*arguments, np.arange(4) * 5000),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(
        hamming.count_within(*arguments, 5), hamming.plain_count_within(*arguments, 5)
    )


@pytest.mark.parametrize("n_bits", WIDTHS)
def test_search_equals_a_stable_sort(n_bits):
    rng = np.random.default_rng(n_bits)
    queries, items = random_words(rng, 5, n_bits), random_words(rng, 300, n_bits)
    limits = np.array([0, 1, 1, 20, 270, 270 + 280])  # one, none, few, many, all
    for n_items in (280, 300):  # the arrays may hold more than what is searched
        found = hamming.nearest(queries, items, n_items, limits)
        expected = hamming.plain_nearest(queries, items, n_items, limits)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])
        for radius in (0, n_bits // 4, n_bits):
            np.testing.assert_array_equal(
                hamming.count_within(queries, items, n_items, radius),
                hamming.plain_count_within(queries, items, n_items, radius),
            )


def test_falling_distances_keep_the_last_items():
    """The worst order for the bound of the search: every item is nearer than all before it."""
    bits = np.tril(np.ones((64, 64)))[::-1] > 0
    items = hamming.word_major(to_words(np.packbits(bits, axis=1)))
    query = np.zeros((1, 1), np.uint64)
    distances, positions = hamming.nearest(query, items, 64, np.array([0, 3]))
    assert distances.tolist() == [1, 2, 3]
    assert positions.tolist() == [63, 62, 61]


def test_three_threads_give_what_one_gives():
    rng = np.random.default_rng(1)
    queries, items = random_side(rng, 100, 40), random_side(rng, 700, 40)
    limits = np.arange(101) * 10
    results = []
    for n_threads in (1, 3):
        set_threads(n_threads)
        results.append(
            [
                *ranking.walk(queries, items, np.array([10, 700])),
                ranking.count_by_distance(queries, items),
                *hamming.nearest(queries.words, items.words, 700, limits),
                hamming.count_within(queries.words, items.words, 700, 9),
            ]
        )
    for one, three in zip(*results, strict=True):
        np.testing.assert_array_equal(one, three)
