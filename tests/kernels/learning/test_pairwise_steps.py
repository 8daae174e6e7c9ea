"""Blocks of pairs against the plain twins on W itself, and the small parts of pair learning."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from streamhash import InputError
from streamhash.hashers._pairs import PairQueue
from streamhash.kernels.learning import pairwise_steps as steps

PASSIVE = {"cap": 0.01, "margin": 0.45}
ADAPTIVE = {"step": 0.2, "margin": 0.8, "spread": 0.01}
TWINS = {
    "passive": (steps.learn_passive_pairs, steps.plain_passive_pairs, PASSIVE),
    "adaptive": (steps.learn_adaptive_pairs, steps.plain_adaptive_pairs, ADAPTIVE),
}


def pairs(n_pairs, d, k, seed=0, dtype=np.float64, classes=4):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=2 * n_pairs)
    X = random.standard_normal((classes, d))[y] + random.standard_normal((2 * n_pairs, d))
    X /= np.linalg.norm(X, axis=1)[:, None]
    W = random.standard_normal((d, k))
    W /= np.linalg.norm(W, axis=0)
    return W.astype(dtype), X.astype(dtype), y[::2] == y[1::2]


@settings(max_examples=30, deadline=None)
@given(
    n_pairs=st.integers(0, 50),
    d=st.sampled_from([9, 40]),
    k=st.sampled_from([1, 3, 16, 33]),
    seed=st.integers(0, 99),
)
@pytest.mark.parametrize("twin", TWINS)
def test_blocks_follow_the_plain_loop(twin, n_pairs, d, k, seed):
    blocked, plain, parameters = TWINS[twin]
    W, X, similar = pairs(n_pairs, d, k, seed)
    before = W.copy()
    got, n_active = blocked(W, X, similar, **parameters)
    expected, n_expected = plain(W, X, similar, **parameters)
    assert n_active == n_expected
    # AdaptHash amplifies what rounding leaves, OKH does not: see the test after the next.
    np.testing.assert_allclose(got, expected, atol=1e-12 if twin == "passive" else 1e-9)
    assert np.array_equal(W, before)


@pytest.mark.parametrize("margin", [0.3, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("twin", TWINS)
def test_blocks_follow_the_plain_loop_at_every_margin(twin, margin):
    blocked, plain, parameters = TWINS[twin]
    W, X, similar = pairs(45, 20, 30)
    got, n_active = blocked(W, X, similar, **{**parameters, "margin": margin})
    expected, n_expected = plain(W, X, similar, **{**parameters, "margin": margin})
    assert n_active == n_expected > 0
    np.testing.assert_allclose(got, expected, atol=1e-9)


def test_okh_in_single_precision_has_the_bits_of_the_plain_loop():
    W, X, similar = pairs(1000, 50, 32, dtype=np.float32)
    got, n_active = steps.learn_passive_pairs(W, X, similar, **PASSIVE)
    expected, _ = steps.plain_passive_pairs(W, X, similar, **PASSIVE)
    assert got.dtype == np.float32
    assert n_active > 100
    np.testing.assert_allclose(got, expected, atol=2e-6)
    clear = abs(X @ expected) > 1e-5
    assert np.array_equal((X @ got > 0)[clear], (X @ expected > 0)[clear])


def test_adapthash_in_single_precision_has_the_bits_of_the_plain_loop_for_a_while():
    W, X, similar = pairs(40, 50, 32, dtype=np.float32)
    got, _ = steps.learn_adaptive_pairs(W, X, similar, **ADAPTIVE)
    expected, _ = steps.plain_adaptive_pairs(W, X, similar, **ADAPTIVE)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(got, axis=0), 1, atol=1e-5)


def test_adapthash_amplifies_rounding_in_the_plain_loop_as_well():
    # Why its trajectory is compared over a limited number of pairs only: the last digit of W, moved
    # in the plain loop itself, is another W some hundred pairs later
    # (with a step and a margin that show it soon).
    W, X, similar = pairs(400, 12, 10)
    moved = W * (1 + 1e-15)
    keen = {"step": 0.5, "margin": 1.0, "spread": 0.01}
    for n, low, high in ((20, 0, 1e-11), (400, 1e-6, 3)):
        ends = [
            steps.plain_adaptive_pairs(start, X[: 2 * n], similar[:n], **keen)[0]
            for start in (W, moved)
        ]
        assert low <= abs(ends[0] - ends[1]).max() < high


def test_a_step_that_nearly_cancels_columns_is_taken_on_the_hash_functions_themselves():
    # Five nearly equal columns: WᵀW has the eigenvalue 5, and with β = 1/4 the penalty takes off
    # all that they have in common. Lengths of what is left cannot be had from WᵀW.
    W, X, similar = pairs(40, 12, 5)
    W = W[:, :1] + 1e-5 * W
    W /= np.linalg.norm(W, axis=0)
    X[:20] = 0  # ten pairs of zeros: equal codes, so that the dissimilar ones ask for a step
    parameters = {"step": 1e-3, "margin": 0.8, "spread": 0.25}
    got, n_active = steps.learn_adaptive_pairs(W, X, similar, **parameters)
    expected, n_expected = steps.plain_adaptive_pairs(W, X, similar, **parameters)
    assert n_active == n_expected > 10
    np.testing.assert_allclose(got, expected, atol=1e-8)


@pytest.mark.parametrize("step", [1.0, 20.0])
def test_large_steps_in_long_codes_stay_finite(step):
    W, X, similar = pairs(300, 30, 150, dtype=np.float32)
    got, n_active = steps.learn_adaptive_pairs(W, X, similar, step=step, margin=0.9, spread=0.01)
    assert n_active > 200
    np.testing.assert_allclose(np.linalg.norm(got, axis=0), 1, atol=1e-5)


def test_cutting_pairs_elsewhere_changes_nothing():
    for blocked, _, parameters in TWINS.values():
        W, X, similar = pairs(60, 20, 8)
        whole, _ = blocked(W, X, similar, **parameters)
        for cut in (1, 31, 50):
            half, _ = blocked(W, X[: 2 * cut], similar[:cut], **parameters)
            both, _ = blocked(half, X[2 * cut :], similar[cut:], **parameters)
            np.testing.assert_allclose(both, whole, atol=1e-10)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_of_equal_scores_the_first_are_chosen(n):
    scores = np.array([2.0, 1.0, np.inf, 1.0, 1.0, 0.5])
    chosen = np.empty(6, bool)
    steps._choose_smallest(scores, n, chosen)
    expected = np.argsort(scores, kind="stable")[:n]
    assert np.flatnonzero(chosen).tolist() == sorted(expected.tolist())


def rows(n):
    return np.arange(n, dtype=np.float32)[:, None]


@pytest.mark.parametrize("pieces", [[7], [1] * 7, [2, 3, 2], [3, 4], [1, 5, 1]])
def test_pairs_do_not_depend_on_the_pieces(pieces):
    X, y = rows(7), np.array([0, 0, 1, 2, 3, 3, 3])
    queue, got, kinds, start = PairQueue(), [], [], 0
    for n in pieces:
        pair, similar = queue.pair(X[start : start + n], y[start : start + n], "Method")
        got += pair.ravel().tolist()
        kinds += similar.tolist()
        start += n
    assert got == [0, 1, 2, 3, 4, 5]
    assert kinds == [True, False, True]
    assert queue.row_.tolist() == [[6]]


def test_a_waiting_label_is_compared_as_what_it_is():
    queue = PairQueue()
    queue.pair(rows(1), np.array([1]), "Method")
    _, similar = queue.pair(rows(1), np.array(["1"]), "Method")
    assert similar.tolist() == [False]
    queue.pair(rows(1), np.array(["cat"]), "Method")
    _, similar = queue.pair(rows(1), np.array(["cat", "elephant"])[:1], "Method")
    assert similar.tolist() == [True]


def test_matrices_of_labels_may_gain_columns_while_a_row_waits():
    queue = PairQueue()
    queue.pair(rows(1), np.array([[0, 1]], np.uint8), "Method")
    Y = np.array([[0, 1, 1], [1, 0, 0], [0, 1, 1]], np.uint8)
    _, similar = queue.pair(rows(3), Y, "Method")
    assert similar.tolist() == [True, False]


def test_a_waiting_row_needs_its_kind_of_labels():
    queue = PairQueue()
    queue.pair(rows(1), np.array([1]), "OKH")
    with pytest.raises(InputError) as caught:
        queue.pair(rows(2), np.eye(2, dtype=np.uint8), "OKH")
    assert str(caught.value) == (
        "OKH.partial_fit: the last row so far waits for its pair with a single label, but y came "
        "with shape (2, 2); keep to one kind of labels in a stream."
    )
