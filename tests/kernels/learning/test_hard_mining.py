"""Least mean squares with hard mining, in blocks, against one step after the other."""

import numpy as np
import pytest

from streamhash.kernels.learning.hard_mining import (
    ROWS,
    codeword_distance,
    mine_hard_bits,
    plain_mine_hard_bits,
)


def material(n, d=30, k=12, classes=4, seed=0, dtype=np.float64):
    random = np.random.default_rng(seed)
    X = (random.standard_normal((n, d)) / np.sqrt(d)).astype(dtype)
    W = (random.standard_normal((d, k)) / np.sqrt(d)).astype(dtype)
    numbers = random.integers(classes, size=n).astype(np.int32)
    T = random.choice([-1.0, 1.0], size=(classes, k)).astype(dtype)[numbers]
    counts, squares = np.array([0.0, 3.0, 0.0, 1.0]), random.random((classes, k))
    return X, W, T, numbers, counts, squares * (counts > 0)[:, None]


@pytest.mark.parametrize("n", [0, 1, 2, ROWS, ROWS + 1, 3 * ROWS + 17])
@pytest.mark.parametrize("with_teacher", [False, True])
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize(("root", "threshold"), [(True, 0.3), (False, 0.3), (True, np.inf)])
def test_blocks_walk_the_path_of_the_plain_loop(n, root, threshold, twice, with_teacher):
    arrays = material(n)
    options = {"step": 0.3, "threshold": threshold, "root": root, "twice": twice}
    options["distil"] = 0.1  # without a teacher of no effect
    if with_teacher:
        options["teacher"] = np.random.default_rng(1).random(n)
    expected = plain_mine_hard_bits(*arrays, **options)
    got = mine_hard_bits(*arrays, **options)
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    assert n == 0 or abs(got[0] - arrays[1]).max() > 0.01


def test_single_precision_keeps_to_it():
    options = {"step": 0.2, "threshold": 0.3, "root": True, "twice": False}
    got, *_ = mine_hard_bits(*material(500, dtype=np.float32), **options)
    assert got.dtype == np.float32
    expected, *_ = plain_mine_hard_bits(*material(500), **options)
    np.testing.assert_allclose(got, expected, atol=2e-5)


def test_what_is_passed_in_is_left_alone():
    arrays = material(100)
    before = [array.copy() for array in arrays]
    moved, *_ = mine_hard_bits(*arrays, step=0.2, threshold=0.3, root=True, twice=True)
    assert not np.array_equal(moved, arrays[1])
    assert all(np.array_equal(array, copy) for array, copy in zip(arrays, before, strict=True))


def test_a_step_worked_by_hand():
    # One feature, one bit, class 0: x = 2, W = .25, t = 1: z = .5, e = -.5. S = .25, its root .5,
    # so φ(e) = exp(-1/2) / (.5 √2π) = .484; w = 1 - .484 / .6. Step .1: W + .1 * 2 * .5 w.
    density = np.exp(-0.5) / (0.5 * np.sqrt(2 * np.pi))
    w = 1 - density / 0.6
    arrays = (
        np.array([[2.0]]),
        np.array([[0.25]]),
        np.array([[1.0]]),
        np.array([0], np.int32),
        np.zeros(1),
        np.zeros((1, 1)),
    )
    options = {"step": 0.1, "threshold": 0.6, "root": True}
    W, counts, squares, after = mine_hard_bits(*arrays, twice=False, **options)
    assert W[0, 0] == pytest.approx(0.25 + 0.1 * 2 * 0.5 * w)
    assert (counts.tolist(), squares.tolist()) == ([1.0], [[0.25]])
    assert after[0] == pytest.approx((1 - 2 * W[0, 0]) / 2)
    # Twice: first the plain step, W = .25 + .1 = .35, e = -.3; then the weighted one.
    W, *_ = mine_hard_bits(*arrays, twice=True, **options)
    assert W[0, 0] == pytest.approx(0.35 + 0.1 * 2 * 0.3 * w)
    # With a teacher that is at its codeword: r = (1 - .5) / 2 = .25, so + λ .25 x t more.
    W, *_ = mine_hard_bits(*arrays, twice=False, teacher=np.zeros(1), distil=0.1, **options)
    assert W[0, 0] == pytest.approx(0.25 + 0.1 * 2 * 0.5 * w + 0.1 * 0.25 * 2)
    assert codeword_distance(*arrays[:3]).tolist() == [0.25]


def test_a_bit_at_its_target_does_not_move():
    X, T = np.array([[1.0]]), np.array([[1.0]])
    start = (X, np.array([[1.0]]), T, np.array([0], np.int32), np.zeros(1), np.zeros((1, 1)))
    for learn in (mine_hard_bits, plain_mine_hard_bits):
        W, *_ = learn(*start, step=0.1, threshold=0.3, root=True, twice=False)
        assert W.tolist() == [[1.0]]
