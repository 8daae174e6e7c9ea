"""Files into a collection: checked as a whole, added batch by batch, and gone on with."""

import io
import json

import numpy as np
import pytest

from streamhash import LSH, InputError
from streamhash.files import Columns

pytest.importorskip("lance", reason="Lance is not installed")

from streamhash.live import Collection, add_from, label_from


@pytest.fixture
def items(tmp_path):
    with Collection.create(tmp_path / "items", LSH(8, random_state=0)) as collection:
        yield collection


@pytest.fixture
def lines(tmp_path):
    rows = [{"id": i, "vector": [i, 1.5], "label": i % 3} for i in range(10)]
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_file_is_added_in_batches_and_progress_is_told(items, lines):
    steps = []
    assert add_from(items, lines, batch_size=4, progress=lambda *step: steps.append(step)) == (
        10,
        10,
    )
    assert steps == [(4, None), (8, None), (10, None), (4, 10), (8, 10), (10, 10)]
    assert items.ids == [*range(10)]
    assert items.labels(range(4)) == [0, 1, 2, 0]


def test_the_same_again_goes_on_where_it_stopped(items, lines):
    first = "".join(lines.read_text().splitlines(keepends=True)[:6])
    assert add_from(items, io.StringIO(first), format="jsonl").stored == 6
    with pytest.raises(InputError, match="id 0 is there already"):
        add_from(items, lines)
    assert add_from(items, lines, existing="skip") == (10, 4)
    assert add_from(items, lines, existing="replace") == (10, 10)
    assert len(items) == 10


def test_a_file_with_a_fault_changes_nothing_and_text_keeps_what_came_before(items, lines):
    text = lines.read_text() + '{"id": 3, "vector": [1, 2]}\n'
    lines.write_text(text)
    with pytest.raises(InputError, match="id 3 came twice"):
        add_from(items, lines, batch_size=5)
    assert len(items) == 0
    with pytest.raises(InputError, match="The 10 items before are stored; mend it, and add"):
        add_from(items, io.StringIO(text), format="jsonl", batch_size=5)
    assert len(items) == 10


def test_rows_are_numbered_from_a_number(items, tmp_path):
    np.save(tmp_path / "X.npy", np.eye(5))
    with pytest.raises(InputError, match="nobody can tell which are there"):
        add_from(items, tmp_path / "X.npy", existing="skip")
    assert add_from(items, tmp_path / "X.npy", first_id=7, batch_size=2) == (5, 5)
    assert add_from(items, tmp_path / "X.npy", first_id=9, existing="skip") == (5, 2)
    assert items.ids == [*range(7, 14)]


def test_ids_of_the_file_and_numbers_do_not_go_together(items, lines):
    with pytest.raises(InputError, match="have ids of their own; leave out first_id"):
        add_from(items, lines, first_id=0)


def test_an_interruption_says_what_is_stored(items, lines, caplog):
    def interrupt(done, total):
        if (done, total) == (4, 10):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        add_from(items, lines, batch_size=4, progress=interrupt)
    assert caplog.messages == ["4 items are stored; the same again with existing=skip goes on."]
    assert add_from(items, lines, existing="skip") == (10, 6)


def test_labels_come_from_a_file(items, lines, tmp_path):
    add_from(items, lines)
    path = tmp_path / "labels.csv"
    path.write_text("name,kind\n1,cat\n2,\n")
    columns = Columns(id="name", label="kind")
    assert label_from(items, path, columns=columns, batch_size=1) == 2
    assert items.labels([1, 2, 3]) == ["cat", None, 0]
    path.write_text("id,label\n3,7\n99,cat\n")
    with pytest.raises(InputError, match="label: id 99 is not in this collection; add it first"):
        label_from(items, path, batch_size=1)
    assert items.labels([3]) == [0]
    path.write_text("id,kind\n3,7\n")
    with pytest.raises(InputError, match="has no labels; name their column"):
        label_from(items, path)
