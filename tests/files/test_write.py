"""Tables that are written are read again as they were."""

import numpy as np
import pytest

from streamhash import InputError
from streamhash.files import read_items, read_table, write_table


@pytest.mark.parametrize("ending", ["jsonl", "csv", "npz"])
@pytest.mark.parametrize("labels", [[3, 1, 2], ["cat", "a, b", 'say "so"']])
def test_what_is_written_is_read_again(tmp_path, ending, labels):
    path = tmp_path / f"items.{ending}"
    X = np.float32([[0.1, 2], [3, -4e-9], [5, 6]])
    write_table(path, X, np.array(labels))
    got, y = read_table(path)
    np.testing.assert_array_equal(got, X)
    assert y.tolist() == labels
    (piece,) = read_items(path)
    assert piece.ids == [0, 1, 2]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"pass a name that ends in \.jsonl, \.csv or \.npz"):
        write_table(tmp_path / "items.txt", np.eye(2), np.arange(2))


def test_several_labels_a_row_go_into_npz_only(tmp_path):
    X, Y = np.float32([[1, 2], [3, 4]]), np.uint8([[1, 0, 1], [0, 1, 0]])
    write_table(tmp_path / "items.npz", X, Y)
    np.testing.assert_array_equal(read_table(tmp_path / "items.npz")[1], Y)
    with pytest.raises(InputError, match=r"several labels a row; pass a name that ends in \.npz"):
        write_table(tmp_path / "items.csv", X, Y)
