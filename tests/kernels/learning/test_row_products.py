"""Products of few rows: the twin, the bits of BLAS, and what is done where these are not known."""

import numpy as np
import pytest

from streamhash import SDOH, base
from streamhash.hashers import sdoh
from streamhash.kernels.learning.row_products import (
    are_alike,
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
    monkeypatch.setattr(base, "_rows_are_alike", lambda *_: True)
    monkeypatch.setattr(base, "known_blocks", lambda *_: None)
    asked = []
    monkeypatch.setattr(
        base, "_blas_product", lambda *both: asked.append(both) or both[0] @ both[1]
    )
    assert np.array_equal(base.row_product(X, W), X @ W)
    assert len(asked) == 1


def halved(X, W):
    """As NumPy's BLAS for AVX2 does: of twelve rows, the first six are summed in another way."""
    whole = product_by_blocks(X, W, blocks(X.shape[1], 448, 16))
    first, second = X.copy(), X.copy()
    first[:, 1::2] = second[:, ::2] = 0
    one = blocks(X.shape[1], 448, 16)
    parts = product_by_blocks(first, W, one) + product_by_blocks(second, W, one)
    return np.where((np.arange(len(X)) % 12 < 6)[:, None], parts, whole)


@pytest.mark.parametrize(("d", "k"), [(100, 64), (784, 16)])
def test_rows_that_are_not_alike_are_found(d, k):
    def alike(X, W):
        return product_by_blocks(X, W, blocks(d, 448, 16))

    assert are_alike(d, k, 1, alike)
    assert not are_alike(d, k, 1, halved)


@pytest.fixture
def blas_for_avx2(monkeypatch):
    """A BLAS that does not treat rows alike."""
    monkeypatch.setattr(base, "_blas_product", halved)
    for name in ("_rows_are_alike", "known_blocks"):
        monkeypatch.setattr(base, name, getattr(base, name).__wrapped__)
    monkeypatch.setattr(sdoh, "known_blocks", base.known_blocks)


@pytest.mark.usefixtures("blas_for_avx2")
@pytest.mark.parametrize(("d", "k"), [(16, 33), (100, 64), (784, 16), (3584, 100)])
def test_where_rows_are_not_alike_blas_is_not_asked(d, k):
    X, W = random_arrays(300, d, k)
    assert not np.array_equal(halved(X[:8], W)[7], halved(X[7:8], W)[0])
    whole = base.row_product(X, W)
    np.testing.assert_allclose(whole, plain_product(X, W), rtol=1e-4, atol=1e-3)
    for n in (1, 3, 4, 5, 64, 131):
        parts = [base.row_product(X[i : i + n], W) for i in range(0, 300, n)]
        assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.usefixtures("blas_for_avx2")
def test_class_scores_of_few_rows_are_those_of_many():
    random = np.random.default_rng(0)
    X, y = random.standard_normal((300, 40), np.float32), random.integers(5, size=300)
    model = SDOH(16, n_features=500, random_state=0).partial_fit(X, y)
    whole = model.project(X)
    parts = [model.project(X[i : i + 2]) for i in range(0, 50, 2)]
    assert np.array_equal(np.concatenate(parts), whole[:50])
    assert model._few[2] is not None
