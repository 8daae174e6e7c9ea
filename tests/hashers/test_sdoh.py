"""SDOH without its memory against the paper: gradient, loop, switches, published settings."""

from functools import partial

import numpy as np
import pytest

from streamhash import SDOH, InputError
from streamhash.base import new_generator, random_directions

staged = partial(SDOH, memory=0, features=None)  # the paper's way: one stage after the other

PLAIN = {
    "normalize": False,
    "balance": None,
    "offset_rate": 0,
    "scale_step": False,
    "learning_rate": 1.0,
    "max_steps": 1,
}


def stage(n=40, d=9, classes=3, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = random.standard_normal((classes, d))[y] + 0.5 * random.standard_normal((n, d))
    return X.astype(np.float32), y


def start(d, k, seed=0):
    return random_directions(d, k, new_generator(seed)).astype(np.float64)


def gradient_of_one_step(X, y, k=6, **parameters):
    model = staged(n_bits=k, random_state=0, **{**PLAIN, **parameters}).fit(X, y)
    return start(X.shape[1], k) - model.W_, model


def distributions(W, X, y, sigma, p, n, mu=1.0):
    """P and Q of Eq. 5 and Eq. 8, and what goes into them, as n × n matrices in float64."""
    X = X.astype(np.float64)
    S = (y[:, None] == y[None]).astype(float)
    f = np.exp(-((S - mu) ** 2) / (2 * sigma**2)) / (np.sqrt(2 * np.pi) * sigma)
    np.fill_diagonal(f, 0)
    P = f / f.sum()
    B = np.tanh(X @ W)
    D = ((B[:, None] - B[None]) ** 2).sum(axis=2) / 4
    eta = np.where(S == 1, p, n)
    T = 1 + D / eta
    U = 1 / T
    np.fill_diagonal(U, 0)
    return X, B, P, U / U.sum(), T, eta


def kl(P, Q):
    there = P > 0
    return float((P[there] * np.log(P[there] / Q[there])).sum())


def transcription(form, W, X, y, sigma, p, n):
    """The gradient as the paper's equations 12 to 15 say it, or as each version mends them."""
    X, B, P, Q, T, eta = distributions(W, X, y, sigma, p, n)
    L = (P - Q) * {"exact": 1 / T / eta, "released": 1 / T, "printed": T}[form]
    laplacian = np.diag(L.sum(axis=1)) - L
    slope = 1 - B * B
    if form == "printed":
        return X.T @ (laplacian @ (B * slope))  # Eq. 15 to the letter
    return X.T @ ((laplacian @ B) * slope)  # the chain rule


@pytest.mark.parametrize("scales", [(1.0, 1.0), (60.0, 10.0), (0.7, 2.0)])
@pytest.mark.parametrize("form", ["exact", "released", "printed"])
def test_one_step_is_the_transcribed_gradient(form, scales):
    X, y = stage()
    p, n = scales
    got, model = gradient_of_one_step(
        X, y, sigma=0.5, similar_scale=p, dissimilar_scale=n, gradient=form
    )
    expected = transcription(form, start(9, 6), X, y, 0.5, p, n)
    np.testing.assert_allclose(got, expected, atol=2e-5 * abs(expected).max() + 2e-7)
    _, _, P, Q, _, _ = distributions(start(9, 6), X, y, 0.5, p, n)
    assert model.loss_ == pytest.approx(kl(P, Q), abs=1e-5)


@pytest.mark.parametrize("scales", [(1.0, 1.0), (60.0, 10.0)])
def test_the_exact_gradient_is_that_of_automatic_differentiation(scales):
    torch = pytest.importorskip("torch", reason="the oracle is optional")
    X, y = stage()
    p, n = scales
    W = torch.tensor(start(9, 6), requires_grad=True)
    B = torch.tanh(torch.tensor(X, dtype=torch.float64) @ W)
    D = ((B[:, None] - B[None]) ** 2).sum(dim=2) / 4
    S = torch.tensor(y[:, None] == y[None])
    off = ~torch.eye(len(X), dtype=torch.bool)
    f = torch.where(S, 1.0, float(np.exp(-1 / (2 * 0.5**2))))[off]
    U = 1 / (1 + D / torch.where(S, p, n))
    P, Q = f / f.sum(), U[off] / U[off].sum()
    (P * torch.log(P / Q)).sum().backward()
    got, _ = gradient_of_one_step(X, y, sigma=0.5, similar_scale=p, dissimilar_scale=n)
    expected = W.grad.numpy()
    np.testing.assert_allclose(got, expected, atol=2e-5 * abs(expected).max() + 2e-7)


def test_the_exact_gradient_is_that_of_finite_differences():
    X, y = stage(n=20, d=4)
    W = start(4, 3)
    got, _ = gradient_of_one_step(X, y, k=3, sigma=0.4, similar_scale=3.0, dissimilar_scale=2.0)
    for i in range(4):
        for j in range(3):
            losses = []
            for sign in (1, -1):
                moved = W.copy()
                moved[i, j] += sign * 1e-5
                _, _, P, Q, _, _ = distributions(moved, X, y, 0.4, 3.0, 2.0)
                losses.append(kl(P, Q))
            assert got[i, j] == pytest.approx((losses[0] - losses[1]) / 2e-5, abs=1e-5)


def test_offsets_follow_their_own_gradient():
    # An offset is the weight of a feature that is always 1, at a rate of its own.
    X, y = stage()
    ones = np.hstack([X, np.ones((len(X), 1), np.float32)])
    W = np.vstack([start(9, 6), np.zeros(6)])
    expected = transcription("exact", W, ones, y, 0.5, 1.0, 1.0)[-1]
    scales = {"similar_scale": 1.0, "dissimilar_scale": 1.0}
    _, model = gradient_of_one_step(X, y, sigma=0.5, offset_rate=0.25, **scales)
    np.testing.assert_allclose(model.offset_, -0.25 * expected, atol=1e-6)
    np.testing.assert_allclose(model.project(X), X @ model.W_ + model.offset_, atol=1e-6)
    _, without = gradient_of_one_step(X, y, sigma=0.5, **scales)
    assert not without.offset_.any()


def test_the_printed_equations_do_not_give_the_gradient():
    X, y = stage()
    exact, _ = gradient_of_one_step(3 * X, y, sigma=0.5)
    printed, _ = gradient_of_one_step(3 * X, y, sigma=0.5, gradient="printed")
    cosine = (exact * printed).sum() / np.linalg.norm(exact) / np.linalg.norm(printed)
    assert cosine < 0.95


def test_a_step_worked_by_hand():
    # Two similar instances and one bit, all W = w: b = tanh(w x). P and Q are both 1/2 for the two
    # ordered pairs whatever the distance is, so nothing moves.
    X = np.array([[1.0], [-2.0]], np.float32)
    same, _ = gradient_of_one_step(X, np.array([7, 7]), k=1, sigma=0.5)
    assert np.allclose(same, 0, atol=1e-7)
    # Three instances, one of another class, d = 1, x = 1, 1, -1: b = t, t, -t with t = tanh(w).
    # With η = 1: D of the similar pair 0, of the others t²; U = 1 and 1/(1 + t²).
    X = np.array([[1.0], [1.0], [-1.0]], np.float32)
    y = np.array(["a", "a", "b"])
    w = start(1, 1)[0, 0]
    t = np.tanh(w)
    rho = np.exp(-1 / (2 * 0.5**2))
    u = 1 / (1 + t * t)
    P, Q = rho / (2 + 4 * rho), u / (2 + 4 * u)
    # Each of the four mixed pairs pulls (P − Q) u (b_i − b_j): row 1: 2t, row 2: 2t, row 3: −4t,
    # times (1 − t²), times x.
    expected = (P - Q) * u * (1 - t * t) * (2 * t + 2 * t + 4 * t)
    got, _ = gradient_of_one_step(X, y, k=1, sigma=0.5, similar_scale=1.0, dissimilar_scale=1.0)
    assert got[0, 0] == pytest.approx(expected, abs=1e-6)


def test_plain_normalisation_gives_dissimilar_pairs_no_weight():
    X, y = stage()
    got, model = gradient_of_one_step(
        X, y, label_distribution="plain", similar_scale=1.0, dissimilar_scale=1.0
    )
    # A Gaussian so narrow that f(0) vanishes is Eq. 4.
    expected = transcription("exact", start(9, 6), X, y, 0.02, 1.0, 1.0)
    np.testing.assert_allclose(got, expected, atol=2e-5 * abs(expected).max())
    assert np.isfinite(model.loss_)


def test_plain_student_t_is_a_scale_of_one():
    X, y = stage()
    plain, _ = gradient_of_one_step(
        X, y, code_distribution="plain", similar_scale=60.0, dissimilar_scale=10.0
    )
    ones, _ = gradient_of_one_step(X, y, similar_scale=1.0, dissimilar_scale=1.0)
    assert np.array_equal(plain, ones)


def released_loop(X, y, W, sigma, rate, tolerance, max_steps):
    """The released program's inner loop, in float64 and in the open."""
    best, steps = np.inf, 0
    while steps < max_steps:
        _, _, P, Q, _, _ = distributions(W, X, y, sigma, 1.0, 1.0)
        cost = kl(P, Q)
        W = W - rate * transcription("released", W, X, y, sigma, 1.0, 1.0)
        steps += 1
        if not best - cost > tolerance:
            break
        best = cost
    return W, steps


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3])
def test_the_published_loop_steps_and_stops_as_released(tolerance):
    X, y = stage(n=60)
    model = SDOH.published("mnist", n_bits=6, random_state=0, tolerance=tolerance).fit(X, y)
    expected, steps = released_loop(X, y, start(9, 6), 0.3, 2.0, tolerance, 1000)
    assert 2 <= steps < 1000
    assert model.n_steps_ == steps
    np.testing.assert_allclose(model.W_, expected, atol=2e-3)


def test_without_a_tolerance_every_stage_takes_all_its_steps():
    X, y = stage(n=60)
    model = staged(n_bits=6, random_state=0, batch_size=20, max_steps=4).fit(X, y)
    assert (model.n_stages_, model.n_steps_) == (3, 12)


@pytest.mark.parametrize(
    ("data", "batch_size", "learning_rate", "sigma", "p", "n", "tolerance"),
    [
        ("cifar10", 2000, 0.05, 0.5, 1, 1, 1e-4),
        ("mnist", 2000, 2, 0.3, 1, 1, 1e-3),
        ("places205", 5000, 2, 0.5, 60, 10, 1e-4),
    ],
)
def test_published_settings(data, batch_size, learning_rate, sigma, p, n, tolerance):
    model = SDOH.published(data, n_bits=48, random_state=3)
    assert (model.n_bits, model.random_state) == (48, 3)
    assert (model.batch_size, model.learning_rate, model.scale_step) == (
        batch_size,
        learning_rate,
        False,
    )
    assert (model.mu, model.sigma) == (1, sigma)
    assert (model.similar_scale, model.dissimilar_scale) == (p, n)
    assert (model.max_steps, model.tolerance) == (1000, tolerance)
    assert (model.gradient, model.normalize, model.n_anchors) == ("released", False, None)
    assert (model.balance, model.offset_rate) == (None, 0)


def test_unknown_published_settings_name_those_there_are():
    with pytest.raises(InputError) as caught:
        SDOH.published("imagenet", n_bits=32)
    assert str(caught.value) == (
        "SDOH.published: no published settings for 'imagenet'; known: 'cifar10', 'mnist', "
        "'places205'. SDOH(n_bits=32) has defaults for any data."
    )


def test_a_stage_of_one_instance_changes_no_hash_function():
    X, y = stage()
    model = staged(n_bits=6, random_state=0, normalize=False).fit(X, y)
    before = model.W_.copy()
    model.partial_fit(X[:1], y[:1])
    assert np.array_equal(model.W_, before)
    assert model.n_samples_seen_ == 41


def test_a_stage_of_one_class_or_of_all_new_classes_evens_out_distances():
    # P is then uniform: the loss is that of Q against a uniform distribution, and falls.
    X, _ = stage()
    for y in (np.zeros(40), np.arange(40)):
        _, _, P, Q, _, _ = distributions(start(9, 6), X, y, 1e6, 1.0, 1.0)
        model = staged(
            n_bits=6, random_state=0, code_distribution="plain", **{**PLAIN, "max_steps": 5}
        ).fit(X, y)
        assert P[0, 1] == pytest.approx(1 / (40 * 39))
        assert 0 <= model.loss_ < kl(P, Q)


def test_label_matrices_learn_from_shared_classes():
    X, y = stage(classes=3)
    one_hot = np.eye(3)[y]
    single = staged(n_bits=6, random_state=0).fit(X, y)
    assert np.array_equal(staged(n_bits=6, random_state=0).fit(X, one_hot).W_, single.W_)
    shared = one_hot.copy()
    shared[:, 0] = 1  # now everything shares a class
    everyone = staged(n_bits=6, random_state=0).fit(X, np.zeros(len(X)))
    assert np.array_equal(staged(n_bits=6, random_state=0).fit(X, shared).W_, everyone.W_)


def test_divergence_is_refused_and_undone():
    X, y = stage()
    model = staged(n_bits=6, random_state=0, learning_rate=1e39)
    expected = r"left W_ without finite values.*lower the learning rate"
    with pytest.raises(InputError, match=expected), np.errstate(all="ignore"):
        model.fit(X, y)
    assert not hasattr(model, "W_")
