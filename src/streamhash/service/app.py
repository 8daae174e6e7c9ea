"""The service proper: which address does what."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection as Names, Iterable
from contextlib import asynccontextmanager
from copy import deepcopy
from functools import lru_cache, partial
from importlib.resources import files
from inspect import signature
from pathlib import PurePath
from typing import Annotated, Any, TypeVar

import numpy as np
from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, Path, Query
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from streamhash import __version__
from streamhash.errors import InputError, ServiceError, StreamhashError
from streamhash.live import Addition, Collection, Item, check_vectors
from streamhash.live.search import PLAIN
from streamhash.service import models
from streamhash.service.answers import AT_ONCE, Json, write_json
from streamhash.service.batching import AddBatcher, Found, SearchBatcher
from streamhash.service.bodies import Form, RefusedBody, read_body
from streamhash.service.compare import Comparison
from streamhash.service.frames import TYPE, pack_frame
from streamhash.service.guard import Guard, Limits, Tokens, answer_error, host_patterns
from streamhash.service.metrics import Metrics
from streamhash.service.pictures import picture_shape, png
from streamhash.service.reader import SMALL, BodyReader
from streamhash.threads import single_threaded_blas

Result = TypeVar("Result")
ItemId = Annotated[str, Path(max_length=1000, description="The item's id.", examples=["0"])]

NUMBERS_AT_ONCE = 100_000  # that are checked at once; more of them in a thread
NEIGHBOURS_AT_ONCE = 1_000  # that are written at once; more of them in a thread
LONG_VECTOR = 1_000  # numbers of a vector; one that is longer is written in pieces
WIDEST_EXAMPLE = 1_000  # numbers of a vector that the description shows
REFRESH_SECONDS = 0.25  # that a refresh may take to be answered with its result
REPORT_SECONDS = 1.0  # that a report is good for, at least; ten times what it takes, if more
PAGE_TYPES = {
    "html": "text/html",
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
}

# ------------------------------------------------------------------------------- the description

Responses = dict[int | str, dict[str, Any]]
TEXT = {"type": "string"}
BINARY = {"type": "string", "format": "binary"}
RAW_BODY = {
    **BINARY,
    "description": "4 bytes: length of the head, least first; the head: the JSON body without "
    'vectors, with "shape": [rows, columns]; the vectors as float32.',
}


def _errors(*statuses: int) -> Responses:
    return {status: {"model": models.ErrorBody} for status in statuses}


def _content(kind: str, schema: dict[str, str]) -> Responses:
    return {200: {"content": {kind: {"schema": schema}}}}


def _describe(app: FastAPI, width: int | None, limits: Limits) -> dict[str, Any]:
    """Return what FastAPI writes, and what it cannot know: tokens, limits, lengths of vectors."""
    document = deepcopy(app.openapi())
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}, {}]
    _complete(document["components"]["schemas"], width, limits)
    return document


def _complete(schema: Any, width: int | None, limits: Limits) -> None:
    """Put in limits, the length of vectors, and an example of one; make bounds exact."""
    if isinstance(schema, dict):
        title, kind = schema.get("title"), schema.get("type")
        if title == "Vector" and kind == "array" and width is not None:
            schema.update(minItems=width, maxItems=width)
            if width <= WIDEST_EXAMPLE:
                schema["examples"] = [[round(0.5 - i % 3 / 2, 1) for i in range(width)]]
        elif title in ("Vectors", "Ids", "Good", "Labels", "Metadata") and kind == "array":
            schema["maxItems"] = limits.vectors
        elif title == "K" and kind == "integer":
            schema["maximum"] = limits.k
        for bound in {"exclusiveMinimum", "exclusiveMaximum"} & schema.keys():
            schema[bound] = int(schema[bound])  # FastAPI has made it a floating-point number
    for each in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(each, dict | list):
            _complete(each, width, limits)


# --------------------------------------------------------------------------- requests and answers


class BodyRoute(APIRoute):
    """Takes bodies as JSON, or as raw numbers where they have vectors, and nothing else.

    A page of another site can make a browser send forms and text here, but neither of these two
    types without asking first, which is answered with no.

    FastAPI describes such a route, and nothing more: its own way from a request to a function of a
    body takes longer than a search.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        if self.body_field is None:
            return
        parameters = [*signature(endpoint).parameters]
        if parameters not in (["body"], ["body", "request"]):
            raise TypeError(f"{path}: takes {parameters}; a route with a body, that and request.")
        self._takes_request = len(parameters) == 2
        self._model: type[BaseModel] = self.body_field.field_info.annotation  # type: ignore[assignment]
        self._taken = ["application/json"]
        if issubclass(self._model, models.VectorBody):
            self._taken.append(TYPE)
            self.openapi_extra = {"requestBody": {"content": {TYPE: {"schema": RAW_BODY}}}}
        self.app = self.answer

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, check it, call the function, and send its answer."""
        request = Request(scope, receive)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in self._taken:
            raise HTTPException(415, f"send Content-Type: {'; or '.join(self._taken)}.")
        content = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise HTTPException(400, "the body did not come to its end.")
            content += message.get("body", b"")
            more = message.get("more_body", False)
        if not content:
            raise RequestValidationError([{"type": "missing", "loc": ("body",), "msg": "is empty"}])
        service: _Service = scope["app"].state.service
        fields = await service.read(content, self._model.model_fields, raw=kind == TYPE)
        del content
        try:
            body = self._model.model_validate(fields)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
            places = [{**each, "loc": ("body", *each["loc"])} for each in errors]
            raise RequestValidationError(places) from None
        del fields
        response = await (
            self.endpoint(body, request) if self._takes_request else self.endpoint(body)
        )
        await response(scope, receive, send)


def _plain(item: Item) -> dict[str, Any]:
    """Return an item as it is written; a long vector as an array, which is taken apart."""
    vector = item.vector if len(item.vector) > LONG_VECTOR else item.vector.tolist()
    code = None if item.code is None else item.code.tobytes().hex()
    return {**item._asdict(), "vector": vector, "code": code}


def _raw_found(found: Found) -> Response:
    answer, ids = found.answer, found.answer.ids()
    shape = [*answer.keys.shape]
    head: dict[str, Any] = {"model": answer.model, "sample": found.sample, "shape": shape}
    head |= {"code_bytes": answer.codes.shape[1], "labels": answer.labels()}
    arrays: list[NDArray[Any]] = [answer.codes, answer.distances]
    if ids.dtype == object:  # strings are not of one length
        head["ids"] = ids.tolist()
    else:
        arrays.append(ids)
    more = {"scores": answer.scores, "probabilities": answer.probabilities}
    head["more"] = [name for name, values in more.items() if values is not None]
    arrays += [values for values in more.values() if values is not None]
    return Response(pack_frame(head, *arrays), media_type=TYPE)


# ------------------------------------------------------------------------------------- the service


class _Threads:
    """Threads for one kind of blocking work, and a bounded number of calls that wait for them."""

    def __init__(self, kind: str, n: int, max_waiting: int) -> None:
        self._kind, self._limiter = kind, CapacityLimiter(n)
        self._n_calls, self._max_calls = 0, n + max_waiting

    async def run(self, work: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
        """Call in a thread; refuse if too many calls wait already."""
        if self._n_calls >= self._max_calls:
            raise HTTPException(503, f"too many {self._kind} requests at a time; try again.")
        self._n_calls += 1
        try:
            call = partial(work, *arguments, **named)
            return await to_thread.run_sync(call, limiter=self._limiter)
        finally:
            self._n_calls -= 1


class _Service:
    """What the addresses share: the collection, and the threads that work with it."""

    def __init__(self, collection: Collection, limits: Limits) -> None:
        self.collection, self.limits = collection, limits
        self.searches = SearchBatcher(collection, limits.searches)
        self.reads = _Threads("read", 4, limits.searches)
        self.writes = _Threads("write", 1, limits.searches // 8)
        self.adds = AddBatcher(collection, limits.searches)
        self.heavy = _Threads("compare", 1, limits.searches // 64)
        self.bodies = _Threads("large", 1, limits.searches // 8)
        # One: it is Python's work, and several threads of it hold up the loop by their turns.
        self.answers = _Threads("long", 1, limits.searches)
        self.reader = BodyReader(limits.body_seconds)
        self.comparison = Comparison(collection, limits.sample)
        self._refreshing: asyncio.Task[bool] | None = None
        self._reporting, self._report_until, self._n_outdated = asyncio.Lock(), 0.0, 0
        self._last_report = bytearray(), bytearray()

    def write(self, value: Any, levels: int = 2, *, at_once: bool = False) -> bytearray:
        """Return an answer as JSON, within its limit."""
        return write_json(value, self.limits.answer, levels=levels, at_once=at_once)

    async def read(self, content: bytearray, names: Names[str], *, raw: bool) -> dict[str, Any]:
        """Return what a body says; large ones are read elsewhere, and others are answered."""
        form = Form(names, self.limits.vectors)
        try:
            if len(content) <= SMALL:
                return read_body(content, form, raw=raw)
            threads, read = self.reads if raw else self.bodies, self.reader.read
            return await threads.run(read_body, content, form, raw=raw, read=read)
        except RefusedBody as refused:
            raise HTTPException(refused.status, refused.text) from refused

    async def search(self, body: models.SearchBody, *, metadata: bool) -> Found:
        """Search for vectors, or for those of stored items."""
        if (body.vectors is None) == (body.ids is None):
            raise HTTPException(422, "pass either vectors or ids.")
        k, number, own = int(body.k), body.model, None
        asked = {name: getattr(body, name) for name in models.OPTIONS}
        options = self.collection.search_options(place="search", **asked)
        if body.vectors is not None:
            self.limits.check(len(body.vectors), k, rescore=options.rescore, what="vectors")
            width = self.collection.n_features
            check = partial(check_vectors, body.vectors, width, "float32", place="search: vectors")
            few = isinstance(body.vectors, np.ndarray) and body.vectors.size <= NUMBERS_AT_ONCE
            rows = check() if few else await self.reads.run(check)
        else:
            self.limits.check(len(body.ids or []), k, rescore=options.rescore)
            own, rows = await self.reads.run(self.collection.vectors_of, body.ids)
        if number is not None and number != self.collection.model_number:
            if options != PLAIN:
                raise InputError(f"search: model={number}, an older one, takes no other options.")
            search = self.comparison.search
            return await self.heavy.run(search, number, rows, own, k, metadata=metadata)
        wanted = k if own is None else k + 1
        found = await self.searches.search(rows, wanted, options, metadata=metadata)
        if own is None and options.min_probability is None:
            return found
        answer = found.answer if own is None else found.answer.without(own)
        answer = answer.at_least(options.min_probability, place="search")
        return found._replace(answer=answer, columns=None)

    def encode(self, body: models.EncodeBody) -> tuple[int, NDArray[Any]]:
        """Return the number of the model that serves, and its codes."""
        number = self.collection.model_number
        return number, self.collection.model(number).transform(body.vectors)

    def get(self, text: str) -> Item:
        """Return an item by its id as a request's path has it."""
        numbers = self.collection.id_kind == "whole numbers"
        is_number = numbers and text.isdecimal() and len(text) < 19
        return self.collection.get([int(text) if is_number else text])[0]

    def image(self, text: str) -> bytes:
        """Return the vector of an item as a picture."""
        item = self.get(text)
        shape = picture_shape(item.metadata, len(item.vector))
        if shape is None:
            raise HTTPException(404, "this item is no picture.")
        return png(item.vector.reshape(shape))

    def list_items(self, offset: int, limit: int, newest: bool) -> dict[str, Any]:
        """Return some items, as they were added."""
        total, keys, ids, labels = self.collection.list_items(offset, limit, newest=newest)
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
        status["writable"] = not self.collection.read_only
        status["streamhash"] = __version__
        if task is not None and not task.done():
            status["refresh"]["running"] = True
        elif task is not None and not isinstance(error := task.exception(), InputError | None):
            status["refresh"]["error"] = status["refresh"]["error"] or str(error)
        return self.write(status), self.write(self.collection.history()._asdict())


def create_app(
    collection: Collection,
    *,
    tokens: Tokens | None = None,
    host: str = "127.0.0.1",
    allowed_hosts: Iterable[str] = (),
    limits: Limits | None = None,
) -> ASGIApp:
    """Return the service of a collection, as an ASGI application; who calls closes the collection.

    Parameters
    ----------
    collection : Collection
        Open it with ``background=True``, so that adding does not wait for refreshes.
    tokens : Tokens
        What opens it; by default it is open.
    host : str
        Where it listens: on loopback, requests for other hosts are refused.
    allowed_hosts : names
        Other names that it goes by, behind a proxy.
    limits : Limits
    """
    limits = limits or Limits()
    service = _Service(collection, limits)
    metrics = Metrics(collection, service.searches)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # Held all the while: to set and restore it for every search, in threads, takes BLAS 6 ms.
        with single_threaded_blas():
            yield
            service.searches.close()
            service.reader.close()

    app = FastAPI(
        title="streamhash",
        version=__version__,
        description="A live collection: learn, store and search at once.",
        docs_url=None,  # these two would load programs from elsewhere
        redoc_url=None,
        openapi_url=None,  # below, as the width of vectors may become known later
        lifespan=lifespan,
        responses=_errors(401, 408, 413, 415, 421, 422, 500, 503, 507),  # of any address
    )
    app.router.route_class = BodyRoute
    app.state.service = service
    _handle_errors(app)
    _add_searches(app, service)  # first, as addresses are tried in this order
    _add_items(app, service)
    _add_reports(app, service, metrics)
    _add_page(app)
    quick = _short_way(app)
    return Guard(quick, tokens or Tokens(), host_patterns(host, allowed_hosts), limits, metrics)


def _short_way(app: FastAPI) -> ASGIApp:
    """Let requests with a body pass by Starlette's middleware: the guard answers all errors."""
    routes: dict[Any, BodyRoute] = {
        (method, each.path): each
        for each in app.routes
        if isinstance(each, BodyRoute) and each.body_field is not None
        for method in each.methods or ()
    }

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        route = routes.get((scope.get("method"), scope.get("path")))
        if route is None:
            await app(scope, receive, send)
        else:
            scope.update(app=app, route=route)
            await route.answer(scope, receive, send)

    return answer


def _handle_errors(app: FastAPI) -> None:
    async def answer(_: Request, error: Exception) -> Response:
        return answer_error(error)

    async def no_method(request: Request, _: Exception) -> Response:
        """Name the methods of an address; Starlette would name those of one route alone."""
        routes = [each for each in app.routes if isinstance(each, APIRoute)]
        there = [each for each in routes if each.path == request.url.path]
        there = there or [each for each in routes if each.path_regex.match(request.url.path)]
        methods = {name for each in there for name in each.methods or ()}
        allow = {"Allow": ", ".join(sorted(methods))}
        return answer_error(HTTPException(405, "not by this method.", allow))

    for kind in (HTTPException, RequestValidationError, StreamhashError, Exception):
        app.add_exception_handler(kind, answer)
    app.add_exception_handler(405, no_method)


def _add_reports(app: FastAPI, service: _Service, metrics: Metrics) -> None:
    collection, reads = service.collection, service.reads

    @lru_cache(2)
    def describe(width: int | None) -> bytearray:
        return service.write(_describe(app, width, service.limits))

    @app.get("/health", response_model=models.Health)
    async def health() -> Response:
        """Tell that the process answers."""
        return Json({"status": "ok"})

    @app.get("/ready", response_model=models.Ready)
    async def ready() -> Response:
        """Tell whether a model serves."""
        if await reads.run(lambda: collection.model_number) == 0:
            raise ServiceError(503, "not_ready", "no model has been learned yet.")
        return Json({"ready": True})

    @app.get("/metrics", response_class=Response, responses=_content("text/plain", TEXT))
    async def prometheus() -> Response:
        """Return the measures, for Prometheus."""
        text = await reads.run(metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/openapi.json", include_in_schema=False)
    async def description() -> Response:
        return Json(await reads.run(describe, collection.n_features))

    @app.get("/api/status", response_model=models.StatusBody)
    async def status() -> Response:
        """Tell how the collection does, as of a second ago."""
        return Json((await service.report())[0])

    @app.get("/api/history", response_model=models.HistoryBody)
    async def history() -> Response:
        """Tell the refreshes, the alarms of drift, and quality over time."""
        return Json((await service.report())[1])

    @app.get("/api/models", response_model=list[models.ModelFacts])
    async def list_models() -> Response:
        """List the models that serve or have served."""

        def write() -> bytearray:
            return service.write([{"number": n, **facts} for n, facts in collection.models()])

        return Json(await reads.run(write))


def _add_items(app: FastAPI, service: _Service) -> None:
    collection, reads, writes = service.collection, service.reads, service.writes
    check, missing = service.limits.check, _errors(400, 404)

    @app.get("/api/items", response_model=models.ItemList)
    async def list_items(
        offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=service.limits.page)] = 50,
        newest: bool = False,
    ) -> Response:
        """List items, as they were added or the newest first."""

        def write() -> bytearray:
            return service.write(service.list_items(offset, limit, newest))

        return Json(await reads.run(write))

    @app.get(
        "/api/items/{id:path}/image",
        response_class=Response,
        responses=_content("image/png", BINARY) | missing,
    )
    async def image(id: ItemId) -> Response:
        """Return the vector as a picture, where the metadata say that it is one."""
        content = await reads.run(service.image, id)
        return Response(content, media_type="image/png", headers={"Cache-Control": "no-cache"})

    @app.get("/api/items/{id:path}", response_model=models.FullItem, responses=missing)
    async def one_item(id: ItemId) -> Response:
        """Return all of an item."""
        return Json(await reads.run(lambda: service.write(_plain(service.get(id)), 1)))

    @app.post("/api/items/get", response_model=models.FullItems, responses=missing)
    async def get_items(body: models.IdsBody) -> Response:
        """Return all of some items."""
        check(len(body.ids))

        def write() -> bytearray:
            levels = 3 if (collection.n_features or 0) > LONG_VECTOR else 2
            return service.write({"items": map(_plain, collection.get(body.ids))}, levels)

        return Json(await reads.run(write))

    @app.post("/api/items", response_model=models.Added, responses=_errors(400, 403, 409))
    async def add(body: models.AddBody) -> Response:
        """Add items, and learn from those that have labels."""
        check(len(body.vectors), what="vectors")
        items = Addition(body.ids, body.vectors, body.labels, body.metadata, body.existing)
        return Json({"added": await service.adds.add(items, writes.run)})

    @app.post("/api/labels", response_model=models.Labelled, responses=_errors(400, 403, 404))
    async def label(body: models.LabelBody) -> Response:
        """Give items labels, and learn from them."""
        check(len(body.ids))
        await writes.run(collection.label, body.ids, body.labels)
        return Json({"labelled": len(body.ids)})

    @app.post("/api/metadata", response_model=models.Described, responses=_errors(400, 403, 404))
    async def set_metadata(body: models.MetadataBody) -> Response:
        """Give items other metadata; nothing is learned."""
        check(len(body.ids))
        await writes.run(collection.set_metadata, body.ids, body.metadata)
        return Json({"described": len(body.ids)})

    @app.post("/api/feedback", response_model=models.Judged, responses=_errors(400, 403, 404))
    async def feedback(body: models.FeedbackBody) -> Response:
        """Judge answers, and learn from that."""
        if (body.vectors is None) == (body.query_ids is None):
            raise HTTPException(422, "pass either vectors or query_ids.")
        check(len(body.ids))
        asked = {"query": body.vectors, "query_id": body.query_ids}
        n = await writes.run(collection.feedback, id=body.ids, good=body.good, **asked)
        service.outdate_report()
        return Json({"judged": n})

    @app.post("/api/items/delete", response_model=models.Deleted, responses=_errors(400, 403, 404))
    async def delete(body: models.IdsBody) -> Response:
        """Delete items; what was learned from them is forgotten, if the method can."""
        check(len(body.ids))
        await writes.run(collection.delete, body.ids)
        return Json({"deleted": len(body.ids)})

    responses: Responses = {202: {"model": models.Refreshing}, **_errors(400, 403, 409)}

    @app.post("/api/refresh", response_model=models.Refreshing, responses=responses)
    async def refresh(body: models.RefreshBody) -> Response:
        """Encode all items with what has been learned, and serve that."""
        return refreshing(await service.refresh(wait=body.wait))

    responses = {202: {"model": models.Refreshing}, **_errors(400, 403, 404, 409)}

    @app.post("/api/revert", response_model=models.Refreshing, responses=responses)
    async def revert(body: models.RevertBody) -> Response:
        """Encode all items with an older model, and serve that again."""
        return refreshing(await service.refresh(wait=body.wait, older=body.model))

    def refreshing(changed: bool | None) -> Response:
        running = changed is None
        return Json({"running": running, "changed": changed}, 202 if running else 200)


def _add_searches(app: FastAPI, service: _Service) -> None:
    errors, raw_answer = _errors(400, 404, 409), _content(TYPE, BINARY)

    @app.post("/api/encode", response_model=models.Encoded, responses=raw_answer | errors)
    async def encode(body: models.EncodeBody, request: Request) -> Response:
        """Return the codes of vectors by the model that serves."""
        service.limits.check(len(body.vectors), what="vectors")
        raw = TYPE in request.headers.get("accept", "")

        def answer() -> Response:
            number, codes = service.encode(body)
            if raw:
                head = {"model": number, "shape": [*codes.shape]}
                return Response(pack_frame(head, codes), media_type=TYPE)
            texts = [code.tobytes().hex() for code in codes]
            return Json(service.write({"model": number, "codes": texts}))

        return await service.reads.run(answer)

    @app.post("/api/search", response_model=models.Found, responses=raw_answer | errors)
    async def search(body: models.SearchBody, request: Request) -> Response:
        """Find the nearest items of vectors, or of stored items."""
        raw = TYPE in request.headers.get("accept", "")
        found = await service.search(body, metadata=body.metadata and not raw)

        def answer() -> Response:
            if raw:
                return _raw_found(found)
            facts = {"model": found.answer.model, "sample": found.sample}
            whole: dict[str, Any] = {**facts, "codes": found.codes()}
            at_once = found.answer.keys.size <= AT_ONCE
            results = found.results()
            whole["results"] = [[*row] for row in results] if at_once else results
            return Json(service.write(whole, 3, at_once=at_once))

        few = found.answer.keys.size <= NEIGHBOURS_AT_ONCE
        return answer() if few else await service.answers.run(answer)

    @app.post("/api/predict", response_model=models.Predicted, responses=errors)
    async def predict(body: models.PredictBody) -> Response:
        """Predict the labels of vectors by a vote of their neighbours."""
        service.limits.check(len(body.vectors), int(body.k), what="vectors")

        def write() -> bytearray:
            return service.write(service.collection.predict(body.vectors, int(body.k))._asdict())

        return Json(await service.reads.run(write))

    @app.post("/api/compare", response_model=models.Comparison, responses=errors)
    async def compare(body: models.CompareBody) -> Response:
        """Answer the same queries by two models or methods, on a sample of the items."""
        service.limits.check(len(body.queries), int(body.k), what="queries")
        compare = service.comparison.compare
        return Json(await service.heavy.run(lambda: service.write(compare(body), 4)))


def _add_page(app: FastAPI) -> None:
    """Serve the page's files: read once, so what a request names is looked up, never opened."""
    folder = files("streamhash.service").joinpath("page")
    page = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}

    @app.get("/", include_in_schema=False)
    @app.get("/static/{name:path}", include_in_schema=False)
    async def file(name: str = "index.html") -> Response:
        if name not in page:
            raise HTTPException(404)
        kind = PAGE_TYPES[name.rpartition(".")[2]]
        return Response(page[name], media_type=kind, headers={"Cache-Control": "no-cache"})
