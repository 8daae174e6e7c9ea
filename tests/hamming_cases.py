"""Random codes, items and labels for the tests of the Hamming kernels."""

import numpy as np

from streamhash.codes import pack, to_words
from streamhash.kernels.hamming import planes, ranking
from streamhash.kernels.hamming.items import NOT_DELETED, Items, only

WIDTHS = [1, 12, 63, 64, 65, 128, 247, 249, 1024]


def random_codes(rng, n, n_bits):
    """Codes of few kinds, so that equal distances abound."""
    kinds = rng.standard_normal((7, n_bits))
    noise = rng.random((n, n_bits)) < 0.05
    return pack(kinds[rng.integers(0, 7, n)] * (1 - 2 * noise))


def random_side(rng, n, n_bits, n_classes=0):
    labels = rng.integers(0, 5, n).astype(np.int32)
    masks = np.packbits(rng.random((n, n_classes)) < 2 / max(n_classes, 1), axis=1)
    return ranking.Side(random_codes(rng, n, n_bits), labels, to_words(masks).T.copy())


def random_items(rng, n, n_bits, *, loose=0.0, deleted=0.0, allowed=1.0):
    """Items of which a share stands out of order at the end, was deleted, or is allowed."""
    ordered = n - int(loose * n)
    keys = rng.permutation(2 * n)[:n]
    keys[:ordered].sort()
    moments = np.full(n, NOT_DELETED)
    moments[rng.random(n) < deleted] = 3
    moments[rng.random(n) < deleted] = 5  # later than what the search sees
    live = int((moments > 4).sum())
    codes = planes.to_planes(random_codes(rng, n, n_bits))
    gone = moments if deleted else np.empty(0, np.int64)
    items = Items(codes, keys, gone, n, live, ordered, 4)
    return items if allowed == 1 else only(items, rng.random(n) < allowed)


def assert_all_equal(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
