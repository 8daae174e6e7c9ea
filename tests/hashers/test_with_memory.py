"""Methods with a memory: each stage is learned with as many rows that came before."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from streamhash import (
    BSODH,
    HCOH,
    HMOH,
    LSH,
    OKH,
    OSH,
    InputError,
    MIHash,
    OnlineHasher,
    SnapshotHasher,
    mean_average_precision,
)
from streamhash.base import StreamPart
from streamhash.lab import bench
from streamhash.labels import with_labels


class Seen(StreamPart):
    """Adds up the rows it learns from, and maps them to twice as much."""

    def learn_rows(self, X):
        self.sum_ = getattr(self, "sum_", 0) + X.sum()

    def map_rows(self, X):
        return 2 * X


class Recorder(OnlineHasher):
    """Keeps the stages it was given, as (X, y)."""

    multi_label = True

    def _feature_parts(self, d):  # noqa: ARG002
        return [Seen()]

    def _start(self, X, y):
        self.first_ = (X, y)
        self.stages_ = []

    def _learn(self, X, y):
        self.stages_ = [*self.stages_, (X, y)]

    def _project(self, X):
        return np.resize(X, (len(X), self.n_bits))


def numbered_rows(n):
    return np.arange(1, n + 1, dtype=np.float32)[:, None]


def test_a_stage_comes_with_as_many_rows_from_before():
    X, y = numbered_rows(60), np.repeat(list("abc"), 20)
    model = Recorder(8, batch_size=10, memory=30, random_state=0).fit(X, y)
    (start, first), *later = model.stages_
    assert np.array_equal(start, 2 * X[:10])
    assert np.array_equal(first, y[:10])
    assert np.array_equal(model.first_[0], start)
    by_number = dict(zip((2 * X).ravel().tolist(), y, strict=True))
    for i, (rows, labels) in enumerate(later, start=1):
        found = rows.ravel()
        new = np.isin(found, 2 * X[10 * i : 10 * i + 10])
        assert new.sum() == 10
        assert len(np.unique(found)) == 20
        assert (found[~new] < 2 * X[10 * i]).all(), "as the memory was before the stage"
        assert [by_number[number] for number in found.tolist()] == labels.tolist()
        assert not np.array_equal(np.sort(np.flatnonzero(new)), np.arange(10)), "not shuffled"
    _, last = model.stages_[-1]
    old = [(last == name).sum() for name in "ab"]  # two or three classes: three to five of each
    assert min(old) >= 3
    assert model.parts_[0].sum_ == X.sum(), "parts learn from new rows alone"
    assert model.n_samples_seen_ == 60
    assert len(model.memory_) == 30
    assert np.array_equal(np.sort(model.memory_.counts_), [20, 20, 20])


def test_without_a_memory_a_stage_is_what_came():
    X, y = numbered_rows(30), np.arange(30) % 3
    model = Recorder(8, batch_size=10, random_state=0).fit(X, y)
    assert np.array_equal(np.concatenate([rows for rows, _ in model.stages_]), 2 * X)
    assert not hasattr(model, "memory_")


def test_matrices_of_labels_may_become_wider():
    X = numbered_rows(40)
    model = Recorder(8, memory=20, random_state=0)
    model.partial_fit(X[:20], np.eye(2, dtype=int)[np.arange(20) % 2])
    model.partial_fit(X[20:30], np.eye(4, dtype=int)[2 + np.arange(10) % 2])
    rows, labels = model.stages_[-1]
    assert labels.shape == (20, 4)
    assert labels.sum(axis=0).tolist() == [5, 5, 5, 5]
    assert np.array_equal(rows.ravel() > 40, labels[:, 2:].any(axis=1))
    model.partial_fit(X[30:], np.eye(3, dtype=int)[np.arange(10) % 3])
    assert model.stages_[-1][1].shape == (20, 4)


def test_labels_of_several_kinds_stay_what_they_are():
    X = numbered_rows(6)
    model = Recorder(8, memory=20, random_state=0)
    model.partial_fit(X[:2], np.array([1, 2]))
    model.partial_fit(X[2:4], np.array(["1", "b"]))
    model.partial_fit(X[4:], np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"))
    found = {type(label).__name__ for _, labels in model.stages_ for label in labels.tolist()}
    assert found == {"int", "str", "date"}
    kinds = [labels.dtype.kind for _, labels in model.stages_]
    assert kinds == ["i", "O", "O"]


@pytest.mark.parametrize(
    ("labels", "more", "kind"),
    [
        ([1, 2], [3], "i"),
        ([1, 2], [3.5], "f"),
        (["a", "bc"], ["def"], "U"),
        ([1, 2], ["1"], "O"),
        (["a"], ["a\0"], "O"),
        ([-1], [2**63 + 1], "O"),
        ([1], [(1, 2)], "O"),
        ([1], [], "i"),
    ],
)
def test_labels_behind_others(labels, more, kind):
    found = with_labels(np.array(labels), more)
    assert found.tolist() == [*labels, *more]
    assert found.dtype.kind == kind


@pytest.fixture(scope="module")
def sorted_digits():
    X, y = load_digits(return_X_y=True)
    order = np.argsort(y[:1400], kind="stable")
    return X[order], y[order], X[1400:], y[1400:]


# MIHash has a sample of its own, and gains less.
@pytest.mark.parametrize(
    ("method", "gain"), [(HCOH, 0.1), (HMOH, 0.1), (OKH, 0.1), (OSH, 0.08), (MIHash, 0.01)]
)
def test_what_stopped_coming_is_remembered(method, gain, sorted_digits):
    X, y, queries, wanted = sorted_digits
    quality = {}
    for memory in (0, 500):
        model = method(32, memory=memory, random_state=0).fit(X, y)
        codes = model.transform(queries), wanted, model.transform(X), y
        quality[memory] = mean_average_precision(*codes)
    assert quality[500] > quality[0] + gain


@pytest.mark.parametrize("method", [HCOH, MIHash])
def test_saved_loaded_and_refused_in_between(method, sorted_digits, tmp_path):
    X, y, *_ = sorted_digits
    whole = method(16, memory=90, random_state=0)
    for i in range(0, 700, 70):
        whole.partial_fit(X[i : i + 70], y[i : i + 70])
    broken = method(16, memory=90, random_state=0)
    for i in range(0, 700, 70):
        before = broken.to_bytes()
        wrong = X[i : i + 70].copy()
        wrong[-1, -1] = np.nan
        with pytest.raises(InputError, match="NaN"):
            broken.partial_fit(wrong, y[i : i + 70])
        assert broken.to_bytes() == before
        broken.partial_fit(X[i : i + 70], y[i : i + 70]).save(tmp_path / "model")
        broken = method.load(tmp_path / "model")
    assert broken.to_bytes() == whole.to_bytes()


def test_a_hasher_around_one_with_a_memory(sorted_digits):
    X, y, *_ = sorted_digits
    model = SnapshotHasher(HCOH(16, memory=50, random_state=0), random_state=0).fit(X, y)
    assert len(model.hasher_.memory_) == 50
    assert not hasattr(model, "memory_")


@pytest.mark.parametrize(
    ("method", "reason"), [(LSH, "needs no labels"), (BSODH, "keeps sums of all that has come")]
)
def test_methods_without_use_for_a_memory_refuse_it(method, reason, sorted_digits):
    with pytest.raises(InputError, match=rf"memory=5 is for methods .* {reason}; leave memory=0\."):
        method(8, memory=5).fit(*sorted_digits[:2])
    with pytest.raises(InputError, match="must be a whole number from 0 up"):
        HCOH(8, memory=-1).fit(*sorted_digits[:2])


def test_a_memory_for_all_methods_that_have_a_use_for_it():
    rows = bench(["lsh", "hcoh"], "digits", n_bits=8, quick=True, changes={"memory": 50}, jobs=1)
    assert [row["changes"] for row in rows] == [{}, {"memory": 50}]
