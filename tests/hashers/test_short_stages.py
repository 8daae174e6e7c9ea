"""FOH and SDOH-HC tell, once, that stages are too short for them; no other method does."""

import numpy as np
import pytest

from streamhash import FOH, SDOHHC, RidgeHash

RANDOM = np.random.default_rng(0)
Y = np.arange(60) % 4
X = (RANDOM.standard_normal((4, 8))[Y] + RANDOM.standard_normal((60, 8))).astype(np.float32)


def learned_in_pieces(hasher, n):
    for start in range(0, len(X), n):
        hasher.partial_fit(X[start : start + n], Y[start : start + n])


def told(caplog):
    names = "streamhash.hashers"  # kernels tell of their own that they are compiled
    return [record.getMessage() for record in caplog.records if record.name == names]


@pytest.mark.parametrize("method", [FOH, SDOHHC])
def test_stages_with_few_rows_of_each_class_are_told_once(method, caplog):
    learned_in_pieces(method(n_bits=8, random_state=0), 1)
    (said,) = told(caplog)
    assert said == (
        f"{method.__name__}: stages were too short for 4 classes, with a mean length of 1, and "
        f"codes may be far worse for it; hand over pieces of about {method().batch_size} rows."
    )


@pytest.mark.parametrize(("method", "n"), [(FOH, 10), (SDOHHC, 10), (FOH, 60), (RidgeHash, 1)])
def test_long_stages_and_methods_that_need_none_say_nothing(method, n, caplog):
    hasher = method(n_bits=8, random_state=0)
    for _ in range(3):
        learned_in_pieces(hasher, n)
    assert not told(caplog)
