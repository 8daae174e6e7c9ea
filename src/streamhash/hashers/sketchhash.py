"""SketchHash: online sketching hashing (Leng et al., CVPR 2015)."""

from typing import Any

from streamhash.base import Matrix
from streamhash.hashers._principal import PrincipalHasher
from streamhash.hashers._sketch import Doubles
from streamhash.learned import Table
from streamhash.parameters import Choice, Values, parameter


class SketchHash(PrincipalHasher):
    """Online sketching hashing (Leng, Wu, Cheng, Bai, Lu, CVPR 2015).

    A sketch of l rows, frequent directions, stands for the whole stream: its SᵀS is near the
    scatter matrix of all instances so far, exactly centred. Its first k principal directions,
    turned by a random rotation so that all bits carry about the same variance, are the hash
    functions. It uses no labels. It wins over random projections wherever the data have fewer
    directions than features, and follows the stream as a whole; it loses to every supervised
    method where labels are there to be had.

    Cost per stage: one decomposition of the sketch, l² d + 9 l³ operations, and one more for every
    l/2 instances. State: the sketch (l d), W (d k), the rotation (k²) and two means (d).

    Parameters
    ----------
    n_bits : int, default=32
        Code length k, 1 to 1024.
    batch_size : int, default=200
        Instances a stage, n_t; hash functions are renewed once a stage, and as the state is kept
        little else depends on it. Authors of the benchmark: 50.
    sketch_size : int or None, default=None
        Rows l of the sketch, even. None: 2k, at least 200, but no more than 2d, with which
        nothing is lost, or 100. Benchmark: 200 (CIFAR-10, MNIST), 100 (Places205). Below 2k the
        hash functions are renewed only at stages where the sketch is full enough.
    state : "kept" or "released", default="kept"
        "released" forgets sketch, mean and count before every stage, as the released program does:
        the hash functions are then those of the last stage alone, and stay at random directions if
        no stage has more than k instances.
    rotation : "carried", "fixed" or "released", default="carried"
        "carried": drawn once, then each stage the one that keeps W nearest to what it was. "fixed":
        the matrix R itself stays, but signs and order of singular vectors may change under it.
        "released": a new one every stage, as in the released program, so that no code outlives its
        stage. Bits of MNIST that change in a stage, late in the stream at 32 bits: about 0.1, 0.5
        to 7, and 50 %; at the same quality.
    normalize : bool, default=True
        Take off the running mean and bring instances to unit length, which makes the method
        scale-free. Benchmark: False, its features are centred and of unit length beforehand.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    random_state : int, RandomState or None
        Seed of the first hash functions and of rotations.

    Attributes
    ----------
    W_ : array (d, k)
        The hash functions, as columns.
    mean_ : array (d,)
        Mean μ of the instances so far, after normalisation.
    sketch_ : FrequentDirections
        The sketch; ``sketch_.S_`` (l, d) are its rows.
    R_ : array (k, k)
        The rotation that was drawn.
    rank_ : int
        Number p ≤ k of principal directions that W is made of; 0 while it is still random.
    n_sketched_, n_stages_, n_samples_seen_ : int
        Instances in the sketch, stages and instances seen.

    Notes
    -----
    Until more than min(k, d) instances have come, W stays at random directions. Where the data have
    only p < k directions (always, if k > d), the first p rows of the rotation spread them over all
    k bits: random directions of the space that there is.

    Differences from the paper

    1. W is renewed only when the sketch has the rank for it, so code lengths above n_t work.
    2. The rotation is drawn once and carried along; ``rotation="released"`` has a new one every
       stage.
    3. Until the first W: Gaussian directions, not uniform numbers.
    4. Features are normalised by default, and the sketch size follows the code length.

    Differences from the released program (the benchmark of Cakir et al.)

    1. It loses its state between stages; ``state="released"`` does, too.
    2. It counts all rows of the sketch as filled, and so shrinks once too often a stage. Here rows
       are counted.
    3. Signs of singular vectors are fixed; there they are what the library gives.
    4. It needs n_t ≥ k.

    References
    ----------
    C. Leng, J. Wu, J. Cheng, X. Bai, H. Lu: Online sketching hashing. CVPR 2015.
    E. Liberty: Simple and deterministic matrix sketching. KDD 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import SketchHash
    >>> X, _ = load_digits(return_X_y=True)
    >>> hasher = SketchHash(n_bits=32, random_state=0)
    >>> for start in range(0, 1500, 500):
    ...     _ = hasher.partial_fit(X[start : start + 500])
    >>> hasher.transform(X[1500:]).shape
    (297, 4)
    """

    reference = "Leng et al., CVPR 2015"
    year = 2015

    state: str = parameter(Choice("kept", "released"), default="kept")
    rotation: str = parameter(
        Choice("carried", "fixed", "released"),
        default="carried",
        search=Values("carried", "released"),
    )

    learns = Table()

    def _learn(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        mean_of_W = self.mean_
        if self.state == "released":
            self._empty(X.shape[1])
        self._sketch(X)
        if not self._renew() and self.state == "released" and self.rank_:
            self.mean_ = mean_of_W  # hash functions of an earlier stage keep their own mean

    def _turn(self, V: Doubles) -> Doubles:
        return self._rotation(V, self.rotation)
