"""What an index holds, read at one moment, and an index made of such contents."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes, check_codes, code_bytes
from streamhash.errors import InputError
from streamhash.search.index import HammingIndex

__all__ = ["BIT_ORDER", "VERSION", "check_form", "contents", "make_index"]

BIT_ORDER = "big"  # NumPy's word for the first bit in the highest place
VERSION = 1  # of the form in which codes are given away, as files and tables say it


def contents(index: HammingIndex) -> tuple[Codes, NDArray[Any]]:
    """Codes and ids in the order of adding, fitting together even while others change the index."""
    while True:
        ids, codes = index.ids, index.codes
        if np.array_equal(ids, index.ids):
            return codes, ids


def make_index(codes: Any, ids: Any, n_bits: int | None, place: str) -> HammingIndex:
    """Return a new index of these codes; without ``n_bits``, every bit of their bytes counts."""
    array = check_codes(codes, name=f"{place}: codes")
    width = array.shape[1]
    try:
        index = HammingIndex(8 * width if n_bits is None else n_bits)
        if width == code_bytes(index.n_bits):
            index.add(ids, array)
            return index
    except InputError as error:
        raise InputError(f"{place}: {error}") from error
    raise InputError(
        f"{place}: codes of {width} bytes came, and n_bits={n_bits} needs "
        f"{code_bytes(index.n_bits)}; pass the n_bits of these codes."
    )


def check_form(bit_order: str, version: int, place: str) -> None:
    """Refuse codes that say of themselves that they are in another form."""
    if bit_order != BIT_ORDER:
        raise InputError(
            f"{place}: the codes are in bit order {bit_order!r}; turn them with "
            "streamhash.codes.reverse_bits, and add them to a HammingIndex."
        )
    if version > VERSION:
        raise InputError(
            f"{place}: the codes are in form {version}, this version reads up to {VERSION}; "
            "upgrade streamhash."
        )
