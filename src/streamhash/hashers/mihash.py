"""MIHash: online hashing with mutual information (Cakir et al., ICCV 2017)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, dense, new_generator, random_directions
from streamhash.features import NormalizedHasher
from streamhash.kernels.learning.information import (
    CLIP,
    information_steps,
    plain_information_gradient,
)
from streamhash.labels import neighbours
from streamhash.learned import Array, Part, Real, Table
from streamhash.parameters import Choice, Number, Span, Values, Whole, parameter
from streamhash.reservoir import Reservoir


class MIHash(NormalizedHasher):
    """Online hashing with mutual information (Cakir, He, Bargal and Sclaroff, ICCV 2017).

    For an instance of the stream the distances to its neighbours and to all others should be easy
    to tell apart: the mutual information of distance and neighbourhood is measured on a sample of
    what has come (a reservoir), with soft histograms of distances between relaxed codes, and W
    takes one gradient step an instance. It wins where neighbours are many and codes short, and
    needs no table of classes; a class with no item in the sample is not learned.

    Cost per instance: 2 R d operations for inner products with the R items of the sample, about
    10 R k for the step, 2 R d k / ``batch_size`` for their projections. State: W (d k) and the
    sample (R d).

    Parameters
    ----------
    n_bits : int, default=32
        Code length k, 1 to 1024.
    batch_size : int, default=64
        Rows handled at once; learning is one instance at a time whatever it is, and it has no
        effect but rounding and how often the running mean is renewed. Authors: 1.
    reservoir_size : int, default=1000
        Items in the sample, R. Authors: 1000 (CIFAR-10, MNIST), 5000 (Places205).
    sharpness : float, default=20.0
        Scale A of the sigmoid in φ = σ(A Wᵀx). Authors: 10.
    n_bins : int, default=16
        Bins K of the histograms; at most k are used. Authors: 64.
    learning_rate : float, default=1.0
        Step size. Authors: 1.
    decay : float, default=0.0
        The t-th step is divided by 1 + decay t. Authors: 0.
    gradient : "exact" or "released", default="exact"
        The derivative by φ of a distance is −(2φ_r − 1); the authors' program has −φ_r / 2.
    look_ahead : pair (X, y) or None, default=None
        Items to put into the sample before the stream begins. The authors' program draws R/10 of
        them from the whole training set, and so looks ahead; None: the sample begins empty.
    normalize : bool, default=True
        Take off the running mean and bring instances to unit length, which makes the method
        scale-free. Authors: False, they feed centred rows of unit length.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    memory : int, default=0
        Instances to keep, evenly over the classes (``ClassMemory``); each stage is learned together
        with as many of them as it has, so that it matters how the stream is cut.
    random_state : int, RandomState or None
        Seed of the first hash functions and of the sample.

    Attributes
    ----------
    W_ : array (d, k)
        The hash functions, as columns.
    reservoir_ : Reservoir
        The sample, its features as they came.
    information_ : float
        Mutual information, in bits, of the last instance before its step; NaN before any.
    pairs_ : Reservoir
        The sample of judged pairs, two rows beside each other, if any have come.
    parts_ : list
        What prepares the features: the running mean and unit length, if ``normalize``.

    Notes
    -----
    Judged pairs (``partial_fit_pairs``) say nothing of an instance and most of the sample. So they
    have a sample of their own, R / 2 pairs, and the information is that of the distance within a
    pair and its kind, over this sample and the pairs of a stage; each stage takes one step down its
    gradient, as large as the pairs that are new. A sample of one kind alone changes nothing.

    With a 0/1 matrix of labels, neighbours share at least one class. An instance without neighbours
    in the sample, or with nothing else, changes nothing and may enter the sample.

    Differences from the paper

    1. Codes are those of the current W. In the paper's system codes are those of a snapshot, which
       is renewed when the mutual information of the sample's codes has grown: wrap the method as
       ``SnapshotHasher(MIHash(...))``.
    2. Our defaults are not the paper's; ``MIHash.published`` has those.

    Differences from the authors' program

    1. ``gradient="exact"`` is the derivative of the objective; the program's is ``"released"``.
    2. The sample comes from the stream, which it enters after an instance's own step, unless
       ``look_ahead`` is given.
    3. The projections of the sample are updated with W instead of computed anew for every instance:
       same trajectory but for rounding.
    4. At most k bins: with more, distances between codes reach only some of them.

    References
    ----------
    F. Cakir, K. He, S. A. Bargal, S. Sclaroff: MIHash: online hashing with mutual information. ICCV
    2017, arXiv 1703.08919.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import MIHash
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = MIHash(n_bits=32, random_state=0).fit(X[:1500], y[:1500])
    >>> hasher.transform(X[1500:]).shape
    (297, 4)
    """

    multi_label = True
    learns_pairs = True
    reference = "Cakir et al., ICCV 2017"
    year = 2017

    batch_size: int = parameter(Whole(1), default=64)
    learning_rate: float = parameter(Number(above=0), default=1.0, search=Span(0.1, 10))
    sharpness: float = parameter(Number(above=0), default=20.0, search=Span(2, 60))
    n_bins: int = parameter(Whole(1), default=16, search=Values(8, 16, 32, 64))
    reservoir_size: int = parameter(Whole(1), default=1000, search=Values(200, 500, 1000))
    decay: float = parameter(Number(at_least=0), default=0.0, search=Values(0, 1e-4, 1e-3))
    gradient: str = parameter(Choice("exact", "released"), default="exact")
    look_ahead: tuple[Any, Any] | None = parameter(default=None)

    learns = Table(
        W_=Array(np.float32, "D", "k"),
        reservoir_=Part(Reservoir, size="reservoir_size", d="d"),
        information_=Real(nan=True),
        pairs_=Part(Reservoir, d="pair", optional=True),
    )

    def known_sizes(self) -> dict[str, int]:
        """Return the sizes in the table ``learns`` that follow from the rest."""
        sizes = super().known_sizes()
        return {**sizes, "pair": 2 * sizes["d"]} if "d" in sizes else sizes

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        random = new_generator(self.random_state)
        self.W_ = random_directions(X.shape[1], self.n_bits, random)
        self.reservoir_ = Reservoir(self.reservoir_size, random_state=int(random.integers(2**32)))
        self.reservoir_.start(self.n_features_in_)
        self.information_ = np.nan
        if self.look_ahead is not None:
            place = "MIHash: look_ahead"
            rows = self._check_features(self.look_ahead[0], place, first=False)
            labels = self._check_labels(self.look_ahead[1], rows.shape[0], place)
            self.reservoir_.take(dense(rows), labels)

    def _learn_stage(self, X: Matrix, y: Any) -> None:
        rows = self._prepared(X)
        if self.n_stages_ == 0:
            self._start(rows, y)
        X, rows, y = self._with_memory(X, rows, y)
        sample = self.reservoir_  # keeps rows as they came, since the running mean moves on
        before, n_before, labels_before = (
            self._mapped(sample.rows_),
            sample.n_filled_,
            sample.labels_,
        )
        slots = sample.take(X, y)  # (n,)  where each row goes after its own step
        X = rows
        labels: Any = sample.numbered(y)
        if labels_before is None:
            labels_before = np.zeros((sample.size, *labels.shape[1:]), labels.dtype)
        first = self.n_samples_seen_
        rates = self.learning_rate / (1 + self.decay * np.arange(first, first + len(X)))
        G, information = information_steps(
            before @ self.W_,  # (R, k)
            X @ self.W_,  # (n, k)
            np.hstack([X @ before.T, X @ X.T]),  # (n, R + n)
            np.hstack([neighbours(labels, labels_before), neighbours(labels, labels)]),
            slots,
            n_before,
            rates.astype(np.float32),
            sharpness=self.sharpness,
            n_bins=min(self.n_bins, self.n_bits),
            exact=self.gradient == "exact",
        )
        self.W_ = self.W_ - X.T @ G  # (d, k)  all steps of the stage
        self.information_ = information

    def _learn_pair_stage(
        self,
        X: Matrix,
        similar: NDArray[np.bool_],
        y: list[Any],  # noqa: ARG002
    ) -> int:
        rows = self._prepared(X)
        if self.n_stages_ == 0:
            self._start(rows, None)
        if not hasattr(self, "pairs_"):
            seed = int(new_generator(self.random_state).integers(2**32, size=3)[-1])
            self.pairs_ = Reservoir(max(self.reservoir_size // 2, 1), random_state=seed)
            self.pairs_.start(2 * X.shape[1])
        old, kinds = self.pairs_.rows.reshape(-1, X.shape[1]), self.pairs_.labels
        names = self.pairs_.classes_.labels_
        same = similar if kinds is None else np.append(similar, np.array(names, bool)[kinds])
        self.pairs_.take(X.reshape(len(similar), -1), similar)
        rows = np.concatenate([rows, self._mapped(old)])
        rate = len(similar) * self.learning_rate / (1 + self.decay * self.n_samples_seen_)
        V = np.clip(np.float32(self.sharpness) * (rows @ self.W_), -CLIP, CLIP)  # (2 pairs, k)
        psi = np.tanh(V / 2)  # 2 φ − 1
        distances = (self.n_bits - (psi[::2] * psi[1::2]).sum(axis=1)) / 2
        self.information_, by_distance = plain_information_gradient(
            distances, same, self.n_bits, min(self.n_bins, self.n_bits)
        )
        other = psi.reshape(-1, 2, self.n_bits)[:, ::-1].reshape(psi.shape)  # of the pair's other
        J = -other if self.gradient == "exact" else -(other + 1) / 4
        slope = np.float32(self.sharpness) * (1 - psi * psi) / 4  # A φ (1 − φ)
        G = np.repeat(by_distance, 2)[:, None].astype(np.float32) * J * slope
        self.W_ = self.W_ - np.float32(rate) * (rows.T @ G)
        return len(X)
