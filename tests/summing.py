"""A small method that remembers: it learns sums, works out its bits from them, and can forget."""

import zlib
from typing import Any

import numpy as np

from streamhash.base import OnlineHasher, snapshot
from streamhash.classes import ClassTable


class Summing(OnlineHasher):
    """Sums of each class; its bits are random sums of the classes' means.

    Features are rounded, so that sums are exact, and forgetting leaves no trace.
    """

    can_forget = True
    multi_label = True  # a row counts for each of its classes

    def _start(self, X, y):  # noqa: ARG002
        self.classes_ = ClassTable()
        self.sums_ = np.zeros((0, X.shape[1]))
        self.counts_ = np.zeros(0)
        self.settled_ = False

    def _learn(self, X, y):
        self._count(X, y, 1)

    def _count(self, X, y, sign):
        if y.ndim == 2:
            rows, y = np.nonzero(y)
            X = X[rows]
        numbers = self.classes_.number(y)
        more = len(self.classes_) - len(self.counts_)
        sums = np.pad(self.sums_, ((0, more), (0, 0)))
        counts = np.pad(self.counts_, (0, more))
        np.add.at(sums, numbers, sign * np.rint(1024 * X.astype(np.float64)))
        np.add.at(counts, numbers, sign)
        assert (counts >= 0).all()
        self.sums_, self.counts_, self.settled_ = sums, counts, False

    @property
    def next_stage(self) -> int:
        return max(self.batch_size, getattr(self, "n_samples_seen_", 0) // 4)

    def forget(self, X: Any, y: Any = None):
        self._count(np.asarray(X, np.float32), np.asarray(y), -1)
        self.n_samples_seen_ -= len(X)
        return self

    def settle(self):
        if hasattr(self, "sums_") and not self.settled_:
            means = self.sums_ / np.maximum(self.counts_, 1)[:, None] / 1024
            # Each class has its own, whenever it came.
            seeds = [zlib.crc32(repr(label).encode()) for label in self.classes_.labels_]
            mixed = [np.random.default_rng(seed).standard_normal(self.n_bits) for seed in seeds]
            order = np.argsort(seeds)
            self.W_ = (means[order].T @ np.array(mixed)[order]).astype(np.float32)
            self.settled_ = True
        return self

    def by_class(self):
        """What it has learned of each class."""
        labels = self.classes_.labels_
        return {labels[i]: (n, self.sums_[i].tolist()) for i, n in enumerate(self.counts_) if n}

    def encoder(self):
        twin = snapshot(self.settle())
        del twin.sums_, twin.counts_
        return twin

    def project_rows(self, X):
        self.settle()
        return super().project_rows(X)

    def _described(self):
        self.settle()
        return super()._described()
