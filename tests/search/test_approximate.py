"""The approximate index: what it finds, what it promises, when it is stale."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from streamhash import HammingIndex, InputError, pack
from streamhash.search import ApproximateIndex
from streamhash.threads import using_threads

pytest.importorskip("faiss", reason="faiss-cpu is not installed")

FAR = 2147483647


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Where other tests keep the cores busy, faiss's threads mostly wait for each other."""
    with using_threads(1):
        yield


def grouped(n, n_bits, seed=0, n_groups=20, flip=0.1):
    """Codes in groups, as learned ones are: each bit of a group's centre flipped now and then."""
    centres = np.random.default_rng(0).choice([-1.0, 1.0], (n_groups, n_bits))
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1, 1], (n, n_bits), p=[flip, 1 - flip])
    return pack(centres[rng.integers(0, n_groups, n)] * signs)


def index_of(codes, n_bits, ids=None):
    index = HammingIndex(n_bits)
    index.add(ids, codes)
    return index


@settings(max_examples=20, deadline=None)
@given(n=st.integers(0, 40), n_bits=st.integers(1, 256), k=st.integers(1, 50))
def test_looking_into_every_bucket_gives_the_exact_distances(n, n_bits, k):
    index = index_of(grouped(n, n_bits), n_bits, ids=range(100, 100 + n)[::-1])
    near = ApproximateIndex(index, n_probe=1000, random_state=0)
    queries = grouped(3, n_bits, seed=1)
    exact, exact_ids = index.search(queries, k)
    distances, ids = near.search(queries, k)
    assert (distances.dtype, ids.dtype) == (exact.dtype, exact_ids.dtype)
    np.testing.assert_array_equal(distances, exact)
    # Items at a row's last distance may be others; what is nearer is the same, in the same order.
    sure = exact < exact[:, -1:] if k < n else np.full(exact.shape, True)
    np.testing.assert_array_equal(ids[sure], exact_ids[sure])


def test_rows_are_ordered_by_distance_then_by_id_and_tell_the_true_distance():
    codes = grouped(2_000, 32)
    ids = np.random.default_rng(2).permutation(2_000)
    index = index_of(codes, 32, ids)
    near = ApproximateIndex(index, n_buckets=16, n_probe=2, random_state=0)
    queries = grouped(50, 32, seed=1)
    distances, found = near.search(queries, 10)
    turn = np.argsort(ids)[found]
    true = np.bitwise_count(queries[:, None] ^ codes[turn]).sum(axis=2)
    np.testing.assert_array_equal(distances, true)
    keys = distances * 10_000 + found  # the lowest id first, as the exact index has it
    assert (np.diff(keys, axis=1) > 0).all()


def test_few_buckets_find_nearly_all_of_grouped_codes():
    index = index_of(grouped(5_000, 64), 64)
    queries = grouped(100, 64, seed=1)
    exact, _ = index.search(queries, 10)
    one, eight = (
        ApproximateIndex(index, n_probe=n, random_state=0).search(queries, 10)[0] for n in (1, 8)
    )
    recalls = [(found <= exact[:, -1:]).mean() for found in (one, eight)]
    assert recalls[0] <= recalls[1]
    assert recalls[1] > 0.98


def test_a_row_ends_where_its_buckets_do():
    far_apart = np.array([[0], [0], [255]], np.uint8)
    near = ApproximateIndex(
        index_of(far_apart, 8, ["a", "b", "c"]), n_buckets=2, n_probe=1, random_state=0
    )
    distances, ids = near.search(np.array([[1]], np.uint8), 3)
    assert distances.tolist() == [[1, 1, FAR]]
    assert ids.tolist() == [["a", "b", None]]
    near.n_probe = 2
    assert near.search(np.array([[1]], np.uint8), 3)[1].tolist() == [["a", "b", "c"]]


def test_the_same_seed_gives_the_same_buckets_with_any_number_of_threads():
    index = index_of(grouped(1_000, 32), 32)
    queries = grouped(40, 32, seed=1)
    answers = []
    for n_threads in (1, 2):
        with using_threads(n_threads):
            near = ApproximateIndex(index, n_buckets=32, n_probe=1, random_state=5)
            answers.append(near.search(queries, 20))
    other = ApproximateIndex(index, n_buckets=32, n_probe=1, random_state=6).search(queries, 20)
    for one, two in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(answers[0][1], other[1])


@pytest.mark.parametrize(
    "change",
    [
        lambda index: index.add([50], grouped(1, 16)),
        lambda index: index.delete([3]),
        lambda index: index.replace([0], ~index.codes[:1]),
    ],
    ids=["add", "delete", "replace"],
)
def test_it_is_stale_after_any_change_until_refreshed(change):
    index = index_of(grouped(20, 16), 16)
    near = ApproximateIndex(index, n_probe=100, random_state=0)
    assert not near.is_stale
    assert not near.refresh()
    before = near.search(index.codes, 3)
    codes = index.codes
    change(index)
    assert near.is_stale
    for old, now in zip(before, near.search(codes, 3), strict=True):
        np.testing.assert_array_equal(old, now)  # as it was built, until it is refreshed
    assert near.refresh()
    assert not near.is_stale
    assert len(near) == len(index)
    np.testing.assert_array_equal(near.search(codes, 3)[0], index.search(codes, 3)[0])


def test_a_change_that_is_taken_back_makes_nothing_stale():
    index = index_of(grouped(20, 16), 16)
    near = ApproximateIndex(index, random_state=0)
    index.add([50], grouped(1, 16))
    index.delete([50])
    assert not near.is_stale


def test_an_empty_index_answers_and_fills():
    index = HammingIndex(12)
    near = ApproximateIndex(index, random_state=0)
    distances, ids = near.search(grouped(2, 12), 3)
    assert distances.tolist() == [[FAR] * 3] * 2
    assert ids.tolist() == [[-1] * 3] * 2
    index.add(list("abcde"), grouped(5, 12))
    assert near.refresh()
    assert set(near.search(grouped(2, 12), 5)[1].ravel()) <= {*"abcde", None}
    assert repr(near) == "ApproximateIndex of 5 items, n_probe=8"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda index: ApproximateIndex(index, n_buckets=21, random_state=0),
            "ApproximateIndex: n_buckets=21 is more than the 20 codes of the index; pass fewer, or "
            "None.",
        ),
        (
            lambda index: ApproximateIndex(index, n_probe=0, random_state=0),
            "ApproximateIndex: n_probe=0 must be a whole number from 1 up.",
        ),
        (
            lambda index: setattr(ApproximateIndex(index, random_state=0), "n_probe", 0),
            "ApproximateIndex: n_probe=0 must be a whole number from 1 up.",
        ),
        (
            lambda index: ApproximateIndex(index, random_state=-1),
            "ApproximateIndex: random_state=-1 must be None or a whole number from 0 to "
            "2147483647.",
        ),
        (
            lambda index: ApproximateIndex(index, random_state=0).search(grouped(1, 12), 0),
            "ApproximateIndex.search: k=0 must be a whole number from 1 up.",
        ),
        (
            lambda index: ApproximateIndex(index, random_state=0).search(grouped(1, 12), 10**9),
            "ApproximateIndex.search: 1 queries with k=1000000000 are more than 100000000 answers, "
            "and there are 20 items; pass a smaller k, or fewer queries at a time.",
        ),
        (
            lambda index: ApproximateIndex(index, random_state=0).search(
                np.full((1, 2), 255, np.uint8), 1
            ),
            "ApproximateIndex.search: codes: the last 4 bits of a row, which fill up the last byte "
            "of 12-bit codes, must be zero; pass codes of 12 bits.",
        ),
        (
            lambda index: ApproximateIndex(index, random_state=0).search(grouped(1, 20), 1),
            "ApproximateIndex.search: codes: 12 bits need 2 bytes a row, but came 3; pass codes of "
            "the model these belong to.",
        ),
    ],
)
def test_bad_input_is_refused_with_the_next_step(call, message):
    with pytest.raises(InputError) as error:
        call(index_of(grouped(20, 12), 12))
    assert str(error.value) == message
