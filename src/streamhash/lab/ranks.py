"""Ranks of methods over blocks, and how far two mean ranks must lie apart to tell methods apart.

As in J. Demšar, *Statistical comparisons of classifiers over multiple data sets*, JMLR 7, 2006: the
Friedman test asks if any method differs from the others at all, and Nemenyi's test, for all pairs
at once, which ones do. Blocks count as independent of each other.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

ALPHA = 0.05
Floats = NDArray[np.float64]


def block_ranks(values: ArrayLike) -> Floats:
    """Rank the methods in each block: 1 for the highest value; equal values share their ranks.

    Parameters
    ----------
    values : array (methods, blocks)

    >>> block_ranks([[0.9, 0.5], [0.7, 0.5], [0.8, 0.1]])
    array([[1. , 1.5],
           [3. , 1.5],
           [2. , 3. ]])
    """
    from scipy.stats import rankdata

    ranks: Floats = rankdata(-np.asarray(values, np.float64), axis=0)
    return ranks


def friedman(ranks: ArrayLike) -> tuple[float, float]:
    """Return Friedman's statistic, corrected for ties, and its probability if no method differs.

    Parameters
    ----------
    ranks : array (methods, blocks), from :func:`block_ranks`
    """
    from scipy.stats import chi2

    found = np.asarray(ranks, np.float64)
    k, n = found.shape
    ties = sum(int(c) ** 3 - int(c) for block in found.T for c in np.unique_counts(block).counts)
    correction = 1 - ties / (n * (k**3 - k)) if k > 1 else 0.0
    if correction == 0:  # all methods are equal in all blocks
        return 0.0, 1.0
    spread = float(((found.mean(axis=1) - (k + 1) / 2) ** 2).sum())
    statistic = 12 * n / (k * (k + 1)) * spread / correction
    return statistic, float(chi2.sf(statistic, k - 1))


@cache
def critical_value(n_methods: int, alpha: float = ALPHA) -> float:
    """Return q of Nemenyi's test: the studentized range over infinitely many degrees, over √2.

    >>> round(critical_value(10), 3)
    3.164
    """
    from scipy.stats import studentized_range

    return float(studentized_range.isf(alpha, n_methods, math.inf)) / math.sqrt(2)


def critical_difference(n_methods: int, n_blocks: int, alpha: float = ALPHA) -> float:
    """Return how far two mean ranks must lie apart to count as different.

    >>> [round(critical_difference(4, 14, alpha), 2) for alpha in (0.05, 0.10)]  # Demšar's example
    [1.25, 1.12]
    """
    spread = math.sqrt(n_methods * (n_methods + 1) / (6 * n_blocks))
    return critical_value(n_methods, alpha) * spread


def cliques(mean_ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """Return the groups of methods that are not told apart: first and last, of rising mean ranks.

    A group that lies within another is left out, and so is a method alone.

    >>> cliques([1.0, 1.5, 2.5, 4.0], 1.6)
    [(0, 2), (2, 3)]
    """
    groups: list[tuple[int, int]] = []
    for first, lowest in enumerate(mean_ranks):
        last = max(i for i, rank in enumerate(mean_ranks) if rank - lowest < difference)
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups
