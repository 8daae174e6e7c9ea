"""Items at equal distance, in expectation over every order of them.

All is in closed form, from the counts at each distance. Write, for one group of equal distance,
n items of which r are relevant, with N items and R relevant ones nearer. At place j of the group
stands a relevant item with probability r/n, and then R + 1 + (j-1)(r-1)/(n-1) relevant ones are
expected up to it. With h = Σ 1/(N+j) over the places that count, Σ (j-1)/(N+j) is their number
less (N+1) h: so harmonic numbers are all that is needed (McSherry and Najork, ECIR 2008).
"""

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int32]  # (n_queries, distances)
Floats = NDArray[np.float64]


def expected_precision_sum(total: Counts, relevant: Counts, top: int) -> Floats:
    """Expect the sum of the precisions at relevant items among the first ``top``: (n_queries,)."""
    n, r = total.astype(np.int64), relevant.astype(np.float64)
    N = n.cumsum(axis=1) - n
    R = r.cumsum(axis=1) - r
    counted = np.clip(top - N, 0, n)
    n_items = int(total[0].sum())
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n_items + 1))])
    h = harmonic[N + counted] - harmonic[N]
    chance = r / np.maximum(n, 1)
    chance_of_another = np.maximum(r - 1, 0) / np.maximum(n - 1, 1)
    terms = (R + 1) * h + chance_of_another * (counted - (N + 1) * h)
    result: Floats = (chance * terms).sum(axis=1)
    return result


def expected_hits(total: Counts, relevant: Counts, ranks: NDArray[np.int64]) -> Floats:
    """Expect the number of relevant items within each of the ``ranks``: (n_queries, n_ranks)."""
    n = total.astype(np.int64)
    N = n.cumsum(axis=1) - n
    chance = relevant / np.maximum(n, 1)  # in a group that a rank cuts: hypergeometric
    return np.stack([(np.clip(rank - N, 0, n) * chance).sum(axis=1) for rank in ranks], axis=1)
