"""The OpenAPI description: made from the routes and models, with examples that work here."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from streamhash.service.frames import TYPE
from streamhash.service.models import (
    AddBody,
    CompareBody,
    EncodeBody,
    ErrorBody,
    IdsBody,
    LabelBody,
    RefreshBody,
    SearchBody,
)

__all__ = ["body_of", "describe_api", "errors", "raw_answer"]

REF = "#/components/schemas/{model}"
USUAL = (401, 408, 413, 415, 421, 422, 500, 503, 507)  # what any address may answer
BODIES = (AddBody, SearchBody, EncodeBody, CompareBody, LabelBody, IdsBody, RefreshBody)
WORDS = {
    400: "Well-formed, but of no use for this collection.",
    401: "No token, or a wrong one.",
    403: "Not with this token, or not in this collection.",
    404: "Not there.",
    408: "The body was too slow.",
    409: "In conflict with what is there.",
    413: "Too much for one request.",
    415: "A type of body that is not taken.",
    421: "Meant for another host.",
    422: "Not as described here.",
    500: "An accident.",
    503: "Too much to do, or not ready; Retry-After tells when to come back.",
    507: "The disk, or what holds the collection, failed.",
}


def errors(*more: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors of an address: the usual ones and more."""
    return {
        status: {"model": ErrorBody, "description": WORDS[status]}
        for status in sorted({*USUAL, *more})
    }


def body_of(model: type[BaseModel], *, raw: bool = False) -> dict[str, Any]:
    """Describe the body of a request."""
    content: dict[str, Any] = {
        "application/json": {"schema": {"$ref": REF.format(model=model.__name__)}}
    }
    if raw:
        content[TYPE] = {
            "schema": {
                "type": "string",
                "format": "binary",
                "description": "4 bytes: length of the head, least first; the head: the JSON body "
                'without vectors, with "shape": [rows, columns]; the vectors as float32.',
            }
        }
    return {"requestBody": {"required": True, "content": content}}


def raw_answer() -> dict[int | str, dict[str, Any]]:
    """Describe the raw form of an answer."""
    schema = {"type": "string", "format": "binary"}
    return {200: {"content": {TYPE: {"schema": schema}}, "description": "JSON, or raw if asked."}}


def describe_api(app: FastAPI, width: int | None) -> dict[str, Any]:
    """Return the description; ``width`` is the length of this collection's vectors, if known."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    _, schemas = models_json_schema([(model, "validation") for model in BODIES], ref_template=REF)
    components = document.setdefault("components", {})
    components.setdefault("schemas", {}).update(schemas["$defs"])
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}, {}]
    if width is not None:
        _say_width(components["schemas"], width)
    examples = _examples(width or 3)
    for path in document["paths"].values():
        for operation in path.values():
            content = operation.get("requestBody", {}).get("content", {})
            for described in content.values():
                name = described.get("schema", {}).get("$ref", "").rpartition("/")[2]
                if name in examples:
                    described["examples"] = {
                        title: {"value": value} for title, value in examples[name].items()
                    }
    return document


def _say_width(value: Any, width: int) -> None:
    """Put the length of vectors wherever there are vectors."""
    if isinstance(value, list):
        for each in value:
            _say_width(each, width)
    elif isinstance(value, dict):
        if value.get("title") == "Vector":
            value.update(minItems=width, maxItems=width)
        for each in value.values():
            _say_width(each, width)


def _examples(width: int) -> dict[str, dict[str, Any]]:
    vector = [round(0.5 - i % 3 / 2, 1) for i in range(width)]
    return {
        "SearchBody": {
            "by vectors": {"vectors": [vector], "k": 3},
            "by items": {"ids": [0], "k": 3, "metadata": False},
        },
        "EncodeBody": {"two": {"vectors": [vector, vector]}},
        "AddBody": {
            "one with a label": {
                "ids": [1_000_000],
                "vectors": [vector],
                "labels": [1],
                "metadata": [{"name": "an item"}],
                "existing": "replace",
            }
        },
        "LabelBody": {"one": {"ids": [0], "labels": [1]}},
        "IdsBody": {"one": {"ids": [0]}},
        "RefreshBody": {"in the background": {"wait": False}},
        "CompareBody": {
            "with random projections": {
                "queries": [0],
                "k": 5,
                "left": {"model": 1},
                "right": {"method": "lsh"},
            }
        },
    }
