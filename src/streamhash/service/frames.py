"""Raw bodies: numbers as they are in memory, many times cheaper than JSON.

4 bytes   length of the head, least byte first
head      JSON: what the JSON body says beside the numbers, and their "shape"
numbers   one array after the other, row by row, least byte first
"""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError

TYPE = "application/octet-stream"
PREFIX = 4  # bytes that tell the length of the head


def pack_frame(head: dict[str, Any], *arrays: NDArray[Any]) -> bytes:
    """Return a head and arrays as one body.

    >>> frame = pack_frame({"shape": [1, 2]}, np.array([[1, 2]], np.float32))
    >>> frame[:4], frame[4:21], len(frame)
    (b'\\x11\\x00\\x00\\x00', b'{"shape": [1, 2]}', 29)
    """
    text = json.dumps(head, allow_nan=False).encode()
    numbers = [np.ascontiguousarray(a, a.dtype.newbyteorder("<")).tobytes() for a in arrays]
    return b"".join([len(text).to_bytes(PREFIX, "little"), text, *numbers])


def split_frame(body: bytes | bytearray) -> tuple[memoryview, memoryview]:
    """Return the head as it was sent, and the bytes of the numbers."""
    view = memoryview(body)
    start = PREFIX + int.from_bytes(view[:PREFIX], "little")
    if len(view) < PREFIX or start > len(view):
        raise InputError(
            f"raw body: {len(view)} bytes came, too few for the head that they announce; begin "
            "with 4 bytes that tell its length, the least first."
        )
    return view[PREFIX:start], view[start:]


def unpack_frame(body: bytes) -> tuple[dict[str, Any], memoryview]:
    """Return what the head says, and the bytes of the numbers; for bodies that one trusts."""
    head, numbers = split_frame(body)
    return dict(json.loads(bytes(head))), numbers


def read_array(content: memoryview, kind: str, shape: Any) -> tuple[NDArray[Any], memoryview]:
    """Return an array from the start of the bytes, and the bytes after it."""
    whole = isinstance(shape, list) and len(shape) == 2
    if not whole or not all(type(n) is int and 0 <= n < 2**31 for n in shape):
        raise InputError(f"raw body: shape={_short(shape)} is not two whole numbers, rows first.")
    dtype = np.dtype(kind).newbyteorder("<")
    size = shape[0] * shape[1] * dtype.itemsize
    if size > len(content):
        raise InputError(
            f"raw body: {len(content)} bytes of numbers came, shape {shape} of {kind} takes {size}."
        )
    array = np.frombuffer(content[:size], dtype).reshape(shape).astype(kind)  # aligned, writable
    return array, content[size:]


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 100 else f"{text[:100]}…"
