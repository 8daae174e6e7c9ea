"""Orders of the stream and wrong labels: what comes when, and that nothing else changes."""

import shlex
from dataclasses import replace

import numpy as np
import pytest

from data import need_data
from streamhash import MIHash
from streamhash.errors import InputError
from streamhash.hashers import METHODS
from streamhash.lab import ORDERS, bench, plan_cell, read_rows, row_key, run_cell, tune
from streamhash.lab.datasets import DataSet, load_data, split
from streamhash.lab.orders import arrange, main_classes, with_wrong_labels
from streamhash.lab.rows import summarise
from streamhash.lab.run import prepare_split

ONE_LABEL = [name for name in METHODS if not METHODS[name].multi_label]


@pytest.fixture(scope="module")
def digits():
    return load_data("digits")


@pytest.fixture(scope="module")
def news(digits):
    """Digits as news: in order of time, each with its digit and whether it is even as labels."""
    Y = np.zeros((300, 11), np.uint8)
    Y[np.arange(300), digits.y[:300]] = 1
    Y[digits.y[:300] % 2 == 0, 10] = 1
    card = replace(digits.card, name="news", queries_from=240)
    return DataSet("news", digits.X[:300], Y, card)


@pytest.fixture
def classes():
    return np.random.default_rng(1).integers(0, 7, 5000)


def changes(classes):
    return int((classes[1:] != classes[:-1]).sum())


@pytest.mark.parametrize("order", [order for order in ORDERS if order != "natural"])
def test_every_order_has_all_rows_once_and_is_drawn_by_the_seed(order, classes):
    first, same, other = (arrange(order, classes, np.random.default_rng(s)) for s in (3, 3, 4))
    assert np.array_equal(np.sort(first), np.arange(5000))
    assert np.array_equal(first, same)
    assert np.array_equal(first, other) == (order in ("shuffled", "single"))


def test_sorted_goes_class_by_class_and_leaves_rows_of_a_class_as_they_came(classes):
    places = arrange("sorted", classes, np.random.default_rng(0))
    assert changes(classes[places]) == 6
    for name in range(7):
        of_class = places[classes[places] == name]
        assert np.array_equal(of_class, np.sort(of_class))
    assert (
        len({classes[arrange("sorted", classes, np.random.default_rng(s))][0] for s in range(9)})
        > 1
    )


def test_halves_share_no_class_and_are_shuffled(classes):
    came = classes[arrange("halves", classes, np.random.default_rng(0))]
    first = set(came[:500])
    end = int(np.isin(classes, list(first)).sum())
    assert len(first) == 4
    assert set(came[:end]) == first
    assert not first & set(came[end:])
    assert changes(came) > 3000


def test_runs_are_about_a_hundred_rows_of_one_class():
    classes = np.random.default_rng(1).integers(0, 50, 50_000)
    came = classes[arrange("runs", classes, np.random.default_rng(0))]
    assert 50_000 / changes(came) == pytest.approx(100, rel=0.2)
    ends = np.flatnonzero(np.diff(came))
    assert len(set(np.diff(ends))) > 100  # of many lengths


def test_a_set_in_order_of_time_is_only_shuffled_if_asked(classes):
    rng = np.random.default_rng(0)
    assert np.array_equal(arrange("single", classes, rng, in_time=True), np.arange(5000))
    assert not np.array_equal(arrange("shuffled", classes, rng, in_time=True), np.arange(5000))


def test_the_rarest_label_is_the_class_of_a_row():
    labels = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]])
    assert main_classes(labels).tolist() == [1, 2, 1, 0, 3]
    assert main_classes(np.array(["b", "a", "b"])).tolist() == [1, 0, 1]


def test_wrong_labels_are_drawn_from_all_classes():
    labels, rng = np.zeros(10_000, int), np.random.default_rng(0)
    wrong = with_wrong_labels(labels, 0.2, np.arange(5), rng)
    assert not labels.any()
    assert np.bincount(wrong) == pytest.approx([8400, 400, 400, 400, 400], abs=80)
    matrix = np.tile([1, 1, 0, 0], (10_000, 1))
    wrong = with_wrong_labels(matrix, 0.2, np.arange(2), rng)
    assert (wrong.sum(axis=1) == 2).all()
    assert (wrong != matrix).any(axis=1).mean() == pytest.approx(0.2 * 5 / 6, abs=0.02)


@pytest.mark.parametrize("order", ["sorted", "halves", "runs", "single", "natural"])
def test_an_order_changes_the_order_alone(digits, order):
    usual = prepare_split(plan_cell("lsh", digits, 8, 1, stream=700))
    other = prepare_split(plan_cell("lsh", digits, 8, 1, stream=700, order=order))
    for part in ("database", "queries"):
        assert np.array_equal(getattr(other, part)[:], getattr(usual, part)[:])
        assert np.array_equal(getattr(other, part).labels, getattr(usual, part).labels)
    rows = split(digits.y, queries_per_class=30, stream=700, random_state=1).stream
    by_content = {digits.X[row].tobytes(): row for row in rows}
    came = [by_content[row.tobytes()] for row in other.stream[:700]]
    assert sorted(came) == sorted(rows)
    assert (came == rows.tolist()) == (order == "single")
    assert np.array_equal(digits.y[came], other.stream.labels)
    if order == "natural":
        assert came == sorted(came)
    if order == "sorted":
        assert changes(other.stream.labels) == 9


def test_single_rows_are_handed_over_one_a_call(digits, monkeypatch):
    sizes = []
    learn = MIHash.partial_fit
    monkeypatch.setattr(
        MIHash, "partial_fit", lambda self, X, y: sizes.append(len(X)) or learn(self, X, y)
    )
    row = run_cell("mihash", digits, 8, 0, stream=150, checkpoints=1, order="single")
    assert sizes == [150, 150, *[1] * 150]  # the first two: kernels are compiled before time counts
    assert (row["order"], row["instances"]) == ("single", 150)


def test_the_stream_is_learned_with_wrong_labels_and_judged_by_the_true_ones(digits):
    usual = plan_cell("lsh", digits, 8, 0, stream=1000)
    noisy = replace(usual, label_noise=0.3)
    parts, true = prepare_split(noisy), prepare_split(usual)
    share = (parts.stream.labels != true.stream.labels).mean()
    assert share == pytest.approx(0.3 * 0.9, abs=0.05)
    assert np.array_equal(parts.stream[:1000], true.stream[:1000])
    assert np.array_equal(parts.database.labels, true.database.labels)
    assert np.array_equal(parts.queries.labels, true.queries.labels)
    good, bad = (run_cell("hcoh", digits, 16, 0, label_noise=share) for share in (0, 0.8))
    assert good["metrics"]["map"] > bad["metrics"]["map"] + 0.1
    assert good["queries"] == bad["queries"] == 300


def test_a_set_that_has_wrong_labels_is_learned_with_them(digits):
    said = (digits.y + 1) % 10
    data = DataSet("shop", digits.X, digits.y, digits.card, stream_labels=said)
    parts = prepare_split(plan_cell("lsh", data, 8, 0, stream=500, order="sorted"))
    rows = split(digits.y, queries_per_class=34, stream=500, random_state=0)
    assert sorted(parts.stream.labels) == sorted(said[rows.stream])
    assert np.array_equal(parts.database.labels, digits.y[rows.database])
    assert changes(parts.stream.labels) == 9
    plain = plan_cell("lsh", digits, 8, 0, stream=500).identity()
    assert plan_cell("lsh", data, 8, 0).identity()["data_checksum"] != plain["data_checksum"]


def test_rows_tell_their_order_and_have_keys_and_names_of_their_own(digits, tmp_path):
    choices = {"n_bits": 8, "stream": 200, "checkpoints": 1, "out": tmp_path, "jobs": 1}
    rows = bench("lsh", digits, order=["shuffled", "sorted", "single"], **choices)
    rows += bench("lsh", digits, order="sorted", label_noise=0.2, **choices)
    assert [row["order"] for row in rows] == ["shuffled", "sorted", "single", "sorted"]
    assert len({row_key(row) for row in rows}) == 4
    names = ["LSH", "LSH (sorted)", "LSH (single)", "LSH (sorted, 20 % wrong labels)"]
    assert [line.label for line in summarise(rows)] == names
    assert "--order" not in rows[0]["command"]
    assert shlex.split(rows[3]["command"])[-4:] == ["--order", "sorted", "--label-noise", "0.2"]
    again = bench("lsh", digits, order="sorted", resume=True, **choices)
    assert again == [rows[1]]
    assert len(read_rows(tmp_path / "rows.jsonl")) == 4
    plan = plan_cell("sdoh", digits, 16, 2, order="runs", label_noise=0.05)
    assert str(plan) == "sdoh (runs, 5 % wrong labels), digits, 16 bits, seed 2"


def test_rows_of_before_are_of_a_shuffled_stream(digits, tmp_path):
    (row,) = bench("lsh", digits, n_bits=8, stream=200, checkpoints=1, out=tmp_path, jobs=1)
    old = {name: row[name] for name in row if name not in ("order", "label_noise")}
    assert row_key(old) == row_key(row)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"order": "backwards"}, "order='backwards' is unknown; pass one of shuffled, sorted, "),
        ({"label_noise": 1.5}, "plan_cell: label_noise=1.5 must be a number from 0 to 1."),
    ],
)
def test_unknown_orders_and_shares_are_refused(digits, choices, message):
    with pytest.raises(InputError) as caught:
        plan_cell("lsh", digits, 8, **choices)
    assert str(caught.value).startswith(message)


def test_a_set_in_order_of_time_asks_with_its_last_rows(news):
    plan = plan_cell("sdoh", news, 8, 0)
    assert (plan.order, plan.stream, plan.queries_per_class) == ("natural", 240, 0)
    parts = prepare_split(plan)
    assert np.array_equal(parts.stream[:240], news.X[:240])
    assert np.array_equal(parts.stream.labels, news.y[:240])
    assert np.array_equal(parts.queries[:60], news.X[240:])
    assert sorted(row.tobytes() for row in parts.database[:240]) == sorted(
        row.tobytes() for row in news.X[:240]
    )
    short = prepare_split(replace(plan, stream=100, order="single"))
    assert np.array_equal(short.stream[:100], news.X[:100])
    mixed = prepare_split(replace(plan, stream=100, order="shuffled"))
    assert not np.array_equal(mixed.stream[:100], news.X[:100])
    assert mixed.stream[:100].sum() == pytest.approx(news.X[:100].sum(), rel=1e-5)
    by_topic = prepare_split(replace(plan, order="sorted"))
    assert changes(main_classes(by_topic.stream.labels)) == 9
    command = replace(plan, order="shuffled").command()
    assert "--queries-per-class" not in command
    assert "--order shuffled" in command


def test_settings_are_searched_for_before_the_queries_of_a_set_in_order_of_time(news, tmp_path):
    plan = plan_cell("lsh", news, 8, 1, split="validation", test_seeds=3, stream=200)
    parts = prepare_split(plan)
    assert np.array_equal(parts.stream[:160], news.X[:160])
    assert np.array_equal(parts.queries[:40], news.X[160:200])
    found = tune("osh", news, n_bits=8, budget=1, order="sorted", out=tmp_path, jobs=1)
    assert found == {"osh": {}}
    assert {row["order"] for row in read_rows(tmp_path / "rows.jsonl")} == {"sorted"}


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (
            {"queries_per_class": 5},
            "queries_per_class=5: news is in order of time and has its own ",
        ),
        ({"split": "unseen"}, "split='unseen': news is in order of time and has its own queries, "),
        ({"stream": 250}, "split_by_time: stream=250 is more than the 240 rows of the database"),
    ],
)
def test_what_a_set_in_order_of_time_cannot_have(news, choices, message):
    with pytest.raises(InputError) as caught:
        run_cell("lsh", news, 8, **choices)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("method", ONE_LABEL)
def test_a_method_for_one_label_is_refused_where_rows_have_several(news, method):
    with pytest.raises(InputError) as caught:
        bench(method, news, n_bits=8)
    assert str(caught.value).startswith(
        f"{method} learns from one label a row, and news has several; choose from sdoh, "
    )
    assert not any(f" {name}," in str(caught.value) for name in ONE_LABEL)


def test_methods_for_one_label_are_left_out_of_all_and_it_is_said(news, caplog):
    rows = bench("all", news, n_bits=8, checkpoints=1, jobs=1)
    assert [row["method"] for row in rows] == [name for name in METHODS if name not in ONE_LABEL]
    (said,) = [record for record in caplog.records if record.name == "streamhash.lab"]
    assert said.getMessage() == (
        f"{', '.join(ONE_LABEL)}: left out, for one label a row, and news has several."
    )


@pytest.mark.slow
def test_a_row_tells_the_quality_of_each_class_if_asked(digits, tmp_path):
    choices = {"n_bits": 16, "stream": 800, "checkpoints": 5, "order": "sorted", "jobs": 1}
    (plain,) = bench("sdoh", digits, out=tmp_path, **choices)
    assert "class_curve" not in plain
    (row,) = bench("sdoh", digits, out=tmp_path, resume=True, curve_by_class=True, **choices)
    assert "--curve-by-class" in row["command"]
    assert row["metrics"] == plain["metrics"]
    assert [at["map"] for at in row["curve"]] == [at["map"] for at in plain["curve"]]
    found = row["class_curve"]
    assert found["classes"] == list(range(10))
    spans = sorted(zip(found["first"], found["last"], strict=True))
    assert [first for first, _ in spans] == [0, *(last for _, last in spans[:-1])]
    assert spans[-1][1] == 800
    for first, values in zip(found["first"], found["values"], strict=True):
        came = [first < at["instances"] for at in row["curve"]]
        assert [value is not None for value in values] == came
    last = [values[-1] for values in found["values"]]
    assert np.mean(last) == pytest.approx(row["metrics"]["map"], abs=1e-4)  # as many queries each
    assert bench("sdoh", digits, out=tmp_path, resume=True, curve_by_class=True, **choices) == [row]


def test_the_class_curve_of_several_labels_is_that_of_each_label(news):
    row = run_cell("lsh", news, 8, 0, checkpoints=2, curve_by_class=True)
    even = news.y[:240, 10] > 0
    found = row["class_curve"]
    assert len(found["values"]) == 11
    assert found["first"][10] == even.argmax()
    assert found["last"][10] == np.flatnonzero(even)[-1] + 1


@pytest.mark.slow
def test_reuters_runs_end_to_end_in_order_of_time():
    need_data("reuters")
    rows = bench(["sdoh", "mihash", "lsh"], "reuters", n_bits=16, quick=True, jobs=1)
    assert {(row["order"], row["queries"], row["database"]) for row in rows} == {
        ("natural", 2280, 9000)
    }
    values = {row["method"]: row["metrics"]["map"] for row in rows}
    assert values["sdoh"] > values["lsh"] + 0.1


def test_a_long_tail_asks_as_often_for_rare_classes():
    data = load_data("long-tail", rows=30_000)
    plan = plan_cell("lsh", data, 8, 0, stream=1000)
    labels = prepare_split(plan).queries.labels
    assert set(np.bincount(labels)) == {plan.queries_per_class}
    assert plan_cell("lsh", load_data("long-tail"), 8).queries_per_class == 40
