"""OSH: online supervised hashing (Cakir and Sclaroff, ICIP 2015)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, new_generator, random_directions
from streamhash.classes import ClassTable
from streamhash.features import NormalizedHasher
from streamhash.hashers._codebook import Codebook
from streamhash.kernels.learning.sequential import learn_one_by_one
from streamhash.learned import Array, Generator, Part, Table
from streamhash.parameters import Choice, Number, Span, Values, Whole, parameter


class OSH(NormalizedHasher):
    """Online supervised hashing with error-correcting output codes.

    Each class gets a random codeword when it first appears, and the k hash functions learn as k
    online classifiers to tell its bits: each for itself by the hinge loss, or one after the other
    by the exponential loss of boosting. Any number of classes may come. It wins for its simplicity;
    random codewords of few bits lie close to each other or collide.

    Cost per instance and label: 4 d k operations. State: W (d k), the mean (d) and the codewords
    (classes × k).

    Parameters
    ----------
    n_bits : int, default=32
        Code length k.
    batch_size : int, default=64
        Rows handled at once; without effect on the result but for rounding. Instances are learned
        one after the other.
    learning_rate : float, default=0.1
        Step. Authors: 0.1 on all data.
    loss : "hinge" or "boosting", default="hinge"
        Hinge loss of every bit for itself; or exponential loss, where a bit weighs by what the bits
        before it got wrong. Authors: "boosting".
    codewords : "spread" or "random", default="spread"
        A new class takes, of 64 random codewords, the one farthest from those given; or any.
        Authors: "random".
    state : "kept" or "released", default="kept"
        "released": the table of codewords is lost after every instance, as in the authors' released
        program, so that every class gets codeword 1; for reproduction only.
    normalize : bool, default=True
        Take off the running mean and bring instances to unit length, which makes the method
        scale-free. Authors: features centred by the mean of all data, and of unit length.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    memory : int, default=0
        Instances to keep, evenly over the classes (``ClassMemory``); each stage is learned together
        with as many of them as it has, so that it matters how the stream is cut.
    random_state : int, RandomState or None
        Seed of the first hash functions and of the codewords.

    Attributes
    ----------
    W_ : array (d, k)
        The hash functions, as columns.
    codebook_ : Codebook
        The codewords (classes, k), in the order in which classes came.
    table_ : ClassTable
        The classes in that order; with a matrix of labels, its columns.
    parts_ : list
        What prepares the features: the running mean and unit length, if ``normalize``.
    random_ : Generator
        The source of further codewords.
    n_stages_, n_samples_seen_ : int
        Stages and instances seen.

    Notes
    -----
    With a 0/1 matrix of labels an instance is learned from once for each of its labels, in the
    order of the columns; an instance without labels moves nothing but the running mean.

    Differences from the paper

    1. Without the regularisation of updates of the journal version (CVIU 2017).
    2. Our default: hinge loss, spread codewords, running mean; ``OSH.published`` has boosting,
       random codewords, and features as they come.

    Differences from the authors' program

    1. The state is kept. In the released program the object that holds the codewords is thrown away
       after every call; ``state="released"`` does so too.
    2. Codewords are drawn when a class comes, not from a pool of 10,000 that can run out.
    3. The exponent of boosting is held to at most 30, so that long codes cannot overflow.
    4. float32 instead of float64; steps go in blocks with the same outcome
       (``kernels/learning/sequential.py``).

    References
    ----------
    F. Cakir, S. Sclaroff: Online supervised hashing. ICIP 2015. F. Cakir, S. A. Bargal, S.
    Sclaroff: Online supervised hashing. Computer Vision and Image Understanding 2017, arXiv
    1511.03257.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import OSH
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = OSH(n_bits=32, random_state=0).partial_fit(X[:1500], y[:1500])
    >>> hasher.transform(X[1500:]).shape
    (297, 4)
    """

    multi_label = True
    reference = "Cakir and Sclaroff, ICIP 2015"
    year = 2015
    one_by_one = True
    has_label_codes = True

    batch_size: int = parameter(Whole(1), default=64)
    learning_rate: float = parameter(Number(above=0), default=0.1, search=Span(0.005, 1))
    loss: str = parameter(
        Choice("hinge", "boosting"), default="hinge", search=Values("hinge", "boosting")
    )
    codewords: str = parameter(
        Choice("spread", "random"), default="spread", search=Values("spread", "random")
    )
    state: str = parameter(Choice("kept", "released"), default="kept")

    learns = Table(
        W_=Array(np.float32, "D", "k"),
        codebook_=Part(Codebook, n_bits="k"),
        table_=Part(ClassTable),
        random_=Generator(),
    )

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.random_ = new_generator(self.random_state)
        self.W_ = random_directions(X.shape[1], self.n_bits, self.random_)
        self.codebook_ = Codebook(self.n_bits, kind=self.codewords)
        self.table_ = ClassTable()

    def _learn(self, X: Matrix, y: Any) -> None:
        if y.ndim == 2:  # one step a label, one after the other
            rows, columns = np.nonzero(y)
            X, places = X[rows], np.arange(len(rows)) - np.searchsorted(rows, rows)
            numbers = self.table_.number(columns)
        else:
            places, numbers = np.zeros(len(y), np.int64), self.table_.number(y)
        if self.state == "released":  # numbered anew at every instance
            numbers = places.astype(np.int32)
        T = self.codebook_.targets(numbers, self.random_)  # (n, k)
        self.W_, _ = learn_one_by_one(X, self.W_, T, self.loss, self.learning_rate)

    def _label_values(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        L = self.table_.one_hot(y)  # (n, C)
        if self.state == "released":  # a row's first label has codeword 1, and so on
            L = (np.arange(len(self.codebook_.targets_)) < L.sum(axis=1)[:, None]).astype(L.dtype)
        return L @ self.codebook_.targets_, L
