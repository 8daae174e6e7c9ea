"""The pairwise part of SDOH's gradient, in one pass over blocks of pairs.

With U = 1 / (1 + D/η) and Z = Σ U, SDOH's weight of a pair is L = A − C/Z, where neither A (of the
label distribution) nor C (of the code distribution) needs Z. So both are gathered, together with Z
and the loss, while a block of pairs is in cache, and no n × n array is ever stored:

    form          A         C          what it is
    "exact"       P U / η   U² / η     the derivative of the loss
    "released"    P U       U²         the authors' program: 1/η left out
    "printed"     P / U     1          the paper's T = 1 + D/η, not inverted

Distances are the same both ways, so a block of pairs is computed once and used for its rows and its
columns. The blocks and the order of their sums do not depend on the number of threads: the outcome
is the same bit for bit.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.kernels.compile import kernel
from streamhash.labels import neighbours
from streamhash.threads import run_blocks

Floats = NDArray[np.float32]
FORMS = ("exact", "released", "printed")
ROWS = 256  # of a block: two blocks of weights, A and C, fit a core's second-level cache


@dataclass(frozen=True)
class PairRule:
    """What a pair weighs: its probability in P and its scale η, if similar and if not."""

    p_similar: float
    p_dissimilar: float
    scale_similar: float
    scale_dissimilar: float
    form: str = "exact"

    def packed(self, k: int) -> tuple[Floats, int, int]:
        """Return what the kernel reads: numbers, form, and factors to one logarithm of the loss.

        The loss takes one logarithm of a product of many 1 + D/η ≤ 1 + k/η: of as many as cannot
        overflow a float64.
        """
        inverse = 1 / self.scale_similar, 1 / self.scale_dissimilar
        values = np.array([self.p_similar, self.p_dissimilar, *inverse], np.float32)
        chunk = int(300 / math.log10(1 + k * max(inverse)))
        return values, FORMS.index(self.form), min(max(chunk, 1), 256)


def count_similar(labels: NDArray[Any]) -> int:
    """Count the ordered pairs i ≠ j that are similar."""
    if labels.ndim == 1:
        sizes = np.bincount(labels).astype(np.int64)
        return int((sizes * (sizes - 1)).sum())
    n = len(labels)
    blocks = (neighbours(labels[i : i + ROWS], labels) for i in range(0, n, ROWS))
    return sum(int(block.sum()) for block in blocks) - int((labels.sum(axis=1) > 0).sum())


def plain_pair_gradient(
    B: Floats, V: Floats, labels: NDArray[Any], rule: PairRule
) -> tuple[Floats, float]:
    """Return diag(L 1) V − L V (n, k) and the loss −Σ P log Q, in the open: the slow twin."""
    S = neighbours(labels, labels)  # (n, n)
    eta = np.where(S, np.float32(rule.scale_similar), np.float32(rule.scale_dissimilar))
    P = np.where(S, np.float32(rule.p_similar), np.float32(rule.p_dissimilar))
    np.fill_diagonal(P, 0)
    lengths = np.einsum("ik,ik->i", B, B)  # (n,)
    D = np.maximum(lengths[:, None] + lengths[None, :] - 2 * (B @ B.T), 0) / 4  # (n, n)
    T = 1 + D / eta
    U = 1 / T
    np.fill_diagonal(U, 0)
    Z = U.sum(dtype=np.float64)
    loss = float(np.sum(P * np.log(T), dtype=np.float64) + P.sum(dtype=np.float64) * np.log(Z))
    difference = P - U / np.float32(Z)
    L = {"exact": difference * U / eta, "released": difference * U, "printed": difference * T}
    weights = L[rule.form].astype(np.float32)
    np.fill_diagonal(weights, 0)
    return weights.sum(axis=1)[:, None] * V - weights @ V, loss


def pair_gradient(
    B: Floats, V: Floats, labels: NDArray[Any], rule: PairRule
) -> tuple[Floats, float]:
    """Return what ``plain_pair_gradient`` returns, in blocks, compiled, on all threads."""
    n, k = B.shape
    blocks = [slice(start, min(start + ROWS, n)) for start in range(0, n, ROWS)]
    weigh = partial(_weigh_block, B, labels, np.einsum("ik,ik->i", B, B) / 4, rule.packed(k))
    pulls = np.zeros((2, n, k), np.float32)  # A V and C V
    weights = np.zeros((2, n), np.float32)  # A 1 and C 1
    sums = np.zeros(3)  # U, and log(1 + D/η) of similar pairs and of the others

    def one_block(pair: tuple[slice, slice]) -> tuple[Floats, Floats, NDArray[np.float64]]:
        rows, columns = pair
        AC, in_rows, in_columns, in_sums = weigh(rows, columns)
        if rows != columns:
            pulls[:, columns] += AC.transpose(0, 2, 1) @ V[rows]
            weights[:, columns] += in_columns
            in_sums *= 2  # these pairs stand for both orders
        return AC @ V[columns], in_rows, in_sums

    # A pair of blocks serves the rows of both. One block of rows at a time, all columns beside each
    # other: so each row is written by one thread, and sums are always added in the same order.
    for i, rows in enumerate(blocks):
        for pull, weight, in_sums in run_blocks(one_block, [(rows, other) for other in blocks[i:]]):
            pulls[:, rows] += pull
            weights[:, rows] += weight
            sums += in_sums

    Z, log_similar, log_dissimilar = sums
    loss = rule.p_similar * log_similar + rule.p_dissimilar * log_dissimilar + np.log(Z)
    gradient = weights[:, :, None] * V - pulls  # diag(A 1) V − A V, and the same of C
    return gradient[0] - gradient[1] / np.float32(Z), float(loss)


def _weigh_block(
    B: Floats,
    labels: NDArray[Any],
    lengths: Floats,
    packed: tuple[Floats, int, int],
    rows: slice,
    columns: slice,
) -> tuple[Floats, Floats, Floats, NDArray[np.float64]]:
    """Return the weights A and C of a block (2, rows, columns), their sums both ways, and sums."""
    same = neighbours(labels[rows], labels[columns])
    AC = np.empty((2, *same.shape), np.float32)
    np.matmul(B[rows], B[columns].T, out=AC[0])
    in_rows = np.zeros((2, same.shape[0]), np.float32)
    in_columns = np.zeros((2, same.shape[1]), np.float32)
    sums = np.zeros(3)
    _weigh(AC, same, lengths[rows], lengths[columns], rows == columns, *packed,
           in_rows, in_columns, sums)  # fmt: skip
    return AC, in_rows, in_columns, sums


@kernel
def _weigh(
    AC: Any,
    same: Any,
    lengths: Any,
    other_lengths: Any,
    is_diagonal: bool,
    values: Any,
    form: int,
    chunk: int,
    in_rows: Any,
    in_columns: Any,
    sums: Any,
) -> None:
    """Turn a block of inner products (in A) into the weights A and C, and add up U and the logs."""
    p_similar, p_other, inverse_similar, inverse_other = values
    n_rows, n_columns = same.shape
    zero, half, one = np.float32(0), np.float32(0.5), np.float32(1)
    T = np.empty(n_columns, np.float32)
    total, log_similar, log_all = 0.0, 0.0, 0.0  # float64
    for i in range(n_rows):
        a, c, s = AC[0, i], AC[1, i], same[i]
        length = lengths[i]
        for j in range(n_columns):
            D = max(length + other_lengths[j] - half * a[j], zero)
            T[j] = one + D * (inverse_similar if s[j] else inverse_other)
        if is_diagonal:  # the pair of an item with itself has no weight
            T[i] = np.inf
        sum_u, sum_a, sum_c = np.float32(0), np.float32(0), np.float32(0)
        if form == 0:
            for j in range(n_columns):
                u = one / T[j]
                v = u * (inverse_similar if s[j] else inverse_other)
                a[j] = v * (p_similar if s[j] else p_other)
                c[j] = v * u
                sum_u += u
        elif form == 1:
            for j in range(n_columns):
                u = one / T[j]
                a[j] = u * (p_similar if s[j] else p_other)
                c[j] = u * u
                sum_u += u
        else:
            for j in range(n_columns):
                a[j] = T[j] * (p_similar if s[j] else p_other)
                c[j] = one
                sum_u += one / T[j]
        if is_diagonal:
            a[i], c[i] = zero, zero
            T[i] = one
        for j in range(n_columns):
            sum_a += a[j]
            sum_c += c[j]
            in_columns[0, j] += a[j]
            in_columns[1, j] += c[j]
        in_rows[0, i], in_rows[1, i] = sum_a, sum_c
        total += float(sum_u)
        for first in range(0, n_columns, chunk):
            product_similar, product = 1.0, 1.0
            for j in range(first, min(first + chunk, n_columns)):
                t = np.float64(T[j])
                product *= t
                product_similar *= t if s[j] else 1.0
            log_all += float(np.log(product))
            log_similar += float(np.log(product_similar))
    sums[0], sums[1], sums[2] = total, log_similar, log_all - log_similar
