"""Checks on learning: from the past only, carried over, bounded, and the same for the same seed."""

import numpy as np

from streamhash import storage
from streamhash.base import OnlineHasher
from streamhash.checks._material import fresh, learned_from, state, stream


def check_the_constructor_only_stores(hasher: OnlineHasher) -> None:
    """Parameters are kept as they came, nothing is learned, and repr gives them back."""
    twin = fresh(hasher)
    assert repr(twin) == repr(hasher)
    assert set(vars(twin)) == set(twin.get_params(deep=False)), "__init__ does more than store"


def check_same_seed_same_bits(hasher: OnlineHasher) -> None:
    """The same stream and seed give the same model."""
    X, y = stream()
    first, second = learned_from(hasher, X, y), learned_from(hasher, X, y)
    assert state(first) == state(second)


def check_fit_starts_anew(hasher: OnlineHasher) -> None:
    """A second fit forgets the first."""
    X, y = stream()
    once = fresh(hasher).fit(X, y)
    again = learned_from(hasher, X[::-1].copy(), y[::-1].copy()).fit(X, y)
    assert state(once) == state(again)


def check_how_calls_cut_the_stream_does_not_matter(hasher: OnlineHasher) -> None:
    """One long piece is the same as its stages one by one: nothing looks ahead."""
    size = hasher.batch_size
    X, y = stream(n=3 * size + size // 2)
    whole = learned_from(hasher, X, y)
    cut = fresh(hasher)
    for start in range(0, len(X), size):
        cut.partial_fit(X[start : start + size], y[start : start + size])
    assert state(whole) == state(cut)


def check_learning_carries_over(hasher: OnlineHasher) -> None:
    """What came first still counts after more has come, and rows are counted."""
    X, y = stream()
    both = learned_from(hasher, X[:300], y[:300]).partial_fit(X[300:], y[300:])
    last = learned_from(hasher, X[300:], y[300:])
    assert both.n_samples_seen_ == 600
    assert last.n_samples_seen_ == 300
    assert state(both)[1] != state(last)[1], "the arrays learned are those of the last piece alone"


def check_learning_helps(hasher: OnlineHasher) -> None:
    """With labels, codes of one class end up closer than they began, beside those of others."""
    if not hasher.needs_labels:
        return
    X, y = stream(n=2400, d=24, classes=4)
    first = learned_from(hasher, X[:4], y[:4])
    after = learned_from(hasher, X[:2000], y[:2000])
    margins = [_margin(model, X[2000:], y[2000:]) for model in (first, after)]
    assert margins[1] > margins[0] + 0.02, f"margin {margins[0]:.3f} -> {margins[1]:.3f}"


def _margin(model: OnlineHasher, X: np.ndarray, y: np.ndarray) -> float:
    """Mean distance to other classes minus that to one's own, as a share of the code length."""
    codes = model.transform(X)
    distances = np.bitwise_count(codes[:, None] ^ codes[None]).sum(axis=2) / model.n_bits
    same = y[:, None] == y[None]
    return float(distances[~same].mean() - distances[same].mean())


def check_odd_stages_are_defined(hasher: OnlineHasher) -> None:
    """One row, one class, all classes new, equal rows: learned or passed over, never broken."""
    X, y = stream()
    for X_odd, y_odd in (
        (X[:1], y[:1]),
        (X[y == 0], y[y == 0]),
        (X[:50], np.arange(50) + 100),
        (np.repeat(X[:1], 20, axis=0), y[:20]),
        (np.zeros_like(X[:20]), y[:20]),
    ):
        for model in (fresh(hasher), learned_from(hasher, X, y)):
            seen = getattr(model, "n_samples_seen_", 0)
            model.partial_fit(X_odd, y_odd)
            assert model.n_samples_seen_ == seen + len(X_odd)
            assert np.isfinite(model.project(X)).all()
            model.partial_fit(X, y)


def check_new_classes_may_arrive(hasher: OnlineHasher) -> None:
    """Classes, and columns of a label matrix, that were not there before."""
    X, y = stream(classes=4)
    model = learned_from(hasher, X[y < 2], y[y < 2]).partial_fit(X, y)
    assert np.isfinite(model.project(X)).all()
    if hasher.needs_labels and hasher.multi_label:
        model = learned_from(hasher, X, np.eye(4)[y]).partial_fit(X, np.eye(6)[y])
        assert np.isfinite(model.project(X)).all()


def check_memory_is_bounded(hasher: OnlineHasher) -> None:
    """Ten times more of the stream takes no more room."""
    sizes = []
    X, y = stream(n=20 * hasher.batch_size)
    for n in (2 * hasher.batch_size, 20 * hasher.batch_size):
        arrays: storage.Arrays = {}
        storage.describe(learned_from(hasher, X[:n], y[:n]), arrays, "model")
        sizes.append(sum(array.nbytes for array in arrays.values()))
    assert sizes[0] == sizes[1]


def check_scales_do_not_matter(hasher: OnlineHasher) -> None:
    """Features times 1024, or divided by it, change not one bit (our defaults' promise)."""
    X, y = stream()
    codes = learned_from(hasher, X, y).transform(X)
    for scale in (1024, 1 / 1024):
        scaled = (X * scale).astype(np.float32)
        assert np.array_equal(learned_from(hasher, scaled, y).transform(scaled), codes)


def check_learned_arrays_are_replaced(hasher: OnlineHasher) -> None:
    """A method never writes into an array it has learned: rolling back relies on it."""
    X, y = stream()
    model = learned_from(hasher, X, y)
    arrays: storage.Arrays = {}
    storage.describe(model, arrays, "model")
    for array in arrays.values():
        array.flags.writeable = False
    model.partial_fit(X, y)
