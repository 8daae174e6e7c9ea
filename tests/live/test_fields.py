"""Filters on a collection: columns that follow what is stored, against plain Python."""

import tempfile
from functools import partial

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fuzzing import machine_settings
from quick import plain_sdoh
from streamhash import SDOH
from streamhash.errors import InputError
from streamhash.live import Collection, fields, journal
from streamhash.live.filters import Filter

WIDTH = 4


def vector(number):
    return np.sin(number * np.arange(1, WIDTH + 1) * 0.7).astype(np.float32)


def collection(path, metadata, **options):
    items = Collection.create(path, plain_sdoh(8, batch_size=2, random_state=0), **options)
    labels = [i % 2 for i in range(len(metadata))]
    rows = np.array([vector(i) for i in range(len(metadata))])
    items.add(None, rows, labels, metadata=metadata)
    return items


GOODS = [
    {"price": 5, "category": "shoes", "sold": False, "day": "2026-01-31", "tags": ["new", "red"]},
    {"price": 9.5, "category": "hats", "sold": True, "day": "2026-02-01", "size": {"eu": 41}},
    {"price": 20, "category": "shoes", "day": "2026-02-02", "size": {"eu": 43}, "id": "own"},
    None,
]


@pytest.fixture(scope="module")
def goods(tmp_path_factory):
    with collection(tmp_path_factory.mktemp("goods") / "items", GOODS) as items:
        yield items


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("price < 10 AND category IN ('shoes', 'hats') AND NOT sold", [0]),
        ("price < 10", [0, 1]),
        ("price != 5", [1, 2]),
        ("price IS NULL", [3]),
        ("size.eu > 41", [2]),
        ("size IS NOT NULL", [1, 2]),
        ("day >= date '2026-02-01'", [1, 2]),
        ("'new' IN tags", [0]),
        ("id IN (1, 3) OR price = 20", [1, 2, 3]),
        ("id >= 2", [2, 3]),
        ("metadata.id = 'own'", [2]),
        ("label = 1", [1, 3]),
        ("1 IN labels", [1, 3]),
        ("label IS NULL", []),
        ("category LIKE 's%' AND label = 0", [0, 2]),
        ({"field": "size.eu", "op": "between", "value": [41, 43]}, [1, 2]),
    ],
)
def test_find_and_count(goods, where, ids):
    assert goods.find(where) == ids
    assert goods.count(where) == len(ids)
    _, found = goods.search(np.array([vector(0)]), 10, where=where)
    assert sorted(i for i in found[0].tolist() if i >= 0) == ids


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        (
            "prise < 10",
            "where: no item has the field prise; did you mean price? Fields are id, label, labels, "
            "category (string), day (date), metadata.id (string), price (number), "
            "size.eu (whole number), sold (boolean), tags (list).",
        ),
        ("price = 'cheap'", "where: price has no value that is a string, but number; compare it"),
        ("category > date '2026-01-01'", "category has no value that is a date, but string"),
        ("category", "category has no value that is a boolean, but string"),
        ("'new' IN category", "category has no value that is a list, but string"),
        ("label = 'shoes'", "label has no value that is a string, but number"),
        ("id = 'a'", "id has no value that is a string, but number"),
        ("size.us = 3", "no item has the field size.us; did you mean size.eu?"),
        ("price <", "where: at character 8"),
    ],
)
def test_wrong_fields_and_types(goods, where, problem):
    for ask in (goods.find, lambda where: goods.search(np.array([vector(0)]), 3, where=where)):
        with pytest.raises(InputError) as caught:
            ask(where)
        assert problem in str(caught.value)


def test_status_shows_fields(goods):
    assert goods.status()["fields"] == {
        "category": "string",
        "day": "date",
        "metadata.id": "string",
        "price": "number",
        "size.eu": "whole number",
        "sold": "boolean",
        "tags": "list",
    }


def test_types_are_learned_as_items_come(tmp_path):
    with collection(tmp_path / "items", [{"x": 1}] * 4) as items:
        assert items.status()["fields"] == {"x": "whole number"}
        assert items.find("x = 1") == [0, 1, 2, 3]
        with pytest.raises(InputError, match="no item has the field y"):
            items.find("y = 1")
        items.add(None, vector(4)[None], metadata=[{"x": "one", "y": 2.5}])
        assert items.find("y > 2") == [4]
        assert items.find("x != 'two'") == [4]
        assert items.status()["fields"] == {"x": "string or whole number", "y": "number"}
        items.add(None, vector(5)[None], metadata=[{"x": 1.5}])
        assert items.find("x >= 1.5") == [5]
        assert items.find("NOT x >= 1.5") == [0, 1, 2, 3]


def test_delete_and_set_metadata(tmp_path):
    with collection(tmp_path / "items", [{"n": n} for n in range(8)]) as items:
        with Collection.open(tmp_path / "items", read_only=True) as reader:
            assert items.find("n < 2") == reader.find("n < 2") == [0, 1]
            before = items.get([1, 2])
            items.set_metadata([1, 2], [{"n": 100, "new": True}, None])
            assert items.find("new") == reader.find("n > 10") == [1]
            assert items.find("n IS NULL") == reader.find("n IS NULL") == [2]
            after = items.get([1, 2])
            assert [item.metadata for item in after] == [{"n": 100, "new": True}, None]
            for old, new in zip(before, after, strict=True):
                assert np.array_equal(old.vector, new.vector)
                assert old.label == new.label
                assert np.array_equal(old.code, new.code)
            items.delete(where="n >= 100 OR n = 7")
            assert items.ids == reader.ids == [0, 3, 4, 5, 6, 2]
            with pytest.raises(InputError, match="pass either ids or where"):
                items.delete([0], where="n = 0")
            with pytest.raises(InputError, match="metadata came for 2 of 1 items"):
                items.set_metadata([0], [{}, {}])
            with pytest.raises(InputError, match="id 99 is not in this collection"):
                items.set_metadata([99], [{}])
        assert len(items) == 6


def test_what_waits_to_be_learned_waits_under_its_new_key(tmp_path):
    hasher = plain_sdoh(8, batch_size=4, random_state=0)
    with Collection.create(tmp_path / "items", hasher) as items:
        items.add([5, 6, 7], [vector(5), vector(6), vector(7)], [0, 1, 0])
        items.set_metadata([6, 5], [{"a": 1}, {"a": 2}])
        assert items.status()["learner"]["waiting"] == 3
        items.add([8], [vector(8)], [1])
        assert items.status()["learner"]["learned"] == 4
        with Collection.create(tmp_path / "twin", hasher) as twin:
            twin.add([5, 6, 7, 8], [vector(n) for n in (5, 6, 7, 8)], [0, 1, 0, 1])
            assert items.model().to_bytes() == twin.model().to_bytes()


def test_memory_is_bounded(tmp_path, monkeypatch):
    metadata = [{name: f"{name}{i}" for name in "abcd"} for i in range(200)]
    with collection(tmp_path / "items", metadata) as items:
        column = 200 * (4 + fields.VALUE_BYTES + 60)
        monkeypatch.setattr(fields, "ITEM_BYTES", 0)
        monkeypatch.setattr(fields, "LEAST_BYTES", 2 * column)
        for name in "abcdabcd":
            assert items.find(f"{name} = '{name}7'") == [7]
            own = items._view.fields._columns
            assert sum(each.nbytes for each in own.values()) <= 2 * column
        with pytest.raises(InputError, match="the fields of this filter take more than 0 MiB"):
            items.find("a = 'a7' AND b = 'b7' AND c = 'c7'")
        assert items.find("d = 'd7' AND a = 'a7'") == [7]


def test_many_fields_can_be_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(fields, "MOST_FIELDS", 10)
    metadata = [{f"field {n}": n for n in range(i, i + 10)} for i in range(50)]
    with collection(tmp_path / "items", metadata) as items:
        assert items.find('"field 45" = 45') == [*range(36, 46)]
        assert len(items.status()["fields"]) == 10
        with pytest.raises(InputError, match="no item has the field other; "):
            items.find("other = 1")


# ------------------------------------------------------------------------------ a state machine

metadata = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "n": st.integers(-2, 6) | st.sampled_from([0.5, 2.5]),
        "s": st.sampled_from(["a", "b", "ab"]),
        "b": st.booleans() | st.none(),
        "d": st.sampled_from(["2026-01-31", "2026-02-01T12:00:00Z"]),
        "in": st.fixed_dictionaries({}, optional={"x": st.integers(0, 2)}),
    },
)
FILTERS = [
    "n < 3",
    "NOT n < 3",
    "n >= 0.5 AND s = 'a'",
    "s IN ('a', 'ab') OR b",
    "s LIKE '%b'",
    "b IS NULL AND n != 2",
    "NOT (b OR n = 1)",
    "d >= date '2026-02-01'",
    '"in".x BETWEEN 1 AND 2',
    "id < 12",
    "label = 1 OR n > 4",
    "label IS NULL",
    "NOT 2 IN labels AND s IS NOT NULL",
]
EVERYTHING = {"n": 1, "s": "a", "b": True, "d": "2026-01-31", "in": {"x": 1}}
ids_of_some = st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True)
label = st.sampled_from([None, 0, 1, 2])


class FilterMachine(RuleBasedStateMachine):
    """A collection searched with filters, against plain Python and NumPy."""

    def __init__(self):
        super().__init__()
        journal.TIDY_AFTER = 5
        self.folder = tempfile.TemporaryDirectory()
        self.path = f"{self.folder.name}/items"
        hasher = SDOH(8, batch_size=4, n_features=16, memory=20, random_state=0)
        self.c = self.create(hasher)
        # One item has every field, with a value of every kind: so no filter is refused.
        self.there = {}
        self.n = 0
        self.put([1000], [1], [EVERYTHING])
        self.reader = Collection.open(self.path, read_only=True)

    def create(self, hasher):
        return Collection.create(self.path, hasher, refresh=12)

    def teardown(self):
        self.c.close()
        self.reader.close()
        self.folder.cleanup()
        journal.TIDY_AFTER = 64

    def put(self, ids, labels, extra):
        numbers = [*range(self.n, self.n + len(ids))]
        self.n += len(ids)
        rows = np.array([vector(number) for number in numbers])
        self.c.add(ids, rows, labels, metadata=extra, existing="replace")
        for i, *rest in zip(ids, numbers, labels, extra, strict=True):
            self.there.pop(i, None)
            self.there[i] = rest

    def some(self, data):
        others = [i for i in self.there if i != 1000]
        return data.draw(st.lists(st.sampled_from(others), min_size=1, unique=True))

    @rule(ids=ids_of_some, data=st.data())
    def add(self, ids, data):
        n = len(ids)
        labels = data.draw(st.lists(label, min_size=n, max_size=n))
        self.put(ids, labels, data.draw(st.lists(metadata, min_size=n, max_size=n)))

    @precondition(lambda self: len(self.there) > 1)
    @rule(data=st.data())
    def label(self, data):
        ids = self.some(data)
        labels = data.draw(st.lists(label, min_size=len(ids), max_size=len(ids)))
        self.c.label(ids, labels)
        for i, y in zip(ids, labels, strict=True):
            self.there[i][1] = y

    @precondition(lambda self: len(self.there) > 1)
    @rule(data=st.data())
    def set_metadata(self, data):
        ids = self.some(data)
        extra = data.draw(st.lists(metadata, min_size=len(ids), max_size=len(ids)))
        self.c.set_metadata(ids, extra)
        for i, each in zip(ids, extra, strict=True):
            number, y, _ = self.there.pop(i)
            self.there[i] = [number, y, each]

    @precondition(lambda self: len(self.there) > 1)
    @rule(data=st.data())
    def delete(self, data):
        ids = self.some(data)
        self.c.delete(ids)
        for i in ids:
            del self.there[i]

    @rule(number=st.integers(100, 120), n=st.integers(1, 1100))
    def many_come_and_go(self, number, n):
        """Places of deleted items are used up, so that the others move up."""
        rows = np.tile(vector(number), (n, 1))
        self.c.add(range(2000, 2000 + n), rows, metadata=[{"n": 1}] * n)
        self.c.find("n = 1")
        self.c.delete(range(2000, 2000 + n))

    @precondition(lambda self: self.c.model_number)
    @rule()
    def refresh(self):
        self.c.refresh()

    @rule()
    def reopen(self):
        self.c.close()
        self.c = Collection.open(self.path)

    def matching(self, text):
        def read(i, field):
            _, y, value = self.there[i]
            special = {("id",): i, ("label",): y, ("labels",): None if y is None else (y,)}
            if field in special:
                return special[field]
            for name in field:
                value = value.get(name) if isinstance(value, dict) else None
            return value

        return [i for i in self.there if Filter.parse(text).holds(partial(read, i))]

    @rule(where=st.sampled_from(FILTERS))
    def find(self, where):
        for c in (self.c, self.reader):
            assert c.find(where) == self.matching(where)

    @precondition(lambda self: self.c.model_number)
    @rule(where=st.sampled_from(FILTERS), k=st.integers(1, 12))
    def search(self, where, k):
        queries = np.array([vector(number) for number in (0, 1, self.n)])
        ids = self.matching(where)
        rows = np.array([vector(self.there[i][0]) for i in ids]).reshape(-1, WIDTH)
        for c in (self.c, self.reader):
            model = c.model()
            distances, found = c.search(queries, k, where=where)
            assert found.shape == (3, k)
            codes = np.unpackbits(model.transform(queries), axis=1)
            own = np.unpackbits(model.transform(rows), axis=1) if ids else np.empty((0, 8))
            for q in range(3):
                far = (codes[q] != own).sum(axis=1)
                order = np.argsort(far, kind="stable")[:k]
                assert found[q, : len(order)].tolist() == [ids[i] for i in order]
                assert distances[q, : len(order)].tolist() == far[order].tolist()
                assert (found[q, len(order) :] == -1).all()

    @invariant()
    def nothing_is_lost(self):
        assert self.c.ids == [*self.there]


case = FilterMachine.TestCase
case.settings = machine_settings(examples=8, steps=25)
case.pytestmark = [pytest.mark.machine, pytest.mark.slow]
TestFilterMachine = case
