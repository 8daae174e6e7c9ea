"""The skeleton of MATLAB's format 5: checked first, as scipy can crash on a damaged one."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = ["check_tags"]

_HEADER = 128  # bytes before the first element; the last two tell the byte order
_MATRIX, _COMPRESSED = 14, 15
_FLAGS = 6  # the type of a matrix's first element
_SHAPE, _NAME = {5, 6}, {1, 16}  # of its second and third
_NUMBERS = {1, 2, 3, 4, 5, 6, 7, 9, 12, 13}  # of its values, a second time if complex
_NUMBER_CLASSES = range(6, 16)  # double to uint64: the low byte of the flags
_COMPLEX = 1 << 11


def check_tags(path: Path) -> None:
    """Raise ValueError unless every matrix of numbers has the elements that it must have.

    A file is a row of elements, each with a tag: its type and its bytes. A matrix is a row of
    elements itself. What is compressed has a checksum of its own, and is left to scipy.
    """
    with path.open("rb") as file:
        order = ">" if file.read(_HEADER)[-2:] == b"MI" else "<"
        end = path.stat().st_size
        for kind, start, stop in _elements(file, order, _HEADER, end, padded=False):
            if kind == _MATRIX:
                _check_matrix(file, order, start, stop)
            elif kind != _COMPRESSED:
                raise ValueError(f"there is no matrix before byte {start}")


def _check_matrix(file: BinaryIO, order: str, start: int, stop: int) -> None:
    elements = list(_elements(file, order, start, stop, padded=True))
    kinds = [kind for kind, _, _ in elements]
    if not kinds or kinds[0] != _FLAGS:
        raise ValueError(f"the matrix in byte {start} does not begin as one")
    file.seek(elements[0][1])
    (flags,) = struct.unpack(f"{order}I", file.read(4))
    if flags & 0xFF not in _NUMBER_CLASSES:
        return  # text, cells and the like, which are never read
    wanted = 5 if flags & _COMPLEX else 4
    known = [{_FLAGS}, _SHAPE, _NAME, _NUMBERS, _NUMBERS][:wanted]
    if len(kinds) != wanted or any(kind not in of for kind, of in zip(kinds, known, strict=True)):
        raise ValueError(f"the matrix in byte {start} does not hold numbers")


def _elements(
    file: BinaryIO, order: str, start: int, end: int, *, padded: bool
) -> Iterator[tuple[int, int, int]]:
    """Yield type, first byte and end of each element; inside a matrix they fill up 8 bytes."""
    while start < end:
        file.seek(start)
        tag = file.read(8)
        if len(tag) < 8:
            raise ValueError("it ends in the middle")
        kind, size = struct.unpack(f"{order}II", tag)
        start += 8
        if kind >> 16:  # up to four bytes of content stand in the tag itself
            kind, size = kind & 0xFFFF, 0
        if start + size > end:
            raise ValueError("it ends in the middle")
        yield kind, start, start + size
        start += -(-size // 8) * 8 if padded else size
