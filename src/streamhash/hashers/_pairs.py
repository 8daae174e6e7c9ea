"""Consecutive items of a stream as pairs, whatever the pieces in which it comes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, Streaming
from streamhash.errors import InputError
from streamhash.labels import same_width
from streamhash.learned import Array, Labels, Table


class PairQueue(Streaming):
    """Pairs the items of a stream: (1, 2), (3, 4), ...; an odd one waits for the next piece.

    Attributes
    ----------
    row_ : array (0 or 1, d)
        The row that waits, if any.
    label_ : array (0 or 1,) or (0 or 1, classes)
        Its label.

    Examples
    --------
    >>> queue = PairQueue()
    >>> X = np.arange(5, dtype=np.float32)[:, None]
    >>> rows, similar = queue.pair(X[:3], np.array(["a", "a", "b"]), "Method")
    >>> rows.ravel().tolist(), similar.tolist()
    ([0.0, 1.0], [True])
    >>> rows, similar = queue.pair(X[3:], np.array(["c", "c"]), "Method")
    >>> rows.ravel().tolist(), similar.tolist()
    ([2.0, 3.0], [False])
    """

    learns = Table(
        row_=Array(np.float32, "n", "d"),
        label_=Labels("n"),
    )

    def check_learned(self) -> None:
        """Refuse what was learned if it does not fit the class's own statement, ``learns``."""
        super().check_learned()
        if len(getattr(self, "row_", ())) > 1:
            raise InputError("PairQueue.row_ has more than one row")

    def pair(self, X: Matrix, y: NDArray[Any], owner: str) -> tuple[Matrix, NDArray[np.bool_]]:
        """Return rows (2m, d) and which of the pairs (m,) are similar; keep what is left over.

        Similar means the same label, or a class in common in a 0/1 matrix of labels.
        """
        if len(waiting := getattr(self, "row_", ())):
            y = _join(self.label_, y, owner)
            X = np.concatenate([waiting, X])
        even = len(X) // 2 * 2
        self.row_: Matrix = X[even:].copy()
        self.label_: NDArray[Any] = y[even:].copy()
        first, second = y[0:even:2], y[1:even:2]
        same = first == second if y.ndim == 1 else (first & second).any(axis=1)
        return X[:even], np.asarray(same, dtype=bool)


def _join(waiting: NDArray[Any], y: NDArray[Any], owner: str) -> NDArray[Any]:
    """Put the label of the row that waits before those of the next piece."""
    if waiting.ndim != y.ndim:
        kinds = ["a single label", "a row of a 0/1 matrix"]
        raise InputError(
            f"{owner}.partial_fit: the last row so far waits for its pair with "
            f"{kinds[waiting.ndim - 1]}, but y came with shape {y.shape}; keep to one kind of "
            "labels in a stream."
        )
    if y.ndim == 1:  # as plain values, or NumPy would turn 1 into "1"
        return np.fromiter([*waiting.tolist(), *y.tolist()], object, 1 + len(y))
    return np.concatenate(same_width(waiting, y))
