"""The tables and the figure on orders of the stream, from rows of a small run."""

import json
import re

import pytest

from pages import ROOT
from streamhash.lab import bench

SMALL = {"n_bits": 32, "stream": 300, "jobs": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("orders")
    out = {"out": folder / "digits", "checkpoints": 1, "seeds": 2, **SMALL}
    bench(["pcah", "sdoh", "lsh"], "digits", order=["shuffled", "sorted"], **out)
    bench("lsh", "digits", label_noise=0.2, **out)
    bench("sdoh", "digits", changes={"batch_size": 50}, **out)
    along = {"out": folder / "curves", "checkpoints": 4, "order": "sorted", **SMALL}
    for changes in ({}, {"batch_size": 50}):
        bench("sdoh", "digits", changes=changes, curve_by_class=True, **along)
    bench("lsh", "digits", **along)  # without its classes
    return folder


@pytest.fixture
def order_tables(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import order_tables

    return order_tables


@pytest.mark.slow
def test_the_table_has_a_line_for_each_method_and_a_column_for_each_order(order_tables, folder):
    head, rule, *lines = order_tables.order_table("digits", folder).split("\n\n")[0].splitlines()
    assert head == ("| digits, mAP, 32 bits | settings | shuffled | sorted | 20 % wrong labels |")
    assert rule == "| --- | --- | ---: | ---: | ---: |"
    cells = [line.strip("| ").split(" | ") for line in lines]
    assert [row[:2] for row in cells] == [
        ["SDOH", "default"],
        ["PCAH", "default"],
        ["LSH", "default"],
    ]
    assert [row[4] for row in cells[:2]] == ["–", "–"]
    for column in (2, 3):
        values = [float(row[column].strip("*")) for row in cells]
        bold = [row[column].startswith("**") for row in cells]
        assert bold == [value == max(values) for value in values]
    assert cells[2][2] == cells[2][3] == re.sub(r"\*", "", cells[2][4])  # LSH learns no order


def test_the_same_by_class_is_of_rows_that_have_it(order_tables, folder, tmp_path):
    (tmp_path / "digits").mkdir()
    kept = (folder / "digits" / "rows.jsonl").read_text()
    rows = [json.loads(line) for line in kept.splitlines()]
    for row in rows:
        row["metrics"]["map_by_class"] = 0.125
        row["queries_per_class"] = 0  # else it is known to be the mAP
        if row["order"] == "sorted":
            del row["metrics"]["map_by_class"]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "digits" / "rows.jsonl").write_text(text)
    lines = order_tables.order_table("digits-by-class", tmp_path).splitlines()
    assert lines[0] == "| digits, mAP by class, 32 bits | settings | shuffled | 20 % wrong labels |"
    assert lines[4] == "| LSH | default | **.125** | **.125** |"


def test_the_table_says_what_was_measured(order_tables, folder):
    sizes = order_tables.order_table("digits", folder).split("\n\n")[1]
    assert sizes == "300 queries, 1,497 items (encoded), a stream of 300; mean of 2 seeds."


def test_tuned_settings_stand_in_for_default_ones_but_for_our_own(order_tables, folder, tmp_path):
    (tmp_path / "digits").mkdir()
    text = (folder / "digits" / "rows.jsonl").read_text()
    tuned = text.replace('"settings": "default"', '"settings": "tuned"')
    (tmp_path / "digits" / "rows.jsonl").write_text(text + tuned)
    lines = order_tables.order_table("digits", tmp_path).splitlines()[2:]
    assert [line.split(" | ")[:2] for line in lines[:4]] == [
        ["| SDOH", "default"],
        ["| SDOH", "tuned"],
        ["| PCAH", "tuned"],
        ["| LSH", "tuned"],
    ]


def test_the_figure_has_a_panel_for_each_line_and_a_line_for_each_class(order_tables, folder):
    pytest.importorskip("matplotlib")
    assert order_tables.sorted_figure(folder).endswith("(figures/sorted-stream.png)")
    figure = order_tables.draw_sorted(folder)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["SDOH (sorted)", "SDOH batch_size=50 (sorted)"]
    for axes in figure.axes:
        widths = [line.get_linewidth() for line in axes.lines if line.get_linestyle() != "None"]
        assert sorted(widths) == [0.8] * 10 + [2.6]
        dots = [line for line in axes.lines if line.get_linestyle() == "None"]
        assert len(dots) == 10


def test_what_is_kept_of_classes_that_stopped_is_that_of_a_plain_loop(order_tables, folder):
    _, _, *lines = order_tables.forgetting_table(folder).splitlines()
    shown = {line.split(" | ")[0].strip("| "): line.split(" | ")[1:4] for line in lines}
    assert [*shown] == sorted(shown, key=lambda label: -float(shown[label][1]))
    text = (folder / "curves" / "rows.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    row = next(row for row in rows if row["method"] == "sdoh" and not row["changes"])
    then, end = [], []
    for values, last in zip(row["class_curve"]["values"], row["class_curve"]["last"], strict=True):
        after = [i for i, look in enumerate(row["curve"]) if look["instances"] >= last]
        if after[0] < len(row["curve"]) - 1:
            then.append(values[after[0]])
            end.append(values[-1])
    assert 0 < len(then) < 10
    wanted = sum(then) / len(then), sum(end) / len(end)
    assert [float(text) for text in shown["SDOH (sorted)"][:2]] == pytest.approx(wanted, abs=6e-4)


def test_without_rows_the_page_says_so(order_tables, tmp_path):
    assert order_tables.order_table("mnist", tmp_path) == order_tables.NOTHING
    assert order_tables.sorted_figure(tmp_path) == order_tables.NOTHING
    assert order_tables.draw_sorted(tmp_path) is None
    assert order_tables.forgetting_table(tmp_path) == order_tables.NOTHING
