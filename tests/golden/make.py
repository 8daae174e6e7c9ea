"""Keep the codes of every method as hashes, so that a change that moves a bit is seen.

Run it before a change that must move none: ``python tests/golden/make.py``, or with the names of
methods that are new: ``python tests/golden/make.py foh`` keeps all others as they are. A hash is of
the bits of one machine: BLAS and the compiler choose their instructions by the processor. So each
machine kind has its own list, and the test compares where the list has one.
"""

import hashlib
import json
import sys
from pathlib import Path

import llvmlite.binding
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_info

from streamhash import SDOH, AnchorMap, CenterScale, SnapshotHasher, StreamPipeline
from streamhash.hashers import METHODS
from streamhash.lab.datasets import load_data

HERE = Path(__file__).parent
CODES = HERE / "codes.json"
SEEDS = (0, 1, 2)
BITS = 32
MNIST_ROWS = 3000
DIVERGES_ON_RAW_ROWS = {"athoh": {"normalize": True}}  # with steps as published


def machine() -> str:
    """The kind of processor, as the compiler and NumPy's BLAS see it."""
    blas = [each["architecture"] for each in threadpool_info() if "numpy" in each["filepath"]]
    return f"{llvmlite.binding.get_host_cpu_name()}, BLAS for {'/'.join(blas)}"


def hashers(seed: int):
    """Yield a name and a hasher for every method and its published settings."""
    for name, method in METHODS.items():
        yield f"{name} default", method(n_bits=BITS, random_state=seed)
        for data in method.settings:
            changes = DIVERGES_ON_RAW_ROWS.get(name, {})
            yield (
                f"{name} {data}",
                method.published(data, n_bits=BITS, random_state=seed, **changes),
            )
    # SDOH as it was by default up to version 0.1: these hashes are as old as it.
    plain = SDOH(BITS, memory=0, features=None, random_state=seed)
    yield "sdoh plain", plain
    yield "pipeline", StreamPipeline([CenterScale(), AnchorMap(100)], clone(plain))
    yield "snapshot", SnapshotHasher(clone(plain), random_state=seed)


def datasets():
    """Yield a name, features and labels: embedded digits, and MNIST where it is at hand."""
    yield "digits", *load_digits(return_X_y=True)
    mnist = load_data("mnist")
    yield "mnist", np.asarray(mnist.X[:MNIST_ROWS]), np.asarray(mnist.y[:MNIST_ROWS])


def digest(hasher, X, y) -> str:
    """The hash of the codes of all rows, after learning the first four fifths in two pieces."""
    half, learned = 2 * len(X) // 5, 4 * len(X) // 5
    hasher.partial_fit(X[:half], y[:half]).partial_fit(X[half:learned], y[half:learned])
    return hashlib.sha256(hasher.transform(X).tobytes()).hexdigest()[:16]


def main() -> None:
    kept = json.loads(CODES.read_text()) if CODES.exists() else {}
    wanted = sys.argv[1:]
    made = {
        f"{data}, {name}, seed {seed}": digest(hasher, X, y)
        for data, X, y in datasets()
        for seed in SEEDS
        for name, hasher in hashers(seed)
        if not wanted or name.split(" ")[0] in wanted
    }
    kept[machine()] = {**kept.get(machine(), {}), **made} if wanted else made
    CODES.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
