"""The service proper: which address does what."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from numpy.typing import NDArray
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from streamhash import __version__
from streamhash.errors import StreamhashError
from streamhash.live import Collection, Item
from streamhash.service import models
from streamhash.service.bodies import explain, read_json, read_vectors, wants_raw
from streamhash.service.desk import Desk, hex_codes
from streamhash.service.errors import Refusal, refusal_of
from streamhash.service.frames import TYPE, pack_frame
from streamhash.service.guard import Guard
from streamhash.service.limits import Bodies, Limits
from streamhash.service.metrics import Metrics
from streamhash.service.openapi import body_of, describe_api, errors, raw_answer
from streamhash.service.pictures import picture_shape, png
from streamhash.service.security import Tokens, host_names
from streamhash.service.static import FRONT, read_page
from streamhash.threads import single_threaded_blas

__all__ = ["create_app"]

FEW = 1_000  # neighbours that are written as JSON at once; more of them in a thread

ItemId = Annotated[str, Path(max_length=1000, description="The item's id.", examples=["0"])]


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
    desk = Desk(collection, limits)
    metrics, bodies = Metrics(desk), Bodies(limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # Held all the while: to set and restore it for every search, in threads, takes BLAS 6 ms.
        with single_threaded_blas():
            yield
            desk.close()

    app = FastAPI(
        title="streamhash",
        version=__version__,
        description="A live collection: learn, store and search at once.",
        docs_url=None,  # these two would load programs from elsewhere
        redoc_url=None,
        openapi_url=None,  # below, as the width of vectors may become known later
        lifespan=lifespan,
    )
    _handle_errors(app)
    _add_reports(app, desk, metrics)
    _add_items(app, desk, bodies)
    _add_searches(app, desk, bodies)
    _add_page(app)
    names = host_names(host, allowed_hosts)
    return Guard(app, tokens=tokens or Tokens(), hosts=names, limits=limits, metrics=metrics)


def _handle_errors(app: FastAPI) -> None:
    def answer(refusal: Refusal) -> Response:
        return Response(
            refusal.body(), refusal.status, refusal.headers, media_type="application/json"
        )

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        return answer(Refusal(422, explain(error.errors())))

    @app.exception_handler(HTTPException)
    async def by_status(request: Request, error: HTTPException) -> Response:
        status = error.status_code
        words = {404: "there is nothing at this address.", 405: "not by this method."}
        headers = {"Allow": _methods(app, request.url.path)} if status == 405 else error.headers
        return answer(Refusal(status, words.get(status, str(error.detail)), headers=headers))

    async def other(_: Request, error: Exception) -> Response:
        return answer(refusal_of(error))

    for kind in (Refusal, StreamhashError, Exception):
        app.add_exception_handler(kind, other)


def _methods(app: FastAPI, path: str) -> str:
    """Return the methods of an address: of those with this very path, else of those that match."""
    routes = [route for route in app.routes if isinstance(route, APIRoute)]
    chosen = [route for route in routes if route.path == path]
    chosen = chosen or [route for route in routes if route.path_regex.match(path)]
    return ", ".join(sorted({method for route in chosen for method in route.methods or ()}))


def _add_reports(app: FastAPI, desk: Desk, metrics: Metrics) -> None:
    collection = desk.collection

    @app.get("/health", response_model=models.Health, responses=errors(421))
    async def health() -> Response:
        """Tell that the process answers."""
        return JSONResponse({"status": "ok"})

    @app.get("/ready", response_model=models.Ready, responses=errors(421, 503))
    async def ready() -> Response:
        """Tell whether a model serves."""
        if await desk.reads.run(lambda: collection.model_number) == 0:
            raise Refusal(503, "no model has been learned yet.", code="not_ready")
        return JSONResponse({"ready": True})

    @app.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **errors()},
    )
    async def prometheus() -> Response:
        """Return the measures, for Prometheus."""
        text = await desk.reads.run(metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/openapi.json", include_in_schema=False)
    async def description() -> Response:
        return JSONResponse(describe_api(app, desk.width()))

    @app.get("/api/status", response_model=models.StatusBody, responses=errors())
    async def status() -> Response:
        """Tell how the collection does, as of a second ago."""
        return JSONResponse((await desk.report(desk.reads))[0])

    @app.get("/api/history", response_model=models.HistoryBody, responses=errors())
    async def history() -> Response:
        """Tell the refreshes, the alarms of drift, and quality over time."""
        return JSONResponse((await desk.report(desk.reads))[1])

    @app.get("/api/models", response_model=list[models.ModelFacts], responses=errors())
    async def list_models() -> Response:
        """List the models that serve or have served."""
        return JSONResponse(await desk.reads.run(desk.models))


def _add_items(app: FastAPI, desk: Desk, bodies: Bodies) -> None:
    @app.get("/api/items", response_model=models.ItemList, responses=errors())
    async def list_items(
        offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=desk.limits.page)] = 50,
        newest: bool = False,
    ) -> Response:
        """List items, as they were added or the newest first."""
        return JSONResponse(await desk.reads.run(desk.list_items, offset, limit, newest))

    @app.get(
        "/api/items/{id:path}/image",
        response_class=Response,
        responses={
            200: {"content": {"image/png": {"schema": {"type": "string", "format": "binary"}}}},
            **errors(400, 404),
        },
    )
    async def image(id: ItemId) -> Response:
        """Return the vector as a picture, where the metadata say that it is one."""
        (item,) = await desk.reads.run(lambda: desk.get([desk.id_of(id)]))
        shape = picture_shape(item.metadata, len(item.vector))
        if shape is None:
            raise Refusal(404, "this item is no picture.")
        content = png(item.vector.reshape(shape))
        return Response(content, media_type="image/png", headers={"Cache-Control": "no-cache"})

    @app.get("/api/items/{id:path}", response_model=models.FullItem, responses=errors(400, 404))
    async def one_item(id: ItemId) -> Response:
        """Return all of an item."""
        (item,) = await desk.reads.run(lambda: desk.get([desk.id_of(id)]))
        return JSONResponse(_plain(item))

    @app.post(
        "/api/items/get",
        response_model=models.FullItems,
        responses=errors(400, 404),
        openapi_extra=body_of(models.IdsBody),
    )
    async def get_items(request: Request) -> Response:
        """Return all of some items."""
        body = await read_json(request, bodies, models.IdsBody)
        desk.check_number(len(body.ids), "ids")
        items = await desk.reads.run(desk.get, body.ids)
        return JSONResponse({"items": [_plain(item) for item in items]})

    @app.post(
        "/api/items",
        response_model=models.Added,
        responses=errors(400, 403, 409),
        openapi_extra=body_of(models.AddBody, raw=True),
    )
    async def add(request: Request) -> Response:
        """Add items, and learn from those that have labels."""
        vectors, options = await read_vectors(request, bodies, models.AddBody, models.AddOptions)
        rows = desk.rows(vectors, "add")
        return JSONResponse({"added": await desk.writes.run(desk.add, rows, options)})

    @app.post(
        "/api/labels",
        response_model=models.Labelled,
        responses=errors(400, 403, 404),
        openapi_extra=body_of(models.LabelBody),
    )
    async def label(request: Request) -> Response:
        """Give items labels, and learn from them."""
        body = await read_json(request, bodies, models.LabelBody)
        desk.check_number(len(body.ids), "ids")
        n = await desk.writes.run(desk.label, body.ids, body.labels)
        return JSONResponse({"labelled": n})

    @app.post(
        "/api/items/delete",
        response_model=models.Deleted,
        responses=errors(400, 403, 404),
        openapi_extra=body_of(models.IdsBody),
    )
    async def delete(request: Request) -> Response:
        """Delete items. What was learned from them stays learned."""
        body = await read_json(request, bodies, models.IdsBody)
        desk.check_number(len(body.ids), "ids")
        return JSONResponse({"deleted": await desk.writes.run(desk.delete, body.ids)})

    @app.post(
        "/api/refresh",
        response_model=models.Refreshing,
        responses={
            202: {"model": models.Refreshing, "description": "It goes on."},
            **errors(400, 403, 409),
        },
        openapi_extra=body_of(models.RefreshBody),
    )
    async def refresh(request: Request) -> Response:
        """Encode all items with what has been learned, and serve that."""
        body = await read_json(request, bodies, models.RefreshBody)
        changed = await desk.refresh(wait=body.wait)
        if changed is None:
            return JSONResponse({"running": True, "changed": None}, 202)
        return JSONResponse({"running": False, "changed": changed})


def _add_searches(app: FastAPI, desk: Desk, bodies: Bodies) -> None:
    @app.post(
        "/api/encode",
        response_model=models.Encoded,
        responses={**raw_answer(), **errors(400, 409)},
        openapi_extra=body_of(models.EncodeBody, raw=True),
    )
    async def encode(request: Request) -> Response:
        """Return the codes of vectors by the model that serves."""
        vectors, _ = await read_vectors(request, bodies, models.EncodeBody, models.EncodeOptions)
        number, codes = await desk.reads.run(desk.encode, desk.rows(vectors, "encode"))
        if wants_raw(request):
            head = {"model": number, "shape": [*codes.shape]}
            return Response(pack_frame(head, codes), media_type=TYPE)
        return JSONResponse({"model": number, "codes": hex_codes(codes)})

    @app.post(
        "/api/search",
        response_model=models.Found,
        responses={**raw_answer(), **errors(400, 404, 409)},
        openapi_extra=body_of(models.SearchBody, raw=True),
    )
    async def search(request: Request) -> Response:
        """Find the nearest items of vectors, or of stored items."""
        vectors, options = await read_vectors(
            request, bodies, models.SearchBody, models.SearchOptions
        )
        if vectors is not None and options.ids is not None:
            raise Refusal(422, "pass either vectors or ids.")
        raw = wants_raw(request)
        if raw:
            options = options.model_copy(update={"metadata": False})
        found = await desk.search(vectors, options)
        answer = found.answer
        if raw:
            ids, (n, k) = answer.ids(), answer.keys.shape
            head = {"model": answer.model, "sample": found.sample, "shape": [n, k]}
            head["code_bytes"] = answer.codes.shape[1]
            arrays: list[NDArray[Any]] = [answer.codes, answer.distances]
            if ids.dtype == object:  # strings are not of one length
                head["ids"] = ids.tolist()
            else:
                arrays.append(ids)
            return Response(pack_frame(head, *arrays), media_type=TYPE)

        def content() -> dict[str, Any]:
            return {
                "model": answer.model,
                "sample": found.sample,
                "codes": hex_codes(answer.codes),
                "results": found.results(),
            }

        few = answer.keys.size <= FEW
        return JSONResponse(content() if few else await desk.reads.run(content))

    @app.post(
        "/api/compare",
        response_model=models.Comparison,
        responses=errors(400, 404, 409),
        openapi_extra=body_of(models.CompareBody),
    )
    async def compare(request: Request) -> Response:
        """Answer the same queries by two models or methods, on a sample of the items."""
        body = await read_json(request, bodies, models.CompareBody)
        return JSONResponse(await desk.compare(body))


def _add_page(app: FastAPI) -> None:
    page = read_page()

    def file(name: str) -> Response:
        if name not in page:
            raise Refusal(404, "there is nothing at this address.")
        found = page[name]
        return Response(found.content, media_type=found.kind, headers={"Cache-Control": "no-cache"})

    @app.get("/", include_in_schema=False)
    async def front() -> Response:
        return file(FRONT)

    @app.get("/static/{name:path}", include_in_schema=False)
    async def static(name: str) -> Response:
        return file(name)


def _plain(item: Item) -> dict[str, Any]:
    return {
        "id": item.id,
        "label": item.label,
        "metadata": item.metadata,
        "vector": item.vector.tolist(),
        "code": None if item.code is None else item.code.tobytes().hex(),
    }
