"""Every method through every shared check, and through scikit-learn's own."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks

from quick import plain_sdoh
from streamhash import (
    ATHOH,
    BSODH,
    FOH,
    FROSH,
    HCOH,
    HMOH,
    LEMON,
    LSH,
    OHWEU,
    OKH,
    OSH,
    SDOH,
    SDOHHC,
    AnchorMap,
    CenterScale,
    InputError,
    MIHash,
    OnlineHasher,
    RandomFeatures,
    RidgeHash,
    SketchHash,
    SnapshotHasher,
    StreamPipeline,
    load,
)
from streamhash.checks import ALL_CHECKS, check_hasher
from streamhash.hashers import METHODS
from streamhash.parameters import Number, Span, Whole, parameter

HASHERS = {
    **{method.__name__: method(n_bits=16, random_state=0) for method in METHODS.values()},
    "SDOH(small)": SDOH(n_bits=16, memory=300, n_features=448, random_state=0),
    "SDOH(linear)": SDOH(n_bits=16, memory=300, features=None, random_state=0),
    "SDOH(rows)": SDOH(n_bits=16, memory=300, features=None, class_scores=None, random_state=0),
    "SDOH(plain)": plain_sdoh(16, random_state=0),
    "SDOH(anchors)": plain_sdoh(16, n_anchors=50, random_state=0),
    "SDOH.published": SDOH.published("mnist", n_bits=16, random_state=0, max_steps=20),
    "LSH(features)": LSH(n_bits=16, features="absolute", random_state=0),
    "SDOH(features)": SDOH(n_bits=16, memory=0, features="fourier", random_state=0),
    "MIHash(features)": MIHash(n_bits=16, features="absolute", reservoir_size=200, random_state=0),
    "HMOH(features)": HMOH(n_bits=16, features="absolute", n_anchors=50, random_state=0),
    "OSH(boosting)": OSH(n_bits=16, loss="boosting", random_state=0),
    "HMOH(linear)": HMOH(n_bits=16, n_anchors=None, random_state=0),
    "HMOH.published": HMOH.published("mnist", n_bits=16, random_state=0),
    "BSODH.published": BSODH.published("mnist", n_bits=16, random_state=0, batch_size=150),
    "RidgeHash(linear)": RidgeHash(n_bits=16, n_anchors=None, random_state=0),
    "RidgeHash.published": RidgeHash.published("mnist", n_bits=16, random_state=0, n_anchors=60),
    "FOH.published": FOH.published("mnist", n_bits=16, random_state=0, batch_size=150),
    "LEMON.published": LEMON.published("mnist", n_bits=16, random_state=0, batch_size=150),
    "SDOHHC(released)": SDOHHC(n_bits=16, form="released", n_anchors=60, random_state=0),
    "ATHOH(teacher)": ATHOH(
        n_bits=16, distil="gradient", stage_size=100, hard_mining=True, random_state=0
    ),
    "ATHOH.published": ATHOH.published("mnist", n_bits=16, random_state=0, normalize=True),
    "OHWEU(base codes)": OHWEU(n_bits=16, start_size=50, random_state=0),
    "OHWEU.published": OHWEU.published("mnist", n_bits=16, random_state=0),
    "HCOH(memory)": HCOH(n_bits=16, memory=100, random_state=0),
    "MIHash(memory)": MIHash(n_bits=16, memory=100, random_state=0),
    "OKH(memory)": OKH(n_bits=16, memory=100, random_state=0),
    "SketchHash(released)": SketchHash(n_bits=16, state="released", random_state=0),
    "SketchHash.published": SketchHash.published("mnist", n_bits=16, random_state=0),
    "FROSH.published": FROSH.published("mnist", n_bits=16, random_state=0),
    "SnapshotHasher": SnapshotHasher(plain_sdoh(16, random_state=0), random_state=0),
    "SnapshotHasher(fix)": SnapshotHasher(
        LSH(n_bits=16, random_state=0), trigger="fix", random_state=0
    ),
    "SnapshotHasher(MIHash)": SnapshotHasher(
        MIHash(n_bits=16, random_state=0), reservoir_size=90, random_state=0
    ),
    "StreamPipeline": StreamPipeline(
        [CenterScale(scale="unit"), AnchorMap(40)], plain_sdoh(16, random_state=0)
    ),
    "StreamPipeline(Fourier)": StreamPipeline(
        [CenterScale(scale="unit"), RandomFeatures(128, kind="fourier")],
        plain_sdoh(16, random_state=0),
    ),
}
RAW = "the published settings take the features as they are, as the authors' program does"
EXEMPT = {
    ("SDOH.published", "scales_do_not_matter"): RAW,
    ("BSODH.published", "scales_do_not_matter"): RAW,
    ("FOH.published", "scales_do_not_matter"): RAW,
    ("LEMON.published", "scales_do_not_matter"): RAW,
}


QUICK = ("SDOH(small)", "LSH")  # the others are as many tests again, each


def slow_unless(quick, names):
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("check", ALL_CHECKS)
@pytest.mark.parametrize("name", slow_unless(QUICK, HASHERS))
def test_hasher_keeps_the_contract(name, check):
    if reason := EXEMPT.get((name, check)):
        pytest.skip(reason)
    ALL_CHECKS[check](HASHERS[name])


class MeanSigns(OnlineHasher):
    """A method of somebody else, written as scikit-learn's estimators are."""

    needs_labels = False
    rules = {**OnlineHasher.rules, "step": Number(above=0)}  # noqa: RUF012

    def __init__(self, n_bits=8, *, batch_size=100, step=1.0, random_state=None):
        self.n_bits = n_bits
        self.batch_size = batch_size
        self.step = step
        self.random_state = random_state

    def _start(self, X, y):  # noqa: ARG002
        self.mean_ = np.zeros(X.shape[1], np.float32)
        self.n_ = 0

    def _learn(self, X, y):  # noqa: ARG002
        self.n_ += len(X)
        change = (X - self.mean_).sum(axis=0) / np.float32(self.n_)
        self.mean_ = self.mean_ + np.float32(self.step) * change

    def _project(self, X):
        return np.resize((X - self.mean_).T, (self.n_bits, len(X))).T


class DeclaredSigns(MeanSigns):
    """The same, its parameters declared in one line each."""

    n_bits: int = parameter(Whole(1), default=8, kw_only=False)
    batch_size: int = parameter(Whole(1), default=100)
    step: float = parameter(Number(above=0), default=1.0, search=Span(0.1, 2))


@pytest.mark.parametrize("method", [MeanSigns, DeclaredSigns])
def test_methods_of_both_styles_keep_the_contract(method):
    check_hasher(method())
    with pytest.raises(InputError, match=rf"{method.__name__}: step=-1 must be a number greater"):
        method(12, step=-1).fit(np.ones((3, 2)))


@parametrize_with_checks([MeanSigns(), DeclaredSigns()])
def test_methods_of_both_styles_are_scikit_learn_estimators(estimator, check):
    check(estimator)


# scikit-learn's own checks; nothing is exempted.
@parametrize_with_checks([LSH(n_bits=16)])
def test_hasher_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([method(n_bits=16) for method in METHODS.values() if method is not LSH])
def test_every_hasher_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("power", [-100, -75, 75, 100])
def test_the_smallest_and_largest_features_give_the_same_bits(name, power):
    X, y = load_digits(return_X_y=True)
    X, y = X[:300].astype(np.float32), y[:300]
    scaled = (X * 2.0**power).astype(np.float32)
    hasher = METHODS[name](n_bits=16, random_state=0)
    codes = clone(hasher).fit(X, y).transform(X)
    assert np.array_equal(clone(hasher).fit(scaled, y).transform(scaled), codes)


@pytest.mark.parametrize("name", slow_unless(METHODS.keys() - {"bsodh"}, METHODS))
def test_every_method_learns_random_features_and_goes_on_bit_for_bit(name, tmp_path):
    X, y = load_digits(return_X_y=True)
    options = {"memory": 0} if name == "sdoh" else {}
    hasher = METHODS[name](n_bits=16, features="absolute", random_state=5, **options)
    hasher.fit(X[:200], y[:200])
    hasher.save(tmp_path / "model.streamhash")
    loaded = load(tmp_path / "model.streamhash")
    for model in (hasher, loaded):
        scale, features = model.parts_[:2]
        assert (scale.scale, features.kind) == ("unit", "absolute")
        model.partial_fit(X[200:400], y[200:400])
    projections = hasher.project(X[:500])
    assert np.isfinite(projections).all()
    assert projections.any()
    assert np.array_equal(loaded.project(X[:500]), projections)
    # A map of its own seed: that of any other model.
    other = RandomFeatures().fit(X)
    assert np.array_equal(features.signs_, other.signs_)


@pytest.mark.parametrize("kind", ["absolute", "fourier"])
@pytest.mark.parametrize("method", [LSH, SDOH, SketchHash])
def test_random_features_are_those_of_a_pipeline(method, kind):
    X, y = load_digits(return_X_y=True)
    parts = [CenterScale(scale="unit"), RandomFeatures(kind=kind)]
    options = {"n_bits": 16, "random_state": 0, **({"memory": 0} if method is SDOH else {})}
    around = StreamPipeline(parts, method(features=None, **options))
    inside = method(features=kind, **options)
    for start in (0, 150, 450):
        for model in (around, inside):
            model.partial_fit(X[start : start + 300], y[start : start + 300])
    assert np.array_equal(inside.project(X[:500]), around.project(X[:500]))


def test_a_broken_hasher_is_caught():
    class Forgetful(SDOH):
        """Begins anew at every stage, as the released programs of OSH and SketchHash do."""

        def _learn(self, X, y):
            self._start(X, y)
            super()._learn(X, y)

    with pytest.raises(AssertionError):
        ALL_CHECKS["learning_carries_over"](
            Forgetful(n_bits=8, memory=0, features=None, normalize=False, random_state=0)
        )


def test_an_exemption_must_name_a_check():
    with pytest.raises(ValueError, match="no check is called typo"):
        check_hasher(LSH(), exempt={"typo": "why"})
