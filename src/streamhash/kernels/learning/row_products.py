"""Products of rows with a matrix, with the same bits for a row in any company.

Not every BLAS treats the rows of a product alike: that of NumPy 2.4 for AVX2 sums rows at some
places in two halves, and others in one. ``are_alike`` tries it, and where they are not, the loop
below takes the place of BLAS. It does so for few rows in any case, with the very bits that BLAS
gives the same rows among many:

BLAS copies the whole matrix into an order of its own before it multiplies, which takes longer than
the product of a few rows. A row's entries are sums of d products each, and rounding makes a sum
depend on its order. That of OpenBLAS is simple: the d terms are cut into blocks; within a block
they are added one after the other, each product and sum rounded once, and the sums of the blocks
are added up. How long blocks are depends on the processor. So ``blocks_of_blas`` tries what there
may be on random rows, and where one gives the same bits, the loop below takes the place of BLAS.
Where none does, as with another BLAS, there is no such loop to take.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.kernels.compile import kernel

Floats = NDArray[np.float32]
Ends = NDArray[np.int64]  # where blocks end

LONGEST_BLOCKS = range(128, 1057, 32)  # terms; 448 where there is AVX-512, 320 to 768 elsewhere
ROUNDED_TO = (4, 8, 16, 32)  # terms that halves of a block are made a multiple of
COMPARED = 128  # sums at least, of which not one may differ
PLACES = range(0, 25, 4)  # rows more, for a BLAS that takes them by twelves
OWN_BLOCKS = (448, 16)  # as with AVX-512, where BLAS does not treat rows alike
TILE = 32  # rows whose sums are made at once


def plain_product(X: Floats, W: Floats) -> NDArray[np.float64]:
    """Return X (n, d) W (d, k) in float64: the slow twin."""
    product: NDArray[np.float64] = X.astype(np.float64) @ W.astype(np.float64)
    return product


def blocks(d: int, longest: int, rounded_to: int) -> Ends:
    """Return where blocks of d terms end: of less than two whole ones, the halves are taken.

    >>> blocks(1000, 448, 16).tolist(), blocks(784, 448, 16).tolist()
    ([448, 736, 1000], [400, 784])
    """
    ends, start = list[int](), 0
    while start < d:
        size = d - start
        if size >= 2 * longest:
            size = longest
        elif size > longest:
            size = -(-(size // 2) // rounded_to) * rounded_to
        start += size
        ends.append(start)
    return np.array(ends, np.int64)


def are_alike(d: int, k: int, least: int, product: Callable[[Floats, Floats], Floats]) -> bool:
    """Tell whether ``product`` of d terms and k columns has the same bits for a row at any place.

    It is asked for ``least`` rows and somewhat more, which are all the same.
    """
    random = np.random.default_rng(0)
    x, W = random.standard_normal((1, d), np.float32), random.standard_normal((d, k), np.float32)
    products = (product(np.repeat(x, least + more, axis=0), W) for more in PLACES)
    first = next(products)
    return bool((first == first[0]).all()) and all((each == first[0]).all() for each in products)


def blocks_of_blas(d: int, k: int, product: Callable[[Floats, Floats], Floats]) -> Ends | None:
    """Return the blocks by which ``product`` sums d terms for k columns, None if that is not known.

    It is asked for random rows, and nothing else is known of it.
    """
    random = np.random.default_rng(0)
    W = random.standard_normal((d, k), np.float32)
    X = random.standard_normal((-(-COMPARED // k), d), np.float32)
    wanted = product(X, W)
    tried = {
        tuple(ends.tolist()): ends
        for longest in LONGEST_BLOCKS
        for rounded_to in ROUNDED_TO
        for ends in [blocks(d, longest, rounded_to)]
    }
    same = (
        ends for ends in tried.values() if np.array_equal(product_by_blocks(X, W, ends), wanted)
    )
    return next(same, None)


def product_by_blocks(X: Floats, W: Floats, ends: Ends) -> Floats:
    """Return X (n, d) W (d, k), each entry summed block by block."""
    out = np.zeros((len(X), W.shape[1]), np.float32)
    # Arrays that are read-only would be other types to the compiled loop.
    rows, weights = (np.require(each, np.float32, ["C", "W"]) for each in (X, W))
    _add_by_tiles(rows, weights, ends, out)
    return out


@kernel
def _add_by_tiles(X: Any, W: Any, ends: Any, out: Any) -> None:
    for start in range(0, len(X), TILE):
        add_blocks(X[start : start + TILE], W, ends, out[start : start + TILE])


@kernel
def add_blocks(X: Any, W: Any, ends: Any, out: Any) -> None:
    """Add X (n, d) W (d, k) to ``out`` (n, k), each entry summed block by block."""
    n, k = out.shape
    sums = np.empty((n, k), np.float32)
    start = 0
    for end in ends:
        sums[:] = 0
        whole = end - (end - start) % 8
        for i in range(start, whole, 8):
            w0, w1, w2, w3 = W[i], W[i + 1], W[i + 2], W[i + 3]
            w4, w5, w6, w7 = W[i + 4], W[i + 5], W[i + 6], W[i + 7]
            for row in range(n):
                own = sums[row]
                x0, x1, x2, x3 = X[row, i], X[row, i + 1], X[row, i + 2], X[row, i + 3]
                x4, x5, x6, x7 = X[row, i + 4], X[row, i + 5], X[row, i + 6], X[row, i + 7]
                for j in range(k):
                    s = (((own[j] + x0 * w0[j]) + x1 * w1[j]) + x2 * w2[j]) + x3 * w3[j]
                    own[j] = (((s + x4 * w4[j]) + x5 * w5[j]) + x6 * w6[j]) + x7 * w7[j]
        for i in range(whole, end):
            for row in range(n):
                for j in range(k):
                    sums[row, j] += X[row, i] * W[i, j]
        for row in range(n):
            for j in range(k):
                out[row, j] += sums[row, j]
        start = end
