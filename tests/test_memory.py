"""The class-balanced memory: its rule against a plain twin, however the stream is cut."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from streamhash import ClassMemory, InputError
from streamhash.base import snapshot
from streamhash.memory import fair_share


def material(n, classes, seed=0, d=3):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d)).astype(np.float32)
    return X, np.sort(random.zipf(1.5, n) % classes)


def classes_of(y):
    """The classes of each row; -1 for none."""
    return [{*np.flatnonzero(row)} or {-1} if np.ndim(row) else {row} for row in y]


def rule(keys, y, size):
    """The sample by the rule itself: the indices of its rows in the order of their keys."""
    members = {}
    for i, classes in sorted(enumerate(classes_of(y)), key=lambda each: keys[each[0]]):
        for c in classes:
            members.setdefault(c, []).append(i)
    q = max(
        (q for q in range(1, size + 1) if sum(min(len(m), q) for m in members.values()) <= size),
        default=1,
    )
    entries = sorted((keys[i], i, c) for c, m in members.items() for i in m[:q])
    return sorted({i for _, i, _ in entries[:size]}, key=lambda i: keys[i])


def keys_of(seed, n):
    return np.random.default_rng(seed).random(n)


def assert_sample(memory, X, y, expected):
    assert np.array_equal(memory.rows, X[expected])
    wide = y[expected]
    names = np.array(memory.classes_.labels_)
    labels = memory.labels if y.ndim == 2 else names[memory.labels]
    assert np.array_equal(labels, wide)
    assert len(memory) == len(expected)


STREAMS = st.builds(
    lambda n, classes, seed, matrix: (n, classes, seed, matrix),
    st.integers(1, 120),
    st.integers(1, 12),
    st.integers(0, 99),
    st.booleans(),
)


def stream(n, classes, seed, matrix):
    X, y = material(n, classes, seed)
    if matrix:  # about one label a row: some have several, some none
        return X, (np.random.default_rng(seed).random((n, classes)) < 1 / classes).astype(np.uint8)
    return X, y


@settings(max_examples=150, deadline=None)
@given(STREAMS, st.integers(1, 40), st.lists(st.integers(0, 120), max_size=6))
def test_the_sample_is_that_of_the_rule_however_the_stream_is_cut(kind, size, cuts):
    X, y = stream(*kind)
    memory = ClassMemory(size, random_state=5)
    twin = ClassMemory(size, random_state=5)
    twin.take(X, y)
    for piece in np.split(np.arange(len(X)), sorted(min(cut, len(X)) for cut in cuts)):
        memory.take(X[piece], y[piece])
        memory.rows if len(piece) % 2 else None  # looking changes nothing
    assert_sample(memory, X, y, rule(keys_of(5, len(X)), y, size))
    assert memory.to_bytes() == twin.to_bytes()
    counts = y.sum(axis=0) if y.ndim == 2 else np.bincount(y)[memory.classes_.labels_]
    assert np.array_equal(memory.counts_, counts)
    assert memory.n_unlabelled_ == (y.ndim == 2) * (y.reshape(len(y), -1) == 0).all(axis=1).sum()


@settings(max_examples=60, deadline=None)
@given(STREAMS, st.integers(1, 40))
def test_row_by_row_at_every_moment(kind, size):
    X, y = stream(*kind)
    memory = ClassMemory(size, random_state=2)
    for i in range(len(X)):
        memory.take(X[i : i + 1], y[i : i + 1])
        assert len(memory.rows_) <= size * 1.25 + 16
    assert_sample(memory, X, y, rule(keys_of(2, len(X)), y, size))


def test_shares_are_even():
    memory = ClassMemory(60, random_state=0)
    X = np.arange(5000, dtype=np.float32)[:, None]
    memory.take(X, np.repeat(["a", "b", "c", "d"], [3000, 1960, 35, 5]))
    assert np.bincount(memory.labels).tolist() == [18, 18, 18, 5]
    assert memory.counts_.tolist() == [3000, 1960, 35, 5]
    assert memory.classes_.labels_ == ["a", "b", "c", "d"]
    late = memory.rows[memory.labels == 0].mean()
    assert 900 < late < 2100, "rows of a class are kept whenever they came"


def test_every_row_of_a_class_is_as_likely():
    X, y = np.arange(40, dtype=np.float32)[:, None], np.repeat([0, 1], [30, 10])
    kept = np.zeros(40)
    for seed in range(600):
        memory = ClassMemory(10, random_state=seed)
        memory.take(X, y)
        kept[memory.rows.ravel().astype(int)] += 1
    np.testing.assert_allclose(kept[:30], 100, atol=40)  # 600 · 5 / 30, four and a half deviations
    np.testing.assert_allclose(kept[30:], 300, atol=55)


@pytest.mark.parametrize(
    ("counts", "size", "expected"),
    [([], 5, 5), ([3], 5, 5), ([9], 5, 5), ([2, 8, 9], 10, 4), ([0, 7, 7], 10, 5), ([1] * 7, 3, 1)],
)
def test_a_fair_share(counts, size, expected):
    assert fair_share(np.array(counts, np.int64), size) == expected


def test_new_classes_and_wider_matrices_may_come_at_any_time():
    memory = ClassMemory(10, random_state=0)
    X = np.arange(60, dtype=np.float32)[:, None]
    memory.take(X[:20], np.eye(2, dtype=np.uint8)[np.arange(20) % 2])
    memory.take(X[20:], np.eye(5, dtype=np.uint8)[2 + np.arange(40) % 3])
    assert memory.labels.shape == (10, 5)
    assert memory.labels.sum(axis=0).tolist() == [2] * 5
    memory.take(X[:1], np.array([[1, 1]], np.uint8))
    assert memory.counts_.tolist() == [11, 11, 14, 13, 13]


def test_labels_of_any_kind():
    memory = ClassMemory(6, random_state=0)
    memory.take(np.zeros((2, 1), np.float32), np.array(["a", 1], object))
    memory.take(np.ones((2, 1), np.float32), np.array([2.5, 1]))
    assert memory.classes_.labels_ == ["a", 1, 2.5]
    assert memory.counts_.tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones((1, 3)), np.ones((1, 2)), "labels in 1 dimensions and goes on with 2"),
        (np.ones((1, 4)), np.ones(1), "rows of 4 numbers came, and this memory keeps rows of 3"),
    ],
)
@pytest.mark.parametrize("verb", ["take", "forget"])
def test_rows_that_do_not_fit_are_refused(X, y, message, verb):
    memory = ClassMemory(9, random_state=0)
    memory.take(*material(20, 3))
    before = memory.to_bytes()
    with pytest.raises(InputError, match=f"ClassMemory.{verb}: .*{message}"):
        getattr(memory, verb)(X, y)
    assert memory.to_bytes() == before


@pytest.mark.parametrize("matrix", [False, True])
def test_saved_and_loaded_it_goes_on_bit_for_bit(tmp_path, matrix):
    X, y = stream(300, 6, 1, matrix)
    memory = ClassMemory(50, random_state=3)
    memory.take(X[:170], y[:170])
    memory.forget(X[100:130], y[100:130])
    memory.save(tmp_path / "memory")
    twins = [memory, ClassMemory.load(tmp_path / "memory")]
    twins += [copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))]
    draws = []
    for twin in twins:
        twin.take(X[170:], y[170:])
        draws.append(twin.draw(20, np.random.default_rng(0)).tolist())
    assert len({twin.to_bytes() for twin in twins}) == 1
    assert all(each == draws[0] for each in draws)


def test_one_that_goes_back_and_one_that_goes_on_do_not_meet():
    X, y = material(400, 5)
    memory = ClassMemory(64, random_state=0)
    for i in range(30):
        memory.take(X[i : i + 1], y[i : i + 1])
    before, described = snapshot(memory), memory.to_bytes()
    twin = ClassMemory.from_bytes(described)
    memory.take(X[30:200], y[30:200])
    assert before.to_bytes() == described
    after = memory.to_bytes()
    before.take(X[200:300], y[200:300])  # from the state before, in the same buffer
    before.take(X[300:], y[300:])
    twin.take(X[200:], y[200:])
    assert before.to_bytes() == twin.to_bytes()
    assert memory.to_bytes() == after


def test_what_came_is_not_changed_and_not_shared():
    X, y = material(30, 3)
    rows, labels = X.copy(), y.copy()
    memory = ClassMemory(40, random_state=0)
    memory.take(X, y)
    assert np.array_equal(X, rows)
    assert np.array_equal(y, labels)
    sample = memory.rows.copy()
    X[:] = 0
    assert np.array_equal(memory.rows, sample)


def test_storage_is_bounded():
    X, y = material(20_000, 10, d=200)
    memory = ClassMemory(500, random_state=0)
    tracemalloc.start()
    for i in range(0, len(X), 50):
        memory.take(X[i : i + 50], y[i : i + 50])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 500 * 200 * 4  # two buffers and a copy, while rows move to the other


# Draws ----------------------------------------------------------------------------------------


def test_draws_are_spread_over_classes():
    memory = ClassMemory(100, random_state=0)
    memory.take(*material(2000, 7))
    have = np.bincount(memory.labels)
    random = np.random.default_rng(0)
    for n in (1, 5, 30, 60, 100, 500):
        chosen = memory.draw(n, random)
        assert len(chosen) == len({*chosen.tolist()}) == min(n, len(memory))
        drawn = np.bincount(memory.labels[chosen], minlength=len(have))
        level = drawn.max()
        assert (drawn >= np.minimum(have, level - 1)).all(), "one of each in turn"
    assert len({memory.labels[memory.draw(1, random)[0]] for _ in range(100)}) == len(have)
    one = [memory.draw(len(have), random) for _ in range(200)]
    common = memory.labels == np.argmax(have)
    assert {*np.concatenate(one)} >= {*np.flatnonzero(common)}, "any row of a class may be drawn"


def test_a_sample_is_what_is_drawn():
    for matrix in (False, True):
        memory = ClassMemory(40, random_state=0)
        memory.take(*stream(300, 6, 0, matrix))
        chosen = memory.draw(15, np.random.default_rng(1))
        rows, labels = memory.sample(15, np.random.default_rng(1))
        assert np.array_equal(rows, memory.rows[chosen])
        assert np.array_equal(labels, memory.labels[chosen])


def test_rows_of_several_classes_are_drawn_once():
    memory = ClassMemory(40, random_state=0)
    memory.take(np.arange(9, dtype=np.float32)[:, None], np.ones((9, 3), np.uint8))
    assert sorted(memory.draw(20, np.random.default_rng(0))) == [*range(9)]


# Forgetting -----------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(STREAMS, st.integers(1, 40), st.sets(st.integers(0, 119), max_size=30))
def test_what_is_left_is_a_part_of_the_sample_without_what_was_forgotten(kind, size, gone):
    X, y = stream(*kind)
    gone = sorted(i for i in gone if i < len(X))
    memory = ClassMemory(size, random_state=4)
    memory.take(X, y)
    keys = keys_of(4, len(X))
    kept = rule(keys, y, size)
    memory.forget(X[gone], y[gone])
    left = [i for i in kept if i not in gone]
    assert_sample(memory, X, y, left)
    rest = np.delete(np.arange(len(X)), gone)
    without = rest[rule(keys[rest], y[rest], size)]
    assert {*left} <= {*without}
    dropped = sum(len(classes_of(y[[i]])[0]) for i in kept if i in gone)
    n_classes = len(set().union(*classes_of(y)))
    assert len(without) - len(left) <= dropped + n_classes
    fresh = y[rest].sum(axis=0) if y.ndim == 2 else np.bincount(y[rest], minlength=kind[1])
    assert memory.counts_.sum() == fresh.sum()


def test_places_of_forgotten_rows_are_filled_by_the_next():
    X, y = material(500, 4)
    memory = ClassMemory(40, random_state=0)
    memory.take(X, y)
    memory.forget(X[y == 1], y[y == 1])
    assert (memory.labels != memory.classes_.labels_.index(1)).all()
    new = np.random.default_rng(7).standard_normal((200, 3)).astype(np.float32)
    memory.take(new, np.repeat([0, 1, 2, 3], 50))
    assert np.bincount(memory.labels).tolist() == [10, 10, 10, 10]


def test_of_equal_rows_one_is_dropped_for_each_that_is_forgotten():
    memory = ClassMemory(20, random_state=0)
    X = np.zeros((8, 2), np.float32)
    memory.take(X, np.array([0, 0, 0, 0, 0, 1, 1, 1]))
    memory.forget(-X[:2], np.array([0, 1]))  # minus zero is zero
    assert np.bincount(memory.labels).tolist() == memory.counts_.tolist() == [4, 2]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((1, 1)), np.array(["d"]), "a class of which no row has come"),
        (
            np.zeros((4, 1)),
            np.array(["a", "b", "b", "b"]),
            "than have come of their classes, 1 too many",
        ),
    ],
)
def test_more_than_has_come_is_not_forgotten(X, y, message):
    memory = ClassMemory(9, random_state=0)
    with pytest.raises(InputError, match="has not seen any rows"):
        memory.forget(X, y)
    memory.take(np.zeros((6, 1), np.float32), np.array(list("aabbcc")))
    before = memory.to_bytes()
    with pytest.raises(InputError, match=message):
        memory.forget(X, y)
    assert memory.to_bytes() == before


# Merging --------------------------------------------------------------------------------------


@settings(max_examples=120, deadline=None)
@given(STREAMS, STREAMS, st.integers(1, 40), st.sampled_from([6, 7]))
def test_two_merged_are_the_sample_of_both_streams(one, two, size, seed):
    (X, y), (Z, z) = stream(*one), stream(*two[:3], one[3])
    a, b = ClassMemory(size, random_state=6), ClassMemory(size, random_state=seed)
    a.take(X, y)
    b.take(Z, z)
    before = a.to_bytes(), b.to_bytes()
    whole = ClassMemory.merged(a, b)
    assert (a.to_bytes(), b.to_bytes()) == before
    rows = np.concatenate([X, Z])
    if y.ndim == 2:
        width = max(y.shape[1], z.shape[1])
        y, z = (np.pad(each, ((0, 0), (0, width - each.shape[1]))) for each in (y, z))
    labels = np.concatenate([y, z])
    keys = np.concatenate([keys_of(6, len(X)), keys_of(seed, len(Z))])
    if seed == 6:  # equal keys: the first of the two goes first
        keys = np.argsort(np.argsort(keys, kind="stable"))
    assert_sample(whole, rows, labels, rule(keys, labels, size))
    counts = labels.sum(axis=0) if y.ndim == 2 else np.bincount(labels)[whole.classes_.labels_]
    assert np.array_equal(whole.counts_, counts)
    twin = ClassMemory.from_bytes(whole.to_bytes())
    whole.take(X, y)
    twin.take(X, y)
    assert whole.to_bytes() == twin.to_bytes()


def test_merging_with_an_empty_one_another_size_and_another_kind():
    X, y = material(100, 4)
    a, empty = ClassMemory(30, random_state=0), ClassMemory(20)
    assert len(ClassMemory.merged(empty, empty)) == len(empty) == 0
    a.take(X, y)
    small = ClassMemory(20, random_state=0)
    small.take(X, y)
    for whole in (ClassMemory.merged(a, empty), ClassMemory.merged(empty, a)):
        assert whole.size == 20
        assert np.array_equal(whole.rows, small.rows)
    matrix = ClassMemory(20, random_state=0)
    matrix.take(X, np.eye(4, dtype=np.uint8)[y])
    with pytest.raises(InputError, match=r"ClassMemory\.merged: .* pass all labels as numbers"):
        ClassMemory.merged(a, matrix)


def test_missing_rows_are_drawn_again_from_those_that_came():
    X, y = np.arange(60, dtype=np.float32)[:, None], np.array(["a"] * 40 + ["b"] * 15 + ["c"] * 5)
    memory = ClassMemory(15, random_state=0)
    memory.take(X, y)
    assert memory.missing() == {}
    kept = memory.rows[memory.labels == 0].ravel()  # 5 of each
    memory.forget(kept[:3, None], np.array(["a"] * 3))
    assert memory.missing() == {"a": 3}
    others = np.setdiff1d(np.arange(40), kept[:3])
    memory.refill(X[others], y[others])  # two of them are there already
    assert memory.missing() == {}
    now = memory.rows[memory.labels == 0].ravel()
    assert len({*now}) == 5
    assert {*kept[3:]} < {*now}
    assert not {*kept[:3]} & {*now}
    assert memory.counts_.tolist() == [37, 15, 5]  # refilled rows were counted before
    with pytest.raises(InputError, match="of which no row has come"):
        memory.refill(X[:1], np.array(["d"]))
    with pytest.raises(InputError, match="refill: this memory has not seen any rows"):
        ClassMemory(3).refill(X[:1], y[:1])


def test_a_refilled_memory_is_a_fair_sample_of_what_is_left():
    X = np.arange(100, dtype=np.float32)[:, None]
    y, times = np.zeros(100, int), np.zeros(120)
    for seed in range(2000):
        memory = ClassMemory(10, random_state=seed)
        memory.take(X, y)
        memory.forget(X[:50], y[:50])
        order = np.random.default_rng(seed).permutation(np.arange(50, 100))
        memory.refill(X[order[:40]], y[:40])
        memory.take(X[:20] + 100, y[:20])  # later rows come in as if nothing had been forgotten
        rows = memory.rows.ravel().astype(int)
        assert len(rows) == 10
        times[rows] += 1
    assert times[:50].sum() == 0
    expected = 2000 * 10 / 70
    assert abs(times[50:100].mean() / expected - 1) < 0.04  # seen: +.025, and later rows -.063
    assert abs(times[100:].mean() / expected - 1) < 0.09
    assert times[50:].min() > 0.8 * expected


def test_several_labels_a_row_are_refilled_too():
    rng = np.random.default_rng(0)
    X, Y = np.arange(80, dtype=np.float32)[:, None], (rng.random((80, 3)) < 0.5).astype(np.uint8)
    memory = ClassMemory(12, random_state=0)
    memory.take(X, Y)
    gone = memory.rows[:6].ravel().astype(int)
    memory.forget(X[gone], Y[gone])
    assert set(memory.missing()) <= {0, 1, 2}
    before = {*memory.rows.ravel()}
    left = np.setdiff1d(np.arange(80), gone)
    memory.refill(X[left], Y[left])
    assert memory.missing() == {}
    assert before <= {*memory.rows.ravel()}
    memory.check_learned()
