"""Codes and vectors as Arrow has them, and back."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.errors import FileError
from streamhash.live.datasets import pyarrow

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["binary_array", "codes_of", "vector_array", "vectors_of"]


def binary_array(codes: Codes) -> "pa.Array":
    """Return codes (n, bytes) as a column."""
    pa = pyarrow()
    content = pa.py_buffer(np.ascontiguousarray(codes))
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(codes.shape[1]), len(codes), [None, content]
    )


def codes_of(column: "pa.ChunkedArray") -> Codes:
    """Undo ``binary_array``, of a column without gaps."""
    width = column.type.byte_width
    parts = [np.empty((0, width), np.uint8)]
    for chunk in column.chunks:
        if chunk.null_count:
            raise FileError("items without a code: the collection is damaged; refresh it.")
        content = np.frombuffer(chunk.buffers()[1], np.uint8)
        parts.append(content.reshape(-1, width)[chunk.offset : chunk.offset + len(chunk)])
    return np.concatenate(parts)


def vector_array(vectors: NDArray[Any]) -> "pa.Array":
    """Return vectors (n, d) of float16 or float32 as a column."""
    pa = pyarrow()
    kind = pa.float16() if vectors.dtype == np.float16 else pa.float32()
    flat = pa.array(np.ascontiguousarray(vectors).ravel(), kind)
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])


def vectors_of(column: Any) -> NDArray[Any]:
    """Undo ``vector_array``."""
    column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    width = column.type.list_size
    flat = column.flatten().to_numpy(zero_copy_only=False)
    return np.asarray(flat).reshape(-1, width)
