"""Long tails: bench and tune work on them with defaults; rare classes ask with fewer rows."""

import numpy as np
import pytest

from streamhash.lab import bench, plan_cell, run_plan, tune
from streamhash.lab.datasets import DataSet, load_data, split
from streamhash.lab.run import prepare_split
from streamhash.metrics import evaluate_by_class

COUNTS = [1, 2, 4, 20, 54, 60, 150, 700]


@pytest.fixture
def tail(tmp_path):
    """A file of a person's own: eight classes, of 1 to 700 rows."""
    random = np.random.default_rng(0)
    y = random.permutation(np.repeat(np.arange(len(COUNTS)), COUNTS))
    X = 4 * np.eye(8)[y] + random.standard_normal((len(y), 8))
    np.savez(tmp_path / "tail.npz", X=X.astype(np.float32), y=y)
    return load_data(tmp_path / "tail.npz")


def test_a_split_by_share_asks_with_rare_classes_too(tail):
    parts = split(tail.y, queries_per_class=100, query_share=0.2, stream=None, random_state=0)
    asked = np.bincount(tail.y[parts.queries], minlength=8)
    assert asked.tolist() == [0, 1, 1, 4, 10, 12, 30, 100]
    assert len(parts.queries) + len(parts.database) == len(tail.y)
    assert not np.isin(parts.queries, parts.database).any()


def test_bench_and_its_command_work_with_defaults(tail):
    (row,) = bench("lsh", tail, n_bits=8, jobs=1)
    assert (row["queries_per_class"], row["query_share"], row["queries"]) == (100, 0.2, 158)
    assert "--queries-per-class 100 --query-share 0.2" in row["command"]


def test_a_row_has_the_mean_over_the_classes_beside_the_mean(tail):
    plan = plan_cell("hcoh", tail, 16, checkpoints=1)
    parts, hasher = prepare_split(plan), plan.hasher()
    parts.learn(hasher, 0, len(parts.stream))
    by_class = evaluate_by_class(*parts.encode(hasher))
    metrics = run_plan(plan)["metrics"]
    wanted = np.mean([each["map"] for each in by_class.values()])
    assert metrics["map_by_class"] == pytest.approx(wanted)
    assert abs(metrics["map"] - wanted) > 0.001  # rare classes ask less often


@pytest.mark.parametrize("order", ["shuffled", "sorted"])
def test_every_trial_of_tune_works_with_defaults(tail, tmp_path, order, caplog):
    """0.1.0: "class 37 has 54 rows, but queries_per_class=54 needs at least 55" in every trial."""
    found = tune("lsh", tail, n_bits=8, budget=2, order=order, out=tmp_path / "out", jobs=1)
    assert [*found] == ["lsh"]
    assert caplog.messages == []


def test_a_validation_asks_with_fewer_where_the_stream_has_too_few_rows(tail):
    options = {"split": "validation", "test_seeds": 3, "stream": 400}
    plan = plan_cell("lsh", tail, 8, **options, queries_per_class=None)
    parts = prepare_split(plan)
    test = [prepare_split(plan_cell("lsh", tail, 8, seed, stream=400)) for seed in range(3)]
    rows = {row.tobytes() for each in test for row in each.queries[:]}
    assert not any(row.tobytes() in rows for row in parts.queries[:])
    assert run_plan(plan)["metrics"]["map"] > 0


def test_sets_of_even_classes_are_split_as_before():
    for name in ("digits", "long-tail"):
        plan = plan_cell("lsh", load_data(name))
        assert (plan.query_share, plan.queries_per_class) == (None, {"digits": 30}.get(name, 40))
    even = np.repeat(np.arange(3), 50)
    data = DataSet("even", np.eye(3, dtype=np.float32)[even], even, load_data("digits").card)
    plan = plan_cell("lsh", data)
    assert (plan.query_share, plan.queries_per_class) == (None, 10)
