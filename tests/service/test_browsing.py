"""What the page's views ask for: lists, labels, files, display, comparisons over all classes."""

import io
import json

import numpy as np
import pyarrow.parquet
import pytest

from streamhash import LSH, SDOH
from streamhash.live import Collection
from streamhash.service import create_app

HOST = {"Host": "localhost"}
RNG = np.random.default_rng(0)
CENTRES = RNG.standard_normal((5, 24)) * 3
CLASSES = np.repeat(np.arange(5), [400, 60, 30, 20, 10])  # a long tail, class after class
VECTORS = (CENTRES[CLASSES] + RNG.standard_normal((len(CLASSES), 24))).astype(np.float32)
NAMES = ["shoe", "hat", "coat", "sock", "scarf"]
TITLES = [f"{NAMES[label].title()} number {i}" for i, label in enumerate(CLASSES)]


def facts(i):
    date = f"2026-{1 + i % 12:02}-{1 + i % 28:02}"
    return {"price": round(5 + (i * 37 % 100) / 4, 2), "title": TITLES[i], "date": date}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Embeddings with string ids, titles, prices and dates."""
    path = tmp_path_factory.mktemp("browsing") / "shop"
    items = Collection.create(path, SDOH(16, random_state=0), refresh="manual")
    ids = [f"sku-{i}" for i in range(len(CLASSES))]
    metadata = [facts(i) for i in range(len(CLASSES))]
    items.add(ids, VECTORS, [NAMES[label] for label in CLASSES], metadata=metadata)
    items.refresh()
    with items:
        yield items


@pytest.fixture(scope="module")
def send(shop, ask_app):
    ask = ask_app(create_app(shop))

    def send(method, path, body=None, kind="application/json"):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = HOST if body is None else {**HOST, "Content-Type": kind}
        return ask(method, path, headers, b"" if body is None else content)

    return send


@pytest.fixture(scope="module")
def ask(send):
    def ask(method, path, body=None, kind="application/json"):
        status, _, content = send(method, path, body, kind)
        return status, json.loads(content)

    return ask


def good(answer):
    status, said = answer
    assert status < 300, said
    return said


# ------------------------------------------------------------------------------ lists and labels


def test_items_are_listed_by_a_field_and_a_filter(ask, shop):
    found = good(ask("GET", "/api/items?sort=price&limit=1000"))
    prices = [item["metadata"]["price"] for item in found["items"]]
    assert prices == sorted(prices)
    assert found["total"] == len(prices) == len(CLASSES)
    path = "/api/items?sort=date&descending=true&where=price%20%3C%2010%20and%20label%20%3D%20'hat'"
    found = good(ask("GET", f"{path}&limit=7&offset=2"))
    wanted = shop.find("price < 10 and label = 'hat'")
    assert found["total"] == len(wanted)
    wanted.sort(key=lambda name: facts(int(name[4:]))["date"], reverse=True)
    dates = [facts(int(name[4:]))["date"] for name in wanted]
    assert [item["metadata"]["date"] for item in found["items"]] == dates[2:9]
    ids = [item["id"] for item in good(ask("GET", "/api/items?sort=id&limit=3"))["items"]]
    assert ids == ["sku-0", "sku-1", "sku-10"]
    labels = [
        item["label"] for item in good(ask("GET", "/api/items?sort=label&limit=1000"))["items"]
    ]
    assert labels == sorted(labels)


@pytest.mark.parametrize("query", ["sort=no_such", "sort=1", "where=price%20%3C", "sort=a%20b"])
def test_an_order_or_a_filter_of_no_use_is_told(ask, query):
    status, said = ask("GET", f"/api/items?{query}")
    assert status == 400, said
    assert said["error"]["message"]


def test_items_without_the_field_come_last_in_either_order(tmp_path):
    with Collection.create(tmp_path / "items", LSH(8, random_state=0)) as items:
        metadata = [{"a": 2}, None, {"a": "x"}, {"a": 1.5}, {"a": "b"}]
        items.add(range(5), np.eye(5), metadata=metadata)
        for descending, wanted in ((False, [3, 0, 4, 2, 1]), (True, [0, 3, 2, 4, 1])):
            _, _, ids, _ = items.list_items(0, 9, sort="a", descending=descending)
            assert ids == wanted
        items.delete([0])
        items.add([7], np.eye(1, 5), metadata=[{"a": 0}])
        assert items.list_items(0, 9, sort="a")[2] == [7, 3, 4, 2, 1]


def test_labels_are_counted(ask, tmp_path):
    found = good(ask("GET", "/api/labels"))["labels"]
    wanted = dict(zip(NAMES, np.bincount(CLASSES).tolist(), strict=True))
    assert {each["label"]: each["items"] for each in found} == wanted
    assert [each["items"] for each in found] == sorted(wanted.values(), reverse=True)
    with Collection.create(tmp_path / "several", LSH(8, random_state=0)) as items:
        items.add(range(3), np.eye(3), [["a", "b"], ["b"], None])
        assert items.count_labels() == {"a": 1, "b": 2, None: 1}


# ------------------------------------------------------------------------------------------ display


def test_what_people_see_first_is_guessed_and_can_be_said(ask, shop):
    guessed = good(ask("GET", "/api/display"))
    wanted = {"title": "title", "subtitle": ["date", "price"], "image": None, "guessed": True}
    assert guessed == wanted
    assert good(ask("GET", "/api/status"))["display"] == wanted
    said = {"title": "date", "subtitle": ["price"], "image": None, "about": "Clothes."}
    assert good(ask("PUT", "/api/display", said)) == {**said, "guessed": False}
    assert good(ask("GET", "/api/status"))["display"] == {**said, "guessed": False}
    with Collection.open(shop.address, read_only=True) as again:
        assert len(again) == len(CLASSES)  # the file beside its data does no harm
    assert ask("PUT", "/api/display", {"title": 7})[0] == 422
    assert good(ask("GET", "/api/display"))["title"] == "date"
    good(ask("PUT", "/api/display", {"title": "title", "subtitle": ["price", "date"]}))


# -------------------------------------------------------------------------------------------- files


def test_what_is_filtered_is_exported_and_can_be_added_again(send, shop, tmp_path, ask_app):
    where = "label%20%3D%20'coat'"
    status, headers, lines = send("GET", f"/api/export?where={where}&vectors=true")
    assert (status, headers["content-disposition"]) == (200, 'attachment; filename="shop.jsonl"')
    items = [json.loads(line) for line in lines.splitlines()]
    assert [item["id"] for item in items] == shop.find("label = 'coat'")
    assert {"id", "label", "vector", "title", "price", "date"} == {*items[0]}
    table = send("GET", f"/api/export?where={where}&format=csv")[2].decode()
    assert table.splitlines()[0] == "id,label,date,price,title"
    assert len(table.splitlines()) == 31
    parquet = send("GET", f"/api/export?where={where}&format=parquet&vectors=true")[2]
    assert pyarrow.parquet.read_table(io.BytesIO(parquet)).num_rows == 30
    with Collection.create(tmp_path / "coats", SDOH(16, random_state=0)) as coats:
        other = ask_app(create_app(coats))
        kind = {**HOST, "Content-Type": "application/octet-stream"}
        status, _, said = other("POST", "/api/files?format=jsonl", kind, lines)
        assert status == 200, said
        told = json.loads(said)
        assert (told["read"], told["added"]) == (30, 30)
        assert told["columns"].startswith("features: vector")  # what was taken for what
        assert "label: label" in told["columns"]
        first, again = shop.get([items[0]["id"]])[0], coats.get([items[0]["id"]])[0]
        assert (again.label, again.metadata) == (first.label, first.metadata)
        assert np.array_equal(again.vector, first.vector)
        # A second time it is refused as a whole, or passed over if that is wanted.
        status, _, said = other("POST", "/api/files?format=jsonl", kind, lines)
        assert (status, len(coats)) == (409, 30)
        path = "/api/files?format=jsonl&existing=skip"
        assert json.loads(other("POST", path, kind, lines)[2])["added"] == 0


@pytest.mark.parametrize(
    ("form", "content", "kind", "status"),
    [
        ("jsonl", b'{"vector": [1, 2]}\n{"vec', "application/octet-stream", 400),
        ("parquet", b"no parquet", "application/octet-stream", 400),
        ("npy", b"no numpy", "application/octet-stream", 400),
        ("csv", b"a,b\nc,d", "application/octet-stream", 400),
        ("exe", b"MZ", "application/octet-stream", 422),
        ("jsonl", b"{}", "text/plain", 415),
    ],
)
def test_a_file_of_no_use_is_told_without_a_path_and_nothing_is_added(
    send, shop, form, content, kind, status
):
    answered, _, said = send("POST", f"/api/files?format={form}", content, kind)
    assert answered == status, said
    assert b"/tmp" not in said
    assert len(shop) == len(CLASSES)


# ------------------------------------------------------------------------------ compare, quality


def test_compare_draws_its_queries_over_all_labels_and_tells_an_interval(ask, shop):
    body = {"left": {"method": "lsh"}, "right": {"model": 1}, "k": 5, "shown": 8}
    found = good(ask("POST", "/api/compare", body))
    assert found["queries"] == 100
    assert len(found["ids"]) == len(found["left"]["results"]) == len(found["right"]["codes"]) == 8
    # Of the first eight, each of the five labels is the label of one or two.
    labels = shop.labels(found["ids"])
    assert sorted(map(labels.count, NAMES)) == [1, 1, 2, 2, 2]
    gap = found["difference"]
    assert gap["mean"] == pytest.approx(found["precision"]["right"] - found["precision"]["left"])
    assert gap["low"] < gap["mean"] < gap["high"]
    assert found == good(ask("POST", "/api/compare", body))  # the same seed, the same queries
    other = good(ask("POST", "/api/compare", {**body, "seed": 1}))
    assert other["ids"] != found["ids"]
    # A model beside itself: no difference, and no doubt.
    same = {"left": {"model": 1}, "right": {"model": 1}, "k": 5, "shown": 1}
    zero = good(ask("POST", "/api/compare", same))["difference"]
    assert zero == {"mean": 0, "low": 0, "high": 0}


def test_the_drawn_queries_are_spread_over_the_whole_collection(shop):
    from streamhash.service.compare import Comparison

    ids = Comparison(shop, 2000).draw_queries(100, seed=3)
    counts = {name: shop.labels(ids).count(name) for name in NAMES}
    assert (counts["scarf"], counts["sock"]) == (10, 20)  # all there are
    assert {counts["shoe"], counts["hat"], counts["coat"]} == {23, 24}
    assert len({*ids}) == 100


def test_which_classes_are_found_badly_is_told_on_demand(ask):
    found = good(ask("GET", "/api/quality?k=5"))
    assert {each["label"] for each in found["classes"]} == {*NAMES}
    precisions = [each["precision"] for each in found["classes"]]
    assert precisions == sorted(precisions)
    assert found["queries"] == sum(each["queries"] for each in found["classes"]) <= 100
    assert 0 <= found["precision"] <= 1
