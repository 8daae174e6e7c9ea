"""Checks on saved models: they load, and go on exactly."""

import tempfile
from pathlib import Path

import numpy as np

from streamhash.base import OnlineHasher
from streamhash.checks._material import fresh, learned_from, state, stream


def check_resuming_is_exact(hasher: OnlineHasher) -> None:
    """Save, load and go on is the same as not having stopped, bit for bit."""
    X, y = stream()
    straight = learned_from(hasher, X[:300], y[:300]).partial_fit(X[300:], y[300:])
    stopped = _saved_and_loaded(learned_from(hasher, X[:300], y[:300]))
    resumed = stopped.partial_fit(X[300:], y[300:])
    assert state(resumed) == state(straight)
    assert np.array_equal(resumed.transform(X), straight.transform(X))


def check_an_unstarted_model_can_be_saved(hasher: OnlineHasher) -> None:
    """A file may hold parameters alone."""
    X, y = stream()
    loaded = _saved_and_loaded(fresh(hasher))
    assert repr(loaded) == repr(hasher)
    assert state(loaded.partial_fit(X, y)) == state(learned_from(hasher, X, y))


def check_equal_models_are_equal_files(hasher: OnlineHasher) -> None:
    """The bytes of a file depend on the model alone, so that files can be compared."""
    X, y = stream()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("one", "two")]
        for file in files:
            learned_from(hasher, X, y).save(file)
        assert files[0].read_bytes() == files[1].read_bytes()


def _saved_and_loaded(model: OnlineHasher) -> OnlineHasher:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.streamhash"
        model.save(path)
        return type(model).load(path)
