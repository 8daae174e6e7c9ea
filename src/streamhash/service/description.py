"""The service in the words of OpenAPI: what FastAPI writes, and what it cannot know."""

from copy import deepcopy
from typing import Any

from fastapi import FastAPI

from streamhash.service import models
from streamhash.service.guard import Limits

WIDEST_EXAMPLE = 1_000  # numbers of a vector that the description shows

OF_ONE = "/api"  # begins the addresses of the only collection of a service,
OF_NAMED = "/api/collections/{name}"  # and those of any

Responses = dict[int | str, dict[str, Any]]
TEXT = {"type": "string"}
BINARY = {"type": "string", "format": "binary"}
RAW_BODY = {
    **BINARY,
    "description": "4 bytes: length of the head, least first; the head: the JSON body without "
    'vectors, with "shape": [rows, columns]; the vectors as float32.',
}
NAME = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": "The collection.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}


def errors(*statuses: int) -> Responses:
    """Say with which errors an address may answer."""
    return {status: {"model": models.ErrorBody} for status in statuses}


def content(kind: str, schema: dict[str, str]) -> Responses:
    """Say that an address may answer with something that is no JSON."""
    return {200: {"content": {kind: {"schema": schema}}}}


def describe(
    app: FastAPI, width: int | None, limits: Limits, names: tuple[str, ...]
) -> dict[str, Any]:
    """Return all of it, with tokens, limits, the length of vectors and the collections' names.

    Of the two addresses of everything, those of a service with one collection are the short ones.
    """
    document = deepcopy(app.openapi())
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}, {}]
    paths: dict[str, Any] = document["paths"]
    named = [path for path in paths if path.startswith(f"{OF_NAMED}/")]
    short = [path.replace(OF_NAMED, OF_ONE) for path in named]
    for path in named if len(names) == 1 else short:
        del paths[path]
    name = {**NAME, "example": names[0]} if names else NAME
    for path, operations in paths.items():
        for each in operations.values() if "{name}" in path else ():
            each["parameters"] = [name, *each.get("parameters", ())]
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
