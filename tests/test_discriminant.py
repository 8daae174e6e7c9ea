"""Linear discriminant analysis from running sums."""

import copy
from unittest import mock

import numpy as np
import pytest
from scipy.linalg.lapack import strttf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from streamhash import discriminant
from streamhash.discriminant import (
    RIDGES,
    ClassSums,
    _Centres,
    diagonal_places,
    scores_of_rows,
)


def rows(n=400, d=20, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    X = rng.normal(size=(n, d)) + 2 * rng.normal(size=(classes, d))[y]
    return X.astype(np.float32), np.eye(classes, dtype=np.float32)[y], y


def summed(X, shares):
    sums = ClassSums()
    sums.add(X, shares)
    return sums


@pytest.mark.parametrize("d", [1, 2, 7, 8, 33])
def test_the_diagonal_is_where_lapack_has_it(d):
    packed, _ = strttf(np.asfortranarray(np.diag(np.arange(1, d + 1)).astype(np.float32)), uplo="L")
    assert packed[diagonal_places(d)].tolist() == [*range(1, d + 1)]


def test_its_decisions_are_those_of_linear_discriminant_analysis():
    X, shares, y = rows()
    A, b, _ = summed(X, shares).scores(1e-6, equal=False)
    oracle = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y).decision_function(X)
    scores = X @ A + b
    gaps, wanted = (Z - Z.mean(axis=1, keepdims=True) for Z in (scores, oracle))
    n = len(X)
    np.testing.assert_allclose(gaps, wanted, rtol=0.02, atol=0.02 * np.abs(wanted).max())
    assert (scores.argmax(axis=1) == oracle.argmax(axis=1)).mean() > 1 - 1 / n


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("n", [30, 300])
def test_few_rows_have_the_scores_that_their_sums_have(equal, n):
    X, shares, _ = rows(n, d=60)
    shares[:5] = 0  # rows without a label
    shares[5:10] = 0.5 * (shares[5:10] + np.roll(shares[5:10], 1, axis=1))  # and with two
    A, b, _ = summed(X, shares).scores(0.05, equal=equal)
    few, offsets, _ = scores_of_rows(X, shares, 0.05, equal=equal)
    np.testing.assert_allclose(few, A, atol=2e-3 * np.abs(A).max())
    np.testing.assert_allclose(offsets, b, atol=2e-3 * np.abs(b).max())


def test_sums_do_not_depend_on_the_order_and_rows_can_be_taken_off():
    X, shares, _ = rows()
    whole, pieces = summed(X, shares), ClassSums()
    for part in (slice(300, None), slice(100, 300), slice(100)):
        pieces.add(X[part], shares[part])
    np.testing.assert_allclose(pieces.products_, whole.products_, rtol=1e-4, atol=0.02)
    pieces.add(X[:100], shares[:100], sign=-1)
    rest = summed(X[100:], shares[100:])
    np.testing.assert_allclose(pieces.products_, rest.products_, rtol=1e-4, atol=0.02)
    np.testing.assert_allclose(pieces.sums_, rest.sums_, atol=1e-3)
    assert pieces.counts_ == pytest.approx(rest.counts_)
    assert pieces.n_rows_ == 300


def test_a_class_that_is_gone_has_no_score():
    X, shares, y = rows()
    sums = summed(X, shares)
    gone = y == 2
    sums.add(X[gone], shares[gone], sign=-1)
    assert sums.scores(0.05, equal=True)[0].shape == (20, 3)


def test_merged_sums_join_classes_by_their_numbers():
    X, shares, y = rows()
    first, second = y < 2, y >= 1
    a, b = summed(X[first], shares[first][:, :2]), summed(X[second], shares[second][:, [1, 3, 2]])
    whole = ClassSums.merged([(a, np.array([0, 1])), (b, np.array([1, 3, 2]))])
    both = np.concatenate([np.flatnonzero(first), np.flatnonzero(second)])
    wanted = summed(X[both], shares[both])
    np.testing.assert_allclose(whole.sums_, wanted.sums_, atol=1e-3)
    np.testing.assert_allclose(whole.products_, wanted.products_, rtol=1e-4, atol=1e-3)
    assert whole.n_rows_ == len(both)


def test_a_copy_does_not_see_what_is_added_later():
    X, shares, _ = rows()
    sums = summed(X[:100], shares[:100])
    before, twin = sums.products_.copy(), copy.copy(sums)
    for start in (100, 200, 300):
        sums.add(X[start : start + 100], shares[start : start + 100])
    assert (twin.products_ == before).all()
    twin.add(X[:50], shares[:50])
    np.testing.assert_allclose(sums.products_, summed(X, shares).products_, rtol=1e-4, atol=0.02)


def test_rows_that_are_all_the_same_give_finite_scores():
    X = np.ones((10, 8), np.float32)
    A, b, _ = summed(X, np.eye(2, dtype=np.float32)[[0, 1] * 5]).scores(0.05, equal=True)
    assert np.isfinite(A).all()
    assert np.isfinite(b).all()


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("ridge", [0.05, 0.8])
def test_rows_left_out_are_judged_as_if_they_had_never_come(ridge, equal):
    random = np.random.default_rng(0)
    y = random.integers(3, size=90)
    X = (random.standard_normal((90, 8)) + np.eye(3, 8)[y]).astype(np.float32)
    shares = np.eye(3, dtype=np.float32)[y]
    right = 0
    for i in range(90):
        others = np.arange(90) != i
        A, b, _ = summed(X[others], shares[others]).scores(ridge, equal=equal)
        right += np.argmax(X[i] @ A + b) == y[i]
    centres = _Centres(summed(X, shares), equal=equal)
    seen = []

    def judge(self, *arguments):
        right = are_right(self, *arguments)
        seen.append(right.mean())
        return right

    are_right = _Centres.are_right
    with (
        mock.patch.multiple(discriminant, RIDGES=(ridge,)),
        mock.patch.object(_Centres, "are_right", judge),
    ):
        of_sums = summed(X, shares).scores(None, equal=equal, judges=(X, shares))
        of_rows = scores_of_rows(X, shares, None, equal=equal)
    assert centres.is_there.all()
    assert seen == pytest.approx([right / 90] * 2, abs=0 if equal else 0.02)
    assert 0.4 < seen[0] < 0.9
    np.testing.assert_allclose(of_sums[0], of_rows[0], rtol=2e-3, atol=2e-3)


def test_the_ridge_is_larger_for_few_rows_and_wrong_labels():
    random = np.random.default_rng(0)
    centres = 0.5 * random.standard_normal((4, 60))

    def chosen(n, wrong):
        y = random.integers(4, size=n)
        X = (centres[y] + random.standard_normal((n, 60))).astype(np.float32)
        y = np.where(random.random(n) < wrong, random.integers(4, size=n), y)
        shares = np.eye(4, dtype=np.float32)[y]
        sums = summed(X, shares)
        A, *_ = sums.scores(None, equal=True, judges=(X[:1000], shares[:1000]))
        found = [ridge for ridge in RIDGES if np.allclose(A, sums.scores(ridge, equal=True)[0])]
        return found[0]

    assert chosen(20_000, 0) == 0.05
    assert chosen(100, 0.3) >= 0.8


@pytest.mark.parametrize(
    ("gained", "lost", "ridge"),
    [
        (9, 1, 0.2),
        (22, 13, 0.05),  # nine more of a hundred, and chance
        (0, 0, 0.05),
    ],
)
def test_a_larger_ridge_must_be_better_by_more_than_chance(monkeypatch, gained, lost, ridge):
    X = np.random.default_rng(0).standard_normal((100, 5)).astype(np.float32)
    shares = np.eye(4, dtype=np.float32)[np.arange(100) % 4]
    rows = np.arange(100)
    told = iter([rows >= gained, rows < 100 - lost, rows < 0])  # of 0.05, 0.2 and 0.8
    monkeypatch.setattr(_Centres, "are_right", lambda *_: next(told))
    sums = summed(X, shares)
    A, *_ = sums.scores(None, equal=True, judges=(X, shares))
    np.testing.assert_array_equal(A, sums.scores(ridge, equal=True)[0])


def with_a_fifth_wrong(n=1200, d=30, classes=5, seed=0):
    """Rows, their said and their true classes; the last two classes are rare."""
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, size=n, p=[0.34, 0.34, 0.28, 0.02, 0.02])
    X = (rng.normal(size=(n, d)) + 1.2 * rng.normal(size=(classes, d))[y]).astype(np.float32)
    said = np.where(rng.random(n) < 0.2, rng.integers(classes, size=n), y)
    return X, said, y


def means_apart(scores, X, y):
    """How many rows of each class are told theirs, as a mean over the classes."""
    told = (X @ scores[0] + scores[1]).argmax(axis=1) == y
    return np.mean([told[y == c].mean() for c in np.unique(y)])


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("ridge", [None, 0.05])
def test_wrong_labels_are_put_right(ridge, equal):
    X, said, y = with_a_fifth_wrong()
    shares, true = (np.eye(5, dtype=np.float32)[each] for each in (said, y))
    rows = X, shares
    sums = summed(X, shares)
    plain = sums.scores(ridge, equal=equal, judges=rows)
    found = sums.scores(ridge, equal=equal, judges=rows, doubted=lambda: rows)
    best = summed(X, true).scores(ridge, equal=equal, judges=(X, true))
    was, now, could = (means_apart(each, X, y) for each in (plain, found, best))
    assert now > was + 0.5 * (could - was)
    assert plain.right is None
    assert ((found.right < 0.5) == (said != y)).mean() > 0.9
    of_rows = scores_of_rows(X, shares, ridge, equal=equal, doubt=True)
    np.testing.assert_allclose(of_rows[0], found[0], atol=0.01 * np.abs(found[0]).max())


def test_right_labels_are_left_alone():
    X, shares, _ = rows(1200)
    asked = []

    def doubted():
        asked.append(1)
        return X, shares

    sums = summed(X, shares)
    found = sums.scores(None, equal=True, judges=(X, shares), doubted=doubted)
    wanted = sums.scores(None, equal=True, judges=(X, shares))
    assert not asked
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_array_equal(found[1], wanted[1])


def test_rows_that_count_for_other_classes_give_the_sums_of_those():
    X, shares, _ = rows()
    instead = shares.copy()
    instead[:40] = np.roll(shares[:40], 1, axis=1) / 2
    sums = summed(X, shares)
    before = sums.sums_.copy()
    found, wanted = sums.relabelled(X[:60], shares[:60], instead[:60]), summed(X, instead)
    np.testing.assert_allclose(found.sums_, wanted.sums_, atol=1e-3)
    np.testing.assert_allclose(found.counts_, wanted.counts_)
    np.testing.assert_array_equal(found.products_, sums.products_)
    np.testing.assert_array_equal(sums.sums_, before)


def test_no_class_loses_all_its_rows():
    X, shares, y = rows()
    instead = shares.copy()
    instead[y == 2] = [1, 0, 0, 0]
    instead[y == 3] = [0.5, 0, 0, 0.5]
    sums = summed(X, shares)
    counts = sums.relabelled(X, shares, instead).counts_
    moved = sums.counts_[3] / 2
    assert counts == pytest.approx(sums.counts_ + np.array([moved, 0, 0, -moved]))


def test_putting_labels_right_leaves_every_class_its_rows():
    X = np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)
    numbers = np.array([0, 0, 1, 2, 2, 2, 2, 2])
    shares = np.eye(3, dtype=np.float32)[numbers]
    instead = shares.copy()
    instead[:2] = [0, 1, 0]  # all of the first class belong to the second, which stays as it is,
    instead[2] = [0, 0, 1]  # whose one row belongs to the third
    sums = summed(X, shares)
    other = sums.relabelled(X, shares, instead)
    assert sums.is_there.all()
    assert other.is_there.tolist() == sums.is_there.tolist()
