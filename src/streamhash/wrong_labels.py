"""Which labels are probably wrong, and what those rows are instead.

A row with the label c is one of class c, or, with a probability ε_c, any row of the stream. How far
it lies from the classes tells the two apart, if it had no part in saying where the classes lie.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix

Numbers = NDArray[np.float64]
WRONG = *(0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.07), *np.linspace(0.1, 0.6, 11).tolist()  # tried
MANY_WRONG = 0.05  # labels: below, what looks wrong may as well be rows unlike their class
SURE = 2.0  # deviations: by so many there must be that many
MANY_CLASSES = 1 / 3  # whose labels are mostly wrong: from so many on, labels are put right
WIDTHS = 2.0 ** np.arange(-5, 2.5, 0.5)  # tried, in units of the spread of the distances
PRIOR_ROWS = 2.0  # what the share of all classes weighs beside the rows of one
ROUNDS = 20


class NoiseFit(NamedTuple):
    """The share of wrong labels, and the width by which distances become likelihoods.

    ``gain`` is what its log-likelihood is more than that of any share below ``MANY_WRONG``.
    """

    wrong: float
    width: float
    gain: float

    @property
    def is_sure(self) -> bool:
        """Whether many labels are wrong, by more than chance: a test of the likelihood ratio."""
        return self.wrong >= MANY_WRONG and 2 * self.gain > SURE**2

    def spoils(self, counts: Numbers) -> bool:
        """Whether most labels of many classes are wrong, if classes have these rows.

        Wrong labels fall on all classes alike, ε n / C each, and so on rare ones the most.
        """
        of_class = self.wrong * counts.sum() / len(counts)
        return self.is_sure and float((of_class > counts / 2).mean()) >= MANY_CLASSES


def fit_noise(distances: NDArray[Any], shares: Matrix) -> NoiseFit:
    """Return the share of wrong labels ε and the width T that make the labels likeliest.

    ``distances`` (n, C) are squared, of each row from each class; ``shares`` (n, C) are positive
    for the classes a row is said to be of. With p = softmax(−½ distances / T), a row has its label
    by (1 − ε) p_c + ε / C; of several labels, one must be right.
    """
    labelled = shares.any(axis=1)
    logits, has = _logits(distances[labelled]), shares[labelled] > 0
    if not len(logits) or logits.shape[1] < 2:
        return NoiseFit(0.0, 1.0, 0.0)
    by_chance = has.sum(axis=1) / has.shape[1]
    unit = float(np.sqrt(np.square(logits - logits.mean(axis=1, keepdims=True)).mean())) or 1.0
    found: list[tuple[float, float, float]] = []  # log-likelihood, share, width
    for width in unit * WIDTHS:
        p = np.exp(logits / width)
        own = np.where(has, p, 0).sum(axis=1) / p.sum(axis=1)
        for wrong in WRONG:
            likely = np.log((1 - wrong) * own + wrong * by_chance).sum()
            found.append((float(likely), wrong, float(width)))
    best, wrong, width = max(found)
    few = max(likely for likely, wrong, _ in found if wrong < MANY_WRONG)
    return NoiseFit(wrong, width, best - few)


def probable_shares(
    distances: NDArray[Any], shares: Matrix, counts: Numbers, fit: NoiseFit
) -> Matrix:
    """Return how much of each row (n, C) probably belongs to each class.

    ``counts`` (C,) are the rows that the stream has of each class. With f_c = exp(−½ distance / T)
    and f = Σ_j π_j f_j, a label c is right by q = (1 − ε_c) f_c / ((1 − ε_c) f_c + ε_c f), and then
    the row's shares are as they were; else they are π_j f_j / f. Each ε_c is the mean of 1 − q over
    the rows of its class, and π_j goes with the rows of a class whose label is right, (1 − ε_j)
    n_j: found in turns, from the ε of all. A row without labels stays without.
    """
    has = shares > 0
    f = np.exp(_logits(distances) / fit.width)
    own = np.where(has, f, 0).max(axis=1)
    rows = shares.sum(axis=0, dtype=np.float64)
    wrong = np.full(len(counts), fit.wrong)
    for _ in range(ROUNDS):
        often = counts * (1 - wrong)
        often = often / often.sum()
        doubts = (shares @ wrong) * (f @ often)
        belief = (1 - shares @ wrong) * own
        right = belief / np.maximum(belief + doubts, np.finfo(np.float64).tiny)
        wrong = (shares.T @ (1 - right) + PRIOR_ROWS * fit.wrong) / (rows + PRIOR_ROWS)
    instead = f * often
    instead *= ((1 - right) / instead.sum(axis=1))[:, None]
    found: Matrix = (shares * right[:, None] + instead).astype(np.float32)
    found[~has.any(axis=1)] = 0
    return found


def _logits(distances: NDArray[Any]) -> Numbers:
    """Return −½ of the squared distances, with 0 for the nearest class."""
    nearest = distances.min(axis=1, keepdims=True)
    logits: Numbers = (nearest - distances) / 2
    return logits
