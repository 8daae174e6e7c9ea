"""Endless made-up streams, drawn in fixed blocks: any start and piece size give the same rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.lab.datasets._arguments import whole

__all__ = ["BLOCK", "BlockStream", "Piece"]

BLOCK = 1024  # rows that are drawn together

Piece = tuple[NDArray[np.float32], NDArray[Any]]


class BlockStream(ABC):
    """A stream whose block b depends on the settings and b only; it fills in ``_draw``.

    Streams are hashable by their settings, so that the last blocks are kept for the next piece.
    """

    @abstractmethod
    def _draw(self, block: int) -> Piece:
        """Draw one whole block: X (BLOCK, d) and y (BLOCK,) or (BLOCK, C)."""

    def take(self, n: int, start: int = 0) -> Piece:
        """Return rows ``start`` to ``start + n`` of the stream: X (n, d) and y (n,) or (n, C)."""
        place = f"{type(self).__name__}.take"
        n = whole(place, "n", n, least=0)
        start = whole(place, "start", start, least=0)
        model_X, model_y = _block(self, start // BLOCK)
        X = np.empty((n, *model_X.shape[1:]), model_X.dtype)
        y = np.empty((n, *model_y.shape[1:]), model_y.dtype)
        done = 0
        while done < n:
            block, offset = divmod(start + done, BLOCK)
            rows = slice(offset, offset + n - done)
            block_X, block_y = _block(self, block)
            count = len(block_X[rows])
            X[done : done + count] = block_X[rows]
            y[done : done + count] = block_y[rows]
            done += count
        return X, y

    def pieces(self, n: int, size: int) -> Iterator[Piece]:
        """Yield the first ``n`` rows in pieces of ``size``, holding one piece at a time."""
        place = f"{type(self).__name__}.pieces"
        n = whole(place, "n", n, least=0)
        size = whole(place, "size", size, least=1)
        return (self.take(min(size, n - start), start) for start in range(0, n, size))


@lru_cache(maxsize=2)  # pieces smaller than a block need it several times
def _block(stream: BlockStream, number: int) -> Piece:
    return stream._draw(number)
