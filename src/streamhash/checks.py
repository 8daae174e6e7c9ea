"""Public checks that any hasher can be run through, ours and yours alike.

>>> from streamhash import LSH
>>> from streamhash.checks import check_hasher
>>> check_hasher(LSH(n_bits=12, random_state=0))

``check_hasher`` runs every check and tells all that fail in one report: what was wanted, what was
done, what came, and how to mend it. Each check is a function of a hasher that is not learned yet
(it is cloned, never changed) and raises AssertionError when the hasher breaks the contract.
``ALL_CHECKS`` maps their names to them, for use with ``pytest.mark.parametrize``. A hasher that
cannot keep a check is exempted by name *with the reason*:
``check_hasher(MyHasher(), exempt={"scales_do_not_matter": "raw features"})``.
"""

import importlib
import inspect
import textwrap
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamhash import storage
from streamhash.base import Matrix, NotStartedError, OnlineHasher
from streamhash.codes import code_bytes, pack, unpack
from streamhash.errors import StreamhashError
from streamhash.estimators import clone
from streamhash.threads import using_threads

Check = Callable[[OnlineHasher], None]
MEND = "To mend: "  # what begins the part of a check's docstring that says how


class CheckError(AssertionError):
    """A hasher has broken the contract: what was done, and what came of it."""

    def __init__(self, done: str, came: str) -> None:
        super().__init__(f"{done}: {came}")
        self.done, self.came = done, came


class Failure(NamedTuple):
    """A check that a hasher does not keep, in words."""

    check: str
    wanted: str
    done: str
    came: str
    mend: str

    def __str__(self) -> str:
        parts = {"wanted": self.wanted, "done": self.done, "came": self.came, "mend": self.mend}
        lines = [
            textwrap.fill(f"{what}: {text}", 100, initial_indent="  ", subsequent_indent="    ")
            for what, text in parts.items()
        ]
        return "\n".join([self.check, *lines])


class FailedChecksError(AssertionError):
    """What ``check_hasher`` has found: ``failures``, and all of them as its text."""

    def __init__(self, hasher: OnlineHasher, failures: list[Failure], n_checks: int) -> None:
        self.failures = failures
        head = f"{hasher!r} fails {len(failures)} of {n_checks} checks."
        super().__init__("\n\n".join([head, *map(str, failures)]))


def check_hasher(hasher: OnlineHasher, *, exempt: Mapping[str, str] | None = None) -> None:
    """Run every check on a hasher; ``exempt`` names checks to leave out, each with a reason.

    Raises FailedChecksError, an AssertionError, which tells each check that failed in words.
    """
    reasons = exempt or {}
    unknown = set(reasons) - set(ALL_CHECKS)
    if unknown:
        raise ValueError(
            f"check_hasher: no check is called {', '.join(sorted(unknown))}; choose from "
            f"{', '.join(ALL_CHECKS)}."
        )
    wanted = {name: check for name, check in ALL_CHECKS.items() if not reasons.get(name)}
    failures = []
    for name, check in wanted.items():
        try:
            check(hasher)
        except Exception as error:  # noqa: BLE001  whatever it is, it belongs in the report
            failures.append(_failure(name, check, error))
    if failures:
        raise FailedChecksError(hasher, failures, len(wanted))


def _failure(name: str, check: Check, error: Exception) -> Failure:
    """Put a failed check into words."""
    text = inspect.getdoc(check) or ""
    contract, _, mend = text.partition(MEND)
    wanted = " ".join(contract.split())
    if isinstance(error, CheckError):
        return Failure(name, wanted, error.done, error.came, " ".join(mend.split()))
    at = traceback.extract_tb(error.__traceback__)[-1]
    came = f"{type(error).__name__}: {error} (in {at.name}, {at.filename}, line {at.lineno})"
    mend = "look at that line; what the check gave the method is in streamhash/checks.py."
    return Failure(name, wanted, "the method was called", came, mend)


def _expect(kept: Any, done: str, came: str) -> None:
    """Break the check, unless the contract was kept."""
    if not kept:
        raise CheckError(done, came)


def _expect_equal(found: NDArray[Any], expected: NDArray[Any], done: str) -> None:
    """Break the check, unless two arrays of codes are equal; say in how many rows they are not."""
    if found.shape != expected.shape:
        raise CheckError(done, f"codes of shape {found.shape} instead of {expected.shape}")
    n = int((found != expected).any(axis=1).sum())
    _expect(not n, done, f"other codes in {n} of {len(found)} rows")


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
    """Expect that a piece is refused with a clear error and that nothing has changed."""
    before, done = hasher.to_bytes(), f"partial_fit got {why}"
    try:
        hasher.partial_fit(X, y)
    except StreamhashError as error:
        message = str(error)
    else:
        raise CheckError(done, "it was taken, not refused")
    _expect(type(hasher).__name__ in message, done, f"an error that does not name it: {message}")
    _expect(hasher.to_bytes() == before, done, "it was refused, but the model has changed")


# Encoding: what a bit is, and that a code is a function of the row alone ----------------------


def check_bits_are_signs_of_projections(hasher: OnlineHasher) -> None:
    """The bit is 1 where the projection is above zero; what fills up the last byte is 0.

    To mend: let _project return an (n, n_bits) array of finite numbers, and leave transform and
    project to the base class.
    """
    X, y = _stream()
    name = "n_bits" if "n_bits" in hasher.get_params(deep=False) else "hasher__n_bits"
    for n_bits in (1, 12, 70):
        model = clone(hasher).set_params(**{name: n_bits}).partial_fit(X, y)
        codes, projections = model.transform(X), model.project(X)
        done = f"{len(X)} rows were encoded with n_bits={n_bits}"
        for what, array, kind, width in (
            ("codes", codes, np.uint8, code_bytes(n_bits)),
            ("projections", projections, np.float32, n_bits),
        ):
            came = f"{what} of {array.dtype} and shape {array.shape}, not {(len(X), width)}"
            _expect((array.dtype, array.shape) == (kind, (len(X), width)), done, came)
        _expect_equal(codes, pack(projections), f"{done}, and the signs of project(X) were packed")
        same = np.array_equal(unpack(codes, n_bits), projections > 0)
        _expect(same, done, "bits that are not the signs of the projections")
        rest = np.unpackbits(codes, axis=1)[:, n_bits:].any()
        _expect(not rest, done, "ones in the bits that fill up the last byte")


def check_encoding_is_row_wise(hasher: OnlineHasher) -> None:
    """A row's code does not depend on what is encoded beside it; none in, none out.

    To mend: let _project use nothing of the other rows, such as their mean, their number or their
    order.
    """
    X, y = _stream()
    model = _learned(hasher, (X, y))
    codes = model.transform(X)
    for rows in (slice(1), slice(5, 6), slice(10, 77), slice(100, 400), slice(None, None, -1)):
        done = f"{len(X)} rows were encoded, and X[{rows.start}:{rows.stop}:{rows.step}] alone"
        _expect_equal(model.transform(X[rows]), codes[rows], done)
    shape = model.transform(X[:0]).shape
    _expect(shape == (0, codes.shape[1]), "no row was encoded", f"codes of shape {shape}")


def check_encoding_leaves_the_model_alone(hasher: OnlineHasher) -> None:
    """Encoding learns nothing.

    To mend: set no attribute that ends in _ outside _start and _learn.
    """
    X, y = _stream()
    model = _learned(hasher, (X, y))
    before = model.to_bytes()
    model.transform(X)
    model.project(X)
    done = "a learned model was saved before and after transform(X) and project(X)"
    _expect(model.to_bytes() == before, done, "two different models")


def check_threads_do_not_matter(hasher: OnlineHasher) -> None:
    """Any number of threads learns and encodes the same bits.

    To mend: sum in one order, whatever the number of threads; keep no state that threads share.
    """
    X, y = _stream(n=3000)
    found = []
    for threads in (1, 3):
        with using_threads(threads):
            model = _learned(hasher, (X, y))
            found.append((model.to_bytes(), model.transform(X).tobytes()))
    done = "3,000 rows were learned and encoded with one thread, and with three"
    _expect(found[0][0] == found[1][0], done, "two different models")
    _expect(found[0] == found[1], done, "different codes")


# Inputs: every kind of array and label, and what must be refused ------------------------------


def check_kinds_of_arrays_agree(hasher: OnlineHasher) -> None:
    """Lists, memory orders, float widths, sparse rows, data frames and tensors give equal codes.

    To mend: rely on what _learn and _project are given, a float32 matrix, and do not look at
    whatever the caller had passed.
    """
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
        done = (
            f"the same rows came as an array and as {type(kind).__module__}.{type(kind).__name__}"
        )
        _expect_equal(codes, expected, done)


def check_names_of_labels_do_not_matter(hasher: OnlineHasher) -> None:
    """Labels are names: strings, floats or objects in their place change no bit.

    To mend: use labels only by whether they are equal; they are no numbers to be sorted by or
    computed with.
    """
    X, y = _stream()
    expected = _learned(hasher, (X, y)).transform(X)
    names = np.array(["zebra", "ant", "mole", "cat"])
    mixed = np.fromiter([("a", "tuple"), "b", 3, 2.5], object, 4)
    for labels in (names[y], names[y].tolist(), 10.5 - y, mixed[y], y.astype(np.uint8)):
        first = labels[0]
        done = f"labels 0 to 3 were renamed, the first one {first!r}"
        _expect_equal(_learned(hasher, (X, labels)).transform(X), expected, done)


def check_inputs_are_left_alone(hasher: OnlineHasher) -> None:
    """Learning and encoding neither write into what they are given nor keep hold of it.

    To mend: write X = X - mean, not X -= mean; keep copies of rows, not views.
    """
    X, y = _stream()
    X_before, y_before = X.copy(), y.copy()
    model = _learned(hasher, (X, y))
    codes = model.transform(X)
    done = "rows were learned and encoded, and looked at again"
    _expect(np.array_equal(X, X_before), done, "X was written into")
    _expect(np.array_equal(y, y_before), done, "y was written into")
    X[:], y[:] = 0, 0
    done = "the caller wrote zeros into the X and y that had been learned"
    _expect_equal(model.transform(X_before), codes, done)


def check_bad_pieces_change_nothing(hasher: OnlineHasher) -> None:
    """What cannot be learned is refused with a clear error, and the model stays as it was.

    To mend: leave partial_fit to the base class, and replace arrays in _learn instead of writing
    into them, so that they can be put back.
    """
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
    """Codes before any data: NotStartedError, which tells the next step.

    To mend: leave transform and project to the base class; learn nothing in __init__.
    """
    for encode in (clone(hasher).transform, clone(hasher).project):
        message = "codes"
        try:
            encode(_stream()[0])
        except NotStartedError as error:
            message = str(error)
        done = f"{encode.__name__} was called before anything was learned"
        _expect("partial_fit" in message, done, message)


def check_failures_are_rolled_back(hasher: OnlineHasher) -> None:
    """An interruption in the middle of a piece leaves the model as it was before the piece.

    To mend: replace learned arrays instead of writing into them (W = W + step, not W += step), and
    keep nothing that is learned outside attributes that end in _.
    """
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
        raise CheckError("Ctrl-C came while a stage was learned", "partial_fit went on")
    done = "Ctrl-C came while a stage was learned"
    _expect(model.to_bytes() == before, done, "the model has changed")


# Learning: from the past only, carried over, bounded, and the same for the same seed ----------


def check_the_constructor_only_stores(hasher: OnlineHasher) -> None:
    """Parameters are kept as they came, nothing is learned, and repr gives them back.

    To mend: declare parameters with parameter(...), or let __init__ do no more than
    self.name = name for each.
    """
    twin = clone(hasher)
    done = "the hasher was cloned"
    _expect(repr(twin) == repr(hasher), done, f"{twin!r} of {hasher!r}")
    more = set(vars(twin)) ^ set(twin.get_params(deep=False))
    _expect(not more, done, f"attributes and parameters differ: {', '.join(sorted(more))}")


def check_same_seed_same_bits(hasher: OnlineHasher) -> None:
    """The same stream and seed give the same model.

    To mend: draw random numbers from a generator made of random_state, never from np.random, and
    iterate over no set.
    """
    done = "the same stream was learned twice, with the same random_state"
    _expect(_same(_learned(hasher, _stream()), _learned(hasher, _stream())), done, "two models")


def check_fit_starts_anew(hasher: OnlineHasher) -> None:
    """A second fit forgets the first.

    To mend: keep all that is learned in attributes that end in _, and none on the class.
    """
    X, y = _stream()
    again = _learned(hasher, (X[::-1].copy(), y[::-1].copy())).fit(X, y)
    done = "fit was called on a new model, and on one that had learned the rows backwards"
    _expect(_same(clone(hasher).fit(X, y), again), done, "two different models")


def check_how_calls_cut_the_stream_does_not_matter(hasher: OnlineHasher) -> None:
    """One long piece is the same as its stages one by one: nothing looks ahead.

    To mend: let _start look at its stage only, and _learn keep all it needs in attributes that end
    in _.
    """
    size = hasher.batch_size
    X, y = _stream(n=3 * size + size // 2)
    stages = [(X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]
    done = f"{len(X)} rows were learned in one call, and in calls of {size}"
    _expect(_same(_learned(hasher, (X, y)), _learned(hasher, *stages)), done, "two models")


def check_learning_carries_over(hasher: OnlineHasher) -> None:
    """What came first still counts after more has come, and rows are counted.

    To mend: let _learn go on from the attributes that are there, instead of making them anew.
    """
    X, y = _stream()
    both = _learned(hasher, (X[:300], y[:300]), (X[300:], y[300:]))
    last = _learned(hasher, (X[300:], y[300:]))
    counts = both.n_samples_seen_, last.n_samples_seen_
    done = "300 rows were learned after 300 others, and alone"
    _expect(counts == (600, 300), done, f"n_samples_seen_ of {counts}")
    arrays = [
        {name: a.tobytes() for name, a in _arrays(model).items() if ".ordinary_." not in name}
        for model in (both, last)
    ]  # what is ordinary, the base learns
    _expect(arrays[0] != arrays[1], done, "the same arrays: the first piece has left no trace")


def check_learning_helps(hasher: OnlineHasher) -> None:
    """With labels, codes of one class end up closer than they began, beside those of others.

    To mend: look for a sign that is turned round in the update; say needs_labels = False if the
    method does not learn from labels.
    """
    if not hasher.needs_labels:
        return
    X, y = _stream(n=2400)
    same = y[2000:, None] == y[None, 2000:]
    margins = []  # mean distance to other classes minus that to one's own, per bit
    for n in (4, 2000):
        codes = _learned(hasher, (X[:n], y[:n])).transform(X[2000:])
        distances = np.bitwise_count(codes[:, None] ^ codes[None]).sum(axis=2) / hasher.n_bits
        margins.append(distances[~same].mean() - distances[same].mean())
    came = f"{margins[0]:.3f} and then {margins[1]:.3f}; it has to grow by .02"
    done = "distance to other classes minus that to one's own, per bit, after 4 rows and 2,000"
    _expect(margins[1] > margins[0] + 0.02, done, came)


def check_odd_stages_are_defined(hasher: OnlineHasher) -> None:
    """One row, one class, all classes new, equal rows: learned or passed over, never broken.

    To mend: guard what divides by a number of pairs, a length or a spread that may be zero.
    """
    X, y = _stream()
    for what, X_odd, y_odd in (
        ("one row", X[:1], y[:1]),
        ("one class", X[y == 0], y[y == 0]),
        ("50 rows of 50 new classes", X[:50], np.arange(50) + 100),
        ("20 equal rows", np.repeat(X[:1], 20, axis=0), y[:20]),
        ("20 rows of zeros", np.zeros_like(X[:20]), y[:20]),
    ):
        for model in (clone(hasher), _learned(hasher, (X, y))):
            seen = getattr(model, "n_samples_seen_", 0)
            model.partial_fit(X_odd, y_odd)
            done = f"{what} came after {seen} rows"
            _expect(
                model.n_samples_seen_ == seen + len(X_odd),
                done,
                f"n_samples_seen_ of {model.n_samples_seen_}",
            )
            _expect(np.isfinite(model.project(X)).all(), done, "projections that are not finite")
            model.partial_fit(X, y)


def check_new_classes_may_arrive(hasher: OnlineHasher) -> None:
    """Classes, and columns of a label matrix, that were not there before, are taken.

    To mend: let what is kept for each class grow in _learn, or say multi_label = False.
    """
    X, y = _stream()
    streams: list[list[tuple[Any, Any]]] = [[(X[y < 2], y[y < 2]), (X, y)]]
    if hasher.needs_labels and hasher.multi_label:
        streams.append([(X, np.eye(4)[y]), (X, np.eye(6)[y])])
    for pieces in streams:
        finite = np.isfinite(_learned(hasher, *pieces).project(X)).all()
        _expect(finite, "two classes came, then four", "projections that are not finite")


def check_memory_is_bounded(hasher: OnlineHasher) -> None:
    """Ten times more of the stream takes no more room, but for rows that wait to be learned.

    To mend: keep sums or a sample of the rows instead of the rows.
    """
    n_few = max(2 * hasher.batch_size, 1024)
    X, y = _stream(n=10 * n_few)
    few, many = (
        sum(array.nbytes for array in _arrays(_learned(hasher, (X[:n], y[:n]))).values())
        for n in (n_few, len(X))
    )
    done = f"{n_few:,} rows were learned, and {len(X):,}"
    _expect(many <= 1.05 * few, done, f"{many:,} bytes instead of {few:,}")


def check_scales_do_not_matter(hasher: OnlineHasher) -> None:
    """Features times 1024, or divided by it, change not one bit (our defaults' promise).

    To mend: return [CenterScale(scale="unit")] from _feature_parts, or exempt the check with the
    reason why the scale of the features counts.
    """
    X, y = _stream()
    codes = _learned(hasher, (X, y)).transform(X)
    for scale in (1024, 1 / 1024):
        scaled = (X * scale).astype(np.float32)
        done = f"all features were multiplied by {scale:g}"
        _expect_equal(_learned(hasher, (scaled, y)).transform(scaled), codes, done)


def check_learned_arrays_are_replaced(hasher: OnlineHasher) -> None:
    """A method never writes into an array it has learned: rolling back relies on it.

    To mend: write self.W_ = self.W_ + step, not self.W_ += step, and copy before a loop writes.
    """
    X, y = _stream()
    model = _learned(hasher, (X, y))
    for array in _arrays(model).values():
        array.flags.writeable = False
    try:
        model.partial_fit(X, y)
    except ValueError as error:
        done = "the learned arrays were made read-only, and a further piece was learned"
        raise CheckError(done, f"ValueError: {error}") from error


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
    before, done = model.to_bytes(), f"partial_fit_pairs got {why}"
    try:
        model.partial_fit_pairs(*pairs)
    except StreamhashError as error:
        message = str(error)
    else:
        raise CheckError(done, "it was taken, not refused")
    named = f"{type(model).__name__}.partial_fit_pairs" in message
    _expect(named, done, f"an error that does not name it: {message}")
    _expect(model.to_bytes() == before, done, "it was refused, but the model has changed")


def check_bad_pairs_change_nothing(hasher: OnlineHasher) -> None:
    """Pairs that cannot be learned are refused; by a method that learns none, all are.

    To mend: leave partial_fit_pairs to the base class, and say learns_pairs = True only with a
    _learn_pairs.
    """
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

    To mend: let _learn_pairs keep to what _learn keeps to: attributes that end in _, replaced and
    never written into, and no look at pairs that have not come yet.
    """
    if not hasher.learns_pairs:
        return
    A, B, similar = _pairs()
    X, y = _stream()
    before = A.copy(), B.copy(), similar.copy()
    size = max(hasher.batch_size // 2, 1)
    whole = clone(hasher).partial_fit_pairs(A, B, similar)
    done = f"{len(A)} judged pairs were learned"
    _expect(all(map(np.array_equal, (A, B, similar), before)), done, "they were written into")
    parts, resumed = clone(hasher), clone(hasher)
    for start in range(0, len(A), size):
        stage = slice(start, start + size)
        parts.partial_fit_pairs(A[stage].tolist(), B[stage], similar[stage].tolist())
        resumed.partial_fit_pairs(A[stage], B[stage], similar[stage].astype(int))
        resumed = type(hasher).from_bytes(resumed.to_bytes())
    _expect(_same(whole, parts), f"{done} in one call, and in calls of {size}", "two models")
    _expect(_same(whole, resumed), f"{done}, with saving and loading in between", "two models")
    for each in (whole, whole.encoder()):
        each.check_learned()
    _expect(np.isfinite(whole.project(X)).all(), done, "projections that are not finite")
    for array in _arrays(parts).values():
        array.flags.writeable = False
    parts.partial_fit_pairs(A[::-1], B[::-1], similar[::-1])
    _expect(not _same(whole, parts), f"{done}, and then backwards", "the same model")
    for model in (whole.partial_fit(X, y), _learned(hasher, (X, y))):
        model.partial_fit_pairs(A, B, similar, [*y[:200], *[None] * 100])
        finite = np.isfinite(model.project(X)).all()
        _expect(finite, "rows and pairs were learned", "projections that are not finite")
        model.check_learned()


# Saved models: they load, and go on exactly ---------------------------------------------------


def check_resuming_is_exact(hasher: OnlineHasher) -> None:
    """Save, load and go on is the same as not having stopped, bit for bit.

    To mend: keep all that is learned, the source of random numbers too, in attributes that end in
    _; a model is its parameters and these.
    """
    X, y = _stream()
    straight = _learned(hasher, (X[:300], y[:300]), (X[300:], y[300:]))
    stopped = _learned(hasher, (X[:300], y[:300])).to_bytes()
    resumed = type(hasher).from_bytes(stopped).partial_fit(X[300:], y[300:])
    done = "a model was saved after 300 rows, loaded, and went on for 300 more"
    _expect(_same(resumed, straight), done, "another model than without the stop")
    _expect_equal(resumed.transform(X), straight.transform(X), done)


def check_an_unstarted_model_can_be_saved(hasher: OnlineHasher) -> None:
    """A file may hold parameters alone.

    To mend: let parameters be numbers, texts, arrays or parts of streamhash.
    """
    loaded = type(hasher).from_bytes(hasher.to_bytes())
    done = "a model was saved and loaded before it had learned anything"
    _expect(repr(loaded) == repr(hasher), done, f"{loaded!r} of {hasher!r}")
    same = _same(_learned(loaded, _stream()), _learned(hasher, _stream()))
    _expect(same, f"{done}, and then learned", "another model than the one that was saved")


def check_a_model_fits_its_own_statement(hasher: OnlineHasher) -> None:
    """What was learned, and by whom, is what ``learns`` says: else a saved model would not load.

    To mend: name every attribute that ends in _ in learns = Table(...), with its type and shape.
    """
    X, y = _stream()
    for n in (1, 7, 300, 600):
        model = _learned(hasher, (X[:n], y[:n]))
        for each in (model, model.encoder()):
            try:
                each.check_learned()
            except StreamhashError as error:
                raise CheckError(f"{n} rows were learned", str(error)) from error


def check_equal_models_are_equal_files(hasher: OnlineHasher) -> None:
    """The bytes of a file depend on the model alone, so that files can be compared.

    To mend: keep no time, path or set in attributes that end in _.
    """
    model = _learned(hasher, _stream())
    loaded = type(hasher).from_bytes(model.to_bytes())
    same = model.to_bytes() == loaded.to_bytes() == _learned(hasher, _stream()).to_bytes()
    _expect(same, "a model was saved, loaded, saved again, and learned again", "different files")


ALL_CHECKS: dict[str, Check] = {
    name.removeprefix("check_"): check
    for name, check in globals().items()
    if name.startswith("check_") and name != "check_hasher"
}
