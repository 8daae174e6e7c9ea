"""What the checks feed to a hasher, and how they look at it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from streamhash import storage
from streamhash.base import Matrix, OnlineHasher
from streamhash.errors import StreamhashError

__all__ = ["fresh", "learned_from", "refuses", "state", "stream"]


def stream(
    n: int = 600, d: int = 24, classes: int = 4, seed: int = 7
) -> tuple[Matrix, NDArray[Any]]:
    """Gaussian classes: easy to tell apart, off centre, and in no order."""
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    means = 2 * random.standard_normal((classes, d))
    X = means[y] + random.standard_normal((n, d)) + 1
    return X.astype(np.float32), y


def fresh(hasher: OnlineHasher) -> OnlineHasher:
    """Return an unlearned twin."""
    twin: OnlineHasher = clone(hasher)
    return twin


def learned_from(hasher: OnlineHasher, X: Any, y: Any) -> OnlineHasher:
    """Return a twin that has learned from one piece."""
    return fresh(hasher).partial_fit(X, y)


def state(hasher: OnlineHasher) -> tuple[str, dict[str, bytes]]:
    """All that a hasher is, in a form that compares bit for bit."""
    arrays: storage.Arrays = {}
    description = storage.describe(hasher, arrays, "model")
    return repr(description), {name: array.tobytes() for name, array in arrays.items()}


def refuses(hasher: OnlineHasher, X: Any, y: Any, why: str) -> None:
    """Assert that a piece is refused with a clear error and that nothing has changed."""
    before = state(hasher)
    try:
        hasher.partial_fit(X, y)
    except StreamhashError as error:
        message = str(error)
    else:
        raise AssertionError(f"{why} was not refused")
    assert type(hasher).__name__ in message, f"the error for {why} does not name the class"
    assert state(hasher) == before, f"a refused piece ({why}) changed the model"
