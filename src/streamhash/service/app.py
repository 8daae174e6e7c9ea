"""The service as one application: all its addresses, behind the guard."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from importlib.resources import files
from os import PathLike
from pathlib import Path, PurePath

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from streamhash import __version__
from streamhash.errors import ServiceError
from streamhash.live import Collection
from streamhash.service import models
from streamhash.service.answers import Json, write_json
from streamhash.service.collections import Collections
from streamhash.service.description import OF_NAMED, OF_ONE, TEXT, content, describe, errors
from streamhash.service.files import add_files
from streamhash.service.guard import Guard, Limits, Tokens, host_patterns
from streamhash.service.items import add_items
from streamhash.service.metrics import Metrics
from streamhash.service.reports import add_reports
from streamhash.service.routing import (
    Bodies,
    BodyRoute,
    Here,
    handle_errors,
    short_way,
)
from streamhash.service.searches import add_searches
from streamhash.service.workers import Workers
from streamhash.threads import single_threaded_blas

PAGE_TYPES = {
    "html": "text/html",
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
}


def create_app(
    collection: Collection | Mapping[str, Collection],
    *,
    folder: str | PathLike[str] | None = None,
    tokens: Tokens | None = None,
    host: str = "127.0.0.1",
    allowed_hosts: Iterable[str] = (),
    limits: Limits | None = None,
) -> ASGIApp:
    """Return the service of collections, as an ASGI application; who calls closes them.

    Parameters
    ----------
    collection : Collection, or a dict of several by their names
        Open them with ``background=True``, so that adding does not wait for refreshes.
    folder : path
        Where collections are created, and of which they are dropped; None: of nowhere.
    tokens : Tokens
        What opens it; by default it is open.
    host : str
        Where it listens: on loopback, requests for other hosts are refused.
    allowed_hosts : names
        Other names that it goes by, behind a proxy.
    limits : Limits
    """
    limits = limits or Limits()
    if isinstance(collection, Collection):
        collection = {PurePath(collection.address).name: collection}
    collections = Collections(collection, limits, None if folder is None else Path(folder))
    metrics, bodies = Metrics(collections), Bodies(limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # Held all the while: to set and restore it for every search, in threads, takes BLAS 6 ms.
        with single_threaded_blas():
            yield
            collections.close()
            bodies.close()

    app = FastAPI(
        title="streamhash",
        version=__version__,
        description="Live collections: learn, store and search at once. What is below /api here is "
        "below /api/collections/NAME too, and only there if there are several.",
        docs_url=None,  # these two would load programs from elsewhere
        redoc_url=None,
        openapi_url=None,  # below, as the width of vectors may become known later
        lifespan=lifespan,
        responses=errors(401, 404, 408, 413, 415, 421, 422, 500, 503, 507),  # of any address
    )
    app.router.route_class = BodyRoute
    app.state.collections, app.state.bodies = collections, bodies
    handle_errors(app)
    for prefix in (OF_ONE, OF_NAMED):
        add_searches(app, prefix, limits)  # first, as addresses are tried in this order
        add_items(app, prefix, limits)
        add_reports(app, prefix)
        add_files(app, prefix)
    _add_collections(app, collections, limits)
    _add_process(app, collections, limits, metrics)
    _add_page(app)
    quick = short_way(app, collections)
    return Guard(quick, tokens or Tokens(), host_patterns(host, allowed_hosts), limits, metrics)


def _add_collections(app: FastAPI, collections: Collections, limits: Limits) -> None:
    @app.get("/api/collections", response_model=models.CollectionList)
    async def list_collections(request: Request) -> Response:
        """List the collections: how large they are, what serves, and how good it is."""
        each = [await here.reads.run(here.summary) for here in [*collections.served.values()]]
        may_write = request.scope["may_write"]
        can_create = may_write and collections.can_create
        known = {"collections": each, "can_create": can_create, "may_write": may_write}
        return Json(write_json(known, limits.answer))

    @app.post(
        "/api/collections",
        status_code=201,
        response_model=models.CollectionFacts,
        responses=errors(400, 403, 409),
    )
    async def create_collection(body: models.CreateBody) -> Response:
        """Make an empty collection."""
        here = await collections.create(body)
        return Json(await here.reads.run(here.summary), 201)

    @app.get("/api/collections/{name}", response_model=models.CollectionFacts)
    async def one_collection(here: Here) -> Response:
        """Tell of a collection what the list does."""
        return Json(await here.reads.run(here.summary))

    @app.delete(
        "/api/collections/{name}", response_model=models.Dropped, responses=errors(403, 409)
    )
    async def drop_collection(here: Here) -> Response:
        """Delete a collection, with all its items."""
        await collections.drop(here.name)
        return Json({"dropped": here.name})


def _add_process(app: FastAPI, collections: Collections, limits: Limits, metrics: Metrics) -> None:
    workers = Workers("read", 4, limits.searches)

    @lru_cache(2)
    def document(width: int | None, names: tuple[str, ...]) -> bytearray:
        return write_json(describe(app, width, limits, names), limits.answer)

    @app.get("/health", response_model=models.Health)
    async def health() -> Response:
        """Tell that the process answers."""
        return Json({"status": "ok"})

    @app.get("/ready", response_model=models.Ready)
    async def ready() -> Response:
        """Tell whether a model serves, of any collection."""

        def serves() -> bool:
            return any(here.collection.model_number for here in [*collections.served.values()])

        if not await workers.run(serves):
            raise ServiceError(503, "not_ready", "no model has been learned yet.")
        return Json({"ready": True})

    @app.get("/metrics", response_class=Response, responses=content("text/plain", TEXT))
    async def prometheus() -> Response:
        """Return the measures, for Prometheus."""
        text = await workers.run(metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/openapi.json", include_in_schema=False)
    async def description() -> Response:
        served = [*collections.served.values()]
        widths = {here.collection.n_features for here in served}
        width = widths.pop() if len(widths) == 1 else None
        return Json(await workers.run(document, width, tuple(here.name for here in served)))


def _add_page(app: FastAPI) -> None:
    """Serve the page's files: read once, so what a request names is looked up, never opened."""
    folder = files("streamhash.service").joinpath("page")
    page = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}

    @app.get("/", include_in_schema=False)
    @app.get("/static/{name:path}", include_in_schema=False)
    async def file(name: str = "index.html") -> Response:
        return send(name)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return send("docs.html")

    def send(name: str) -> Response:
        if name not in page:
            raise HTTPException(404)
        kind = PAGE_TYPES[name.rpartition(".")[2]]
        return Response(page[name], media_type=kind, headers={"Cache-Control": "no-cache"})
