"""``check_hasher`` tells every failure in words: wanted, done, came, and how to mend it."""

import numpy as np
import pytest

from streamhash import LSH, OnlineHasher
from streamhash.checks import ALL_CHECKS, MEND, CheckError, FailedChecksError, check_hasher
from streamhash.learned import Array, Table


class Careless(OnlineHasher):
    """Breaks several rules at once: it writes into its rows, and encodes by their mean."""

    learns = Table(W_=Array(np.float32, "D", "k"))

    def _start(self, X, y):  # noqa: ARG002
        self.W_ = np.ones((X.shape[1], self.n_bits), np.float32)

    def _learn(self, X, y):  # noqa: ARG002
        self.W_ += np.float32(0.001) * X.T @ np.resize(X, (len(X), self.n_bits))

    def _project(self, X):
        if len(X) == 0:
            return np.zeros((0, self.n_bits), np.float32)
        return (X - X.mean(axis=0)) @ self.W_


class Stumbling(LSH):
    """Fails by an error of its own."""

    def _project(self, X):
        return X @ self.no_such_attribute


def failures(hasher):
    with pytest.raises(FailedChecksError) as caught:
        check_hasher(hasher)
    return {each.check: each for each in caught.value.failures}, str(caught.value)


def test_all_failures_come_in_one_report():
    found, text = failures(Careless(n_bits=8, random_state=0))
    assert {"encoding_is_row_wise", "learned_arrays_are_replaced"} <= set(found)
    assert text.startswith(f"Careless(n_bits=8, random_state=0) fails {len(found)} of ")
    for each in found.values():
        assert all(each), f"{each.check} leaves something unsaid"
        assert str(each) in text
    row_wise = found["encoding_is_row_wise"]
    assert row_wise.wanted.startswith("A row's code does not depend on what is encoded beside it")
    assert row_wise.done.startswith("600 rows were encoded, and X[")
    assert row_wise.came.startswith("other codes in 1 of 1 rows")
    assert row_wise.mend.startswith("let _project use nothing of the other rows")
    assert "read-only" in found["learned_arrays_are_replaced"].done


def test_an_error_of_the_method_itself_is_told_with_its_line():
    found, _ = failures(Stumbling(n_bits=8, random_state=0))
    came = found["encoding_is_row_wise"].came
    assert "AttributeError: 'Stumbling' object has no attribute 'no_such_attribute'" in came
    assert "in _project" in came
    assert "test_check_hasher.py, line" in came


def test_a_hasher_that_keeps_them_all_is_passed_without_a_word(capsys):
    assert check_hasher(LSH(n_bits=12, random_state=0)) is None
    assert capsys.readouterr().out == ""


def test_an_exempted_check_is_not_in_the_report():
    exempt = dict.fromkeys(failures(Careless(n_bits=8, random_state=0))[0], "known")
    check_hasher(Careless(n_bits=8, random_state=0), exempt=exempt)


@pytest.mark.parametrize("name", ALL_CHECKS)
def test_every_check_says_how_to_mend_it(name):
    wanted, _, mend = (ALL_CHECKS[name].__doc__ or "").partition(MEND)
    assert wanted.strip()
    assert mend.strip().endswith(".")


def test_a_check_alone_says_what_was_done_and_what_came():
    with pytest.raises(CheckError, match=r"600 rows were encoded, and X.*: other codes in 1 of 1"):
        ALL_CHECKS["encoding_is_row_wise"](Careless(n_bits=8, random_state=0))
