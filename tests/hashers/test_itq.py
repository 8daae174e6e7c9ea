"""ITQ: a rotation learned on a sample of the stream, carried along with the directions."""

import numpy as np
import pytest

from streamhash import ITQ, PCAH, InputError, SketchHash
from streamhash.base import new_generator, random_directions
from streamhash.hashers._sketch import random_rotation


def stream(n=600, d=12, seed=0, classes=6):
    random = np.random.default_rng(seed)
    means = 3 * random.standard_normal((classes, d))
    X = means[random.integers(classes, size=n)] + random.standard_normal((n, d)) + 1
    return X.astype(np.float32)


def quantization_loss(Z):
    """‖B − Z‖² for the best scale of Z, as a share of ‖B‖²: what taking signs loses."""
    cosine = np.abs(Z).sum() / (np.linalg.norm(Z) * np.sqrt(Z.size))
    return 1 - cosine**2


def plain_itq(Z, R, turns):
    for _ in range(turns):
        B = np.where(Z @ R > 0, 1.0, -1.0)
        P, _, Qt = np.linalg.svd(Z.T @ B)
        R = P[:, : R.shape[0]] @ Qt[: R.shape[0]]
    return R


@pytest.mark.parametrize(("k", "d"), [(4, 12), (9, 9), (9, 5)])
def test_one_stage_is_iterative_quantization(k, d):
    X = stream(200, d)
    model = ITQ(k, normalize=False, first_iterations=7, random_state=0).fit(X)
    random = new_generator(0)
    random_directions(d, k, random)
    p = min(k, d)
    about = X - X.mean(axis=0, dtype=np.float64)
    V = np.linalg.svd(about, full_matrices=False)[2][:p].T
    V = V * np.sign(V[np.abs(V).argmax(axis=0), range(p)])
    R = plain_itq(about @ V, random_rotation(k, random)[:p], 7)
    np.testing.assert_allclose(model.W_, V @ R, atol=1e-4)


def test_a_turn_worked_by_hand():
    # Instances (±2, 0) and (0, ±1). Turned by 30° all are off the axes: signs B = (+,−), (−,+),
    # (+,+), (−,−) for (2,0), (−2,0), (0,1), (0,−1) with R = [[c, −s], [s, c]].
    # ZᵀB = [[4, −4], [2, 2]], whose nearest rotation is 45°, since its rows are orthogonal.
    X = np.array([[2, 0], [-2, 0], [0, 1], [0, -1]], np.float32)
    model = ITQ(2, normalize=False, first_iterations=1, random_state=0)
    model._start(X, None)
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    model.R_ = np.array([[c, -s], [s, c]])
    model._learn(X, None)
    np.testing.assert_allclose(model.W_, np.array([[1, -1], [1, 1]]) / 2**0.5, atol=1e-6)


def test_the_rotation_loses_less_than_others():
    X = stream(3000)
    losses = {
        method: quantization_loss(method(4, random_state=0).fit(X).project(X))
        for method in (ITQ, SketchHash, PCAH)
    }
    assert losses[ITQ] < 0.9 * min(losses[SketchHash], losses[PCAH])


def test_later_stages_go_on_from_the_rotation_there_is():
    X = stream(3000)
    model = ITQ(4, batch_size=100, random_state=0).fit(X[:2900])
    before = model.transform(X)
    model.partial_fit(X[2900:])
    assert np.bitwise_count(before ^ model.transform(X)).mean() / 4 < 0.02
    np.testing.assert_allclose(model.W_.T @ model.W_, np.eye(4), atol=1e-5)


def test_later_stages_learn():
    # First a stream along other directions: only later stages can know of the classes.
    first, X = stream(100, seed=1), stream(3000)
    settings = {"batch_size": 100, "first_iterations": 0, "random_state": 0}
    losses = []
    for iterations in (0, 2):
        model = ITQ(4, iterations=iterations, **settings).fit(np.vstack([first, X]))
        losses.append(quantization_loss(model.project(X)))
    assert losses[1] < 0.95 * losses[0]


def test_the_sample_is_uniform_and_bounded():
    # The instance's number is its feature: the mean number in samples of 50 of 400 is 199.5.
    X = np.arange(400, dtype=np.float32)[:, None]
    means, firsts = [], []
    settings = {"sample_size": 50, "batch_size": 110, "normalize": False, "first_iterations": 0}
    for seed in range(60):
        model = ITQ(1, **settings, random_state=seed).fit(X)
        sample = model.sample_[:, 0]
        assert len(set(sample.tolist())) == 50
        means.append(sample.mean())
        firsts.append((sample < 100).mean())
    assert abs(np.mean(means) - 199.5) < 4 * 115 / np.sqrt(50 * 60)
    assert abs(np.mean(firsts) - 0.25) < 4 * 0.433 / np.sqrt(50 * 60)


def test_the_sample_begins_with_all_there_is():
    X = stream(70)
    model = ITQ(4, sample_size=100, batch_size=30, normalize=False, random_state=0).fit(X)
    np.testing.assert_array_equal(model.sample_[:70], X)
    assert not model.sample_[70:].any()


def test_published_settings():
    for data in ("cifar10", "mnist", "places205"):
        model = ITQ.published(data, n_bits=48)
        assert (model.normalize, model.first_iterations) == (False, 50)
    assert ITQ.published_features == "centre_unit"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"iterations": -1}, "ITQ: iterations=-1 must be a whole number from 0 to 10000."),
        ({"sample_size": 0}, "ITQ: sample_size=0 must be a whole number from 1 up."),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(InputError) as caught:
        ITQ(**parameters).fit(stream())
    assert str(caught.value) == message
