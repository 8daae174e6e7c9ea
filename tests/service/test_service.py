"""The service: a real process, a real collection, and what programs see of them."""

import io
import json
import platform
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import load_digits

from streamhash.errors import ServiceError
from streamhash.live import Collection
from streamhash.service import Client

X, Y = load_digits(return_X_y=True)
QUERIES = X[600:620]


def call(url, path, body=None, **headers):
    """Return status, headers and content of an answer."""
    if body is not None:
        headers = {"Content-Type": "application/json", **headers}
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url + path, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def ask(url, path, body=None):
    status, _, content = call(url, path, body)
    assert status < 300, content
    return json.loads(content)


@pytest.fixture(scope="module")
def digits(make_digits):
    return make_digits()


@pytest.fixture(scope="module")
def library(digits):
    with Collection.open(digits, read_only=True) as items:
        yield items


@pytest.fixture(scope="module")
def url(start_service, digits):
    """A service that tests only read from."""
    return start_service("serve", digits, "--read-only").url


@pytest.fixture(scope="module")
def own(start_service, make_digits):
    """A service that tests write to; each must do with what the others have left."""
    path = make_digits(300)
    service = start_service("serve", path)
    service.path = path
    return service


# ------------------------------------------------------------------------------------------ reading


def test_searches_find_what_the_library_finds_as_json_and_raw(url, library):
    distances, ids = library.search(QUERIES, 7)
    found = ask(url, "/api/search", {"vectors": QUERIES.tolist(), "k": 7})
    assert [[hit["id"] for hit in row] for row in found["results"]] == ids.tolist()
    assert [[hit["distance"] for hit in row] for row in found["results"]] == distances.tolist()
    assert found["codes"] == [code.tobytes().hex() for code in library.encode(QUERIES)]
    assert found["model"] == library.model_number
    first = found["results"][0][0]
    item = library.get([first["id"]])[0]
    assert (first["label"], first["metadata"]) == (item.label, item.metadata)
    with Client(url) as client:
        far, near = client.search(QUERIES, 7)
        assert np.array_equal(far, distances)
        assert np.array_equal(near, ids)
        assert far.dtype == np.int32
        assert np.array_equal(client.encode(QUERIES), library.encode(QUERIES))
    assert ask(url, "/api/encode", {"vectors": QUERIES.tolist()})["codes"] == found["codes"]


def test_a_search_by_ids_leaves_the_item_itself_out(url, library):
    found = ask(url, "/api/search", {"ids": [5, 7], "k": 20, "metadata": False})
    assert all(len(row) == 20 for row in found["results"])
    for item, row in zip((5, 7), found["results"], strict=True):
        _, ids = library.search(X[item : item + 1], 21)
        assert [hit["id"] for hit in row] == [i for i in ids[0].tolist() if i != item]
        assert row[0]["metadata"] is None


def test_more_neighbours_than_items_end_the_row(url, library):
    found = ask(url, "/api/search", {"vectors": QUERIES[:1].tolist(), "k": 1000})
    assert len(found["results"][0]) == 600
    with Client(url) as client:
        distances, ids = client.search(QUERIES[:1], 1000)
    assert np.array_equal(ids, library.search(QUERIES[:1], 1000)[1])
    assert distances[0, -1] == np.iinfo(np.int32).max


def test_many_at_a_time_get_the_answers_they_would_get_alone(url, library):
    wanted = [library.search(QUERIES[i : i + 1], 1 + i)[1] for i in range(20)]

    with Client(url) as client, ThreadPoolExecutor(16) as pool:

        def one(n):
            return client.search(QUERIES[n % 20][None], 1 + n % 20)[1].tolist()

        assert [*pool.map(one, range(200))] == [wanted[n % 20].tolist() for n in range(200)]
    lines = call(url, "/metrics")[2].decode().splitlines()
    counts = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(counts["streamhash_search_queries_total"]) >= 200
    assert float(counts["streamhash_search_batches_total"]) >= 1
    assert float(counts['streamhash_requests_total{route="/api/search",status="200"}']) >= 200


def test_items_are_listed_shown_and_drawn(url, library):
    page = ask(url, "/api/items?offset=2&limit=3")
    assert page["total"] == 600
    assert page["items"][0] == {"id": 2, "label": int(Y[2]), "metadata": library.get([2])[0][3]}
    assert [item["id"] for item in page["items"]] == [2, 3, 4]
    newest = ask(url, "/api/items?limit=2&newest=true")["items"]
    assert [item["id"] for item in newest] == [599, 598]
    item = ask(url, "/api/items/17")
    assert item["vector"] == X[17].tolist()
    assert item["code"] == library.encode(X[17:18]).tobytes().hex()
    status, headers, content = call(url, "/api/items/17/image")
    assert (status, headers["content-type"]) == (200, "image/png")
    image = pytest.importorskip("PIL.Image").open(io.BytesIO(content))
    grey = np.rint(X[17].reshape(8, 8) / X[17].max() * 255)
    assert np.array_equal(np.asarray(image), grey)


def test_status_history_and_models_are_those_of_the_library(url, library):
    status = ask(url, "/api/status")
    assert status["items"] == 600
    assert status["writable"] is False
    assert status["address"] == "digits"
    assert status["serving"] == json.loads(json.dumps(library.status()["serving"]))
    assert ask(url, "/api/models") == [
        {"number": number, **facts} for number, facts in library.models()
    ]
    with Client(url) as client:
        assert client.history().refreshes == library.history().refreshes
        assert client.models() == library.models()
        assert client.status()["bits"] == 32


def test_methods_are_compared_on_the_same_items(url):
    queries = [*range(0, 100, 5)]
    body = {"queries": queries, "k": 10, "left": {"model": 1}, "right": {"method": "lsh"}}
    found = ask(url, "/api/compare", body)
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
    assert ask(url, "/api/compare", body)["precision"] == {"left": None, "right": None}


def test_the_description_names_no_outside_address(url):
    _, _, content = call(url, "/openapi.json")
    assert b"http://" not in content
    assert b"https://" not in content
    schema = json.loads(content)["components"]["schemas"]["SearchBody"]
    assert schema["properties"]["vectors"]["anyOf"][0]["items"]["maxItems"] == 64
    assert call(url, "/docs")[0] == 404


# ------------------------------------------------------------------------------------------ writing


def test_the_client_has_the_verbs_of_a_collection(own):
    with Client(own.url) as client:
        n = client.status()["items"]
        assert client.add([5000, 5001], X[900:902], [3, None], metadata=[{"a": 1}, None]) == 2
        assert client.add([5001, 5002], X[901:903], existing="skip") == 1
        item = client.get([5000])[0]
        assert np.array_equal(item.vector, X[900])
        assert (item.label, item.metadata) == (3, {"a": 1})
        client.label([5001], [5])
        assert client.get([5001])[0].label == 5
        assert client.add(None, X[910:912], Y[910:912]) == 2
        client.delete([5002, 5003])
        with pytest.raises(ServiceError, match="5002") as missing:
            client.get([5002])
        assert (missing.value.status, missing.value.code) == (404, "not_found")
        with pytest.raises(ServiceError, match="5000") as there:
            client.add([5000], X[:1])
        assert there.value.status == 409
        client.add(None, X[1000:1200], Y[1000:1200])
        before = client.search(QUERIES, 3, model=1)
        assert client.refresh() is True
        assert client.refresh() is False
        assert client.models()[-1][0] > 1
        again = client.search(QUERIES, 3, model=1)  # all items are in the sample
        assert np.array_equal(before[1], again[1])
        assert not np.array_equal(before[0], client.search(QUERIES, 3)[0])
    with Collection.open(own.path, read_only=True) as items:
        assert len(items) == n + 2 + 1 + 2 - 2 + 200


def test_ids_may_be_strings_with_anything_in_them(start_service, make_digits):
    service = start_service("serve", make_digits(250, strings=True))
    with Client(service.url) as client:
        distances, ids = client.search(X[3:4], 2)
        assert ids[0, 0] == "a/3"
        assert distances[0, 0] == 0
        assert ids.dtype == object
        assert client.add(["../../etc/passwd", "a\x00é"], X[300:302]) == 2
        assert client.get(["../../etc/passwd"])[0].id == "../../etc/passwd"
    assert ask(service.url, "/api/items/a%2F7")["id"] == "a/7"
    assert call(service.url, "/api/items/a%2F7/image")[0] == 200
    found = ask(service.url, "/api/search", {"ids": ["a/7"], "k": 1000})
    assert len(found["results"][0]) == 251
    service.stop()


def test_an_empty_collection_says_that_it_is_not_ready(start_service, make_digits):
    url = start_service("serve", make_digits(0)).url
    assert call(url, "/health")[0] == 200
    status, _, content = call(url, "/ready")
    assert (status, json.loads(content)["error"]["code"]) == (503, "not_ready")
    status, _, content = call(url, "/api/search", {"vectors": [[1.0, 2.0]]})
    assert (status, json.loads(content)["error"]["code"]) == (409, "not_ready")
    assert call(url, "/api/refresh", {"wait": True})[0] == 400
    assert ask(url, "/api/status")["items"] == 0
    assert ask(url, "/api/items") == {"total": 0, "items": []}
    assert ask(url, "/api/items", {"vectors": X[:250].tolist(), "labels": Y[:250].tolist()})
    assert call(url, "/ready")[0] == 200


def test_answers_name_the_model_that_made_them_while_it_changes(own):
    answers, stop = [], threading.Event()

    def search():
        with Client(own.url) as client:
            while not stop.is_set():
                body = {"vectors": QUERIES[:3].tolist(), "k": 3, "metadata": False}
                answers.append(client._post("/api/search", body, read=True))

    searching = [threading.Thread(target=search) for _ in range(4)]
    for thread in searching:
        thread.start()
    with Client(own.url) as client:
        for start in range(400, 1000, 200):
            client.add(None, X[start : start + 200], Y[start : start + 200])
            assert client.refresh()
    stop.set()
    for thread in searching:
        thread.join()
    with Collection.open(own.path, read_only=True) as items:
        numbers = [number for number, _ in items.models()]
        codes = {n: items.model(n).transform(QUERIES[:3]) for n in numbers}
    assert len({answer["model"] for answer in answers}) >= 2
    for answer in answers:
        assert answer["codes"] == [code.tobytes().hex() for code in codes[answer["model"]]]


def test_what_was_acknowledged_is_there_after_sigterm(start_service, make_digits):
    path = make_digits(250)
    own = start_service("serve", path)
    acknowledged, failed = [], []

    def add(worker):
        with Client(own.url) as client:
            for batch in range(1000):
                ids = [10_000 * (worker + 1) + 10 * batch + i for i in range(10)]
                try:
                    client.add(ids, X[:10], Y[:10])
                except ServiceError as error:
                    failed.append(error.status)
                    return
                acknowledged.extend(ids)

    workers = [threading.Thread(target=add, args=(n,)) for n in range(3)]
    for thread in workers:
        thread.start()
    while len(acknowledged) < 100:
        time.sleep(0.02)
    code, out, err = own.stop()
    for thread in workers:
        thread.join()
    assert (code, out.strip(), err) == (0, "Stopped.", "")
    assert set(failed) == {0}  # no answer, and never half of one
    with Collection.open(path) as items:  # its lock is free again
        missing = [item for item in acknowledged if item not in items]
    assert not missing


def test_a_reader_sees_what_another_process_stores(url, digits):
    with Collection.open(digits) as writer:
        writer.add([777], X[777:778], [4])
        assert ask(url, "/api/items/777")["label"] == 4
        status, _, content = call(url, "/api/items/delete", {"ids": [777]})
        assert (status, json.loads(content)["error"]["code"]) == (403, "read_only")
        writer.delete([777])
        assert call(url, "/api/items/777")[0] == 404


def test_the_demo_gets_better_while_one_watches(start_service, tmp_path):
    service = start_service("demo", "--serve", "--out", tmp_path / "digits")
    queries = {"ids": [*range(500, 600)], "k": 10}

    def precision():
        found = ask(service.url, "/api/search", queries)
        own = ask(service.url, "/api/items/get", {"ids": queries["ids"]})["items"]
        digits = [item["metadata"]["digit"] for item in own]
        right = [
            hit["metadata"]["digit"] == digit
            for digit, row in zip(digits, found["results"], strict=True)
            for hit in row
        ]
        return np.mean(right)

    with urllib.request.urlopen(service.url + "/api/items/500/image", timeout=10) as image:
        assert image.headers["content-type"] == "image/png"
    before, deadline = precision(), time.monotonic() + 30
    while precision() < before + 0.1:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    code, _, errors = service.stop()
    assert (code, errors) == (0, "")


FREED = """
import numpy as np
from streamhash.service.server import _give_back_memory

def megabytes():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20

np.ones(3 * 2**20)  # 24 MB, freed: from now on glibc keeps pieces of up to that size to itself
if {asked}:
    _give_back_memory()
large, small = [], []
for _ in range(20):
    large.append(np.ones(2**20))
    small.append(bytearray(100_000))  # lies above the large one, unless that has pages of its own
before = megabytes()
del large
print(before - megabytes())
"""


@pytest.mark.skipif(
    not platform.libc_ver()[0].startswith("glibc"), reason="another C library than glibc"
)
@pytest.mark.parametrize("asked", [True, False])
def test_memory_that_is_freed_goes_back_to_the_system(asked):
    command = [sys.executable, "-c", FREED.format(asked=asked)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    given_back = float(done.stdout)
    # Without it most is kept, or the test would show nothing.
    assert given_back > 150 if asked else given_back < 100
