"""BSODH's update of the bits, one after the other: each is set given all the others."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.kernels.compile import kernel

Codes = NDArray[np.int8]
Numbers = NDArray[np.float64]
# Sums of weights such as 1.2 − 6 × 0.2 are zero but for rounding; sgn(0) = +1 must not hang on it.
SLACK = 1e-9


def plain_update_bits(B: Codes, P: Numbers, G: Numbers) -> Codes:
    """For r = 1..k: B[:, r] = sgn(P[:, r] − Σ_{q≠r} B[:, q] G[q, r]); B (n, k), G (k, k)."""
    B = B.copy()
    for r in range(B.shape[1]):
        rest = B @ G[:, r] - B[:, r] * G[r, r]  # (n,)
        B[:, r] = np.where(P[:, r] - rest >= -SLACK, 1, -1)
    return B


def update_bits(B: Codes, P: Numbers, G: Numbers) -> Codes:
    """Return what ``plain_update_bits`` returns; compiled, with work only where a bit turns."""
    B = B.copy()
    _update(B, P, B @ G, G)
    return B


@kernel
def _update(B: Any, P: Any, BG: Any, G: Any) -> None:
    n, k = B.shape
    for i in range(n):
        row = BG[i]
        for r in range(k):
            bit = 1 if P[i, r] - row[r] + B[i, r] * G[r, r] >= -SLACK else -1
            if bit != B[i, r]:
                turn = float(bit - B[i, r])
                B[i, r] = bit
                for q in range(k):  # G is symmetric
                    row[q] += turn * G[r, q]
