"""Changing a part of items, searching before there is a model, and within a radius."""

import logging

import numpy as np
import pytest

from streamhash import SDOH, InputError, NotStartedError
from streamhash.errors import NotFoundError
from streamhash.live import Collection

pytest.importorskip("lance", reason="Lance is not installed")

D = 8


def stream(n=400, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(3, size=n)
    return (2 * np.eye(3, D)[y] + random.standard_normal((n, D))).astype(np.float32), y.tolist()


X, Y = stream()


def made(path, n=60, **options):
    hasher = SDOH(16, batch_size=20, n_features=32, memory=40, random_state=0)
    items = Collection.create(path, hasher, refresh="manual", random_state=0, **options)
    items.add(range(n), X[:n], Y[:n], metadata=[{"n": i, "kind": "old"} for i in range(n)])
    return items


@pytest.fixture
def items(tmp_path):
    with made(tmp_path / "items") as items:
        yield items


def test_what_is_not_given_stays(items, tmp_path):
    items.update([3], X[100:101])
    items.update([4], y=[2])
    items.update([5], metadata=[{"kind": "new"}])
    items.update([6, 7], X[106:108], [0, None], metadata=[None, {"more": 1}])
    with pytest.raises(InputError, match="nothing came; pass X, y or metadata"):
        items.update([8])
    with pytest.raises(NotFoundError, match="id 999 is not in this collection"):
        items.update([4, 999], X[:2])
    items.update([], y=[])

    def wanted(number):
        label = {4: 2, 6: 0}.get(number, Y[number])
        vector = X[number + 100 if number == 6 or number == 7 else 100 if number == 3 else number]
        metadata = {"n": number, "kind": "new" if number == 5 else "old"}
        return vector.tolist(), label, metadata | ({"more": 1} if number == 7 else {})

    def check(items):
        for item in items.get(range(60)):
            assert (item.vector.tolist(), item.label, item.metadata) == wanted(item.id)
            assert item.code.tolist() == items.encode([item.vector])[0].tolist()
        assert items.count("kind = 'new'") == 1

    check(items)
    items.close()
    with Collection.open(tmp_path / "items") as again:
        check(again)


def test_an_update_is_learned_as_a_replacement_is(tmp_path):
    one, other = made(tmp_path / "one"), made(tmp_path / "other")
    one.update([3, 4], X[200:202])
    other.add([3, 4], X[200:202], Y[3:5], existing="replace")
    assert one._learner.hasher_.to_bytes() == other._learner.hasher_.to_bytes()
    one.refresh()
    other.refresh()
    assert one.search(X[:50]).ids.tolist() == other.search(X[:50]).ids.tolist()


def test_adding_may_update_what_is_there(items):
    assert items.add([59, 60], X[300:302], [None, 1], existing="update") == 2
    first, second = items.get([59, 60])
    assert (first.label, first.metadata) == (Y[59], {"n": 59, "kind": "old"})
    assert (second.label, second.metadata) == (1, None)
    assert first.vector.tolist() == X[300].tolist()


def test_a_replacement_that_loses_something_says_so_once(items, caplog):
    with caplog.at_level(logging.WARNING):
        items.add([1], X[1:2], [1], metadata=[{}], existing="replace")
        assert caplog.text == ""
        items.add([1], X[1:2], existing="replace")
        items.add([2], X[2:3], existing="replace")
    assert caplog.text.count("labels and metadata of theirs are gone") == 1
    assert "update changes what is given" in caplog.text


# -------------------------------------------------------------------------- before there is a model


def test_the_first_items_are_found_by_their_vectors(tmp_path):
    with made(tmp_path / "items", n=0) as items:
        assert items.search(X[:2], 3).ids.tolist() == [[-1] * 3] * 2
        items.add([7], X[:1])
        found = items.search(X[:1], 2)
        assert found.model == 0
        assert found.ids.tolist() == [[7, -1]]
        assert found.distances[0, 0] == pytest.approx(0, abs=1e-6)
        items.add(range(100, 118), X[100:118], Y[100:118], metadata=[{"n": i} for i in range(18)])
        items.add([8], np.zeros((1, D)))
        items.delete([101])
        there = [i for i in range(100, 118) if i != 101]

        rows = {7: X[0]}
        found = items.search(X[200:203], 30)
        for i, query in enumerate(X[200:203]):
            named = {n: X[n] for n in there} | rows
            cosine = {
                n: -float(v @ query / np.linalg.norm(v) / np.linalg.norm(query))
                for n, v in named.items()
            }
            wanted = sorted(cosine, key=cosine.get)
            assert found.ids[i, :18].tolist() == wanted
            assert found.ids[i, 18:].tolist() == [8] + [-1] * 11
            assert found.distances[i, 0] == pytest.approx(1 + cosine[wanted[0]], abs=1e-5)
        some = items.search(X[200:201], 5, where="n < 6")
        assert set(some.ids[0].tolist()) == {100, 102, 103, 104, 105}
        near = items.search(X[105:106], 1, rescore=2, metric="euclidean")
        assert near.ids.tolist() == [[105]]
        for options in ({"query": "real"}, {"rescore": 2, "by": "projections"}, {"radius": 2}):
            with pytest.raises(NotStartedError, match="no model has been learned yet"):
                items.search(X[:1], 1, **options)
        with Collection.open(tmp_path / "items", read_only=True) as reader:
            assert reader.search(X[200:203], 30).ids.tolist() == found.ids.tolist()
        items.refresh()
        assert items.search(X[105:106], 1).model == 1


# ----------------------------------------------------------------------------------------- radius


def test_a_radius_leaves_out_what_is_farther_away(items):
    whole = items.search(X[200:220], 60)
    for radius in (0, 1, 3, 16):
        near = items.search(X[200:220], 60, radius=radius)
        for i, row in enumerate(whole.distances):
            n = int((row <= radius).sum())
            assert near.ids[i].tolist() == whole.ids[i, :n].tolist() + [-1] * (60 - n)
            assert near.distances[i, :n].tolist() == row[:n].tolist()
    few = items.search(X[200:220], 60, radius=3, where="n < 30", rescore=2)
    assert (few.ids < 30).all()
    assert (few.distances[few.ids >= 0] <= 3).all()
    with pytest.raises(InputError, match="radius=-1 must be"):
        items.search(X[:1], 1, radius=-1)
