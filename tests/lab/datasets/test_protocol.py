"""The protocol: splits and preparation."""

import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from streamhash.errors import InputError
from streamhash.lab.datasets import centre_unit, split, split_by_time, split_unseen

relaxed = settings(deadline=None, max_examples=60)


@st.composite
def labelled(draw, least_classes=2):
    """Draw shuffled labels of 2 to 6 classes, each of 6 to 20 rows."""
    sizes = draw(st.lists(st.integers(6, 20), min_size=least_classes, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return rng.permutation(np.repeat(np.arange(len(sizes)), sizes))


@relaxed
@given(labelled(), st.integers(1, 5), st.integers(0, 2**40))
def test_split_parts_the_rows(y, per_class, seed):
    parts = split(y, queries_per_class=per_class, stream=None, random_state=seed)
    assert sorted([*parts.queries, *parts.database]) == list(range(len(y)))
    assert set(np.bincount(y[parts.queries])) == {per_class}
    assert np.array_equal(parts.stream, parts.database)
    shorter = split(y, queries_per_class=per_class, stream=2, random_state=seed)
    assert np.array_equal(shorter.queries, parts.queries)
    assert np.array_equal(shorter.stream, parts.database[:2])


@relaxed
@given(labelled(), st.sampled_from([split, split_unseen]), st.integers(0, 9))
def test_names_of_labels_change_nothing(y, how, seed):
    kwargs = {"queries_per_class": 3, "stream": None, "random_state": seed, **unseen_half(how)}
    expected = how(y, **kwargs)
    renamed = [y * 10 - 7, y / 4, np.array(list("abcdef"))[y], [f"class {i}" for i in y]]
    for labels in [*renamed, np.array(renamed[-1], dtype=object)]:
        again = how(labels, **kwargs)
        assert np.array_equal(again.queries, expected.queries)
        assert np.array_equal(again.database, expected.database)
        assert np.array_equal(again.stream, expected.stream)


@relaxed
@given(st.integers(2, 90), st.data(), st.integers(0, 9))
def test_time_parts_the_rows_and_keeps_their_order(n, data, seed):
    queries_from = data.draw(st.integers(1, n - 1))
    stream = data.draw(st.none() | st.integers(1, queries_from))
    parts = split_by_time(n, queries_from, stream=stream, random_state=seed)
    assert parts.queries.tolist() == list(range(queries_from, n))
    assert sorted(parts.database) == list(range(queries_from))
    assert parts.stream.tolist() == list(range(stream or queries_from))
    again = split_by_time(n, queries_from, stream=stream, random_state=seed)
    assert np.array_equal(again.database, parts.database)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (
            {"queries_from": 10},
            "split_by_time: queries_from=10 must be a whole number from 1 to 9.",
        ),
        (
            {"queries_from": 6, "stream": 7},
            "split_by_time: stream=7 is more than the 6 rows of the database; ",
        ),
    ],
)
def test_time_refuses_what_leaves_nothing(choices, message):
    with pytest.raises(InputError, match=re.escape(message)):
        split_by_time(10, **choices)


def unseen_half(how):
    return {"unseen": 0.5} if how is split_unseen else {}


@relaxed
@given(labelled(), st.floats(0.3, 0.7), st.integers(0, 9))
def test_unseen_classes_stay_unseen(y, share, seed):
    parts = split_unseen(y, unseen=share, queries_per_class=3, stream=None, random_state=seed)
    seen, unseen = set(y[parts.stream]), set(y[parts.queries])
    assert not seen & unseen
    assert set(y[parts.database]) == unseen
    assert set(np.bincount(y[parts.queries])[sorted(unseen)]) == {3}
    assert sorted([*parts.queries, *parts.database, *parts.stream]) == list(range(len(y)))


@pytest.mark.parametrize(
    ("classes", "share", "expected"), [(10, 0.25, 3), (205, 0.25, 51), (2, 0.25, 1), (6, 0.25, 2)]
)
def test_unseen_rounds_half_up(classes, share, expected):
    y = np.repeat(np.arange(classes), 3)
    parts = split_unseen(y, unseen=share, queries_per_class=1, stream=None, random_state=0)
    assert len(set(y[parts.queries])) == expected


@pytest.mark.parametrize("how", [split, split_unseen])
def test_the_seed_decides(how):
    y = np.repeat(np.arange(10), 50)
    first, again, other = (
        how(y, queries_per_class=10, stream=200, random_state=seed) for seed in (1, 1, 2)
    )
    for part in ("queries", "database", "stream"):
        assert np.array_equal(getattr(first, part), getattr(again, part))
        assert not np.array_equal(getattr(first, part), getattr(other, part))


@pytest.mark.parametrize("how", [split, split_unseen])
def test_without_a_random_state_each_split_is_another(how):
    y = np.repeat(np.arange(10), 50)
    first, other = (how(y, queries_per_class=10, stream=None) for _ in range(2))
    assert not np.array_equal(first.database, other.database)


@pytest.mark.parametrize("how", [split, split_unseen])
def test_sorted_rows_come_shuffled(how):
    y = np.repeat(np.arange(10), 50)
    parts = how(y, queries_per_class=10, stream=None, random_state=0)
    for rows in (parts.database, parts.stream):
        start = np.unique(y[rows[:60]])
        assert len(start) == len(np.unique(y[rows]))


def test_queries_change_with_the_seed_in_every_class():
    y = np.repeat(np.arange(3), 200)
    drawn = [
        set(split(y, queries_per_class=20, stream=None, random_state=s).queries) for s in range(40)
    ]
    assert len(set.union(*drawn)) > 550  # 600 × (1 - 0.9^40) = 591 rows expected


def test_multi_label_queries_are_drawn_over_all_rows():
    y = np.random.default_rng(0).integers(0, 2, (200, 4))
    parts = split(y, queries_per_class=10, stream=100, random_state=0)
    assert len(parts.queries) == 40
    assert sorted([*parts.queries, *parts.database]) == list(range(200))
    assert len(np.unique(parts.stream)) == 100


TEN = np.repeat(["cat", "dog"], [8, 2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: split(TEN, queries_per_class=2),
            "split: class 'dog' has 2 rows, but queries_per_class=2 needs at least 3; pass a "
            "smaller queries_per_class or drop the class.",
        ),
        (
            lambda: split(TEN, queries_per_class=1, stream=9),
            "split: stream=9 is more than the 8 rows of the database; pass a smaller stream, or "
            "None for all.",
        ),
        (
            lambda: split_unseen(TEN, unseen=0.5, queries_per_class=1, stream=99),
            "rows of the seen classes; pass a smaller stream, or None for all.",
        ),
        (
            lambda: split(TEN, queries_per_class=0),
            "split: queries_per_class=0 must be a whole number from 1 up.",
        ),
        (
            lambda: split(TEN, queries_per_class=1, stream=0.5),
            "split: stream=0.5 must be None or a whole number from 1 up.",
        ),
        (
            lambda: split(TEN, queries_per_class=1, random_state=-1),
            "split: random_state=-1 must be None or a whole number",
        ),
        (lambda: split([]), "split: y has shape (0,); pass at least one label."),
        (
            lambda: split([[0, 2], [1, 0]]),
            "split: y with two dimensions must hold only 0 and 1, one column a class",
        ),
        (
            lambda: split([1.0, np.nan]),
            "split: y has 1 missing labels (None, NaN or inf), the first in row 1;",
        ),
        (lambda: split([[0, 1], [1]]), "split: y has rows of unequal length; pass one label a row"),
        (
            lambda: split(np.array(["a", 1], dtype=object)),
            "split: the labels in y cannot be put in order",
        ),
        (
            lambda: split(np.eye(4), queries_per_class=1),
            "split: queries_per_class=1 over 4 classes are 4 queries, but y has only 4 rows;",
        ),
        (
            lambda: split_unseen(np.eye(4)),
            "split_unseen: y is a multi-label matrix of shape (4, 4)",
        ),
        (
            lambda: split_unseen(TEN, unseen=0.1),
            "split_unseen: unseen=0.1 of 2 classes leaves 0 unseen and 2 seen; pass a share",
        ),
        (lambda: split_unseen(TEN, unseen=1), "unseen=1 of 2 classes leaves 2 unseen and 0 seen;"),
        (
            lambda: split_unseen(TEN, unseen=25),
            "split_unseen: unseen=25 must be a number from 0 to 1.",
        ),
    ],
)
def test_what_cannot_be_split_is_said(call, message):
    with pytest.raises(InputError, match=re.escape(message)):
        call()


def slow_centre_unit(array, mean):
    """Prepare the rows one by one, in plain Python."""
    result = []
    for row in array:
        centred = [float(value) - float(m) for value, m in zip(row, mean, strict=True)]
        length = sum(value**2 for value in centred) ** 0.5 or 1.0
        result.append([value / length for value in centred])
    return np.array(result, np.float32)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.uint8])
def test_centre_unit_is_what_it_says(dtype):
    rng = np.random.default_rng(0)
    stream, queries = (rng.integers(0, 200, (n, 5)).astype(dtype) for n in (5000, 40))
    before = stream.copy()
    ours = centre_unit(stream, queries, n_start=7)
    mean = stream[:7].astype(float).mean(axis=0)
    for got, came in zip(ours, (stream, queries), strict=True):
        assert got.dtype == np.float32
        assert np.allclose(got, slow_centre_unit(came, mean), atol=1e-6)
    everything = np.concatenate([stream, queries]).astype(float)
    reference = centre_unit(stream, queries, mean_from="all")
    assert np.allclose(reference[1], slow_centre_unit(queries, everything.mean(axis=0)), atol=1e-6)
    assert np.array_equal(stream, before)


def test_centre_unit_keeps_zero_rows_at_zero():
    (rows,) = centre_unit([[1.0, 3.0], [3.0, 5.0], [2.0, 4.0]])
    assert rows[2].tolist() == [0, 0]
    assert np.linalg.norm(rows[:2], axis=1) == pytest.approx(1)


def test_the_start_of_the_stream_alone_gives_the_mean():
    rng = np.random.default_rng(1)
    stream, others = rng.random((2000, 3)), rng.random((50, 3))
    (short,) = centre_unit(stream[:1000])
    long, _ = centre_unit(stream, others)
    assert np.array_equal(long[:1000], short)


def test_centre_unit_makes_no_float64_copy():
    X = np.ones((40_000, 256), np.float32)
    tracemalloc.start()
    try:
        centre_unit(X, mean_from="all")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < X.nbytes * 1.9  # the result is one, a float64 copy would be two more


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: centre_unit(np.eye(3)[:0]), "centre_unit: stream_X has no rows; pass at least"),
        (
            lambda: centre_unit([1.0]),
            "centre_unit: stream_X is float64 of shape (1,); pass numbers",
        ),
        (
            lambda: centre_unit([["a"]]),
            "centre_unit: stream_X is <U1 of shape (1, 1); pass numbers",
        ),
        (
            lambda: centre_unit(np.eye(3), np.eye(3), np.eye(2)),
            "centre_unit: others[1] has 2 features, stream_X has 3; pass arrays of the same",
        ),
        (
            lambda: centre_unit(np.eye(3), n_start=0),
            "centre_unit: n_start=0 must be a whole number",
        ),
        (
            lambda: centre_unit(np.eye(3), mean_from="end"),
            "centre_unit: mean_from='end' must be one of 'start', 'all'.",
        ),
    ],
)
def test_what_cannot_be_centred_is_said(call, message):
    with pytest.raises(InputError, match=re.escape(message)):
        call()
