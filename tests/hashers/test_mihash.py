"""MIHash against its formulas: the objective, its gradient, the plain loop, the sample."""

import numpy as np
import pytest

from streamhash import InputError, MIHash
from streamhash.kernels.learning.information import (
    information_steps,
    plain_information_gradient,
    plain_information_steps,
)
from streamhash.labels import neighbours
from streamhash.reservoir import Reservoir


def stream(n=150, d=10, classes=3, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = random.standard_normal((classes, d))[y] + random.standard_normal((n, d))
    return (X / np.linalg.norm(X, axis=1)[:, None]).astype(np.float32), y


def information(distances, same, k, n_bins):
    """I of section 8.4, one sum after the other."""
    width = k / n_bins

    def histogram(values):
        shares = [
            np.mean([max(0.0, 1 - abs(d - i * width) / width) for d in values])
            for i in range(n_bins + 1)
        ]
        return -sum(p * np.log2(p) for p in shares if p > 0)

    near, far = distances[same], distances[~same]
    share = len(near) / len(distances)
    return histogram(distances) - share * histogram(near) - (1 - share) * histogram(far)


def plain_loop(model, X, y, W, *, size, learning_rate=1.0, decay=0.0):
    """Learn one instance at a time, all of W after each, in float64: sections 8.4 and 8.5."""
    k, A = model.n_bits, model.sharpness
    n_bins = min(model.n_bins, k)
    sample = Reservoir(size, random_state=model.reservoir_.random_state)
    sample.start(X.shape[1])
    for t, x in enumerate(X.astype(np.float64)):
        if sample.n_filled_:
            labels = sample.numbered(y[t : t + 1])
            same = neighbours(labels, sample.labels)[0]
            phi = 1 / (1 + np.exp(-np.clip(A * (x @ W), -42, 42)))
            phi_r = 1 / (1 + np.exp(-np.clip(A * (sample.rows.astype(np.float64) @ W), -42, 42)))
            d = (k - (2 * phi_r - 1) @ (2 * phi - 1)) / 2
            if 0 < same.sum() < len(same):
                _, coefficients = plain_information_gradient(d, same, k, n_bins)
                J = -(2 * phi_r - 1) if model.gradient == "exact" else -phi_r / 2
                slope = A * phi * (1 - phi) * (coefficients @ J)
                W = W - learning_rate / (1 + decay * t) * np.outer(x, slope)
        sample.take(X[t : t + 1], y[t : t + 1])
    return W, sample


def first_functions(d, k, seed=0):
    model = MIHash(k, normalize=False, random_state=seed).partial_fit(np.zeros((1, d)), [0])
    return model.W_.astype(np.float64)


@pytest.mark.parametrize("gradient", ["exact", "released"])
@pytest.mark.parametrize(("size", "batch_size"), [(20, 1), (20, 64), (20, 150), (300, 32)])
def test_blocks_are_the_plain_loop(size, batch_size, gradient):
    X, y = stream()
    model = MIHash(
        6, batch_size=batch_size, reservoir_size=size, gradient=gradient, decay=0.01, n_bins=5,
        sharpness=3.0, learning_rate=0.5, normalize=False, random_state=0,
    ).fit(X, y)  # fmt: skip
    W, sample = plain_loop(
        model, X, y, first_functions(10, 6), size=size, learning_rate=0.5, decay=0.01
    )
    np.testing.assert_allclose(model.W_, W, atol=5e-5)
    assert abs(model.W_ - first_functions(10, 6)).max() > 0.05
    assert np.array_equal(model.reservoir_.rows_, sample.rows_)
    assert np.array_equal(model.reservoir_.labels_, sample.labels_)


def block(k=9, R=200, m=20, filled=200, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((R + m, 12)) / 3
    y = random.integers(3, size=R + m)
    P = X @ random.standard_normal((12, k)) / 3
    slots = np.where(random.random(m) < 0.5, random.integers(R, size=m), -1)
    if filled < R:
        slots[: min(m, R - filled)] = filled + np.arange(min(m, R - filled))
    rates = np.linspace(0.1, 0.05, m, dtype=np.float32)
    floats = [a.astype(np.float32) for a in (P[:R], P[R:], X[R:] @ X.T)]
    return *floats, y[R:, None] == y[None], slots.astype(np.int32), filled, rates


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("filled", [200, 190, 1, 0])
@pytest.mark.parametrize("n_bins", [1, 4, 9])
def test_compiled_steps_are_the_plain_ones(exact, filled, n_bins):
    work = block(filled=filled)
    options = {"sharpness": 4.0, "n_bins": n_bins, "exact": exact}
    before = [array.copy() for array in work[:5]]
    G, last = information_steps(*work, **options)
    wide = [array.astype(np.float64) for array in work[:3]]
    expected, expected_last = plain_information_steps(*wide, *work[3:], **options)
    # With few items some bins hold a hair's breadth of one, whose logarithm magnifies rounding.
    relative = 2e-5 if filled > 100 else 5e-4
    np.testing.assert_allclose(G, expected, atol=relative * abs(expected).max() + 1e-9)
    assert last == pytest.approx(expected_last, abs=1e-5)
    assert all(np.array_equal(a, b) for a, b in zip(work[:5], before, strict=True))
    assert filled < 100 or abs(G).max() > 0


def test_information_is_that_of_single_sums():
    random = np.random.default_rng(0)
    d, same = 12 * random.random(50), random.random(50) < 0.3
    got, _ = plain_information_gradient(d, same, 12, 8)
    assert got == pytest.approx(information(d, same, 12, 8), abs=1e-12)
    # Worked by hand: neighbours at 0, the others at k, as many: one bit. All at one place: none.
    d = np.array([0.0, 0.0, 4.0, 4.0])
    near = np.array([True, True, False, False])
    assert plain_information_gradient(d, near, 4, 4)[0] == pytest.approx(1)
    assert plain_information_gradient(d * 0, near, 4, 4)[0] == pytest.approx(0)


def test_a_step_worked_by_hand():
    # One bit, one feature, W = w = ±1, A = 1, K = 1: centres 0 and 1, so t = (1 − d, d).
    # The sample holds x = 1 of "a" and x = -1 of "b"; then x = 2 of "a" comes.
    model = MIHash(1, sharpness=1.0, n_bins=8, learning_rate=3.0, normalize=False, random_state=0)
    model.partial_fit([[1.0], [-1.0]], ["a", "b"])
    w = float(model.W_[0, 0])  # the first has an empty sample, the second no neighbour
    assert w == first_functions(1, 1)[0, 0]
    psi, psi_x = np.tanh(w / 2), np.tanh(w)
    near, far = (1 - psi * psi_x) / 2, (1 + psi * psi_x) / 2  # near + far = 1
    both = 0.5  # of either bin: (near + far) / 2
    # Derivative of −I by near: ½ [log(both / near) − log(both / (1 − near))], and so for far.
    log = np.log2
    by_near = 0.5 * (log(both / near) - log(both / (1 - near)))
    by_far = 0.5 * (log(both / far) - log(both / (1 - far)))
    slope = (1 - psi_x**2) / 4 * (by_near * -psi + by_far * psi)
    model.partial_fit([[2.0]], ["a"])
    assert model.W_[0, 0] == pytest.approx(w - 3 * 2 * slope, rel=1e-5)
    entropy = -near * log(near) - far * log(far)
    assert model.information_ == pytest.approx(1 - entropy, rel=1e-5)


@pytest.mark.parametrize("n_bins", [4, 7, 16])
def test_the_exact_gradient_is_that_of_automatic_differentiation(n_bins):
    torch = pytest.importorskip("torch", reason="the oracle is optional")
    k, A = 7, 4.0
    X, y = stream(n=60)
    W = torch.tensor(first_functions(10, k), requires_grad=True)
    items = torch.tensor(X[:-1], dtype=torch.float64)
    x = torch.tensor(X[-1], dtype=torch.float64)
    same = torch.tensor(y[:-1] == y[-1])
    psi_r = (2 * torch.sigmoid(A * (items @ W)) - 1).detach()
    d = (k - psi_r @ (2 * torch.sigmoid(A * (x @ W)) - 1)) / 2
    width = k / n_bins
    t = torch.clamp(1 - abs(d[:, None] - width * torch.arange(n_bins + 1)) / width, min=0)

    def entropy(p):
        p = p[p > 0]
        return -(p * torch.log2(p)).sum()

    share = same.double().mean()
    near, far = entropy(t[same].mean(dim=0)), entropy(t[~same].mean(dim=0))
    (-(entropy(t.mean(dim=0)) - share * near - (1 - share) * far)).backward()
    expected = W.grad.numpy()

    start = first_functions(10, k).astype(np.float32)
    inner = np.hstack([X[-1:] @ X[:-1].T, X[-1:] @ X[-1:].T])
    G, _ = information_steps(
        X[:-1] @ start, X[-1:] @ start, inner, (y[-1:, None] == y[None]), np.array([-1], np.int32),
        59, np.ones(1, np.float32), sharpness=A, n_bins=n_bins, exact=True,
    )  # fmt: skip
    np.testing.assert_allclose(np.outer(X[-1], G[0]), expected, atol=2e-5 * abs(expected).max())


def test_the_released_gradient_is_another_direction():
    work = block()
    exact, _ = information_steps(*work, sharpness=4.0, n_bins=8, exact=True)
    released, _ = information_steps(*work, sharpness=4.0, n_bins=8, exact=False)
    cosine = (exact * released).sum() / np.linalg.norm(exact) / np.linalg.norm(released)
    assert 0 < cosine < 0.95


def test_bins_are_at_most_the_bits():
    X, y = stream()
    models = [MIHash(8, n_bins=n, random_state=0).fit(X, y) for n in (8, 64, 4)]
    assert np.array_equal(models[0].W_, models[1].W_)
    assert not np.array_equal(models[0].W_, models[2].W_)


def test_nothing_is_learned_without_neighbours_or_without_others():
    X, _ = stream()
    for labels in (np.arange(len(X)), np.zeros(len(X))):
        model = MIHash(8, normalize=False, random_state=0).fit(X, labels)
        assert np.array_equal(model.W_, first_functions(10, 8).astype(np.float32))
        assert model.information_ == 0
        assert model.reservoir_.n_filled_ == len(X)


def test_label_matrices_learn_from_shared_classes():
    X, y = stream()
    one_hot = np.eye(3)[y]
    single = MIHash(8, random_state=0).fit(X, y)
    assert np.array_equal(MIHash(8, random_state=0).fit(X, one_hot).W_, single.W_)
    grown = MIHash(8, random_state=0).partial_fit(X[:64], one_hot[:64])
    grown.partial_fit(X[64:], np.eye(5)[y[64:]])  # columns that come late
    assert np.array_equal(grown.W_, single.W_)
    with pytest.raises(InputError, match="began with labels in 2 dimensions and goes on with 1"):
        grown.partial_fit(X, y)


def test_looking_ahead_fills_the_sample_first():
    X, y = stream()
    model = MIHash(8, look_ahead=(X[:10], y[:10]), normalize=False, random_state=0)
    model.partial_fit(X[20:21], y[20:21])
    assert np.array_equal(model.reservoir_.rows, [*X[:10], X[20]])
    assert not np.array_equal(model.W_, first_functions(10, 8).astype(np.float32))
    for ahead, reason in (
        ((X[:, 1:], y), "look_ahead: X has 9 features, but MIHash is expecting 10"),
        ((X, np.eye(3)[y]), "began with labels in 2 dimensions and goes on with 1"),
    ):
        with pytest.raises(InputError, match=reason):
            MIHash(look_ahead=ahead).fit(X, y)
    with pytest.raises(InputError, match="look_ahead: y has 3 labels for 10"):
        MIHash(look_ahead=(X[:10], y[:3])).fit(X, y)


@pytest.mark.parametrize(
    ("data", "size"), [("cifar10", 1000), ("mnist", 1000), ("places205", 5000)]
)
def test_published_settings(data, size):
    model = MIHash.published(data, n_bits=48, random_state=3)
    assert (model.n_bits, model.random_state, model.normalize) == (48, 3, False)
    assert (model.reservoir_size, model.sharpness, model.n_bins) == (size, 10, 64)
    assert (model.learning_rate, model.decay, model.gradient) == (1, 0, "released")
    assert model.look_ahead is None


def test_the_sample_is_that_of_the_smallest_keys():
    X = np.arange(500, dtype=np.float32)[:, None]
    whole = Reservoir(30, random_state=5)
    slots = whole.take(X, X[:, 0])
    keys = np.random.default_rng(5).random(500)
    assert sorted(whole.rows.ravel()) == sorted(np.argsort(keys)[:30])
    assert np.array_equal(whole.keys_, keys[whole.rows.ravel().astype(int)])
    held = np.full(30, -1)
    for i, place in enumerate(slots):
        if place >= 0:
            held[place] = i
    assert np.array_equal(whole.rows.ravel(), held)
    cut = Reservoir(30, random_state=5)
    for piece in np.split(X, [7, 29, 31, 200]):
        cut.take(piece, piece[:, 0])
    assert np.array_equal(cut.rows_, whole.rows_)
    assert np.array_equal(cut.labels_, whole.labels_)


def test_every_item_is_as_likely_to_be_in_the_sample():
    counts = np.zeros(40)
    for seed in range(2000):
        sample = Reservoir(10, random_state=seed)
        sample.take(np.arange(40, dtype=np.float32)[:, None], None)
        counts[sample.rows.ravel().astype(int)] += 1
    assert abs(counts - 500).max() < 5 * np.sqrt(2000 * 0.25 * 0.75)  # five standard deviations
