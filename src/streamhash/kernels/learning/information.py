"""Mutual information of distances and neighbourhood: MIHash's steps, and how good codes are.

MIHash learns from one instance at a time. What it needs of W are the projections of the instance
and of R sampled items, and a step changes W by −x gᵀ, so that all projections change by −(x · x_r)
g. With the inner products of a block's rows known beforehand, the steps of a block need no W at
all: the same trajectory as with W updated after every instance, in R k operations a step instead of
R d k.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import to_words
from streamhash.kernels.compile import kernel
from streamhash.kernels.hamming.planes import bits_in

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
CLIP = 42.0  # of the argument of the sigmoid, as in the authors' program


def plain_information_gradient(
    distances: NDArray[Any], same: Bools, k: int, n_bins: int
) -> tuple[float, NDArray[np.float64]]:
    """Return I, of distances (R,) and neighbourhood (R,), and the derivative of −I by distances.

    Soft histograms: a distance counts for the two bin centres 0, Δ, ..., k next to it.
    """
    width = k / n_bins
    centres = width * np.arange(n_bins + 1)  # (K + 1,)
    offset = (np.asarray(distances, np.float64)[:, None] - centres) / width  # (R, K + 1)
    t = np.maximum(0, 1 - abs(offset))
    slope = np.where((offset > -1) & (offset <= 0), 1.0, 0.0)
    slope = (slope - ((offset > 0) & (offset <= 1))) / width
    if same.all() or not same.any():
        return 0.0, np.zeros(len(t))  # nothing to tell apart
    share = same.mean()
    near, far, both = t[same].mean(axis=0), t[~same].mean(axis=0), t.mean(axis=0)
    information = _entropy(both) - share * _entropy(near) - (1 - share) * _entropy(far)
    own = np.where(same[:, None], _log(near), _log(far))  # (R, K + 1)
    return float(information), (slope * (_log(both) - own)).sum(axis=1) / len(t)


def _log(p: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.log2(p, out=np.zeros_like(p), where=p > 0)


def _entropy(p: NDArray[np.float64]) -> float:
    return -float((p * _log(p)).sum())


def plain_information_steps(
    Z: Floats,
    V: Floats,
    inner: Floats,
    same: Bools,
    slots: NDArray[np.int32],
    n_filled: int,
    rates: Floats,
    *,
    sharpness: float,
    n_bins: int,
    exact: bool,
) -> tuple[Floats, float]:
    """Take MIHash's steps for a block of rows; return the steps' G (m, k) and I of the last one.

    Parameters
    ----------
    Z : (R, k) projections of the sampled items; those from ``n_filled`` on have not come
    V : (m, k) projections of the rows of the block
    inner : (m, R + m) inner products of the rows of the block with items and rows
    same : (m, R + m) which of them are neighbours
    slots : (m,) the place that a row takes in the sample after its own step; -1: none
    rates : (m,) step sizes
    """
    Z, V, k = Z.copy(), V.copy(), V.shape[1]
    m = len(V)
    who = np.arange(len(Z))  # which item, or row, is in a place of the sample
    G = np.zeros_like(V)
    information = np.nan
    for t in range(m):
        if n_filled:
            psi = np.tanh(0.5 * np.clip(sharpness * Z[:n_filled], -CLIP, CLIP))  # 2 φ(x_r) − 1
            phi = 1 / (1 + np.exp(-np.clip(sharpness * V[t], -CLIP, CLIP)))  # (k,)
            distances = np.clip((k - psi @ (2 * phi - 1)) / 2, 0, k)
            information, coefficients = plain_information_gradient(
                distances, same[t, who[:n_filled]], k, n_bins
            )
            J = -psi if exact else -(psi + 1) / 4  # (R, k)
            G[t] = rates[t] * sharpness * phi * (1 - phi) * (coefficients @ J)
            Z -= inner[t, who][:, None] * G[t]
            V -= inner[t, len(who) :][:, None] * G[t]
        if slots[t] >= 0:
            who[slots[t]] = len(who) + t
            Z[slots[t]] = V[t]
            n_filled = max(n_filled, int(slots[t]) + 1)
    return G, information


@kernel
def information_steps(
    Z: Floats,
    V: Floats,
    inner: Floats,
    same: Bools,
    slots: NDArray[np.int32],
    n_filled: int,
    rates: Floats,
    sharpness: float,
    n_bins: int,
    exact: bool,
) -> tuple[Floats, float]:
    """Return what ``plain_information_steps`` returns, compiled."""
    Z, V, G = Z.copy(), V.copy(), np.zeros_like(V)
    (R, k), m = Z.shape, len(V)
    psi = np.empty((R, k), np.float32)
    psi_x, total = np.empty(k, np.float32), np.empty(k, np.float32)
    slope_x = np.empty(k)
    distances, kin = np.empty(R, np.float32), np.empty(R, np.bool_)
    who = np.arange(R)
    information = np.nan
    for t in range(m):
        for j in range(t):  # the steps taken since this row was projected
            for q in range(k):
                V[t, q] -= inner[j, R + t] * G[j, q]
        n_near = 0
        for r in range(n_filled):
            kin[r] = same[t, who[r]]
            n_near += kin[r]
        if n_filled:
            information = 0.0
        if 0 < n_near < n_filled:
            for q in range(k):
                z = min(max(sharpness * V[t, q], -CLIP), CLIP)
                phi = 1 / (1 + math.exp(-z))
                psi_x[q] = 2 * phi - 1
                slope_x[q] = sharpness * phi * (1 - phi)
            _distances(Z, psi, psi_x, np.float32(sharpness), n_filled, distances)
            information, weights = _weights(distances, kin, n_filled, n_near, k, n_bins)
            total[:] = 0
            sum_of_weights = np.float32(0)
            for r in range(n_filled):
                w = weights[r]
                sum_of_weights += w
                for q in range(k):
                    total[q] += w * psi[r, q]
            for q in range(k):
                pull = total[q] if exact else (total[q] + sum_of_weights) / 4
                G[t, q] = -rates[t] * slope_x[q] * pull
            for r in range(n_filled):
                change = inner[t, who[r]]
                for q in range(k):
                    Z[r, q] -= change * G[t, q]
        if slots[t] >= 0:
            s = slots[t]
            who[s] = R + t
            n_filled = max(n_filled, s + 1)
            for q in range(k):
                Z[s, q] = V[t, q] - inner[t, R + t] * G[t, q]
    return G, information


@kernel
def _distances(Z: Any, psi: Any, psi_x: Any, sharpness: Any, n_filled: int, distances: Any) -> None:
    """psi = tanh(A z / 2) of each item, and its distance (k − psi · psi_x) / 2 from x."""
    k = Z.shape[1]
    eighth, limit = sharpness / np.float32(8), np.float32(2.25)
    for r in range(n_filled):
        product = np.float32(0)
        for q in range(k):
            # tanh(4u) by Lambert's fraction n/d of tanh(u), with tanh(2u) = 2 n d / (d² + n²)
            # twice: one division, and within 3e-7 everywhere. It is 1 from 4u = 9 on.
            u = min(max(eighth * Z[r, q], -limit), limit)
            s = u * u
            n = u * (np.float32(135135) + s * (np.float32(17325) + s * (np.float32(378) + s)))
            d = np.float32(135135) + s * (
                np.float32(62370) + s * (np.float32(3150) + s * np.float32(28))
            )
            n, d = np.float32(2) * n * d, d * d + n * n
            value = np.float32(2) * n * d / (d * d + n * n)
            psi[r, q] = value
            product += value * psi_x[q]
        distances[r] = min(max((k - product) / 2, np.float32(0)), np.float32(k))


@kernel
def _weights(
    distances: Any, kin: Any, n_filled: int, n_near: int, k: int, n_bins: int
) -> tuple[float, Any]:
    """``plain_information_gradient`` of the first n_filled items, near and far ones both there."""
    counts = np.zeros((2, n_bins + 1))  # of far and near items
    scale = n_bins / k  # 1/Δ
    for r in range(n_filled):
        place = distances[r] * scale
        low = min(int(place), n_bins) if place >= 0 else 0  # of rows so large it is no number
        counts[int(kin[r]), low] += 1 - (place - low)
        if low < n_bins:
            counts[int(kin[r]), low + 1] += place - low
    sizes = (n_filled - n_near, n_near)
    logs = np.zeros((2, n_bins + 1))  # log p − log p±, 0 for empty bins
    information = 0.0
    for i in range(n_bins + 1):
        p = (counts[0, i] + counts[1, i]) / n_filled
        for side in range(2):
            q = counts[side, i] / sizes[side]
            logs[side, i] = (math.log2(p) if p > 0 else 0.0) - (math.log2(q) if q > 0 else 0.0)
            if q > 0:
                information -= sizes[side] / n_filled * q * logs[side, i]
    weights = np.empty(n_filled, np.float32)
    for r in range(n_filled):
        place = distances[r] * scale
        high = math.ceil(place) if place >= 0 else 0  # the bin whose share grows with the distance
        side = int(kin[r])
        below = logs[side, high - 1] if high > 0 else 0.0
        above = logs[side, high] if high <= n_bins else 0.0
        weights[r] = (above - below) * scale / n_filled
    return information, weights


def code_information(
    codes: NDArray[np.uint8],
    same: Bools,
    n_bits: int,
    *,
    queries: NDArray[np.uint8] | None = None,
) -> float:
    """Return the mean mutual information of packed codes (n, bytes) and neighbourhood (n, n).

    Of each item's distances to all, in k bins with k − 1 and k in the last; an item is its own
    neighbour. In bits; what is below zero by rounding is zero. With queries (m, bytes), of their
    distances to the items instead, and their neighbourhood (m, n).
    """
    logs = _log(np.arange(len(codes) + 1, dtype=np.float64))  # of every count there can be
    words = to_words(codes)
    if queries is None:
        return float(
            _mean_information(words, words, same | np.eye(len(same), dtype=bool), n_bits, logs)
        )
    return float(_mean_information(to_words(queries), words, same, n_bits, logs))


@kernel
def _mean_information(queries: Any, items: Any, same: Any, k: int, logs: Any) -> float:
    """Σ c (log c + log n − log c₊ − log c_d) / n of a query: its counts c by side and distance."""
    n, total = len(items), 0.0
    counts = np.zeros((2, k), np.int64)  # of far and near items at each distance
    for i in range(len(queries)):
        counts[:] = 0
        for j in range(n):
            distance = 0
            for w in range(items.shape[1]):
                distance += int(bits_in(queries[i, w] ^ items[j, w]))
            counts[int(same[i, j]), min(distance, k - 1)] += 1
        information = 0.0
        for side in range(2):
            size = counts[side].sum()
            for d in range(k):
                c = counts[side, d]
                all_d = counts[0, d] + counts[1, d]
                information += c * (logs[c] + logs[n] - logs[size] - logs[all_d])
        total += max(information / n, 0.0)
    return total / len(queries)
