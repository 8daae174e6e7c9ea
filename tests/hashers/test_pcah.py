"""PCAH: the signs along the principal directions of the stream."""

import numpy as np
import pytest

from streamhash import PCAH, InputError, unpack


def stream(n=500, d=12, seed=0):
    random = np.random.default_rng(seed)
    turn = np.linalg.qr(random.standard_normal((d, d)))[0]
    return (random.standard_normal((n, d)) * np.geomspace(3, 0.2, d) @ turn + 1.5).astype(
        np.float32
    )


def principal(X, k):
    X = X.astype(np.float64)
    return np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:k].T


def test_the_hash_functions_are_pca_of_the_stream():
    X = stream()
    model = PCAH(5, batch_size=30, normalize=False, random_state=0).fit(X)
    V = principal(X, 5)
    np.testing.assert_allclose(np.abs(model.W_), np.abs(V), atol=1e-4)
    np.testing.assert_allclose(model.mean_, X.mean(axis=0), atol=1e-5)
    variances = model.project(X).var(axis=0)
    assert (np.diff(variances) < 0).all()
    expected = np.abs((X - X.mean(axis=0)) @ V)
    np.testing.assert_allclose(np.abs(model.project(X)), expected, atol=1e-3)


def test_an_update_worked_by_hand():
    # Two instances (1, 1) and (3, 5): their mean (2, 3), the one direction (1, 2)/√5.
    model = PCAH(1, normalize=False, random_state=0).fit([[1.0, 1.0], [3.0, 5.0]])
    np.testing.assert_allclose(model.W_[:, 0], np.array([1, 2]) / 5**0.5, atol=1e-6)
    np.testing.assert_allclose(model.project([[3.0, 5.0]]), [[5**0.5]], atol=1e-6)
    assert unpack(model.transform([[3.0, 5.0], [1.0, 1.0]]), 1).ravel().tolist() == [1, 0]


def test_a_direction_keeps_its_sign():
    X = stream(3000)
    model = PCAH(4, batch_size=20, random_state=0)
    for start in range(0, 3000, 20):
        before = getattr(model, "W_", None)
        model.partial_fit(X[start : start + 20])
        if start > 400:
            assert (np.einsum("dk,dk->k", before, model.W_) > 0.9).all()


def test_bits_beyond_the_rank_are_random_directions_of_the_same_space():
    X = stream(300, d=10)
    X[:, 6:] = 0
    model = PCAH(14, normalize=False, random_state=0).fit(X)
    assert model.rank_ == 6
    np.testing.assert_allclose(np.abs(model.W_[:, :6]), np.abs(principal(X, 6)), atol=1e-4)
    assert not np.abs(model.W_[6:]).max() > 1e-5
    assert (np.linalg.norm(model.W_[:, 6:], axis=0) > 0.1).all()
    again = PCAH(14, normalize=False, random_state=1).fit(X)
    assert not np.allclose(again.W_[:, 6:], model.W_[:, 6:])


def test_published_settings():
    for data in ("cifar10", "mnist", "places205"):
        assert PCAH.published(data, n_bits=48).normalize is False
    assert PCAH.published_features == "centre_unit"


def test_bad_parameters_are_refused():
    with pytest.raises(InputError) as caught:
        PCAH(sketch_size=5).fit(stream())
    wanted = "PCAH: sketch_size=5 must be None or an even number from 2 to 1048576."
    assert str(caught.value) == wanted
