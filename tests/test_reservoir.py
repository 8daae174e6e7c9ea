"""Rows that are dropped from a sample, and what takes their room."""

import numpy as np

from streamhash.reservoir import Reservoir

rng = np.random.default_rng(0)
X = rng.standard_normal((50, 3)).astype(np.float32)
Y = np.arange(50) % 4


def test_rows_that_are_in_the_sample_are_dropped_once_each():
    sample = Reservoir(20, random_state=0)
    assert sample.drop(X) == 0
    sample.take(np.concatenate([X[:8], X[:2]]), np.concatenate([Y[:8], Y[:2]]))
    before = sample.rows_.copy(), sample.rows_
    assert sample.drop(np.concatenate([X[[3, 1]], X[20:]])) == 2
    assert np.array_equal(before[0], before[1])  # another array: the old one may be put back
    assert np.array_equal(sample.rows, X[[0, 2, 4, 5, 6, 7, 0, 1]])
    assert sample.labels.tolist() == Y[[0, 2, 4, 5, 6, 7, 0, 1]].tolist()
    assert not sample.rows_[8:].any()
    assert sample.drop(X[:0]) == 0
    assert sample.drop(X) == 7  # one of the two first rows is left
    assert np.array_equal(sample.rows, X[:1])


def test_the_sample_stays_even_after_rows_were_dropped():
    counts = np.zeros(50)
    for seed in range(600):
        sample = Reservoir(10, random_state=seed)
        sample.take(X[:30], Y[:30])
        sample.drop(X[:10])
        sample.take(X[30:], Y[30:])
        counts += (X[:, None] == sample.rows).all(axis=2).sum(axis=1)
    assert counts[:10].sum() == 0
    shares = counts[10:30].sum() / counts.sum()
    assert abs(shares - 0.5) < 0.06  # of twenty that stayed, and twenty that came after


def test_a_sample_without_labels():
    sample = Reservoir(5, random_state=0)
    sample.take(X[:4], None)
    assert sample.drop(X[1:3]) == 2
    assert sample.labels is None
    assert np.array_equal(sample.rows, X[[0, 3]])
