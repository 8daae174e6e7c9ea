"""Learning one instance after the other, a block of them at once: the same steps, only faster.

Every step moves W by x gᵀ, where g depends on z = Wᵀx alone. So a block of m instances needs W only
once: with Z = X W and the products K = X Xᵀ of the block's own instances,

    z_i = Z_i + Σ_{j<i} K_ij g_j        what W, moved by the steps before, would give
    W  ←  W + Σ_i x_i g_iᵀ = W + Xᵀ G   all steps of the block

which is two products of matrices and a small loop in place of m passes over W. The sum of W over
all rounds, for methods that average it, follows from the same G. ``rule`` says what g is, for a
target t in {−1, +1}:

    "regression"   s (t − tanh z) (1 − tanh² z)         least squares on tanh z (HCOH)
    "hinge"        s t  where t z < 1                    hinge loss (OSH)
    "boosting"     s t_r exp(−Σ_{q<r} t_q z'_q − t_r z_r)   exponential loss, bit after bit, with
                                                         z' = z + g ‖x‖² after the step (OSH)
    "perceptron"   s t  where sgn z ≠ t, sgn 0 = −1      only on mistakes (HMOH)
    "aggressive"   t min(s, 1 − t z / ‖x‖²)             towards the margin ‖x‖², capped forward but
                                                         not back (OHWEU as released)
    "passive_aggressive"   t max(0, min(s, 1 − t z / ‖x‖²))   forward only (OHWEU)

A row of zeros moves nothing with the last two.
"""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamhash.kernels.compile import kernel

Floats = TypeVar("Floats", NDArray[np.float32], NDArray[np.float64])
Sum = NDArray[np.float64]
RULES = ("regression", "hinge", "boosting", "perceptron", "aggressive", "passive_aggressive")
ROWS = 64  # of a block: more of them make the products quicker, and K dearer
LARGEST_EXPONENT = 30.0  # of boosting: a product of as many exponentials as there are bits


def learn_one_by_one(
    X: Floats, W: Floats, T: Floats, rule: str, step: float, total: Sum | None = None
) -> tuple[Floats, Sum | None]:
    """Return W (d, k) after a step for each row of X (n, d) towards its target in T (n, k).

    ``total`` is a sum of W over rounds; it comes back with the W after each of these steps added.
    Nothing that is passed in is written into.
    """
    for start in range(0, len(X), ROWS):
        rows = X[start : start + ROWS]
        Z = rows @ W  # (m, k)
        G = np.zeros_like(Z)  # (m, k)
        targets = T[start : start + ROWS].copy()  # writable: the kernel is compiled for that
        _steps(Z, rows @ rows.T, targets, RULES.index(rule), step, G)
        if total is not None:
            # W after step i has all g_j with j ≤ i in it: g_j counts m − j times
            rounds = np.arange(len(rows), 0, -1, dtype=G.dtype)[:, None]
            total = total + (W * G.dtype.type(len(rows)) + rows.T @ (rounds * G))
        moved = rows.T @ G
        moved += W  # a new array, and no third one
        W = moved
    return W, total


def plain_learn_one_by_one(
    X: Floats, W: Floats, T: Floats, rule: str, step: float, total: Sum | None = None
) -> tuple[Floats, Sum | None]:
    """Return what ``learn_one_by_one`` returns, row by row and in the open: the slow twin."""
    for x, t in zip(X, T, strict=True):
        z = x @ W  # (k,)
        if rule == "regression":
            f = np.tanh(z)
            g = step * (t - f) * (1 - f * f)
        elif rule == "hinge":
            g = step * t * (t * z < 1)
        elif rule == "perceptron":
            g = step * t * (np.where(z > 0, 1, -1) != t)
        elif rule in ("aggressive", "passive_aggressive"):
            length = x @ x
            least = 0.0 if rule == "passive_aggressive" else -np.inf
            g = t * np.maximum(least, np.minimum(step, 1 - t * z / length)) if length else 0 * t
        else:
            g, exponent = np.zeros(len(z)), 0.0
            for r in range(len(z)):
                g[r] = step * t[r] * np.exp(min(exponent - t[r] * z[r], LARGEST_EXPONENT))
                exponent -= t[r] * (z[r] + g[r] * (x @ x))
        W = W + np.outer(x, g.astype(W.dtype))
        total = None if total is None else total + W
    return W, total


@kernel
def _steps(Z: Any, K: Any, T: Any, rule: int, step: float, G: Any) -> None:
    """Fill in G (m, k), the steps of a block, from Z and K (and use Z as a place to work in)."""
    m, k = Z.shape
    for i in range(m):
        z, t, g = Z[i], T[i], G[i]
        for j in range(i):
            nearness, before = K[i, j], G[j]
            for r in range(k):
                z[r] += nearness * before[r]
        if rule == 0:
            for r in range(k):
                f = np.tanh(z[r])
                g[r] = step * (t[r] - f) * (1.0 - f * f)
        elif rule == 1:
            for r in range(k):
                g[r] = step * t[r] if t[r] * z[r] < 1.0 else 0.0
        elif rule == 3:
            for r in range(k):
                g[r] = step * t[r] if (z[r] > 0) != (t[r] > 0) else 0.0
        elif rule >= 4:
            length, least = float(K[i, i]), 0.0 if rule == 5 else -np.inf
            if length > 0.0:
                for r in range(k):
                    size = min(step, 1.0 - float(t[r]) * float(z[r]) / length)
                    g[r] = t[r] * max(least, size)
        else:
            exponent, length = 0.0, float(K[i, i])
            for r in range(k):
                power = min(exponent - float(t[r] * z[r]), LARGEST_EXPONENT)
                g[r] = step * t[r] * np.exp(power)
                exponent -= float(t[r]) * (float(z[r]) + float(g[r]) * length)
