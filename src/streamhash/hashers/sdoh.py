"""SDOH: similarity distribution based online hashing (Lin et al., ICCV 2019)."""

from typing import Any

import numpy as np

from streamhash.base import Matrix, OnlineHasher, new_generator
from streamhash.hashers._anchors import AnchorMap
from streamhash.hashers._scaling import CenterScale
from streamhash.hashers.lsh import random_directions
from streamhash.kernels.pairs import PairRule, count_similar, pair_gradient
from streamhash.labels import group
from streamhash.parameters import Choice, Maybe, Number, Whole

__all__ = ["SDOH"]


class SDOH(OnlineHasher):
    """Placeholder docstring."""

    multi_label = True
    reference = "Lin et al., ICCV 2019"
    year = 2019
    rules = {  # noqa: RUF012
        **OnlineHasher.rules,
        "learning_rate": Number(above=0),
        "scale_step": Choice(True, False),
        "label_distribution": Choice("gaussian", "plain"),
        "code_distribution": Choice("scaled", "plain"),
        "balance": Number(above=0),
        "mu": Number(),
        "sigma": Maybe(Number(above=0)),
        "similar_scale": Maybe(Number(above=0)),
        "dissimilar_scale": Maybe(Number(above=0)),
        "gradient": Choice("exact", "released", "printed"),
        "max_steps": Whole(1),
        "tolerance": Maybe(Number()),
        "normalize": Choice(True, False),
        "kernel": Maybe(Whole(1)),
    }
    # Values of the third author's program, recorded for 64 bits (methods.md, section 1.6).
    settings = {  # noqa: RUF012
        data: {
            "batch_size": batch_size,
            "learning_rate": learning_rate,
            "scale_step": False,
            "sigma": sigma,
            "similar_scale": p,
            "dissimilar_scale": n,
            "gradient": "released",
            "max_steps": 1000,
            "tolerance": tolerance,
            "normalize": False,
        }
        for data, batch_size, learning_rate, sigma, p, n, tolerance in (
            ("cifar10", 2000, 0.05, 0.5, 1.0, 1.0, 1e-4),
            ("mnist", 2000, 2.0, 0.3, 1.0, 1.0, 1e-3),
            ("places205", 5000, 2.0, 0.5, 60.0, 10.0, 1e-4),
        )
    }

    def __init__(
        self,
        n_bits: int = 32,
        *,
        batch_size: int = 100,
        learning_rate: float = 40.0,
        scale_step: bool = True,
        label_distribution: str = "gaussian",
        code_distribution: str = "scaled",
        balance: float = 2.5,
        mu: float = 1.0,
        sigma: float | None = None,
        similar_scale: float | None = None,
        dissimilar_scale: float | None = None,
        gradient: str = "exact",
        max_steps: int = 1,
        tolerance: float | None = None,
        normalize: bool = True,
        kernel: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_bits = n_bits
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.scale_step = scale_step
        self.label_distribution = label_distribution
        self.code_distribution = code_distribution
        self.balance = balance
        self.mu = mu
        self.sigma = sigma
        self.similar_scale = similar_scale
        self.dissimilar_scale = dissimilar_scale
        self.gradient = gradient
        self.max_steps = max_steps
        self.tolerance = tolerance
        self.normalize = normalize
        self.kernel = kernel
        self.random_state = random_state

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.parts_ = self._feature_parts()
        width = X.shape[1] if self.kernel is None else self.kernel
        self.W_ = random_directions(width, self.n_bits, new_generator(self.random_state))
        self.loss_ = np.nan
        self.n_steps_ = 0

    def _feature_parts(self) -> list[CenterScale | AnchorMap]:
        scaling = [CenterScale()] if self.normalize else []
        if self.kernel is None:
            return [*scaling]
        return [CenterScale(center=False, scale="unit"), AnchorMap(self.kernel), *scaling]

    def _learn(self, X: Matrix, y: Any) -> None:
        for part in self.parts_:
            part.learn_rows(X)
            X = part.map_rows(X)
        labels = group(y) if y.ndim == 1 else y.astype(np.float32)
        n_pairs = len(X) * (len(X) - 1)
        if n_pairs == 0:
            return  # one instance has nothing to be compared with
        rule, entropy = self._rule(count_similar(labels), n_pairs)
        step = np.float32(self.learning_rate * (len(X) if self.scale_step else 1))
        W, best = self.W_, np.inf
        for _ in range(self.max_steps):
            B = np.tanh(X @ W)  # (n, k)  Eq. 10
            slope = 1 - B * B  # (n, k)  P of Eq. 14
            if self.gradient == "printed":
                G, cross_entropy = pair_gradient(B, B * slope, labels, rule)  # (n, k)  Eq. 15
            else:
                G, cross_entropy = pair_gradient(B, B, labels, rule)  # (n, k)  Eq. 13
                G = G * slope
            W = W - step * (X.T @ G)  # (d, k)  Eq. 11
            self.n_steps_ += 1
            self.loss_ = cross_entropy - entropy  # Eq. 9, before this step
            if self.tolerance is not None and best - self.loss_ <= self.tolerance:
                break  # the step just taken is kept, as in the authors' program
            best = self.loss_
        self.W_ = W

    def _rule(self, n_similar: int, n_pairs: int) -> tuple[PairRule, float]:
        """P, η and the entropy of P for a stage with so many similar pairs."""
        n_dissimilar = n_pairs - n_similar
        ratio = self._ratio(n_similar, n_dissimilar)
        total = n_similar + ratio * n_dissimilar
        p_similar, p_dissimilar = 1 / total, ratio / total  # Eq. 5
        entropy = -sum(
            count * p * np.log(p)
            for count, p in ((n_similar, p_similar), (n_dissimilar, p_dissimilar))
            if p > 0
        )
        if self.code_distribution == "plain":
            scales = 1.0, 1.0  # Eq. 7
        else:
            scales = (
                self.similar_scale or self.n_bits / 10,
                self.dissimilar_scale or self.n_bits / 10,
            )
        return PairRule(p_similar, p_dissimilar, *scales, form=self.gradient), float(entropy)

    def _ratio(self, n_similar: int, n_dissimilar: int) -> float:
        """f(0) / f(1): how much a dissimilar pair weighs in P beside a similar one."""
        if n_similar == 0:
            return 1.0  # no similar pair: every pair weighs the same
        if self.label_distribution == "plain":
            return 0.0  # Eq. 4
        if self.sigma is None:
            return min(1.0, self.balance * n_similar / max(n_dissimilar, 1))
        return float(np.exp(-(2 * self.mu - 1) / (2 * self.sigma**2)))  # Eq. 5

    def _project(self, X: Matrix) -> Matrix:
        for part in self.parts_:
            X = part.map_rows(X)
        return X @ self.W_
