"""The addresses of a collection's items: listed, shown, added, changed, judged and deleted."""

from typing import Annotated, Any

from fastapi import FastAPI, Path, Query
from starlette.exceptions import HTTPException
from starlette.responses import Response

from streamhash.live import Addition, Item
from streamhash.service import models
from streamhash.service.answers import Json
from streamhash.service.description import BINARY, content, errors
from streamhash.service.guard import Limits
from streamhash.service.routing import Here

ItemId = Annotated[str, Path(max_length=1000, description="The item's id.", examples=["0"])]

LONG_VECTOR = 1_000  # numbers of a vector; one that is longer is written in pieces


def _plain(item: Item) -> dict[str, Any]:
    """Return an item as it is written; a long vector as an array, which is taken apart."""
    vector = item.vector if len(item.vector) > LONG_VECTOR else item.vector.tolist()
    code = None if item.code is None else item.code.tobytes().hex()
    return {**item._asdict(), "vector": vector, "code": code}


def add_items(app: FastAPI, prefix: str, limits: Limits) -> None:
    """Add these addresses, which begin with ``prefix``."""
    check, missing = limits.check, errors(400, 404)

    @app.get(f"{prefix}/items", response_model=models.ItemList)
    async def list_items(
        here: Here,
        offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=limits.page)] = 50,
        newest: bool = False,
    ) -> Response:
        """List items, as they were added or the newest first."""
        return Json(
            await here.reads.run(lambda: here.write(here.list_items(offset, limit, newest)))
        )

    @app.get(
        f"{prefix}/items/{{id:path}}/image",
        response_class=Response,
        responses=content("image/png", BINARY) | missing,
    )
    async def image(here: Here, id: ItemId) -> Response:
        """Return the vector as a picture, where the metadata say that it is one."""
        drawn = await here.reads.run(here.image, id)
        return Response(drawn, media_type="image/png", headers={"Cache-Control": "no-cache"})

    @app.get(f"{prefix}/items/{{id:path}}", response_model=models.FullItem, responses=missing)
    async def one_item(here: Here, id: ItemId) -> Response:
        """Return all of an item."""
        return Json(await here.reads.run(lambda: here.write(_plain(here.get(id)), 1)))

    @app.post(f"{prefix}/items/get", response_model=models.FullItems, responses=missing)
    async def get_items(here: Here, body: models.IdsBody) -> Response:
        """Return all of some items."""
        check(len(body.ids))

        def write() -> bytearray:
            levels = 3 if (here.collection.n_features or 0) > LONG_VECTOR else 2
            return here.write({"items": map(_plain, here.collection.get(body.ids))}, levels)

        return Json(await here.reads.run(write))

    @app.post(f"{prefix}/items", response_model=models.Added, responses=errors(400, 403, 409))
    async def add(here: Here, body: models.AddBody) -> Response:
        """Add items, and learn from those that have labels."""
        check(len(body.vectors), what="vectors")
        items = Addition(body.ids, body.vectors, body.labels, body.metadata, body.existing)
        return Json({"added": await here.adds.add(items, here.writes.run)})

    @app.post(f"{prefix}/labels", response_model=models.Labelled, responses=errors(400, 403, 404))
    async def label(here: Here, body: models.LabelBody) -> Response:
        """Give items labels, and learn from them."""
        check(len(body.ids))
        await here.writes.run(here.collection.label, body.ids, body.labels)
        return Json({"labelled": len(body.ids)})

    @app.post(
        f"{prefix}/metadata", response_model=models.Described, responses=errors(400, 403, 404)
    )
    async def set_metadata(here: Here, body: models.MetadataBody) -> Response:
        """Give items other metadata; nothing is learned."""
        check(len(body.ids))
        await here.writes.run(here.collection.set_metadata, body.ids, body.metadata)
        return Json({"described": len(body.ids)})

    @app.post(f"{prefix}/feedback", response_model=models.Judged, responses=errors(400, 403, 404))
    async def feedback(here: Here, body: models.FeedbackBody) -> Response:
        """Judge answers, and learn from that."""
        if (body.vectors is None) == (body.query_ids is None):
            raise HTTPException(422, "pass either vectors or query_ids.")
        check(len(body.ids))
        asked = {"query": body.vectors, "query_id": body.query_ids}
        n = await here.writes.run(here.collection.feedback, id=body.ids, good=body.good, **asked)
        here.outdate_report()
        return Json({"judged": n})

    @app.post(
        f"{prefix}/items/delete", response_model=models.Deleted, responses=errors(400, 403, 404)
    )
    async def delete(here: Here, body: models.IdsBody) -> Response:
        """Delete items; what was learned from them is forgotten, if the method can."""
        check(len(body.ids))
        await here.writes.run(here.collection.delete, body.ids)
        return Json({"deleted": len(body.ids)})
