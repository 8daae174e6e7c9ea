"""One extreme row, or one extreme value, ruins neither a model nor the codes of the others."""

import sys
from pathlib import Path

import numpy as np
import pytest

from streamhash import (
    HCOH,
    LSH,
    SDOH,
    AnchorMap,
    CenterScale,
    ExtremeRowsError,
    InputError,
    OrdinaryRange,
)
from streamhash.features import RadialMap, UnitRows

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import fault_extreme as harness

FILL = 9.96921e36  # NetCDF's
ROWS = 500  # of the digits: enough to tell a model that works from one that does not


@pytest.fixture(scope="module")
def data():
    whole = harness.digits()
    return whole._replace(X=whole.X[:ROWS], y=whole.y[:ROWS])


@pytest.fixture(scope="module")
def without(data):
    """The precision of each method without an extreme row, measured once."""
    known = {}

    def of(name):
        if name not in known:
            model = harness.learned(harness.methods()[name], data.X, data.y)
            known[name] = harness.precision(model, data)
        return known[name]

    return of


@pytest.mark.parametrize("name", [*harness.methods()])
@pytest.mark.parametrize(
    ("place", "kind", "size"),
    [("start", "row", FILL), ("middle", "value", FILL), ("end", "row", 1e15)],
)
def test_every_method_resists_one_extreme_row(data, without, name, place, kind, size):
    found = harness.outcome(harness.methods()[name], data, place, kind, size)
    assert (found["error"], found["warnings"]) == (None, 0)
    assert found["precision"] > without(name) - 0.05
    assert found["clipped"] == (data.X.shape[1] if kind == "row" else 1)


# What is extreme, and what is done about it ---------------------------------------------------


def rows(n=200, d=40, seed=0):
    return np.random.default_rng(seed).normal(5, 1, (n, d)).astype(np.float32)


def admitted(*pieces):
    """Let pieces pass; return what became of them, and the range that was learned."""
    ordinary = OrdinaryRange()
    return [ordinary.admit(X, "here") for X in pieces], ordinary


def test_ordinary_rows_pass_as_they_are():
    heavy = np.exp(3 * np.random.default_rng(0).normal(size=(2000, 5))).astype(np.float32)
    silence = rows() * np.float32(1e-6)
    silence[-5:] = rows(5)  # a few rows are loud: no more than a thousandfold gap is extreme
    for pieces in ([rows(), rows(seed=1)], [heavy[:200], heavy[200:]], [np.zeros((9, 4), "f")] * 2):
        found, ordinary = admitted(*pieces)
        assert all(after is before for after, before in zip(found, pieces, strict=True))
        assert ordinary.n_clipped_ == 0


@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (1024, 0), (1 / 1024, 0), (1, 1000)])
def test_scale_and_offset_do_not_matter(scale, shift):
    X = rows()
    X[7, 3], X[90] = 1e15, -1e30
    (found,), ordinary = admitted(X * np.float32(scale) + np.float32(shift))
    assert ordinary.n_clipped_ == 41
    extreme = np.zeros(X.shape, bool)
    extreme[7, 3], extreme[90] = True, True
    assert np.array_equal(found == ordinary.center_, extreme | (found == ordinary.center_))
    assert (found[extreme] == np.broadcast_to(ordinary.center_, X.shape)[extreme]).all()


@pytest.mark.parametrize("size", [1, 3, 7, 50, 400])
def test_cutting_the_stream_otherwise_clips_the_same(size):
    X = rows(400)
    X[[20, 150, 399], 5] = FILL
    found, ordinary = admitted(*(X[i : i + size] for i in range(0, 400, size)))
    assert (ordinary.n_clipped_, np.abs(np.concatenate(found)).max() < 20) == (3, True)


def test_many_extreme_rows_are_refused_by_name():
    X, y = rows(), np.arange(200) % 4
    model = HCOH(16, batch_size=30, random_state=0).partial_fit(X, y)
    before, bad = model.to_bytes(), X.copy()
    bad[110:160, 2] = FILL
    with pytest.raises(ExtremeRowsError) as caught:
        model.partial_fit(bad, y)
    assert str(caught.value) == (
        "HCOH.partial_fit: rows 110, 111, 112, 113, 114, 115, 116, 117, 118, 119 and 40 more of X "
        "have values beyond 1000 times all that are ordinary here (row 110: 9.96921e+36 in feature "
        f"2, usually {model.ordinary_.center_[2]:g}), and to learn so many would wreck the model; "
        "leave out or fill in such rows, or start a new model if it is the others that are wrong."
    )
    assert caught.value.rows == [*range(110, 160)]
    assert model.to_bytes() == before
    with pytest.raises(ExtremeRowsError):  # at the very start, too
        HCOH(16, random_state=0).fit(bad, y)


def test_another_scale_is_soon_ordinary():
    quiet, loud = rows(), rows(seed=1) * np.float32(1e5)
    (_, first, second), ordinary = admitted(quiet, loud, loud)
    assert ordinary.n_clipped_ <= 20 * loud.shape[1]
    assert np.array_equal(second, loud)
    assert np.array_equal(first[20:], loud[20:])


def test_an_extreme_first_row_of_a_stream_row_by_row_is_named_when_it_is_seen():
    X, y = rows(), np.arange(200) % 4
    X[0, 9] = FILL
    model = HCOH(16, random_state=0)
    for i in range(2):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    with pytest.raises(InputError, match=r"row 0 of this stream, .*9\.96921e\+36 in feature 9"):
        model.partial_fit(X[2:3], y[2:3])
    X[0, 9], X[2, 9] = 5, FILL  # a later one is told from those before
    model = HCOH(16, random_state=0)
    for i in range(20):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert model.n_clipped_ == 1


def test_a_fill_value_in_a_query_leaves_the_rest_of_its_code(data):
    model = LSH(64, random_state=0).fit(data.X)
    holed = data.queries.copy()
    holed[:, 30] = FILL
    other = data.queries.copy()
    other[:, 30] = model.ordinary_.center_[30]
    assert np.array_equal(model.transform(holed), model.transform(other))
    whole = np.full_like(data.queries[:1], -FILL)
    assert np.array_equal(model.transform(whole), model.transform(model.ordinary_.center_[None]))


def test_a_clipped_row_can_be_forgotten():
    X, y = rows(1025), np.arange(1025) % 4
    X[-1, 4] = FILL
    model = SDOH(16, n_features=64, memory=2000, random_state=0).partial_fit(X, y)
    never = SDOH(16, n_features=64, memory=2000, random_state=0).partial_fit(X[:-1], y[:-1])
    model.forget(X[-1:], y[-1:])
    assert len(model.memory_) == 1024
    assert np.allclose(model.sums_.products_, never.sums_.products_, atol=1e-3)


def test_merged_models_know_both_ranges(data):
    X = data.X.copy()
    X[3, 4], X[400, 5] = FILL, FILL
    halves = [
        SDOH(16, n_features=64, memory=100, random_state=0).partial_fit(X[part], data.y[part])
        for part in (slice(250), slice(250, None))
    ]
    whole = SDOH.merged(*halves)
    assert whole.n_clipped_ == 2
    assert whole.ordinary_.reach_ >= max(half.ordinary_.reach_ for half in halves)
    whole.partial_fit(X[:250], data.y[:250])
    assert whole.n_clipped_ == 3


def test_models_of_before_learn_on(data):
    model = HCOH(16, random_state=0).partial_fit(data.X, data.y)
    del model.ordinary_  # as in a file of version 0.1
    model = HCOH.from_bytes(model.to_bytes())
    codes = model.transform(data.X)
    assert model.n_clipped_ == 0
    X = data.X.copy()
    X[5, 5] = FILL
    model.partial_fit(X, data.y)
    assert model.n_clipped_ == 1
    assert np.mean(np.unpackbits(codes ^ model.transform(data.X))) < 0.25


# Data that are huge as a whole -----------------------------------------------------------------


@pytest.mark.parametrize("name", [*harness.methods()])
@pytest.mark.parametrize("power", [-100, 120])
def test_huge_and_tiny_data_give_the_same_bits(data, name, power):
    hasher = harness.methods()[name]
    X, y = data.X[:200], data.y[:200]
    expected = harness.learned(hasher, X, y).transform(X)
    scaled = np.ldexp(X, power)
    assert np.array_equal(harness.learned(hasher, scaled, y).transform(scaled), expected)


@pytest.mark.parametrize("name", [*harness.methods()])
def test_the_largest_numbers_of_both_signs_are_learned_and_encoded(name):
    X = rows(128, 64) - 5
    y = (X[:, 0] > 0).astype(int)
    X = (X / np.abs(X).max() * 3.3e38).astype(np.float32)
    X[:, :2] = np.where(X[:, :2] > 0, np.float32(3.3e38), np.float32(-3.3e38))
    model = harness.methods()[name]
    model.partial_fit(X, y)
    assert len(np.unique(model.transform(X), axis=0)) >= 2
    assert np.isfinite(model.project(X)).all()


@pytest.mark.parametrize(
    "part", [RadialMap(20), AnchorMap(20), CenterScale(scale="unit"), CenterScale(), UnitRows()]
)
def test_maps_do_not_overflow(part):
    X = rows(60, 50)
    expected = part.fit(X).transform(X)
    huge = np.ldexp(X, 120)
    assert np.allclose(part.fit(huge).transform(huge), expected, atol=1e-5)
    mapped = part.fit(X).transform(np.full((1, 50), 3.4e38, np.float32))
    assert np.isfinite(mapped).all()


# Divergence ------------------------------------------------------------------------------------


class Diverging(HCOH):
    """Learns as HCOH does, and then something goes wrong in a part of it."""

    spoils = None

    def _learn(self, X, y):
        super()._learn(X, y)
        if self.n_stages_ == 5:  # the last
            self.spoils()


def spoil_part(model):
    model.parts_[0].mean_ = model.parts_[0].mean_ * np.nan


def spoil_memory(model):
    model.memory_.rows_ = model.memory_.rows_ * np.inf


def spoil_codebook(model):
    model.codebook_.targets_ = np.full_like(model.codebook_.targets_, np.inf)


def spoil_number(model):
    model.ordinary_.reach_ = np.inf


@pytest.mark.parametrize(
    ("spoils", "name"),
    [
        (spoil_part, r"parts_\[0\].mean_"),
        (spoil_memory, "memory_.rows_"),
        (spoil_codebook, "codebook_.targets_"),
        (spoil_number, "ordinary_.reach_"),
    ],
)
def test_divergence_is_found_in_every_part(monkeypatch, spoils, name):
    monkeypatch.setattr(Diverging, "spoils", spoils)
    X, y = rows(), np.arange(200) % 4
    model = Diverging(16, memory=50, random_state=0).partial_fit(X[:128], y[:128])
    before = model.to_bytes()
    with pytest.raises(InputError, match=f"left {name} without finite values"):
        model.partial_fit(X, y)
    assert model.to_bytes() == before


def test_divergence_of_sums_is_found(data):
    model = SDOH(16, n_features=64, memory=100, random_state=0).partial_fit(data.X, data.y)
    model.partial_fit(data.X, data.y)
    sums = model.sums_
    sums.total_ = np.full_like(sums.total_, np.nan)
    with pytest.raises(InputError, match=r"left sums_\.total_ without finite values"):
        model.partial_fit(data.X, data.y)
