"""Products of few rows: the twin, the bits of BLAS, and what is done where these are not known."""

import numpy as np
import pytest

from streamhash import base
from streamhash.kernels.learning.row_products import (
    blocks,
    blocks_of_blas,
    plain_product,
    product_by_blocks,
)


def random_arrays(n, d, k):
    random = np.random.default_rng(n + d + k)
    return (random.standard_normal(shape, np.float32) for shape in ((n, d), (d, k)))


@pytest.mark.parametrize(("n", "d", "k"), [(1, 1, 1), (3, 300, 7), (4, 1000, 33), (0, 5, 2)])
@pytest.mark.parametrize("longest", [128, 448])
def test_the_compiled_loop_is_its_twin(n, d, k, longest):
    X, W = random_arrays(n, d, k)
    X.flags.writeable = False
    found = product_by_blocks(X, W, blocks(d, longest, 16))
    assert found.shape == (n, k)
    np.testing.assert_allclose(found, plain_product(X, W), atol=1e-3)
    turned = np.asfortranarray(W)
    assert np.array_equal(product_by_blocks(X, turned, blocks(d, longest, 16)), found)


@pytest.mark.parametrize(("longest", "rounded_to"), [(320, 16), (768, 4), (448, 32)])
@pytest.mark.parametrize("d", [257, 700, 1000, 3584])
def test_blocks_are_found_by_their_bits(longest, rounded_to, d):
    wanted = blocks(d, longest, rounded_to)
    found = blocks_of_blas(d, 40, lambda X, W: product_by_blocks(X, W, wanted))
    assert found is not None
    assert found[-1] == d
    assert np.array_equal(found, wanted)


def test_an_order_of_another_kind_is_not_known():
    assert blocks_of_blas(1000, 40, lambda X, W: X[:, ::-1] @ W[::-1]) is None
    assert blocks_of_blas(1000, 40, plain_product) is None


def test_without_known_blocks_blas_makes_the_product(monkeypatch):
    X, W = random_arrays(3, 1000, 20)
    whole = base.row_product(np.concatenate([X] * 50), W)[:3]
    assert np.array_equal(base.row_product(X, W), whole)
    monkeypatch.setattr(base, "known_blocks", lambda *_: None)
    assert np.array_equal(base.row_product(X, W), whole)
