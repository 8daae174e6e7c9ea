"""What every hasher has in common: the contract between a method and the rest of streamhash.

A method is one class with three verbs, and holds only its mathematics:

    _start(X, y)    the first stage has come: set up what is learned (W_ and the like)
    _learn(X, y)    learn from one stage
    _project(X)     the real values whose signs are the bits: X W_, if not said otherwise

Its parameters are one line each (``parameters.py``). If its features should be centred or mapped
first, ``_feature_parts`` names the parts (``features.py``), and X above holds prepared rows; where
a person asks for random ``features``, they come before those parts.

``OnlineHasher`` does the rest: it checks what comes in, cuts the stream into stages, prepares
features, counts, packs bits, saves and loads. When anything goes wrong on the way, the model is as
it was before the call; for that a method *replaces* the arrays it has learned and never writes into
them.
"""

import copy
import math
import os
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

import streamhash
from streamhash import storage
from streamhash.codes import Codes, code_bytes, pack
from streamhash.errors import ExtremeRowsError, FileError, InputError
from streamhash.estimators import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    NotFittedError,
    TransformerMixin,
    check_random_state,
    validate_data,
)
from streamhash.frames import with_vectors
from streamhash.kernels.learning.row_products import (
    OWN_BLOCKS,
    are_alike,
    blocks,
    blocks_of_blas,
    product_by_blocks,
)
from streamhash.labels import as_numpy, check_labels, same_width, with_labels
from streamhash.learned import (
    MOST,
    Count,
    FeatureNames,
    Generator,
    Part,
    Parts,
    Table,
    check,
    memory_needed,
    refuse_too_large,
)
from streamhash.parameters import (
    SEED,
    Choice,
    Rule,
    SearchSpace,
    Whole,
    check_parameters,
    declare_parameters,
    parameter,
)
from streamhash.sparse import check_sparse
from streamhash.threads import run_blocks, single_threaded_blas

Matrix = NDArray[np.float32]
T = TypeVar("T", bound="Streaming")

# Rows are projected in blocks, and the last block is filled up with zeros to a multiple of
# ROWS_PER_TILE, if the method does not see to it by ``row_product``: BLAS then treats every row
# alike, and a row's code does not depend on its neighbours in the call. Blocks of random features,
# which are many, are shorter.
ROWS_PER_BLOCK = 2048
ROWS_PER_WIDE_BLOCK = 512
ROWS_PER_TILE = 64
# OpenBLAS takes another way through products of up to a million multiplications, which sums more
# than some 400 of them in another order.
SMALL_PRODUCT = 2**20
SHORT_SUM = 256
FEW_ROWS = 4  # of which a product is made without BLAS, if the bits are the same

PAIR_LEARNERS = ("OKH", "AdaptHash", "MIHash", "SDOH")  # an error names them


def row_product(X: Matrix, W: Matrix) -> Matrix:
    """Return X (n, d) W (d, k) such that a row of it is the same, bit for bit, in any company.

    Few rows are summed in the order of BLAS, where that is known (``kernels/learning/``); else
    rows of zeros are added until BLAS goes its general way, in whole tiles. Where BLAS does not
    treat all rows alike, it is not asked.
    """
    if not (X.size and W.size):
        return np.asarray(X @ W)
    is_few = len(X) <= FEW_ROWS and X.shape[1] > SHORT_SUM
    if is_few or not _rows_are_alike(*W.shape):
        ends = known_blocks(*W.shape)
        if ends is not None:
            return product_by_blocks(X, W, ends)
    return _blas_product(X, W)


@lru_cache(1024)
def _rows_are_alike(d: int, k: int) -> bool:
    with single_threaded_blas():
        return are_alike(d, k, _least_rows(d, k), _blas_product)


@lru_cache(1024)
def known_blocks(d: int, k: int) -> NDArray[np.int64] | None:
    """Return where the blocks end by which d terms are summed; None if BLAS alone knows."""
    if not _rows_are_alike(d, k):
        return blocks(d, *OWN_BLOCKS)
    with single_threaded_blas():
        return blocks_of_blas(d, k, _blas_product)


def _least_rows(d: int, k: int) -> int:
    """Return how many rows BLAS takes in its general way."""
    return SMALL_PRODUCT // (d * k) + 1 if d > SHORT_SUM else 1


def _blas_product(X: Matrix, W: Matrix) -> Matrix:
    n, d = X.shape
    missing = max(_least_rows(*W.shape) - n, 0)
    missing += -(n + missing) % 4
    if missing == 0:
        return np.asarray(X @ W)
    filled = np.zeros((n + missing, d), X.dtype)
    filled[:n] = X
    product: Matrix = (filled @ W)[:n]
    return product


class NotStartedError(InputError, NotFittedError):  # type: ignore[misc]
    """A model was asked for codes before it has seen any data."""

    status, code = 409, "not_ready"


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter,))
class Streaming(BaseEstimator):  # type: ignore[misc]
    """An estimator that learns piece by piece, and can be saved, loaded and rolled back.

    Its parameters are declared by ``parameter``, or, as in scikit-learn, by an ``__init__`` that
    stores them. What was learned are the attributes whose names end in ``_``; ``learns`` states
    what each may be (``learned.py``), and is added to the tables of the classes above. Of a class
    that states nothing itself, a file may hold any attribute, of finite numbers.
    """

    rules: ClassVar[Mapping[str, Rule]] = {}
    search: ClassVar[Mapping[str, SearchSpace]] = {}
    learns: ClassVar[Table] = Table()
    states_all: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        declare_parameters(cls)
        cls.states_all = "learns" in vars(cls)
        tables = [vars(each).get("learns", {}) for each in reversed(cls.__mro__)]
        cls.learns = Table({name: kind for table in tables for name, kind in table.items()})

    def learned(self) -> dict[str, Any]:
        """Return what was learned, by name."""
        return self._all_learned()

    def _all_learned(self) -> dict[str, Any]:
        found = vars(self).items()
        return {name: value for name, value in found if name[0] != "_" and name[-1] == "_"}

    def has_learned(self) -> bool:
        """Whether anything was learned."""
        return bool(self._all_learned())

    def known_sizes(self) -> dict[str, int]:
        """Return the sizes in the table ``learns`` that follow from the rest."""
        return {"d": self.n_features_in_} if hasattr(self, "n_features_in_") else {}

    def check_learned(self) -> None:
        """Refuse what was learned if it does not fit the class's own statement, ``learns``.

        A class whose table cannot say all adds to this.
        """
        if learned := self._all_learned():
            check(self, learned, complete=self.states_all)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and all that was learned into one file, for ``load`` to go on from."""
        storage.write(path, "model", *self._described())

    @classmethod
    def load(cls: type[T], path: str | os.PathLike[str]) -> T:
        """Read what ``save`` wrote. The model goes on exactly where it stopped."""
        return cls._rebuilt(*storage.read(path, "model"), os.fspath(path))

    def to_bytes(self) -> bytes:
        """Return what ``save`` would write, to be kept in a database."""
        return storage.to_bytes("model", *self._described())

    @classmethod
    def from_bytes(cls: type[T], content: bytes, *, place: str = "from_bytes") -> T:
        """Undo ``to_bytes``; ``place`` is how an error calls where they came from."""
        return cls._rebuilt(*storage.from_bytes(content, "model", place=place), place)

    def _described(self) -> tuple[dict[str, Any], storage.Arrays]:
        arrays: storage.Arrays = {}
        return {"model": storage.describe(self, arrays, "model")}, arrays

    @classmethod
    def _rebuilt(cls: type[T], header: dict[str, Any], arrays: storage.Arrays, place: str) -> T:
        try:
            model = storage.rebuild(header, arrays, lambda: [*_descendants(Streaming), cls])
        except FileError as error:
            raise FileError(f"{place}: {error}") from error
        except InputError as error:
            raise FileError(
                f"{place}: the model in it does not fit together ({error}); it is damaged, or was "
                "not written by streamhash: save it again, and load files of people you trust."
            ) from error
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise FileError(
                f"{place}: the model in it is incomplete ({error!r}); save it again."
            ) from error
        if not isinstance(model, cls):
            raise FileError(
                f"{place}: holds a {type(model).__name__}, not a {cls.__name__}; "
                "load it with streamhash.load."
            )
        return model

    def _forget(self) -> None:
        for name in self.learned():
            delattr(self, name)

    def check_parameters(self) -> None:
        """Refuse parameters that break their rules."""
        values = {name: getattr(self, name) for name in self.rules}
        check_parameters(type(self).__name__, values, self.rules)

    def _check_features(self, X: Any, place: str, *, first: bool, min_rows: int = 1) -> Any:
        """Return X as float32, dense or CSR, finite and of the width this model was started with.

        Rows stay sparse until their stage comes, so that memory stays bounded.
        """
        if not first and not hasattr(self, "n_features_in_"):
            raise NotStartedError(
                f"{place}: this {type(self).__name__} has not seen any data; "
                "call partial_fit or fit first."
            )
        if not first and self._needs_no_check(X, min_rows):
            return X
        if hasattr(X, "toarray"):
            check_sparse(X, place=f"{place}: X")
        try:
            # What float32 cannot hold is refused as infinite, but for the sum that is tried first.
            with np.errstate(over="ignore", invalid="ignore"):
                return validate_data(
                    self,
                    X if isinstance(X, np.ndarray) else with_vectors(as_numpy(X)),
                    reset=first,
                    accept_sparse="csr",
                    dtype=np.float32,
                    order="C",
                    ensure_min_samples=min_rows,
                )
        except (ValueError, OverflowError) as error:  # the latter: a whole number beyond float64
            reason = str(error).splitlines()[0].rstrip(".:")
            step = next(step for part, step in NEXT_STEPS.items() if part in reason)
            raise InputError(f"{place}: {reason}; {step}") from error
        except TypeError as error:
            if "complex" not in str(error):  # scikit-learn's own word for what is no number at all
                raise
            raise InputError(f"{place}: Complex data not supported; {NEXT_STEPS['']}") from error

    def _needs_no_check(self, X: Any, min_rows: int) -> bool:
        """Whether X is just what ``_check_features`` would return: a single row is soon told so."""
        if type(X) is not np.ndarray or X.dtype != np.float32 or hasattr(self, "feature_names_in_"):
            return False
        if X.ndim != 2 or X.shape[1] != self.n_features_in_ or len(X) < min_rows:
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            return X.flags.c_contiguous and math.isfinite(X.sum())


# What to do next, by a part of scikit-learn's reason; the last fits any.
NEXT_STEPS = {
    "is expecting": "pass the features this model was started with, or start a new model.",
    "NaN": "leave out or fill in such rows first.",
    "infinity": "leave out or fill in such rows first.",
    "0 sample": "pass at least one row.",
    "column of lists": "pass that column alone, as X.",
    "never a feature": "pass the columns of features alone, as X.",
    "1D array": "Reshape your data to 2-d, one row an instance: X.reshape(1, -1) for a single one.",
    "": "pass a 2-d array of numbers, one row an instance.",
}


# As scikit-learn keeps them; the names, if rows came as a data frame.
FEATURES = Table(n_features_in_=Count(1), feature_names_in_=FeatureNames(optional=True))


class StreamPart(TransformerMixin, Streaming):  # type: ignore[misc]
    """A feature map learned from the stream, used inside hashers and in a StreamPipeline.

    A part fills in ``learn_rows(X)`` and ``map_rows(X)``, on dense float32 rows checked before, and
    ``n_features_out(d)``, if it can tell.
    """

    # Up to version 0.1 a part inside a hasher did not know its features.
    learns = Table({**FEATURES, "n_features_in_": Count(1, optional=True)})

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn from the next rows of the stream."""
        place = f"{type(self).__name__}.partial_fit"
        self.check_parameters()
        X = self._check_features(X, place, first=not hasattr(self, "n_features_in_"))
        self.learn_rows(dense(X))
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget all, then learn from these rows."""
        self._forget()
        return self.partial_fit(X, y)

    def transform(self, X: Any) -> Matrix:
        """Map rows."""
        place = f"{type(self).__name__}.transform"
        return self.map_rows(dense(self._check_features(X, place, first=False)))

    def learn_rows(self, X: Matrix) -> None:
        """Learn from dense rows that were checked before."""
        raise NotImplementedError

    def map_rows(self, X: Matrix) -> Matrix:
        """Map dense rows that were checked before."""
        raise NotImplementedError

    def n_features_out(self, d: int) -> int | None:  # noqa: ARG002
        """Return how many features rows of d features have after the map; None: not known."""
        return None

    def follow_rows(self, X: Matrix) -> Matrix:
        """Learn rows one after the other, and map each by what is known as it comes.

        So a method that learns one by one gets the same rows however the stream is cut.
        """
        mapped = []
        for i in range(len(X)):
            self.learn_rows(X[i : i + 1])
            mapped.append(self.map_rows(X[i : i + 1]))
        return np.concatenate(mapped)


class OnlineHasher(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Streaming):  # type: ignore[misc]
    """The base of all hashers; see the module's text for what a method fills in.

    Class facts, read by the checks, the command line and the documentation: ``needs_labels``,
    ``multi_label``, ``one_by_one`` (each row is prepared by what was known when it came, not by
    what its whole stage has taught), ``takes_memory`` (``memory``, below, is of use to it),
    ``can_forget`` (rows can be taken back), ``learns_pairs`` (it has ``partial_fit_pairs``),
    ``has_label_codes`` (labels have codes of their own, by which a database can be coded without
    looking at its features), ``row_products`` (a row's projections are the same in any company, as
    all its products are ``row_product``: else calls are filled up with rows of zeros, and a single
    row takes as long as 64), ``reference`` (authors and venue), ``year``, ``settings``, the
    published ones by data set, ``published_features``, what their authors fed them: "raw" features,
    or "centre_unit" ones (centred and brought to unit length), and ``search``, the values that
    ``streamhash tune`` tries.

    Any method can learn from random features: ``features="absolute"`` or ``"fourier"`` puts
    ``CenterScale(scale="unit")`` and ``RandomFeatures`` of that kind before its own parts.

    With ``memory=4000``, say, a method that needs labels keeps so many rows as they came, evenly
    over the classes (``memory_``, a ClassMemory), and learns each stage together with as many rows
    drawn from them: what stopped coming is not forgotten.
    """

    needs_labels: ClassVar[bool] = True
    multi_label: ClassVar[bool] = False
    row_products: ClassVar[bool] = False
    one_by_one: ClassVar[bool] = False
    can_forget: ClassVar[bool] = False
    learns_pairs: ClassVar[bool] = False
    takes_memory: ClassVar[bool] = True
    has_label_codes: ClassVar[bool] = False
    reference: ClassVar[str] = ""
    year: ClassVar[int] = 0
    settings: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    published_features: ClassVar[str] = "centre_unit"
    learns = Table(
        **FEATURES,
        n_samples_seen_=Count(),
        n_stages_=Count(1),
        parts_=Parts("StreamPart"),
        ordinary_=Part("OrdinaryRange", d="d", optional=True),  # files of before have none
        memory_=Part(  # not there while only pairs were learned
            "ClassMemory", size="memory", d="d", when=lambda model: model.memory > 0, optional=True
        ),
        memory_random_=Generator(when=lambda model: model.memory > 0, optional=True),
    )

    n_bits: int = parameter(Whole(1, 1024), default=32, kw_only=False)
    batch_size: int = parameter(Whole(1), default=200)
    features: str | None = parameter(Choice(None, "absolute", "fourier"), default=None)
    memory: int = parameter(Whole(0), default=0)
    random_state: Any = parameter(SEED, default=None)

    @classmethod
    def published(
        cls, data: str, *, n_bits: int = 32, random_state: Any = None, **changes: Any
    ) -> Self:
        """Make a hasher with the settings its authors published for a data set."""
        if data not in cls.settings:
            known = ", ".join(map(repr, cls.settings)) or "none"
            raise InputError(
                f"{cls.__name__}.published: no published settings for {data!r}; known: {known}. "
                f"{cls.__name__}(n_bits={n_bits}) has defaults for any data."
            )
        return cls(n_bits=n_bits, random_state=random_state, **{**cls.settings[data], **changes})

    def check_parameters(self) -> None:
        """Refuse parameters that break their rules."""
        super().check_parameters()
        if self.memory and not (self.needs_labels and self.takes_memory):
            reason = "keeps sums of all that has come" if self.needs_labels else "needs no labels"
            raise InputError(
                f"{type(self).__name__}: memory={self.memory} is for methods that learn classes "
                f"from single stages, and this one {reason}; leave memory=0."
            )

    def known_sizes(self) -> dict[str, int]:
        """Return the sizes in the table ``learns`` that follow from the rest."""
        sizes = {"k": self.n_bits, **super().known_sizes()}
        width = sizes.get("d")
        for part in getattr(self, "parts_", []):
            width = part.n_features_out(width) if isinstance(width, int) else None
        return sizes if width is None else {**sizes, "D": width}

    def check_learned(self) -> None:
        """Refuse what was learned if it does not fit the class's own statement, ``learns``."""
        if self.has_learned():
            self._check_parts()
            super().check_learned()

    def _check_parts(self) -> None:
        """Refuse parts other than those that the method names, or that do not fit each other."""
        name, width = type(self).__name__, getattr(self, "n_features_in_", None)
        if not isinstance(width, int) or not 0 < width < MOST:
            raise InputError(f"{name}.n_features_in_ is {width!r}, not a number of features")
        found, wanted = getattr(self, "parts_", None), self._all_parts(width)
        if not isinstance(found, list) or [*map(type, found)] != [*map(type, wanted)]:
            raise InputError(f"{name}.parts_ is {found!r}, not {wanted!r}")
        for part in found:
            if not part.has_learned():
                raise InputError(f"{name}.parts_: {part!r} has learned nothing")
            if not hasattr(part, "n_features_in_") and width is not None:
                part.n_features_in_ = width
                part.check_learned()
            if width not in (None, part.n_features_in_):
                raise InputError(f"{name}.parts_: {part!r} is not one for {width} features")
            width = part.n_features_out(part.n_features_in_)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the next piece of the stream.

        Pieces longer than ``batch_size`` are cut into stages of that size; a shorter piece is a
        stage of its own. If the piece is refused, the model stays as it was, bit for bit.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or torch tensor of shape (n, d)
        y : labels of any type (n,), or a 0/1 matrix (n, classes) for several labels an instance
        """
        return self._stream(X, y, "partial_fit", anew=False)

    def partial_fit_pairs(
        self, X1: Any, X2: Any, similar: Any, y1: Sequence[Any] | None = None, y2: Any = None
    ) -> Self:
        """Learn from judged pairs: row i of X1 and row i of X2 belong together, or they do not.

        For methods with ``learns_pairs``. Pairs are learned in stages of ``batch_size`` rows, two a
        pair; if something is refused, the model stays as it was, bit for bit.

        Parameters
        ----------
        X1, X2 : as X of ``partial_fit``, both (n, d)
        similar : booleans, or 0 and 1, (n,)
        y1, y2 : lists of n labels, None where a row has none; or None
            What is known of the rows besides. A method that learns classes learns a row as one of
            the class of what it belongs with; others do not look at them.
        """
        name = type(self).__name__
        place = f"{name}.partial_fit_pairs"
        if not self.learns_pairs:
            raise InputError(
                f"{place}: {name} does not learn from pairs; pass rows with labels to partial_fit, "
                f"or use a method that does: {', '.join(PAIR_LEARNERS)}."
            )
        self.check_parameters()
        size = max(self.batch_size // 2, 1)  # pairs a stage
        with self._put_back_if_refused(place):
            first = not hasattr(self, "n_features_in_")
            X1 = dense(self._check_features(X1, f"{place}: X1", first=first))
            X2 = dense(self._check_features(X2, f"{place}: X2", first=False))
            flags = check_similar(similar, len(X1), len(X2), place)
            labels = [
                _check_known(y, len(X1), f"{place}: {of}") for y, of in ((y1, "y1"), (y2, "y2"))
            ]
            X = np.stack([X1, X2], axis=1).reshape(-1, X1.shape[1])  # a pair is two rows
            with single_threaded_blas():
                self._begin(X.shape[1], place)
                for start in range(0, len(flags), size):
                    stage = slice(start, start + size)
                    try:
                        rows = self._admitted(X, place, 2 * start, 2 * size)
                    except ExtremeRowsError as error:
                        raise _of_pairs(error) from None
                    known = [*chain.from_iterable(zip(*(y[stage] for y in labels), strict=True))]
                    self.n_samples_seen_ += self._learn_pair_stage(rows, flags[stage], known)
                    self.n_stages_ += 1
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget all that was learned, then learn from X as a whole stream."""
        return self._stream(X, y, "fit", anew=True).settle()

    def project(self, X: Any) -> Matrix:
        """Return the real values (n, k) whose signs are the bits."""
        X = self._check_features(X, f"{type(self).__name__}.project", first=False, min_rows=0)
        self.settle()
        projections = np.empty((X.shape[0], self.n_bits), np.float32)
        self._fill(X, projections, lambda values: values)
        return projections

    def transform(self, X: Any) -> Codes:
        """Return packed codes, uint8 of shape (n, ⌈k/8⌉): bit = projection > 0."""
        X = self._check_features(X, f"{type(self).__name__}.transform", first=False, min_rows=0)
        return self.encode_rows(X)

    def encode_rows(self, X: Any) -> Codes:
        """Return packed codes of float32 rows that were checked before."""
        self.settle()
        codes = np.empty((X.shape[0], code_bytes(self.n_bits)), np.uint8)
        self._fill(X, codes, pack)
        return codes

    def transform_queries(self, X: Any) -> Codes:
        """Return packed codes of queries: those of ``transform``, unless a method has others."""
        return self.transform(X)

    def label_codes(self, y: Any) -> tuple[Codes, NDArray[np.bool_]]:
        """Return the packed codes (n, ⌈k/8⌉) that labels have, and which of them have one (n,).

        They are the codes that a method with targets for its classes draws rows to
        (``has_label_codes``). A label that never came has none: its bits are 0.
        """
        place = f"{type(self).__name__}.label_codes"
        if not self.has_label_codes:
            raise InputError(
                f"{place}: labels have no codes in this method; encode rows by transform, or use a "
                "method with has_label_codes = True, such as HCOH."
            )
        if not hasattr(self, "n_features_in_"):
            raise NotStartedError(
                f"{place}: this {type(self).__name__} has not seen any data; call partial_fit or "
                "fit first."
            )
        labels = check_labels(y, len(y), place=place)
        codes = np.zeros((len(labels), code_bytes(self.n_bits)), np.uint8)
        values, members = self._label_values(labels)
        is_known = np.asarray(members.any(axis=1))
        codes[is_known] = pack(values[is_known])
        return codes, is_known

    def settle(self) -> Self:
        """Work out what follows from all that was learned, if a method leaves that for later.

        ``fit``, ``transform`` and ``save`` do so by themselves; call it to choose the moment.
        """
        return self

    def encoder(self) -> Self:
        """Return a twin that encodes as this model does now, without what only learning needs."""
        self.settle()
        twin: Self = snapshot(self)
        return twin

    @property
    def next_stage(self) -> int:
        """How many rows a collection gathers before it learns from them."""
        return self.batch_size

    @property
    def n_clipped_(self) -> int:
        """How many extreme values it was to learn, and put the centre in their place."""
        return self.ordinary_.n_clipped_ if hasattr(self, "ordinary_") else 0

    def refuse_extremes(self, X: Matrix, place: str, numbers: Sequence[int]) -> None:
        """Refuse dense rows that ``partial_fit`` would refuse now, as too many are extreme.

        ``numbers`` are what an error calls them.
        """
        ordinary = snapshot(getattr(self, "ordinary_", None)) or streamhash.OrdinaryRange()
        try:
            for start in range(0, len(X), ROWS_PER_BLOCK):
                block = slice(start, start + ROWS_PER_BLOCK)
                ordinary.admit(X[block], place, numbers[block])
        except ExtremeRowsError as error:
            if error.rows:  # else it is no fault of these
                raise

    def forget(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Take back rows that were learned, if the method can (``can_forget``)."""
        raise InputError(
            f"{type(self).__name__}.forget: what this method has learned cannot be taken back; "
            "learn anew without these rows, or use SDOH with its memory."
        )

    def missing(self) -> dict[Any, int]:
        """Return how many rows of a class its memory lacks, as they were forgotten; see refill."""
        return {}

    def refill(self, X: Any, y: Any) -> Self:
        """Put rows that were learned before into the places that forgotten ones have left.

        A method without such places (``missing``) stays as it is.
        """
        del X, y
        return self

    def forget_pairs(self, X: Any) -> Self:  # noqa: ARG002
        """Take back rows that were learned in pairs, if the method can (``can_forget``)."""
        raise InputError(
            f"{type(self).__name__}.forget_pairs: what this method has learned cannot be taken "
            "back; learn anew without these rows, or use SDOH with its memory."
        )

    # What a method fills in -------------------------------------------------------------------

    # y is an array (n,), or a uint8 matrix (n, classes) if the method is multi_label, or None if it
    # needs no labels.

    def _feature_parts(self, d: int) -> list[StreamPart]:  # noqa: ARG002
        """Return the parts that prepare rows of d features, in their order; none by default."""
        return []

    def _start(self, X: Matrix, y: Any) -> None:
        raise NotImplementedError

    def _learn(self, X: Matrix, y: Any) -> None:
        raise NotImplementedError

    def _learn_pairs(self, X: Matrix, similar: NDArray[np.bool_]) -> None:
        """Learn from pairs (m,), of rows (0, 1), (2, 3), ... of X, if it ``learns_pairs``."""
        raise NotImplementedError

    def _project(self, X: Matrix) -> Matrix:
        """Return the projections (n, k) of rows; by default those on the columns of ``W_``."""
        return row_product(X, self.W_)

    def _project_few(self, X: Any) -> Matrix | None:  # noqa: ARG002
        """Return the projections of few rows as they came, if there is a quicker way to them.

        Its bits are those of the ordinary way, or it returns None.
        """
        return None

    def _label_values(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return values (n, k) whose signs are the codes of labels, and known classes (n, C)."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------

    def project_rows(self, X: Matrix) -> Matrix:
        """Project dense rows that were checked before."""
        return self._project(self._mapped(X))

    def _stream(self, X: Any, y: Any, verb: str, *, anew: bool) -> Self:
        place = f"{type(self).__name__}.{verb}"
        self.check_parameters()
        with self._put_back_if_refused(place):
            if anew:
                self._forget()
            X = self._check_features(X, place, first=not hasattr(self, "n_features_in_"))
            labels = self._check_labels(y, X.shape[0], place)
            with single_threaded_blas():
                self._begin(X.shape[1], place)
                for start in range(0, X.shape[0], self.batch_size):
                    stage = slice(start, start + self.batch_size)
                    rows = self._admitted(X, place, start, self.batch_size)
                    self._learn_stage(rows, None if labels is None else labels[stage])
                    self.n_samples_seen_ += len(rows)
                    self.n_stages_ += 1
        return self

    @contextmanager
    def _put_back_if_refused(self, place: str) -> Iterator[None]:
        """Put the model back as it was if what is learned in the block fails."""
        before = snapshot(self).__dict__
        try:
            yield
            self._refuse_divergence(before, place)
        except BaseException as error:
            self.__dict__.clear()
            self.__dict__.update(before)
            if isinstance(error, np.linalg.LinAlgError):
                raise InputError(
                    f"{place}: this piece cannot be learned ({error}); look for extreme values in "
                    "X, or for features that say nothing."
                ) from error
            if isinstance(error, MemoryError):
                raise InputError(
                    f"{place}: there is too little memory to learn this piece ({error}); pass "
                    "shorter pieces or fewer features, or settings with a smaller state."
                ) from error
            raise

    def _begin(self, d: int, place: str) -> None:
        """Set up what every method keeps, before the first rows of d features."""
        if not hasattr(self, "n_stages_"):
            self.n_samples_seen_, self.n_stages_ = 0, 0
            self.parts_ = self._all_parts(d)
            self._refuse_too_large(d, place)
        if not hasattr(self, "ordinary_"):  # nor has a model of version 0.1
            self.ordinary_ = streamhash.OrdinaryRange()

    def _refuse_too_large(self, d: int, place: str) -> None:
        """Refuse to begin with rows so wide that what will be learned does not fit into memory."""
        needed, width = memory_needed(self, self.known_sizes()), d
        for part in self.parts_:
            of_part = memory_needed(part, {"d": width})
            needed |= {f"{type(part).__name__}.{name}": size for name, size in of_part.items()}
            width = part.n_features_out(width) or width
        refuse_too_large(needed, d, place)

    def _admitted(self, X: Any, place: str, start: int, size: int) -> Matrix:
        """Return a stage of so many rows as it is to be learned, without extreme values."""
        stage = slice(start, start + size)
        try:
            return self.ordinary_.admit(dense(X[stage]), place)
        except ExtremeRowsError as error:
            if not error.rows:
                raise
            found = [  # with those of other stages
                first + i
                for first in range(0, X.shape[0], size)
                for i in self.ordinary_.far_rows(dense(X[first : first + size]))
            ]
            raise self.ordinary_.refusal(dense(X[found[:1]])[0], place, found) from None

    def _all_parts(self, d: int) -> list[StreamPart]:
        if self.features is None:
            return self._feature_parts(d)
        # Their modules stand on this one: they are loaded when first used, as by anybody.
        random = streamhash.RandomFeatures(kind=self.features)
        scale = streamhash.CenterScale(scale="unit")
        return [scale, random, *self._feature_parts(random.n_features)]

    def _learn_stage(self, X: Matrix, y: Any) -> None:
        """Learn a stage: the features' parts first, then the method, from the prepared rows.

        A method that keeps rows as they came overrides this instead of ``_learn``.
        """
        rows = self._prepared(X)
        if self.n_stages_ == 0:
            self._start(rows, y)
        _, rows, y = self._with_memory(X, rows, y)
        self._learn(rows, y)

    def _learn_pair_stage(
        self,
        X: Matrix,
        similar: NDArray[np.bool_],
        y: list[Any],  # noqa: ARG002
    ) -> int:
        """Learn a stage of pairs; return how many rows were learned. In y, None is no label.

        A method that keeps rows as they came, or looks at labels, overrides this instead of
        ``_learn_pairs``. Pairs have no part in the ``memory``, which is one of classes.
        """
        rows = self._prepared(X)
        if self.n_stages_ == 0:
            self._start(rows, None)
        self._learn_pairs(rows, similar)
        return len(rows)

    def _with_memory(self, X: Matrix, rows: Matrix, y: Any) -> tuple[Matrix, Matrix, Any]:
        """Return a stage (as it came, prepared, labels) with as many rows of the memory among it.

        The parts have learned from the new rows alone; those of the memory are only mapped.
        """
        if not self.memory:
            return X, rows, y
        if not hasattr(self, "memory_"):
            seeds = new_generator(self.random_state).integers(2**32, size=2).tolist()
            self.memory_ = streamhash.ClassMemory(self.memory, random_state=seeds[0])
            self.memory_.take(X, y)
            self.memory_random_ = np.random.default_rng(seeds[1])
            return X, rows, y
        old, labels = self.memory_.sample(len(X), self.memory_random_)
        self.memory_.take(X, y)
        if y.ndim == 2:
            y = np.concatenate(same_width(y, labels))
        else:
            names = self.memory_.classes_.labels_
            y = with_labels(y, [names[number] for number in labels.tolist()])
        order = self.memory_random_.permutation(len(X) + len(old))
        rows = np.concatenate([rows, self._mapped(old)])[order]
        return np.concatenate([X, old])[order], rows, y[order]

    def _prepared(self, X: Matrix) -> Matrix:
        """Let each part learn from the rows of a stage, and map them for the next."""
        for part in self.parts_:
            part.n_features_in_ = X.shape[1]
            if self.one_by_one:
                X = part.follow_rows(X)
            else:
                part.learn_rows(X)
                X = part.map_rows(X)
        return X

    def _mapped(self, X: Matrix) -> Matrix:
        for part in self.parts_:
            X = part.map_rows(X)
        return X

    def _check_labels(self, y: Any, n: int, place: str) -> NDArray[Any] | None:
        if not self.needs_labels:
            return None
        if y is None:
            raise InputError(
                f"{place}: requires y to be passed, but the target y is None; "
                f"{type(self).__name__} learns from labels: pass one a row."
            )
        labels = check_labels(y, n, place=place)
        if labels.ndim == 2 and not self.multi_label:
            raise InputError(
                f"{place}: {type(self).__name__} is defined for one label a row, but y came with "
                f"shape {labels.shape}; use a method with multi_label = True, such as SDOH."
            )
        return labels

    def _refuse_divergence(self, before: Mapping[str, Any], place: str) -> None:
        name = next(diverged(vars(self), before), None)
        if name is not None:
            raise InputError(
                f"{place}: learning from this piece left {name} without finite values; "
                "look for extreme values in X, or lower the learning rate."
            )

    def _fill(self, X: Any, out: NDArray[Any], finish: Any) -> None:
        few = self._project_few(X)
        if few is not None:
            out[:] = finish(few)
            return
        is_wide = getattr(self, "features", None) is not None
        size = ROWS_PER_WIDE_BLOCK if is_wide else ROWS_PER_BLOCK

        def one_block(start: int) -> None:
            rows = dense(X[start : start + size])
            rows = self.ordinary_.cleaned(rows) if hasattr(self, "ordinary_") else rows
            missing = 0 if self.row_products else -len(rows) % ROWS_PER_TILE
            filled = np.pad(rows, ((0, missing), (0, 0))) if missing else rows
            out[start : start + len(rows)] = finish(self.project_rows(filled)[: len(rows)])

        with single_threaded_blas():
            run_blocks(one_block, range(0, X.shape[0], size))

    @property
    def _n_features_out(self) -> int:
        return code_bytes(self.n_bits)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = self.needs_labels
        tags.target_tags.multi_output = self.multi_label
        tags.transformer_tags.preserves_dtype = []
        return tags


class HasherAround(OnlineHasher):
    """A hasher around another, its parameter ``hasher``, whose facts it shares."""

    rules = {}  # noqa: RUF012

    def __init__(self, hasher: OnlineHasher) -> None:
        self.hasher = hasher

    n_bits = property(attrgetter("hasher.n_bits"))
    batch_size = property(attrgetter("hasher.batch_size"))
    needs_labels = property(attrgetter("hasher.needs_labels"))
    multi_label = property(attrgetter("hasher.multi_label"))

    @property
    def next_stage(self) -> int:
        """How many rows a collection gathers before it learns from them."""
        learning = self.hasher_ if hasattr(self, "hasher_") else self.hasher
        return int(learning.next_stage)

    def encoder(self) -> Self:
        """Return a twin that encodes as this model does now, without what only learning needs."""
        twin: Self = snapshot(self)
        if hasattr(self, "hasher_"):
            twin.hasher_ = self.hasher_.encoder()
        return twin

    def check_parameters(self) -> None:
        """Refuse parameters that break their rules."""
        if not isinstance(self.hasher, OnlineHasher):
            raise InputError(
                f"{type(self).__name__}: hasher={self.hasher!r} is not a hasher; "
                "pass one such as SDOH()."
            )
        super().check_parameters()
        self.hasher.check_parameters()


def new_generator(random_state: Any) -> np.random.Generator:
    """Make the source of random numbers of a model: a seed, a RandomState, or None for any."""
    if random_state is None or isinstance(random_state, int | np.integer):
        return np.random.default_rng(random_state)
    if isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state.integers(2**63))
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def random_directions(d: int, k: int, random: np.random.Generator) -> Matrix:
    """Draw k Gaussian directions of unit length, as the columns of W (d, k): the usual start."""
    W = random.standard_normal((d, k))
    W /= np.linalg.norm(W, axis=0)
    return W.astype(np.float32)


def load(path: str | os.PathLike[str]) -> OnlineHasher:
    """Open a saved model of any method; it goes on exactly where it stopped."""
    model: OnlineHasher = OnlineHasher.load(path)
    return model


def check_similar(similar: Any, n: int, n_others: int, place: str) -> NDArray[np.bool_]:
    """Return what is said of n pairs, as booleans."""
    if n != n_others:
        raise InputError(
            f"{place}: X1 has {n} rows and X2 has {n_others}; pass the two rows of each pair."
        )
    try:
        flags = np.asarray(as_numpy(similar))
        fits = flags.shape == (n,) and flags.dtype.kind in "biuf" and np.isin(flags, (0, 1)).all()
    except ValueError:  # lists of several lengths
        fits = False
    if not fits:
        raise InputError(
            f"{place}: similar is {reprlib.repr(similar)}; pass {n} booleans, one a pair: True if "
            "its two rows belong together."
        )
    said: NDArray[np.bool_] = flags.astype(bool)
    return said


def _check_known(y: Any, n: int, place: str) -> list[Any]:
    """Return what is known of the labels of n rows, None where nothing is."""
    known = [None] * n if y is None else as_numpy(y)
    known = [each.item() if isinstance(each, np.generic) else each for each in known]
    if len(known) != n:
        raise InputError(f"{place} has {len(known)} labels for {n} rows; pass one each, or None.")
    there = [label for label in known if label is not None]
    if there:
        check_labels(np.fromiter(there, object, len(there)), len(there), place=place)
    return known


def _of_pairs(error: ExtremeRowsError) -> ExtremeRowsError:
    """Return the error of rows as one of pairs, of which each has two."""
    pairs = sorted({row // 2 for row in error.rows})
    return ExtremeRowsError(f"{error} These are rows of pairs: pair i has 2 i and 2 i + 1.", pairs)


def dense(X: Any) -> Matrix:
    """Return rows that were checked as an array, also if they came sparse."""
    rows: Matrix = X.toarray() if hasattr(X, "toarray") else X
    return rows


def snapshot(value: Any) -> Any:
    """Copy a model and its parts, to be put back; arrays are shared, as nobody writes in them."""
    if isinstance(value, Streaming):
        twin = copy.copy(value)
        for name, item in vars(value).items():
            setattr(twin, name, snapshot(item))
        return twin
    if isinstance(value, list):
        return [snapshot(item) for item in value]
    return copy.deepcopy(value) if isinstance(value, np.random.Generator) else value


def diverged(now: Any, before: Any, name: str = "") -> Iterator[str]:
    """Name what is not finite any more in a model, its parts and theirs; unchanged is passed over.

    A number may be NaN where nothing was measured yet, but not infinite.
    """
    if now is before:
        return
    if isinstance(now, np.ndarray):
        if now.dtype.kind == "f" and not np.isfinite(_added(now, before)).all():
            yield name
    elif isinstance(now, float):
        if math.isinf(now):
            yield name
    elif isinstance(now, list | tuple):
        items = before if isinstance(before, list | tuple) else ()
        for i, item in enumerate(now):
            yield from diverged(item, items[i] if i < len(items) else None, f"{name}[{i}]")
    elif isinstance(now, dict | Streaming):
        old = _named(before)
        for key, item in _named(now).items():
            if key[-1:] == "_":
                yield from diverged(item, old.get(key), f"{name}.{key}" if name else key)


def _named(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Streaming):
        return vars(value)
    return value if isinstance(value, dict) else {}


def _added(now: NDArray[Any], before: Any) -> NDArray[Any]:
    """Return an array without the rows that it had before, if it stands in the same memory."""
    if (
        isinstance(before, np.ndarray)
        and (before.base is not None and before.base is now.base)
        and before.shape[1:] == now.shape[1:]
        and before.strides == now.strides
        and before.ctypes.data == now.ctypes.data
    ):
        return now[len(before) :]
    return now


def _descendants(cls: type[Any]) -> Iterator[type[Any]]:
    for child in cls.__subclasses__():
        yield child
        yield from _descendants(child)
