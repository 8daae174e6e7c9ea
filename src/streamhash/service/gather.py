"""Searches that come at the same time, answered in batches: one pass over the codes for many.

While a batch is searched, what comes waits and is the next batch; a search that comes alone does
not wait. Codes and neighbours of a query do not depend on its company, so answers are the same.
"""

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.live import Answer, Collection
from streamhash.service.limits import overloaded
from streamhash.threads import get_threads

__all__ = ["Gatherer"]

TOGETHER = 256  # queries of a batch, unless one request has more


Known = tuple[Answer, dict[int, Any]]  # an answer, and metadata by key


class _Search(NamedTuple):
    rows: NDArray[np.float32]
    k: int
    metadata: bool
    answer: "asyncio.Future[Known]"


class Gatherer:
    """Searches a collection for the requests of one event loop."""

    def __init__(self, collection: Collection, waiting: int) -> None:
        self._collection, self._most = collection, waiting
        self._threads = get_threads()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="serve-search")
        self._waiting: deque[_Search] = deque()
        self._running = 0
        self.n_batches = self.n_queries = 0

    async def search(self, rows: NDArray[np.float32], k: int, *, metadata: bool) -> Known:
        """Find the ``k`` nearest items of each of the checked rows, with metadata if wanted."""
        if len(self._waiting) >= self._most:
            raise overloaded("searches")
        answer: asyncio.Future[Known] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Search(rows, k, metadata, answer))
        self._start()
        return await answer

    def _start(self) -> None:
        while self._waiting and self._running < self._threads:
            batch = [self._waiting.popleft()]
            size, width = len(batch[0].rows), batch[0].rows.shape[1]
            while (
                self._waiting
                and size + len(self._waiting[0].rows) <= TOGETHER
                and self._waiting[0].rows.shape[1] == width
            ):
                batch.append(self._waiting.popleft())
                size += len(batch[-1].rows)
            self._running += 1
            self.n_batches, self.n_queries = self.n_batches + 1, self.n_queries + size
            loop = asyncio.get_running_loop()
            work = loop.run_in_executor(self._pool, self._answer, batch)
            work.add_done_callback(partial(self._done, batch))

    def _answer(self, batch: list[_Search]) -> list[Known]:
        rows = batch[0].rows if len(batch) == 1 else np.concatenate([each.rows for each in batch])
        whole = self._collection.answer(rows, max(each.k for each in batch))
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
        return [(answer, known) for answer in answers]

    def _done(self, batch: list[_Search], work: "asyncio.Future[list[Known]]") -> None:
        self._running -= 1
        self._start()
        error = work.exception()
        for number, each in enumerate(batch):
            if each.answer.done():  # given up meanwhile
                continue
            if error is not None:
                each.answer.set_exception(error)
            else:
                each.answer.set_result(work.result()[number])

    def close(self) -> None:
        """Wait for the batches that run."""
        self._pool.shutdown()
