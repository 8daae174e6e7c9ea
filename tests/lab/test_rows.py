"""Rows on disk, and what tables make of them."""

import io
import json
import logging

import pytest
from rich.console import Console

from data import need_data
from streamhash.errors import FileError
from streamhash.lab import (
    append_row,
    latest,
    markdown_table,
    plan_cell,
    read_rows,
    rich_table,
    run_cell,
    summarise,
    to_json,
)
from streamhash.lab.rows import METRICS, row_key


@pytest.fixture(scope="module")
def rows():
    return [
        run_cell(method, "digits", bits, seed, stream=200, checkpoints=2)
        for bits in (8, 16)
        for method in ("sdoh", "lsh")
        for seed in (0, 1)
    ]


def test_rows_come_back_as_they_were_appended(rows, tmp_path):
    path = tmp_path / "deep" / "rows.jsonl"
    for row in rows:
        append_row(path, row)
    assert read_rows(path) == rows
    assert read_rows(tmp_path / "none.jsonl") == []


def test_half_a_row_of_a_killed_run_is_skipped_and_noted(rows, tmp_path, caplog):
    path = tmp_path / "rows.jsonl"
    append_row(path, rows[0])
    with path.open("a") as file:
        file.write(to_json(rows[1])[:100])
    with caplog.at_level(logging.WARNING):
        assert read_rows(path) == rows[:1]
    assert caplog.messages == [f"{path}: line 2 is not a whole row and was skipped"]
    append_row(path, rows[2])  # and the next row does not stick to it
    assert read_rows(path) == [rows[0], rows[2]]


def test_a_foreign_file_is_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n')
    with pytest.raises(
        FileError, match="line 1 is not a result row of streamhash; choose a folder"
    ):
        read_rows(path)


def test_a_row_without_map_by_class_gets_it_where_all_classes_ask_equally_often(rows, tmp_path):
    metrics = {name: value for name, value in rows[0]["metrics"].items() if name != "map_by_class"}
    old = {**rows[0], "metrics": metrics}
    by_time, rare = ({**old, **given} for given in ({"queries_per_class": 0}, {"query_share": 0.2}))
    for row in (old, by_time, rare):
        append_row(tmp_path / "rows.jsonl", row)
    found = [row["metrics"].get("map_by_class") for row in read_rows(tmp_path / "rows.jsonl")]
    assert found == [metrics["map"], None, None]


def test_what_is_not_a_number_becomes_null():
    assert to_json({"a": float("nan"), "b": [float("inf"), 1.5]}) == '{"a": null, "b": [null, 1.5]}'


def test_the_latest_row_of_a_cell_counts(rows):
    newer = {**rows[0], "date": "later"}
    assert latest([*rows, newer]) == [newer, *rows[1:]]


def test_lines_are_means_and_deviations_over_seeds(rows):
    line = summarise(rows)[0]
    a, b = (row["metrics"]["map"] for row in rows[:2])
    assert (line.label, line.n_bits, len(line.rows)) == ("SDOH", 8, 2)
    assert line.mean("map") == pytest.approx((a + b) / 2)
    assert line.std("map") == pytest.approx(abs(a - b) / 2**0.5)
    assert line.text("map") == f"{(a + b) / 2:.3f} ± {abs(a - b) / 2**0.5:.3f}"
    assert line.text("no such metric") == "–"


def test_lines_that_differ_are_told_apart(rows):
    changed = {**rows[0], "changes": {"n_anchors": 9}, "parameters": {"n_anchors": 9}}
    longer = {**rows[0], "stream": 300}
    other = {**rows[0], "data_checksum": "0"}
    published = {**rows[0], "settings": "published"}
    labels = [line.label for line in summarise([rows[0], changed, longer, other, published])]
    assert labels == [
        "SDOH (200 instances) (variant 1)",
        "SDOH n_anchors=9",
        "SDOH (300 instances)",
        "SDOH (200 instances) (variant 2)",
        "SDOH published",
    ]


def test_markdown_has_a_table_for_each_group_with_the_best_in_bold(rows):
    text = markdown_table(summarise(rows))
    head = "| method | mAP | mAP by class | mAP@1000 | P@H2 | P@100 | AUC | learn, CPU s |"
    assert text.count(head) == 2
    title = "digits, 8 bits: 300 queries, 1,497 items (encoded), stream of 200"
    assert text.startswith(f"{title}, mean ± std of 2 seeds\n\n{head}\n| --- | ---: |")
    sdoh, lsh = (
        next(line for line in text.splitlines() if line.startswith(f"| {name} "))
        for name in ("SDOH", "LSH")
    )
    assert sdoh.split("|")[2].startswith(" **0.")
    assert "**" not in lsh.split("|")[2]


def test_a_title_says_how_the_items_are_coded(rows):
    labelled = [{**row, "database_codes": "labelled"} for row in rows]
    assert "1,497 items (labelled), stream" in markdown_table(summarise(labelled))
    assert "1,497 items (encoded or labelled), stream" in markdown_table(summarise(rows + labelled))


def test_the_terminal_table_shows_all_metrics(rows):
    console = Console(file=io.StringIO(), width=120)
    console.print(rich_table(summarise(rows)))
    text = console.file.getvalue()
    assert all(heading in text for heading, _ in METRICS.values())
    assert text.count("SDOH") == text.count("LSH") == 2


def test_rows_are_one_line_of_json_each(rows, tmp_path):
    path = tmp_path / "rows.jsonl"
    for row in rows[:3]:
        append_row(path, row)
    assert [json.loads(line)["seed"] for line in path.read_text().splitlines()] == [0, 1, 0]


def test_a_row_of_an_old_version_has_the_names_of_today(rows, tmp_path):
    old = {
        **rows[0],
        "method": "sdoh",
        "version": "0.1.0",
        "changes": {"kernel": 100},
        "command": "streamhash bench --method sdoh --set kernel=100 --set sigma=0.5",
    }
    append_row(tmp_path / "rows.jsonl", old)
    (row,) = read_rows(tmp_path / "rows.jsonl")
    assert row["changes"] == {"memory": 0, "features": None, "n_anchors": 100}
    assert row["command"] == (
        "streamhash bench --method sdoh --set n_anchors=100 --set sigma=0.5 --set memory=0 "
        "--set features=None"
    )


@pytest.mark.parametrize("settings", ["default", "published", "tuned"])
def test_a_row_of_an_old_version_is_the_cell_that_its_command_runs(settings, tmp_path):
    need_data("mnist")
    changes = {"memory": 0, "features": None} if settings == "default" else {}
    cell = plan_cell("sdoh", "mnist", settings=settings, changes=changes).identity()
    new = ("memory", "features", "class_scores", "n_features", "ridge", "equal_classes", "passes")
    parameters = {name: value for name, value in cell["parameters"].items() if name not in new}
    parameters["kernel"] = parameters.pop("n_anchors")
    old = {"version": "0.1.0", "changes": {}, "parameters": parameters, "metrics": {}}
    append_row(tmp_path / "rows.jsonl", {**cell, **old})
    (row,) = read_rows(tmp_path / "rows.jsonl")
    assert row_key(row) == row_key(cell)
    assert row["changes"] == changes
    assert row_key(row) != row_key(plan_cell("sdoh", "mnist").identity())
