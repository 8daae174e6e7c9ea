"""Which labels are probably wrong, and what those rows are instead."""

import numpy as np
import pytest

from streamhash.wrong_labels import ROUNDS, NoiseFit, fit_noise, probable_shares


def drawn(n=3000, classes=6, wrong=0.2, seed=0):
    """Distances by which a class is drawn with known probabilities, and labels, some drawn anew."""
    rng = np.random.default_rng(seed)
    logits = 3 * rng.normal(size=(n, classes))
    y = (logits + rng.gumbel(size=(n, classes))).argmax(axis=1)
    said = np.where(rng.random(n) < wrong, rng.integers(classes, size=n), y)
    return -2 * logits, np.eye(classes, dtype=np.float32)[said], said != y


@pytest.mark.parametrize("wrong", [0, 0.1, 0.2, 0.4])
@pytest.mark.parametrize("scale", [1, 1e-6, 1e6])
def test_the_share_of_wrong_labels_is_found(wrong, scale):
    distances, shares, _ = drawn(wrong=wrong)
    fit = fit_noise(scale * distances, shares)
    assert fit.wrong == pytest.approx(wrong, abs=0.05)
    assert 0.6 < fit.width / scale < 1.6
    assert fit.is_sure == (wrong > 0)


def test_it_takes_enough_rows_to_be_sure():
    few = [fit_noise(*drawn(n=20, wrong=0.2, seed=seed)[:2]) for seed in range(20)]
    assert sum(fit.wrong >= 0.05 and not fit.is_sure for fit in few) >= 3
    assert not any(fit_noise(*drawn(n=20, wrong=0, seed=seed)[:2]).is_sure for seed in range(20))


def test_rare_classes_are_spoiled_first():
    fit = NoiseFit(0.2, 1.0, 9.0)  # of 600 rows, 40 in each of three classes are wrong
    assert fit.spoils(np.array([300.0, 225, 75]))
    assert not fit.spoils(np.array([300.0, 215, 85]))
    assert not fit._replace(gain=1.9).spoils(np.array([300.0, 225, 75]))


def test_probable_classes_of_rows_worked_by_hand():
    # Two classes and the width 1: f is 1 for the nearer class and e⁻⁴ for the other.
    distances = np.array([[0, 8.0], [0, 8], [8, 0], [0, 8], [5, 5]])
    shares = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 0]], np.float32)
    counts = np.array([2.0, 2.0])
    near, far, wrong = 1.0, np.exp(-4.0), [0.2, 0.2]
    for _ in range(ROUNDS):
        often = [2 * (1 - w) for w in wrong]
        often = [each / sum(often) for each in often]
        first = often[0] * near + often[1] * far  # f of rows near the first class
        second = often[0] * far + often[1] * near
        q1 = (1 - wrong[0]) * near / ((1 - wrong[0]) * near + wrong[0] * first)
        q3 = (1 - wrong[1]) * near / ((1 - wrong[1]) * near + wrong[1] * second)
        q4 = (1 - wrong[1]) * far / ((1 - wrong[1]) * far + wrong[1] * first)
        wrong = [
            (2 * (1 - q1) + 2 * 0.2) / (2 + 2),
            ((1 - q3) + (1 - q4) + 2 * 0.2) / (2 + 2),
        ]
    found = probable_shares(distances, shares, counts, NoiseFit(0.2, 1.0, 9.0))
    assert q4 < 0.2
    assert found[0] == pytest.approx(
        [q1 + (1 - q1) * often[0] / first, (1 - q1) * often[1] * far / first], abs=1e-6
    )
    assert found[3] == pytest.approx(
        [(1 - q4) * often[0] / first, q4 + (1 - q4) * often[1] * far / first], abs=1e-6
    )
    assert found[4].tolist() == [0, 0]  # without labels, as before
    assert found[:4].sum(axis=1) == pytest.approx(1)


def test_a_class_with_more_wrong_labels_is_trusted_less():
    # All rows of class 1 but one lie at class 0: the label of a row between both is doubted more.
    distances = np.array([[0, 9.0]] * 40 + [[0, 9]] * 9 + [[9, 0]] + [[0, 3]] + [[3, 0]])
    said = np.array([0] * 40 + [1] * 10 + [1, 0])
    shares = np.eye(2, dtype=np.float32)[said]
    found = probable_shares(distances, shares, shares.sum(axis=0), NoiseFit(0.2, 1.0, 9.0))
    assert found[49, 1] > 0.9
    assert found[40:49, 1].max() < 0.05
    assert found[-2, 1] < found[-1, 0]


def test_of_several_labels_one_is_enough():
    distances = np.array([[0, 20.0, 20], [20, 20, 0]] * 20)
    shares = np.array([[0.5, 0.5, 0], [0.5, 0.5, 0]] * 20, np.float32)
    found = probable_shares(distances, shares, np.ones(3), NoiseFit(0.2, 1.0, 9.0))
    assert found[0] == pytest.approx([0.5, 0.5, 0], abs=0.35)
    assert found[0, 1] > 0.1
    assert found[1] == pytest.approx([0, 0, 1], abs=0.01)


def test_labels_that_say_nothing_are_no_trouble():
    for n, classes in ((0, 3), (5, 1), (5, 3)):
        fit = fit_noise(np.zeros((n, classes)), np.ones((n, classes), np.float32) / classes)
        assert not fit.is_sure
