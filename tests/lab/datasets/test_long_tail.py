"""The stream with a long tail: its classes, its wrong labels, and that any piece is the same."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from streamhash.errors import InputError
from streamhash.lab.datasets import LongTailStream, load_data


@pytest.fixture(scope="module")
def stream():
    return LongTailStream(random_state=3)


@settings(deadline=None, max_examples=10)
@given(start=st.integers(0, 3000), n=st.integers(0, 1500))
def test_any_start_gives_the_same_rows_and_labels(start, n):
    stream = LongTailStream(random_state=3)
    X, y = stream.take(n, start)
    whole_X, whole_y = stream.take(4500)
    assert np.array_equal(X, whole_X[start : start + n])
    assert np.array_equal(y, whole_y[start : start + n])
    assert np.array_equal(stream.labels(n, start), stream.labels(4500)[start : start + n])


def test_rows_have_unit_length_and_classes_follow_zipf(stream):
    X, y = stream.take(20_000)
    assert (X.shape, X.dtype) == ((20_000, 384), np.float32)
    assert np.linalg.norm(X, axis=1) == pytest.approx(1, abs=1e-5)
    shares = np.bincount(y, minlength=50) / len(y)
    expected = 1 / np.arange(1, 51)
    assert shares == pytest.approx(expected / expected.sum(), abs=0.01)
    assert shares[0] > 0.2
    assert 0 < shares[-1] < 0.01


def test_a_share_of_the_labels_is_drawn_from_all_classes(stream):
    y, labels = stream.take(20_000)[1], stream.labels(20_000)
    wrong = labels != y
    assert wrong.mean() == pytest.approx(0.05, abs=0.006)
    assert np.bincount(labels[wrong], minlength=50).min() > 5  # rare ones as often as others
    none = LongTailStream(wrong=0, random_state=3)
    assert np.array_equal(none.labels(20_000), y)
    assert np.array_equal(none.take(100)[0], stream.take(100)[0])


def test_classes_of_a_group_are_alike_and_classes_have_modes(stream):
    X, y = stream.take(40_000)
    means = np.stack([X[y == c].mean(axis=0) for c in range(20)])
    means -= means.mean(axis=0)
    apart = np.linalg.norm(means[:, None] - means, axis=2)
    own_group = apart[np.arange(10), np.arange(10) + 10]
    others = apart[:10, :10][~np.eye(10, dtype=bool)]
    assert own_group.max() < others.min()


def test_wrong_settings_are_refused():
    with pytest.raises(InputError, match=r"LongTailStream: wrong=2 must be a number from 0 to 1"):
        LongTailStream(wrong=2)
    with pytest.raises(InputError, match=r"LongTailStream\.labels: n=-1 must be a whole number"):
        LongTailStream().labels(-1)


def test_the_set_has_true_classes_beside_the_labels_of_its_stream():
    data = load_data("long-tail", rows=5000)
    stream = LongTailStream(random_state=0)
    assert np.array_equal(data.X, stream.take(5000)[0])
    assert np.array_equal(data.y, stream.take(5000)[1])
    assert np.array_equal(data.stream_labels, stream.labels(5000))
    assert "SYNTHETIC" in data.card.note
    again = pickle.loads(pickle.dumps(data))
    assert np.array_equal(again.stream_labels, data.stream_labels)
