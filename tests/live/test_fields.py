"""Filters on a collection: columns that follow what is stored, against plain Python."""

import numpy as np
import pytest

from filter_machine import FilterMachine, vector
from fuzzing import machine_settings
from quick import plain_sdoh
from streamhash.errors import InputError
from streamhash.live import Collection, fields


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


def test_scan_and_export_what_matches(goods, tmp_path):
    batches = [*goods.scan(where="price < 10 OR id = 3", size=2)]
    assert [i for batch in batches for i in batch.ids.tolist()] == [0, 1, 3]
    assert [label for batch in batches for label in batch.labels] == [0, 1, 1]
    assert goods.export(tmp_path / "some.npz", where={"field": "price", "op": ">", "value": 9}) == 2
    assert np.load(tmp_path / "some.npz")["ids"].tolist() == [1, 2]
    assert goods.export(tmp_path / "none.parquet", where="price > 1e6") == 0
    with pytest.raises(InputError, match="no item has the field prise"):
        goods.export(tmp_path / "other.npz", where="prise > 9")
    assert not (tmp_path / "other.npz").exists()
    with pytest.raises(InputError, match="at character 7"):
        goods.scan(where="price ! 3")  # at once, and not with the first batch


def test_a_search_with_every_other_option(goods):
    plain = goods.search(np.array([vector(0)]), 3, where="price < 10")
    for options in ({"rescore": 2}, {"query": "real"}, {"rescore": 1, "by": "projections"}):
        found = goods.search(np.array([vector(0)]), 3, where="price < 10", **options)
        assert sorted(found.ids[0].tolist()) == sorted(plain.ids[0].tolist()) == [-1, 0, 1]
        assert found.labels[0] == [i % 2 for i in found.ids[0].tolist() if i >= 0]


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


case = FilterMachine.TestCase
case.settings = machine_settings(examples=8, steps=25)
case.pytestmark = [pytest.mark.machine, pytest.mark.slow]
TestFilterMachine = case
