"""Binary codes: the one sign convention, packing and unpacking.

A bit is 1 where the projection is greater than zero, and 0 elsewhere (also at zero): the paper's
``sgn``. Codes are rows of ``uint8`` with the first bit in the highest place of the first byte
(the order of ``np.packbits``, sentence-transformers' ``ubinary`` and PostgreSQL's bit strings); the
bits that fill up the last byte are zero, so they never count in a Hamming distance. Distances do
not depend on the order as long as all codes have the same one: ``reverse_bits`` turns codes of
programs that begin with the lowest place.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamhash.errors import InputError

Codes = NDArray[np.uint8]


def code_bytes(n_bits: int) -> int:
    """Bytes of one packed code.

    >>> code_bytes(12)
    2
    """
    return (n_bits + 7) // 8


def pack(projections: NDArray[Any]) -> Codes:
    """Turn projections (n, k) into packed codes (n, ⌈k/8⌉).

    >>> pack(np.array([[0.5, -1.0, 0.0, 2.0]]))
    array([[144]], dtype=uint8)
    """
    return np.packbits(projections > 0, axis=1)


def unpack(codes: ArrayLike, n_bits: int) -> NDArray[np.uint8]:
    """Turn packed codes (n, ⌈k/8⌉) into an array of 0 and 1 (n, k).

    >>> unpack(np.array([[144]], dtype=np.uint8), 4)
    array([[1, 0, 0, 1]], dtype=uint8)
    """
    return np.unpackbits(check_codes(codes, n_bits=n_bits), axis=1, count=n_bits)


def reverse_bits(codes: ArrayLike) -> Codes:
    """Turn the bits within each byte around: from the lowest place first to ours, and back.

    >>> bits = np.array([[1, 0, 0, 1, 0, 0, 0, 0, 1]], dtype=np.uint8)
    >>> reverse_bits(np.packbits(bits, axis=1, bitorder="little")) == pack(bits)
    array([[ True,  True]])
    """
    return _REVERSED[check_codes(codes, name="reverse_bits: codes")]


_REVERSED = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)), bitorder="little")


def check_codes(codes: ArrayLike, *, n_bits: int | None = None, name: str = "codes") -> Codes:
    """Return ``codes`` as a C-contiguous (n, bytes) array of ``uint8``, or say what is wrong."""
    array = np.asarray(codes)
    if array.dtype != np.uint8 or array.ndim != 2:
        raise InputError(
            f"{name}: expected packed codes, a uint8 array of shape (n, bytes), but came "
            f"{array.dtype} of shape {array.shape}; make them with a hasher's transform(X) or "
            "streamhash.pack(projections)."
        )
    if n_bits is not None and array.shape[1] != code_bytes(n_bits):
        raise InputError(
            f"{name}: {n_bits} bits need {code_bytes(n_bits)} bytes a row, but came "
            f"{array.shape[1]}; pass codes of the model these belong to."
        )
    return np.ascontiguousarray(array)


def to_words(codes: Codes) -> NDArray[np.uint64]:
    """View packed codes as rows of 64-bit words, filled up with zero bytes: what kernels read."""
    n, n_bytes = codes.shape
    n_words = (n_bytes + 7) // 8
    if n_bytes == n_words * 8:
        return np.ascontiguousarray(codes).view(np.uint64).reshape(n, n_words)
    padded = np.zeros((n, n_words * 8), np.uint8)
    padded[:, :n_bytes] = codes
    return padded.view(np.uint64)
