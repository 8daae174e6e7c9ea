"""A hasher with a snapshot: when codes are worth encoding anew, and what encodes until then."""

import re

import numpy as np
import pytest

from quick import plain_sdoh
from streamhash import (
    LSH,
    SDOH,
    InputError,
    MIHash,
    NotStartedError,
    SnapshotHasher,
    load,
    pack,
    unpack,
)
from streamhash.kernels.learning.information import code_information
from streamhash.refresh import Prospect, RefreshPolicy, code_gain, information_gain
from summing import Summing


def stream(n=400, d=10, classes=3, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = random.standard_normal((classes, d))[y] + random.standard_normal((n, d))
    return X.astype(np.float32), y


def plain_information(bits, same):
    """Section 8.5, item after item, with NumPy's own histogram."""
    n, k = bits.shape
    total = 0.0
    for i in range(n):
        distances = (bits != bits[i]).sum(axis=1)
        near = same[i].copy()
        near[i] = True

        def entropy(values):
            counts = np.histogram(values, bins=np.arange(k + 1))[0]  # the last bin holds k too
            p = counts[counts > 0] / max(len(values), 1)
            return -(p * np.log2(p)).sum()

        share = near.mean()
        far = (1 - share) * entropy(distances[~near])
        total += max(0.0, entropy(distances) - share * entropy(distances[near]) - far)
    return total / n


@pytest.mark.parametrize(("n", "k"), [(300, 12), (40, 1), (30, 3), (1, 8)])
def test_information_of_codes_is_that_of_single_items(n, k):
    random = np.random.default_rng(0)
    bits = random.random((n, k)) < 0.4
    labels = random.integers(4, size=n)
    same = labels[:, None] == labels
    got = code_information(pack(bits - 0.5), same, k)
    assert got == pytest.approx(plain_information(bits, same), abs=1e-12)


def test_information_worked_by_hand():
    # Two classes of two items, codes of one class equal and of the other their opposite: whether
    # an item is a neighbour is known from the distance, one bit. With one code for all: nothing.
    same = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]], bool)
    apart = pack(np.array([[1.0] * 8, [1.0] * 8, [-1.0] * 8, [-1.0] * 8]))
    assert code_information(apart, same, 8) == pytest.approx(1)
    assert code_information(apart * 0, same, 8) == 0
    # Distances k − 1 and k are one bin: neighbours at 0 and k - 1, all others at k.
    codes = pack(np.array([[1.0] * 8, [1.0] + [-1.0] * 7, [-1.0] * 8]))
    near = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], bool)
    assert code_information(codes, near, 8) == pytest.approx(
        plain_information(unpack(codes, 8), near)
    )


def test_codes_are_those_of_the_snapshot_until_it_is_renewed():
    X, y = stream()
    model = SnapshotHasher(
        plain_sdoh(16, batch_size=50, random_state=0), automatic=False, random_state=0
    )
    model.partial_fit(X[:50], y[:50])
    first = plain_sdoh(16, batch_size=50, random_state=0).partial_fit(X[:50], y[:50])
    model.partial_fit(X[50:], y[50:])
    assert np.array_equal(model.transform(X), first.transform(X))
    now = first.partial_fit(X[50:], y[50:])
    assert np.array_equal(model.hasher_.W_, now.W_)
    assert (model.n_refreshes_, model.n_since_refresh_) == (1, 350)
    assert model.refresh() is model
    assert np.array_equal(model.transform(X), now.transform(X))
    assert (model.n_refreshes_, model.n_since_refresh_) == (2, 0)


def test_the_gain_is_the_difference_of_information():
    X, y = stream()
    model = SnapshotHasher(
        plain_sdoh(16, random_state=0, batch_size=50), automatic=False, random_state=0
    ).fit(X, y)
    rows = model.reservoir_.rows
    same = y[:, None] == y
    found = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in rows]
    assert len(found) == 200
    new, old = (unpack(m.transform(rows), 16) for m in (model.hasher_, model.snapshot_))
    same = same[np.ix_(found, found)]
    expected = plain_information(new, same) - plain_information(old, same)
    assert model.gain() == pytest.approx(expected, abs=1e-9)
    assert expected > 0.05
    assert model.worth_refreshing()
    assert not model.set_params(threshold=expected + 0.01).worth_refreshing()
    assert model.refresh().gain() == 0
    assert not model.worth_refreshing()


def test_a_worse_model_is_not_taken():
    X, y = stream()
    model = SnapshotHasher(
        plain_sdoh(16, random_state=0, batch_size=50), automatic=False, random_state=0
    ).fit(X, y)
    model.refresh()
    model.hasher_.W_ = np.zeros_like(model.hasher_.W_)
    assert model.gain() < 0
    assert not model.worth_refreshing()


def test_the_fixed_trigger_goes_by_instances():
    X, y = stream()
    model = SnapshotHasher(
        plain_sdoh(16, batch_size=30, random_state=0),
        trigger="fix",
        interval=70,
        automatic=False,
        random_state=0,
    ).partial_fit(X[:30], y[:30])
    worth = []
    for start in range(30, 150, 30):
        model.partial_fit(X[start : start + 30], y[start : start + 30])
        worth.append(model.worth_refreshing())
    assert worth == [False, False, True, True]
    by_itself = SnapshotHasher(
        plain_sdoh(16, batch_size=30, random_state=0), trigger="fix", interval=70, random_state=0
    ).fit(X[:300], y[:300])
    # The first stage, then the first look at 90 (60 since the snapshot: too few), 180 and 270.
    assert (by_itself.n_refreshes_, by_itself.n_since_refresh_) == (3, 30)


def test_it_refreshes_by_itself_as_the_reference_does():
    X, y = stream(n=600)
    options = {"reservoir_size": 80, "random_state": 0}
    hasher = MIHash(16, batch_size=50, random_state=0)
    model = SnapshotHasher(hasher, interval=100, **options).fit(X, y)
    by_hand = SnapshotHasher(hasher, automatic=False, **options)
    for end in range(50, 601, 50):
        by_hand.partial_fit(X[end - 50 : end], y[end - 50 : end])
        if end % 100 == 0 and by_hand.worth_refreshing():
            by_hand.refresh()
    assert np.array_equal(model.transform(X), by_hand.transform(X))
    assert model.n_refreshes_ == by_hand.n_refreshes_ > 2


def test_a_method_that_gathers_more_is_looked_at_less_often():
    X, y = stream(2000)
    model = SnapshotHasher(Summing(16, batch_size=100), interval=100, random_state=0)
    looks = []
    plain = model.worth_refreshing
    model.worth_refreshing = lambda: looks.append(model.hasher_.n_samples_seen_) or plain()
    model.partial_fit(X, y)
    assert looks == [200, 300, 400, 600, 800, 1100, 1500, 2000]
    assert not hasattr(model.snapshot_, "sums_")  # the snapshot holds what encoding needs
    assert not hasattr(model.encoder().hasher_, "sums_")
    assert np.array_equal(model.encoder().transform(X), model.transform(X))
    assert model.next_stage == 500


def test_labels_are_needed_for_information_only():
    X, y = stream()
    with pytest.raises(InputError, match="requires y to be passed"):
        SnapshotHasher(LSH(8)).fit(X)
    model = SnapshotHasher(LSH(8, random_state=0), trigger="fix", random_state=0).fit(X)
    with pytest.raises(InputError, match=r'came without labels.*use trigger="fix"'):
        model.gain()
    assert isinstance(SnapshotHasher(LSH(8)).fit(X, y).gain(), float)
    shared = SnapshotHasher(plain_sdoh(8, random_state=0), random_state=0).fit(X, np.eye(3)[y])
    single = SnapshotHasher(plain_sdoh(8, random_state=0), random_state=0).fit(X, y)
    assert shared.gain() == single.gain()


def test_both_models_are_saved(tmp_path):
    X, y = stream()
    model = SnapshotHasher(
        plain_sdoh(16, batch_size=50, random_state=0), automatic=False, random_state=0
    ).fit(X, y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert isinstance(loaded, SnapshotHasher)
    assert loaded.to_bytes() == model.to_bytes()
    assert loaded.gain() == model.gain() != 0


def test_what_is_wrong_is_said():
    X, y = stream()
    for verb in ("gain", "worth_refreshing", "refresh"):
        with pytest.raises(NotStartedError, match=f"SnapshotHasher.{verb}: .* not seen any data"):
            getattr(SnapshotHasher(SDOH(8)), verb)()
    with pytest.raises(InputError, match="hasher='sdoh' is not a hasher; pass one such as SDOH"):
        SnapshotHasher("sdoh").fit(X, y)
    with pytest.raises(InputError, match="SnapshotHasher: threshold=-1 must be a number from 0 up"):
        SnapshotHasher(SDOH(8), threshold=-1).fit(X, y)
    with pytest.raises(InputError, match="SDOH: n_bits=0 must be"):
        SnapshotHasher(SDOH(0)).fit(X, y)


# ---------------------------------------------------------------------------------- the policy


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("manual", "manual"),
        ("gain", "gain=0.001"),
        ("gain=2", "gain=2"),
        (7, "7"),
        ("auto", "auto=0.2"),
        ("auto=0.02", "auto=0.02"),
    ],
)
def test_a_policy_is_read_and_said(text, said):
    policy = RefreshPolicy.parse(text, place="test")
    assert str(policy) == said
    assert RefreshPolicy.parse(str(policy), place="test") == policy


@pytest.mark.parametrize(
    "text", ["never", "gain=much", "gain=-1", "gain=nan", "auto=2", "auto=no", "autos", 0, -3, None]
)
def test_what_is_no_policy_is_refused(text):
    with pytest.raises(InputError, match="must be"):
        RefreshPolicy.parse(text, place="test")


def test_a_refresh_is_due_when_what_was_missed_exceeds_what_it_costs():
    policy = RefreshPolicy.parse("gain=0.01", place="test")
    assert not policy.is_due(Prospect(10**6, gain=10.0, items=1000))
    assert policy.is_due(Prospect(1, gain=10.1, items=1000))
    assert not policy.is_due(Prospect(1, gain=10.1, items=2000))
    assert [RefreshPolicy(every=5).is_due(Prospect(n, 0.0, 10)) for n in (4, 5)] == [False, True]
    assert not RefreshPolicy().is_due(Prospect(10**6, 1e9, 1))


@pytest.mark.parametrize(
    ("prospect", "reason"),
    [
        ({"precision": 0.05}, None),
        ({"precision": 0.05, "spare": -1, "seconds": 40}, "takes 40.0 s, .* 20% .* time: in 5 s"),
        ({"precision": 0.001, "spare": 5}, r"would gain \+0.001 ± 0.000, too little"),
        ({"precision": -0.05, "error": 0.04, "spare": 5}, r"would gain -0.050 ± 0.040"),
        # All of what is saved: the gain less its error must be .002. Half: the gain. Nothing: more.
        ({"precision": 0.052, "error": 0.05, "seconds": 5, "spare": 5}, None),
        ({"precision": 0.051, "error": 0.05, "seconds": 5, "spare": 5}, "for the 5.0 s that"),
        ({"precision": 0.003, "error": 0.05, "seconds": 2, "spare": 4}, None),
        ({"precision": 0.002, "error": 0.05, "seconds": 2, "spare": 3.6}, "2.0 s, .*: in 2 s"),
        ({"precision": -0.03, "error": 0.05, "seconds": 0.1, "spare": 5}, None),
        ({"spare": 5}, "too little was learned since the last; 99 more items will do"),
        ({"spare": 5, "learned": 99}, "; 1 more items will do"),
        # A tenth more was learned: that is enough, unless it is known to be worse.
        ({"learned": 100}, None),
        ({"learned": 100, "spare": -1, "seconds": 4}, "takes 4.0 s, .* in 5 s"),
        ({"learned": 100, "precision": 0.0005, "error": 0.0001}, None),
        ({"learned": 100, "precision": -0.05, "error": 0.04}, "would gain -0.050 ± 0.040"),
        ({"gain": 2.0}, None),
        ({"gain": 2.0, "precision": -0.05, "error": 0.01}, None),
        ({"gain": 2.0, "spare": -2}, "in 10 s"),
    ],
)
def test_a_refresh_by_what_it_costs(prospect, reason):
    policy = RefreshPolicy.parse("auto", place="test")
    asked = Prospect(**{"learned": 1, "gain": 0.0, "items": 1000, "known": 1000, **prospect})
    found = policy.reason(asked)
    if reason is None:
        assert found is None
    else:
        assert re.search(reason, found)
    assert (policy.wait(asked) is not None) == bool(found and re.search(r": in [\d,]+ s$", found))


def plain_spare(refreshes, now, share, saved=5.0):
    """Second after second of time, what comes in and goes out."""
    spare, at = saved, refreshes[0][0]
    for ended, seconds in refreshes:
        spare = min(saved, spare + share * (ended - at)) - seconds
        at = ended
    return min(saved, spare + share * (now - at))


@pytest.mark.parametrize("share", [0.05, 0.2, 1.0])
def test_the_time_for_refreshes_is_that_of_a_plain_loop(share):
    random = np.random.default_rng(0)
    for n in (1, 2, 30):
        ended = np.cumsum(random.exponential(6.0, n))
        seconds = random.exponential(1.5, n)
        for now in ended[-1] + np.array([0.0, 3.0, 1000.0]):
            found = RefreshPolicy(share=share).spare(ended, seconds, now)
            pairs = list(zip(ended, seconds, strict=True))
            assert found == pytest.approx(plain_spare(pairs, now, share))
    assert RefreshPolicy(share=share).spare(ended, seconds, ended[0] - 1) == 5  # a clock set back
    assert RefreshPolicy(share=share).spare(ended[:0], seconds[:0], 7.0) == 5


@pytest.mark.parametrize("cost", [0.01, 0.9, 3.0, 40.0])
@pytest.mark.parametrize("pause", [0.1, 2.0])
def test_refreshes_take_their_share_of_any_stretch_of_time_and_use_it(cost, pause):
    # A stream that always gains, as fast as it can or with pauses; then nothing for a while, twice.
    policy, now, ended, seconds = RefreshPolicy(share=0.2), 0.0, [], []
    for stretch in range(3):
        for _ in range(2000):
            now += pause
            spare = policy.spare(np.array(ended), np.array(seconds), now)
            if policy.is_due(Prospect(1, 0.0, precision=0.01, spare=spare)):
                now += cost
                ended.append(now)
                seconds.append(cost)
        now += 10_000 if stretch < 2 else 0
    starts, ends = np.array(ended) - cost, np.array(ended)
    for i in range(0, len(ends), 7):
        span, taken = ends[i:] - starts[i], cost * np.arange(1, len(ends) - i + 1)
        assert (taken <= 0.2 * span + 5 + cost + 1e-6).all()
    busy = now - 20_000
    wanted = min(0.2 * busy, 6000 * cost)  # all it may, or one at every piece
    assert sum(seconds) >= 0.9 * wanted - cost


def test_the_gain_of_codes_is_that_of_a_plain_loop():
    random = np.random.default_rng(0)
    y = random.integers(3, size=150)
    X = 2 * np.eye(3, 8)[y] + random.standard_normal((150, 8))
    new, old = SDOH(16, random_state=0).fit(X, y), LSH(16, random_state=0).fit(X)
    same = y[100:, None] == y[None, :100]
    gain = code_gain(new, old, X[:100], same, X[100:])
    wanted = []
    for i in range(50):
        precision = []
        for model in (new, old):
            apart = [
                int(np.bitwise_count(model.transform(X[100 + i : 101 + i]) ^ code).sum())
                for code in model.transform(X[:100])
            ]
            nearest = sorted(range(100), key=lambda j: (apart[j], j))[:10]
            precision.append(np.mean([same[i, j] for j in nearest]))
        wanted.append(precision[0] - precision[1])
    assert gain.precisions == pytest.approx(wanted)
    assert gain.bits == information_gain(new, old, X[:100], same, X[100:])
    assert gain.precisions.mean() > 0.05


def test_a_sample_that_was_replaced_as_a_whole_gains_nothing():
    X, _ = stream(100)
    old, new = (LSH(16, random_state=seed).fit(X) for seed in (0, 1))
    gain = code_gain(new, old, X[:0], np.zeros((5, 0), bool), X[:5])
    assert gain.precisions.tolist() == [0.0] * 5
