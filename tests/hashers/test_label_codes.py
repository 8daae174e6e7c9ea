"""Codes of labels: what a method draws rows to, and what becomes of labels that never came."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from streamhash import HMOH, LSH, OSH, InputError, NotStartedError, mean_average_precision, unpack
from streamhash.hashers import METHODS

X, Y = load_digits(return_X_y=True)
NAMES = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
WITH = [name for name, method in METHODS.items() if method.has_label_codes]


@pytest.mark.parametrize("name", WITH)
def test_queries_find_their_class_among_codes_of_labels(name):
    hasher = METHODS[name](32, random_state=0).fit(X[:1200], NAMES[Y[:1200]])
    before = hasher.to_bytes()
    codes, is_known = hasher.label_codes([*NAMES[Y], "ten"])
    assert hasher.to_bytes() == before
    assert (codes.dtype, codes.shape) == (np.uint8, (len(Y) + 1, 4))
    assert is_known[:-1].all()
    assert not is_known[-1]
    assert not codes[-1].any()
    assert len(np.unique(codes[:-1], axis=0)) == 10  # one for each class, all different
    reached = mean_average_precision(hasher.transform_queries(X[1200:]), Y[1200:], codes[:-1], Y)
    assert reached > 0.75


@pytest.mark.parametrize("name", [name for name in WITH if METHODS[name].multi_label])
def test_a_single_label_in_a_matrix_is_that_label(name):
    hasher = METHODS[name](32, random_state=0).fit(X[:600], np.eye(10, dtype=int)[Y[:600]])
    matrix = np.zeros((13, 12), int)
    matrix[range(10), range(10)] = 1
    matrix[10, 11] = 1  # a column that never came
    matrix[11, [3, 11]] = 1
    codes, is_known = hasher.label_codes(matrix)
    assert is_known.tolist() == [True] * 10 + [False, True, False]
    assert np.array_equal(codes[11], codes[3])
    both, _ = hasher.label_codes(np.eye(12, dtype=int)[[3]] + np.eye(12, dtype=int)[[5]])
    agreed = unpack(codes[3:4], 32) == unpack(codes[5:6], 32)
    assert np.array_equal(unpack(both, 32)[agreed], unpack(codes[3:4], 32)[agreed])


@pytest.mark.parametrize("name", [name for name in METHODS if name not in WITH])
def test_methods_without_codes_of_labels_say_so(name):
    hasher = METHODS[name](8, random_state=0).fit(X[:100], Y[:100])
    with pytest.raises(InputError, match="label_codes: labels have no codes in this method"):
        hasher.label_codes(Y)


def test_a_model_that_has_not_begun_has_none():
    with pytest.raises(NotStartedError, match=r"OSH\.label_codes: this OSH has not seen any data"):
        OSH().label_codes(Y)


def test_several_labels_of_hmoh_have_as_many_ones_as_zeros():
    matrix = np.eye(10, dtype=np.uint8)[Y[:300]] | np.eye(10, dtype=np.uint8)[Y[1:301]]
    hasher = HMOH(16, n_anchors=None, random_state=0).fit(X[:300], matrix)
    codes, _ = hasher.label_codes(matrix[matrix.sum(axis=1) == 2])
    # Two rows of a Hadamard matrix agree in half of the bits; the others are filled up evenly.
    agreed = hasher.codebook_.targets_[:, None] + hasher.codebook_.targets_[None]
    uneven = np.abs(np.sign(agreed).sum(axis=2)) > (agreed == 0).sum(axis=2)
    assert not uneven[~np.eye(len(uneven), dtype=bool)].all()
    assert (unpack(codes, 16).sum(axis=1) == 8).mean() > 0.9


def test_the_program_that_loses_its_codewords_has_one_for_all_labels():
    hasher = OSH(16, state="released", random_state=0).fit(X[:300], Y[:300])
    codes, is_known = hasher.label_codes(Y)
    assert is_known.all()
    assert len(np.unique(codes, axis=0)) == 1


def test_queries_are_coded_as_items_unless_a_method_says_otherwise():
    hasher = LSH(16, random_state=0).fit(X)
    assert np.array_equal(hasher.transform_queries(X), hasher.transform(X))
