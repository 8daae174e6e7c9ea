"""Answers as JSON, written and sent piece by piece: no other request waits for a long one."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
from pydantic_core import PydanticSerializationError, to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

NUMBERS = 10_000  # of a vector that are written at once
AT_ONCE = 16  # elements of a list that are, each with metadata of a megabyte at most


class Json(Response):
    """JSON with null for what it cannot say, such as NaN."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes | memoryview:
        """Return the content as bytes; what is written already stays as it is."""
        return memoryview(content) if isinstance(content, bytearray) else _text(content)

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """Set the headers; most answers have no others than these two."""
        if headers is None:
            length = b"%d" % len(self.body)
            self.raw_headers = [(b"content-length", length), (b"content-type", b"application/json")]
        else:
            super().init_headers(headers)


def each_text(values: list[Any]) -> list[bytes]:
    """Return the JSON of each of some values; of numbers, all of it is written at once.

    >>> each_text([1.5, float("nan")]), each_text(["a, b", None])
    ([b'1.5', b'null'], [b'"a, b"', b'null'])
    """
    if not {*map(type, values)} <= {int, float}:
        return [_text(value) for value in values]
    return _texts(values).split(b",") if values else []


def write_json(value: Any, most: int, *, levels: int = 2) -> bytearray:
    """Return JSON of at most so many bytes; let other threads work between its parts.

    Lists, generators and dicts are taken apart for so many levels, and vectors are at any.

    >>> write_json({"a": (n for n in [1, 2]), "b": {"c": None}}, 100)
    bytearray(b'{"a":[1,2],"b":{"c":null}}')
    """
    written = bytearray()
    for part in _parts(value, levels):
        written += part
        if len(written) > most:
            raise HTTPException(413, f"the answer has more than {most} bytes; ask for less.")
    return written


def write_short(value: Any) -> bytearray | None:
    """Return JSON of what is short, in one go; None of what ``write_json`` must see to.

    >>> write_short({"a": [1, float("nan")]})
    bytearray(b'{"a":[1,null]}')
    """
    try:
        return bytearray(to_json(value, inf_nan_mode="null", fallback=_plain_number))
    except (PydanticSerializationError, ValueError, RecursionError):
        return None


def _parts(value: Any, levels: int) -> Iterator[bytes]:
    if isinstance(value, np.ndarray):
        pieces = (value[at : at + NUMBERS].tolist() for at in range(0, len(value), NUMBERS))
        yield from _between(b"[]", ([_text(piece)[1:-1]] for piece in pieces))
    elif levels and isinstance(value, dict):
        pairs = ((_text(name), _parts(each, levels - 1)) for name, each in value.items())
        yield from _between(b"{}", (_named(name, parts) for name, parts in pairs))
    elif levels > 1 and isinstance(value, list | Iterator):
        yield from _between(b"[]", (_parts(each, levels - 1) for each in value))
    elif levels and isinstance(value, list | Iterator):
        values = iter(value)
        some = iter(lambda: list(islice(values, AT_ONCE)), [])
        yield from _between(b"[]", ([_texts(part)] for part in some))
    else:
        yield _text(value)


def _named(name: bytes, parts: Iterable[bytes]) -> Iterator[bytes]:
    yield name + b":"
    yield from parts


def _between(brackets: bytes, values: Iterable[Iterable[bytes]]) -> Iterator[bytes]:
    yield brackets[:1]
    comma = b""
    for parts in values:
        if comma:
            yield comma
        comma = b","
        yield from parts
    yield brackets[1:]


def _texts(values: list[Any]) -> bytes:
    """Return values with commas between them."""
    try:
        return to_json(values, inf_nan_mode="null", fallback=_plain_number)[1:-1]
    except (PydanticSerializationError, ValueError):
        return b",".join(map(_text, values))


def _text(value: Any) -> bytes:
    try:
        return to_json(value, inf_nan_mode="null", fallback=_plain_number)
    except (PydanticSerializationError, ValueError):
        # Metadata that version 0.1.0 took: hundreds of levels deep, or half of a surrogate pair.
        try:
            return json.dumps(value).encode()
        except RecursionError:
            return json.dumps({**value, "metadata": None}).encode()


def _plain_number(number: Any) -> Any:
    return number.item()  # NumPy's
