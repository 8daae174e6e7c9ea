"""The client: what it needs, and what it says when nobody answers."""

import subprocess
import sys

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
        items.add([2, 3], rows[2:], [["oil", "gold"], {"ship"}])
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
