"""The classes of a stream, numbered in the order in which they came."""

from collections.abc import Sequence
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

    def one_hot(self, y: NDArray[Any], *, add: bool = False) -> NDArray[np.float32]:
        """Return which of the C classes each row has (n, C), of labels (n,) or a 0/1 matrix.

        Classes that are not known are left out or, with ``add``, get the next numbers.

        >>> table = ClassTable()
        >>> table.one_hot(np.array(["cat", "dog"]), add=True).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        >>> table.one_hot(np.array(["bird", "dog"])).tolist()
        [[0.0, 0.0], [0.0, 1.0]]
        """
        rows, labels = np.nonzero(y) if y.ndim == 2 else (np.arange(len(y)), y)
        if add:
            self.number(np.unique(labels) if y.ndim == 2 else labels)
        numbers = {label: place for place, label in enumerate(self.labels_)}
        found = np.array([numbers.get(label, -1) for label in labels.tolist()], np.int64)
        members = np.zeros((len(y), len(self)), np.float32)
        members[rows[found >= 0], found[found >= 0]] = 1
        return members

    def matrix(self, labels: Sequence[Sequence[Any]]) -> NDArray[np.uint8]:
        """Return several labels a row (n lists) as a 0/1 matrix (n, classes known by now).

        It has two columns at least: one alone would be read as labels (n,).

        >>> ClassTable().matrix([("cat", "dog"), ("bird",)])
        array([[1, 1, 0],
               [0, 0, 1]], dtype=uint8)
        """
        each = [label for of_row in labels for label in of_row]
        numbers = self.number(np.fromiter(each, object, len(each)))
        matrix = np.zeros((len(labels), max(len(self), 2)), np.uint8)
        matrix[np.repeat(np.arange(len(labels)), [*map(len, labels)]), numbers] = 1
        return matrix

    def __len__(self) -> int:
        return len(self.labels_)
