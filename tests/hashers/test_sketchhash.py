"""SketchHash: principal directions of the whole stream, turned; its state kept or lost."""

import numpy as np
import pytest

from streamhash import InputError, SketchHash
from streamhash.base import new_generator, random_directions
from streamhash.hashers._sketch import random_rotation


def stream(n=500, d=20, seed=0):
    random = np.random.default_rng(seed)
    spread = np.geomspace(3, 0.2, d)
    turn = np.linalg.qr(random.standard_normal((d, d)))[0]
    return (random.standard_normal((n, d)) * spread @ turn + 1.5).astype(np.float32)


def plain_sketchhash(batches, k, size, R, W, *, released=False, redraw=None, carried=False):
    """The method in the open: row by row and with full SVDs, in float64."""
    d = batches[0].shape[1]
    S, mu, N, started = np.zeros((0, d)), np.zeros(d), 0, False
    for A in batches:
        A = A.astype(np.float64)
        n = len(A)
        if released:
            S, mu, N = np.zeros((0, d)), np.zeros(d), 0
        m = A.mean(axis=0)
        inserted = list(A - m)
        if N:
            inserted.append(np.sqrt(N * n / (N + n)) * (m - mu))
        for row in inserted:
            if len(S) == size:
                _, sigma, Vt = np.linalg.svd(S, full_matrices=False)
                kept = np.sqrt(np.maximum(sigma**2 - sigma[size // 2] ** 2, 0))
                S = (kept[:, None] * Vt)[: size // 2]
            S = np.vstack([S, row])
        mu, N = (N * mu + n * m) / (N + n), N + n
        _, sigma, Vt = np.linalg.svd(S, full_matrices=False)
        if redraw is not None:
            R = random_rotation(k, redraw) if (sigma > 1e-5 * sigma[0]).sum() >= k else R
        if (sigma > 1e-5 * sigma[0]).sum() >= k:
            V = Vt[:k].T
            V = V * np.sign(V[np.abs(V).argmax(axis=0), range(k)])
            if carried and started:  # the orthogonal T with the smallest ‖V T − W‖
                P, _, Qt = np.linalg.svd(V.T @ W)
                W = V @ P @ Qt
            else:
                W, started = V @ R, True
    return W, mu


@pytest.mark.parametrize("released", [False, True])
@pytest.mark.parametrize("rotation", ["carried", "fixed", "released"])
def test_the_stream_is_learned_as_by_the_plain_loop(released, rotation):
    X, k = stream(), 5
    model = SketchHash(
        k,
        batch_size=30,
        sketch_size=16,
        state="released" if released else "kept",
        rotation=rotation,
        normalize=False,
        random_state=0,
    ).fit(X)
    random = new_generator(0)
    W = random_directions(20, k, random)
    R = random_rotation(k, random)
    batches = [X[start : start + 30] for start in range(0, 500, 30)]
    redraw = random if rotation == "released" else None
    W, mu = plain_sketchhash(
        batches, k, 16, R, W, released=released, redraw=redraw, carried=rotation == "carried"
    )
    np.testing.assert_allclose(model.W_, W, atol=2e-4)
    np.testing.assert_allclose(model.mean_, mu, atol=1e-10)
    np.testing.assert_allclose(model.project(X), (X - mu) @ W, atol=2e-3)


def test_an_update_worked_by_hand():
    # Instances (±3, 0) and (0, ±1): mean 0, scatter diag(18, 2); one bit: direction (1, 0), R = ±1.
    X = np.array([[3, 0], [-3, 0], [0, 1], [0, -1]], np.float32)
    model = SketchHash(1, normalize=False, random_state=0).fit(X)
    np.testing.assert_allclose(np.abs(model.W_), [[1], [0]], atol=1e-6)
    assert model.rank_ == 1
    np.testing.assert_allclose(model.mean_, 0)
    np.testing.assert_allclose(np.abs(model.project(X)[:, 0]), [3, 3, 0, 0], atol=1e-6)


def test_kept_state_finds_the_directions_of_the_whole_stream():
    X = stream(2000)
    about = X - X.mean(axis=0)
    best = np.linalg.svd(about)[2][:6]
    k = 6
    settings = {"batch_size": 10, "normalize": False, "random_state": 0}
    kept = SketchHash(k, **settings).fit(X)
    lost = SketchHash(k, state="released", **settings).fit(X)
    shares = [np.linalg.norm(best @ model.W_) ** 2 / k for model in (kept, lost)]
    assert shares[0] > 0.9999  # 100 rows: nothing is lost at d = 20
    assert shares[1] < 0.95
    assert (kept.n_sketched_, lost.n_sketched_) == (2000, 10)
    np.testing.assert_allclose(kept.mean_, X.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(lost.mean_, X[-10:].mean(axis=0), atol=1e-5)


def test_bits_share_the_variance():
    X = stream(2000)
    model = SketchHash(6, random_state=0).fit(X)
    variances = model.project(X).var(axis=0)
    assert variances.max() / variances.min() < 8  # principal directions alone: about 40
    np.testing.assert_allclose(model.W_.T @ model.W_, np.eye(6), atol=1e-5)


def test_a_carried_rotation_keeps_codes():
    X = stream(3000)
    changed = {}
    for rotation in ("carried", "fixed", "released"):
        model = SketchHash(5, rotation=rotation, random_state=0).fit(X[:2800])
        before, R = model.transform(X), model.R_
        model.partial_fit(X[2800:])
        changed[rotation] = np.bitwise_count(before ^ model.transform(X)).mean() / 5
        assert np.array_equal(R, model.R_) == (rotation != "released")
    assert changed["carried"] < 0.01
    assert changed["fixed"] > 0.05  # of one direction the largest entry, and so the sign, changes
    assert changed["released"] > 0.2


def test_hash_functions_wait_for_the_rank_they_need():
    X = stream(400, d=100)
    model = SketchHash.published("mnist", n_bits=64, random_state=0)
    model.partial_fit(X[:50])
    assert model.rank_ == 0
    np.testing.assert_array_equal(model.W_, random_directions(100, 64, new_generator(0)))
    model.partial_fit(X[50:100])
    assert model.rank_ == 64
    np.testing.assert_allclose(model.W_.T @ model.W_, np.eye(64), atol=1e-4)


def test_a_sketch_of_lower_rank_changes_nothing():
    # l = 8 and k = 7: only a sketch of 7 rows or more, just before it shrinks, gives W.
    X = stream(60)
    model = SketchHash(7, sketch_size=8, batch_size=1, normalize=False, random_state=0)
    seen = []
    for row in X:
        W = getattr(model, "W_", None)
        model.partial_fit(row[None])
        seen.append((model.sketch_.n_filled_, np.array_equal(W, model.W_)))
    assert model.rank_ == 7
    assert {filled for filled, _ in seen[10:]} == {5, 6, 7, 8}
    assert all(unchanged == (filled < 7) for filled, unchanged in seen[10:])


def test_released_state_needs_more_instances_than_bits():
    X = stream(200)
    model = SketchHash(10, batch_size=10, state="released", random_state=0).fit(X)
    assert model.rank_ == 0
    model = SketchHash(10, batch_size=11, state="released", random_state=0).fit(X[:198])
    assert model.rank_ == 10
    W, mean = model.W_, model.mean_
    model.partial_fit(X[198:])  # a short piece: W and the mean it goes with stay
    np.testing.assert_array_equal(model.W_, W)
    np.testing.assert_array_equal(model.mean_, mean)


def test_more_bits_than_features_share_the_directions_there_are():
    X = stream(300, d=6)
    model = SketchHash(40, random_state=0).fit(X)
    assert model.rank_ == 6
    np.testing.assert_allclose(model.W_ @ model.W_.T, np.eye(6), atol=1e-5)  # spread evenly
    assert len(np.unique(model.W_.round(4), axis=1).T) == 40  # 40 different ones


def test_fewer_directions_than_features_and_bits():
    X = stream(300, d=30)
    X[:, 10:] = 0
    model = SketchHash(16, random_state=0).fit(X)
    assert model.rank_ == 10
    assert np.isfinite(model.W_).all()


@pytest.mark.parametrize(
    ("k", "d", "size"), [(32, 784, 200), (128, 784, 256), (32, 24, 100), (32, 60, 120)]
)
def test_the_sketch_size_follows_bits_and_features(k, d, size):
    model = SketchHash(k).fit(np.eye(3, d, dtype=np.float32))
    assert model.sketch_.S_.shape == (size, d)
    assert SketchHash(k, sketch_size=20).fit(np.eye(3, d)).sketch_.size == 20


def test_published_settings():
    for data, size in (("cifar10", 200), ("mnist", 200), ("places205", 100)):
        model = SketchHash.published(data, n_bits=48)
        assert (model.sketch_size, model.batch_size) == (size, 50)
        assert (model.state, model.rotation, model.normalize) == ("kept", "released", False)
    assert SketchHash.published_features == "centre_unit"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"sketch_size": 7},
            "SketchHash: sketch_size=7 must be None or an even number from 2 to 1048576.",
        ),
        ({"state": "lost"}, "SketchHash: state='lost' must be one of 'kept', 'released'."),
        (
            {"rotation": None},
            "SketchHash: rotation=None must be one of 'carried', 'fixed', 'released'.",
        ),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(InputError) as caught:
        SketchHash(**parameters).fit(stream())
    assert str(caught.value) == message


def test_labels_are_not_looked_at():
    X = stream()
    plain = SketchHash(8, random_state=0).fit(X)
    labelled = SketchHash(8, random_state=0).fit(X, np.arange(len(X)))
    np.testing.assert_array_equal(plain.W_, labelled.W_)
