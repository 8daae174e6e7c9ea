"""The switch of the evaluation: a database that is encoded, or coded from its labels."""

import logging

import numpy as np
import pytest

from streamhash import InputError, mean_average_precision
from streamhash.hashers import METHODS
from streamhash.lab import bench, plan_cell, rich_table, row_key, run_cell, summarise
from streamhash.lab.datasets import load_data
from streamhash.lab.run import prepare_split

CHOICES = {"stream": 400, "checkpoints": 3}


@pytest.fixture(scope="module")
def digits():
    return load_data("digits")


def test_a_labelled_database_is_coded_by_its_labels_alone(digits):
    row = run_cell("hcoh", digits, 16, 0, database="labelled", **CHOICES)
    plan = plan_cell("hcoh", digits, 16, 0, database="labelled", **CHOICES)
    parts, hasher = prepare_split(plan), plan.hasher()
    parts.learn(hasher, 0, 400)
    codes, is_known = hasher.label_codes(parts.database.labels)
    assert is_known.all()
    queries = hasher.transform(parts.queries[:])
    reached = mean_average_precision(queries, parts.queries.labels, codes, parts.database.labels)
    assert row["metrics"]["map"] == pytest.approx(reached)
    assert len(np.unique(codes, axis=0)) == 10
    encoded = run_cell("hcoh", digits, 16, 0, **CHOICES)
    assert row["metrics"]["map"] > encoded["metrics"]["map"]
    assert (row["database"], row["database_codes"]) == (1497, "labelled")
    assert (encoded["database"], encoded["database_codes"]) == (1497, "encoded")


def test_items_whose_labels_have_not_come_are_encoded(digits):
    plan = plan_cell("hcoh", digits, 16, 0, database="labelled", order="sorted", **CHOICES)
    parts, hasher = prepare_split(plan), plan.hasher()
    parts.learn(hasher, 0, 64)
    _, _, codes, labels = parts.encode(hasher, "labelled")
    has_come = np.isin(labels, parts.stream.labels[:64])
    assert 0 < has_come.sum() < len(labels)
    of_labels, is_known = hasher.label_codes(labels)
    assert np.array_equal(is_known, has_come)
    assert np.array_equal(codes[has_come], of_labels[has_come])
    assert np.array_equal(codes[~has_come], hasher.transform(parts.database[:][~has_come]))
    assert len(run_cell("hcoh", digits, 16, 0, database="labelled", order="sorted")["curve"]) > 2


def test_rows_commands_and_tables_name_it(digits):
    plan = plan_cell("osh", digits, 16, 0, database="labelled", **CHOICES)
    assert plan.command().endswith("--checkpoints 3 --database labelled")
    assert str(plan) == "osh (database labelled), digits, 16 bits, seed 0"
    assert "--database" not in plan_cell("osh", digits, 16, 0).command()
    rows = [run_cell("osh", digits, 16, 0, database=d, **CHOICES) for d in ("encoded", "labelled")]
    assert [line.label for line in summarise(rows)] == ["OSH", "OSH (database labelled)"]
    assert len({row_key(row) for row in rows}) == 2
    without = {name: value for name, value in rows[0].items() if name != "database_codes"}
    assert row_key(without) == row_key(rows[0])  # a row of before was encoded
    assert rich_table(summarise(rows))


def test_methods_without_codes_of_labels_are_refused_or_left_out_of_all(digits, caplog):
    with pytest.raises(InputError) as caught:
        plan_cell("sdoh", digits, 16, 0, database="labelled")
    assert str(caught.value).startswith(
        "database='labelled': labels have no codes in sdoh; pass encoded, or choose from bsodh, "
    )
    with caplog.at_level(logging.WARNING, logger="streamhash.lab"):
        rows = bench("all", digits, n_bits=8, database="labelled", stream=100, checkpoints=1)
    assert "lsh: left out, as labels have no codes in them." in caplog.text
    wanted = [name for name, method in METHODS.items() if method.has_label_codes]
    assert [row["method"] for row in rows] == wanted


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"database": "stored"}, "database='stored' is unknown; pass one of encoded, labelled."),
        (
            {"database": "labelled", "split": "unseen"},
            "database='labelled': classes that are never learned have no codes; pass encoded, or "
            "another split.",
        ),
    ],
)
def test_what_cannot_be_is_refused(digits, choices, message):
    with pytest.raises(InputError) as caught:
        plan_cell("hcoh", digits, 16, 0, **choices)
    assert str(caught.value) == message
