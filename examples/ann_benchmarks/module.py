"""Our indexes as ann-benchmarks calls them: methods of its ``BaseANN``, on its Hamming data sets.

ann-benchmarks makes an object with the metric's name, calls ``fit`` once, ``set_query_arguments``
for each group of a run, then ``query`` for each vector or ``batch_query`` and ``get_batch_results``
for all, and ``done`` in the end. Nothing here needs it installed.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamhash import HammingIndex, InputError
from streamhash.codes import Codes
from streamhash.search import ApproximateIndex

__all__ = ["StreamhashBuckets", "StreamhashExact"]


class StreamhashExact:
    """The exact index.

    Parameters
    ----------
    metric : str
        "hamming", the only one.
    packed : bool
        Whether vectors are rows of packed bytes. ann-benchmarks' own sets have one value a bit.

    >>> algorithm = StreamhashExact("hamming")
    >>> algorithm.fit(np.array([[True, False, False], [True, True, False], [False, True, True]]))
    >>> algorithm.query(np.array([False, True, False]), 2)
    [1, 2]
    """

    def __init__(self, metric: str, packed: bool = False) -> None:
        if metric != "hamming":
            raise InputError(
                f"{type(self).__name__}: metric={metric!r} came; run it on data sets of hamming."
            )
        self.packed = packed
        self.name = "StreamhashExact()"
        self._index: HammingIndex | ApproximateIndex | None = None
        self._results: list[list[int]] = []
        self._kilobytes = 0.0

    def __str__(self) -> str:
        return self.name

    def fit(self, X: ArrayLike) -> None:
        """Build the index of ``X``: (n, bits) of 0 and 1 or booleans, or packed (n, bytes)."""
        array = np.asarray(X)
        if not self.packed and array.dtype != bool and not np.isin(array, (0, 1)).all():
            raise InputError(
                f"{type(self).__name__}.fit: X holds other values than 0 and 1; pass packed=True "
                "if its bytes are packed bits."
            )
        codes = self._pack(array)
        index = HammingIndex(array.shape[1] * (8 if self.packed else 1))
        index.add(None, codes)
        self._index = self._build(index)
        self._kilobytes = (codes.nbytes + 8 * len(codes)) / 1024

    def set_query_arguments(self, *arguments: Any) -> None:
        """Take the arguments of a run's group of queries: the exact index has none."""
        if arguments:
            raise InputError(
                f"StreamhashExact: query arguments {arguments} came; leave query_args out."
            )

    def query(self, v: ArrayLike, n: int) -> list[int]:
        """Find the ``n`` nearest of one vector: row numbers of ``X``, nearest first."""
        return self._find(np.asarray(v)[None], n)[0]

    def batch_query(self, X: ArrayLike, n: int) -> None:
        """Find the ``n`` nearest of each row; ``get_batch_results`` gives them."""
        self._results = self._find(np.asarray(X), n)

    def get_batch_results(self) -> list[list[int]]:
        """Return what the last ``batch_query`` found."""
        return self._results

    def get_memory_usage(self) -> float:
        """Return the kilobytes of the codes and ids that searches read; 0 before ``fit``."""
        return self._kilobytes

    def get_additional(self) -> dict[str, Any]:
        """Return what else is to be stored with the results: nothing."""
        return {}

    def done(self) -> None:
        """Let the index go."""
        self._index, self._results, self._kilobytes = None, [], 0.0

    def _build(self, index: HammingIndex) -> HammingIndex | ApproximateIndex:
        return index

    def _pack(self, rows: NDArray[Any]) -> Codes:
        return rows if self.packed else np.packbits(rows != 0, axis=1)

    def _find(self, rows: NDArray[Any], n: int) -> list[list[int]]:
        if self._index is None:
            raise InputError(f"{type(self).__name__}: nothing is indexed; call fit(X) first.")
        _, ids = self._index.search(self._pack(rows), n)
        return [row[row >= 0].tolist() for row in ids]


class StreamhashBuckets(StreamhashExact):
    """The approximate index; its query argument is ``n_probe``, 8 unless it is set.

    Parameters
    ----------
    metric, packed
        As above.
    n_buckets : int, optional
        As for ``ApproximateIndex``.
    """

    def __init__(self, metric: str, n_buckets: int | None = None, packed: bool = False) -> None:
        super().__init__(metric, packed)
        self.n_buckets = n_buckets
        self.set_query_arguments(8)

    def set_query_arguments(self, *arguments: Any) -> None:
        """Take ``n_probe``, the number of buckets that a search looks into."""
        if len(arguments) != 1:
            raise InputError(
                f"StreamhashBuckets: query arguments {arguments} came; pass n_probe alone."
            )
        (self.n_probe,) = arguments
        if isinstance(self._index, ApproximateIndex):
            self._index.n_probe = self.n_probe
        self.name = f"StreamhashBuckets(n_buckets={self.n_buckets}, n_probe={self.n_probe})"

    def _build(self, index: HammingIndex) -> ApproximateIndex:
        return ApproximateIndex(
            index, n_buckets=self.n_buckets, n_probe=self.n_probe, random_state=0
        )
