"""Checks on codes: what a bit is, and that encoding is a function of the row alone."""

import numpy as np

from streamhash.base import OnlineHasher
from streamhash.checks._material import fresh, learned_from, state, stream
from streamhash.codes import pack, unpack
from streamhash.threads import using_threads


def check_bits_are_signs_of_projections(hasher: OnlineHasher) -> None:
    """The bit is 1 where the projection is above zero; what fills up the last byte is 0."""
    X, y = stream()
    for n_bits in (1, 12, 70):
        model = fresh(hasher)
        _set_bits(model, n_bits)
        model.partial_fit(X, y)
        codes, projections = model.transform(X), model.project(X)
        assert codes.dtype == np.uint8
        assert codes.shape == (len(X), (n_bits + 7) // 8)
        assert projections.dtype == np.float32
        assert projections.shape == (len(X), n_bits)
        assert np.array_equal(codes, pack(projections))
        assert np.array_equal(unpack(codes, n_bits), projections > 0)
        assert not np.unpackbits(codes, axis=1)[:, n_bits:].any()


def check_encoding_is_row_wise(hasher: OnlineHasher) -> None:
    """A row's code does not depend on what is encoded beside it; none in, none out."""
    X, y = stream()
    model = learned_from(hasher, X, y)
    codes = model.transform(X)
    for start, stop in ((0, 1), (5, 6), (10, 77), (100, 400)):
        assert np.array_equal(model.transform(X[start:stop]), codes[start:stop])
    assert np.array_equal(model.transform(X[::-1]), codes[::-1])
    assert model.transform(X[:0]).shape == (0, codes.shape[1])


def check_encoding_leaves_the_model_alone(hasher: OnlineHasher) -> None:
    """Encoding learns nothing."""
    X, y = stream()
    model = learned_from(hasher, X, y)
    before = state(model)
    model.transform(X)
    model.project(X)
    assert state(model) == before


def check_threads_do_not_matter(hasher: OnlineHasher) -> None:
    """Any number of threads learns and encodes the same bits."""
    X, y = stream(n=3000)
    with using_threads(1):
        one = learned_from(hasher, X, y)
        codes = one.transform(X)
    with using_threads(3):
        three = learned_from(hasher, X, y)
        assert state(one) == state(three)
        assert np.array_equal(codes, three.transform(X))


def _set_bits(model: OnlineHasher, n_bits: int) -> None:
    name = "n_bits" if "n_bits" in model.get_params(deep=False) else "hasher__n_bits"
    model.set_params(**{name: n_bits})
