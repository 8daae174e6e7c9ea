"""The orders in which a stream can come, and wrong labels: what real streams have.

All orders have the same rows. A set in order of time comes as it is unless its order is changed;
any other is shuffled first, so that rows of a class come in random order also where classes do not.
Classes are those that the stream's labels name, right or wrong.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.labels import group

# What each order is, in plain words.
ORDERS = {
    "shuffled": "all rows in random order",
    "sorted": "class by class, the classes in random order",
    "halves": "all rows of a random half of the classes, shuffled, then the others, shuffled",
    "runs": "random runs of one class, about a hundred rows each",
    "single": "in the usual order of the set, but handed over one row a call",
    "natural": "the data set's own order",
}
RUN_ROWS = 100  # mean length of a run


def arrange(
    order: str, classes: NDArray[np.int64], rng: np.random.Generator, *, in_time: bool = False
) -> NDArray[np.int64]:
    """Return the places of a stream's rows in another order.

    Parameters
    ----------
    order : one of ``ORDERS`` but "natural"
    classes : (n,) class of each row of the stream, from :func:`main_classes`
    rng : draws what is random
    in_time : whether the rows come in order of time, and not shuffled already

    >>> arrange("sorted", np.array([1, 0, 1, 0]), np.random.default_rng(0))
    array([1, 3, 0, 2])
    """
    n, names = len(classes), rng.permutation(np.unique(classes))
    if order == "shuffled":
        return rng.permutation(n) if in_time else np.arange(n)
    if order == "sorted":
        return np.concatenate([np.flatnonzero(classes == name) for name in names])
    if order == "halves":
        is_first = np.isin(classes, names[: (len(names) + 1) // 2])
        return np.concatenate(
            [rng.permutation(np.flatnonzero(part)) for part in (is_first, ~is_first)]
        )
    if order == "runs":
        runs = [run for name in names for run in _runs(np.flatnonzero(classes == name), rng)]
        return np.concatenate([runs[number] for number in rng.permutation(len(runs))])
    return np.arange(n)


def _runs(rows: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Cut rows into runs of geometric length."""
    ends = np.cumsum(rng.geometric(1 / RUN_ROWS, size=len(rows)))
    return np.split(rows, ends[ends < len(rows)])


def main_classes(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Number the class of each row; of several labels, the rarest is a row's class.

    >>> main_classes(np.array([[1, 0, 1], [1, 1, 0], [1, 0, 0], [1, 0, 1]]))
    array([2, 1, 0, 2])
    """
    if labels.ndim == 1:
        return group(labels).astype(np.int64)
    counts = labels.sum(axis=0)
    rarity = np.where(labels > 0, counts, len(labels) + 1)  # (n, C)
    classes: NDArray[np.int64] = rarity.argmin(axis=1)
    classes[~labels.any(axis=1)] = labels.shape[1]  # rows without a label: a class of their own
    return classes


def with_wrong_labels(
    labels: NDArray[Any],
    share: float,
    classes: NDArray[Any],
    rng: np.random.Generator,
) -> NDArray[Any]:
    """Draw the labels of a share of the rows anew, from all classes alike.

    So a few of these are right by chance. A row with several labels gets as many others.
    """
    labels = labels.copy()
    wrong = np.flatnonzero(rng.random(len(labels)) < share)
    if labels.ndim == 1:
        labels[wrong] = rng.choice(classes, len(wrong))
    else:
        labels[wrong] = rng.permuted(labels[wrong], axis=1)
    return labels
