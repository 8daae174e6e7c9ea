"""Matrices that would crash a compiled loop, wreck a model or take all memory: refused in words."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from fault_files import BOUNDS
from streamhash import (
    BSODH,
    FROSH,
    HMOH,
    ITQ,
    LSH,
    SDOH,
    Collection,
    InputError,
    MIHash,
    OnlineHasher,
    learned,
)
from streamhash.hashers import METHODS
from streamhash.labels import check_labels

random = np.random.default_rng(0)
X = random.standard_normal((60, 12)).astype(np.float32)
Y = random.integers(4, size=60)
LARGEST = np.float32(3.4e38)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy, that something overflows
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("normalize", [True, False])
def test_the_largest_numbers_are_learned_or_refused(name, normalize):
    options = {"normalize": normalize} if name != "lsh" else {}
    options |= {"memory": 0, "features": None} if name == "sdoh" else {}
    huge = np.where(X > 0, LARGEST, -LARGEST)
    for first, second in ((huge, huge), (X, huge), (huge, X)):
        model = METHODS[name](n_bits=16, random_state=0, **options)
        try:
            model.partial_fit(first, Y).partial_fit(second, Y)
        except InputError:
            continue
        assert np.isfinite(model.project(X)).all()


@pytest.mark.slow
def test_mihash_stays_within_its_histograms():
    """With kernels that look at every index: MIHash wrote beside an array (as did 0.1.0)."""
    program = f"""
import numpy as np
from streamhash import InputError, MIHash
from streamhash.kernels.learning.information import information_steps
Z, V = np.full((4, 8), np.nan, np.float32), np.full((3, 8), np.nan, np.float32)
same = np.tile(np.array([True, False]), (3, 4))[:, :7]
G, information = information_steps(
    Z, V, np.full((3, 7), np.inf, np.float32), same, np.array([-1, -1, -1], np.int32), 4,
    np.ones(3, np.float32), sharpness=20.0, n_bins=8, exact=True,
)
X = np.random.default_rng(0).choice([{float(LARGEST)!r}, {-float(LARGEST)!r}], size=(100, 6))
try:
    MIHash(8, normalize=False, random_state=0).fit(X.astype(np.float32), np.arange(100) % 3)
except InputError:
    pass
"""

    done = subprocess.run(
        [sys.executable, "-c", program], env=BOUNDS, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_linear_algebra_that_fails_is_an_input_error(monkeypatch):
    model = FROSH(16, random_state=0).fit(X)
    before = model.to_bytes()

    def does_not_converge(*_):
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    monkeypatch.setattr(np.linalg, "eigh", does_not_converge)
    with pytest.raises(InputError, match=r"FROSH\.partial_fit: this piece cannot be learned"):
        model.partial_fit(X)
    assert model.to_bytes() == before


@pytest.mark.parametrize(
    ("hasher", "largest"),
    [
        (BSODH(16), "feature_gram_"),
        (MIHash(16, reservoir_size=10**7), "reservoir_"),
        (ITQ(16, sample_size=10**7), "sample_"),
        (HMOH(16, n_anchors=10**7), "RadialMap.anchors_"),
        (SDOH(16, memory=0, n_anchors=10**7, features=None), "AnchorMap.anchors_"),
    ],
)
def test_a_state_that_does_not_fit_into_memory_is_refused_before_it_is_taken(
    hasher, largest, monkeypatch
):
    monkeypatch.setattr(learned, "free_memory", lambda: 8 << 30)
    wide = np.zeros((2, 100_000), np.float32)
    with pytest.raises(InputError) as caught:
        hasher.partial_fit(wide, np.array([0, 1]))
    message = str(caught.value)
    assert message.startswith(f"{type(hasher).__name__}.partial_fit: learning rows of 100000")
    assert f"of it for {largest}, and 8.0 GiB are free" in message
    if isinstance(hasher, BSODH):
        assert "74.5 GiB of it" in message  # two arrays of 37.3 GiB, the old one and the new one


def test_free_memory_is_known_here_and_plausible():
    free = learned.free_memory()
    assert free is None or 1 << 20 < free < 1 << 50


def test_memory_that_runs_out_is_an_input_error(monkeypatch):
    def full(*_):
        raise MemoryError("Unable to allocate 7 TiB")

    model = LSH(16, random_state=0).fit(X)
    monkeypatch.setattr(LSH, "_learn", full)
    with pytest.raises(InputError, match=r"too little memory to learn this piece \(Unable to"):
        model.partial_fit(X)


# ------------------------------------------------------------------------------ sparse and complex


def csr(places=None, starts=None):
    matrix = sparse.csr_array(np.where(X > 0, X, 0))
    if places is not None:
        matrix.indices[3] = places
    if starts is not None:
        matrix.indptr[3] = starts
    return matrix


def other(kind, change):
    matrix = getattr(sparse, f"{kind}_array")(np.where(X > 0, X, 0))
    change(matrix)
    return matrix


def set_row(matrix):
    matrix.rows[0], matrix.data[0] = [10**8], [1.0]


BROKEN = {
    "csr, a column too large": lambda: csr(places=10**8),
    "csr, a negative column": lambda: csr(places=-1),
    "csr, a start too large": lambda: csr(starts=10**8),
    "csr, starts that fall": lambda: csr(starts=0),
    "csc": lambda: other("csc", lambda m: m.indices.__setitem__(3, 10**8)),
    "bsr": lambda: other("bsr", lambda m: m.indices.__setitem__(3, 10**8)),
    "coo, a column": lambda: other("coo", lambda m: m.coords[1].__setitem__(3, 12)),
    "coo, a row": lambda: other("coo", lambda m: m.coords[0].__setitem__(3, -1)),
    "lil": lambda: other("lil", set_row),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_sparse_matrix_with_entries_out_of_its_shape_is_refused(name):
    model = LSH(16, random_state=0).fit(X)
    for call in (LSH(16).fit, model.partial_fit, model.transform):
        with pytest.raises(InputError, match=r"X is a sparse matrix \(\w+\) with entries out of"):
            call(BROKEN[name]())
    with pytest.raises(InputError, match="y is a sparse matrix"):
        check_labels(BROKEN[name](), 60, place="place")


def test_a_collection_refuses_them_too(tmp_path):
    with Collection.create(tmp_path / "items", LSH(16, random_state=0)) as items:
        with pytest.raises(InputError, match="X is a sparse matrix"):
            items.add(range(60), BROKEN["coo, a column"]())
        with pytest.raises(InputError, match="complex numbers"):
            items.add(range(60), X + 1j * X)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
def test_whole_sparse_matrices_of_every_kind_are_learned(kind):
    matrix = getattr(sparse, f"{kind}_array")(np.where(X > 0, X, 0))
    expected = LSH(16, random_state=0).fit(matrix.toarray()).transform(matrix.toarray())
    assert np.array_equal(LSH(16, random_state=0).fit(matrix).transform(matrix), expected)


@pytest.mark.parametrize(
    "make", [lambda C: C, lambda C: C.tolist(), sparse.csr_array, sparse.coo_array]
)
def test_complex_numbers_are_refused(make):
    started: OnlineHasher = LSH(16, random_state=0).fit(X)
    for call in (LSH(16).fit, started.partial_fit, started.transform):
        with pytest.raises(InputError, match="Complex data not supported"):
            call(make(X + 1j * X))


def test_whole_numbers_beyond_any_float_are_refused(tmp_path):
    rows = [[10**400, *row[1:]] for row in X[:2].tolist()]
    started: OnlineHasher = LSH(16, random_state=0).fit(X)
    for call in (LSH(16).fit, started.partial_fit, started.transform):
        with pytest.raises(InputError, match="too large to convert to float; pass a 2-d array"):
            call(rows)
    with Collection.create(tmp_path / "items", LSH(16, random_state=0)) as items:
        with pytest.raises(InputError, match="X is not an array of numbers"):
            items.add(None, rows)
        assert len(items) == 0
