"""A pipeline that learns from a stream, since scikit-learn's has no ``partial_fit``.

It also holds ``load``, which opens a saved model of any kind, as this is the lowest room that knows
them all.
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from streamhash.base import HasherAround, Matrix, OnlineHasher, StreamPart
from streamhash.errors import InputError
from streamhash.hashers import LSH, SDOH
from streamhash.hashers._anchors import AnchorMap
from streamhash.hashers._scaling import CenterScale
from streamhash.refresh import SnapshotHasher

__all__ = ["LSH", "SDOH", "AnchorMap", "CenterScale", "SnapshotHasher", "StreamPipeline", "load"]


def load(path: str | os.PathLike[str]) -> OnlineHasher:
    """Open a saved model of any method; it goes on exactly where it stopped."""
    model: OnlineHasher = OnlineHasher.load(path)
    return model


class StreamPipeline(HasherAround):
    """Feature maps learned online, then a hasher: one object with the hasher's verbs.

    At each stage every part learns from the rows and passes them on mapped; the hasher learns from
    what the last part makes of them. It is itself a hasher: it encodes, saves, loads, and runs
    wherever a hasher does.

    Parameters
    ----------
    parts : list of StreamPart
        For instance ``[CenterScale(scale="unit"), AnchorMap(300)]``.
    hasher : OnlineHasher
        What learns the codes; its ``batch_size`` cuts the stream.

    Attributes
    ----------
    parts_, hasher_
        The learned ones; those passed in are left as they are.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import AnchorMap, CenterScale, LSH, StreamPipeline
    >>> X, y = load_digits(return_X_y=True)
    >>> model = StreamPipeline([CenterScale(), AnchorMap(100)], LSH(n_bits=16, random_state=0))
    >>> model.partial_fit(X[:1000]).partial_fit(X[1000:]).transform(X[:3]).shape
    (3, 2)
    """

    def __init__(self, parts: Sequence[StreamPart], hasher: OnlineHasher) -> None:
        self.parts = parts
        self.hasher = hasher

    def check_parameters(self) -> None:
        """Refuse parameters that break their rules."""
        super().check_parameters()
        for part in self.parts:
            if not isinstance(part, StreamPart):
                raise InputError(
                    f"StreamPipeline: {part!r} in parts does not learn from a stream; use "
                    "CenterScale, AnchorMap or your own StreamPart."
                )
            part.check_parameters()

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.parts_ = [clone(part) for part in self.parts]
        self.hasher_ = clone(self.hasher)

    def _learn(self, X: Matrix, y: Any) -> None:
        for part in self.parts_:
            part.partial_fit(X)
            X = part.map_rows(X)
        self.hasher_.partial_fit(np.ascontiguousarray(X), y)

    def _project(self, X: Matrix) -> Matrix:
        for part in self.parts_:
            X = part.map_rows(X)
        projections: Matrix = self.hasher_._project(X)
        return projections
