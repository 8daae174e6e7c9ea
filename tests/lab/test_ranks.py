"""Ranks and tests over blocks: by hand, against SciPy, and against what Demšar printed."""

import numpy as np
import pytest
from scipy.stats import friedmanchisquare

from streamhash.lab.ranks import (
    block_ranks,
    cliques,
    critical_difference,
    critical_value,
    friedman,
)

# Table 6 of Demšar 2006: AUC of C4.5, and of C4.5 with m, cf, or both tuned, on 14 data sets.
# Of two that he prints as .975 he ranks the first higher: his have more digits.
DEMSAR = np.array(
    [
        *([0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569]),
        *([0.954, 0.971, 0.968, 0.967], [0.628, 0.661, 0.654, 0.657]),
        *([0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931]),
        *([0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625]),
        *([0.775, 0.838, 0.866, 0.875], [1.000, 1.000, 1.000, 1.000]),
        *([0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669]),
        *([0.972, 0.981, 0.9751, 0.975], [0.957, 0.978, 0.946, 0.970]),
    ]
).T


def test_ranks_by_hand():
    ranks = block_ranks([[0.9, 0.2, 0.5], [0.9, 0.4, 0.5], [0.1, 0.3, 0.5]])
    assert ranks.tolist() == [[1.5, 3, 2], [1.5, 1, 2], [3, 2, 2]]


def test_friedman_by_hand():
    # Three methods in four blocks, always in one order: sums of ranks 4, 8, 12, and
    # 12 / (4 * 3 * 4) * (16 + 64 + 144) - 3 * 4 * 4 = 8, with 2 degrees: exp(-4).
    statistic, chance = friedman(block_ranks([[3] * 4, [2] * 4, [1] * 4]))
    assert statistic == pytest.approx(8)
    assert chance == pytest.approx(np.exp(-4))


def test_friedman_is_that_of_scipy_also_with_ties():
    random = np.random.default_rng(0)
    for digits in (8, 1):
        values = random.random((6, 15)).round(digits)
        wanted = friedmanchisquare(*values)
        assert friedman(block_ranks(values)) == pytest.approx((wanted.statistic, wanted.pvalue))


def test_methods_that_are_equal_everywhere_do_not_differ():
    assert friedman(block_ranks(np.ones((3, 5)))) == (0.0, 1.0)


def test_critical_values_are_those_of_the_table():
    printed = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    found = [critical_value(k) for k in range(2, 11)]
    assert found == pytest.approx(printed, abs=0.0015)  # that table was made from rounded ranges
    printed = [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]
    found = [critical_value(k, 0.10) for k in range(2, 11)]
    assert found == pytest.approx(printed, abs=0.0015)


def test_the_example_of_demsar():
    ranks = block_ranks(DEMSAR)
    assert ranks.mean(axis=1).round(3).tolist() == [3.143, 2.0, 2.893, 1.964]
    # He leaves out the correction for ties: of four in one block, of two in three more.
    statistic, _ = friedman(ranks)
    uncorrected = statistic * (1 - (60 + 3 * 6) / (14 * 60))
    assert uncorrected == pytest.approx(9.28, abs=0.01)
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.01)
    assert critical_difference(4, 14, 0.10) == pytest.approx(1.12, abs=0.01)


def test_groups_are_as_large_as_they_can_be():
    ranks = [1.0, 1.8, 2.0, 3.4, 5.0]
    assert cliques(ranks, 1.1) == [(0, 2)]
    assert cliques(ranks, 1.5) == [(0, 2), (2, 3)]
    assert cliques(ranks, 10) == [(0, 4)]
    assert cliques(ranks, 0.1) == []
    assert cliques([1.0, 2.0], 1.0) == []  # a critical difference apart is told apart
