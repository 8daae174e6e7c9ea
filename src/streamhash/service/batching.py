"""Requests that come at the same time, in batches: a pass over the codes, or a commit, for many.

While a batch is searched or stored, what comes waits and is the next batch; what comes alone does
not wait. Codes and neighbours of a query do not depend on its company, so answers are the same.
Items are added as if one request came after the other, and each is answered when they are stored.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from starlette.exceptions import HTTPException

from streamhash.live import Addition, Answer, Collection
from streamhash.live.search import PLAIN, SearchOptions
from streamhash.threads import get_threads

BATCH_QUERIES = 256  # of a batch, unless one request has more
BATCH_ADDS = 256  # requests of a batch
FEW_ROWS = 16  # of a request: eight times as many of such may wait

Run = Callable[..., Awaitable[Any]]  # calls in a thread


class Found(NamedTuple):
    """What a search found."""

    answer: Answer
    metadata: dict[int, Any]  # by key
    sample: int | None = None  # items that were searched, where not all were

    def codes(self) -> list[str]:
        """Return the codes of the queries as people read them."""
        return [code.tobytes().hex() for code in self.answer.codes]

    def results(self) -> Iterator[Iterator[dict[str, Any]]]:
        """Go through the neighbours of each query, as plain values."""
        answer, known = self.answer, self.metadata
        columns: dict[str, Any] = {"id": answer.ids(), "distance": answer.distances}
        columns |= {"score": answer.scores, "probability": answer.probabilities}
        lists = {name: each.tolist() for name, each in columns.items() if each is not None}
        lists["label"] = answer.labels()
        for *row, keys in zip(*lists.values(), answer.keys.tolist(), strict=True):
            # Labels end where there are no more items, and with them the row.
            yield (
                {**dict(zip(lists, values, strict=True)), "metadata": known.get(key)}
                for *values, key in zip(*row, keys, strict=False)
            )


class _Search(NamedTuple):
    rows: NDArray[np.float32]
    k: int
    options: SearchOptions
    metadata: bool
    found: "asyncio.Future[Found]"

    @property
    def kind(self) -> tuple[Any, ...]:
        """Searches of one kind can be one; how many are rescored depends on ``k``."""
        return self.rows.shape[1], self.options, self.options.rescore and self.k


class SearchBatcher:
    """Searches a collection for the requests of one event loop."""

    def __init__(self, collection: Collection, max_waiting: int) -> None:
        self._collection, self._max_waiting = collection, max_waiting
        self._threads = get_threads()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="search")
        self._waiting: deque[_Search] = deque()
        self._running = 0
        self.n_batches = self.n_queries = 0

    async def search(
        self, rows: NDArray[np.float32], k: int, options: SearchOptions = PLAIN, *, metadata: bool
    ) -> Found:
        """Find the ``k`` nearest items of each of the checked rows, with metadata if wanted."""
        if len(self._waiting) >= self._max_waiting:
            raise HTTPException(503, "too many searches at a time; try again.")
        search = _Search(rows, k, options, metadata, asyncio.get_running_loop().create_future())
        self._waiting.append(search)
        self._start()
        return await search.found

    def _start(self) -> None:
        while self._waiting and self._running < self._threads:
            batch = [self._waiting.popleft()]
            size, kind = len(batch[0].rows), batch[0].kind
            while (
                self._waiting
                and size + len(self._waiting[0].rows) <= BATCH_QUERIES
                and self._waiting[0].kind == kind
            ):
                batch.append(self._waiting.popleft())
                size += len(batch[-1].rows)
            self._running += 1
            self.n_batches, self.n_queries = self.n_batches + 1, self.n_queries + size
            work = asyncio.get_running_loop().run_in_executor(self._pool, self._run, batch)
            work.add_done_callback(partial(self._done, batch))

    def _run(self, batch: list[_Search]) -> list[Found]:
        rows = batch[0].rows if len(batch) == 1 else np.concatenate([each.rows for each in batch])
        whole = self._collection.answer(rows, max(each.k for each in batch), batch[0].options)
        answers, start = [], 0
        for each in batch:
            answers.append(whole.rows(start, start + len(each.rows), each.k))
            start += len(each.rows)
        wanted = [
            answer.keys.ravel()
            for answer, each in zip(answers, batch, strict=True)
            if each.metadata
        ]
        known = self._collection.metadata(np.concatenate(wanted)) if wanted else {}
        return [
            Found(answer, known if each.metadata else {})
            for answer, each in zip(answers, batch, strict=True)
        ]

    def _done(self, batch: list[_Search], work: "asyncio.Future[list[Found]]") -> None:
        self._running -= 1
        self._start()
        error = work.exception()
        for number, each in enumerate(batch):
            if each.found.done():  # given up meanwhile
                continue
            if error is not None:
                each.found.set_exception(error)
            else:
                each.found.set_result(work.result()[number])

    def close(self) -> None:
        """Wait for the batches that run."""
        self._pool.shutdown()


class AddBatcher:
    """Adds items to a collection for the requests of one event loop, one batch at a time."""

    def __init__(self, collection: Collection, max_waiting: int) -> None:
        self._collection, self._max_waiting = collection, max_waiting
        self._waiting: deque[tuple[Addition, asyncio.Future[int]]] = deque()
        self._is_running = False
        self.n_batches = self.n_requests = 0

    async def add(self, addition: Addition, run: Run) -> int:
        """Add items in a thread that ``run`` gives; return how many were stored."""
        few = len(addition.X) <= FEW_ROWS
        if len(self._waiting) >= (self._max_waiting if few else self._max_waiting // 8):
            raise HTTPException(503, "too many write requests at a time; try again.")
        stored: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((addition, stored))
        if not self._is_running:
            self._is_running = True
            self._task = asyncio.create_task(self._store_all(run))  # kept, lest it be collected
        return await stored

    async def _store_all(self, run: Run) -> None:
        """Store what waits, batch by batch, until nothing does."""
        while self._waiting:
            n = min(len(self._waiting), BATCH_ADDS)
            batch = [self._waiting.popleft() for _ in range(n)]
            self.n_batches, self.n_requests = self.n_batches + 1, self.n_requests + n
            done: list[int | Exception]
            try:
                done = await run(self._collection.add_each, [addition for addition, _ in batch])
            except Exception as error:  # noqa: BLE001  raised by each request
                done = [error] * n
            for (_, stored), answer in zip(batch, done, strict=True):
                if stored.done():  # given up meanwhile
                    continue
                if isinstance(answer, Exception):
                    stored.set_exception(answer)
                else:
                    stored.set_result(answer)
        self._is_running = False
