"""Learning from one pair after the other, exactly, without touching W at every pair.

Two methods learn from a sequence of pairs of instances: OKH adds two rank-one terms to W at a pair
that breaks its requirement, AdaptHash adds two of them, pulls the columns of W apart and brings
them back to unit length. Both are re-associated over a block of pairs with rows X (2m, d), so that
W is read once and written once a block and the result is that of the plain loop but for rounding:

    OKH          W_t = W_0 + Xᵀ G_t            projections x_r W_t = x_r W_0 + Σ_q (x_r·x_q) G_q
    AdaptHash    W_t = W_0 A_t − Xᵀ C_t        with A (k, k) and S = WᵀW (k, k) kept beside

so a pair costs OKH O(m k) and AdaptHash O((m + k) k²), whatever the number of features d is. The
slow twins, ``plain_...``, do the same pair by pair on W itself.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.kernels.compile import kernel

Floats = NDArray[Any]  # float32; float64 where tests want the last digits
Flags = NDArray[np.bool_]
PAIRS = 32  # of a block
# A threshold such as 0.7 k is a whole number that floating point may miss by a little.
SLACK = 1e-9
# A squared length that is less than this share of its terms is taken from W itself.
CANCELLED = 0.05


def learn_passive_pairs(
    W: Floats, Z: Floats, similar: Flags, *, cap: float, margin: float
) -> tuple[Floats, int]:
    """Return W (d, k) after OKH's rounds with the pairs of rows (0, 1), (2, 3), ... of Z (2m, d).

    ``similar`` (m,) tells the kind of each pair, ``cap`` and ``margin`` are OKH's C and α. The
    second value is the number of pairs that changed W.
    """
    n_active = 0
    for first in range(0, len(similar), PAIRS):
        kinds = similar[first : first + PAIRS]
        X = Z[2 * first : 2 * (first + len(kinds))]  # (2m, d)
        G = np.zeros((len(X), W.shape[1]), W.dtype)  # (2m, k)
        active = _passive_block(X @ W, X @ X.T, kinds, cap, margin, G)
        if active:
            W = W + X.T @ G
            n_active += active
    return W, n_active


def plain_passive_pairs(
    W: Floats, Z: Floats, similar: Flags, *, cap: float, margin: float
) -> tuple[Floats, int]:
    """Return what ``learn_passive_pairs`` returns, pair by pair: the slow twin."""
    n_active = 0
    for t, same in enumerate(similar):
        x, y = Z[2 * t], Z[2 * t + 1]  # (d,)
        u, v = x @ W, y @ W  # (k,)
        h, other = np.where(u > 0, 1, -1), np.where(v > 0, 1, -1)
        differ = h != other
        n_differ = int(differ.sum())
        R = n_differ if same else margin * len(u) - n_differ
        n_flips = int(np.ceil(R - SLACK))
        if n_flips <= 0:
            continue
        scores = np.minimum(abs(u), abs(v))
        scores[differ != same] = np.inf  # only bits that are wrong may be flipped
        chosen = np.argsort(scores, kind="stable")[:n_flips]
        of_first = chosen[abs(u[chosen]) <= abs(v[chosen])]
        of_second = chosen[abs(u[chosen]) > abs(v[chosen])]
        a, b = np.zeros_like(u), np.zeros_like(v)  # g − h of both
        a[of_first], b[of_second] = -2 * h[of_first], -2 * other[of_second]
        loss = -(a @ u) - (b @ v) + np.sqrt(R)
        length = (a @ a) * (x @ x) + (b @ b) * (y @ y)  # a·b = 0: a bit is flipped in one of them
        tau = W.dtype.type(min(cap, loss / length))
        W = W + tau * (np.outer(x, a) + np.outer(y, b))
        n_active += 1
    return W, n_active


@kernel
def _passive_block(P: Any, K: Any, similar: Any, cap: float, margin: float, G: Any) -> int:
    """Fill G (2m, k) for P = X W_0 (2m, k) and K = X Xᵀ (2m, 2m); return the active pairs."""
    n_bits = P.shape[1]
    chosen = np.empty(n_bits, np.bool_)
    scores = np.empty(n_bits, P.dtype)
    active = np.zeros(len(similar), np.bool_)
    n_active = 0
    for t in range(len(similar)):
        i, j = 2 * t, 2 * t + 1
        u, v = P[i], P[j]
        for before in range(t):
            if active[before]:
                for q in range(2 * before, 2 * before + 2):
                    g, to_first, to_second = G[q], K[i, q], K[j, q]
                    for r in range(n_bits):
                        u[r] += to_first * g[r]
                        v[r] += to_second * g[r]
        n_differ = 0
        for r in range(n_bits):
            differs = (u[r] > 0) != (v[r] > 0)
            n_differ += differs
            scores[r] = min(abs(u[r]), abs(v[r])) if differs == similar[t] else np.inf
        R = float(n_differ) if similar[t] else margin * n_bits - n_differ
        n_flips = int(np.ceil(R - SLACK))
        if n_flips <= 0:
            continue
        _choose_smallest(scores, n_flips, chosen)
        loss, length = np.sqrt(R), 0.0
        for r in range(n_bits):
            if chosen[r]:
                if abs(u[r]) <= abs(v[r]):
                    loss += 2 * abs(u[r])
                    length += 4 * K[i, i]
                else:
                    loss += 2 * abs(v[r])
                    length += 4 * K[j, j]
        step = P.dtype.type(2 * min(cap, loss / length))
        for r in range(n_bits):
            if chosen[r]:
                if abs(u[r]) <= abs(v[r]):
                    G[i, r] = -step if u[r] > 0 else step
                else:
                    G[j, r] = -step if v[r] > 0 else step
        active[t] = True
        n_active += 1
    return n_active


def learn_adaptive_pairs(
    W: Floats, X: Floats, similar: Flags, *, step: float, margin: float, spread: float
) -> tuple[Floats, int]:
    """Return W (d, k) after AdaptHash's steps with the pairs of rows (0, 1), (2, 3), ... of X.

    ``similar`` (m,) tells the kind of each pair; ``margin`` and ``spread`` are AdaptHash's α and β.
    The second value is the number of pairs that changed W.
    """
    n_active = first = 0
    while first < len(similar):
        kinds = similar[first : first + PAIRS]
        rows = X[2 * first : 2 * (first + len(kinds))]  # (2m, d)
        n_done, active, C, A = _adaptive_block(W, rows, kinds, step, margin, spread)
        if active:
            W = _unit_columns(W @ A - rows[: 2 * n_done].T @ C)  # but for rounding they are
            n_active += active
        if n_done < len(kinds):
            pair = slice(2 * n_done, 2 * n_done + 2)
            W, active = plain_adaptive_pairs(
                W, rows[pair], kinds[n_done:][:1], step=step, margin=margin, spread=spread
            )
            n_active += active
            n_done += 1
        first += n_done
    return W, n_active


def _adaptive_block(
    W: Floats, X: Floats, similar: Flags, step: float, margin: float, spread: float
) -> tuple[int, int, Floats, Floats]:
    """Return the pairs done, how many were active, C (2 done, k) and A (k, k) of a block.

    A step is W ← (W T − x aᵀ − y bᵀ) D with T = (1 + β) I − β S and D diagonal, so one product with
    T serves all that is kept: the rows X W (2m, k), A and S = WᵀW, one below the other. Once a pair
    has been learned from, its two rows are no longer needed and hold those of C instead.

    The block ends early before a step that nearly cancels a column of W: lengths from S would be
    mostly rounding there, and such a step is to be taken on W itself.
    """
    n, k = len(X), W.shape[1]
    stack = np.concatenate([X @ W, np.eye(k, dtype=W.dtype), W.T @ W])  # (2m + 2k, k)
    other = np.empty_like(stack)
    K = X @ X.T  # (2m, 2m)
    ab, T, S = (np.empty((rows, k), W.dtype) for rows in (2, k, k))
    n_active = 0
    for t, same in enumerate(similar):
        if _wrong_bits(stack, t, same, step, margin, spread, ab, T):
            np.matmul(stack, T, out=other)
            np.matmul(other[n + k :], T, out=S)  # T S T
            if not _move(other, S, K, t, ab):
                return t, n_active, stack[: 2 * t], stack[n : n + k]
            stack, other = other, stack
            n_active += 1
    return len(similar), n_active, stack[:n], stack[n : n + k]


def plain_adaptive_pairs(
    W: Floats, X: Floats, similar: Flags, *, step: float, margin: float, spread: float
) -> tuple[Floats, int]:
    """Return what ``learn_adaptive_pairs`` returns, pair by pair: the slow twin."""
    k, n_active = W.shape[1], 0
    number = W.dtype.type
    for t, same in enumerate(similar):
        x, y = X[2 * t], X[2 * t + 1]  # (d,)
        v, u = x @ W, y @ W  # (k,)
        differ = (v > 0) != (u > 0)
        n_differ = int(differ.sum())
        loss = n_differ - (1 - margin) * k if same else margin * k - n_differ
        n_wrong = int(np.ceil(loss - SLACK))
        if n_wrong <= 0:
            continue
        scores = -np.maximum(abs(v), abs(u))
        scores[differ != same] = np.inf
        chosen = np.argsort(scores, kind="stable")[:n_wrong]
        w, z = np.tanh(v / 2), np.tanh(u / 2)
        error = number(2 * step * (w @ z - (k if same else -k)))
        a, b = np.zeros_like(v), np.zeros_like(u)
        a[chosen] = error * (z * (1 - w * w) / 2)[chosen]
        b[chosen] = error * (w * (1 - z * z) / 2)[chosen]
        M = np.outer(x, a) + np.outer(y, b)  # (d, k)
        M += number(spread) * (W @ (W.T @ W - np.eye(k, dtype=W.dtype)))
        W = _unit_columns(W - M)
        n_active += 1
    return W, n_active


def _unit_columns(W: Floats) -> Floats:
    lengths = np.sqrt(np.einsum("dk,dk->k", W, W))
    lengths[lengths == 0] = 1
    unit: Floats = W / lengths
    return unit


@kernel
def _wrong_bits(
    stack: Any, t: int, similar: bool, step: float, margin: float, spread: float, ab: Any, T: Any
) -> bool:
    """Fill a, b (2, k) and T (k, k) for pair t; return False if there is nothing to learn."""
    k = stack.shape[1]
    number = stack.dtype.type
    v, u = stack[2 * t], stack[2 * t + 1]
    w, z = ab[0], ab[1]
    scores, chosen = np.empty(k, stack.dtype), np.empty(k, np.bool_)
    n_differ = 0
    for r in range(k):
        differs = (v[r] > 0) != (u[r] > 0)
        n_differ += differs
        scores[r] = -max(abs(v[r]), abs(u[r])) if differs == similar else np.inf
    loss = n_differ - (1 - margin) * k if similar else margin * k - n_differ
    n_wrong = int(np.ceil(loss - SLACK))
    if n_wrong <= 0:
        v[:] = 0  # nothing of this pair in C
        u[:] = 0
        return False
    _choose_smallest(scores, n_wrong, chosen)
    half, one, beta = number(0.5), number(1), number(spread)
    inner = number(0)
    for r in range(k):
        w[r], z[r] = np.tanh(half * v[r]), np.tanh(half * u[r])
        inner += w[r] * z[r]
    error = number(2 * step * (inner - (k if similar else -k)))
    for r in range(k):
        f, g = w[r], z[r]
        ab[0, r] = error * g * (one - f * f) * half if chosen[r] else number(0)
        ab[1, r] = error * f * (one - g * g) * half if chosen[r] else number(0)
    S = stack[len(stack) - k :]
    for p in range(k):
        for r in range(k):
            T[p, r] = -beta * S[p, r]
        T[p, p] += one + beta
    return True


@kernel
def _move(stack: Any, S: Any, K: Any, t: int, ab: Any) -> bool:
    """Take x aᵀ + y bᵀ off W T, and scale its columns, in all that is kept of it.

    ``stack`` has been multiplied by T, ``S`` is T S T, and is written back into ``stack``. Return
    False if a column is nearly cancelled.
    """
    n, k = len(K), stack.shape[1]
    one = stack.dtype.type(1)
    i, j = 2 * t, 2 * t + 1
    a, b = ab[0], ab[1]
    x_W, y_W = stack[i], stack[j]
    xx, xy, yy = K[i, i], K[i, j], K[j, j]
    for p in range(k):
        for_a = xx * a[p] + xy * b[p] - x_W[p]
        for_b = xy * a[p] + yy * b[p] - y_W[p]
        for r in range(k):
            S[p, r] += for_a * a[r] + for_b * b[r] - a[p] * x_W[r] - b[p] * y_W[r]
    for r in range(k):  # W had columns of unit length
        if not S[r, r] > CANCELLED * (1 + xx * a[r] * a[r] + yy * b[r] * b[r]):
            return False
    for q in range(j + 1, n):
        to_first, to_second = K[q, i], K[q, j]
        for r in range(k):
            stack[q, r] -= to_first * a[r] + to_second * b[r]
    stack[i], stack[j] = a, b
    D = np.empty(k, stack.dtype)
    for r in range(k):
        D[r] = one / np.sqrt(S[r, r])
    for q in range(n + k):
        for r in range(k):
            stack[q, r] *= D[r]
    for p in range(k):
        for r in range(k):
            stack[n + k + p, r] = S[p, r] * D[p] * D[r]
    return True


@kernel
def _choose_smallest(scores: Any, n: int, chosen: Any) -> None:
    """Mark the n smallest scores, of equal ones those that come first."""
    border = np.partition(scores, n - 1)[n - 1]
    room = n
    for r in range(len(scores)):
        chosen[r] = scores[r] < border
        room -= chosen[r]
    for r in range(len(scores)):
        if room > 0 and scores[r] == border:
            chosen[r] = True
            room -= 1
