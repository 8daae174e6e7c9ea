"""Bodies of requests, JSON or raw, into what the service understands."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from streamhash.errors import InputError
from streamhash.service.errors import Refusal
from streamhash.service.frames import TYPE, read_array, unpack_frame
from streamhash.service.limits import Bodies

__all__ = ["explain", "read_json", "read_vectors", "wants_raw"]

Body = TypeVar("Body", bound=BaseModel)
Options = TypeVar("Options", bound=BaseModel)


async def read_json(request: Request, bodies: Bodies, model: type[Body]) -> Body:
    """Read a body that is JSON and nothing else."""
    if _is_raw(request):
        raise Refusal(415, "send Content-Type: application/json.")
    return _parse(model, await bodies.read(request))


async def read_vectors(
    request: Request, bodies: Bodies, model: type[Options], options: type[Options]
) -> tuple[Any, Options]:
    """Read a body with vectors, JSON or raw; return the vectors, and what else it says."""
    raw = _is_raw(request)
    content = await bodies.read(request)
    if not raw:
        body = _parse(model, content)
        return getattr(body, "vectors", None), body
    try:
        head, numbers = unpack_frame(content)
        rows, rest = read_array(numbers, "float32", head.pop("shape", None))
        if len(rest):
            raise InputError(f"raw body: {len(rest)} bytes came after the numbers.")
        return rows, options.model_validate(head)
    except InputError as error:
        raise Refusal(422, str(error)) from error
    except ValidationError as error:
        raise Refusal(422, explain(error.errors(include_url=False))) from error


def _parse(model: type[Body], content: bytes) -> Body:
    try:
        return model.model_validate_json(content or b"{}")
    except ValidationError as error:
        raise Refusal(422, explain(error.errors(include_url=False))) from error


def explain(errors: Any) -> str:
    """Tell the first thing that is wrong, and how many more there are."""
    first = errors[0]
    # Beside names and places in lists, pydantic names types that were tried.
    parts = [str(part) for part in first["loc"] if str(part).isalnum()]
    place = ".".join(parts) or "body"
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{place}: {first['msg']}{more}."[:500]


def _is_raw(request: Request) -> bool:
    """Whether a body is raw; one that is not JSON either is refused.

    A page of another site can make a browser send forms and text here, but neither of these two
    types without asking first, which is answered with no.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (TYPE, "application/json"):
        raise Refusal(415, f"send Content-Type: application/json, or {TYPE} for raw vectors.")
    return kind == TYPE


def wants_raw(request: Request) -> bool:
    """Whether the answer is to be raw."""
    return TYPE in request.headers.get("accept", "")
