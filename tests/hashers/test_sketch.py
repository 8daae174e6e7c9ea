"""The sketches: against plain loops, their bounds, exact centring, and the transform's algebra."""

import numpy as np
import pytest
from scipy.linalg import hadamard as sylvester

from streamhash.base import new_generator
from streamhash.hashers._sketch import (
    FastFrequentDirections,
    FrequentDirections,
    centred,
    principal_directions,
    random_rotation,
)
from streamhash.kernels.learning.hadamard import (
    fold_block,
    hadamard,
    hadamard_signs,
    plain_fold_block,
)
from streamhash.parameters import InputError


def rows(n, d, seed=0, rank=None):
    random = np.random.default_rng(seed)
    A = random.standard_normal((n, d))
    if rank is not None:
        A = random.standard_normal((n, rank)) @ random.standard_normal((rank, d))
    return (A * np.geomspace(1, 0.1, d)).astype(np.float32)


def plain_frequent_directions(A, size):
    """Frequent directions as the paper has them: row by row with a full SVD, in float64."""
    S = np.zeros((0, A.shape[1]))
    for row in A.astype(np.float64):
        if len(S) == size:
            _, sigma, Vt = np.linalg.svd(S, full_matrices=False)
            squares = np.zeros(size)
            squares[: len(sigma)] = sigma**2
            delta = squares[size // 2]  # the (l/2 + 1)-th
            kept = np.sqrt(np.maximum(squares[: size // 2] - delta, 0))
            S = np.zeros((size // 2, A.shape[1]))
            n = min(len(kept), len(Vt))
            S[:n] = kept[:n, None] * Vt[:n]
        S = np.vstack([S, row])
    return S


# d below, at and above the sketch's size; sketches that overflow often, once and never
@pytest.mark.parametrize(("n", "d", "size"), [(97, 30, 8), (61, 8, 10), (40, 12, 30), (25, 9, 30)])
def test_frequent_directions_in_blocks_is_the_plain_loop(n, d, size):
    A = rows(n, d)
    expected = plain_frequent_directions(A, size)
    whole, cut = FrequentDirections(size), FrequentDirections(size)
    whole.add_rows(A)
    for start in range(0, n, 7):
        cut.add_rows(A[start : start + 7])
    for sketch in (whole, cut):
        S = sketch.rows().astype(np.float64)
        assert sketch.n_filled_ == len(S) == len(expected)
        np.testing.assert_allclose(S.T @ S, expected.T @ expected, atol=2e-5 * (A**2).sum())
    np.testing.assert_array_equal(whole.S_, cut.S_)
    assert not whole.S_[whole.n_filled_ :].any()


def test_a_shrink_worked_by_hand():
    # Rows 3e₁, 2e₂ fill l = 2: squares 9 and 4, δ = 4 (the second); √5 e₁ is left, and e₂ goes in.
    sketch = FrequentDirections(2)
    sketch.add_rows(np.array([[3.0, 0], [0, 2]], np.float32))
    assert sketch.n_filled_ == 2
    sketch.add_rows(np.array([[0.0, 1]], np.float32))
    np.testing.assert_allclose(np.abs(sketch.rows()), [[5**0.5, 0], [0, 1]], atol=1e-6)


def test_the_sketch_never_overshoots_and_keeps_its_bound():
    A = rows(500, 40)
    sketch = FrequentDirections(20)
    sketch.add_rows(A)
    S, A = sketch.rows().astype(np.float64), A.astype(np.float64)
    differences = np.linalg.eigvalsh(A.T @ A - S.T @ S)
    assert differences.min() > -1e-5 * (A**2).sum()
    assert differences.max() < (A**2).sum() / 10  # ‖A‖² / (l/2)
    assert differences.max() > 0.001 * (A**2).sum()  # this stream does not fit the sketch


def test_a_sketch_of_twice_the_width_loses_nothing():
    A = rows(500, 12)
    sketch = FrequentDirections(24)
    sketch.add_rows(A)
    np.testing.assert_allclose(sketch.S_.T @ sketch.S_, A.T @ A, atol=1e-5 * (A**2).sum())


@pytest.mark.parametrize("cuts", [[200], [1, 199], [50, 1, 1, 100, 48], [10] * 20])
def test_centring_is_exact_however_the_stream_is_cut(cuts):
    A = rows(200, 6) + np.arange(6, dtype=np.float32)
    sketch, mean, start = FrequentDirections(12), np.zeros(6), 0
    for n in cuts:
        F, mean = centred(A[start : start + n], mean, start)
        sketch.add_rows(F)
        start += n
    about = A - A.mean(axis=0, dtype=np.float64)
    np.testing.assert_allclose(mean, A.mean(axis=0, dtype=np.float64), atol=1e-12)
    scatter = about.T @ about
    np.testing.assert_allclose(sketch.S_.T @ sketch.S_, scatter, atol=2e-6 * np.trace(scatter))


def test_a_compensation_row_worked_by_hand():
    # One instance at 0, then two at 2 and 4: mean 2; c = √(1·2/3) (3 − 0), scatter 4 + 0 + 4.
    F, mean = centred(np.array([[2.0], [4.0]], np.float32), np.zeros(1), 1)
    np.testing.assert_allclose(F[:, 0], [-1, 1, 6**0.5], rtol=1e-6)
    assert mean == pytest.approx(2)
    assert (F**2).sum() == pytest.approx(8)
    nothing, _ = centred(np.ones((1, 3), np.float32), np.zeros(3), 0)
    assert nothing.shape == (0, 3)  # a single instance has no scatter


@pytest.mark.parametrize("b", [1, 2, 8, 64])
def test_hadamard_transforms(b):
    X = rows(b, 5)
    np.testing.assert_allclose(hadamard(X), sylvester(b) @ X, rtol=1e-4, atol=1e-5)
    for column in {0, b // 2, b - 1}:
        np.testing.assert_array_equal(hadamard_signs(np.arange(b), column), sylvester(b)[:, column])


@pytest.mark.parametrize(("n", "b", "d"), [(8, 8, 5), (5, 8, 300), (64, 64, 512), (1, 1, 3)])
def test_the_compiled_block_is_its_plain_twin(n, b, d):
    random = np.random.default_rng(1)
    F = rows(n, d)
    flips = np.where(random.random(b) < 0.5, -1, 1).astype(np.float32)
    picked = random.integers(b, size=11)
    weights = random.standard_normal(11).astype(np.float32)
    start = rows(11, d, seed=2)
    compiled, plain = start.copy(), start.copy()
    fold_block(F, flips, picked, weights, compiled)
    plain_fold_block(F, flips, picked, weights, plain)
    np.testing.assert_allclose(compiled, plain, rtol=1e-5, atol=1e-5)
    direct = start + weights[:, None] * (sylvester(b)[:, :n] @ (flips[:n, None] * F))[picked]
    np.testing.assert_allclose(plain, direct, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n_in_chunk", [1, 6, 16, 50, 64])  # 64: the chunk is full
def test_the_transform_in_blocks_is_the_direct_product(n_in_chunk):
    d, size, m = 40, 12, 64
    F = rows(n_in_chunk, d)
    sketch = FastFrequentDirections(size, random_state=0)
    sketch._begin(d)
    flips, picked = sketch.flips_, sketch.picked_
    assert len(flips) == m
    assert len(sketch.waiting_) == 4  # the largest power of two up to l/2
    assert len(set(picked.tolist())) == size // 2
    for start in range(0, n_in_chunk, 11):
        sketch.add_rows(F[start : start + 11])
    filled = np.zeros((m, d))
    filled[:n_in_chunk] = F
    H = sylvester(m) / np.sqrt(m)
    Y = np.sqrt(m / (size // 2)) * (H[picked] @ (flips[:, None] * filled))
    S = sketch.rows().astype(np.float64)
    np.testing.assert_allclose(S.T @ S, Y.T @ Y, atol=1e-5 * (F**2).sum())
    assert np.array_equal(flips, sketch.flips_) == (n_in_chunk < m)  # drawn anew with the chunk


def test_the_transform_is_unbiased():
    d, n = 6, 20
    F = rows(n, d).astype(np.float64)
    total = np.zeros((d, d))
    for seed in range(400):
        sketch = FastFrequentDirections(16, chunk=32, random_state=seed)
        sketch.add_rows(F.astype(np.float32))
        S = sketch.rows().astype(np.float64)
        total += S.T @ S / 400
    # One draw is off by about ‖F‖²/√8; 400 of them by a twentieth of that.
    assert np.linalg.norm(total - F.T @ F) < 0.05 * (F**2).sum()


@pytest.mark.parametrize("n_in_chunk", [1, 5, 50, 64])
def test_guides_gather_their_part_exactly_and_leave_the_rest_to_the_mixture(n_in_chunk):
    d, size, q, m = 40, 12, 3, 64
    first, F = rows(size, d, seed=1), rows(n_in_chunk, d)
    sketch = FastFrequentDirections(size, guides=q, random_state=0)
    sketch.add_rows(first)
    flips, picked = sketch.flips_, sketch.picked_
    before = sketch.rows().astype(np.float64)[: size // 2]
    plain = FrequentDirections(size)
    plain.add_rows(np.vstack([first, first[:1]]))  # the first rows go in unmixed
    np.testing.assert_allclose(before.T @ before, plain.S_[:6].T @ plain.S_[:6], atol=1e-4)
    for start in range(0, n_in_chunk, 11):
        sketch.add_rows(F[start : start + 11])
    F = np.vstack([F, np.zeros((m - n_in_chunk, d))])
    C = F @ before[:q].T
    exact = C @ np.linalg.lstsq(C, F, rcond=1e-8)[0]  # P F
    phi = (sylvester(m)[picked] * flips) / np.sqrt(len(picked))
    Y = phi @ (F - exact)
    expected = before.T @ before + exact.T @ exact + Y.T @ Y
    S = sketch.rows().astype(np.float64)
    if n_in_chunk == m:  # shrunk by the (l/2 + 1)-th squared singular value
        squares, V = np.linalg.eigh(expected)
        squares = np.maximum(squares - squares[-size // 2 - 1], 0)
        expected = V * squares @ V.T
    np.testing.assert_allclose(S.T @ S, expected, atol=1e-4 * np.trace(expected))


def test_guides_keep_strong_directions_sharp():
    A = rows(3000, 60) + 5 * rows(3000, 60, seed=1, rank=4)
    exact = A.astype(np.float64).T @ A
    errors = []
    for guides in (0, 10):
        sketch = FastFrequentDirections(40, guides=guides, random_state=0)
        sketch.add_rows(A)
        S = sketch.rows().astype(np.float64)
        errors.append(np.linalg.norm(exact - S.T @ S, 2))
    assert errors[1] < 0.2 * errors[0]


@pytest.mark.parametrize("guides", [0, 3])
def test_how_rows_come_does_not_matter_to_the_fast_sketch(guides):
    A = rows(300, 20)
    whole, cut = (FastFrequentDirections(12, guides=guides, random_state=3) for _ in range(2))
    whole.add_rows(A)
    for start in range(0, 300, 13):
        cut.add_rows(A[start : start + 13])
    np.testing.assert_array_equal(whole.S_, cut.S_)
    np.testing.assert_array_equal(whole.waiting_, cut.waiting_)
    np.testing.assert_array_equal(whole.M_, cut.M_)
    assert whole.n_in_chunk_ == cut.n_in_chunk_ == (300 - 12 * (guides > 0)) % 32


def test_the_fast_sketch_follows_a_stream_of_low_rank():
    A = rows(4000, 60, rank=4)
    sketch = FastFrequentDirections(40, random_state=0)
    sketch.add_rows(A)
    S, A = sketch.rows().astype(np.float64), A.astype(np.float64)
    error = np.linalg.norm(A.T @ A - S.T @ S, 2) / (A**2).sum()
    assert error < 0.1
    V = principal_directions(sketch.rows(), 4)
    assert np.linalg.norm(A @ V) ** 2 > 0.999 * (A**2).sum()


@pytest.mark.parametrize("chunk", [1, 16, 128])
def test_a_chunk_is_at_least_half_the_sketch(chunk):
    sketch = FastFrequentDirections(40, chunk=chunk, random_state=0)
    sketch.add_rows(rows(5, 7))
    assert len(sketch.flips_) == max(chunk, 32)


def test_principal_directions():
    A = rows(50, 8, rank=3)
    V = principal_directions(A, 5)
    assert V.shape == (8, 3)  # no more than the rank
    np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-6)
    expected = np.linalg.svd(A.astype(np.float64))[2][:3].T
    np.testing.assert_allclose(np.abs(V), np.abs(expected), atol=1e-5)
    assert (V[np.abs(V).argmax(axis=0), range(3)] > 0).all()
    np.testing.assert_array_equal(principal_directions(-A, 5), V)
    assert principal_directions(np.zeros((4, 8), np.float32), 5).shape == (8, 0)


def test_rotations_are_orthogonal_and_seeded():
    R = random_rotation(7, new_generator(1))
    np.testing.assert_allclose(R @ R.T, np.eye(7), atol=1e-12)
    np.testing.assert_array_equal(R, random_rotation(7, new_generator(1)))


@pytest.mark.parametrize("size", [0, 3, 2.0, True])
def test_sizes_are_even(size):
    with pytest.raises(InputError, match=r"size=.* must be an even number from 2 to 1048576"):
        FrequentDirections(size).check_parameters()
