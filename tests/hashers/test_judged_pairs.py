"""What each method makes of judged pairs."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from streamhash import (
    LSH,
    OKH,
    SDOH,
    AdaptHash,
    InputError,
    MIHash,
    OnlineHasher,
    mean_average_precision,
)
from streamhash.base import PAIR_LEARNERS
from streamhash.hashers import METHODS

DIGITS = load_digits()
X, Y = DIGITS.data.astype(np.float32), DIGITS.target


def pairs_of(n, seed=0, wrong=0.0):
    random = np.random.default_rng(seed)
    first = random.integers(1000, size=n)
    own = np.array([random.choice(np.flatnonzero(Y[:1000] == Y[i])) for i in first])
    second = np.where(random.random(n) < 0.6, own, random.integers(1000, size=n))
    return first, second, (Y[first] == Y[second]) ^ (random.random(n) < wrong)


def quality(model):
    """Mean average precision among rows that no pair has."""
    codes = model.transform(X[1200:])
    return mean_average_precision(codes[:200], Y[1200:1400], codes[200:], Y[1400:])


def test_those_that_learn_pairs_are_those_that_the_error_names():
    learners = {method.__name__ for method in METHODS.values() if method.learns_pairs}
    assert learners == {*PAIR_LEARNERS}
    with pytest.raises(
        InputError,
        match=r"LSH.partial_fit_pairs: LSH does not learn from pairs; .* OKH, AdaptHash, MIHash, "
        r"SDOH\.",
    ):
        LSH(8).partial_fit_pairs(X[:1], X[1:2], [True])


@pytest.mark.parametrize("method", [OKH, AdaptHash])
def test_a_pair_is_what_two_rows_that_follow_each_other_are(method):
    by_rows = method(16, random_state=0).partial_fit(X[:600], Y[:600])
    similar = Y[:600:2] == Y[1:600:2]
    by_pairs = method(16, random_state=0).partial_fit_pairs(X[:600:2], X[1:600:2], similar)
    assert np.array_equal(by_rows.W_, by_pairs.W_)
    assert by_pairs.n_samples_seen_ == 600


@pytest.mark.parametrize("method", [OKH, MIHash, SDOH])
def test_pairs_bring_together_what_belongs_together(method):
    first, second, similar = pairs_of(2000, wrong=0.1)
    few = method(32, random_state=0).partial_fit_pairs(X[first[:4]], X[second[:4]], [1, 0, 1, 1])
    many = method(32, random_state=0).partial_fit_pairs(X[first], X[second], similar)
    assert quality(many) > quality(few) + 0.05


def test_mihash_goes_down_the_gradient_of_its_pairs():
    torch = pytest.importorskip("torch")
    first, second, similar = pairs_of(32)
    model = MIHash(8, n_bins=4, normalize=False, sharpness=0.05, random_state=0)
    start = MIHash(8, n_bins=4, normalize=False, sharpness=0.05, random_state=0)
    start.partial_fit_pairs(X[:1], X[:1], [True])  # of one kind: nothing to learn
    W = torch.tensor(start.W_.astype(np.float64), requires_grad=True)
    psi = [torch.tanh(0.05 * torch.tensor(X[rows]).double() @ W / 2) for rows in (first, second)]
    distances = (8 - (psi[0] * psi[1]).sum(dim=1)) / 2
    t = torch.clamp(1 - abs(distances[:, None] / 2 - torch.arange(5)), min=0)

    def entropy(p):
        return -(p[p > 0] * torch.log2(p[p > 0])).sum()

    same = torch.tensor(similar)
    share = same.double().mean()
    near, far = t[same].mean(dim=0), t[~same].mean(dim=0)
    information = entropy(t.mean(dim=0)) - share * entropy(near) - (1 - share) * entropy(far)
    information.backward()
    model.partial_fit_pairs(X[first], X[second], similar)
    assert model.information_ == pytest.approx(information.item(), rel=1e-4)
    expected = start.W_ + 32 * W.grad.numpy()
    assert np.allclose(model.W_, expected, atol=1e-4 * abs(W.grad).max().item() * 32)


# ------------------------------------------------------------------------------------------- SDOH


def sdoh(**changes):
    return SDOH(16, n_features=64, memory=200, random_state=0, **changes)


def sums(model):
    """The sums of each class, whatever it is called."""
    rows, names = model._all_waiting() if model.waiting_ else (X[:0], np.empty(0, object))
    whole = {}
    for row, name in zip(rows, names.tolist(), strict=True):
        whole[name] = whole.get(name, 0) + row.astype(np.float64)
    return sorted(np.sum(each) for each in whole.values())


def test_sdoh_takes_a_good_pair_as_two_rows_of_one_class():
    by_pairs = sdoh().partial_fit_pairs(X[[0, 2, 0]], X[[1, 3, 4]], [True, True, True])
    by_rows = sdoh().partial_fit(X[[0, 1, 2, 3, 4]], ["a", "a", "b", "b", "a"])
    assert by_pairs.n_samples_seen_ == by_rows.n_samples_seen_ == 5  # no row twice
    assert by_pairs.memory_.counts_.tolist() == by_rows.memory_.counts_.tolist() == [3, 2]
    assert np.array_equal(by_pairs.transform(X), by_rows.transform(X))


def test_sdoh_learns_a_row_as_one_of_the_label_it_belongs_with():
    model = sdoh().partial_fit(X[:50], Y[:50])
    before = model.memory_.counts_.copy()
    model.partial_fit_pairs(X[900:901], X[:1], [True], y2=[Y[0]])
    number = model.memory_.classes_.labels_.index(Y[0])
    assert model.memory_.counts_[number] == before[number] + 1
    assert model.memory_.counts_.sum() == before.sum() + 1  # the labelled row was learned before
    other = sdoh().partial_fit(X[:50], Y[:50]).partial_fit(X[900:901], [Y[0]])
    assert np.array_equal(model.transform(X), other.transform(X))


def test_sdoh_learns_nothing_from_bad_pairs_alone():
    model = sdoh().partial_fit_pairs(X[:30], X[30:60], [False] * 30)
    assert not model.has_learned()
    assert model.to_bytes() == sdoh().to_bytes()


@pytest.mark.parametrize("n_rows", [8, 800])  # those of few wait, and are in no sum yet
def test_groups_that_become_one_are_as_if_they_had_been_one(n_rows):
    half = n_rows // 2
    model = sdoh().partial_fit_pairs(X[[0] * half], X[1 : half + 1], [True] * half)
    model.partial_fit_pairs(X[[900] * half], X[901 : 901 + half], [True] * half)
    assert sorted(model.memory_.counts_.tolist()) == [half + 1, half + 1]
    model.partial_fit_pairs(X[[0, 1, 2]], X[[900, 901, 902]], [True] * 3)
    assert sorted(model.memory_.counts_.tolist()) == [0, n_rows + 2]
    model.partial_fit_pairs(X[[1500]], X[[1501]], [True])  # the free place is used again
    assert sorted(model.memory_.counts_.tolist()) == [2, n_rows + 2]
    one = sdoh().partial_fit_pairs(X[[0] * half], X[1 : half + 1], [True] * half)
    one.partial_fit_pairs(X[[0] * (half + 1)], X[900 : 901 + half], [True] * (half + 1))
    one.partial_fit_pairs(X[[1500]], X[[1501]], [True])
    assert sorted(one.memory_.counts_.tolist()) == [2, n_rows + 2]
    if n_rows == 800:
        found = [sorted(each.sums_.sums_.sum(axis=1).tolist())[-1] for each in (model, one)]
        assert found[0] == pytest.approx(found[1], rel=1e-5)
    assert sums(model) == pytest.approx(sums(one))
    loaded = SDOH.from_bytes(model.to_bytes())
    assert np.array_equal(loaded.transform(X), model.transform(X))


def test_sdoh_takes_back_rows_of_pairs():
    model = sdoh().partial_fit_pairs(X[:300], X[np.r_[1:300, 0]], Y[:300] == Y[np.r_[1:300, 0]])
    before = sdoh().partial_fit_pairs(X[:300], X[np.r_[1:300, 0]], Y[:300] == Y[np.r_[1:300, 0]])
    n = model.n_samples_seen_
    model.partial_fit_pairs(X[[1000, 1001]], X[[1002, 1003]], [True, True])
    assert model.n_samples_seen_ == n + 4
    model.forget_pairs(X[[1000, 1002, 1001, 1003, 1700, 1000]])
    assert model.n_samples_seen_ == n
    assert (
        sorted(model.memory_.counts_.tolist())[-5:] == sorted(before.memory_.counts_.tolist())[-5:]
    )
    assert model.groups_.names_of(X[[1000, 1700]]) == [None, None]
    model.forget_pairs(X[:300])
    assert not model.has_learned()
    with pytest.raises(InputError, match=r"OKH.forget_pairs: what this method has learned cannot"):
        OKH(8).forget_pairs(X[:1])


def test_sdoh_without_a_memory_learns_the_groups_of_a_stage():
    first, second, similar = pairs_of(1500)
    plain = SDOH(32, memory=0, features=None, random_state=0)
    few = SDOH(32, memory=0, features=None, random_state=0)
    few.partial_fit_pairs(X[first[:2]], X[second[:2]], [True, False])
    assert quality(plain.partial_fit_pairs(X[first], X[second], similar)) > quality(few) + 0.05


def test_sdoh_refuses_pairs_after_a_matrix_of_labels():
    model = sdoh().partial_fit(X[:50], np.eye(10)[Y[:50]])
    with pytest.raises(InputError, match=r"SDOH.partial_fit_pairs: .* 0/1 matrix of labels"):
        model.partial_fit_pairs(X[:1], X[1:2], [True])


def test_two_models_with_pairs_are_not_merged():
    a = sdoh().partial_fit_pairs(X[:2], X[2:4], [True, True])
    b = sdoh().partial_fit_pairs(X[4:6], X[6:8], [True, True])
    with pytest.raises(InputError, match=r"SDOH.merged: both models have learned from pairs"):
        SDOH.merged(a, b)
    labels = sdoh().partial_fit(X[10:40], Y[10:40])
    whole = SDOH.merged(a, labels)
    assert whole.groups_.names_of(X[:1]) == [("pairs", 0)]
    assert len(whole.transform(X[:3])) == 3


def test_extreme_rows_are_named_by_their_pairs():
    model = OKH(8, random_state=0).partial_fit_pairs(X[:100], X[100:200], [True] * 100)
    bad = X[200:230].copy()
    bad[5:, 0] = 1e30
    before = model.to_bytes()
    with pytest.raises(InputError, match="would wreck the model") as raised:
        model.partial_fit_pairs(X[300:330], bad, [True] * 30)
    assert raised.value.rows == [*range(5, 30)]
    assert model.to_bytes() == before


def test_a_method_of_somebody_else_learns_no_pairs():
    assert OnlineHasher.learns_pairs is False
