"""The classes of a stream, numbered in the order in which they came."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Streaming
from streamhash.labels import number
from streamhash.learned import Names, Table


class ClassTable(Streaming):
    """Numbers labels of any type by their first appearance; a number, once given, stays.

    Attributes
    ----------
    labels_ : list
        The labels; the place of a label is its number.

    Examples
    --------
    >>> table = ClassTable()
    >>> table.number(np.array(["cat", "dog", "cat"]))
    array([0, 1, 0], dtype=int32)
    >>> table.number(np.array(["bird", "dog"]))
    array([2, 1], dtype=int32)
    >>> len(table)
    3
    """

    learns = Table(labels_=Names("C"))

    def __init__(self) -> None:
        self.labels_: list[Any] = []

    def number(self, labels: NDArray[Any]) -> NDArray[np.int32]:
        """Return the number of each label (n,); those never seen get the next ones."""
        numbers = {label: place for place, label in enumerate(self.labels_)}
        found = number(labels.tolist(), numbers)
        if len(numbers) > len(self.labels_):
            self.labels_ = [*numbers]  # a new list: the old one may be wanted for rolling back
        return found

    def __len__(self) -> int:
        return len(self.labels_)
