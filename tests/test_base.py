"""What every hasher shares: errors word for word, stages, pipelines, and the public surface."""

import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import streamhash
from quick import plain_sdoh
from streamhash import (
    LSH,
    SDOH,
    InputError,
    NotStartedError,
)
from streamhash.base import row_product


def material(n=300, d=8):
    random = np.random.default_rng(0)
    return random.standard_normal((n, d)).astype(np.float32), random.integers(3, size=n)


X, Y = material()
NAN = np.where(np.arange(8) == 3, np.nan, X[:5])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda model: model.partial_fit(X[:, :5], Y),
            "SDOH.partial_fit: X has 5 features, but SDOH is expecting 8 features as input; "
            "pass the features this model was started with, or start a new model.",
        ),
        (
            lambda model: model.partial_fit(NAN, Y[:5]),
            "SDOH.partial_fit: Input X contains NaN; leave out or fill in such rows first.",
        ),
        (
            lambda model: model.partial_fit(X, Y[:-1]),
            "SDOH.partial_fit: y has 299 labels for 300 rows of X; pass one label each.",
        ),
        (
            lambda model: model.partial_fit(X),
            "SDOH.partial_fit: requires y to be passed, but the target y is None; "
            "SDOH learns from labels: pass one a row.",
        ),
        (
            lambda model: model.partial_fit(X[:0], Y[:0]),
            "SDOH.partial_fit: Found array with 0 sample(s) (shape=(0, 8)) while a minimum of 1 "
            "is required by SDOH; pass at least one row.",
        ),
        (
            lambda model: model.partial_fit(X, [None, *Y[1:]]),
            "SDOH.partial_fit: y has 1 missing labels (None, NaN or inf), the first in row 0; "
            "leave out rows without a label.",
        ),
        (
            lambda model: model.partial_fit(X, np.stack([Y, Y], axis=1)),
            "SDOH.partial_fit: y with two dimensions must hold only 0 and 1, one column a class, "
            "but came with other values; pass single labels as a 1d array.",
        ),
        (
            lambda model: model.transform(X[:, :5]),
            "SDOH.transform: X has 5 features, but SDOH is expecting 8 features as input; "
            "pass the features this model was started with, or start a new model.",
        ),
        (
            lambda model: model.set_params(n_bits=0).partial_fit(X, Y),
            "SDOH: n_bits=0 must be a whole number from 1 to 1024.",
        ),
        (
            lambda model: model.set_params(gradient="wrong").partial_fit(X, Y),
            "SDOH: gradient='wrong' must be one of 'exact', 'released', 'printed'.",
        ),
        (
            lambda model: model.set_params(sigma=-1).partial_fit(X, Y),
            "SDOH: sigma=-1 must be a number greater than 0.",
        ),
    ],
)
def test_errors_say_what_came_and_what_to_do(call, message):
    model = plain_sdoh(8, random_state=0).fit(X, Y)
    weights = model.W_.copy()
    with pytest.raises(InputError) as caught:
        call(model)
    assert str(caught.value) == message
    assert np.array_equal(model.W_, weights)


def test_an_unstarted_model_says_what_to_call():
    with pytest.raises(NotStartedError) as caught:
        SDOH().transform(X)
    assert str(caught.value) == (
        "SDOH.transform: this SDOH has not seen any data; call partial_fit or fit first."
    )


def test_single_label_methods_refuse_label_matrices():
    class Single(SDOH):
        multi_label = False

    with pytest.raises(InputError, match="Single is defined for one label a row"):
        Single(n_bits=8).fit(X, np.eye(3)[Y])


def test_labels_of_several_types_keep_apart():
    one_and_text = [1 if label == 0 else "1" for label in Y]
    numbers = (Y == 0).astype(int)
    first, second = (
        plain_sdoh(8, random_state=0).fit(X, labels) for labels in (one_and_text, numbers)
    )
    assert np.array_equal(first.W_, second.W_)


def test_labels_that_cannot_be_compared_are_refused():
    pandas = pytest.importorskip("pandas", reason="data frames are optional")
    with pytest.raises(InputError, match="y has 1 missing labels"):
        SDOH(8).fit(X, pandas.Series([pandas.NA, *Y[1:]], dtype="Int64"))
    unhashable = np.fromiter(([label] for label in Y), object, len(Y))
    with pytest.raises(InputError, match="labels of a kind that cannot be compared"):
        SDOH(8).fit(X, unhashable)


def test_long_pieces_are_cut_and_short_ones_are_stages():
    model = SDOH(n_bits=8, batch_size=64).partial_fit(X, Y).partial_fit(X[:10], Y[:10])
    assert (model.n_samples_seen_, model.n_stages_) == (310, 6)


@pytest.mark.parametrize("n_bits", [1, 7, 8, 9, 1024])
def test_any_code_length_from_1_to_1024(n_bits):
    codes = plain_sdoh(n_bits, random_state=0).fit(X, Y).transform(X)
    assert codes.shape == (300, (n_bits + 7) // 8)


def test_a_hasher_ends_a_scikit_learn_pipeline_and_sets_its_output():
    pandas = pytest.importorskip("pandas", reason="data frames are optional")
    pipeline = make_pipeline(StandardScaler(), SDOH(n_bits=16, random_state=0))
    codes = pipeline.set_output(transform="pandas").fit(X, Y).transform(X)
    assert isinstance(codes, pandas.DataFrame)
    assert codes.columns.tolist() == ["sdoh0", "sdoh1"]


def test_the_random_state_may_be_any_source_of_seeds():
    for source in (7, np.int64(7), np.random.RandomState(7), np.random.default_rng(7)):
        assert np.isfinite(LSH(8, random_state=source).fit(X).W_).all()
    first, second = (LSH(8, random_state=np.random.RandomState(7)).fit(X).W_ for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(LSH(8).fit(X).W_, LSH(8).fit(X).W_)


def test_the_public_surface_is_what_all_says():
    for name in streamhash.__all__:
        assert getattr(streamhash, name) is not None
    assert set(streamhash.__all__) <= set(dir(streamhash))
    assert {"SDOH", "LSH", "HammingIndex", "mean_average_precision"} <= set(streamhash.__all__)
    with pytest.raises(AttributeError, match="No streamhash attribute nonsense"):
        _ = streamhash.nonsense


def test_a_stream_of_single_rows_is_told_to_come_in_pieces(caplog):
    model = plain_sdoh(8, random_state=0)
    for row in range(3):
        model.partial_fit(X[row : row + 1], Y[row : row + 1])
    assert [record.getMessage() for record in caplog.records] == [
        "SDOH: the stream begins with a single row, and a row alone has no pairs to learn from; "
        "hand over pieces of about 200 rows."
    ]


def test_importing_is_quick_and_loads_no_heavy_library():
    program = (
        "import sys, streamhash;"
        "print([name for name in ('sklearn', 'numba', 'scipy', 'torch') if name in sys.modules])"
    )
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
    assert time.perf_counter() - began < 5  # a start of Python on a busy machine


@pytest.mark.parametrize(("n_bits", "d"), [(16, 784), (64, 128), (8, 600), (100, 3584), (1, 500)])
def test_a_row_of_a_product_is_the_same_in_any_company(n_bits, d):
    random = np.random.default_rng(0)
    rows, W = (random.standard_normal(shape, np.float32) for shape in ((300, d), (d, n_bits)))
    whole = row_product(rows, W)
    assert np.allclose(whole, rows.astype(float) @ W.astype(float), atol=1e-3)
    for n in (1, 2, 3, 5, 64, 131):
        parts = [row_product(rows[i : i + n], W) for i in range(0, len(rows), n)]
        assert np.array_equal(np.concatenate(parts), whole)
    assert row_product(rows[:0], W).shape == (0, n_bits)


@pytest.mark.parametrize("settings", [{}, {"memory": 0, "features": None}, {"n_anchors": 20}])
def test_projections_of_a_row_are_the_same_in_any_company(settings):
    model = SDOH(16, random_state=0, **settings).fit(X, Y)
    whole = model.project(X[:200])
    for n in (1, 3, 64, 77):
        parts = [model.project(X[i : min(i + n, 200)]) for i in range(0, 200, n)]
        assert np.array_equal(np.concatenate(parts), whole)
    assert np.array_equal(model.encode_rows(X[:5].astype(np.float32)), model.transform(X[:5]))


def test_rows_that_need_no_conversion_are_checked_all_the_same():
    model = plain_sdoh(8).fit(X, Y)
    wide = np.full((2, 8), 3e38, np.float32)  # finite, though their sum is not
    for rows in (X[:1], X[:5], wide):
        as_lists = model.transform(rows.tolist())
        assert np.array_equal(model.transform(rows), as_lists)
        assert np.array_equal(model.transform(np.asfortranarray(rows)), as_lists)
    for wrong, what in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        row = X[:1].copy()
        row[0, 3] = wrong
        with pytest.raises(InputError, match=what):
            model.transform(row)
    with pytest.raises(InputError, match="7 features"):
        model.transform(X[:1, :7].copy())
