"""Several collections in one service: each by its name, some created and dropped meanwhile."""

import json
import threading
from contextlib import ExitStack

import numpy as np
import pytest
from sklearn.datasets import load_digits

from streamhash import SDOH, InputError
from streamhash.live import Collection
from streamhash.service import Tokens, create_app, serve

X, Y = load_digits(return_X_y=True)
HOST = {"Host": "localhost"}
READ, WRITE = "read-token-of-the-tests", "write-token-of-the-tests"


def fill(path, n, *, columns=64, strings=False):
    with Collection.create(path, SDOH(16, random_state=0), refresh="manual") as items:
        ids = [f"a{i}" for i in range(n)] if strings else range(n)
        items.add(ids, X[:n, :columns], Y[:n])


@pytest.fixture
def folder(tmp_path):
    """A folder with two collections, and something that is none."""
    fill(tmp_path / "shop", 300)
    fill(tmp_path / "news", 250, columns=40, strings=True)
    (tmp_path / "notes").mkdir()
    return tmp_path


@pytest.fixture
def ask(folder, ask_app):
    """Ask a service of the folder: method, path and body; return status and what is said."""
    with ExitStack() as opened:
        paths = {name: folder / name for name in ("news", "shop")}
        collections = {
            name: opened.enter_context(Collection.open(path, background=True))
            for name, path in paths.items()
        }
        yield asking(ask_app(create_app(collections, folder=folder)))


def asking(send):
    def ask(method, path, body=None, **headers):
        content = b"" if body is None else json.dumps(body).encode()
        kind = {} if body is None else {"Content-Type": "application/json"}
        status, _, answered = send(method, path, {**HOST, **kind, **headers}, content)
        return status, json.loads(answered)

    return ask


def good(answer):
    status, said = answer
    assert status < 300, said
    return said


def test_each_is_searched_by_its_name(ask, folder):
    for name, columns in (("shop", 64), ("news", 40)):
        query = X[500:501, :columns]
        body = {"vectors": query.tolist(), "k": 5}
        found = good(ask("POST", f"/api/collections/{name}/search", body))
        with Collection.open(folder / name, read_only=True) as items:
            assert [hit["id"] for hit in found["results"][0]] == items.search(query, 5)[1][
                0
            ].tolist()
        assert good(ask("GET", f"/api/collections/{name}/status"))["name"] == name
    assert good(ask("GET", "/api/collections/news/items/a7"))["id"] == "a7"
    assert good(ask("GET", "/api/collections/news/items?limit=2"))["total"] == 250
    assert good(ask("GET", "/api/collections/shop/models"))[0]["number"] == 1
    body = {"vectors": X[400:402].tolist(), "labels": [1, 2]}
    assert good(ask("POST", "/api/collections/shop/items", body)) == {"added": 2}
    assert good(ask("GET", "/api/collections/shop"))["items"] == 302
    assert good(ask("GET", "/api/collections/news"))["items"] == 250


def test_they_are_listed_with_size_model_and_quality(ask):
    listed = good(ask("GET", "/api/collections"))
    assert listed["can_create"] is True
    news, shop = listed["collections"]
    assert (news["name"], news["items"], news["features"]) == ("news", 250, 40)
    wanted = {"method": "SDOH", "bits": 16, "model": 1, "writable": True}
    assert {name: shop[name] for name in wanted} == wanted
    assert shop["precision"] is None or 0 <= shop["precision"] <= 1


def test_the_old_addresses_are_those_of_the_only_collection(ask, folder, ask_app):
    status, said = ask("POST", "/api/search", {"ids": [3], "k": 2})
    assert status == 404
    assert "this service has 2 collections; name one" in said["error"]["message"]
    assert ask("GET", "/api/status")[0] == 404
    with Collection.open(folder / "shop", read_only=True) as items:
        single = asking(ask_app(create_app(items)))
        body = {"ids": [3], "k": 2}
        found = good(single("POST", "/api/search", body))
        assert found == good(single("POST", "/api/collections/shop/search", body))
        assert good(single("GET", "/api/status"))["name"] == "shop"
        assert "/api/search" in good(single("GET", "/openapi.json"))["paths"]
    paths = good(ask("GET", "/openapi.json"))["paths"]
    assert "/api/search" not in paths
    search = paths["/api/collections/{name}/search"]["post"]
    assert search["parameters"][0]["name"] == "name"


def test_a_collection_is_created_filled_and_dropped(ask, folder):
    body = {"name": "digits.2", "method": "hcoh", "n_bits": 8, "refresh": 100}
    made = good(ask("POST", "/api/collections", body))
    assert (made["name"], made["method"], made["bits"], made["items"]) == ("digits.2", "HCOH", 8, 0)
    items = {"vectors": X[:300].tolist(), "labels": Y[:300].tolist()}
    assert good(ask("POST", "/api/collections/digits.2/items", items)) == {"added": 300}
    found = good(ask("POST", "/api/collections/digits.2/search", {"ids": [5], "k": 3}))
    assert len(found["results"][0]) == 3
    assert [each["name"] for each in good(ask("GET", "/api/collections"))["collections"]] == [
        "news",
        "shop",
        "digits.2",
    ]
    for name in ("digits.2", "shop"):
        assert good(ask("DELETE", f"/api/collections/{name}")) == {"dropped": name}
        assert not (folder / name).exists()
        assert ask("POST", f"/api/collections/{name}/search", {"ids": [5]})[0] == 404
        assert ask("DELETE", f"/api/collections/{name}")[0] == 404
    assert [*folder.glob(".*")] == []
    # One is left, and is the only one.
    assert good(ask("GET", "/api/status"))["name"] == "news"
    good(ask("POST", "/api/collections", {"name": "shop"}))  # the name is free again


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"name": "shop"}, 409, "is there already"),
        ({"name": "notes"}, 409, "is there already"),
        ({"name": "../elsewhere"}, 422, "name"),
        ({"name": ".hidden"}, 422, "name"),
        ({"name": "a/b"}, 422, "name"),
        ({"name": "new", "method": "os:system"}, 400, "there is no method 'os:system'"),
        ({"name": "new", "n_bits": 0}, 422, "n_bits"),
        ({"name": "new", "parameters": {"bits": 8}}, 400, "has no parameter 'bits'"),
        ({"name": "new", "parameters": {"batch_size": -1}}, 400, "batch_size"),
        ({"name": "new", "refresh": "often"}, 400, "refresh"),
        ({}, 422, "name"),
    ],
)
def test_what_cannot_be_created_is_told_and_nothing_is_left(ask, folder, body, status, words):
    before = sorted(folder.iterdir())
    answered, said = ask("POST", "/api/collections", body)
    assert answered == status
    assert words in said["error"]["message"]
    assert sorted(folder.iterdir()) == before
    assert len(good(ask("GET", "/api/collections"))["collections"]) == 2


def test_a_fixed_list_takes_no_others(folder, ask_app):
    with Collection.open(folder / "shop") as items:
        ask = asking(ask_app(create_app(items)))
        for answer in (
            ask("POST", "/api/collections", {"name": "new"}),
            ask("DELETE", "/api/collections/shop"),
        ):
            assert answer[0] == 403
            assert "streamhash serve FOLDER" in answer[1]["error"]["message"]
        assert good(ask("GET", "/api/collections"))["can_create"] is False
    assert (folder / "shop").is_dir()


def test_creating_and_dropping_need_the_write_token(folder, ask_app):
    with Collection.open(folder / "shop") as items:
        app = create_app({"shop": items}, folder=folder, tokens=Tokens(READ, WRITE))
        ask = asking(ask_app(app))
        reads, writes = ({"Authorization": f"Bearer {token}"} for token in (READ, WRITE))
        assert ask("GET", "/api/collections")[0] == 401
        assert good(ask("GET", "/api/collections", **reads))
        body = {"ids": [3], "k": 2}
        assert good(ask("POST", "/api/collections/shop/search", body, **reads))
        assert good(ask("POST", "/api/collections/shop/items/get", {"ids": [3]}, **reads))
        for method, path, body in (
            ("POST", "/api/collections", {"name": "new"}),
            ("DELETE", "/api/collections/shop", None),
            ("POST", "/api/collections/shop/items/delete", {"ids": [3]}),
            ("POST", "/api/collections/search/x/search", {"ids": [3]}),
        ):
            assert ask(method, path, body, **reads)[0] == 403
        assert good(ask("POST", "/api/collections", {"name": "new"}, **writes))
        assert good(ask("DELETE", "/api/collections/new", **writes))


@pytest.mark.slow
def test_a_folder_and_single_collections_are_served(start_service, folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other") / "digits"
    fill(other, 200)
    service = start_service("serve", folder, other)
    ask = http(service.port)
    listed = ask("GET", "/api/collections")[1]
    assert [each["name"] for each in listed["collections"]] == ["news", "shop", "digits"]
    assert ask("POST", "/api/collections", {"name": "new", "method": "lsh"})[0] == 201
    # While it is searched by many, it is dropped: each is answered, or told that it is gone.
    rows = np.eye(64).tolist()
    assert ask("POST", "/api/collections/new/items", {"vectors": rows})[0] == 200
    assert ask("POST", "/api/collections/new/refresh", {"wait": True})[0] == 200
    seen = []

    def search():
        while not seen or seen[-1][0] == 200:
            seen.append(ask("POST", "/api/collections/new/search", {"vectors": rows[:1]}))

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    while len(seen) < 20:
        pass
    assert ask("DELETE", "/api/collections/new")[0] == 200
    for thread in threads:
        thread.join(timeout=20)
    assert {status for status, _ in seen} == {200, 404}
    # What is not in the folder is not deleted.
    assert ask("DELETE", "/api/collections/digits")[0] == 403
    assert other.is_dir()
    code, _, errors = service.stop()
    assert code == 0
    assert errors.endswith(f"serve: {folder / 'notes'} is no collection, and is passed over.")


def http(port):
    from http.client import HTTPConnection

    def ask(method, path, body=None):
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        content = None if body is None else json.dumps(body).encode()
        connection.request(method, path, content, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        said = json.loads(answer.read())
        connection.close()
        return answer.status, said

    return ask


def test_two_of_one_name_and_two_folders_are_refused(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    fill(other / "shop", 10)
    with pytest.raises(InputError, match="two collections are called 'shop'"):
        serve(folder / "shop", other / "shop", port=0)
    with pytest.raises(InputError, match="are both folders of collections"):
        serve(folder, other, port=0)
