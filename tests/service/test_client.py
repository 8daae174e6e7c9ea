"""The client: what it needs, and what it says when nobody answers."""

import json
import subprocess
import sys
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pyarrow
import pytest

from streamhash import LSH, Client, Collection, InputError, ServiceError

SEARCH = """
import sys
import numpy as np
from streamhash import Client, ServiceError, UnreachableError

with Client({url!r}) as items:
    assert items.search(np.zeros((1, 64)), 3)[1].shape == (1, 3)
    assert items.get([0])[0].vector.shape == (64,)
    assert items.encode(np.zeros((1, 64))).shape == (1, 4)
    labels, probabilities = items.predict(np.zeros((2, 64)), 3)
    assert len(labels) == 2 and probabilities.shape == (2,)
    assert items.history().refreshes and items.status() and items.models()
heavy = {{"sklearn", "scipy", "numba", "pyarrow", "lance", "fastapi", "pandas", "typer"}}
print(heavy & {{name.partition(".")[0] for name in sys.modules}})
"""


@pytest.mark.slow
def test_it_needs_numpy_only(start_service, make_digits):
    url = start_service("serve", make_digits(250)).url
    done = subprocess.run(
        [sys.executable, "-c", SEARCH.format(url=url)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "set()\n", done.stdout + done.stderr


@pytest.mark.slow
def test_several_labels_are_as_those_of_a_collection(start_service, tmp_path):
    Collection.create(tmp_path / "items", LSH(8, random_state=0)).close()
    with Client(start_service("serve", tmp_path / "items").url) as items:
        rows = np.eye(4, 3)
        items.add([0, 1], rows[:2], np.array([[0, 1, 1], [0, 0, 1]]))
        items.add([np.int64(2), 3], rows[2:], [["oil", np.str_("gold")], {"ship"}])
        table = pyarrow.table({"title": ["a", "b"], "price": [1.5, None]})
        lists = pyarrow.array(rows[:2].tolist())
        items.add([8, 9], lists, metadata=table)
        assert items.get([9])[0].metadata == {"title": "b", "price": None}
        np.testing.assert_array_equal(items.get([9])[0].vector, rows[1])
        items.delete([8, 9])
        items.label([0], ["grain"])
        wanted = [("grain",), (2,), ("gold", "oil"), ("ship",)]
        assert [item.label for item in items.get([0, 1, 2, 3])] == wanted
        items.refresh()
        assert sorted(items.search(rows[:1], 4).labels[0], key=wanted.index) == wanted
        found = items.search(rows[:1], 2, where="id > 0", rescore=4, metric="euclidean")
        np.testing.assert_allclose(found.scores, [[1, 2**0.5]], rtol=1e-6)  # the last row is 0
        assert (found.ids.tolist()[0][0], found.model, found.labels[0][0]) == (3, 1, ("ship",))
        with pytest.raises(ServiceError, match="rescore"):
            items.search(rows[:1], 2, rescore=0)


def test_it_says_what_is_wrong_with_an_address_or_a_service_that_is_not_there():
    with pytest.raises(InputError, match="pass http://HOST:PORT"):
        Client("127.0.0.1:8000")
    with Client("http://127.0.0.1:9", timeout=5) as items:
        with pytest.raises(ServiceError, match="see that it runs") as missing:
            items.status()
        assert (missing.value.status, missing.value.code) == (0, "unreachable")
        with pytest.raises(InputError, match="one row an item"):
            items.search([1.0, 2.0])


@pytest.mark.slow
def test_collections_are_listed_created_and_dropped(start_service, tmp_path):
    Collection.create(tmp_path / "shop", LSH(8, random_state=0)).close()
    with Client(start_service("serve", tmp_path).url) as service:
        (shop,) = service.collections()
        assert (shop.name, shop.items, shop.method, shop.bits) == ("shop", 0, "LSH", 8)
        with service.create("news", "lsh", n_bits=16, labels="several") as news:
            assert news.add(["a", "b"], np.eye(2), [["x", "y"], ["y"]]) == 2
            assert news.refresh() is True
            assert news.search(np.eye(2), 1).ids.tolist() == [["a"], ["b"]]
        with service.collection("news") as news:
            assert news.get(["a"])[0].label == ("x", "y")
        assert [each.items for each in service.collections()] == [0, 2]
        with pytest.raises(ServiceError, match="has 2 collections; name one"):
            service.status()
        service.drop("news")
        assert service.status()["name"] == "shop"
        with (
            service.collection("news") as news,
            pytest.raises(ServiceError, match="there is no collection 'news'"),
        ):
            news.status()


class Refusing(BaseHTTPRequestHandler):
    """Refuses the first requests, and then answers."""

    protocol_version = "HTTP/1.1"
    code, left, seen = "overloaded", 2, 0

    def do_POST(self):
        Refusing.seen += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        refuse = Refusing.left > 0
        Refusing.left -= 1
        error = {"error": {"code": Refusing.code, "message": "too much"}}
        said = json.dumps(error if refuse else {"labelled": 1, "items": []}).encode()
        self.send_response(503 if refuse else 200)
        self.send_header("Content-Length", str(len(said)))
        if refuse:
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        pass


@pytest.mark.parametrize(
    ("code", "refused", "verb", "seen"),
    [
        ("overloaded", 2, "label", 3),  # was not done, so it is sent again
        ("overloaded", 9, "label", 3),  # but not for ever
        ("overloaded", 2, "get", 3),
        ("unreachable", 1, "get", 2),
        ("unreachable", 1, "label", 1),  # may have been done
    ],
)
def test_what_is_refused_for_the_moment_is_sent_again(code, refused, verb, seen):
    server = HTTPServer(("127.0.0.1", 0), Refusing)
    Refusing.code, Refusing.left, Refusing.seen = code, refused, 0
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with Client(f"http://127.0.0.1:{server.server_port}", retries=2) as items:
            call = partial(items.label, [1], [2]) if verb == "label" else partial(items.get, [1])
            if seen > refused:
                call()
            else:
                with pytest.raises(ServiceError, match="too much"):
                    call()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert Refusing.seen == seen
