"""What no collection can hold or answer is refused with a clear error, by whatever way it comes."""

import io
import json

import numpy as np
import pytest

from streamhash import LSH, InputError
from streamhash.errors import shown
from streamhash.live import Collection, add_from
from streamhash.service import create_app
from streamhash.storable import MetadataTexts

X = np.random.default_rng(0).standard_normal((300, 4))
HUGE, DIGITS, HALF, LONG = 10**30, 10**5000, "\ud800", "a" * 1001
NESTED = {}
for _ in range(946):
    NESTED = {"a": NESTED}
METADATA = {
    "half of a surrogate pair": {"a": HALF},
    "half of one as a name": {HALF: 1},
    "too many levels": NESTED,
    "a huge number": {"a": [HUGE]},
    "a number of many digits": {"a": DIGITS},
    "not a number": {"a": float("nan")},
    "an endless number": {"a": float("inf")},
    "too many bytes": {"a": "x" * 2**20},
    "no dict": ["a"],
}


@pytest.fixture
def items(tmp_path):
    with Collection.create(tmp_path / "items", LSH(8, random_state=0)) as items:
        items.add(range(300), X)
        yield items
        assert len(items) == 300


@pytest.mark.parametrize("name", METADATA)
def test_one_rule_for_metadata_whichever_way_they_come(items, ask_app, name):
    value = METADATA[name]
    with pytest.raises(InputError, match=r"Collection.add: metadata .*; pass dicts of plain"):
        items.add([900], X[:1], metadata=[value])
    if name == "a number of many digits":  # which Python does not write
        return
    line = json.dumps({"id": 900, "vector": X[0].tolist(), "metadata": value})
    with pytest.raises(InputError):
        add_from(items, io.StringIO(line), format="jsonl")
    ask = ask_app(create_app(items))
    body = json.dumps({"ids": [900], "vectors": [X[0].tolist()], "metadata": [value]}).encode()
    head = {"ids": [900], "metadata": [value], "shape": [1, 4]}
    text = json.dumps(head).encode()
    raw = len(text).to_bytes(4, "little") + text + X[:1].astype("f4").tobytes()
    for content, kind in ((body, "application/json"), (raw, "application/octet-stream")):
        headers = {"Host": "localhost", "Content-Type": kind}
        status, _, answer = ask("POST", "/api/items", headers, content)
        assert (status, json.loads(answer)["error"]["code"]) == (422, "invalid")


def test_what_0_1_0_has_stored_is_answered(tmp_path, ask_app):
    deep = json.dumps(NESTED)
    with Collection.create(tmp_path / "items", LSH(8, random_state=0)) as items:
        texts = MetadataTexts([deep, r'{"a": "\ud800"}', f'{{"a": {HUGE}}}', *[None] * 297])
        items.add(range(300), X, metadata=texts)
        ask, headers = ask_app(create_app(items)), {"Host": "localhost"}
        status, _, answer = ask("GET", "/api/items", headers)
        assert status == 200
        assert json.loads(answer)["items"][1]["metadata"] == {"a": HALF}
        assert json.loads(ask("GET", "/api/items/0", headers)[2])["metadata"] in (NESTED, None)
        body = json.dumps({"ids": [5], "k": 299}).encode()
        typed = {**headers, "Content-Type": "application/json"}
        assert ask("POST", "/api/search", typed, body)[0] == 200
        items.export(tmp_path / "items.parquet")


NUMBERS = [HUGE, DIGITS, -DIGITS, 2**63, -1]
CALLS = {
    "get": lambda items, each: items.get([each]),
    "delete": lambda items, each: items.delete([each]),
    "label": lambda items, each: items.label([each], [1]),
    "labels": lambda items, each: items.labels([each]),
    "add": lambda items, each: items.add([each], X[:1]),
    "vectors_of": lambda items, each: items.vectors_of([each]),
    "model": lambda items, each: items.model(each),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("number", NUMBERS, ids=shown)
def test_huge_ids_are_refused(items, call, number):
    with pytest.raises(InputError):
        CALLS[call](items, number)
    assert number not in items


@pytest.mark.parametrize("label", [HUGE, DIGITS, -DIGITS, 1e300, 2**63, HALF, LONG], ids=shown)
def test_labels_that_cannot_be_answered_are_refused(items, label):
    for call in (lambda: items.add([900], X[:1], [label]), lambda: items.label([1], [label])):
        with pytest.raises(InputError, match="y holds a"):
            call()


@pytest.mark.parametrize("name", [HALF, LONG], ids=shown)
def test_ids_that_cannot_be_answered_are_refused(tmp_path, name):
    with Collection.create(tmp_path / "items", LSH(8, random_state=0)) as items:
        with pytest.raises(InputError, match="ids hold a string"):
            items.add(["a", name], X[:2])
        assert len(items) == 0
        with pytest.raises(InputError, match="is not in this collection"):
            items.get([name])


@pytest.mark.parametrize("k", [10**9, 2**31, 2**63, HUGE, DIGITS], ids=shown)
def test_more_neighbours_than_memory_holds_are_refused(items, k):
    with pytest.raises(InputError, match=r"pass a smaller k, or fewer queries at a time"):
        items.search(X[:2], k)
    assert items.search(X[:2], 1000)[0].shape == (2, 1000)


@pytest.mark.parametrize("k", [0, -1, -DIGITS, 1.5, True, "1"], ids=shown)
def test_what_is_no_number_of_neighbours_is_refused(items, k):
    with pytest.raises(InputError, match="must be a whole number from 1 up"):
        items.search(X[:2], k)
