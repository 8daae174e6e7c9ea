"""Codes in the forms that other programs give and take; ``reverse_bits`` is in streamhash.codes."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamhash.codes import Codes, check_codes, unpack
from streamhash.errors import InputError
from streamhash.parameters import Choice, check_parameters

__all__ = [
    "from_bit_strings",
    "from_sentence_transformers",
    "to_bit_strings",
    "to_sentence_transformers",
]


def from_sentence_transformers(embeddings: ArrayLike) -> Codes:
    """Take binary embeddings of sentence-transformers for codes: (n, dimensions / 8).

    Its ``quantize_embeddings`` with ``precision="ubinary"`` is ``np.packbits(embeddings > 0)`` cut
    into rows: uint8, just our codes. ``"binary"`` is the same less 128, as int8. (It packs rows end
    to end, so that dimensions must be a multiple of 8.)

    >>> from_sentence_transformers(np.array([[-128, 127, 16]], dtype=np.int8))
    array([[  0, 255, 144]], dtype=uint8)
    """
    array = np.asarray(embeddings)
    if array.dtype == np.int8:
        array = np.ascontiguousarray(array).view(np.uint8) ^ np.uint8(128)
    elif array.dtype.kind == "f":
        raise InputError(
            f"from_sentence_transformers: {array.dtype} embeddings came; pass those of "
            'precision="ubinary" or "binary", or make codes with streamhash.pack(embeddings).'
        )
    return check_codes(array, name="from_sentence_transformers: embeddings")


def to_sentence_transformers(codes: ArrayLike, precision: str = "ubinary") -> NDArray[Any]:
    """Give codes the form of sentence-transformers: "ubinary" (uint8) or "binary" (int8).

    >>> to_sentence_transformers(np.array([[0, 255, 144]], dtype=np.uint8), "binary")
    array([[-128,  127,   16]], dtype=int8)
    """
    place = "to_sentence_transformers"
    check_parameters(place, {"precision": precision}, {"precision": Choice("ubinary", "binary")})
    array = check_codes(codes, name=f"{place}: codes")
    return array if precision == "ubinary" else (array ^ np.uint8(128)).view(np.int8)


def to_bit_strings(codes: ArrayLike, n_bits: int) -> list[str]:
    """Write codes as text of 0 and 1, as pgvector's and PostgreSQL's ``bit(n_bits)`` take them.

    >>> to_bit_strings(np.array([[0b10010000]], dtype=np.uint8), n_bits=5)
    ['10010']
    """
    bits = unpack(codes, n_bits) + np.uint8(ord("0"))
    return [row.tobytes().decode("ascii") for row in bits]


def from_bit_strings(texts: Iterable[str]) -> Codes:
    """Read codes from texts of 0 and 1, all of one length.

    >>> from_bit_strings(["10010"])
    array([[144]], dtype=uint8)
    """
    rows = list(texts)
    for text in rows:
        if not text or text.strip("01") or len(text) != len(rows[0]):
            raise InputError(
                f"from_bit_strings: {text!r} came after {rows[0]!r}; pass texts of 0 and 1, all of "
                "one length."
            )
    if not rows:
        raise InputError("from_bit_strings: no text came; pass one at least.")
    bits = np.frombuffer("".join(rows).encode("ascii"), np.uint8).reshape(len(rows), -1)
    return np.packbits(bits == ord("1"), axis=1)
