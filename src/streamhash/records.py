"""What a collection tells of its items and its past: plain tuples, the same here and over HTTP.

They need NumPy only, so that ``streamhash.Client`` does too.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes


class Item(NamedTuple):
    """What a collection holds of an item."""

    id: Any
    vector: NDArray[Any]
    label: Any
    metadata: Any
    code: Codes | None  # by the model that serves; None while there is none


class Judgement(NamedTuple):
    """Whether an item is a good answer to a query: to another item, or to a vector."""

    id: Any
    good: bool
    query_id: Any  # None where the query is a vector
    query: NDArray[Any] | None


class SearchResult(tuple[NDArray[np.int32], NDArray[Any]]):
    """What a search found: the pair ``distances, ids``, and more by name.

    Attributes
    ----------
    distances : int32 (n, k)
        Hamming distances of the codes; 2147483647 where there are no more items.
    ids : array (n, k)
        -1 (None among strings) where there are no more items.
    scores : float32 (n, k), or None
        What a search that is rescored, or by real-valued queries, is ordered by, the best first;
        NaN where there are no more items, and of what has no score, which comes last.
    probabilities : float32 (n, k), or None while nothing is known
        How likely each has the query's label.
    labels : list of lists
        None for no label; rows end where there are no more items.
    model : int
        The number of the model that answered.
    """

    scores: NDArray[np.float32] | None
    probabilities: NDArray[np.float32] | None
    model: int
    _find_labels: Callable[[], list[list[Any]]]

    def __new__(  # noqa: D102
        cls,
        distances: NDArray[Any],
        ids: NDArray[Any],
        *,
        labels: Callable[[], list[list[Any]]],
        model: int,
        scores: NDArray[np.float32] | None = None,
        probabilities: NDArray[np.float32] | None = None,
    ) -> Self:
        self = super().__new__(cls, (distances, ids))
        self.scores, self.probabilities, self.model = scores, probabilities, model
        self._find_labels = labels  # when they are asked for: most searches want none
        return self

    @property
    def distances(self) -> NDArray[Any]:
        """Distances of the codes, (n, k)."""
        return self[0]

    @property
    def ids(self) -> NDArray[Any]:
        """Ids of the items, (n, k)."""
        return self[1]

    @cached_property
    def labels(self) -> list[list[Any]]:
        """Labels of the items."""
        return self._find_labels()


class Prediction(NamedTuple):
    """What a vote of neighbours predicts, for each vector.

    Where items have several labels, they are lists of tuples: the labels that are more likely than
    not, and at least the likeliest, first.
    """

    labels: list[Any]  # None where no labelled item is near
    probabilities: Any  # float64 (n,); NaN where nothing is known


class CollectionFacts(NamedTuple):
    """What a service tells of one of its collections."""

    name: str
    items: int
    features: int | None  # None before the first item
    method: str
    bits: int
    model: int  # the number of the one that serves; 0 while there is none
    precision: float | None  # of recent answers, before they were learned
    writable: bool


class History(NamedTuple):
    """What has happened, the oldest first."""

    refreshes: list[dict[str, Any]]
    drifts: list[dict[str, Any]]
    series: list[dict[str, float]]  # quality and size over time
