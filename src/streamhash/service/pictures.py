"""Vectors that are pictures, as PNG files."""

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"
LARGEST = 1024  # pixels a side


def picture_shape(metadata: Any, length: int) -> tuple[int, int] | None:
    """Return height and width, if the metadata say that a vector of this length is a picture.

    >>> picture_shape({"image": {"width": 8, "height": 4}}, 32)
    (4, 8)
    >>> picture_shape({"image": {"width": 8, "height": 4}}, 33), picture_shape(None, 33)
    (None, None)
    """
    image = metadata.get("image") if isinstance(metadata, dict) else None
    if not isinstance(image, dict):
        return None
    height, width = _side(image.get("height")), _side(image.get("width"))
    return (height, width) if height * width == length else None


def _side(value: Any) -> int:
    return value if type(value) is int and 0 < value <= LARGEST else 0


def png(pixels: NDArray[np.floating[Any]]) -> bytes:
    """Return a picture (height, width) in grey: the least value black, the greatest white."""
    values = pixels.astype(np.float64)
    low, high = values.min(), values.max()
    grey = np.zeros(values.shape, np.uint8)
    if high > low:
        grey = np.rint((values - low) / (high - low) * 255).astype(np.uint8)
    height, width = len(grey), len(grey[0])
    rows = np.zeros((height, width + 1), np.uint8)  # each row begins with its filter, 0 for none
    rows[:, 1:] = grey
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b"")]
    return SIGNATURE + b"".join(_chunk(name, content) for name, content in chunks)


def _chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)
