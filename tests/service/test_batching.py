"""Searches in batches: answers as if each came alone, and no more of them than may wait."""

import asyncio
import threading

import numpy as np
import pytest
from sklearn.datasets import load_digits
from starlette.exceptions import HTTPException

from streamhash.live.search import PLAIN, SearchOptions
from streamhash.service.batching import SearchBatcher
from streamhash.threads import using_threads

X, _ = load_digits(return_X_y=True)
ROWS = X[:40].astype(np.float32)


class Held:
    """A collection whose searches wait until they may go on."""

    def __init__(self, collection):
        self.collection, self.go_on, self.batches = collection, threading.Event(), []

    def answer(self, rows, k, options):
        self.go_on.wait()
        self.batches.append(len(rows))
        return self.collection.answer(rows, k, options)

    def metadata(self, keys):
        return self.collection.metadata(keys)


def test_what_waits_is_the_next_batch_and_has_the_answers_it_would_have_alone(library):
    held = Held(library)

    async def search_many():
        batcher = SearchBatcher(held, 100)
        calls = [batcher.search(ROWS[i : i + 2], 1 + i, metadata=i % 2 == 0) for i in range(20)]
        tasks = [asyncio.create_task(call) for call in calls]
        await asyncio.sleep(0)
        held.go_on.set()
        found = await asyncio.gather(*tasks)
        batcher.close()
        assert (batcher.n_batches, batcher.n_queries) == (2, 40)
        return found

    with using_threads(1):
        found = asyncio.run(search_many())
    assert held.batches == [2, 38]
    for i, each in enumerate(found):
        alone = library.answer(ROWS[i : i + 2], 1 + i)
        assert np.array_equal(each.answer.distances, alone.distances)
        assert np.array_equal(each.answer.ids(), alone.ids())
        rows = [hit["metadata"] for hit in next(each.results())]
        assert rows == [
            {"image": {"width": 8, "height": 8}, "row": hit} if i % 2 == 0 else None
            for hit in alone.ids()[0].tolist()
        ]


def test_only_searches_of_equal_options_are_one(library):
    held = Held(library)
    rescored = SearchOptions(rescore=2)

    async def search_many():
        batcher = SearchBatcher(held, 100)
        asked = [(PLAIN, 1), (PLAIN, 2), (PLAIN, 3), (rescored, 1), (rescored, 1), (rescored, 2)]
        calls = [batcher.search(ROWS[:1], k, options, metadata=False) for options, k in asked]
        tasks = [asyncio.create_task(call) for call in calls]
        await asyncio.sleep(0)
        held.go_on.set()
        await asyncio.gather(*tasks)
        batcher.close()

    with using_threads(1):
        asyncio.run(search_many())
    # What is rescored depends on k, so its answers would depend on its company.
    assert held.batches == [1, 2, 2, 1]


def test_searches_beyond_what_may_wait_are_refused_and_then_it_recovers(library):
    held = Held(library)

    async def search_while_threads_are_busy():
        batcher = SearchBatcher(held, 1)
        # Two are given to the threads, one more may wait, the next is too many.
        calls = [batcher.search(ROWS[:1], 1, metadata=True) for _ in range(4)]
        tasks = [asyncio.create_task(call) for call in calls]
        with pytest.raises(HTTPException, match="503") as refused:
            await tasks[-1]
        held.go_on.set()
        found = await asyncio.gather(*tasks[:-1])
        found.append(await batcher.search(ROWS[:1], 1, metadata=True))
        batcher.close()
        return refused.value, found

    with using_threads(2):
        error, found = asyncio.run(search_while_threads_are_busy())
    assert error.status_code == 503
    assert [each.answer.ids().tolist() for each in found] == [[[0]]] * 4


def test_an_error_reaches_all_of_a_batch_and_the_next_goes_on(library):
    held = Held(library)
    held.go_on.set()

    async def fail_and_go_on():
        batcher = SearchBatcher(held, 100)
        wrong = np.zeros((1, 3), np.float32)
        calls = [batcher.search(wrong, 1, metadata=False) for _ in range(3)]
        errors = await asyncio.gather(*calls, return_exceptions=True)
        found = await batcher.search(ROWS[:1], 1, metadata=False)
        batcher.close()
        return errors, found

    errors, found = asyncio.run(fail_and_go_on())
    assert all(isinstance(error, ValueError) for error in errors)
    assert found.answer.ids().tolist() == [[0]]
