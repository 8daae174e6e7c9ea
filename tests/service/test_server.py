"""The service as a process of its own, and what programs see of it by the client."""

import json
import platform
import re
import socket
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

from data import need_data
from streamhash import Client, InputError, ServiceError
from streamhash.live import Collection

pytestmark = pytest.mark.slow

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
def url(start_service, library):
    """A service that tests only read from."""
    return start_service("serve", library.status()["address"], "--read-only").url


@pytest.fixture(scope="module")
def own(start_service, make_digits):
    """A service that tests write to; each must do with what the others have left."""
    path = make_digits(300)
    service = start_service("serve", path)
    service.path = path
    return service


# ------------------------------------------------------------------------------------------ reading


def test_the_client_finds_what_the_library_finds(url, library):
    distances, ids = library.search(QUERIES, 7)
    with Client(url) as client:
        far, near = client.search(QUERIES, 7)
        assert np.array_equal(far, distances)
        assert np.array_equal(near, ids)
        assert far.dtype == np.int32
        assert np.array_equal(client.encode(QUERIES), library.encode(QUERIES))
        assert client.history().refreshes == library.history().refreshes
        assert client.models() == library.models()
        assert client.status()["bits"] == 32
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
    assert float(counts['streamhash_search_queries_total{collection="digits"}']) >= 200
    assert float(counts['streamhash_search_batches_total{collection="digits"}']) >= 1
    assert float(counts['streamhash_requests_total{route="/api/search",status="200"}']) >= 200


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


def test_the_client_judges_answers_and_changes_metadata(own):
    with Client(own.url) as client:
        before = client.status()["feedback"]["stored"]
        assert client.feedback(X[950], 1) == 1
        assert client.feedback(X[950:952], [2, 3], [True, False]) == 2
        assert client.feedback(X[950].tolist(), [4, 5], good=np.array([False, True])) == 2
        assert client.feedback(query_id=6, id=[7, 8], good=False) == 2
        assert client.feedback(query_id=np.array([9, 10]), id=np.array([11, 12])) == 2
        assert client.status()["feedback"]["stored"] == before + 9
        with pytest.raises(ServiceError, match="id 99999 is not in") as missing:
            client.feedback(X[950], [1, 99999])
        assert missing.value.status == 404
        with pytest.raises(InputError, match=r"Client\.feedback: pass either query"):
            client.feedback(id=1)
        client.set_metadata([7, 8], [{"seen": True}, None])
        assert [item.metadata for item in client.get([7, 8])] == [{"seen": True}, None]
        with pytest.raises(ServiceError, match="99999"):
            client.set_metadata([99999], [None])
        assert client.status()["feedback"]["stored"] == before + 9
    with Collection.open(own.path, read_only=True) as items:
        judged = items.judgements()[-9:]
        assert [(each.id, each.good, each.query_id) for each in judged[-4:]] == [
            (7, False, 6),
            (8, False, 6),
            (11, True, 9),
            (12, True, 10),
        ]
        assert np.array_equal(judged[0].query, X[950])


def received(connection, end):
    content = b""
    while not content.endswith(end):
        part = connection.recv(2**16)
        assert part, content
        content += part
    return content


def test_heads_come_with_or_without_a_body_and_bodies_that_wait_are_asked_for(own):
    """An answer's head is sent with its body; some answers have none, and some come before."""
    body = json.dumps({"vectors": QUERIES[:1].tolist(), "k": 1}).encode()
    head = b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", own.port), timeout=30) as connection:
        connection.sendall(b"HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert received(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 405 ")
        waits = b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(body)
        connection.sendall(head + waits)
        assert received(connection, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        answer = received(connection, b"]]}")
        assert answer.startswith(b"HTTP/1.1 200 ")
        # Several at a time, each as it would be alone.
        plain = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        connection.sendall(3 * plain)
        several = b""
        while several.count(b"HTTP/1.1 200 ") < 3 or not several.endswith(b"]]}"):
            several += connection.recv(2**16)
    assert several.count(answer.partition(b"\r\n\r\n")[2]) == 3


def test_ids_may_be_strings_with_anything_in_them(start_service, make_digits):
    service = start_service("serve", make_digits(250, strings=True))
    with Client(service.url) as client:
        distances, ids = client.search(X[3:4], 2)
        assert ids[0, 0] == "a/3"
        assert distances[0, 0] == 0
        assert ids.dtype == object
        assert client.add(["../../etc/passwd", "a\x00é"], X[300:302]) == 2
        assert client.get(["../../etc/passwd"])[0].id == "../../etc/passwd"
    service.stop()


def test_answers_name_the_model_that_made_them_while_it_changes(own):
    answers, stop = [], threading.Event()

    def search():
        with Client(own.url) as client:
            while not stop.is_set():
                body = {"vectors": QUERIES[:3].tolist(), "k": 3, "metadata": False}
                answers.append(client._json("/search", body))

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


def test_a_reader_sees_what_another_process_stores(url, library):
    with Collection.open(library.status()["address"]) as writer:
        writer.add([777], X[777:778], [4])
        assert ask(url, "/api/items/777")["label"] == 4
        status, _, content = call(url, "/api/items/delete", {"ids": [777]})
        assert (status, json.loads(content)["error"]["code"]) == (403, "read_only")
        writer.delete([777])
        assert call(url, "/api/items/777")[0] == 404


def test_the_demo_gets_better_while_one_watches(start_service, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMHASH_DATA", str(tmp_path))  # where no news are
    service = start_service("demo", "--serve", "--out", tmp_path / "demo")
    digits, tail = (f"/api/collections/{name}" for name in ("digits", "long-tail"))
    names = [each["name"] for each in ask(service.url, "/api/collections")["collections"]]
    assert names == ["digits", "long-tail"]
    queries = {"ids": [*range(60)], "k": 10}

    def precision():
        found = ask(service.url, f"{digits}/search", queries)
        own = ask(service.url, f"{digits}/items/get", {"ids": queries["ids"]})["items"]
        wanted = [item["metadata"]["digit"] for item in own]
        right = [
            hit["metadata"]["digit"] == digit
            for digit, row in zip(wanted, found["results"], strict=True)
            for hit in row
        ]
        return np.mean(right)

    with urllib.request.urlopen(f"{service.url}{digits}/items/5/image", timeout=10) as image:
        assert image.headers["content-type"] == "image/png"
    before, deadline = precision(), time.monotonic() + 60
    while precision() < before + 0.1:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    # What is shown is said, and it is as it is said.
    status = ask(service.url, f"{digits}/status")
    assert "each once, in random order" in status["display"]["about"]
    listed = ask(service.url, f"{digits}/items?limit=60")["items"]
    labelled = [item for item in listed if item["label"] is not None]
    assert 10 < len(labelled) < 40
    assert all(item["label"] == item["metadata"]["digit"] for item in labelled)
    assert ask(service.url, f"{tail}/status")["display"]["about"].startswith("Synthetic")
    items = ask(service.url, f"{tail}/items?limit=1000")["items"]
    wrong = np.mean([item["label"] != item["metadata"]["true_class"] for item in items])
    assert 0.02 < wrong < 0.08
    assert len(ask(service.url, f"{tail}/labels")["labels"]) > 30
    code, _, errors = service.stop()
    assert code == 0
    assert [line.partition(":")[0] for line in errors.splitlines()] == ["digits", "long-tail"]


def test_the_digits_of_the_demo_come_once_and_in_no_order_of_their_classes():
    from streamhash.service.demo import FIRST_DIGITS, make_demos

    digits = next(demo for demo in [*make_demos(3)] if demo.name in ("digits", "news"))
    pieces = [*digits.pieces]
    ids = [name for piece in pieces for name in piece.ids]
    assert len({*ids}) == len(ids)
    if digits.name == "digits":
        assert len(ids) == 1797
        first = [each["digit"] for each in pieces[0].metadata]
        assert len(first) == FIRST_DIGITS
        assert first != sorted(first)
        assert len({*first}) == 10


def test_the_demo_shows_news_where_their_file_is(start_service, tmp_path):
    need_data("reuters")
    service = start_service("demo", "--serve", "--out", tmp_path / "news")
    news = "/api/collections/news"
    first = ask(service.url, f"{news}/items?limit=1")["items"][0]
    facts = {"title": "BAHIA COCOA REVIEW", "place": "el-salvador", "time": "1987-02-26T15:01:01"}
    assert first == {"id": 1, "label": ["cocoa"], "metadata": facts}
    body = {"ids": [1], "where": "time >= date '1987-02-27' and 'coffee' in labels"}
    found = ask(service.url, f"{news}/search", body)["results"][0]
    assert found
    assert all("coffee" in hit["label"] for hit in found)
    deadline = time.monotonic() + 30
    while ask(service.url, f"{news}/items?limit=1")["total"] < 540:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    code, _, errors = service.stop()
    assert code == 0
    assert "Reuters-21578: news of 1987" in errors


FREED = """
import numpy as np
from streamhash.service.server import return_freed_memory

def megabytes():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20

np.ones(3 * 2**20)  # 24 MB, freed: from now on glibc keeps pieces of up to that size to itself
if {asked}:
    return_freed_memory()
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


COLLECTED = """
import gc, os, signal, sys
from streamhash.service import serve

def started(address, n):
    print(gc.get_freeze_count() > 10 * len(gc.get_objects()))
    os.kill(os.getpid(), signal.SIGTERM)

serve(sys.argv[1], port=0, started=started)
print(gc.get_freeze_count())
"""


def test_a_service_does_not_stop_to_look_for_garbage_among_modules(make_digits):
    command = [sys.executable, "-c", COLLECTED, str(make_digits(50))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["True", "0"]


def test_a_log_of_requests_as_json_or_text_has_no_token_and_no_vector(start_service, make_digits):
    path, token = make_digits(250), "a-token-that-writes"
    for form in ("json", "text"):
        options = ("--log-level", "info", "--log-format", form)
        service = start_service("serve", path, *options, STREAMHASH_WRITE_TOKEN=token)
        headers = {"Authorization": f"Bearer {token}", "X-Request-Id": "mine"}
        body = {"vectors": [[0.123456] * 64], "k": 1}
        assert call(service.url, "/api/search", body, **headers)[0] == 200
        assert call(service.url, f"/api/status?token={token}")[0] == 401
        code, _, said = service.stop()
        assert code == 0
        assert token not in said
        assert "123456" not in said
        lines = said.splitlines()
        if form == "json":
            told = [json.loads(line) for line in lines]
            search = next(each for each in told if each.get("request_id") == "mine")
            wanted = {"level": "info", "method": "POST", "path": "/api/search", "status": 200}
            assert wanted.items() <= search.items()
            assert search["ms"] > 0
            assert any(each.get("status") == 401 for each in told)
        else:
            line = next(line for line in lines if " mine " in line)
            assert re.fullmatch(r"\S+Z INFO    mine POST /api/search 200 [\d.]+ ms", line)
