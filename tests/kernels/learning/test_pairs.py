"""The fused pass over pairs against its plain twin, and both against loops over pairs."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from streamhash.kernels.learning import pairs
from streamhash.kernels.learning.pairs import FORMS, PairRule, count_similar, pair_gradient
from streamhash.labels import neighbours
from streamhash.threads import using_threads


def codes_and_labels(n, k, classes, seed=0):
    random = np.random.default_rng(seed)
    B = np.tanh(random.standard_normal((n, k))).astype(np.float32)
    return B, random.integers(classes, size=n).astype(np.int32)


def rule_for(labels, form="exact", ratio=0.1, p=3.0, n=2.0):
    n_pairs = len(labels) * (len(labels) - 1)
    n_similar = count_similar(labels)
    p_similar = 1 / (n_similar + ratio * (n_pairs - n_similar))
    return PairRule(p_similar, ratio * p_similar, p, n, form)


def by_loops(B, V, y, rule):
    """The sums of the paper, pair by pair, in float64."""
    n = len(B)
    B, V = B.astype(np.float64), V.astype(np.float64)
    T, P, eta = np.ones((n, n)), np.zeros((n, n)), np.ones((n, n))
    Z = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                same = y[i] == y[j]
                eta[i, j] = rule.scale_similar if same else rule.scale_dissimilar
                P[i, j] = rule.p_similar if same else rule.p_dissimilar
                T[i, j] = 1 + ((B[i] - B[j]) ** 2).sum() / 4 / eta[i, j]
                Z += 1 / T[i, j]
    gradient, loss = np.zeros_like(V), 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                Q = 1 / T[i, j] / Z
                loss -= P[i, j] * np.log(Q)
                weight = {
                    "exact": 1 / T[i, j] / eta[i, j],
                    "released": 1 / T[i, j],
                    "printed": T[i, j],
                }[rule.form]
                gradient[i] += (P[i, j] - Q) * weight * (V[i] - V[j])
    return gradient, loss


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("gradient", [pair_gradient, pairs.plain_pair_gradient])
def test_both_twins_give_the_sums_of_the_paper(form, gradient):
    B, y = codes_and_labels(23, 7, 3)
    V = B * (1 - B * B)
    rule = rule_for(y, form)
    expected, expected_loss = by_loops(B, V, y, rule)
    got, loss = gradient(B, V, y, rule)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5 * abs(expected).max())
    assert loss == pytest.approx(expected_loss, abs=1e-5)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(2, 700),
    k=st.sampled_from([1, 8, 33, 64]),
    classes=st.integers(1, 30),
    form=st.sampled_from(FORMS),
    seed=st.integers(0, 99),
)
def test_blocks_give_what_the_plain_twin_gives(n, k, classes, form, seed):
    B, y = codes_and_labels(n, k, classes, seed)
    rule = rule_for(y, form, ratio=0.2)
    expected, expected_loss = pairs.plain_pair_gradient(B, B, y, rule)
    got, loss = pair_gradient(B, B, y, rule)
    # both are in float32, and weights that nearly cancel are added up in another order
    size = abs(expected).max() + 1 / n / n
    np.testing.assert_allclose(got, expected, atol=2e-3 * size)
    assert loss == pytest.approx(expected_loss, abs=1e-4)


def test_extreme_scales_do_not_overflow_the_loss():
    B, y = codes_and_labels(300, 64, 4)
    for scale in (1e-6, 1e6):
        rule = rule_for(y, p=scale, n=scale)
        expected, expected_loss = pairs.plain_pair_gradient(B, B, y, rule)
        got, loss = pair_gradient(B, B, y, rule)
        assert loss == pytest.approx(expected_loss, rel=1e-4)
        np.testing.assert_allclose(got, expected, atol=1e-3 * abs(expected).max())


def test_two_labels_are_similar_when_they_share_a_class():
    Y = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]], np.float32)
    expected = [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert neighbours(Y, Y).astype(int).tolist() == expected
    assert count_similar(Y) == 2


def test_a_label_matrix_of_single_labels_is_the_same_as_the_labels():
    B, y = codes_and_labels(400, 16, 5)
    one_hot = np.eye(5, dtype=np.float32)[y]
    assert count_similar(one_hot) == count_similar(y)
    rule = rule_for(y)
    for got, expected in zip(
        pair_gradient(B, B, one_hot, rule), pair_gradient(B, B, y, rule), strict=True
    ):
        assert np.array_equal(got, expected)


def test_any_number_of_threads_gives_the_same_bits():
    B, y = codes_and_labels(1500, 32, 10)
    results = []
    for threads in (1, 2, 5):
        with using_threads(threads):
            results.append(pair_gradient(B, B, y, rule_for(y)))
    for gradient, loss in results[1:]:
        assert np.array_equal(gradient, results[0][0])
        assert loss == results[0][1]


STATUS = Path("/proc/self/status")  # getrusage would count what the parent process once held


@pytest.mark.skipif(not STATUS.exists(), reason="the peak of memory is read from Linux's /proc")
@pytest.mark.slow
def test_a_stage_of_twenty_thousand_fits_in_a_gigabyte():
    program = f"""
from pathlib import Path
import numpy as np
from streamhash import SDOH
random = np.random.default_rng(0)
X, y = random.standard_normal((20_000, 64), dtype=np.float32), random.integers(10, size=20_000)
plain = {{"memory": 0, "features": None, "random_state": 0}}
SDOH(n_bits=64, batch_size=20_000, max_steps=1, **plain).fit(X, y)
(peak,) = [line for line in Path("{STATUS}").read_text().splitlines() if "VmHWM" in line]
print(peak.split()[1])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1_000_000  # kB
