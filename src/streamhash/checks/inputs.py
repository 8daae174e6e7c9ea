"""Checks on what goes in: every kind of array and label, and what must be refused."""

import importlib
from typing import Any

import numpy as np
from scipy import sparse

from streamhash.base import NotStartedError, OnlineHasher
from streamhash.checks._material import fresh, learned_from, refuses, state, stream


def check_kinds_of_arrays_agree(hasher: OnlineHasher) -> None:
    """Lists, memory orders, float widths, sparse rows, data frames and tensors give equal codes."""
    X, y = stream()
    X = X.round(2)  # so that all kinds hold the same numbers
    expected = learned_from(hasher, X, y).transform(X)
    kinds: list[Any] = [X.tolist(), np.asfortranarray(X), X.astype(np.float64), X[:, ::-1][:, ::-1]]
    kinds += [sparse.csr_matrix(X), sparse.csc_array(X)]
    for module, make in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("torch", "tensor")):
        try:
            kinds.append(getattr(importlib.import_module(module), make)(X))
        except ImportError:
            continue  # not on this machine; where it is, it counts
    for kind in kinds:
        codes = learned_from(hasher, kind, y).transform(kind)
        assert np.array_equal(codes, expected), f"{type(kind)} gave other codes"


def check_names_of_labels_do_not_matter(hasher: OnlineHasher) -> None:
    """Labels are names: strings, floats or objects in their place change no bit."""
    X, y = stream()
    expected = learned_from(hasher, X, y).transform(X)
    names = np.array(["zebra", "ant", "mole", "cat"])
    mixed = np.array([None, "b", 3, 2.5], dtype=object)
    mixed[0] = ("a", "tuple")
    for labels in (names[y], names[y].tolist(), 10.5 - y, mixed[y], y.astype(np.uint8)):
        assert np.array_equal(learned_from(hasher, X, labels).transform(X), expected)


def check_inputs_are_left_alone(hasher: OnlineHasher) -> None:
    """Learning and encoding neither write into what they are given nor keep hold of it."""
    X, y = stream()
    X_before, y_before = X.copy(), y.copy()
    model = learned_from(hasher, X, y)
    codes = model.transform(X)
    assert np.array_equal(X, X_before)
    assert np.array_equal(y, y_before)
    X[:] = 0
    y[:] = 0
    assert np.array_equal(model.transform(X_before), codes)


def check_bad_pieces_change_nothing(hasher: OnlineHasher) -> None:
    """What cannot be learned is refused with a clear error, and the model stays as it was."""
    X, y = stream()
    for model in (fresh(hasher), learned_from(hasher, X, y)):
        for value in (np.nan, np.inf, -np.inf):
            bad = X.copy()
            bad[-1, -1] = value  # in the last stage, so that earlier ones must be undone
            refuses(model, bad, y, f"{value} in X")
        refuses(model, X[:0], y[:0], "an empty piece")
        refuses(model, X[0], y[:1], "a single row without a second dimension")
        refuses(model, np.full((3, X.shape[1]), 1e39), y[:3], "values beyond float32")
        if hasher.needs_labels:
            refuses(model, X, None, "no labels")
            refuses(model, X, y[:-1], "too few labels")
            refuses(model, X, np.where(y == 0, np.nan, y), "missing labels")
            refuses(model, X, [None if label == 0 else label for label in y], "labels of None")
    started = learned_from(hasher, X, y)
    refuses(started, X[:, 1:], y, "another width")


def check_an_unstarted_model_says_so(hasher: OnlineHasher) -> None:
    """Codes before any data: NotStartedError, which tells the next step."""
    X, _ = stream()
    for verb in ("transform", "project"):
        try:
            getattr(fresh(hasher), verb)(X)
        except NotStartedError as error:
            message = str(error)
        else:
            raise AssertionError(f"{verb} of an unstarted model gave something")
        assert "partial_fit" in message


def check_failures_are_rolled_back(hasher: OnlineHasher) -> None:
    """An interruption in the middle of a piece leaves the model as it was before the piece."""
    X, y = stream()
    model = learned_from(hasher, X, y)
    before = state(model)
    learn, calls = model._learn, []

    def interrupted(*stage: Any) -> None:
        learn(*stage)
        calls.append(1)
        raise KeyboardInterrupt

    model.__dict__["_learn"] = interrupted
    try:
        model.partial_fit(X, y)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("partial_fit swallowed an interruption")
    del model.__dict__["_learn"]
    assert calls
    assert state(model) == before
