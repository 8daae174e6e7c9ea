"""Writes of every kind, many at a time: the same is there and learned as if each came alone."""

import shutil

import numpy as np
import pytest

from streamhash import HCOH, OKH, SDOH, FileError
from streamhash.errors import ConflictError, NotFoundError
from streamhash.live import (
    Addition,
    Collection,
    Deletion,
    Description,
    Labelling,
    Update,
    Written,
    journal,
)
from streamhash.live.journal import Journal

D = 8
METHODS = {
    "forgets": lambda: SDOH(16, batch_size=10, n_features=32, memory=40, random_state=0),
    "cannot forget": lambda: HCOH(16, batch_size=10, random_state=0),
    "pairs": lambda: OKH(16, batch_size=10, n_anchors=12, random_state=0),
}
METHODS["several labels"] = METHODS["forgets"]
NAMES = {"several labels": [0, [1], [0, 2], [2, 1, 0], None]}


def stream(n, random):
    y = random.integers(3, size=n)
    return (2 * np.eye(3, D)[y] + random.standard_normal((n, D))).astype(np.float32)


def some_write(random, names=(0, 1, 2, None)):
    """A write of any kind, of ids that may be there or not, may be repeated or wrong."""
    ids = random.integers(60, size=random.integers(1, 4)).tolist()
    n = len(ids)
    X = stream(n, random)
    y = [names[i] for i in random.integers(len(names), size=n)]
    metadata = [{"n": int(i)} for i in random.integers(100, size=n)]
    existing = random.choice(["refuse", "skip", "replace", "update"])
    return [
        lambda: Addition(ids, X, y, metadata, str(existing)),
        lambda: Addition(None, X, y),
        lambda: Addition(ids, X[:, :3]),
        lambda: Update(ids, X, y),
        lambda: Update(ids, metadata=metadata),
        lambda: Update(ids, y=y),
        lambda: Labelling(ids, y),
        lambda: Labelling(ids, y),
        lambda: Description(ids, metadata),
        lambda: Deletion(ids),
    ][random.integers(10)]()


def alone(items, write):
    """Do a write by the call of its kind; what came of it as ``write_each`` tells it."""
    verbs = {
        Addition: items.add,
        Update: items.update,
        Labelling: items.label,
        Description: items.set_metadata,
        Deletion: items.delete,
    }
    try:
        n = verbs[type(write)](**write._asdict())
        return len(write.ids) if n is None else n
    except Exception as error:  # noqa: BLE001  compared with that of the other
        return f"{type(error).__name__}: {error}"


def made(path, hasher, **options):
    """A collection that serves its first model: that one comes by itself."""
    items = Collection.create(path, hasher, refresh="manual", random_state=0, **options)
    items.add(range(0, 60, 3), stream(20, np.random.default_rng(0)), [0, 1] * 10)
    assert items.model_number == 1
    return items


def told(answer):
    return answer.items if isinstance(answer, Written) else f"{type(answer).__name__}: {answer}"


def content(items):
    """All that is there and was learned; not when, nor how well the codes did."""
    learner = items._learner
    return (
        [(i.id, i.vector.tobytes(), i.label, i.metadata) for i in items.get(items.ids)],
        [each[:3] for each in items.judgements()],
        learner.hasher_.to_bytes(),  # settles it
        learner.knowledge.to_bytes(),
        items._view.now.directory.listing.ids_of(learner.waiting_keys).tolist(),
        (learner.leaving_rows_.tobytes(), learner.leaving_labels_, learner.leaving_pairs_.tolist()),
        (learner.n_learned_, learner.n_items_, learner.gain_, learner.several_),
    )


def crashed(path, copy):
    """What is there after a crash."""
    with Collection.open(shutil.copytree(path, copy)) as again:
        return content(again)


@pytest.mark.parametrize("forget_deleted", [True, False])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(2))
def test_many_at_a_time_are_as_one_after_the_other(tmp_path, method, forget_deleted, seed):
    random = np.random.default_rng(seed)
    one, many = (
        made(
            tmp_path / name,
            METHODS[method](),
            forget_deleted=forget_deleted,
            labels="several" if method in NAMES else None,
        )
        for name in ("one", "many")
    )
    n_commits, names = 0, NAMES.get(method, [0, 1, 2, None])
    for turn in range(10):
        if turn == 4:
            assert one.refresh() == many.refresh()
        if turn > 4 and method == "pairs" and len(one.ids) > 6:
            ids = random.permutation(one.ids)[:4].tolist()
            for items in (one, many):
                items.feedback(query_id=ids[0], id=ids[1:], good=[True, False, True])
        writes = [some_write(random, names) for _ in range(25)]
        before = many._journal._tail.n_changes
        assert [alone(one, each) for each in writes] == [*map(told, many.write_each(writes))]
        n_commits += many._journal._tail.n_changes - before
        assert content(one) == content(many)
    assert n_commits < 200  # of 300, most of which are right
    assert content(many) == crashed(tmp_path / "many", tmp_path / "copy")
    one.refresh(), many.refresh()
    assert one.ids == many.ids
    X = stream(5, random)
    assert np.array_equal(one.search(X, k=5).ids, many.search(X, k=5).ids)
    before = content(many)
    one.close(), many.close()
    with Collection.open(tmp_path / "one") as one, Collection.open(tmp_path / "many") as many:
        assert content(one) == content(many) == before


def test_writes_that_do_not_touch_each_other_share_one_record(tmp_path):
    X = stream(40, np.random.default_rng(0))
    with Collection.create(tmp_path / "items", METHODS["forgets"](), refresh="manual") as items:
        items.add(range(30), X[:30])
        items.label([0], [1])  # which begins a log
        assert items._journal._tail.n_changes == 1
        done = items.write_each(
            [
                Addition([30], X[30:31], [1]),
                Labelling([1, 2], [0, 1]),
                Description([3], [{"a": 1}]),
                Deletion([4]),
                Addition([5], X[31:32], [2], None, "replace"),
                Update([6], metadata=[{"b": 2}]),
                Deletion([99]),
            ]
        )
        assert done[:6] == [(1, 1), (2, 0), (1, 0), (1, 0), (1, 0), (1, 0)]
        assert type(done[6]).__name__ == "NotFoundError"
        assert items._journal._tail.n_changes == 2
        before = content(items)
        assert crashed(tmp_path / "items", tmp_path / "copy") == before
        assert items.ids[-4:] == [30, 3, 5, 6]


def test_what_touches_what_another_has_changed_comes_after_it(tmp_path):
    X = stream(40, np.random.default_rng(0))
    with Collection.create(tmp_path / "items", METHODS["forgets"](), refresh="manual") as items:
        items.add(range(30), X[:30])
        done = items.write_each(
            [
                Addition([30], X[30:31]),
                Labelling([30], [1]),
                Deletion([30]),
                Labelling([30], [1]),
                Addition([30], X[31:32], [2]),
                Description([7], [{"a": 1}]),
                Update([7], metadata=[{"b": 2}]),
            ]
        )
        assert [type(each).__name__ for each in done] == [
            *["Written"] * 3,
            "NotFoundError",
            *["Written"] * 3,
        ]
        assert items.labels([30]) == [2]
        assert items.get([7])[0].metadata == {"a": 1, "b": 2}


def test_metadata_of_few_items_leave_the_log_as_it_is(tmp_path, monkeypatch):
    X = stream(40, np.random.default_rng(0))
    with Collection.create(tmp_path / "items", METHODS["forgets"](), refresh="manual") as items:
        items.add(range(30), X[:30], [0] * 30)
        items.label([0], [1])  # which begins a log
        with monkeypatch.context() as changed:
            changed.setattr(Journal, "fold_log", None)  # called by nobody
            for i in range(30):
                items.set_metadata([i], [{"n": i}])
        assert items._journal._tail.n_changes == 31
        assert [each.metadata for each in items.get(items.ids)] == [{"n": i} for i in range(30)]


def test_the_same_over_folds_of_the_log(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "LOG_CHANGES", 3)
    random = np.random.default_rng(5)
    one, many = (made(tmp_path / name, METHODS["forgets"]()) for name in ("one", "many"))
    for _ in range(10):
        writes = [some_write(random) for _ in range(10)]
        assert [alone(one, each) for each in writes] == [*map(told, many.write_each(writes))]
        assert content(one) == content(many)
    one.close(), many.close()
    with Collection.open(tmp_path / "one") as one, Collection.open(tmp_path / "many") as many:
        assert content(one) == content(many)


def test_what_cannot_be_read_is_told_each_that_needs_it(tmp_path):
    X = stream(60, np.random.default_rng(0))
    with Collection.create(tmp_path / "items", METHODS["forgets"](), refresh="manual") as items:
        items.add(range(30), X[:30], [0, 1, 2] * 10)
    with Collection.open(tmp_path / "items") as items:
        shutil.rmtree(tmp_path / "items" / "state.lance" / "data")  # what was learned
        done = items.write_each(
            [
                Addition([1], X[30:31], [1]),
                Addition([30], X[30:31], [1]),
                Labelling([99], [1]),
                Labelling([3], [1]),
            ]
        )
        assert [*map(type, done)] == [ConflictError, FileError, NotFoundError, FileError]
        assert len(items) == 30
