"""FROSH: SketchHash on a sketch that mixes chunks of instances first."""

import numpy as np
import pytest
from scipy.linalg import hadamard as sylvester

from streamhash import FROSH, InputError, SketchHash
from streamhash.base import new_generator, random_directions
from streamhash.hashers._sketch import random_rotation


def stream(n=500, d=20, seed=0, rank=None):
    random = np.random.default_rng(seed)
    spread = np.geomspace(3, 0.2, d)
    if rank is not None:
        spread[rank:] = 0
    turn = np.linalg.qr(random.standard_normal((d, d)))[0]
    return (random.standard_normal((n, d)) * spread @ turn + 1.5).astype(np.float32)


def plain_frosh(batches, k, size, m, seed):
    """The method in the open: with whole chunks and Hadamard matrices, full SVDs, in float64."""
    d, half = batches[0].shape[1], size // 2
    random = new_generator(seed)
    W = random_directions(d, k, random)
    R = random_rotation(k, random)
    signs = np.random.default_rng(int(random.integers(2**63)))

    def draw():
        return 2 * signs.integers(2, size=m) - 1, signs.choice(m, half, replace=False)

    S, mu, N, (eps, omega) = np.zeros((half, d)), np.zeros(d), 0, draw()
    chunk = []
    for A in batches:
        A = A.astype(np.float64)
        n, average = len(A), A.mean(axis=0)
        inserted = list(A - average)
        if N:
            inserted.append(np.sqrt(N * n / (N + n)) * (average - mu))
        mu, N = (N * mu + n * average) / (N + n), N + n

        def compressed(F, eps=eps, omega=omega):
            F = np.vstack([F, np.zeros((m - len(F), d))])
            phi = np.sqrt(m / half) * (sylvester(m)[omega] / np.sqrt(m)) * eps
            return phi @ F

        for row in filter(np.any, inserted):  # a stage of one instance has no scatter of its own
            chunk.append(row)
            if len(chunk) == m:
                full = np.vstack([S, compressed(np.array(chunk), eps, omega)])
                _, sigma, Vt = np.linalg.svd(full, full_matrices=False)
                S = (np.sqrt(np.maximum(sigma**2 - sigma[half] ** 2, 0))[:, None] * Vt)[:half]
                chunk, (eps, omega) = [], draw()
        now = np.vstack([S, compressed(np.array(chunk).reshape(-1, d), eps, omega)])
        _, sigma, Vt = np.linalg.svd(now, full_matrices=False)
        if k < N and (sigma > 1e-5 * sigma[0]).sum() >= k:
            V = Vt[:k].T
            V = V * np.sign(V[np.abs(V).argmax(axis=0), range(k)])
            W = V @ R
    return W, mu


@pytest.mark.parametrize("n", [20, 31, 62, 250])  # in and at the end of chunks of 32 and 64
@pytest.mark.parametrize("chunk_size", [None, 64])
def test_the_stream_is_learned_as_by_the_plain_loop(n, chunk_size):
    X = stream(n)
    model = FROSH(
        5,
        batch_size=30,
        sketch_size=16,
        chunk_size=chunk_size,
        guides=0,
        rotation="fixed",
        normalize=False,
        random_state=0,
    ).fit(X)
    batches = [X[start : start + 30] for start in range(0, n, 30)]
    W, mu = plain_frosh(batches, 5, 16, chunk_size or 32, seed=0)
    np.testing.assert_allclose(model.W_, W, atol=5e-4)
    np.testing.assert_allclose(model.mean_, mu, atol=1e-10)


def test_its_directions_are_near_those_of_sketchhash():
    X = stream(4000, d=60, rank=12)
    about = X - X.mean(axis=0)
    total = (about**2).sum()
    explained = []
    for method in (SketchHash(6), FROSH(6), FROSH(6, guides=0)):
        W = method.set_params(sketch_size=40, normalize=False, random_state=0).fit(X).W_
        explained.append(((about @ W) ** 2).sum() / total)
    assert min(explained[1:]) > 0.95 * explained[0] > 0.5


def test_every_chunk_has_signs_and_rows_of_its_own():
    X = stream(70)
    model = FROSH(5, sketch_size=16, guides=0, random_state=0, batch_size=10).fit(X[:10])
    flips, picked = model.sketch_.flips_, model.sketch_.picked_
    model.partial_fit(X[10:20])
    np.testing.assert_array_equal(flips, model.sketch_.flips_)
    model.partial_fit(X[20:40])
    assert not np.array_equal(flips, model.sketch_.flips_)
    assert not np.array_equal(picked, model.sketch_.picked_)
    other = FROSH(5, sketch_size=16, guides=0, random_state=1, batch_size=10).fit(X[:10])
    assert not np.array_equal(flips, other.sketch_.flips_)


def test_the_state_is_a_sketch_and_a_block():
    model = FROSH(32, random_state=0).fit(stream(300, d=700))
    sketch = model.sketch_
    assert sketch.S_.shape == (200, 700)
    assert sketch.waiting_.shape == (64, 700)
    assert (sketch.flips_.shape, sketch.picked_.shape) == ((1024,), (50,))


@pytest.mark.parametrize(("guides", "used"), [(None, 10), (0, 0), (7, 7), (99, 19)])
def test_guides_are_a_quarter_of_the_sketch_or_as_many_as_there_is_room_for(guides, used):
    model = FROSH(4, sketch_size=40, guides=guides, random_state=0).fit(stream(300))
    assert model.sketch_.guides == used
    assert len(model.sketch_.picked_) == 20 - used


@pytest.mark.parametrize("rotation", ["carried", "fixed", "released"])
def test_rotations(rotation):
    X = stream(2000)
    model = FROSH(5, rotation=rotation, random_state=0).fit(X[:1800])
    before, R = model.transform(X), model.R_
    model.partial_fit(X[1800:])
    changed = np.bitwise_count(before ^ model.transform(X)).mean() / 5
    assert np.array_equal(R, model.R_) == (rotation != "released")
    if rotation != "fixed":  # there, signs of singular vectors may change or not
        assert (changed < 0.05) == (rotation == "carried")
    np.testing.assert_allclose(model.W_.T @ model.W_, np.eye(5), atol=1e-5)


def test_more_bits_than_features():
    model = FROSH(40, random_state=0).fit(stream(300, d=6))
    assert model.rank_ == 6
    np.testing.assert_allclose(model.W_ @ model.W_.T, np.eye(6), atol=1e-5)


def test_published_settings_are_sketchhash_s_without_guides():
    for data, values in SketchHash.settings.items():
        assert FROSH.settings[data] == {**values, "guides": 0}
    assert FROSH.published("places205").chunk_size is None
    assert FROSH.published_features == "centre_unit"


@pytest.mark.parametrize("chunk_size", [0, 100, 64.0])
def test_chunks_are_powers_of_two(chunk_size):
    with pytest.raises(InputError) as caught:
        FROSH(chunk_size=chunk_size).fit(stream())
    wanted = "must be None or a power of two from 1 to 16777216."
    assert str(caught.value) == f"FROSH: chunk_size={chunk_size!r} {wanted}"
