"""The addresses that tell how a collection does, and give it another model."""

from fastapi import FastAPI
from starlette.responses import Response

from streamhash.errors import ReadOnlyError
from streamhash.service import models
from streamhash.service.answers import Json
from streamhash.service.description import Responses, errors
from streamhash.service.display import read_display, write_display
from streamhash.service.routing import Here


def add_reports(app: FastAPI, prefix: str) -> None:
    """Add these addresses, which begin with ``prefix``."""

    @app.get(f"{prefix}/status", response_model=models.StatusBody)
    async def status(here: Here) -> Response:
        """Tell how the collection does, as of a second ago."""
        return Json((await here.report())[0])

    @app.get(f"{prefix}/history", response_model=models.HistoryBody)
    async def history(here: Here) -> Response:
        """Tell the refreshes, the alarms of drift, and quality over time."""
        return Json((await here.report())[1])

    @app.get(f"{prefix}/models", response_model=list[models.ModelFacts])
    async def list_models(here: Here) -> Response:
        """List the models that serve or have served."""

        def write() -> bytearray:
            return here.write([{"number": n, **facts} for n, facts in here.collection.models()])

        return Json(await here.reads.run(write))

    @app.get(f"{prefix}/display", response_model=models.DisplaySaid)
    async def display(here: Here) -> Response:
        """Tell which fields of the metadata people see first, as was said or is guessed."""
        return Json(await here.reads.run(read_display, here.collection))

    @app.put(f"{prefix}/display", response_model=models.DisplaySaid, responses=errors(400, 403))
    async def set_display(here: Here, body: models.Display) -> Response:
        """Say which fields of the metadata people see first."""
        if here.collection.read_only:
            raise ReadOnlyError("display: this collection is open to read only.")
        await here.changes.run(write_display, here.collection, body.model_dump())
        here.outdate_report()
        return Json({**body.model_dump(), "guessed": False})

    responses: Responses = {202: {"model": models.Refreshing}, **errors(400, 403, 409)}

    @app.post(f"{prefix}/refresh", response_model=models.Refreshing, responses=responses)
    async def refresh(here: Here, body: models.RefreshBody) -> Response:
        """Encode all items with what has been learned, and serve that."""
        return refreshing(await here.refresh(wait=body.wait))

    responses = {202: {"model": models.Refreshing}, **errors(400, 403, 404, 409)}

    @app.post(f"{prefix}/revert", response_model=models.Refreshing, responses=responses)
    async def revert(here: Here, body: models.RevertBody) -> Response:
        """Encode all items with an older model, and serve that again."""
        return refreshing(await here.refresh(wait=body.wait, older=body.model))

    def refreshing(changed: bool | None) -> Response:
        running = changed is None
        return Json({"running": running, "changed": changed}, 202 if running else 200)
