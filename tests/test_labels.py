"""Labels: of learning and evaluation, where each row has one, and of stored items."""

import numpy as np
import pytest

from streamhash import InputError
from streamhash.labels import check_item_labels, check_labels


def test_items_may_be_without_labels():
    assert check_item_labels(None, 2, place="add") == [None, None]
    mixed = [1, "a", None, float("nan"), 2.0, np.int64(3), np.float32("nan"), np.str_("b")]
    assert check_item_labels(mixed, 8, place="add") == [1, "a", None, None, 2, 3, None, "b"]
    labels = check_item_labels(np.array([1.0, np.nan]), 2, place="add")
    assert labels == [1, None]
    assert type(labels[0]) is int


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (7, "add: y=7 is not a list of labels; pass one label an item."),
        ("ab", "add: y='ab' is not a list of labels; pass one label an item."),
        ([1], "add: 2 items and 1 labels came; pass one an item."),
        ([1, True], "add: y holds True; pass one whole number or one string an item, or a list of "
         "them, None for no label."),
        ([1, 0.5], "add: y holds 0.5; pass one whole number or one string an item, or a list of "
         "them, None for no label."),
        ([1, ["a", None]], "add: y holds ['a', None], with None among its labels; leave it out."),
        ([1, ["a", ["b"]]], "add: y holds ['b']; pass one whole number or one string an item, or a "
         "list of them, None for no label."),
        ([[0, 1, 0], [1, 0, 0]], "add: y holds [0, 1, 0], which looks like a row of a 0/1 matrix; "
         "pass a matrix as an array, and lists of the labels themselves."),
        ([1, range(1001)], "add: y holds range(0, 1001); pass one whole number or one string an "
         "item, or a list of them, None for no label."),
        ([1, [*range(1001)]], "add: y holds 1001 labels of an item; pass at most 1000."),
        (np.array([[0, 2], [1, 0]]), "add: y with two dimensions must hold only 0 and 1, one "
         "column a class, but came with other values; pass single labels as a 1d array."),
    ],
)  # fmt: skip
def test_other_labels_of_items_are_refused(y, message):
    with pytest.raises(InputError) as caught:
        check_item_labels(y, 2, place="add")
    assert str(caught.value) == message


def test_every_row_that_is_learned_has_a_label():
    with pytest.raises(InputError, match=r"fit: y has 1 missing labels .*, the first in row 1"):
        check_labels(np.array([1.0, np.nan]), 2, place="fit")
    with pytest.raises(InputError, match="evaluate: labels has 1 labels for 2 codes"):
        check_labels(["a"], 2, place="evaluate", name="labels", rows="codes")
