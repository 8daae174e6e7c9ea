"""Searches in batches: answers as if each came alone, and no more of them than may wait."""

import asyncio
import json
import threading
from contextlib import suppress

import numpy as np
import pytest
from sklearn.datasets import load_digits
from starlette.exceptions import HTTPException

from streamhash.errors import StreamhashError
from streamhash.live import Addition, Written
from streamhash.live.search import PLAIN, SearchOptions
from streamhash.service import batching
from streamhash.service.answers import write_json
from streamhash.service.batching import SearchBatcher, WriteBatcher
from streamhash.threads import using_threads

X, _ = load_digits(return_X_y=True)
ROWS = X[:40].astype(np.float32)


class Held:
    """A collection whose searches wait until they may go on."""

    searches_wait = True

    def __init__(self, collection):
        self.collection, self.go_on, self.batches = collection, threading.Event(), []
        self.threads = []

    def answer(self, rows, k, options):
        self.go_on.wait()
        self.batches.append(len(rows))
        self.threads.append(threading.current_thread())
        return self.collection.answer(rows, k, options)

    def metadata(self, keys):
        return self.collection.metadata(keys)

    def known_metadata(self, keys):
        return self.collection.known_metadata(keys)


class Ending(Held):
    """One that tells when a search has ended."""

    def __init__(self, collection):
        super().__init__(collection)
        self.ended = threading.Event()

    def metadata(self, keys):
        self.ended.set()
        return super().metadata(keys)


async def started(*calls):
    """Start calls, which then have come in one turn of the loop."""
    tasks = [asyncio.create_task(call) for call in calls]
    for _ in range(2):
        await asyncio.sleep(0)
    return tasks


def test_what_waits_is_the_next_batch_and_has_the_answers_it_would_have_alone(library):
    held = Held(library)

    async def search_many():
        batcher = SearchBatcher(held, 100)
        calls = [batcher.search(ROWS[i : i + 2], 1 + i, metadata=i % 2 == 0) for i in range(20)]
        tasks = [*await started(calls[0]), *await started(*calls[1:])]
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
        tasks = await started(*calls)
        held.go_on.set()
        await asyncio.gather(*tasks)
        batcher.close()

    with using_threads(1):
        asyncio.run(search_many())
    # What is rescored depends on k, so its answers would depend on its company.
    assert held.batches == [3, 2, 1]


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


def test_a_quick_batch_is_searched_in_the_loop_and_others_in_threads(library, monkeypatch):
    monkeypatch.setattr(batching, "MOMENT", 10)  # however busy the machine is
    held = Held(library)
    held.go_on.set()
    held.searches_wait = False

    async def search_some():
        batcher = SearchBatcher(held, 100)
        await batcher.search(ROWS[:1], 3, metadata=True)  # nothing is known of times yet
        alone = await batcher.search(ROWS[:1], 3, metadata=True)
        calls = [batcher.search(ROWS[i : i + 1], 3, metadata=i % 2 == 0) for i in range(4)]
        together = await asyncio.gather(*calls)
        await batcher.search(ROWS[:1], 3, SearchOptions(rescore=2), metadata=True)
        held.searches_wait = True
        await batcher.search(ROWS[:1], 3, metadata=True)
        held.searches_wait = False
        monkeypatch.setattr(batching, "MOMENT", 0)
        await batcher.search(ROWS[:1], 3, metadata=True)
        batcher.close()
        return alone, together

    alone, together = asyncio.run(search_some())
    loop = threading.main_thread()
    assert held.batches == [1, 1, 4, 1, 1, 1]
    assert [thread is loop for thread in held.threads] == [False, True, True, *[False] * 3]
    assert [*map(list, together[0].results())] == [*map(list, alone.results())]
    for i, each in enumerate(together):
        assert np.array_equal(each.answer.ids(), library.answer(ROWS[i : i + 1], 3).ids())
        told = json.loads(each.text())  # much of it was written for all four together
        assert told["results"] == [*map(list, each.results())]
        assert told["codes"] == each.codes()
        has_metadata = [hit["metadata"] is not None for hit in next(each.results())]
        assert has_metadata == [i % 2 == 0] * 3


def test_a_short_answer_is_written_as_any_other(library):
    whole = library.answer(ROWS[:2], 5)
    known = library.metadata(whole.keys)
    keys = np.where(np.arange(5) < [[5], [3]], whole.keys, -1)  # the second has three neighbours
    for each in (whole, whole._replace(keys=keys), whole._replace(keys=keys[:, :0])):
        for metadata in (known, {}, {int(keys[0, 0]): {"a": 'comma, "quote"', "b": float("nan")}}):
            found = batching.Found(each.rows(0, 2, 5), metadata, sample=7)
            told = json.loads(found.text())
            wanted = json.loads(write_json({"results": found.results()}, 10**6, levels=3))
            assert told["results"] == wanted["results"]
            assert (told["sample"], told["model"]) == (7, whole.model)
    assert batching.Found(library.answer(ROWS[:2], 9), known).text() is None  # too long for it


def test_metadata_that_must_be_read_are_not_read_in_the_loop(library, monkeypatch):
    monkeypatch.setattr(batching, "MOMENT", 10)  # however busy the machine is
    held = Held(library)
    held.go_on.set()
    held.searches_wait = False
    read_by = []

    def read(keys):
        read_by.append(threading.current_thread())
        return library.metadata(keys)

    async def search_twice():
        batcher = SearchBatcher(held, 100)
        await batcher.search(ROWS[:1], 3, metadata=True)
        held.metadata, held.known_metadata = read, lambda _: None
        found = await batcher.search(ROWS[:1], 3, metadata=True)
        batcher.close()
        return found

    found = asyncio.run(search_twice())
    assert all(hit["metadata"] for hit in next(found.results()))
    assert [thread is threading.main_thread() for thread in read_by] == [False]


def test_an_error_in_the_loop_reaches_all_of_a_batch_and_the_next_goes_on(library, monkeypatch):
    monkeypatch.setattr(batching, "MOMENT", 10)  # however busy the machine is
    held = Held(library)
    held.go_on.set()
    held.searches_wait = False

    async def fail_and_go_on():
        batcher = SearchBatcher(held, 100)
        await batcher.search(ROWS[:1], 1, metadata=False)
        wrong = np.zeros((1, 3), np.float32)
        calls = [batcher.search(wrong, 1, metadata=False) for _ in range(3)]
        errors = await asyncio.gather(*calls, return_exceptions=True)
        found = await batcher.search(ROWS[:1], 1, metadata=False)
        batcher.close()
        return errors, found

    errors, found = asyncio.run(fail_and_go_on())
    assert held.threads[1] is held.threads[2] is threading.main_thread()
    assert all(isinstance(error, ValueError) for error in errors)
    assert found.answer.ids().tolist() == [[0]]


def test_a_search_that_ends_while_the_next_is_weighed_leaves_it_its_answer(library, monkeypatch):
    held = Ending(library)

    class Meanwhile(float):
        """A moment: while a search's seconds are compared with it, another search ends."""

        def __ge__(self, seconds):
            held.go_on.set()
            assert held.ended.wait(60)
            return False

    async def search_two():
        batcher = SearchBatcher(held, 100)
        held.go_on.set()
        await batcher.search(ROWS[:2], 3, metadata=True)
        held.go_on.clear()
        held.ended.clear()
        tasks = await started(batcher.search(ROWS[:2], 3, metadata=True))
        held.searches_wait = False
        monkeypatch.setattr(batching, "MOMENT", Meanwhile())
        next_one = batcher.search(ROWS[2:4], 3, metadata=True)
        found = await asyncio.wait_for(asyncio.gather(*tasks, next_one), 20)
        batcher.close()
        return found

    with using_threads(2):
        found = asyncio.run(search_two())
    for i, each in enumerate(found):
        alone = library.answer(ROWS[2 * i : 2 * i + 2], 3)
        assert np.array_equal(each.answer.ids(), alone.ids())


def test_the_only_request_is_answered_in_the_turn_in_which_it_came(library, monkeypatch):
    held = Held(library)
    held.go_on.set()
    library.metadata(library.answer(ROWS, 3).keys)  # what is not known must be read in a thread
    monkeypatch.setattr(batching, "MOMENT", 60)

    async def search():
        batcher = SearchBatcher(held, 100)

        def ask(n, *, alone=True):
            return batcher.search(ROWS[:n], 3, metadata=True, alone=alone)

        first = await ask(1)  # nobody knows how long it takes
        held.searches_wait = False
        with pytest.raises(StopIteration) as at_once:
            ask(2).send(None)
        await ask(1, alone=False)
        after_company = asyncio.create_task(ask(1))
        await asyncio.sleep(0)
        assert not after_company.done()
        await after_company
        held.searches_wait = True
        waiting = asyncio.create_task(ask(3))
        await asyncio.sleep(0)
        assert not waiting.done()
        await waiting
        batcher.close()
        assert (batcher.n_batches, batcher.n_queries) == (5, 8)
        return first, at_once.value.value

    first, second = asyncio.run(search())
    here = [each is threading.main_thread() for each in held.threads]
    assert here == [False, True, True, True, False]
    assert np.array_equal(second.answer.keys[:1], first.answer.keys)
    assert second.text().startswith(first.text()[:50].partition(b'"codes"')[0])


class Storing:
    """A collection that counts what is added; the first time, something else comes of it."""

    def __init__(self, first):
        self.first = [first]

    def write_each(self, additions):
        if self.first:
            return self.first.pop()(additions)
        return [Written(1, 1)] * len(additions)


class Ended(BaseException):
    """What is no Exception, as the end of a process."""


def ended(_):
    raise Ended


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (ended, StreamhashError),
        (lambda additions: [Written(1, 1)] * (len(additions) - 1), ValueError),
    ],
    ids=["what is no Exception", "too few answers"],
)
def test_adds_that_end_badly_are_told_so_and_the_next_are_stored(first, kind):
    async def add_some():
        batcher = WriteBatcher(Storing(first), 100)

        def add():
            return batcher.write(1, lambda: Addition(None, [[1.0]]))

        told = await asyncio.wait_for(
            asyncio.gather(*(add() for _ in range(3)), return_exceptions=True), 10
        )
        with suppress(Ended):
            await asyncio.wait_for(batcher._task, 10)
        assert not batcher.is_busy
        return told, await asyncio.wait_for(add(), 10)

    told, after = asyncio.run(add_some())
    assert isinstance(told[-1], kind)
    assert after == (1, 1)


def test_adds_whose_task_is_cancelled_are_told_so():
    go_on = threading.Event()

    async def add_some():
        batcher = WriteBatcher(
            Storing(lambda additions: go_on.wait() and [Written(1, 1)] * len(additions)), 100
        )

        def add():
            return batcher.write(1, lambda: Addition(None, [[1.0]]))

        tasks = await started(add())
        await asyncio.sleep(0.05)  # the first is being stored, and another waits
        tasks += await started(add())
        batcher._task.cancel()
        go_on.set()
        told = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
        return told, await asyncio.wait_for(add(), 10)

    told, after = asyncio.run(add_some())
    assert [type(each) for each in told] == [StreamhashError] * 2
    assert after == (1, 1)


def test_nothing_is_added_while_somebody_reads_and_changes_items():
    async def add_one():
        batcher = WriteBatcher(Storing(lambda additions: [Written(1, 1)] * len(additions)), 100)
        with batcher.held_up:
            (task,) = await started(batcher.write(1, lambda: Addition(None, [[1.0]])))
            await asyncio.sleep(0.1)
            assert not task.done()
        return await asyncio.wait_for(task, 10)

    assert asyncio.run(add_one()) == (1, 1)
