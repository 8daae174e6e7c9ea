"""Real-valued stand-ins of codes whose bits are balanced and uncorrelated (LEMON, SDOH-HC)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Numbers = NDArray[np.float64]
NOTHING = 1e-10  # an eigenvalue below this share of the largest is zero


def balanced(Q: NDArray[Any], random: np.random.Generator) -> Numbers:
    """Return the V (n, k) with VᵀV = nI and Vᵀ1 = 0 that has the largest tr(VᵀQ).

    Where Q says nothing about a direction, it is drawn at random. Of fewer than k + 1 rows only as
    many directions can be told apart as there are rows but one; the others are 0.
    """
    n, k = Q.shape
    Z = Q - Q.mean(axis=0)  # (n, k)
    values, E = linalg.eigh(Z.T @ Z)  # ascending
    values, E = values[::-1], E[:, ::-1]
    r = min(int((values > max(NOTHING * values[0], np.finfo(float).tiny)).sum()), n - 1)
    P = Z @ E[:, :r] / np.sqrt(values[:r])  # (n, r)
    n_free = min(k, n - 1) - r
    if n_free:
        drawn = random.standard_normal((n, n_free))
        drawn -= drawn.mean(axis=0)
        drawn -= P @ (P.T @ drawn)
        P = np.concatenate([P, linalg.qr(drawn, mode="economic")[0]], axis=1)
    V: Numbers = np.sqrt(n) * P @ E[:, : r + n_free].T
    return V
