"""The service in this process: what its addresses answer, and that it is what the library says."""

import asyncio
import io
import json
import re
import threading
from contextlib import ExitStack

import numpy as np
import pytest
from sklearn.datasets import load_digits
from starlette.exceptions import HTTPException

from streamhash import HCOH, SDOH, FileError, InUseError, UnreachableError
from streamhash.live import Collection
from streamhash.service import Tokens, create_app
from streamhash.service.frames import TYPE, pack_frame, read_array, unpack_frame
from streamhash.service.workers import Places, Workers

X, Y = load_digits(return_X_y=True)
QUERIES = X[600:620]
HOST = {"Host": "127.0.0.1:8000"}


@pytest.fixture(scope="module")
def call(library, ask_app):
    """Ask for an address, with a body as JSON; return status, headers and content."""
    return calling(ask_app(create_app(library)))


def calling(ask):
    def call(path, body=None, **headers):
        if body is None:
            return ask("GET", path, HOST)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return ask("POST", path, {**HOST, "Content-Type": "application/json", **headers}, content)

    return call


def good(answer):
    status, _, content = answer
    assert status < 300, content
    return json.loads(content)


def refused(answer):
    status, _, content = answer
    return status, json.loads(content)["error"]["code"]


def test_searches_find_what_the_library_finds_as_json_and_raw(call, library):
    distances, ids = library.search(QUERIES, 7)
    codes = library.encode(QUERIES)
    found = good(call("/api/search", {"vectors": QUERIES.tolist(), "k": 7}))
    assert [[hit["id"] for hit in row] for row in found["results"]] == ids.tolist()
    assert [[hit["distance"] for hit in row] for row in found["results"]] == distances.tolist()
    assert found["codes"] == [code.tobytes().hex() for code in codes]
    assert found["model"] == library.model_number
    first = found["results"][0][0]
    item = library.get([first["id"]])[0]
    assert (first["label"], first["metadata"]) == (item.label, item.metadata)
    assert good(call("/api/encode", {"vectors": QUERIES.tolist()}))["codes"] == found["codes"]

    raw = {"Content-Type": TYPE, "Accept": TYPE}
    rows = QUERIES.astype(np.float32)
    frame = pack_frame({"k": 7, "shape": [*rows.shape]}, rows)
    head, content = unpack_frame(call("/api/search", frame, **raw)[2])
    facts = {"model": 1, "sample": None, "shape": [20, 7], "code_bytes": 4}
    assert head == {**facts, "labels": library.search(rows, 7).labels, "more": ["probabilities"]}
    for kind, wanted in (("uint8", codes), ("int32", distances), ("int64", ids)):
        got, content = read_array(content, kind, [*wanted.shape])
        assert np.array_equal(got, wanted)
    frame = pack_frame({"shape": [*rows.shape]}, rows)
    head, content = unpack_frame(call("/api/encode", frame, **raw)[2])
    assert np.array_equal(read_array(content, "uint8", head["shape"])[0], codes)
    assert good(call("/api/encode", frame, **{"Content-Type": TYPE}))["codes"] == found["codes"]


def test_answers_are_as_probable_as_the_library_says(tmp_path, ask_app):
    with Collection.create(tmp_path / "items", HCOH(32, random_state=0)) as items:
        for start in range(0, 600, 200):
            items.add(None, X[start : start + 200], Y[start : start + 200])
        call = calling(ask_app(create_app(items)))
        wanted = items.search(QUERIES, 5)
        found = good(call("/api/search", {"vectors": QUERIES.tolist(), "k": 5}))
        said = [[hit["probability"] for hit in row] for row in found["results"]]
        np.testing.assert_allclose(said, wanted.probabilities)
        raw = {"Content-Type": TYPE, "Accept": TYPE}
        rows = QUERIES.astype(np.float32)
        frame = pack_frame({"k": 5, "shape": [*rows.shape]}, rows)
        head, content = unpack_frame(call("/api/search", frame, **raw)[2])
        assert head["more"] == ["probabilities"]
        assert np.array_equal(
            np.frombuffer(content[-4 * 100 :], np.float32).reshape(20, 5), wanted.probabilities
        )
        body = {"vectors": QUERIES.tolist(), "k": 5, "min_probability": 0.9}
        sure = [len(row) for row in good(call("/api/search", body))["results"]]
        assert sure == (wanted.probabilities >= 0.9).sum(axis=1).tolist()
        assert sum(sure) < 100
        assert refused(call("/api/search", {**body, "model": 1})) == (400, "bad_input")
        alike = good(call("/api/search", {"ids": [5], "k": 5, "min_probability": 0.01}))
        assert len(alike["results"][0]) == 5
        told = good(call("/api/predict", {"vectors": QUERIES.tolist()}))
        labels, probabilities = items.predict(QUERIES)
        assert told["labels"] == labels
        np.testing.assert_allclose(told["probabilities"], probabilities)
        assert refused(call("/api/predict", {"vectors": [[1.0]]})) == (400, "bad_input")
        assert refused(call("/api/search", {**body, "min_probability": 2})) == (422, "invalid")


def test_probabilities_that_are_not_known_are_null(tmp_path, ask_app):
    with Collection.create(tmp_path / "items", HCOH(32, random_state=0)) as items:
        items.add(None, X[:20], Y[:20])
        items.refresh()
        call = calling(ask_app(create_app(items)))
        told = good(call("/api/predict", {"vectors": QUERIES[:2].tolist(), "k": 3}))
        assert told["probabilities"] == [None, None]
        body = {"vectors": QUERIES[:2].tolist()}
        assert "probability" not in good(call("/api/search", body))["results"][0][0]
        assert refused(call("/api/search", {**body, "min_probability": 0.5})) == (409, "not_ready")


@pytest.mark.parametrize("extra", [{"ids": [1]}, {"vectors": [[1.0]]}, {"K": 3}])
def test_a_raw_head_with_more_than_it_may_say_is_refused(call, extra):
    frame = pack_frame({"shape": [1, 64], **extra}, X[:1].astype(np.float32))
    assert refused(call("/api/search", frame, **{"Content-Type": TYPE})) == (422, "invalid")


@pytest.mark.parametrize(
    "vectors", [[[1.0] * 64, [1.0]], [[1.0] * 63], [[1e300] * 64]], ids=["ragged", "narrow", "huge"]
)
@pytest.mark.parametrize("path", ["/api/encode", "/api/search"])
def test_vectors_of_no_use_are_refused(call, path, vectors):
    assert refused(call(path, {"vectors": vectors})) == (400, "bad_input")


def test_filters_as_text_and_as_json(call, library):
    for where in (
        "id < 100 AND label != 3",
        {
            "and": [
                {"field": "id", "op": "<", "value": 100},
                {"not": {"field": "label", "op": "=", "value": 3}},
            ]
        },
    ):
        found = good(call("/api/search", {"vectors": QUERIES.tolist(), "k": 7, "where": where}))
        ids = library.search(QUERIES, 7, where=where).ids.tolist()
        assert [[hit["id"] for hit in row] for row in found["results"]] == ids
        assert max(map(max, ids)) < 100
    nothing = good(call("/api/search", {"vectors": QUERIES[:2].tolist(), "where": "id < 0"}))
    assert nothing["results"] == [[], []]
    assert "fields" in good(call("/api/status"))


@pytest.mark.parametrize(
    ("where", "problem", "status"),
    [
        ("id <", "search: where: at character 5", 400),
        ("other = 1", "where: no item has the field other; Fields are id, label, labels", 400),
        ({"field": "id"}, "it is none of the forms there are", 400),
        ("(" * 9_999, "more than 50 parentheses are open", 400),
        ("x" * 10_001, "", 422),
        (3, "", 422),
        (["id < 3"], "", 422),
    ],
    ids=["text", "field", "json", "deep", "long", "number", "list"],
)
def test_wrong_filters_are_refused(call, where, problem, status):
    body = {"vectors": QUERIES[:1].tolist(), "where": where}
    got, _, content = call("/api/search", body)
    assert (got, problem in json.loads(content)["error"]["message"]) == (status, True), content


def test_a_search_by_ids_leaves_the_item_itself_out(call, library):
    found = good(call("/api/search", {"ids": [5, 7], "k": 20, "metadata": False}))
    assert all(len(row) == 20 for row in found["results"])
    for item, row in zip((5, 7), found["results"], strict=True):
        _, ids = library.search(X[item : item + 1], 21)
        assert [hit["id"] for hit in row] == [i for i in ids[0].tolist() if i != item]
        assert row[0]["metadata"] is None


WAYS = [
    {"rescore": 4},
    {"rescore": 3, "metric": "euclidean"},
    {"rescore": 2.0, "by": "projections", "metric": "dot"},
    {"query": "real"},
    {"query": "real", "rescore": 4, "where": "row > 100"},
    {"where": {"field": "row", "op": "<", "value": 3}, "rescore": 2},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_options_of_a_search_are_those_of_the_library(call, library, way):
    options = {**way, "rescore": way.get("rescore") and int(way["rescore"])}
    wanted = library.search(QUERIES, 7, **options)
    found = good(call("/api/search", {"vectors": QUERIES.tolist(), "k": 7, **way}))["results"]
    for i, row in enumerate(found):
        n = len(row)
        assert [hit["id"] for hit in row] == wanted.ids[i, :n].tolist()
        assert [hit["distance"] for hit in row] == wanted.distances[i, :n].tolist()
        np.testing.assert_allclose([hit["score"] for hit in row], wanted.scores[i, :n], rtol=1e-6)
        assert (wanted.ids[i, n:] == -1).all()
    raw, rows = {"Content-Type": TYPE, "Accept": TYPE}, QUERIES.astype(np.float32)
    frame = pack_frame({"k": 7, "shape": [*rows.shape], **way}, rows)
    head, content = unpack_frame(call("/api/search", frame, **raw)[2])
    _, content = read_array(content, "uint8", [len(rows), head["code_bytes"]])
    for kind, values in (("int32", wanted.distances), ("int64", wanted.ids)):
        got, content = read_array(content, kind, head["shape"])
        assert np.array_equal(got, values)
    assert head["more"][0] == "scores"
    assert head["labels"] == wanted.labels
    scores, _ = read_array(content, "float32", head["shape"])
    assert np.array_equal(scores, wanted.scores, equal_nan=True)

    found = good(call("/api/search", {"ids": [5, 7], "k": 6, **way}))["results"]
    for item, row in zip((5, 7), found, strict=True):
        ids = library.search(X[item : item + 1], 7, **options).ids[0].tolist()
        assert [hit["id"] for hit in row] == [i for i in ids if i not in (item, -1)][:6]


def test_scores_that_are_no_number_are_null(call):
    found = good(call("/api/search", {"vectors": [[0.0] * 64], "k": 3, "rescore": 2}))
    assert [hit["score"] for hit in found["results"][0]] == [None] * 3


@pytest.mark.parametrize(
    ("way", "status"),
    [
        ({"rescore": 0}, 422),
        ({"rescore": 2.5}, 422),
        ({"by": "codes"}, 422),
        ({"metric": "dot"}, 400),  # without rescore
        ({"where": "prise < 3"}, 400),
        ({"where": [1]}, 422),
        ({"k": 1000, "rescore": 1000}, 413),
        ({"model": 99, "rescore": 2}, 400),
    ],
    ids=str,
)
def test_options_that_are_wrong_or_too_much_are_refused(call, way, status):
    assert refused(call("/api/search", {"vectors": QUERIES[:1].tolist(), **way}))[0] == status


def test_more_neighbours_than_items_end_the_row(call):
    found = good(call("/api/search", {"vectors": QUERIES[:1].tolist(), "k": 1000}))
    assert len(found["results"][0]) == 600
    many = good(call("/api/search", {"vectors": QUERIES[:2].tolist(), "k": 600}))
    assert many["results"][0] == found["results"][0]  # written as JSON in a thread


def test_several_labels_of_an_item(tmp_path, ask_app):
    """Each digit is also even or odd, and small or large."""
    labels = [["even" if y % 2 == 0 else "odd", "large" if y > 4 else "small"] for y in Y[:250]]
    with Collection.create(tmp_path / "items", SDOH(32, random_state=0)) as items:
        call = calling(ask_app(create_app(items)))
        rows, ids = X[:250].tolist(), [*range(250)]
        assert good(call("/api/items", {"vectors": rows, "ids": ids, "labels": labels}))
        good(call("/api/refresh", {"wait": True}))
        body = {"ids": [0, 1, 2], "labels": [7, [], ["odd", 3]]}
        assert good(call("/api/labels", body)) == {"labelled": 3}
        assert items.labels([0, 1, 2]) == [(7,), None, (3, "odd")]
        got = good(call("/api/items/get", {"ids": [0, 1, 2]}))["items"]
        assert [item["label"] for item in got] == [[7], None, [3, "odd"]]
        page = good(call("/api/items?offset=2&limit=1"))
        assert page["items"][0]["label"] == [3, "odd"]
        found = good(call("/api/search", {"ids": [5], "k": 5}))["results"][0]
        wanted = [*map(list, items.labels([hit["id"] for hit in found]))]
        assert [hit["label"] for hit in found] == wanted
        assert good(call("/api/status"))["labels"] == "several"
        both = {"left": {"model": 1}, "right": {"method": "mihash"}}
        compared = good(call("/api/compare", {"queries": [5], "k": 5, **both}))
        share = np.mean([not {*labels[5]}.isdisjoint(label) for label in wanted])
        assert compared["precision"]["left"] == pytest.approx(share)
        one = {**both, "right": {"method": "hcoh"}}
        assert refused(call("/api/compare", {"queries": [5], **one})) == (400, "bad_input")
        for bad, answer in [
            ([["a", ["b"]]], (422, "invalid")),
            ([[None]], (422, "invalid")),
            ([{"a": 1}], (422, "invalid")),
            ([["a"] * 1001], (413, "too_large")),
            ([[0, 1, 0]], (400, "bad_input")),
        ]:
            assert refused(call("/api/labels", {"ids": [3], "labels": bad})) == answer
        assert items.labels([3]) == [tuple(sorted(labels[3]))]


def test_items_are_listed_shown_and_drawn(call, library):
    page = good(call("/api/items?offset=2&limit=3"))
    assert page["total"] == 600
    assert page["items"][0] == {"id": 2, "label": int(Y[2]), "metadata": library.get([2])[0][3]}
    assert [item["id"] for item in page["items"]] == [2, 3, 4]
    newest = good(call("/api/items?limit=2&newest=true"))["items"]
    assert [item["id"] for item in newest] == [599, 598]
    item = good(call("/api/items/17"))
    assert item["vector"] == X[17].tolist()
    assert item["code"] == library.encode(X[17:18]).tobytes().hex()
    assert good(call("/api/items/get", {"ids": [17]})) == {"items": [item]}
    status, headers, content = call("/api/items/17/image")
    assert (status, headers["content-type"]) == (200, "image/png")
    image = pytest.importorskip("PIL.Image").open(io.BytesIO(content))
    grey = np.rint(X[17].reshape(8, 8) / X[17].max() * 255)
    assert np.array_equal(np.asarray(image), grey)


def test_status_history_and_models_are_those_of_the_library(call, library):
    status = good(call("/api/status"))
    assert status["items"] == 600
    assert status["writable"] is False
    assert status["address"] == "digits"
    assert status["serving"] == json.loads(json.dumps(library.status()["serving"]))
    assert good(call("/api/models")) == [
        {"number": number, **facts} for number, facts in library.models()
    ]
    assert good(call("/api/history"))["refreshes"] == library.history().refreshes


def test_methods_are_compared_on_the_same_items(call):
    queries = [*range(0, 100, 5)]
    body = {"queries": queries, "k": 10, "left": {"model": 1}, "right": {"method": "lsh"}}
    found = good(call("/api/compare", body))
    assert found["sample"] == 600 - len(queries)
    assert found["precision"]["left"] > found["precision"]["right"] > 0.3
    for side in ("left", "right"):
        shown = [
            np.mean([hit["label"] == Y[query] for hit in row])
            for query, row in zip(queries, found[side]["results"], strict=True)
        ]
        assert found["precision"][side] == pytest.approx(np.mean(shown))
        assert not {hit["id"] for row in found[side]["results"] for hit in row} & {*queries}
    body["queries"] = QUERIES[:2].tolist()
    assert good(call("/api/compare", body))["precision"] == {"left": None, "right": None}


def test_the_description_is_fastapis_with_the_width_and_no_outside_address(call):
    content = call("/openapi.json")[2]
    assert b"http://" not in content
    assert b"https://" not in content
    document = json.loads(content)
    schema = document["components"]["schemas"]["SearchBody"]
    assert schema["properties"]["vectors"]["anyOf"][0]["items"]["maxItems"] == 64
    search = document["paths"]["/api/search"]["post"]
    assert set(search["requestBody"]["content"]) == {"application/json", TYPE}
    assert set(search["responses"]["200"]["content"]) == {"application/json", TYPE}
    assert set(search["responses"]) >= {"400", "401", "404", "409", "413", "422", "503", "507"}
    status, headers, page = call("/docs")  # its own files show it
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"//" not in page.replace(b"<!--", b"")


def test_a_method_that_is_not_there_is_told_those_that_are(library, ask_app):
    ask = ask_app(create_app(library))
    for path, methods in (
        ("/api/items", "GET, POST"),
        ("/api/items/get", "POST"),
        ("/api/items/1", "DELETE, GET, PATCH, PUT"),
        ("/api/collections", "GET, POST"),
        ("/api/collections/digits", "DELETE, GET"),
        ("/api/collections/digits/items/get", "POST"),
        ("/api/collections/digits/items/1", "DELETE, GET, PATCH, PUT"),
    ):
        status, headers, _ = ask("OPTIONS", path, HOST)
        assert (status, headers["allow"]) == (405, methods)


def test_what_cannot_be_written_to_says_so(call):
    for path, body in (
        ("/api/items", {"vectors": X[:1].tolist()}),
        ("/api/labels", {"ids": [1], "labels": [1]}),
        ("/api/items/delete", {"ids": [1]}),
        ("/api/refresh", {"wait": True}),
        ("/api/refresh", {}),
    ):
        assert refused(call(path, body)) == (403, "read_only")
    refresh = good(call("/api/status"))["refresh"]
    assert (refresh["running"], refresh["error"]) == (False, None)


def test_work_beyond_what_may_wait_is_refused_and_then_it_goes_on():
    async def work():
        threads, go_on = Workers("write", 1, 1), threading.Event()
        # One is worked on, one more may wait, the next is too many.
        tasks = [asyncio.create_task(threads.run(go_on.wait)) for _ in range(3)]
        with pytest.raises(HTTPException, match="503: too many write requests"):
            await asyncio.wait_for(tasks[-1], 5)
        go_on.set()
        return [*await asyncio.gather(*tasks[:2]), await threads.run(go_on.wait)]

    assert asyncio.run(work()) == [True] * 3


def test_many_with_few_items_leave_room_for_one_with_many():
    places = Places("write", 16)
    with ExitStack() as held:
        for n_items in (16,) * 16 + (17, 10_000):
            held.enter_context(places.one(n_items))
        for n_items in (1, 17):
            with pytest.raises(HTTPException, match="503"), places.one(n_items):
                pass
    assert not places.are_taken


def test_many_small_writes_at_once_are_all_done(make_digits, ask_together, monkeypatch):
    """Each id is put twice, and one of the two makes it; all of them share commits."""
    json_head = {**HOST, "Content-Type": "application/json"}

    def body(**fields):
        return json.dumps(fields).encode()

    items = [(f"/api/items/{i}", body(vector=X[i].tolist(), label=1)) for i in range(300, 340)]
    requests = [
        *(("PUT", path, json_head, content) for path, content in items * 2),
        *(("DELETE", f"/api/items/{i}", HOST, b"") for i in range(40)),
        *(("POST", "/api/labels", json_head, body(ids=[i], labels=[3])) for i in range(100, 140)),
        *(
            ("POST", "/api/items", json_head, body(ids=[i], vectors=X[i : i + 1].tolist()))
            for i in range(400, 440)
        ),
    ]
    with Collection.open(make_digits(250)) as collection:
        write_each, batches = collection.write_each, []

        def counted(writes):
            batches.append(len(writes))
            return write_each(writes)

        monkeypatch.setattr(collection, "write_each", counted)
        app = create_app(collection)
        answers = [(status, json.loads(text)) for status, _, text in ask_together(app, requests)]
        assert (
            sorted(answers[:80], key=str)
            == [(200, {"created": False})] * 40 + [(201, {"created": True})] * 40
        )
        assert answers[80:120] == [(200, {"deleted": 1})] * 40
        assert answers[120:160] == [(200, {"labelled": 1})] * 40
        assert answers[160:] == [(200, {"added": 1})] * 40
        assert len(collection) == 250 + 40 - 40 + 40
        assert sum(batches) == 200
        assert len(batches) < 10


@pytest.mark.parametrize(
    ("error", "answer", "logged"),
    [
        (UnreachableError("milvus://secret:1 is away"), (503, "unreachable"), "secret"),
        (FileError("/home/secret: corrupt"), (507, "storage"), "secret"),
        (OSError("/home/secret: no space"), (507, "storage"), "secret"),
        (InUseError("/home/secret: in use"), (409, "in_use"), "secret"),
        (RuntimeError("secret"), (500, "internal"), "Traceback"),
    ],
)
def test_faults_have_a_status_and_are_told_to_the_log_alone(
    call, library, monkeypatch, caplog, error, answer, logged
):
    def fail(*_):
        raise error

    monkeypatch.setattr(library, "answer", fail)
    status, headers, content = call("/api/search", {"vectors": QUERIES[:1].tolist()})
    assert refused((status, headers, content)) == answer
    assert b"secret" not in content
    assert logged in caplog.text
    assert headers.get("retry-after") == ("1" if status == 503 else None)


def test_an_empty_collection_says_that_it_is_not_ready(make_digits, ask_app, monkeypatch):
    monkeypatch.setattr("streamhash.service.served.REPORT_SECONDS", 3600)
    with Collection.open(make_digits(0)) as items:
        call = calling(ask_app(create_app(items)))
        assert call("/health")[0] == 200
        assert refused(call("/ready")) == (503, "not_ready")
        found = good(call("/api/search", {"vectors": [[1.0, 2.0]]}))
        assert (found["model"], found["results"]) == (0, [[]])
        body = {"vectors": [[1.0, 2.0]], "radius": 2}
        assert refused(call("/api/search", body)) == (409, "not_ready")
        assert refused(call("/api/encode", {"vectors": [[1.0, 2.0]]})) == (409, "not_ready")
        assert refused(call("/api/refresh", {"wait": True})) == (400, "bad_input")
        assert good(call("/api/status"))["items"] == 0
        assert good(call("/api/items")) == {"total": 0, "items": []}
        body = {"vectors": X[:250].tolist(), "labels": Y[:250].tolist()}
        assert good(call("/api/items", body)) == {"added": 250}
        assert call("/ready")[0] == 200
        body = {"vectors": X[250:450].tolist(), "labels": Y[250:450].tolist()}
        assert good(call("/api/items", body)) == {"added": 200}
        assert good(call("/api/status"))["serving"]["model"] == 0  # the report from before
        assert good(call("/api/refresh", {"wait": True})) == {"running": False, "changed": True}
        assert good(call("/api/status"))["serving"]["model"] == 2  # a new one


def test_ids_may_be_strings_with_anything_in_them(make_digits, ask_app):
    with Collection.open(make_digits(250, strings=True)) as items:
        call = calling(ask_app(create_app(items)))
        body = {"ids": ["../../etc/passwd", "a\x00é", "7"], "vectors": X[300:303].tolist()}
        assert good(call("/api/items", body)) == {"added": 3}
        assert good(call("/api/items/7"))["id"] == "7"
        assert good(call("/api/items/a%2F7"))["id"] == "a/7"
        assert good(call("/api/items/..%2F..%2Fetc%2Fpasswd"))["vector"] == X[300].tolist()
        assert call("/api/items/a%2F7/image")[0] == 200
        found = good(call("/api/search", {"ids": ["a/7"], "k": 1000}))
        assert len(found["results"][0]) == 252


def test_one_item_is_put_changed_and_deleted_by_its_address(make_digits, ask_app):
    with Collection.open(make_digits(250)) as items:
        ask = ask_app(create_app(items))

        def send(method, path, body=None):
            content = b"" if body is None else json.dumps(body).encode()
            kind = {} if body is None else {"Content-Type": "application/json"}
            status, _, answered = ask(method, path, {**HOST, **kind}, content)
            return status, json.loads(answered)

        whole = {"vector": X[900].tolist(), "label": 3, "metadata": {"title": "a", "price": 2}}
        assert send("PUT", "/api/items/900", whole) == (201, {"created": True})
        assert items.get([900])[0].metadata == {"title": "a", "price": 2}
        # What is not said stays; a field that is null goes, others are set.
        status, item = send(
            "PATCH", "/api/items/900", {"metadata": {"price": None, "new": {"a": 1}}}
        )
        assert (status, item["label"], item["vector"]) == (200, 3, X[900].tolist())
        assert item["metadata"] == {"title": "a", "new": {"a": 1}}
        assert send("PATCH", "/api/items/900", {"label": 5})[1]["metadata"] == item["metadata"]
        status, item = send("PATCH", "/api/items/900", {"vector": X[901].tolist()})
        assert (item["label"], item["vector"]) == (5, X[901].tolist())
        assert item["metadata"] == {"title": "a", "new": {"a": 1}}
        assert send("PATCH", "/api/items/900", {"label": None, "metadata": None})[0] == 200
        assert items.get([900])[0][2:4] == (None, None)
        assert send("PUT", "/api/items/900", {"vector": X[902].tolist()}) == (
            200,
            {"created": False},
        )
        assert items.get([900])[0].vector.tolist() == X[902].tolist()
        assert send("DELETE", "/api/collections/digits/items/900") == (200, {"deleted": 1})
        for method, body in (("DELETE", None), ("PATCH", {"label": 1}), ("GET", None)):
            assert send(method, "/api/items/900", body)[0] == 404
        for body, status in (
            ({"vector": [1.0]}, 400),
            ({"vector": "text"}, 422),
            ({"vector": [[1.0]]}, 422),
            ({"label": 1}, 422),
            ({**whole, "id": 3}, 422),
            ({**whole, "metadata": [1]}, 422),
        ):
            assert send("PUT", "/api/items/7", body)[0] == status
        assert items.get([7])[0].vector.tolist() == X[7].tolist()


def test_the_read_token_changes_no_item_by_any_method(make_digits, ask_app):
    read, write = "a-token-that-reads", "a-token-that-writes"
    with Collection.open(make_digits(250, strings=True)) as items:
        ask = ask_app(create_app(items, tokens=Tokens(read, write)))
        headers = {**HOST, "Authorization": f"Bearer {read}", "Content-Type": "application/json"}
        body = json.dumps({"vector": X[0].tolist()}).encode()
        for name in ("get", "a/1", "search"):  # some are addresses that only read, by POST
            for method in ("PUT", "PATCH", "DELETE"):
                assert ask(method, f"/api/items/{name}", headers, body)[0] == 403
        assert len(items) == 250


def test_requests_have_ids_and_lines_in_the_log_without_what_they_say(call, caplog):
    caplog.set_level("INFO", "streamhash.service.access")
    status, headers, _ = call("/api/search", {"ids": [3], "k": 1}, **{"X-Request-Id": "mine-7"})
    assert (status, headers["x-request-id"]) == (200, "mine-7")
    first, second = (call("/api/items?limit=1")[1]["x-request-id"] for _ in range(2))
    assert first != second
    # One that could write lines of its own is not taken.
    assert call("/api/status", {}, **{"X-Request-Id": "a\nb"})[1]["x-request-id"] != "a\nb"
    call("/api/items/a%0Ab?where=secret")
    lines = [record.getMessage() for record in caplog.records]
    assert re.fullmatch(r"POST /api/search 200 [0-9.]+ ms", lines[0])
    assert re.fullmatch(r"GET /api/items/a\\nb 40[04] [0-9.]+ ms", lines[-1])
    assert "secret" not in caplog.text
