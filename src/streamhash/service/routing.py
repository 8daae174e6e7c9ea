"""The way of a request to its function, past everything that it does not need."""

from collections.abc import Callable, Collection as Names
from inspect import signature
from typing import Annotated, Any

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from streamhash.service import models
from streamhash.service.bodies import Form, RefusedBody, read_body
from streamhash.service.collections import Collections
from streamhash.service.description import OF_NAMED, RAW_BODY
from streamhash.service.frames import TYPE
from streamhash.service.guard import Limits, answer_error, header
from streamhash.service.reader import SMALL, BodyReader
from streamhash.service.served import Served
from streamhash.service.workers import Workers

TAKEN = (  # what the function of a route with a body may take
    ["body"],
    ["here", "body"],
    ["here", "body", "request"],
    ["here", "id", "body"],
)


def _find(request: Request) -> Served:
    collections: Collections = request.app.state.collections
    return collections.find(request.path_params.get("name"))


Here = Annotated[Served, Depends(_find)]  # the collection that an address means


class Bodies:
    """Reads bodies; large ones elsewhere, and others are answered meanwhile."""

    def __init__(self, limits: Limits) -> None:
        self._most, self._reader = limits.vectors, BodyReader(limits.body_seconds)
        self._raw = Workers("read", 4, limits.searches)
        self._large = Workers("large", 1, limits.searches // 8)

    async def read(self, content: bytearray, names: Names[str], *, raw: bool) -> dict[str, Any]:
        """Return what a body says."""
        form = Form(names, self._most)
        try:
            if len(content) <= SMALL:
                return read_body(content, form, raw=raw)
            threads, read = self._raw if raw else self._large, self._reader.read
            return await threads.run(read_body, content, form, raw=raw, read=read)
        except RefusedBody as refused:
            raise HTTPException(refused.status, refused.text) from refused

    def close(self) -> None:
        """End the process that reads."""
        self._reader.close()


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
        if parameters not in TAKEN:
            raise TypeError(f"{path}: takes {parameters}; a route takes one of {TAKEN}.")
        self.is_of_collection = parameters[0] == "here"
        # Whether it is of a collection, and nothing of its address has to be found out but that.
        self.is_plain = self.is_of_collection and "id" not in parameters
        self._takes_id, self._takes_request = "id" in parameters, parameters[-1] == "request"
        self._model: type[BaseModel] = self.body_field.field_info.annotation  # type: ignore[assignment]
        self._taken = ["application/json"]
        if issubclass(self._model, models.VectorBody):
            self._taken.append(TYPE)
            self.openapi_extra = {"requestBody": {"content": {TYPE: {"schema": RAW_BODY}}}}
        self.app = self._find_and_answer

    async def _find_and_answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        here = _find(Request(scope)) if self.is_of_collection else None
        await self.answer(here, scope, receive, send)

    async def answer(self, here: Served | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, check it, call the function, and send its answer."""
        kind = header(scope, b"content-type").partition(";")[0].strip().lower()
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
        bodies: Bodies = scope["app"].state.bodies
        fields = await bodies.read(content, self._model.model_fields, raw=kind == TYPE)
        del content
        try:
            body = self._model.model_validate(fields)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
            places = [{**each, "loc": ("body", *each["loc"])} for each in errors]
            raise RequestValidationError(places) from None
        del fields
        if here is not None and here.is_dropped:  # while the body came
            raise HTTPException(404, "this collection has just been dropped.")
        if self._takes_id:
            response = await self.endpoint(here, scope["path_params"]["id"], body)
        elif here is None:
            response = await self.endpoint(body)
        elif self._takes_request:
            response = await self.endpoint(here, body, Request(scope, receive))
        else:
            response = await self.endpoint(here, body)
        await response(scope, receive, send)


def short_way(app: FastAPI, collections: Collections) -> ASGIApp:
    """Let requests with a body pass by Starlette's middleware: the guard answers all errors.

    Address and collection are found by one look into a table, which is made anew when a collection
    comes or goes.
    """
    routes = [
        (method, each)
        for each in app.routes
        if isinstance(each, BodyRoute) and each.body_field is not None and each.is_plain
        for method in each.methods or ()
    ]
    made_for: dict[str, Served] | None = None
    table: dict[Any, tuple[BodyRoute, Served]] = {}

    def make_table(served: dict[str, Served]) -> None:
        nonlocal made_for, table
        table, made_for = {}, served
        for method, route in routes:
            if route.path.startswith(OF_NAMED):
                rest = route.path.removeprefix(OF_NAMED)
                table |= {
                    (method, f"/api/collections/{name}{rest}"): (route, each)
                    for name, each in served.items()
                }
            elif len(served) == 1:
                table[method, route.path] = route, next(iter(served.values()))

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if made_for is not collections.served:
            make_table(collections.served)
        found = table.get((scope.get("method"), scope.get("path")))
        if found is None:
            await app(scope, receive, send)
        else:
            route, here = found
            scope.update(app=app, route=route)
            await route.answer(here, scope, receive, send)

    return answer


def handle_errors(app: FastAPI) -> None:
    """Answer errors of Starlette's way as the guard does."""

    async def answer(_: Request, error: Exception) -> Response:
        return answer_error(error)

    async def no_method(request: Request, _: Exception) -> Response:
        """Name the methods of an address; Starlette would name those of one route alone."""
        all_routes = (each for each in app.routes if isinstance(each, APIRoute))
        routes = [each for each in all_routes if each.include_in_schema]
        there = [each for each in routes if each.path_regex.match(request.url.path)]
        nearest = min(there, key=lambda each: (each.path.count("{"), -len(each.path))).path
        named = (each.methods or () for each in there if each.path == nearest)
        methods = {name for names in named for name in names}  # items/get is meant for no id
        allow = {"Allow": ", ".join(sorted(methods))}
        return answer_error(HTTPException(405, "not by this method.", allow))

    for kind in (HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, answer)
    app.add_exception_handler(405, no_method)
