"""OSH against plain loops: both losses, both states, several labels."""

import numpy as np
import pytest

from streamhash import OSH
from streamhash.base import new_generator, random_directions


def stream(n=300, d=12, classes=5, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = 2 * random.standard_normal((classes, d))[y] + random.standard_normal((n, d))
    return (X / np.linalg.norm(X, axis=1)[:, None]).astype(np.float32), y


def start(d, k, seed=0):
    return random_directions(d, k, new_generator(seed)).astype(np.float64)


def hinge(W, x, c, step):
    wrong = c * (x @ W) < 1
    return W + step * np.outer(x, c * wrong)


def boosting(W, x, c, step):
    W, weight = W.copy(), 0.0
    for r in range(len(c)):
        W[:, r] += step * np.exp(-weight) * np.exp(-c[r] * (W[:, r] @ x)) * c[r] * x
        weight += c[r] * (W[:, r] @ x)  # with the function that was just moved
    return W


def plain_loop(X, codes, W, update, step):
    for x, c in zip(X.astype(np.float64), codes, strict=True):
        W = update(W, x, c, step)
    return W


@pytest.mark.parametrize("update", [hinge, boosting])
def test_learning_is_the_plain_loop(update):
    X, y = stream()
    options = {"loss": update.__name__, "learning_rate": 0.3, "normalize": False}
    model = OSH(9, random_state=0, **options).fit(X, y)
    codes = model.codebook_.targets_[model.table_.number(y)]
    expected = plain_loop(X, codes, start(12, 9), update, 0.3)
    np.testing.assert_allclose(model.W_, expected, atol=1e-4 if update is hinge else 5e-6)


@pytest.mark.parametrize("update", [hinge, boosting])
def test_in_the_released_state_every_class_gets_the_first_codeword(update):
    X, y = stream()
    options = {"loss": update.__name__, "state": "released", "normalize": False}
    model = OSH(9, random_state=0, **options).fit(X, y)
    assert model.codebook_.targets_.shape == (1, 9)
    codes = np.repeat(model.codebook_.targets_, len(X), axis=0)
    expected = plain_loop(X, codes, start(12, 9), update, 0.1)
    np.testing.assert_allclose(model.W_, expected, atol=1e-4)


def test_kept_state_tells_classes_apart_and_released_does_not():
    X, y = stream(n=900)
    scores = {}
    for state in ("kept", "released"):
        codes = OSH(16, state=state, random_state=0).fit(X[:600], y[:600]).transform(X[600:])
        distances = np.bitwise_count(codes[:, None] ^ codes[None]).sum(axis=2)
        same = y[600:, None] == y[None, 600:]
        scores[state] = distances[~same].mean() - distances[same].mean()
    assert scores["kept"] > scores["released"] + 1


@pytest.mark.parametrize("loss", ["hinge", "boosting"])
@pytest.mark.parametrize("state", ["kept", "released"])
def test_several_labels_are_learned_one_after_the_other(loss, state):
    X, _ = stream(n=150)
    Y = np.random.default_rng(1).random((150, 4)) < 0.4
    Y[3] = False
    assert (Y.sum(axis=1) > 1).any()
    options = {"loss": loss, "state": state, "normalize": False}
    model = OSH(7, random_state=0, **options).fit(X, Y)
    W, order = start(12, 7), []
    for x, labels in zip(X.astype(np.float64), Y, strict=True):
        if state == "released":
            order = []
        for label in np.flatnonzero(labels):
            if label not in order:
                order.append(label)
            codeword = model.codebook_.targets_[order.index(label)]
            W = {"hinge": hinge, "boosting": boosting}[loss](W, x, codeword, 0.1)
    np.testing.assert_allclose(model.W_, W, atol=1e-4)


def test_a_matrix_of_single_labels_is_the_same_as_the_labels():
    X, y = stream()
    single, matrix = (OSH(8, random_state=0).fit(X, labels) for labels in (y, np.eye(5)[y]))
    assert np.array_equal(single.W_, matrix.W_)


def test_rows_without_labels_move_no_hash_function():
    X, y = stream()
    model = OSH(8, random_state=0).fit(X, np.eye(5)[y])
    before = model.W_.copy()
    model.partial_fit(X, np.zeros((300, 5)))
    assert np.array_equal(model.W_, before)
    assert model.n_samples_seen_ == 600


@pytest.mark.parametrize("size", [1, 7, 300, 1000])
@pytest.mark.parametrize("loss", ["hinge", "boosting"])
def test_the_batch_size_does_not_matter(loss, size):
    X, y = stream()
    usual, other = (
        OSH(8, loss=loss, batch_size=batch, random_state=0).fit(X, y).project(X)
        for batch in (64, size)
    )
    np.testing.assert_allclose(other, usual, atol=1e-4)


@pytest.mark.parametrize("codewords", ["random", "spread"])
def test_new_classes_move_no_codeword(codewords):
    X, y = stream()
    model = OSH(8, codewords=codewords, random_state=0).fit(X, y)
    before = model.codebook_.targets_.copy()
    model.partial_fit(X, [f"new {i}" for i in range(300)])
    assert model.codebook_.targets_.shape == (305, 8)
    assert np.array_equal(model.codebook_.targets_[:5], before)


@pytest.mark.parametrize("data", ["cifar10", "mnist", "places205"])
def test_published_settings(data):
    model = OSH.published(data, n_bits=48, random_state=3)
    assert (model.n_bits, model.random_state) == (48, 3)
    assert (model.learning_rate, model.loss, model.codewords) == (0.1, "boosting", "random")
    assert (model.state, model.normalize) == ("kept", False)
    assert OSH.published_features == "centre_unit"


def test_boosting_survives_features_of_any_size():
    X, y = stream()
    model = OSH(64, loss="boosting", normalize=False, random_state=0)
    assert np.isfinite(model.fit(1000 * X, y).project(X)).all()
