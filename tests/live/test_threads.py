"""A collection that several threads share: searches go on while others add and refresh."""

import threading

import numpy as np
import pytest

from streamhash import SDOH
from streamhash.live import Collection


@pytest.mark.slow
def test_searches_go_on_while_another_thread_adds_and_refreshes(tmp_path):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((2000, 8)).astype(np.float32), random.integers(0, 3, 2000)
    hasher = SDOH(8, batch_size=50, n_features=32, memory=60, random_state=0)
    items = Collection.create(tmp_path / "items", hasher, refresh="manual")
    items.add(range(1000), X[:1000], y[:1000])
    done, errors, searches = threading.Event(), [], 0

    def search():
        nonlocal searches
        try:
            while not done.is_set():
                assert items.search(X[:2], k=3)[1].shape == (2, 3)
                assert items.encode(X[:2]).shape == (2, 1)
                assert items.n_features == 8
                searches += 1
        except BaseException as error:  # noqa: BLE001  raised below
            errors.append(error)

    thread = threading.Thread(target=search)
    thread.start()
    for first in range(1000, 2000, 50):
        items.add(range(first, first + 50), X[first : first + 50], y[first : first + 50])
        items.refresh()
    done.set()
    thread.join()
    items.close()
    assert errors == []
    assert searches > 20


def test_items_are_numbered_on_above_all_that_were_there(tmp_path):
    random = np.random.default_rng(0)
    X = random.standard_normal((4, 8)).astype(np.float32)
    with Collection.create(tmp_path / "items", SDOH(8, random_state=0)) as items:
        items.add(None, X)
        items.add([40], X[:1])
        items.delete([40])
        items.add(None, X[:2])
        assert items.ids == [0, 1, 2, 3, 41, 42]
