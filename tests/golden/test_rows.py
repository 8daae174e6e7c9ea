"""Rows of 0.1.0, made anew: on the same kind of machine every measured value is the same."""

import json

import pytest

from data import need_data
from golden.make import HERE, machine
from streamhash.lab import run_cell, to_json
from streamhash.lab.datasets import load_data

ROWS = [json.loads(line) for line in (HERE / "rows.jsonl").read_text().splitlines()]
CHOICES = (
    *("settings", "changes", "stream", "queries_per_class", "checkpoints", "split"),
    "curve_metric",
)
MADE_ON = "znver3, BLAS for Haswell"
MEASURED = ("database", "queries", "instances", "metrics", "curve", "distances")


def marked(row):
    name = f"{row['method']}-{row['settings']}-{row['data']}"
    return pytest.param(row, id=name, marks=[pytest.mark.slow] if row["data"] == "mnist" else [])


@pytest.mark.parametrize("row", [marked(row) for row in ROWS])
def test_a_row_of_the_last_version_comes_out_the_same(row):
    if machine() != MADE_ON:
        pytest.skip(f"no values are kept for this kind of machine: {machine()}")
    need_data(row["data"])
    choices = {name: row[name] for name in CHOICES}
    again = run_cell(row["method"], load_data(row["data"]), row["n_bits"], row["seed"], **choices)
    again = json.loads(to_json(again))
    assert {name: again[name] for name in MEASURED} == {name: row[name] for name in MEASURED}
