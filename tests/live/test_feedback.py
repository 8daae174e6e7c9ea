"""Judged answers: stored, learned, forgotten, and there after everything that may happen."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from streamhash import (
    LSH,
    OKH,
    SDOH,
    FileError,
    InputError,
    MIHash,
    NotFoundError,
    ReadOnlyError,
)
from streamhash.live import Collection, verify

DIGITS = load_digits()
X, Y = DIGITS.data.astype(np.float32), DIGITS.target


def sdoh(**options):
    return SDOH(16, batch_size=20, n_features=64, memory=200, random_state=0, **options)


@pytest.fixture
def items(tmp_path):
    with Collection.create(tmp_path / "items", sdoh(), random_state=0) as c:
        c.add(range(300), X[:300])
        yield c


def judged(n, seed=0):
    """Ids of queries and answers that are judged rightly."""
    random = np.random.default_rng(seed)
    asked = random.integers(300, size=n)
    own = [random.choice(np.setdiff1d(np.flatnonzero(Y[:300] == Y[i]), i)) for i in asked]
    found = np.where(random.random(n) < 0.6, own, random.integers(300, size=n))
    found = np.where(found == asked, (found + 1) % 300, found)
    return asked, found, Y[asked] == Y[found]


def content(c):
    learner = c._learner
    return learner.to_bytes(), learner.hasher_.to_bytes(), len(c.judgements()), c.status()["items"]


def counts(c):
    return tuple(c.status()["feedback"][name] for name in ("stored", "learned", "waiting"))


def test_judgements_make_the_first_model_and_better_ones(items):
    asked, found, good = judged(400)
    assert items.model_number == 0
    for start in range(0, 400, 40):
        some = slice(start, start + 40)
        assert items.feedback(query_id=asked[some], id=found[some], good=good[some]) == 40
    assert items.model_number >= 1
    items.refresh()
    assert counts(items) == (400, 400, 0)
    answers = items.search(X[300:500], 5).ids
    assert (Y[answers] == Y[300:500, None]).mean() > 0.75


@pytest.mark.parametrize("method", [OKH(16, random_state=0), MIHash(16, random_state=0), sdoh()])
def test_pieces_and_openings_do_not_matter(tmp_path, method):
    asked, found, good = judged(150)
    learned = []
    for size in (150, 7, 1):
        path = tmp_path / f"items-{size}"
        c = Collection.create(path, method, refresh="manual", random_state=0)
        c.add(range(300), X[:300])
        for start in range(0, 150 if size > 1 else 0, size):
            if start % 3 == 0:
                c.close()
                c = Collection.open(path)
            some = slice(start, start + size)
            c.feedback(query_id=asked[some], id=found[some], good=good[some])
        if size == 1:
            c.feedback(X[asked], found, good)  # vectors are the same as ids of items
        learned.append((c._learner.hasher_.to_bytes(), counts(c)))
        c.close()
    assert learned[0] == learned[1] == learned[2]


def test_a_query_may_be_a_vector_several_or_an_item(items):
    assert items.feedback(X[400], 5) == 1
    assert items.feedback(X[401].tolist(), [6, 7], [True, False]) == 2
    assert items.feedback(X[402:404], [8, 9], good=[False, True]) == 2
    assert items.feedback(query_id=10, id=[11, 12], good=False) == 2
    assert items.feedback(query_id=[13, 14], id=[15, 16]) == 2
    assert items.feedback(X[400], []) == 0
    found = items.judgements()
    assert [(each.id, each.good, each.query_id) for each in found] == [
        (5, True, None),
        (6, True, None),
        (7, False, None),
        (8, False, None),
        (9, True, None),
        (11, False, 10),
        (12, False, 10),
        (15, True, 13),
        (16, True, 14),
    ]
    for each, row in zip(found, [400, 401, 401, 402, 403], strict=False):
        assert np.array_equal(each.query, X[row])
    assert found[-1].query is None


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"query": X[0], "id": [5, 999]}, NotFoundError, "id 999 is not in this collection"),
        ({"query_id": 999, "id": 5}, NotFoundError, "id 999 is not in this collection"),
        ({"id": 5}, InputError, "either query, a vector, or query_id"),
        ({"query": X[0], "query_id": 1, "id": 5}, InputError, "either query"),
        ({"query": X[0]}, InputError, "id did not come"),
        ({"query": X[:2], "id": [1, 2, 3]}, InputError, "2 queries and 3 judged ids came"),
        ({"query_id": [1, 2], "id": [3, 4, 5]}, InputError, "2 queries and 3 judged ids came"),
        ({"query_id": 5, "id": [4, 5]}, InputError, "an answer to itself"),
        ({"query": X[0], "id": [1, 2], "good": [True]}, InputError, "pass 2 booleans"),
        ({"query": X[0], "id": 1, "good": "yes"}, InputError, "pass 1 booleans"),
        ({"query": X[0, :9], "id": 1}, InputError, "9 columns, .* have 64"),
        ({"query": np.full(64, np.nan), "id": 1}, InputError, "NaN"),
        ({"query": "nonsense", "id": 1}, InputError, "query"),
        ({"query": X[0], "id": 1.5}, InputError, "ids"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(items, given, error, message):
    items.feedback(query_id=1, id=2)
    before = content(items)
    with pytest.raises(error, match=rf"^Collection\.feedback.*{message}"):
        items.feedback(**given)
    assert content(items) == before


def test_queries_too_extreme_to_be_learned_are_refused(items):
    asked, found, good = judged(100)
    items.feedback(query_id=asked, id=found, good=good)
    before = content(items)
    with pytest.raises(InputError, match=r"Collection\.feedback: .*would wreck the model"):
        items.feedback(np.full((30, 64), 1e30), range(30))
    assert content(items) == before


def test_a_method_that_learns_no_pairs_says_which_do(tmp_path):
    with Collection.create(tmp_path / "items", LSH(16, batch_size=20, random_state=0)) as c:
        c.add(range(50), X[:50])
        with pytest.raises(
            InputError,
            match=r"Collection.feedback: LSH does not learn .*\(.*OKH.*\), or change to one by reb",
        ):
            c.feedback(X[60], 1)
        assert c.status()["feedback"]["stored"] == 0


def test_a_reader_sees_judgements_and_gives_none(items, tmp_path):
    with Collection.open(tmp_path / "items", read_only=True) as reader:
        items.feedback(X[400], [1, 2])
        assert counts(reader) == (2, 0, 2)
        assert [each.id for each in reader.judgements()] == [1, 2]
        with pytest.raises(ReadOnlyError, match=r"Collection\.feedback"):
            reader.feedback(X[400], 1)


def test_judgements_go_with_their_items(items, tmp_path):
    asked, found, good = judged(100)
    items.feedback(query_id=asked, id=found, good=good)
    items.feedback(X[400:420], range(20))
    items.set_metadata([3, 4, 5], [{"a": 1}, None, {"b": 2}])  # they are the same items
    assert counts(items)[0] == 120
    items.set_metadata([3], [{"c": 3}])
    assert counts(items)[0] == 120
    items.refresh()
    assert [*items.judgements()[103]][:2] == [3, True]
    gone = [int(asked[0]), 3, 7]
    left = [each for each in items.judgements() if not {each.id, each.query_id} & {*gone}]
    items.delete(gone)
    assert len(items.judgements()) == len(left) < 120
    items.add([9], X[500:501], existing="replace")
    assert 9 not in [each.id for each in items.judgements()]
    now = content(items)
    items.close()
    with Collection.open(tmp_path / "items") as again:
        assert content(again) == now
        stored = again._journal.dataset("feedback").count_rows("good IS NOT NULL")
        assert stored == len(again.judgements())  # the others are gone for good


def test_what_pairs_taught_of_an_item_is_forgotten_with_it(tmp_path):
    asked, found, good = judged(100)
    kept = {}
    for name, forget in (("forgets", True), ("keeps", False)):
        with Collection.create(
            tmp_path / name, sdoh(), refresh="manual", forget_deleted=forget, random_state=0
        ) as c:
            c.add(range(300), X[:300])
            c.feedback(query_id=asked, id=found, good=good)
            c.feedback(X[400], [int(asked[0])] * 100)  # asked for this item alone
            groups = c._learner.hasher_.groups_
            assert groups.names_of(X[[asked[0], 400]]) != [None, None]
            c.delete([int(asked[0])])
            c.refresh()
            kept[name] = c._learner.hasher_.groups_.names_of(X[[asked[0], 400]])
    assert kept["forgets"] == [None, None]
    assert None not in kept["keeps"]


def test_an_item_that_gets_a_label_is_one_of_its_class(items):
    asked, found, good = judged(200)
    items.feedback(query_id=asked, id=found, good=good)
    row = int(asked[np.flatnonzero(good)[0]])
    assert items._learner.hasher_.groups_.names_of(X[[row]]) != [None]
    items.label([row], ["cat"])
    items.refresh()
    hasher = items._learner.hasher_
    assert hasher.groups_.names_of(X[[row]]) == [None]
    assert "cat" in hasher.memory_.classes_.labels_
    items.feedback(X[[450]], [row])  # what belongs with it has its label
    items.refresh()
    assert items._learner.hasher_.groups_.names_of(X[[450]]) == ["cat"]


def test_items_with_several_labels_hand_them_on(tmp_path):
    with Collection.create(tmp_path / "items", sdoh(), labels="several", random_state=0) as c:
        c.add(range(60), X[:60], [[int(label), "all"] for label in Y[:60]])
        c.add(range(60, 90), X[60:90])
        c.refresh()
        before = c._learner.hasher_.n_samples_seen_
        c.feedback(X[[400, 401, 402]], [1, 2, 70], [True, False, True])
        c.refresh()
        assert c._learner.hasher_.n_samples_seen_ == before + 1
        assert counts(c) == (3, 3, 0)


def test_relearning_learns_judgements_too(items):
    asked, found, good = judged(200)
    items.feedback(query_id=asked, id=found, good=good)
    assert items.rebuild(MIHash(16, random_state=0))
    items.refresh()
    assert counts(items) == (200, 200, 0)
    answers = items.search(X[300:500], 5).ids
    assert (Y[answers] == Y[300:500, None]).mean() > 0.6
    items.label(range(50), Y[:50])
    items.rebuild(LSH(16, random_state=0))  # they stay, and wait for one that learns them
    assert counts(items) == (200, 0, 200)
    items.rebuild(sdoh())
    items.refresh()
    assert counts(items) == (200, 200, 0)


def test_a_call_that_dies_between_its_two_commits_counts_for_nothing(items, tmp_path, monkeypatch):
    items.feedback(X[400], [1, 2])
    before = content(items)

    def fail(*_):
        raise FileError("no more room")

    with monkeypatch.context() as patch:
        patch.setattr(items._journal, "_write_learner", fail)
        with pytest.raises(FileError, match="no more room"):
            items.feedback(X[401], [3, 4, 5])
    assert content(items) == before
    assert items._journal.dataset("feedback").count_rows() == 5
    items.feedback(X[402], [6])
    assert [each.id for each in items.judgements()] == [1, 2, 6]
    assert items._journal.dataset("feedback").count_rows() == 3
    now = content(items)
    items.close()
    with Collection.open(tmp_path / "items") as again:
        assert content(again) == now
    assert verify(tmp_path / "items").damages == []


def test_lost_judgements_are_an_error(items, tmp_path):
    items.feedback(X[400], [1, 2])
    items.close()
    (tmp_path / "items" / "feedback.lance").rename(tmp_path / "away")
    with pytest.raises(FileError, match=r"feedback\.lance.*missing"):
        Collection.open(tmp_path / "items")
    (tmp_path / "items" / "checksums").unlink()
    with Collection.open(tmp_path / "items") as again, pytest.raises(FileError, match="missing"):
        again.judgements()


def test_many_small_judgements_are_tidied_up(items):
    for n in range(150):
        items.feedback(query_id=n, id=[n + 1], good=n % 3 > 0)
    assert len(items._journal.dataset("feedback").get_fragments()) <= 130
    assert len(items.judgements()) == 150


def test_halves_are_stored_as_such(tmp_path):
    with Collection.create(tmp_path / "items", sdoh(), vectors="float16", random_state=0) as c:
        c.add(range(30), X[:30])
        c.feedback(X[40] / 3, 2)
        assert c.judgements()[0].query.dtype == np.float16
        c.feedback(query_id=range(10), id=range(10, 20))
        c.refresh()
        assert counts(c) == (11, 11, 0)
