"""The addresses of a collection's items: listed, shown, added, changed, judged and deleted."""

import json
from functools import partial
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query
from starlette.exceptions import HTTPException
from starlette.responses import Response

from streamhash.live import Addition, Deletion, Description, Item, Labelling
from streamhash.service import models
from streamhash.service.answers import Json
from streamhash.service.description import BINARY, content, errors
from streamhash.service.guard import Limits
from streamhash.service.routing import Here
from streamhash.service.served import Served

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

    @app.get(f"{prefix}/items", response_model=models.ItemList, responses=errors(400))
    async def list_items(
        here: Here,
        offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=limits.page)] = 50,
        newest: bool = False,
        where: Annotated[str | None, Query(max_length=10_000)] = None,
        sort: Annotated[str | None, Query(max_length=1000)] = None,
        descending: bool = False,
    ) -> Response:
        """List items, as they were added, the newest first, or by a field; all, or some."""
        order = {"newest": newest, "sort": sort, "descending": descending}

        def write() -> bytearray:
            return here.write(here.list_items(offset, limit, where=where, **order))

        return Json(await here.reads.run(write))

    @app.get(f"{prefix}/labels", response_model=models.LabelCounts)
    async def count_labels(here: Here) -> Response:
        """Tell how many items have each label, the most frequent first."""

        def write() -> bytearray:
            counts = here.collection.count_labels()
            rows = [{"label": label, "items": n} for label, n in counts.items()]
            return here.write({"labels": sorted(rows, key=lambda each: -each["items"])})

        return Json(await here.reads.run(write))

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

    @app.api_route(
        f"{prefix}/items/{{id:path}}/image",
        methods=["PUT", "PATCH", "DELETE"],
        include_in_schema=False,
    )
    async def picture_as_item() -> Response:
        """Refuse what would be meant for an item with this end of its id: it is a picture."""
        raise HTTPException(405)

    @app.put(
        f"{prefix}/items/{{id:path}}",
        response_model=models.Stored,
        responses={201: {"model": models.Stored}, **errors(400, 403, 409)},
    )
    async def put_item(here: Here, id: ItemId, body: models.ItemBody) -> Response:
        """Store an item under this id, also in the place of another; learn from its label."""

        def item() -> Addition:
            name = here.id_of(id)
            return Addition([name], [body.vector], [body.label], body.metadata, "replace")

        created = (await here.writes.write(1, item)).created == 1
        return Json({"created": created}, 201 if created else 200)

    @app.patch(
        f"{prefix}/items/{{id:path}}",
        response_model=models.FullItem,
        responses=errors(400, 403, 404, 409),
    )
    async def change_item(here: Here, id: ItemId, body: models.ItemChanges) -> Response:
        """Change vector, label or fields of the metadata of an item; return all of it."""

        def do() -> bytearray:
            with here.writes.held_up:  # what it reads is there until it has written
                return here.write(_plain(change(here, id, body)), 1)

        return Json(await here.changes.run(do))

    @app.delete(
        f"{prefix}/items/{{id:path}}",
        response_model=models.Deleted,
        responses=errors(400, 403, 404),
    )
    async def delete_item(here: Here, id: ItemId) -> Response:
        """Delete an item; what was learned from it is forgotten, if the method can."""
        await here.writes.write(1, lambda: Deletion([here.id_of(id)]))
        return Json({"deleted": 1})

    def change(here: Served, text: str, body: models.ItemChanges) -> Item:
        collection, item, given = here.collection, here.get(text), body.model_fields_set
        metadata = item.metadata
        if "metadata" in given:
            metadata = None if body.metadata is None else merged(metadata, body.metadata)
        if "vector" in given and body.vector is not None:
            label = body.label if "label" in given else item.label
            rows = [body.vector]
            collection.add([item.id], rows, [label], metadata=[metadata], existing="replace")
        else:
            if "label" in given:
                collection.label([item.id], [body.label])
            if "metadata" in given:
                collection.set_metadata([item.id], [metadata])
        return collection.get([item.id])[0]

    def merged(before: Any, changes: Any) -> Any:
        """Return metadata with changes, as JSON merge patch has it."""
        if isinstance(changes, list):  # as they were read
            changes = json.loads(changes[0])
        if not isinstance(changes, dict):
            return changes
        after = dict(before) if isinstance(before, dict) else {}
        for name, value in changes.items():
            if value is None:
                after.pop(name, None)
            else:
                after[name] = merged(after.get(name), value)
        return after

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

        def items() -> Addition:
            return Addition(body.ids, body.vectors, body.labels, body.metadata, body.existing)

        return Json({"added": (await here.writes.write(len(body.vectors), items)).items})

    @app.post(f"{prefix}/labels", response_model=models.Labelled, responses=errors(400, 403, 404))
    async def label(here: Here, body: models.LabelBody) -> Response:
        """Give items labels, and learn from them."""
        check(len(body.ids))
        await here.writes.write(len(body.ids), lambda: Labelling(body.ids, body.labels))
        return Json({"labelled": len(body.ids)})

    @app.post(
        f"{prefix}/metadata", response_model=models.Described, responses=errors(400, 403, 404)
    )
    async def set_metadata(here: Here, body: models.MetadataBody) -> Response:
        """Give items other metadata; nothing is learned."""
        check(len(body.ids))
        await here.writes.write(len(body.ids), lambda: Description(body.ids, body.metadata))
        return Json({"described": len(body.ids)})

    @app.post(f"{prefix}/feedback", response_model=models.Judged, responses=errors(400, 403, 404))
    async def feedback(here: Here, body: models.FeedbackBody) -> Response:
        """Judge answers, and learn from that."""
        if (body.vectors is None) == (body.query_ids is None):
            raise HTTPException(422, "pass either vectors or query_ids.")
        check(len(body.ids))
        asked = {"query": body.vectors, "query_id": body.query_ids}
        judge = partial(here.collection.feedback, id=body.ids, good=body.good, **asked)
        n = await here.changes.run_for(len(body.ids), judge)
        here.outdate_report()
        return Json({"judged": n})

    @app.post(
        f"{prefix}/items/delete", response_model=models.Deleted, responses=errors(400, 403, 404)
    )
    async def delete(here: Here, body: models.IdsBody) -> Response:
        """Delete items; what was learned from them is forgotten, if the method can."""
        check(len(body.ids))
        await here.writes.write(len(body.ids), lambda: Deletion(body.ids))
        return Json({"deleted": len(body.ids)})
