"""A method of one's own: the contract checked, and measured beside others.

Every class gets a random codeword, and W sums up which features go with which bits. It is meant to
be short, not good: see how far it comes.

    python examples/own_method.py
    streamhash bench --method sdoh,own_method:Codewords      # in this folder
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash import CenterScale, OnlineHasher, lab
from streamhash.base import new_generator
from streamhash.checks import check_hasher
from streamhash.classes import ClassTable
from streamhash.learned import Array, Generator, Part, Table

Matrix = NDArray[np.float32]


class Codewords(OnlineHasher):
    """Regression without the regression: correlations of features with the bits of codewords."""

    reference = "nobody, nowhere 2026"
    year = 2026
    learns = Table(
        W_=Array(np.float32, "D", "k"),
        codewords_=Array(np.float32, "C", "k"),
        classes_=Part(ClassTable),
        random_=Generator(),
    )

    def _feature_parts(self, d: int) -> list[Any]:  # noqa: ARG002
        return [CenterScale(scale="unit")]

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.random_ = new_generator(self.random_state)
        self.W_ = np.zeros((X.shape[1], self.n_bits), np.float32)
        self.codewords_ = np.zeros((0, self.n_bits), np.float32)
        self.classes_ = ClassTable()

    def _learn(self, X: Matrix, y: Any) -> None:
        numbers = self.classes_.number(y)  # (n,): y holds labels of any type
        n_new = len(self.classes_) - len(self.codewords_)
        new = self.random_.choice([-1.0, 1.0], (n_new, self.n_bits)).astype(np.float32)
        self.codewords_ = np.concatenate([self.codewords_, new])
        self.W_ = self.W_ + X.T @ self.codewords_[numbers]


def main() -> None:
    """Check it, and put it beside a learned method and a random one."""
    check_hasher(Codewords(n_bits=16, random_state=0))
    print("Codewords keeps every check")
    rows = lab.bench([Codewords, "hcoh", "lsh"], "digits", n_bits=32, seeds=2, jobs=1)
    for line in lab.summarise(rows):
        print(f"{line.label:10} mAP {line.text('map')}, {line.seconds('learn'):.2f} CPU s to learn")


if __name__ == "__main__":
    main()
