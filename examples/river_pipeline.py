"""A hasher as a step of a river pipeline: rows are dicts, and come one at a time.

``HashTransformer`` is the adapter: copy it, or import it from here. The stream is river's Phishing
set; each row is classified by its code before it is learned, as river does. Needs river:
``pip install river``.

    python examples/river_pipeline.py
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river import base
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from streamhash import HCOH, LSH, OnlineHasher
from streamhash.codes import unpack


class HashTransformer(base.MiniBatchSupervisedTransformer, base.SupervisedTransformer):
    """Any hasher as river's transformer: features become bits, named 0, 1 and so on.

    A hasher has a fixed number of features. Those of the first row, sorted by name, are its
    features from then on: one that is missing in a row counts as 0, one that comes later is left
    out. Until there is a model, rows have no bits ({}).

    Parameters
    ----------
    hasher
        What learns; None: HCOH of 32 bits, which learns row by row. It is copied, and stays as it
        is. Methods that learn from pairs of rows, as SDOH does, want ``learn_many``.
    """

    def __init__(self, hasher: OnlineHasher | None = None) -> None:
        self.hasher = hasher
        self._learner = clone(HCOH(n_bits=32, random_state=0) if hasher is None else hasher)
        self._names: list[Any] = []

    @property
    def _supervised(self) -> bool:
        return bool(self._learner.needs_labels)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"hasher": LSH(n_bits=16, random_state=0)}

    def learn_one(self, x: dict[Any, Any], y: Any = None) -> None:
        """Learn one row."""
        self._learn([*x], self._row(x, learning=True), None if y is None else [y])

    def learn_many(self, X: Any, y: Any = None) -> None:
        """Learn the rows of a DataFrame."""
        self._learn([*X.columns], self._table(X, learning=True), None if y is None else [*y])

    def _learn(self, names: list[Any], rows: NDArray[np.float64], y: list[Any] | None) -> None:
        self._learner.partial_fit(rows, y if self._supervised else None)
        self._names = self._names or sorted(names, key=str)

    def transform_one(self, x: dict[Any, Any]) -> dict[Any, Any]:
        """Return the bits of one row."""
        if not self._names:
            return {}
        try:
            (bits,) = unpack(self._learner.transform(self._row(x)), self._learner.n_bits)
        except NotFittedError:  # it gathers rows of a first stage
            return {}
        return dict(enumerate(bits.astype(int).tolist()))

    def transform_many(self, X: Any) -> Any:
        """Return the bits of the rows of a DataFrame."""
        bits = [self.transform_one(row) for row in X.to_dict(orient="records")]
        return type(X)(bits, index=X.index)

    def _row(self, x: dict[Any, Any], *, learning: bool = False) -> NDArray[np.float64]:
        names = self._names or (sorted(x, key=str) if learning else [])
        return np.array([[float(x.get(name, 0)) for name in names]])

    def _table(self, X: Any, *, learning: bool) -> NDArray[np.float64]:
        rows = [self._row(row, learning=learning) for row in X.to_dict(orient="records")]
        return np.concatenate(rows)


def main() -> None:
    """Classify a stream by codes of its rows, and by the rows themselves."""
    from river import datasets, metrics, naive_bayes, preprocessing

    for name, model in {
        "features": preprocessing.StandardScaler() | naive_bayes.GaussianNB(),
        "32 bits": HashTransformer(HCOH(n_bits=32, random_state=0)) | naive_bayes.BernoulliNB(),
    }.items():
        accuracy = metrics.Accuracy()
        for x, y in datasets.Phishing():
            predicted = model.predict_one(x)
            if predicted is not None:
                accuracy.update(y, predicted)
            model.learn_one(x, y)
        print(f"{name}: {accuracy.get():.3f} of {int(accuracy.cm.n_samples):,} rows right")


if __name__ == "__main__":
    main()
