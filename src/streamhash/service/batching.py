"""Requests that come at the same time, in batches: a pass over the codes, or a commit, for many.

What comes in turns of the event loop that follow each other is a batch. One that takes a moment
only, and waits for nobody, is searched there and then: to hand it to a thread and back would take
longer. The only request that there is does not even wait for a turn. All others are searched in
threads, and what comes meanwhile is the next batch. Codes and neighbours of a query do not depend
on its company, so answers are the same.
Requests that write are done as if one came after the other, and each is answered when it is stored.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from starlette.exceptions import HTTPException

from streamhash.errors import StreamhashError, copies
from streamhash.live import Addition, Answer, Collection, Write, Written
from streamhash.live.search import PLAIN, SearchOptions
from streamhash.service.answers import AT_ONCE, each_text, write_short
from streamhash.service.workers import Places, Workers
from streamhash.threads import get_threads

BATCH_QUERIES = 256  # of a batch, unless one request has more
QUERIES_AT_ONCE = 100  # whose neighbours are made plain values at once: no thread waits long
MOMENT = 0.002  # seconds that a batch may hold up the event loop
BATCH_WRITES = 256  # requests of a batch
WRITTEN_AT_ONCE = 4_096  # neighbours of a batch, at most, that are written as JSON together
SHORT_TEXT, TEXTS_KEPT = 1_024, 16_384  # bytes of metadata, and how many, that stay written

ENDED = "the service came to an end while items were written; look what is there."


class Found(NamedTuple):
    """What a search found."""

    answer: Answer
    metadata: dict[int, Any]  # by key
    sample: int | None = None  # items that were searched, where not all were
    batch: "_Batch | None" = None  # that it was searched in, unless the answer was changed since
    start: int = 0  # its first query in the batch

    def codes(self) -> list[str]:
        """Return the codes of the queries as people read them."""
        return [code.tobytes().hex() for code in self.answer.codes]

    def results(self) -> Iterator[Iterator[dict[str, Any]]]:
        """Go through the neighbours of each query, as plain values."""
        n, k = self.answer.keys.shape
        known, step = self.metadata.get, QUERIES_AT_ONCE
        for start in range(0, n, step):
            some = self.answer if n <= step else self.answer.rows(start, start + step, k)
            columns, keys, counts = _columns(some)
            names = [*columns, "metadata"]
            all_values = zip(*columns.values(), map(known, keys), strict=True)
            for count in counts:
                yield (
                    dict(zip(names, values, strict=True)) for values in islice(all_values, count)
                )

    def text(self) -> bytearray | None:
        """Return all of it as JSON if it is short: of a batch, much is written already."""
        n, k = self.answer.keys.shape
        if n * k > AT_ONCE:
            return None
        if self.batch is None:
            facts = {"model": self.answer.model, "sample": self.sample, "codes": self.codes()}
            text = write_short({**facts, "results": [[*row] for row in self.results()]})
            if text is not None:
                return text
        batch = self.batch or _Batch(self.answer, {})
        rows, write, known = batch.heads[self.start :][:n], batch.metadata_text, self.metadata
        sample, codes = each_text([self.sample])[0], b",".join(each_text(self.codes()))
        text = bytearray(
            b'{"model":%d,"sample":%b,"codes":[%b],"results":[' % (self.answer.model, sample, codes)
        )
        comma = b"["
        for row, keys in zip(rows, self.answer.keys.tolist(), strict=True):
            near = [b"%b%b}" % (head, write(key, known)) for head, key in zip(row, keys)]  # noqa: B905
            text += b"%b%b]" % (comma, b",".join(near))
            comma = b",["
        text += b"]}"
        return text


class _Batch:
    """What a batch of searches found, as JSON: written for all of them when one asks for it."""

    def __init__(self, whole: Answer, texts: dict[int, bytes]) -> None:
        self._whole, self._texts = whole, texts

    @cached_property
    def heads(self) -> list[list[bytes]]:
        """What is told of each neighbour of each query, up to its metadata."""
        columns, _, counts = _columns(self._whole)
        form = b'{%b,"metadata":' % b",".join([b'"%b":%%b' % name.encode() for name in columns])
        heads = iter([form % each for each in zip(*map(each_text, columns.values()), strict=True)])
        return [[*islice(heads, count)] for count in counts]

    def metadata_text(self, key: int, known: dict[int, Any]) -> bytes:
        """Return the metadata of an item, which stay for ever; short ones are remembered."""
        value = known.get(key)
        if value is None:
            return b"null"
        text = self._texts.get(key)
        if text is None:
            try:
                (text,) = each_text([value])
            except RecursionError:  # version 0.1.0 took what is hundreds of levels deep
                return b"null"
            if len(text) <= SHORT_TEXT:
                if len(self._texts) >= TEXTS_KEPT:
                    self._texts.clear()
                self._texts[key] = text
        return text


def _columns(answer: Answer) -> tuple[dict[str, list[Any]], list[int], list[int]]:
    """Return what is told of neighbours beside metadata, their keys, and how many queries have.

    All neighbours there are stand one after the other.
    """
    there = answer.keys >= 0
    keys = answer.keys[there]
    ids, labels = answer.listing.look_up(keys)
    more = {"score": answer.scores, "probability": answer.probabilities}
    arrays = {"distance": answer.distances, **more}
    measures = {name: each[there] for name, each in arrays.items() if each is not None}
    columns = {name: each.tolist() for name, each in {"id": ids, **measures}.items()}
    return {**columns, "label": labels}, keys.tolist(), there.sum(axis=1).tolist()


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
        # Queries of the last plain batches, and the seconds that each took; one may have been held
        # up by others on the machine. It is replaced, as threads write what the loop reads.
        self._last: tuple[tuple[int, float], ...] = ()
        self._texts: dict[int, bytes] = {}  # of metadata, by key
        self.n_batches = self.n_queries = 0
        self._was_alone = False  # the last request

    async def search(
        self,
        rows: NDArray[np.float32],
        k: int,
        options: SearchOptions = PLAIN,
        *,
        metadata: bool,
        alone: bool = False,
    ) -> Found:
        """Find the ``k`` nearest items of each of the checked rows, with metadata if wanted.

        If it is ``alone``, no other request is there that could be searched with it; if the last
        one was so, too, none is expected.
        """
        was_alone, self._was_alone = self._was_alone, alone
        if alone and was_alone and not self._waiting and self._is_quick(len(rows), options):
            found = self._search_at_once(rows, k, metadata=metadata)
            if found is not None:
                return found
        if len(self._waiting) >= self._max_waiting:
            self._start()
        if len(self._waiting) >= self._max_waiting:
            raise HTTPException(503, "too many searches at a time; try again.")
        loop = asyncio.get_running_loop()
        search = _Search(rows, k, options, metadata, loop.create_future())
        self._waiting.append(search)
        if len(self._waiting) == 1:
            loop.call_soon(self._start_soon, 1)
        return await search.found

    def _search_at_once(self, rows: NDArray[np.float32], k: int, *, metadata: bool) -> Found | None:
        """Find neighbours in the loop; None if metadata must be read for them."""
        whole = self._measured(rows, k, PLAIN)
        known = self._collection.known_metadata(whole.keys if metadata else whole.keys[:0])
        if known is None:
            return None
        self.n_batches, self.n_queries = self.n_batches + 1, self.n_queries + len(rows)
        return Found(whole, known)  # nobody shares what is written of it

    def _start_soon(self, waited: int) -> None:
        """Start when a turn of the loop has brought nobody else."""
        if len(self._waiting) > waited:
            asyncio.get_running_loop().call_soon(self._start_soon, len(self._waiting))
        else:
            self._start()

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
            self.n_batches, self.n_queries = self.n_batches + 1, self.n_queries + size
            if self._is_quick(size, batch[0].options) and self._run_here(batch):
                continue
            self._running += 1
            work = asyncio.get_running_loop().run_in_executor(self._pool, self._run, batch)
            work.add_done_callback(partial(self._done, batch))

    def _is_quick(self, size: int, options: SearchOptions) -> bool:
        """Whether a batch takes a moment only, by what the last one took."""
        if options != PLAIN or self._collection.searches_wait:
            return False
        return any(seconds * max(size / n, 1) <= MOMENT for n, seconds in self._last)

    def _run_here(self, batch: list[_Search]) -> bool:
        """Answer a batch in the loop; return False if metadata must be read for it."""
        try:
            whole = self._search(batch)
            known = self._collection.known_metadata(_wanted(batch, whole))
        except Exception as error:  # noqa: BLE001  it is each request's
            _fail(batch, error)
            return True
        if known is not None:
            _answer(batch, self._split(batch, whole, known))
        return known is not None

    def _run(self, batch: list[_Search]) -> list[Found]:
        whole = self._search(batch)
        return self._split(batch, whole, self._collection.metadata(_wanted(batch, whole)))

    def _split(self, batch: list[_Search], whole: Answer, known: dict[int, Any]) -> list[Found]:
        """Return each search's part of a batch's answer."""
        shared = self._shared(whole)
        if len(batch) == 1:
            return [Found(whole, known, batch=shared)]
        found, start = [], 0
        for each in batch:
            stop = start + len(each.rows)
            answer = whole.rows(start, stop, each.k)
            found.append(Found(answer, known if each.metadata else {}, batch=shared, start=start))
            start = stop
        return found

    def _shared(self, whole: Answer) -> _Batch | None:
        return _Batch(whole, self._texts) if whole.keys.size <= WRITTEN_AT_ONCE else None

    def _search(self, batch: list[_Search]) -> Answer:
        rows = batch[0].rows if len(batch) == 1 else np.concatenate([each.rows for each in batch])
        return self._measured(rows, max(each.k for each in batch), batch[0].options)

    def _measured(self, rows: NDArray[np.float32], k: int, options: SearchOptions) -> Answer:
        start = time.perf_counter()
        whole = self._collection.answer(rows, k, options)
        if options == PLAIN:
            self._last = (*self._last[-2:], (len(rows), time.perf_counter() - start))
        return whole

    def _done(self, batch: list[_Search], work: "asyncio.Future[list[Found]]") -> None:
        self._running -= 1
        self._start()
        error = work.exception()
        if error is not None:
            _fail(batch, error)
        else:
            _answer(batch, work.result())

    @property
    def is_busy(self) -> bool:
        """Whether a search runs or waits."""
        return bool(self._waiting or self._running)

    def close(self) -> None:
        """Wait for the batches that run."""
        self._pool.shutdown()


class _Request(NamedTuple):
    make: Callable[[], Write]
    written: "asyncio.Future[Written]"


class WriteBatcher:
    """Writes to a collection for the requests of one event loop, one batch at a time.

    ``held_up`` is for whoever reads items and then changes them: nothing is written meanwhile.
    """

    def __init__(self, collection: Collection, max_waiting: int) -> None:
        self._collection, self.held_up = collection, threading.Lock()
        self._places = Places("write", max_waiting + BATCH_WRITES)
        self._thread = Workers("batch", 1, 0)  # its own, so that what was taken is not refused here
        self._waiting: deque[_Request] = deque()
        self._is_running = False
        self.n_batches = self.n_requests = self.n_added = 0

    @property
    def is_busy(self) -> bool:
        """Whether a batch is being written, or waits for it."""
        return self._is_running

    async def write(self, n_items: int, make: Callable[[], Write]) -> Written:
        """Do what ``make`` makes in a thread, a write of so many items; return what came of it."""
        with self._places.one(n_items):
            written: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
            self._waiting.append(_Request(make, written))
            if not self._is_running:
                self._is_running = True
                self._task = asyncio.create_task(self._write_all())  # kept, lest it be collected
            return await written

    async def _write_all(self) -> None:
        """Write what waits, batch by batch, until nothing does; if it is ended, nobody waits on."""
        try:
            while self._waiting:
                n = min(len(self._waiting), BATCH_WRITES)
                await self._write([self._waiting.popleft() for _ in range(n)])
        finally:
            self._is_running = False
            self._fail(self._waiting, StreamhashError(ENDED))
            self._waiting.clear()

    async def _write(self, batch: list[_Request]) -> None:
        """Write a batch, and tell each request what came of it."""
        self.n_batches, self.n_requests = self.n_batches + 1, self.n_requests + len(batch)
        try:
            done = await self._thread.run(self._write_each, batch)
            for (_, written), answer in zip(batch, done, strict=True):
                if written.done():  # given up meanwhile
                    continue
                if isinstance(answer, Exception):
                    written.set_exception(answer)
                else:
                    written.set_result(answer)
        except Exception as error:  # noqa: BLE001  raised by each request
            self._fail(batch, error)
        except BaseException:
            self._fail(batch, StreamhashError(ENDED))
            raise

    def _write_each(self, batch: list[_Request]) -> list[Written | Exception]:
        with self.held_up:
            writes = [each.make() for each in batch]
            done = self._collection.write_each(writes)
        for write, answer in zip(writes, done, strict=False):
            if isinstance(write, Addition) and isinstance(answer, Written):
                self.n_added += answer.items
        return done

    def _fail(self, batch: Sequence[_Request], error: Exception) -> None:
        for (_, written), own in zip(batch, copies(error, len(batch)), strict=True):
            if not written.done():
                written.set_exception(own)


def _wanted(batch: list[_Search], whole: Answer) -> NDArray[np.int64]:
    """Return the keys of a batch's answer whose metadata are wanted."""
    if len(batch) == 1:
        return whole.keys if batch[0].metadata else whole.keys[:0]
    wanted = np.repeat([each.metadata for each in batch], [len(each.rows) for each in batch])
    keys: NDArray[np.int64] = whole.keys[wanted]
    return keys


def _answer(batch: list[_Search], found: list[Found]) -> None:
    for each, its in zip(batch, found, strict=True):
        if not each.found.done():  # given up meanwhile
            each.found.set_result(its)


def _fail(batch: list[_Search], error: BaseException) -> None:
    for each, own in zip(batch, copies(error, len(batch)), strict=True):
        if not each.found.done():
            each.found.set_exception(own)
