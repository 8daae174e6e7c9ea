"""Plans, cells and checkpoints of the benchmark."""

import json
import shlex

import numpy as np
import pytest

from streamhash import LSH, SDOH, lab, mean_average_precision
from streamhash.errors import InputError
from streamhash.hashers import METHODS
from streamhash.lab import (
    append_row,
    bench,
    find_methods,
    make_hasher,
    plan_cell,
    read_rows,
    row_key,
    run_cell,
    run_cells,
    run_plan,
    summarise,
    to_json,
)
from streamhash.lab.datasets import DataSet, load_data, split
from streamhash.lab.run import checkpoint_positions

FIELDS = {
    *("method", "settings", "changes", "parameters", "features", "data", "data_checksum"),
    *("n_bits", "seed", "stream", "queries_per_class", "checkpoints", "database", "queries"),
    *("instances", "metrics", "curve", "distances", "seconds", "conventions", "version"),
    *("machine", "date", "command", "split", "curve_metric", "test_seeds"),
    *("order", "label_noise", "database_codes", "query_share"),
}


@pytest.fixture(scope="module")
def digits():
    return load_data("digits")


@pytest.fixture(scope="module")
def row(digits):
    return run_cell("sdoh", digits, 16, 1, stream=700, changes={"batch_size": 50})


def test_a_row_has_all_that_a_table_cell_needs(row):
    assert set(row) == FIELDS
    assert (row["database"], row["queries"], row["instances"]) == (1497, 300, 700)
    assert row["parameters"]["batch_size"] == 50
    assert row["parameters"]["random_state"] == 1
    assert set(row["seconds"]) == {"learn", "encode", "evaluate", "cell"}
    assert {"map", "map@1000", "precision@h2", "precision@1", "precision@100", "auc"} <= set(
        row["metrics"]
    )
    assert {"cpu", "cores", "threads", "python", "numpy"} <= set(row["machine"])
    assert json.loads(to_json(row))["metrics"] == row["metrics"]


def test_a_row_agrees_with_the_protocol_done_by_hand(row, digits):
    X, y = digits.X, digits.y
    parts = split(y, queries_per_class=30, stream=700, random_state=1)
    hasher = SDOH(n_bits=16, batch_size=50, random_state=1)
    hasher.fit(X[parts.stream], y[parts.stream])
    codes = hasher.transform(X)
    expected = mean_average_precision(
        codes[parts.queries], y[parts.queries], codes[parts.database], y[parts.database]
    )
    assert row["metrics"]["map"] == row["curve"][-1]["map"] == pytest.approx(expected, rel=1e-12)


def test_checkpoints_do_not_change_what_is_learned(row, digits):
    again = run_cell("sdoh", digits, 16, 1, stream=700, changes={"batch_size": 50}, checkpoints=1)
    assert again["metrics"]["map"] == row["metrics"]["map"]
    assert [at["instances"] for at in again["curve"]] == [700]


def test_the_curve_starts_after_the_first_stage_and_auc_is_its_mean(row):
    instances = [at["instances"] for at in row["curve"]]
    assert instances[0] == 50
    assert instances[-1] == 700
    assert len(instances) == 10
    assert row["metrics"]["auc"] == pytest.approx(np.mean([at["map"] for at in row["curve"]]))


def test_distances_count_every_pair_once(row):
    for counts in row["distances"].values():
        assert len(counts["similar"]) == len(counts["dissimilar"]) == 17
        assert sum(counts["similar"]) + sum(counts["dissimilar"]) == 300 * 1497


def test_distances_before_learning_are_those_of_lsh(digits):
    lsh = run_cell("lsh", digits, 16, 1, stream=700, checkpoints=1)
    assert lsh["distances"]["before"] == lsh["distances"]["after"]


@pytest.mark.parametrize(("n", "batch_size", "count"), [(1, 1, 1), (999, 100, 7), (50, 100, 10)])
def test_checkpoints_are_ends_of_stages(n, batch_size, count):
    positions = checkpoint_positions(n, batch_size, count)
    assert positions[-1] == n
    assert all(position % batch_size == 0 for position in positions[:-1])
    assert len(positions) <= count


def test_the_command_of_a_row_names_all_that_was_chosen(row):
    words = shlex.split(row["command"])
    assert words[:2] == ["streamhash", "bench"]
    chosen = dict(zip(words[2::2], words[3::2], strict=True))
    assert chosen == {
        "--data": "digits",
        "--method": "sdoh",
        "--bits": "16",
        "--seeds": "1",
        "--first-seed": "1",
        "--settings": "default",
        "--stream": "700",
        "--queries-per-class": "30",
        "--checkpoints": "10",
        "--set": "batch_size=50",
    }


def test_a_plan_and_its_row_have_the_same_key_and_others_have_not(digits):
    plan = plan_cell("lsh", digits, 8, 0, stream=100)
    key = row_key(plan.identity())
    assert row_key(json.loads(to_json(run_plan(plan)))) == key
    for other in (
        plan_cell("lsh", digits, 9, 0, stream=100),
        plan_cell("lsh", digits, 8, 1, stream=100),
        plan_cell("lsh", digits, 8, 0, stream=200),
        plan_cell("lsh", digits, 8, 0, stream=100, changes={"center": False}),
        plan_cell("lsh", DataSet("digits", digits.X + 1, digits.y, digits.card), 8, 0, stream=100),
    ):
        assert row_key(other.identity()) != key


def test_published_settings_get_the_features_of_their_authors():
    rng = np.random.default_rng(0)
    card = load_data("digits").card
    data = DataSet("mnist", rng.random((60, 5), dtype=np.float32), np.arange(60) % 3, card)
    plan = plan_cell("lsh", data, 8, 0, settings="published")
    assert plan.features == "centre_unit"
    assert (
        plan.hasher().get_params() == LSH.published("mnist", n_bits=8, random_state=0).get_params()
    )
    assert plan_cell("lsh", data, 8, 0).features == "raw"
    assert run_plan(plan)["features"] == "centre_unit"


def test_queries_are_at_most_a_fifth_of_the_smallest_class(digits):
    assert plan_cell("lsh", digits, 8, 0).queries_per_class == 30
    own = DataSet("own", digits.X[:60], np.arange(60) % 3, digits.card)
    assert plan_cell("lsh", own, 8, 0).queries_per_class == 4
    several = DataSet(
        "own", digits.X[:60], np.eye(3, dtype=np.uint8)[np.arange(60) % 3], digits.card
    )
    assert run_cell("lsh", several, 8, 0)["queries"] == 12


@pytest.mark.parametrize("method", METHODS)
def test_every_method_can_be_given_random_features(method):
    assert make_hasher(method, 8, 0, changes={"features": "fourier"}).features == "fourier"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_hasher("foo", 8, 0), "there is no method 'foo'; choose from "),
        (
            lambda: make_hasher("lsh", 8, 0, changes={"foo": 1}),
            "LSH has no parameter 'foo' to set; it has ",
        ),
        (lambda: run_cell("lsh", "digits", 8, settings="best"), "settings='best' is unknown; "),
        (
            lambda: run_cell("lsh", "digits", 8, settings="published"),
            "LSH.published: no published settings for 'digits'",
        ),
        (lambda: run_cell("lsh", "digits", 8, stream=5000), "split: stream=5000 is more than "),
        (
            lambda: run_cell(
                "lsh", "digits", 8, queries_per_class=80, stream=99, curve_metric="map@1000"
            ),
            "curve_metric='map@1000' needs a database of more than 1,000 items, and this one has",
        ),
        (
            lambda: run_cell("lsh", "digits", 8, queries_per_class=500),
            "split: class 0 has 178 rows",
        ),
    ],
)
def test_what_cannot_run_says_why(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_every_method_runs(digits):
    for method in METHODS:
        assert 0 < run_cell(method, digits, 8, 0, stream=300)["metrics"]["map"] <= 1


def test_cells_that_have_rows_are_not_run_again_and_the_time_left_is_told(digits, tmp_path):
    plans = [plan_cell("lsh", digits, 8, seed, stream=100, checkpoints=1) for seed in range(3)]
    path, states = tmp_path / "rows.jsonl", []

    def note(state):
        states.append((state.n_done, state.n_total, state.seconds_left, str(state)))

    first = run_cells(plans[:2], rows_file=path, jobs=1, progress=note)
    assert [row["seed"] for row in first] == [0, 1]
    assert [state[:2] for state in states] == [(0, 2), (1, 2), (2, 2)]
    assert states[0][3] == "2 cells"
    assert states[1][3].startswith("lsh, digits, 8 bits, seed 0; about ")
    assert states[2][3].startswith("lsh, digits, 8 bits, seed 1; done in ")
    assert states[1][2] == pytest.approx(first[0]["seconds"]["cell"]["wall"])
    states.clear()
    second = run_cells(plans, rows_file=path, jobs=1, progress=note)
    assert [row["date"] for row in second[:2]] == [row["date"] for row in first]
    assert [state[:2] for state in states] == [(0, 1), (1, 1)]
    assert states[0][2] > 0  # known from the rows that are there
    assert read_rows(path) == second
    run_cells(plans[:1], rows_file=path, resume=False, jobs=1)
    assert len(read_rows(path)) == 4


def test_a_row_that_lacks_what_rows_tell_today_is_run_again(digits, tmp_path):
    path = tmp_path / "rows.jsonl"
    plan = plan_cell("lsh", digits, 8, stream=100, checkpoints=1, query_share=0.1)
    (row,) = run_cells([plan], rows_file=path, jobs=1)
    row["metrics"].pop("map_by_class")  # as a version before it wrote
    path.unlink()
    append_row(path, row)
    (again,) = run_cells([plan], rows_file=path, jobs=1)
    assert "map_by_class" in again["metrics"]
    assert len(read_rows(path)) == 2


class OwnHasher(LSH):
    """A method of somebody else."""


def test_a_class_an_instance_and_an_import_path_are_one_method(digits):
    path = f"{OwnHasher.__module__}:OwnHasher"
    for method in (OwnHasher, OwnHasher(16), path):
        assert plan_cell(method, digits, 8).method == path
    assert find_methods([SDOH, LSH(), "okh"]) == ["sdoh", "lsh", "okh"]
    (own, lsh) = bench([OwnHasher, "lsh"], digits, n_bits=8, stream=100, checkpoints=1, jobs=1)
    assert own["method"] == path
    assert own["metrics"] == lsh["metrics"]
    assert [line.label for line in summarise([own, lsh])] == ["OwnHasher", "LSH"]

    class Hidden(LSH):
        pass

    with pytest.raises(InputError, match="define the class at the top level of a module"):
        plan_cell(Hidden, digits)


def test_bench_runs_every_combination_in_order(digits):
    rows = bench(
        ["lsh", "pcah"], digits, n_bits=(8, 16), seeds=(1, 2), quick=True, stream=100, jobs=1
    )
    assert [(row["n_bits"], row["method"], row["seed"]) for row in rows] == [
        (n_bits, method, seed)
        for n_bits in (8, 16)
        for method in ("lsh", "pcah")
        for seed in (1, 2)
    ]
    assert {(row["stream"], row["checkpoints"]) for row in rows} == {(100, 3)}
    (quick,) = bench("lsh", load_data("synthetic", rows=4000), quick=True, jobs=1)
    assert (quick["stream"], quick["checkpoints"]) == (2000, 3)


def test_the_public_names_are_there():
    for name in lab.__all__:
        assert getattr(lab, name) is not None
    with pytest.raises(AttributeError, match=r"No streamhash\.lab attribute foo"):
        lab.foo  # noqa: B018
