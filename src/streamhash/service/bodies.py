"""The body of a request, read piece by piece: within limits, and only up to its first fault.

Lists are read one element after the other, vectors straight into an array, metadata into checked
JSON; so a body never becomes many times what it is, and nothing behind a fault is looked at.
"""

import json
import re
from array import array
from collections.abc import Callable, Collection as Names, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from streamhash.errors import InputError, shown
from streamhash.labels import MOST_LABELS
from streamhash.service.frames import read_array, split_frame
from streamhash.storable import MetadataTexts, metadata_text

LISTS = ("vectors", "queries", "ids", "query_ids", "good", "labels", "metadata", "subtitle")
ROWS = ("vectors", "queries")  # lists that may be of vectors
ITEM = "vector"  # what a body of a single item can say, beside label and metadata
OBJECTS = ("left", "right", "where", "parameters")  # all others are single values
SHORT = 16_384  # characters of a value that is no vector and no metadata, with its escapes
LONG_ROW = 2**20  # characters of a vector that has very many numbers
PLAIN_BODY = 2**16  # bytes of a body that may be read in one go
PLAIN_TEXT = 100  # characters of a value of such a body
SPACE = re.compile(r"[ \t\n\r]*")


Bytes = bytes | bytearray | memoryview


class Form(NamedTuple):
    """What a body may say: names, and how many elements a list may have."""

    names: Names[str]
    most: int


ReadJson = Callable[[bytearray | memoryview, Form], dict[str, Any]]


class RefusedBody(Exception):  # noqa: N818  it is no error of the service
    """A body that is of no use, with the status that says so."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(status, text)
        self.status, self.text = status, text


def read_body(
    content: bytearray, form: Form, *, raw: bool, read: ReadJson | None = None
) -> dict[str, Any]:
    """Return what a body says, whose JSON another function may read."""
    read = read or read_json
    if not raw:
        return read(content, form)
    with _refusing():
        head, numbers = split_frame(content)
    fields = read(head, form._replace(names=[*form.names, "shape"]))
    with _refusing():
        if "vectors" in fields:
            raise InputError("raw body: vectors came in the head; send them as numbers after it.")
        rows, rest = read_array(numbers, "float32", fields.pop("shape", None))
        if len(rest):
            raise InputError(f"raw body: {len(rest)} bytes came after the numbers.")
    return {**fields, "vectors": rows}


def read_json(content: Bytes, form: Form) -> dict[str, Any]:
    """Return what JSON says; vectors are an array, metadata are ``MetadataTexts``.

    >>> read_json(b'{"vectors": [[1, 2.5]], "k": 3}', Form(["vectors", "k"], 10))
    {'vectors': array([[1. , 2.5]], dtype=float32), 'k': 3}
    """
    if len(content) <= PLAIN_BODY:
        fields = _read_plain(bytes(content), form)
        if fields is not None:
            return fields
    with _refusing():
        text = str(content, "utf-8")
        del content
        return _read_object(_Text(text), form)


def _read_plain(content: bytes, form: Form) -> dict[str, Any] | None:
    """Return what a body of vectors, ids, labels and single values says, as most are; else None.

    What is returned is what the reader below would return, in a quarter of the time: of whatever is
    not plain, and of every fault, that one tells.
    """
    try:
        fields = from_json(content, allow_inf_nan=False)
    except ValueError:
        return None
    if type(fields) is not dict or b"\\" in content:
        return None
    for name, value in fields.items():
        # A name that stands there again may have come twice.
        if name not in form.names or content.count(b'"%b"' % name.encode()) > 1:
            return None
        if name == "vectors":
            only_numbers = not any(word in content for word in (b"true", b"false"))
            if (rows := _plain_rows(value, form.most, only_numbers=only_numbers)) is None:
                return None
            fields[name] = rows
        elif type(value) is list and name in ("ids", "labels"):
            if len(value) > form.most or not all(each is None or _is_plain(each) for each in value):
                return None
        elif not _is_plain(value):
            return None
    return fields


def _is_plain(value: Any) -> bool:
    """Whether it is a single value, and short."""
    return type(value) in (int, float, bool, str) and len(str(value)) <= PLAIN_TEXT


def _plain_rows(rows: Any, most: int, *, only_numbers: bool) -> NDArray[np.float32] | None:
    """Return vectors as an array; None of anything else, and of what may have true among numbers.

    NumPy itself tells numbers from all else but truth values, of which there are none mostly.
    """
    if type(rows) is not list or not 0 < len(rows) <= most:
        return None
    try:
        if not only_numbers and not all({*map(type, row)} <= {int, float} for row in rows):
            return None
        if len(rows) == 1 and type(rows[0]) is list:  # in a third of the time
            found = np.frombuffer(array("d", rows[0])).reshape(1, -1)
        else:
            found = np.array(rows)
    except (TypeError, ValueError, OverflowError):  # such as lists of several lengths
        return None
    if found.dtype not in (np.float64, np.int64) or found.ndim != 2 or not found.size:
        return None
    with np.errstate(over="ignore"):
        return found.astype(np.float64, copy=False).astype(np.float32)


class _refusing:  # noqa: N801  used like a function
    """Turn what reading raises into a refusal."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if isinstance(error, MemoryError):
            text = "the body takes too much memory to read; send smaller batches, or raw numbers."
            raise RefusedBody(413, text) from None
        if isinstance(error, RecursionError):
            raise RefusedBody(422, "body: lists or objects in one another are too deep.") from None
        if isinstance(error, json.JSONDecodeError):
            place = f"character {error.pos}"
            raise RefusedBody(422, f"body: not JSON, {place}: {error.msg}.") from None
        if isinstance(error, UnicodeDecodeError):
            raise RefusedBody(422, f"body: byte {error.start} is no UTF-8.") from None
        if isinstance(error, ValueError):
            text = str(error).rstrip(".")
            if "integer string conversion" in text:  # Python's advice is for programmers
                text = "body: a whole number has too many digits"
            raise RefusedBody(422, f"{text}.") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"body: {name} is no number that JSON has.")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


class _Text:
    """JSON, and how far it has been read."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def peek(self) -> str:
        """Pass over white space, and return the next character."""
        self._at = SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
        return self._text[self._at : self._at + 1]

    def take(self, *signs: str) -> str:
        """Return the next character, which must be one of these."""
        sign = self.peek()
        if sign not in signs or not sign:
            wanted = " or ".join(signs)
            raise json.JSONDecodeError(f"Expecting {wanted}", self._text, self._at)
        self._at += 1
        return sign

    def value(self) -> Any:
        """Return the next value, all of it."""
        self.peek()
        value, self._at = _DECODER.raw_decode(self._text, self._at)
        return value

    def numbers(self) -> Any:
        """Return the next value, a list of numbers; it ends with the first bracket that closes."""
        end = self._text.find("]", self._at) + 1
        if end == 0:
            raise json.JSONDecodeError("Unterminated list", self._text, self._at)
        if end - self._at > LONG_ROW:  # where memory ends, this reader says so, and the other dies
            return self.value()
        start, self._at = self._at, end
        return from_json(self._text[start:end], allow_inf_nan=False)

    def short(self, place: str) -> Any:
        """Return the next value, which must not be long."""
        start = self._at
        value = self.value()
        if self._at - start > SHORT:
            raise ValueError(f"{place}: {self._at - start} characters are too many.")
        return value

    def elements(self, most: int, what: str) -> Iterator[None]:
        """Go from element to element of a list whose bracket has been taken."""
        if self.peek() == "]":
            self.take("]")
            return
        for n in range(most + 1):
            if n == most:
                text = f"more than {most} {what}: too much for a request; send smaller batches."
                raise RefusedBody(413, text)
            yield
            if self.take(",", "]") == "]":
                return


def _read_object(text: _Text, form: Form) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if text.peek() != "{":
        raise ValueError("body: is no JSON object; pass one.")
    text.take("{")
    if text.peek() == "}":
        text.take("}")
    else:
        while True:
            if text.peek() != '"':
                text.take('"')
            name = text.short("body")
            if name not in form.names or name in fields:
                reason = "came twice" if name in fields else "is not known here"
                raise ValueError(f"{shown(name)[1:-1]}: {reason}; pass {', '.join(form.names)}.")
            text.take(":")
            fields[name] = _read_field(text, name, form)
            if text.take(",", "}") == "}":
                break
    if text.peek():
        raise ValueError("body: more came behind the JSON object.")
    return fields


def _read_field(text: _Text, name: str, form: Form) -> Any:
    sign = text.peek()
    if ITEM in form.names:
        return _read_item_field(text, name, sign)
    if sign != "[" or name not in LISTS:
        if (sign == "[" and name != "shape") or (sign == "{" and name not in OBJECTS):
            raise ValueError(f"{name}: {'a list' if sign == '[' else 'an object'} is of no use.")
        return text.short(name)
    text.take("[")
    if name in ROWS and text.peek() == "[":
        return _read_rows(text, name, form.most)
    read = {"metadata": _read_metadata, "labels": _read_label}.get(name, _read_single)
    kind = MetadataTexts if name == "metadata" else list
    return kind(read(text, f"{name}.{n}") for n, _ in enumerate(text.elements(form.most, name)))


def _read_item_field(text: _Text, name: str, sign: str) -> Any:
    """Read what a body says of a single item."""
    if name == ITEM and sign == "[":
        row = text.numbers()
        if not row or not set(map(type, row)) <= {int, float}:
            raise ValueError(f"{name}: is no list of numbers.")
        return row
    if name == "metadata":
        return None if (value := _read_metadata(text, name)) is None else MetadataTexts([value])
    return _read_label(text, name)


def _read_single(text: _Text, place: str) -> Any:
    if text.peek() in "[{":
        raise ValueError(f"{place}: a list or an object is of no use.")
    return text.short(place)


def _read_label(text: _Text, place: str) -> Any:
    if text.peek() != "[":
        return _read_single(text, place)
    text.take("[")
    return [_read_single(text, place) for _ in text.elements(MOST_LABELS, f"labels in {place}")]


def _read_metadata(text: _Text, place: str) -> str | None:
    return metadata_text(text.value(), place=place)


def _read_rows(text: _Text, name: str, most: int) -> NDArray[np.float32]:
    numbers, width, n = bytearray(), None, 0
    for n, _ in enumerate(text.elements(most, name)):
        if text.peek() != "[":
            raise ValueError(f"{name}.{n}: is no list of numbers.")
        row = text.numbers()
        if not row or not set(map(type, row)) <= {int, float}:
            raise ValueError(f"{name}.{n}: is no list of numbers.")
        if len(row) != (width or len(row)):
            raise RefusedBody(
                400,
                f"{name}.{n}: has {len(row)} numbers, those before have {width}; pass rows of one "
                "length.",
            )
        width = len(row)
        try:
            with np.errstate(over="ignore"):  # what is infinite then is refused later
                numbers += np.array(row, np.float32).data.cast("B")
        except OverflowError:
            raise ValueError(f"{name}.{n}: has a number that is too large.") from None
    return np.frombuffer(numbers, np.float32).reshape(n + 1, width or 0)
