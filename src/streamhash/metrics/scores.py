"""The metrics of the papers: means over the queries, and over the stream."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamhash.errors import InputError
from streamhash.metrics.retrieval import Retrieval
from streamhash.parameters import Choice, check_parameters

__all__ = [
    "RANKS",
    "area_under_curve",
    "evaluate",
    "mean_average_precision",
    "precision_at_ranks",
    "precision_within_radius",
]

RANKS = (1, 5, *range(10, 101, 10))  # the ranks of the papers' precision curves
MAP_RANK = 1000  # the papers' mAP@1000


def mean_average_precision(
    query_codes: ArrayLike,
    query_labels: Any,
    database_codes: ArrayLike,
    database_labels: Any,
    *,
    top: int | None = None,
    ties: str = "index",
    normalizer: str | None = None,
    no_relevant: str = "drop",
) -> float:
    """Average precision (see ``Retrieval.average_precision``), mean over the queries.

    ``no_relevant``: queries without a relevant item are dropped from the mean (as in the papers),
    or count as "zero". Without any query left, the mean is NaN.

    >>> codes = np.array([[0], [1], [3]], dtype=np.uint8)
    >>> mean_average_precision(codes[:1], [7], codes, [7, 8, 7])  # (1/1 + 2/3) / 2
    0.8333...
    """
    _check_undefined("mean_average_precision", no_relevant=no_relevant)
    data = query_codes, query_labels, database_codes, database_labels
    retrieval = Retrieval(*data, caller="mean_average_precision")
    return _mean(retrieval.average_precision(top, ties, normalizer), no_relevant)


def precision_within_radius(
    query_codes: ArrayLike,
    query_labels: Any,
    database_codes: ArrayLike,
    database_labels: Any,
    *,
    radius: int = 2,
    empty: str = "zero",
) -> float:
    """Fraction relevant of the items at Hamming distance ≤ ``radius``, mean over the queries.

    ``empty``: queries without any item that near count as "zero" (as in the papers), or are left
    out of the mean ("drop").

    >>> codes = np.array([[0], [1], [255]], dtype=np.uint8)
    >>> precision_within_radius(codes[:1], [7], codes, [7, 8, 7])
    0.5
    """
    _check_undefined("precision_within_radius", empty=empty)
    data = query_codes, query_labels, database_codes, database_labels
    retrieval = Retrieval(*data, caller="precision_within_radius")
    return _mean(retrieval.precision_within(radius), empty)


def precision_at_ranks(
    query_codes: ArrayLike,
    query_labels: Any,
    database_codes: ArrayLike,
    database_labels: Any,
    *,
    ranks: int | Iterable[int] = RANKS,
    ties: str = "index",
) -> NDArray[np.float64]:
    """Fraction relevant of the first R items, mean over the queries, for each R of ``ranks``.

    >>> codes = np.array([[0], [1], [3]], dtype=np.uint8)
    >>> precision_at_ranks(codes[:1], [7], codes, [7, 8, 7], ranks=[1, 2])
    array([1. , 0.5])
    """
    data = query_codes, query_labels, database_codes, database_labels
    retrieval = Retrieval(*data, caller="precision_at_ranks")
    means: NDArray[np.float64] = retrieval.precision_at(ranks, ties).mean(axis=0)
    return means


def evaluate(
    query_codes: ArrayLike,
    query_labels: Any,
    database_codes: ArrayLike,
    database_labels: Any,
    *,
    ties: str = "index",
    normalizer: str | None = None,
    no_relevant: str = "drop",
    empty: str = "zero",
) -> dict[str, float]:
    """All metrics of the papers from one pass over the distances, by name.

    ``map``; ``map@1000`` if the database has more than 1000 items (divided by "retrieved" as in the
    papers, by "min" with ``ties="expected"``, unless you pass a normalizer); ``precision@h2``; and
    ``precision@1``, ``@5``, ``@10``, ``@20`` to ``@100`` as far as the database goes.

    >>> codes = np.array([[0], [1], [3]], dtype=np.uint8)
    >>> evaluate(codes[:1], [7], codes, [7, 8, 7])
    {'map': 0.8333..., 'precision@h2': 0.6666..., 'precision@1': 1.0}
    """
    _check_undefined("evaluate", no_relevant=no_relevant, empty=empty)
    data = query_codes, query_labels, database_codes, database_labels
    retrieval = Retrieval(*data, caller="evaluate")
    tops = [None, MAP_RANK] if retrieval.n_items > MAP_RANK else [None]
    ranks = [rank for rank in RANKS if rank <= retrieval.n_items]
    if ties == "index":
        retrieval.rank([*ranks, *(top or retrieval.n_items for top in tops)])
    result = {}
    for top in tops:
        values = retrieval.average_precision(top, ties, normalizer)
        result["map" if top is None else f"map@{top}"] = _mean(values, no_relevant)
    result["precision@h2"] = _mean(retrieval.precision_within(2), empty)
    at_ranks = retrieval.precision_at(ranks, ties).mean(axis=0)
    return result | {f"precision@{r}": float(p) for r, p in zip(ranks, at_ranks, strict=True)}


def area_under_curve(instances: ArrayLike, values: ArrayLike, *, method: str = "mean") -> float:
    """Area under a metric's ``values`` at checkpoints, after so many ``instances`` of the stream.

    "mean", as in the papers' code, is the plain mean over the checkpoints, however they are
    spaced. "trapezoid" is the area under the straight lines between them, divided by the range of
    ``instances``: it does not depend on the spacing.

    >>> area_under_curve([100, 200, 400], [0.25, 0.5, 0.75])
    0.5
    >>> area_under_curve([100, 200, 400], [0.25, 0.5, 0.75], method="trapezoid")
    0.5416...
    """
    rule = Choice("mean", "trapezoid")
    check_parameters("area_under_curve", {"method": method}, {"method": rule})
    x, y = np.asarray(instances, np.float64), np.asarray(values, np.float64)
    if x.ndim != 1 or x.shape != y.shape or not len(x):
        raise InputError(
            f"area_under_curve: instances of shape {x.shape} and values of shape {y.shape} came; "
            "pass one value for each of at least one checkpoint."
        )
    if not np.isfinite(x).all() or not np.isfinite(y).all():
        raise InputError(
            "area_under_curve: instances or values have NaN or infinity; leave out checkpoints "
            "without a value."
        )
    if (np.diff(x) <= 0).any():
        raise InputError(
            "area_under_curve: instances must rise from checkpoint to checkpoint; sort them, and "
            "keep one value for each."
        )
    if method == "mean":
        return float(y.mean())
    if len(x) == 1:
        raise InputError(
            "area_under_curve: method='trapezoid' needs two checkpoints, but one came; "
            "pass method='mean'."
        )
    return float(np.trapezoid(y, x) / (x[-1] - x[0]))


def _check_undefined(caller: str, **options: str) -> None:
    check_parameters(caller, options, dict.fromkeys(options, Choice("drop", "zero")))


def _mean(values: NDArray[np.float64], undefined: str) -> float:
    if undefined == "zero":
        return float(np.nan_to_num(values).mean())
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")
