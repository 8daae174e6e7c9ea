"""What the service does with a collection: each verb, checked, in threads, and with its bounds."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash import __version__
from streamhash.live import Answer, Collection, Item, check_vectors
from streamhash.service.errors import Refusal
from streamhash.service.gather import Gatherer
from streamhash.service.limits import Lane, Limits
from streamhash.service.models import AddOptions, ByMethod, ByModel, CompareBody, SearchOptions
from streamhash.service.versions import Sample, Versions

__all__ = ["Desk", "Search", "hex_codes"]

AT_ONCE = 0.25  # seconds that a refresh may take to be answered with its result
FRESH = 1.0  # seconds that a report is good for, at least; ten times what it takes, if that is more

Rows = NDArray[np.float32]


class Search(NamedTuple):
    """What a search found."""

    answer: Answer
    metadata: dict[int, Any]  # by key
    sample: int | None = None  # items that were searched, where not all were

    def results(self) -> list[list[dict[str, Any]]]:
        """Return the neighbours as plain values."""
        ids, distances = self.answer.ids().tolist(), self.answer.distances.tolist()
        labels, keys, known = self.answer.labels(), self.answer.keys.tolist(), self.metadata
        return [
            [
                {"id": row[0], "distance": row[1], "label": row[2], "metadata": known.get(row[3])}
                # Labels end where there are no more items, and with them the row.
                for row in zip(*rows, strict=False)
            ]
            for rows in zip(ids, distances, labels, keys, strict=True)
        ]


class Desk:
    """The verbs of a service. All are called from one event loop."""

    def __init__(self, collection: Collection, limits: Limits) -> None:
        self.collection, self.limits = collection, limits
        self.read_metadata = collection.metadata
        self.searches = Gatherer(collection, limits.searches)
        self.reads = Lane("read", 4, limits.searches)
        self.writes = Lane("write", 1, limits.searches // 8)
        self.heavy = Lane("compare", 1, limits.searches // 64)
        self.refreshes = Lane("refresh", 1, 0)
        self.versions = Versions(collection, limits.sample)
        self.report = _Fresh(self._report)
        self._n_features = collection.n_features
        self._refresh_error: str | None = None

    def close(self) -> None:
        """Wait for all that runs."""
        for part in (self.writes, self.refreshes, self.reads, self.heavy, self.searches):
            part.close()

    # ------------------------------------------------------------------------------------- reading

    def width(self) -> int | None:
        """Return the length of vectors, as soon as it is known."""
        if self._n_features is None:
            self._n_features = self.collection.n_features
        return self._n_features

    def rows(self, vectors: Any, verb: str) -> Rows:
        """Return vectors as rows that a search or a model takes."""
        rows = check_vectors(vectors, self.width(), "float32", place=f"{verb}: vectors")
        self.check_number(len(rows), "vectors")
        return rows

    def check_number(self, n: int, what: str) -> None:
        """Refuse more of something than a request may have."""
        if n > self.limits.vectors:
            raise Refusal(413, f"{n} {what} came; send at most {self.limits.vectors} in a request.")

    def _check_k(self, k: int, n: int) -> None:
        if k > self.limits.k:
            raise Refusal(413, f"k={k} is too many; ask for at most {self.limits.k}.")
        if n * k > self.limits.answers:
            raise Refusal(
                413,
                f"{n} queries with k={k} are too many answers; ask for at most "
                f"{self.limits.answers} in a request.",
            )

    async def search(self, vectors: Any, options: SearchOptions) -> "Search":
        """Search for vectors, or for those of stored items."""
        ids, k = options.ids, options.k
        self.check_number(len(ids or []), "ids")
        self._check_k(k, len(ids if ids is not None else vectors))
        own = None
        if ids is None:
            rows = self.rows(vectors, "search")
        else:
            own, rows = await self.reads.run(self._items_of, ids)
        number, metadata = options.model, options.metadata
        if number is not None and number != self.collection.model_number:
            return await self.heavy.run(self._try_model, number, rows, own, k, metadata)
        if own is None:
            return Search(*await self.searches.search(rows, k, metadata=metadata))
        answer, known = await self.searches.search(rows, k + 1, metadata=metadata)
        return Search(answer.without(own), known)

    def _items_of(self, ids: Sequence[Any]) -> tuple[NDArray[np.int64], Rows]:
        self.check_there(ids)
        return self.collection.vectors_of(ids)

    def check_there(self, ids: Sequence[Any]) -> None:
        """Refuse ids that are not in the collection."""
        for item in ids:
            if item not in self.collection:
                raise Refusal(404, f"id {_short(item)} is not in this collection.")

    def _try_model(
        self, number: int, rows: Rows, own: NDArray[np.int64] | None, k: int, metadata: bool
    ) -> "Search":
        model = self.versions.model(number)
        sample = self.versions.sample(own)
        answer = sample.search(model, number, rows, k)
        known = self.read_metadata(answer.keys) if metadata else {}
        return Search(answer, known, len(sample.keys))

    async def compare(self, body: CompareBody) -> dict[str, Any]:
        """Return what two models or methods find for the same queries."""
        n = len(body.queries)
        self.check_number(min(n, self.limits.vectors + 1), "queries")
        self._check_k(body.k, n)
        by_id = not isinstance(body.queries[0], list)
        rows = None if by_id else self.rows(body.queries, "compare")
        return await self.heavy.run(self._compare, body, rows)

    def _compare(self, body: CompareBody, rows: Rows | None) -> dict[str, Any]:
        own = np.empty(0, np.int64)
        if rows is None:
            own, rows = self._items_of(body.queries)
        sample = self.versions.sample(own)
        labels = sample.listing.labels_of(own)
        sides, precision = {}, {}
        for name, wanted in (("left", body.left), ("right", body.right)):
            sides[name], answer = self._side(wanted, sample, rows, body.k)
            precision[name] = _precision(answer, labels)
        return {"sample": len(sample.keys), **sides, "precision": precision}

    def _side(
        self, wanted: ByModel | ByMethod, sample: Sample, rows: Rows, k: int
    ) -> tuple[dict[str, Any], Answer]:
        number, method = None, None
        if isinstance(wanted, ByModel):
            number = wanted.model
            model = self.versions.model(number)
        else:
            method = wanted.method
            model = self.versions.method(method, sample)
        answer = sample.search(model, number or 0, rows, k)
        results = Search(answer, self.read_metadata(answer.keys)).results()
        codes = hex_codes(answer.codes)
        return {"model": number, "method": method, "codes": codes, "results": results}, answer

    def encode(self, rows: Rows) -> tuple[int, NDArray[np.uint8]]:
        """Return the number of the model that serves, and its codes."""
        number = self.collection.model_number
        while True:  # until no refresh came between
            codes = self.collection.encode(rows)
            again, number = number, self.collection.model_number
            if number == again:
                return number, codes

    def get(self, ids: Sequence[Any]) -> list[Item]:
        """Return items."""
        self.check_there(ids)
        return self.collection.get(ids)

    def id_of(self, text: str) -> int | str:
        """Return an id as a request's path has it."""
        if text not in self.collection and text.isascii() and text.isdecimal() and len(text) < 20:
            return int(text)
        return text

    def list_items(self, offset: int, limit: int, newest: bool) -> dict[str, Any]:
        """Return some items, as they were added."""
        total, keys, ids, labels = self.collection.list_items(offset, limit, newest=newest)
        known = self.read_metadata(keys)
        items = [
            {"id": id_, "label": label, "metadata": known.get(key)}
            for id_, label, key in zip(ids, labels, keys.tolist(), strict=True)
        ]
        return {"total": total, "items": items}

    def _report(self) -> tuple[dict[str, Any], dict[str, Any]]:
        status = self.collection.status()
        status["address"] = PurePath(status["address"]).name  # where it lies is nobody's business
        status["writable"] = not self.collection.read_only
        status["streamhash"] = __version__
        status["refresh"]["error"] = status["refresh"]["error"] or self._refresh_error
        status["refresh"]["running"] |= self.refreshes.n_calls > 0
        return _finite(status), _finite(self.collection.history()._asdict())

    def models(self) -> list[dict[str, Any]]:
        """Return the models that serve or have served."""
        models = self.collection.models()
        return [{"number": number, **_finite(facts)} for number, facts in models]

    # ------------------------------------------------------------------------------------- changes

    def check_writable(self) -> None:
        """Refuse changes where there can be none."""
        if self.collection.read_only:
            raise Refusal(403, "this collection is served to read only.", code="read_only")

    def add(self, rows: Rows, options: AddOptions) -> int:
        """Add items."""
        self.check_writable()
        if options.existing == "refuse":
            for item in options.ids or []:
                if item in self.collection:
                    raise Refusal(
                        409, f'id {_short(item)} is there; pass existing "skip" or "replace".'
                    )
        return self.collection.add(
            options.ids,
            rows,
            options.labels,
            metadata=options.metadata,
            existing=options.existing,
        )

    def label(self, ids: Sequence[Any], labels: Sequence[Any]) -> int:
        """Label items."""
        self.check_writable()
        self.check_there(ids)
        self.collection.label(ids, labels)
        return len(ids)

    def delete(self, ids: Sequence[Any]) -> int:
        """Delete items."""
        self.check_writable()
        self.check_there(ids)
        self.collection.delete(ids)
        return len(ids)

    async def refresh(self, *, wait: bool) -> bool | None:
        """Refresh; return whether the model changed, None if it goes on."""
        self.check_writable()
        try:
            call = self.refreshes.submit(self.collection.refresh)
        except Refusal:
            if wait:
                raise
            return None
        call.add_done_callback(self._refreshed)
        done, _ = await asyncio.wait({call}, timeout=None if wait else AT_ONCE)
        return call.result() if done else None

    def _refreshed(self, call: "asyncio.Future[bool]") -> None:
        error = call.exception()
        self._refresh_error = None if error is None else str(error)


class _Fresh:
    """A report that is costly to make: made by one at a time, and good for a while."""

    def __init__(self, make: Callable[[], tuple[dict[str, Any], dict[str, Any]]]) -> None:
        self._make, self._lock = make, asyncio.Lock()
        self._until, self._last = 0.0, ({}, {})  # type: tuple[float, Any]

    async def __call__(self, lane: Lane) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return status and history."""
        async with self._lock:
            start = time.monotonic()
            if start >= self._until:
                self._last = await lane.run(self._make)
                end = time.monotonic()
                self._until = end + max(FRESH, 10 * (end - start))
            return self._last  # type: ignore[no-any-return]


def hex_codes(codes: NDArray[np.uint8]) -> list[str]:
    """Return codes as people read them."""
    return [code.tobytes().hex() for code in codes]


def _precision(answer: Answer, labels: NDArray[np.int32]) -> float | None:
    """Share of labelled neighbours with their query's label, over all queries that have one."""
    shares = []
    for row, label in zip(answer.keys, labels, strict=False):
        near = answer.listing.labels_of(row[row >= 0])
        if label >= 0 and (near >= 0).any():
            shares.append((near[near >= 0] == label).mean())
    return float(np.mean(shares)) if shares else None


def _finite(value: Any) -> Any:
    """Return plain values with None for what JSON cannot say."""
    if isinstance(value, dict):
        return {str(name): _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
