"""Targets of classes, the running mean row by row, and the radial map on the first rows."""

import numpy as np
import pytest
from scipy.linalg import hadamard

from streamhash.hashers._codebook import Codebook
from streamhash.kernels.learning.hadamard import hadamard_signs

HADAMARD = ("permuted", "natural")
KINDS = (*HADAMARD, "random", "spread", "orthogonal")


def targets(book, n, seed=0):
    return book.targets(np.arange(n, dtype=np.int32), np.random.default_rng(seed))


def test_rows_are_those_of_sylvester():
    rows = [hadamard_signs(np.arange(16), i) for i in range(16)]
    assert np.array_equal(rows, hadamard(16))


def test_natural_order_gives_the_rows_themselves():
    assert np.array_equal(targets(Codebook(16, kind="natural"), 10), hadamard(16)[:10])


def test_permuted_order_gives_other_rows_of_the_same_matrix():
    T = targets(Codebook(16), 10)
    assert np.array_equal(T @ T.T, 16 * np.eye(10))
    rows = {tuple(row) for row in hadamard(16)}
    assert all(tuple(row) in rows for row in T.astype(int))
    assert not np.array_equal(T, hadamard(16)[:10])


@pytest.mark.parametrize(
    ("n_bits", "n_classes", "size"),
    [(8, 10, 16), (16, 10, 16), (32, 10, 32), (48, 10, 64), (64, 10, 64), (128, 10, 128)]
    + [(k, 205, 256) for k in (32, 48, 64, 128)],
)
def test_the_size_of_the_matrix_follows_the_rule(n_bits, n_classes, size):
    book = Codebook(n_bits, n_classes=n_classes)
    T = targets(book, 5)
    assert book.size_ == size
    assert book.projection_.shape == (0 if size == n_bits else size, n_bits)
    if size != n_bits:
        rows = np.array([hadamard_signs(np.arange(size), int(row)) for row in book.order_[:5]])
        assert np.array_equal(T, np.where(rows @ book.projection_ > 0, 1, -1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_bits", [1, 8, 12, 16])
def test_targets_stay_while_classes_come(kind, n_bits):
    book, random = Codebook(n_bits, kind=kind), np.random.default_rng(0)
    first = book.targets(np.array([0, 1, 2], np.int32), random)
    assert set(np.unique(first)) <= {-1.0, 1.0}
    for n in (4, 17, 100):
        more = book.targets(np.arange(n, dtype=np.int32), random)
        assert more.shape == (n, n_bits)
        assert np.array_equal(more[:3], first)
    again = Codebook(n_bits, kind=kind)
    assert np.array_equal(targets(again, 100), more)  # one by one or at once: the same


@pytest.mark.parametrize("kind", KINDS)
def test_beyond_the_rows_targets_are_still_apart(kind):
    book = Codebook(64, kind=kind)
    T = targets(book, 200)
    nearness = T @ T.T - 64 * np.eye(200)
    assert nearness.max() <= 40  # at least 12 bits apart
    assert abs(nearness.mean()) < 2
    if kind in HADAMARD:
        assert book.size_ == 256
        assert not nearness[:64, :64].any()


def test_spread_codewords_are_farther_apart_than_random_ones():
    least = {}
    for kind in ("random", "spread"):
        T = targets(Codebook(32, kind=kind), 10)
        least[kind] = (32 - T @ T.T + 64 * np.eye(10)).min() / 2
    assert least["spread"] > least["random"]


def test_no_class_takes_no_target():
    book = Codebook(8)
    assert book.targets(np.zeros(0, np.int32), np.random.default_rng(0)).shape == (0, 8)
