"""Public checks that any hasher can be run through, ours and yours alike.

>>> from streamhash import LSH
>>> from streamhash.checks import check_hasher
>>> check_hasher(LSH(n_bits=12, random_state=0))

Each check is a function of a hasher that is not learned yet (it is cloned, never changed) and
raises AssertionError when the hasher breaks the contract. ``ALL_CHECKS`` maps their names to them,
for use with ``pytest.mark.parametrize``. A hasher that cannot keep a check is exempted by name
*with the reason*: ``check_hasher(MyHasher(), exempt={"scales_do_not_matter": "raw features"})``.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from streamhash import storage
from streamhash.base import Matrix, NotStartedError, OnlineHasher
from streamhash.codes import code_bytes, pack, unpack
from streamhash.errors import StreamhashError
from streamhash.threads import using_threads

Check = Callable[[OnlineHasher], None]


def check_hasher(hasher: OnlineHasher, *, exempt: Mapping[str, str] | None = None) -> None:
    """Run every check on a hasher; ``exempt`` names checks to leave out, each with a reason."""
    reasons = exempt or {}
    unknown = set(reasons) - set(ALL_CHECKS)
    if unknown:
        raise ValueError(f"check_hasher: no check is called {', '.join(sorted(unknown))}.")
    for name, check in ALL_CHECKS.items():
        if not reasons.get(name):
            check(hasher)


# What the checks feed to a hasher, and how they look at it -----------------------------------


def _stream(n: int = 600, classes: int = 4) -> tuple[Matrix, NDArray[Any]]:
    """Gaussian classes: easy to tell apart, off centre, and in no order."""
    random = np.random.default_rng(7)
    y = random.integers(classes, size=n)
    means = 2 * random.standard_normal((classes, 24))
    X = means[y] + random.standard_normal((n, 24)) + 1
    return X.astype(np.float32), y


def _learned(hasher: OnlineHasher, *pieces: tuple[Any, Any]) -> Any:
    """Return a twin that has learned from these pieces."""
    twin = clone(hasher)
    for X, y in pieces:
        twin.partial_fit(X, y)
    return twin


def _arrays(hasher: OnlineHasher) -> storage.Arrays:
    """Return all arrays that a hasher has learned, those of its parts too."""
    arrays: storage.Arrays = {}
    storage.describe(hasher, arrays, "model")
    return arrays


def _same(first: OnlineHasher, second: OnlineHasher) -> bool:
    """Whether two hashers are the same, bit for bit."""
    return first.to_bytes() == second.to_bytes()


def _refuses(hasher: OnlineHasher, X: Any, y: Any, why: str) -> None:
    """Assert that a piece is refused with a clear error and that nothing has changed."""
    before = hasher.to_bytes()
    try:
        hasher.partial_fit(X, y)
    except StreamhashError as error:
        message = str(error)
    else:
        raise AssertionError(f"{why} was not refused")
    assert type(hasher).__name__ in message, f"the error for {why} does not name the class"
    assert hasher.to_bytes() == before, f"a refused piece ({why}) changed the model"


# Encoding: what a bit is, and that a code is a function of the row alone ----------------------


def check_bits_are_signs_of_projections(hasher: OnlineHasher) -> None:
    """The bit is 1 where the projection is above zero; what fills up the last byte is 0."""
    X, y = _stream()
    name = "n_bits" if "n_bits" in hasher.get_params(deep=False) else "hasher__n_bits"
    for n_bits in (1, 12, 70):
        model = clone(hasher).set_params(**{name: n_bits}).partial_fit(X, y)
        codes, projections = model.transform(X), model.project(X)
        assert (codes.dtype, codes.shape) == (np.uint8, (len(X), code_bytes(n_bits)))
        assert (projections.dtype, projections.shape) == (np.float32, (len(X), n_bits))
        assert np.array_equal(codes, pack(projections))
        assert np.array_equal(unpack(codes, n_bits), projections > 0)
        assert not np.unpackbits(codes, axis=1)[:, n_bits:].any()


def check_encoding_is_row_wise(hasher: OnlineHasher) -> None:
    """A row's code does not depend on what is encoded beside it; none in, none out."""
    X, y = _stream()
    model = _learned(hasher, (X, y))
    codes = model.transform(X)
    for rows in (slice(1), slice(5, 6), slice(10, 77), slice(100, 400), slice(None, None, -1)):
        assert np.array_equal(model.transform(X[rows]), codes[rows])
    assert model.transform(X[:0]).shape == (0, codes.shape[1])


def check_encoding_leaves_the_model_alone(hasher: OnlineHasher) -> None:
    """Encoding learns nothing."""
    X, y = _stream()
    model = _learned(hasher, (X, y))
    before = model.to_bytes()
    model.transform(X)
    model.project(X)
    assert model.to_bytes() == before


def check_threads_do_not_matter(hasher: OnlineHasher) -> None:
    """Any number of threads learns and encodes the same bits."""
    X, y = _stream(n=3000)
    found = []
    for threads in (1, 3):
        with using_threads(threads):
            model = _learned(hasher, (X, y))
            found.append((model.to_bytes(), model.transform(X).tobytes()))
    assert found[0] == found[1]


# Inputs: every kind of array and label, and what must be refused ------------------------------


def check_kinds_of_arrays_agree(hasher: OnlineHasher) -> None:
    """Lists, memory orders, float widths, sparse rows, data frames and tensors give equal codes."""
    X, y = _stream()
    X = X.round(2)  # so that all kinds hold the same numbers
    expected = _learned(hasher, (X, y)).transform(X)
    kinds: list[Any] = [X.tolist(), np.asfortranarray(X), X.astype(np.float64), X[:, ::-1][:, ::-1]]
    kinds += [sparse.csr_matrix(X), sparse.csc_array(X)]
    for module, make in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("torch", "tensor")):
        try:
            kinds.append(getattr(importlib.import_module(module), make)(X))
        except ImportError:
            continue  # not on this machine; where it is, it counts
    for kind in kinds:
        codes = _learned(hasher, (kind, y)).transform(kind)
        assert np.array_equal(codes, expected), f"{type(kind)} gave other codes"


def check_names_of_labels_do_not_matter(hasher: OnlineHasher) -> None:
    """Labels are names: strings, floats or objects in their place change no bit."""
    X, y = _stream()
    expected = _learned(hasher, (X, y)).transform(X)
    names = np.array(["zebra", "ant", "mole", "cat"])
    mixed = np.fromiter([("a", "tuple"), "b", 3, 2.5], object, 4)
    for labels in (names[y], names[y].tolist(), 10.5 - y, mixed[y], y.astype(np.uint8)):
        assert np.array_equal(_learned(hasher, (X, labels)).transform(X), expected)


def check_inputs_are_left_alone(hasher: OnlineHasher) -> None:
    """Learning and encoding neither write into what they are given nor keep hold of it."""
    X, y = _stream()
    X_before, y_before = X.copy(), y.copy()
    model = _learned(hasher, (X, y))
    codes = model.transform(X)
    assert np.array_equal(X, X_before)
    assert np.array_equal(y, y_before)
    X[:], y[:] = 0, 0
    assert np.array_equal(model.transform(X_before), codes)


def check_bad_pieces_change_nothing(hasher: OnlineHasher) -> None:
    """What cannot be learned is refused with a clear error, and the model stays as it was."""
    X, y = _stream()
    started = _learned(hasher, (X, y))
    for model in (clone(hasher), started):
        for value in (np.nan, np.inf, -np.inf):
            bad = X.copy()
            bad[-1, -1] = value  # in the last stage, so that earlier ones must be undone
            _refuses(model, bad, y, f"{value} in X")
        _refuses(model, X[:0], y[:0], "an empty piece")
        _refuses(model, X[0], y[:1], "a single row without a second dimension")
        _refuses(model, np.full((3, X.shape[1]), 1e39), y[:3], "values beyond float32")
        if hasher.needs_labels:
            _refuses(model, X, None, "no labels")
            _refuses(model, X, y[:-1], "too few labels")
            _refuses(model, X, np.where(y == 0, np.nan, y), "missing labels")
            _refuses(model, X, [None if label == 0 else label for label in y], "labels of None")
    _refuses(started, X[:, 1:], y, "another width")


def check_an_unstarted_model_says_so(hasher: OnlineHasher) -> None:
    """Codes before any data: NotStartedError, which tells the next step."""
    for encode in (clone(hasher).transform, clone(hasher).project):
        message = "codes"
        try:
            encode(_stream()[0])
        except NotStartedError as error:
            message = str(error)
        assert "partial_fit" in message, f"an unstarted model gave {message}"


def check_failures_are_rolled_back(hasher: OnlineHasher) -> None:
    """An interruption in the middle of a piece leaves the model as it was before the piece."""
    X, y = _stream()
    model = _learned(hasher, (X, y))
    before = model.to_bytes()
    usual: Any = type(model)

    class Interrupted(usual):  # type: ignore[misc]
        """The same hasher, stopped by Ctrl-C after a stage."""

        def _learn_stage(self, X: Matrix, y: Any) -> None:
            super()._learn_stage(X, y)
            raise KeyboardInterrupt

    model.__class__ = Interrupted
    try:
        model.partial_fit(X, y)
    except KeyboardInterrupt:
        model.__class__ = usual
    else:
        raise AssertionError("partial_fit swallowed an interruption")
    assert model.to_bytes() == before


# Learning: from the past only, carried over, bounded, and the same for the same seed ----------


def check_the_constructor_only_stores(hasher: OnlineHasher) -> None:
    """Parameters are kept as they came, nothing is learned, and repr gives them back."""
    twin = clone(hasher)
    assert repr(twin) == repr(hasher)
    assert set(vars(twin)) == set(twin.get_params(deep=False)), "__init__ does more than store"


def check_same_seed_same_bits(hasher: OnlineHasher) -> None:
    """The same stream and seed give the same model."""
    assert _same(_learned(hasher, _stream()), _learned(hasher, _stream()))


def check_fit_starts_anew(hasher: OnlineHasher) -> None:
    """A second fit forgets the first."""
    X, y = _stream()
    again = _learned(hasher, (X[::-1].copy(), y[::-1].copy())).fit(X, y)
    assert _same(clone(hasher).fit(X, y), again)


def check_how_calls_cut_the_stream_does_not_matter(hasher: OnlineHasher) -> None:
    """One long piece is the same as its stages one by one: nothing looks ahead."""
    size = hasher.batch_size
    X, y = _stream(n=3 * size + size // 2)
    stages = [(X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]
    assert _same(_learned(hasher, (X, y)), _learned(hasher, *stages))


def check_learning_carries_over(hasher: OnlineHasher) -> None:
    """What came first still counts after more has come, and rows are counted."""
    X, y = _stream()
    both = _learned(hasher, (X[:300], y[:300]), (X[300:], y[300:]))
    last = _learned(hasher, (X[300:], y[300:]))
    assert (both.n_samples_seen_, last.n_samples_seen_) == (600, 300)
    arrays = [
        {name: a.tobytes() for name, a in _arrays(model).items() if ".ordinary_." not in name}
        for model in (both, last)
    ]  # what is ordinary, the base learns
    assert arrays[0] != arrays[1], "the arrays learned are those of the last piece alone"


def check_learning_helps(hasher: OnlineHasher) -> None:
    """With labels, codes of one class end up closer than they began, beside those of others."""
    if not hasher.needs_labels:
        return
    X, y = _stream(n=2400)
    same = y[2000:, None] == y[None, 2000:]
    margins = []  # mean distance to other classes minus that to one's own, per bit
    for n in (4, 2000):
        codes = _learned(hasher, (X[:n], y[:n])).transform(X[2000:])
        distances = np.bitwise_count(codes[:, None] ^ codes[None]).sum(axis=2) / hasher.n_bits
        margins.append(distances[~same].mean() - distances[same].mean())
    assert margins[1] > margins[0] + 0.02, f"margin {margins[0]:.3f} -> {margins[1]:.3f}"


def check_odd_stages_are_defined(hasher: OnlineHasher) -> None:
    """One row, one class, all classes new, equal rows: learned or passed over, never broken."""
    X, y = _stream()
    for X_odd, y_odd in (
        (X[:1], y[:1]),
        (X[y == 0], y[y == 0]),
        (X[:50], np.arange(50) + 100),
        (np.repeat(X[:1], 20, axis=0), y[:20]),
        (np.zeros_like(X[:20]), y[:20]),
    ):
        for model in (clone(hasher), _learned(hasher, (X, y))):
            seen = getattr(model, "n_samples_seen_", 0)
            model.partial_fit(X_odd, y_odd)
            assert model.n_samples_seen_ == seen + len(X_odd)
            assert np.isfinite(model.project(X)).all()
            model.partial_fit(X, y)


def check_new_classes_may_arrive(hasher: OnlineHasher) -> None:
    """Classes, and columns of a label matrix, that were not there before."""
    X, y = _stream()
    streams: list[list[tuple[Any, Any]]] = [[(X[y < 2], y[y < 2]), (X, y)]]
    if hasher.needs_labels and hasher.multi_label:
        streams.append([(X, np.eye(4)[y]), (X, np.eye(6)[y])])
    for pieces in streams:
        assert np.isfinite(_learned(hasher, *pieces).project(X)).all()


def check_memory_is_bounded(hasher: OnlineHasher) -> None:
    """Ten times more of the stream takes no more room, but for rows that wait to be learned."""
    n_few = max(2 * hasher.batch_size, 1024)
    X, y = _stream(n=10 * n_few)
    few, many = (
        sum(array.nbytes for array in _arrays(_learned(hasher, (X[:n], y[:n]))).values())
        for n in (n_few, len(X))
    )
    assert many <= 1.05 * few, f"{many} bytes instead of {few}"


def check_scales_do_not_matter(hasher: OnlineHasher) -> None:
    """Features times 1024, or divided by it, change not one bit (our defaults' promise)."""
    X, y = _stream()
    codes = _learned(hasher, (X, y)).transform(X)
    for scale in (1024, 1 / 1024):
        scaled = (X * scale).astype(np.float32)
        assert np.array_equal(_learned(hasher, (scaled, y)).transform(scaled), codes)


def check_learned_arrays_are_replaced(hasher: OnlineHasher) -> None:
    """A method never writes into an array it has learned: rolling back relies on it."""
    X, y = _stream()
    model = _learned(hasher, (X, y))
    for array in _arrays(model).values():
        array.flags.writeable = False
    model.partial_fit(X, y)


# Judged pairs: learned like rows, by methods that can -----------------------------------------


def _pairs(n: int = 300) -> tuple[Matrix, Matrix, NDArray[np.bool_]]:
    """Pairs of rows, half of them of one class; each row is in several pairs."""
    X, y = _stream()
    random = np.random.default_rng(8)
    first = random.integers(len(X), size=n)
    own = [random.choice(np.flatnonzero(y == y[i])) for i in first]
    second = np.where(random.random(n) < 0.5, own, random.integers(len(X), size=n))
    return X[first], X[second], y[first] == y[second]


def _refuses_pairs(model: OnlineHasher, pairs: tuple[Any, ...], why: str) -> None:
    before = model.to_bytes()
    try:
        model.partial_fit_pairs(*pairs)
    except StreamhashError as error:
        message = str(error)
    else:
        raise AssertionError(f"{why} was not refused")
    assert f"{type(model).__name__}.partial_fit_pairs" in message, f"the error for {why}: {message}"
    assert model.to_bytes() == before, f"refused pairs ({why}) changed the model"


def check_bad_pairs_change_nothing(hasher: OnlineHasher) -> None:
    """Pairs that cannot be learned are refused; by a method that learns none, all are."""
    A, B, similar = _pairs()
    if not hasher.learns_pairs:
        _refuses_pairs(clone(hasher), (A, B, similar), "a pair")
        return
    bad = B.copy()
    bad[-1, -1] = np.nan  # in the last stage, so that earlier ones must be undone
    labels = ["a"] * len(A)
    for model in (clone(hasher), clone(hasher).partial_fit_pairs(A, B, similar)):
        _refuses_pairs(model, (A, bad, similar), "NaN in X2")
        _refuses_pairs(model, (bad, B, similar), "NaN in X1")
        _refuses_pairs(model, (A, B[:-1], similar), "a row without its other")
        _refuses_pairs(model, (A, B[:, 1:], similar), "two widths")
        _refuses_pairs(model, (A[:0], B[:0], similar[:0]), "no pair")
        _refuses_pairs(model, (A, B, similar[:-1]), "too few judgements")
        _refuses_pairs(model, (A, B, similar + 1), "judgements of 1 and 2")
        _refuses_pairs(model, (A, B, None), "no judgements")
        _refuses_pairs(model, (A, B, similar, labels[1:]), "too few labels")
        _refuses_pairs(model, (A, B, similar, labels, [np.nan] * len(A)), "missing labels")


def check_pairs_are_learned_like_rows(hasher: OnlineHasher) -> None:
    """Pairs change the model; how calls cut them does not matter, nor saving in between.

    What comes in is left alone, what was learned is replaced and fits its statement, and rows with
    labels can come before and after.
    """
    if not hasher.learns_pairs:
        return
    A, B, similar = _pairs()
    X, y = _stream()
    before = A.copy(), B.copy(), similar.copy()
    size = max(hasher.batch_size // 2, 1)
    whole = clone(hasher).partial_fit_pairs(A, B, similar)
    assert all(map(np.array_equal, (A, B, similar), before)), "what came in was written into"
    parts, resumed = clone(hasher), clone(hasher)
    for start in range(0, len(A), size):
        stage = slice(start, start + size)
        parts.partial_fit_pairs(A[stage].tolist(), B[stage], similar[stage].tolist())
        resumed.partial_fit_pairs(A[stage], B[stage], similar[stage].astype(int))
        resumed = type(hasher).from_bytes(resumed.to_bytes())
    assert _same(whole, parts), "the cut matters"
    assert _same(whole, resumed), "saving in between matters"
    for each in (whole, whole.encoder()):
        each.check_learned()
    assert np.isfinite(whole.project(X)).all()
    for array in _arrays(parts).values():
        array.flags.writeable = False
    parts.partial_fit_pairs(A[::-1], B[::-1], similar[::-1])
    assert not _same(whole, parts), "pairs taught nothing"
    for model in (whole.partial_fit(X, y), _learned(hasher, (X, y))):
        model.partial_fit_pairs(A, B, similar, [*y[:200], *[None] * 100])
        assert np.isfinite(model.project(X)).all()
        model.check_learned()


# Saved models: they load, and go on exactly ---------------------------------------------------


def check_resuming_is_exact(hasher: OnlineHasher) -> None:
    """Save, load and go on is the same as not having stopped, bit for bit."""
    X, y = _stream()
    straight = _learned(hasher, (X[:300], y[:300]), (X[300:], y[300:]))
    stopped = _learned(hasher, (X[:300], y[:300])).to_bytes()
    resumed = type(hasher).from_bytes(stopped).partial_fit(X[300:], y[300:])
    assert _same(resumed, straight)
    assert np.array_equal(resumed.transform(X), straight.transform(X))


def check_an_unstarted_model_can_be_saved(hasher: OnlineHasher) -> None:
    """A file may hold parameters alone."""
    loaded = type(hasher).from_bytes(hasher.to_bytes())
    assert repr(loaded) == repr(hasher)
    assert _same(_learned(loaded, _stream()), _learned(hasher, _stream()))


def check_a_model_fits_its_own_statement(hasher: OnlineHasher) -> None:
    """What was learned, and by whom, is what ``learns`` says: else a saved model would not load."""
    X, y = _stream()
    for n in (1, 7, 300, 600):
        model = _learned(hasher, (X[:n], y[:n]))
        for each in (model, model.encoder()):
            each.check_learned()


def check_equal_models_are_equal_files(hasher: OnlineHasher) -> None:
    """The bytes of a file depend on the model alone, so that files can be compared."""
    model = _learned(hasher, _stream())
    loaded = type(hasher).from_bytes(model.to_bytes())
    assert model.to_bytes() == loaded.to_bytes() == _learned(hasher, _stream()).to_bytes()


ALL_CHECKS: dict[str, Check] = {
    name.removeprefix("check_"): check
    for name, check in globals().items()
    if name.startswith("check_") and name != "check_hasher"
}
