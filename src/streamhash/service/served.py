"""A collection that is served, and the threads that work with it."""

import asyncio
import time
from functools import partial
from pathlib import PurePath
from typing import Any

from anyio import to_thread
from starlette.exceptions import HTTPException

from streamhash import __version__
from streamhash.errors import InputError
from streamhash.live import Collection, Item
from streamhash.service.answers import write_json
from streamhash.service.batching import SearchBatcher, WriteBatcher
from streamhash.service.compare import Comparison
from streamhash.service.display import read_display
from streamhash.service.guard import Limits
from streamhash.service.pictures import picture_shape, png
from streamhash.service.workers import Workers

REFRESH_SECONDS = 0.25  # that a refresh may take to be answered with its result
REPORT_SECONDS = 1.0  # that a report is good for, at least; ten times what it takes, if more
DRAIN_SECONDS = 0.01  # between two looks whether a collection is still worked with


class Served:
    """What the addresses of one collection share."""

    def __init__(self, name: str, collection: Collection, limits: Limits) -> None:
        self.name, self.collection, self.limits = name, collection, limits
        self.searches = SearchBatcher(collection, limits.searches)
        self.reads = Workers("read", 4, limits.searches)
        self.writes = WriteBatcher(collection, limits.searches)
        self.changes = Workers("write", 1, limits.searches)  # that no batch can do
        self.heavy = Workers("compare", 1, limits.searches // 64)
        # One: it is Python's work, and several threads of it hold up the loop by their turns.
        self.answers = Workers("long", 1, limits.searches)
        self.comparison = Comparison(collection, limits.sample)
        self.is_dropped = False
        self._refreshing: asyncio.Task[bool] | None = None
        self._reporting, self._report_until, self._n_outdated = asyncio.Lock(), 0.0, 0
        self._last_report = bytearray(), bytearray()

    def write(self, value: Any, levels: int = 2) -> bytearray:
        """Return an answer as JSON, within its limit."""
        return write_json(value, self.limits.answer, levels=levels)

    def get(self, text: str) -> Item:
        """Return an item by its id as a request's path has it."""
        return self.collection.get([self.id_of(text)])[0]

    def id_of(self, text: str) -> int | str:
        """Return the id that a request's path means."""
        numbers = self.collection.id_kind in ("whole numbers", None)  # None: there is no item yet
        return int(text) if numbers and text.isdecimal() and len(text) < 19 else text

    def image(self, text: str) -> bytes:
        """Return the vector of an item as a picture."""
        item = self.get(text)
        shape = picture_shape(item.metadata, len(item.vector))
        if shape is None:
            raise HTTPException(404, "this item is no picture.")
        return png(item.vector.reshape(shape))

    def list_items(self, offset: int, limit: int, **order: Any) -> dict[str, Any]:
        """Return some items; filter and order are those of ``Collection.list_items``."""
        total, keys, ids, labels = self.collection.list_items(offset, limit, **order)
        known = self.collection.metadata(keys)
        items = [
            {"id": id_, "label": label, "metadata": known.get(key)}
            for id_, label, key in zip(ids, labels, keys.tolist(), strict=True)
        ]
        return {"total": total, "items": items}

    async def refresh(self, *, wait: bool, older: int | None = None) -> bool | None:
        """Refresh, or go back to an older model; return if it changed, None if it goes on."""
        if self._refreshing is None or self._refreshing.done():
            revert = partial(self.collection.revert, older or 0)
            do = self.collection.refresh if older is None else revert
            self._refreshing = asyncio.create_task(to_thread.run_sync(do))
            self.outdate_report()
            self._refreshing.add_done_callback(self.outdate_report)
        elif wait or older is not None:
            raise HTTPException(409, "a refresh is running; ask again when it is over.")
        timeout = None if wait else REFRESH_SECONDS
        done, _ = await asyncio.wait({self._refreshing}, timeout=timeout)
        return self._refreshing.result() if done else None

    # ----------------------------------------------------------------------------------- reports

    def summary(self) -> dict[str, Any]:
        """Return what a list of collections tells of it, all of it cheap to know."""
        collection = self.collection
        series = collection.history().series
        return {
            "name": self.name,
            "items": len(collection),
            "features": collection.n_features,
            "method": type(collection.hasher).__name__,
            "bits": collection.n_bits,
            "model": collection.model_number,
            "precision": series[-1]["precision"] if series else None,
            "writable": not collection.read_only,
        }

    async def report(self) -> tuple[bytearray, bytearray]:
        """Return status and history as JSON: costly to make, and good for a while."""
        async with self._reporting:
            start, n_outdated = time.monotonic(), self._n_outdated
            if start >= self._report_until:
                self._last_report = await self.reads.run(self._report)
                end = time.monotonic()
                if n_outdated == self._n_outdated:
                    self._report_until = end + max(REPORT_SECONDS, 10 * (end - start))
            return self._last_report

    def outdate_report(self, *_: Any) -> None:
        """Have a new report made: a refresh has begun or ended, or answers were judged."""
        self._report_until, self._n_outdated = 0.0, self._n_outdated + 1

    def _report(self) -> tuple[bytearray, bytearray]:
        status, task = self.collection.status(), self._refreshing
        status["address"] = PurePath(status["address"]).name  # not where on this machine
        status["name"] = self.name
        status["ids"] = self.collection.id_kind
        status["display"] = read_display(self.collection)
        status["writable"] = not self.collection.read_only
        status["streamhash"] = __version__
        if task is not None and not task.done():
            status["refresh"]["running"] = True
        elif task is not None and not isinstance(error := task.exception(), InputError | None):
            status["refresh"]["error"] = status["refresh"]["error"] or str(error)
        return self.write(status), self.write(self.collection.history()._asdict())

    # ------------------------------------------------------------------------------------ the end

    def close(self) -> None:
        """Wait for the searches that run."""
        self.searches.close()

    async def drop(self) -> None:
        """Let what is being answered come to its end, and delete the collection."""
        parts = (self.searches, self.writes, self.changes, self.reads, self.heavy, self.answers)
        while any(part.is_busy for part in parts):
            await asyncio.sleep(DRAIN_SECONDS)
        if self._refreshing is not None:
            await asyncio.wait({self._refreshing})
        await to_thread.run_sync(self.collection.drop)
        self.close()
