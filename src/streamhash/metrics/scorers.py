"""Scorers for scikit-learn: what ``scoring=`` of GridSearchCV and cross_val_score takes.

A scorer is called with a fitted hasher and the rows that were held out, which it has not learned.
A part of them asks, and the rest is searched: the same for every setting and every call, so that
settings are compared on equal terms.

>>> from sklearn.datasets import load_digits
>>> from sklearn.model_selection import GridSearchCV
>>> from streamhash import HCOH
>>> from streamhash.metrics import map_scorer
>>> X, y = load_digits(return_X_y=True)
>>> search = GridSearchCV(
...     HCOH(16, random_state=0), {"learning_rate": [0.001, 0.2]}, scoring=map_scorer, cv=3
... )
>>> search.fit(X, y).best_params_
{'learning_rate': 0.2}
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError
from streamhash.labels import as_numpy, check_labels
from streamhash.metrics.retrieval import evaluate, evaluate_by_class
from streamhash.parameters import Number, Whole, check_parameters

QUERY_SHARE = 0.2


class RetrievalScorer:
    """Scores a hasher by a metric of retrieval, on rows that it has not learned.

    Parameters
    ----------
    metric : "map", or another one that :func:`evaluate` returns, such as "precision@h2" or
        "precision@10"; a rank beyond the rows that are searched is an error
    by_class : whether means are taken over the classes, so that rare ones count as much as others
    query_share : share of the rows that ask, .01 to .9; the rest is searched
    random_state : draws those that ask, the same at every call

    The call ``scorer(hasher, X, y)`` returns the score; larger is better. ``hasher`` is anything
    with ``transform`` to codes: a hasher, a StreamPipeline, or a Pipeline of scikit-learn that ends
    in one.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import cross_val_score
    >>> from streamhash import LSH
    >>> X, y = load_digits(return_X_y=True)
    >>> scorer = RetrievalScorer("precision@10")
    >>> scores = cross_val_score(LSH(64, random_state=0), X, y, scoring=scorer, cv=3)
    >>> [bool(0.7 < score < 0.95) for score in scores]
    [True, True, True]
    """

    def __init__(
        self,
        metric: str = "map",
        *,
        by_class: bool = False,
        query_share: float = QUERY_SHARE,
        random_state: int = 0,
    ) -> None:
        given = {"query_share": query_share, "random_state": random_state}
        rules = {"query_share": Number(at_least=0.01, at_most=0.9), "random_state": Whole(0)}
        check_parameters("RetrievalScorer", given, rules)
        self.metric, self.by_class = metric, by_class
        self.query_share, self.random_state = query_share, random_state

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Encode held-out rows, let some of them ask for the others, and return the metric."""
        labels = check_labels(y, _n_rows(X), place="RetrievalScorer")
        if len(labels) < 2:
            raise InputError(
                f"RetrievalScorer: {len(labels)} rows are held out, of which some ask and others "
                "are searched; hold out more."
            )
        codes = np.asarray(estimator.transform(X))
        if codes.dtype != np.uint8 or codes.ndim != 2:
            name = type(estimator).__name__
            raise InputError(
                f"RetrievalScorer: {name}.transform gave {codes.dtype} of shape {codes.shape}, not "
                "codes of uint8; pass a hasher."
            )
        asking, searched = self._split(len(labels))
        data = codes[asking], labels[asking], codes[searched], labels[searched]
        if self.by_class:
            found = [self._of(values) for values in evaluate_by_class(*data).values()]
            return float(np.nanmean(found))
        return self._of(evaluate(*data))

    def _of(self, values: Mapping[str, float]) -> float:
        if self.metric not in values:
            raise InputError(
                f"RetrievalScorer: metric={self.metric!r} is unknown, or needs more rows than are "
                f"held out; choose from {', '.join(values)}."
            )
        return float(values[self.metric])

    def _split(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        order = np.random.default_rng(self.random_state).permutation(n)
        n_queries = min(max(1, round(self.query_share * n)), n - 1)
        return np.sort(order[:n_queries]), np.sort(order[n_queries:])

    def __repr__(self) -> str:
        return (
            f"RetrievalScorer({self.metric!r}, by_class={self.by_class}, "
            f"query_share={self.query_share}, random_state={self.random_state})"
        )


def _n_rows(X: Any) -> int:
    X = as_numpy(X)
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


map_scorer = RetrievalScorer("map")
map_by_class_scorer = RetrievalScorer("map", by_class=True)
precision_scorer = RetrievalScorer("precision@10")
radius_scorer = RetrievalScorer("precision@h2")
