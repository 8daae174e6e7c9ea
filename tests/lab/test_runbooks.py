"""Runbooks of big-ann-benchmarks: read, refused, made by its rules, and run."""

from itertools import pairwise

import numpy as np
import pytest

from streamhash.errors import FileError, InputError, MissingDataError
from streamhash.lab import (
    Judge,
    Runbook,
    Step,
    Task,
    file_task,
    make_runbook,
    make_task,
    read_runbook,
    run_runbook,
    summarise_run,
)
from streamhash.lab.runbooks import SEARCH, cluster_rows

pytest.importorskip("yaml")

# As the track writes its files: quoted words, steps in any order of their fields, an address.
TRACK = """\
random-xs-clustered:
  max_pts: 6
  1:
    operation: "insert"
    start: 0
    end: 6
  2:
    operation: "search"
  3:
    end: 4
    operation: delete
    start: 2
  4:
    ids_end: 8
    ids_start: 6
    operation: replace
    tags_end: 2
    tags_start: 0
  5: {operation: search}
  gt_url: "https://example.org/gt"
other:
  max_pts: 1
  1: {operation: insert, start: 0, end: 1}
"""
STEPS = (
    Step.insert(0, 6),
    SEARCH,
    Step("delete", range(2, 4)),
    Step("replace", range(2), range(6, 8)),
    SEARCH,
)


@pytest.fixture
def book(tmp_path):
    def write(text):
        path = tmp_path / "book.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_file_of_the_track_is_read(book):
    found = read_runbook(book(TRACK), "random-xs-clustered")
    assert (found.data, found.max_points, found.steps) == ("random-xs-clustered", 6, STEPS)
    assert found.n_rows == 8
    assert read_runbook(book(TRACK), "other").steps == (Step.insert(0, 1),)
    with pytest.raises(InputError, match="steps for random-xs-clustered, other; choose one by"):
        read_runbook(book(TRACK))
    with pytest.raises(InputError, match="has no steps for 'mnist'"):
        read_runbook(book(TRACK), "mnist")


def test_what_is_written_is_read_again(tmp_path):
    for name in ("mnist", "my own: data", "9"):
        Runbook(name, 6, STEPS).write(tmp_path / "own.yaml")
        assert read_runbook(tmp_path / "own.yaml").steps == STEPS
        assert read_runbook(tmp_path / "own.yaml").data == name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1", "cannot be read as YAML"),
        ("- 1", "is not a runbook; it has the name of a data set at the top"),
        ("a: {1: {operation: search}}", "max_pts is None; give the most items"),
        ("a: {max_pts: 2}", "there is no step"),
        ("a: {max_pts: 2, 1: {operation: search}, 3: {operation: search}}", "step 2 is missing"),
        ("a: {max_pts: 2, 1: {operation: search}, 1: {operation: search}}", "1 is there twice"),
        ("a: {max_pts: 2, 1: {operation: drop}}", "step 1 has operation 'drop'; it must be one of"),
        ("a: {max_pts: 2, 1: [{operation: insert}]}", "step 1 has operation None"),
        ("a: {max_pts: 2, 1: {operation: insert, start: 0}}", r"step 1 \(insert\) has end None"),
        ("a: {max_pts: 2, 1: {operation: insert, start: 0, end: x}}", r"\(insert\) has end 'x'"),
        ("a: {max_pts: 2, 1: {operation: insert, start: -1, end: 1}}", "start -1; give a whole"),
        ("a: {max_pts: 2, 1: {operation: insert, start: 2, end: 1}}", "has end 1 before start"),
    ],
)
def test_a_bad_file_is_refused_and_the_step_is_named(book, text, said):
    with pytest.raises(FileError, match=said):
        read_runbook(book(text))


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ((SEARCH,), "step 1 searches before anything was inserted"),
        ((Step.insert(0, 2), Step.insert(1, 3)), "step 2 inserts 1, which is there"),
        ((Step.insert(0, 2), Step("delete", range(1, 3))), "step 2 deletes 2, which is not there"),
        (
            (Step.insert(0, 2), Step("delete", range(1)), Step("replace", range(1), range(2, 3))),
            "step 3 replaces 0, which is not there",
        ),
        (
            (Step.insert(0, 2), Step("replace", range(2), range(2, 3))),
            "step 2 replaces 2 items by 1",
        ),
        ((Step.insert(0, 5),), "step 1 makes 5 items, and max_pts is 4"),
    ],
)
def test_steps_that_cannot_be_run_are_refused(steps, said):
    with pytest.raises(InputError, match=said):
        Runbook("a", 4, steps)


PARTLY_GONE = """\
wiki:
  max_pts: 6
  1: {operation: insert, start: 0, end: 6}
  2: {operation: delete, start: 0, end: 2}
  3: {operation: insert, start: 6, end: 10}
  4: {operation: search}
"""


def test_a_file_whose_max_pts_is_too_small_is_told_and_run(book, caplog):
    """As its generator may write it: it counts whole batches off of which a part goes."""
    path = book(PARTLY_GONE)
    runbook = read_runbook(path)
    assert runbook.max_points == 8
    assert [len(step.tags) for step in runbook.steps] == [6, 2, 4, 0]
    said = f"read_runbook: {path}: max_pts is 6, and there are up to 8 items; going on with 8."
    assert [record.getMessage() for record in caplog.records] == [said]


def test_a_file_whose_max_pts_is_right_says_nothing(book, caplog):
    read_runbook(book(PARTLY_GONE.replace("max_pts: 6", "max_pts: 8")))
    assert not caplog.records


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(MissingDataError, match="there is no file"):
        read_runbook(tmp_path / "no.yaml")


def test_rows_are_sorted_by_cluster():
    rng = np.random.default_rng(0)
    centres = 50 * np.eye(3, 4)
    group = rng.integers(0, 3, 90)
    X = (centres[group] + rng.normal(size=(90, 4))).astype(np.float32)
    order, limits = cluster_rows(X, 3)
    assert sorted(order) == [*range(90)]
    assert limits[0] == 0
    assert limits[-1] == 90
    for start, end in pairwise(limits):
        assert len(set(group[order[start:end]])) == 1
        assert (np.diff(order[start:end]) > 0).all()  # as they came


LIMITS = [0, 100, 250, 300]


def test_the_clustered_runbook_inserts_cluster_after_cluster():
    made = make_runbook("clustered", "a", LIMITS)
    assert made.max_points == 300
    assert made.steps == tuple(
        step for ends in ((0, 100), (100, 250), (250, 300)) for step in (Step.insert(*ends), SEARCH)
    )


def test_the_deleting_runbook_comes_in_five_rounds():
    made = make_runbook("deleting", "a", LIMITS, random_state=1)
    inserts = [step.rows for step in made.steps if step.operation == "insert"]
    assert [len(rows) for rows in inserts] == [20, 30, 10] * 5
    assert sorted(row for rows in inserts for row in rows) == [*range(300)]  # all come, once
    went = [step for step in made.steps if step.operation == "delete"]
    assert 10 < len(went) <= 15
    there = {0: 20, 100: 30, 250: 10}
    assert len(went[0].tags) <= 0.9 * there[0]
    for low, high in pairwise(LIMITS):  # the oldest of a cluster go first
        tags = [tag for step in went for tag in step.tags if low <= tag < high]
        assert tags == [*range(low, low + len(tags))]
    searches = [step.operation for step in made.steps].count("search")
    assert searches == len(made.steps) - len(inserts) - len(went)
    sizes = [int((row_of >= 0).sum()) for *_, row_of in made.moments()]
    assert max(sizes) == made.max_points < 300
    assert made != make_runbook("deleting", "a", LIMITS, random_state=2)


def test_the_replacing_runbook_replaces_by_rows_of_the_same_cluster():
    made = make_runbook("replacing", "a", LIMITS, random_state=0)
    inserts = [step for step in made.steps if step.operation == "insert"]
    for step, low, high in zip(inserts, LIMITS, LIMITS[1:], strict=False):
        assert 0.5 * (high - low) - 1 <= len(step.rows) <= 0.9 * (high - low)
    replaced = [step for step in made.steps if step.operation == "replace"]
    assert replaced
    for step in replaced:
        cluster = max(i for i, low in enumerate(LIMITS) if low <= step.tags.start)
        assert step.rows.start == inserts[cluster].rows.stop
        assert step.rows.stop <= LIMITS[cluster + 1]
    assert made.max_points == sum(len(step.rows) for step in inserts)
    with pytest.raises(InputError, match="kind='shuffled' must be"):
        make_runbook("shuffled", "a", LIMITS)


class Exact:
    """A system that is right: Euclidean distances in NumPy; it can also be told to be wrong."""

    ways = ("exact", "last")

    def __init__(self):
        self.rows, self.seen = {}, []

    def insert(self, tags, X, y):
        assert not set(tags.tolist()) & set(self.rows)
        self.seen.append(y)
        self.rows.update(zip(tags.tolist(), X, strict=True))

    def delete(self, tags):
        for tag in tags.tolist():
            del self.rows[tag]

    def replace(self, tags, X, y):
        assert set(tags.tolist()) <= set(self.rows)
        self.seen.append(y)
        self.rows.update(zip(tags.tolist(), X, strict=True))

    def rank(self, X):
        tags, rows = np.array([*self.rows]), np.array([*self.rows.values()])
        distances = ((X[:, None].astype(float) - rows) ** 2).sum(axis=2)
        return tags[np.argsort(distances, axis=1, kind="stable")]

    def search(self, X, k, way):
        ranked = self.rank(X)[:, :k] if way == "exact" else self.rank(X)[:, ::-1][:, :k]
        return np.pad(ranked, ((0, 0), (0, k - ranked.shape[1])), constant_values=-1)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 400)
    return (8 * np.eye(4, 6)[y] + rng.normal(size=(400, 6))).astype(np.float32), y


@pytest.mark.parametrize("kind", ["clustered", "deleting", "replacing"])
def test_an_exact_system_has_recall_1_at_every_step(data, kind):
    X, y = data
    task = make_task(kind, X, y, data="four", n_clusters=4, n_queries=40, random_state=3)
    system = Exact()
    steps = [*run_runbook(task, system, Judge(task))]
    assert [row["operation"] for row in steps] == [s.operation for s in task.runbook.steps]
    searches = [row for row in steps if row["operation"] == "search"]
    assert [row["ways"]["exact"]["recall"] for row in searches] == [1.0] * len(searches)
    assert max(row["ways"]["last"]["recall"] for row in searches if row["there"] > 20) < 0.5
    assert all(row["ways"]["exact"]["precision"] <= 1 for row in searches)
    assert searches[-1]["map"] > 0.9
    assert all(labels is not None for labels in system.seen)
    assert [row["there"] for row in searches][-1] == len(system.rows)
    found = summarise_run(steps, len(task.queries))
    assert found["ways"]["exact"]["recall"] == 1.0
    assert found["last_map"] == searches[-1]["map"]
    assert found["last_map_by_class"] == searches[-1]["map_by_class"]
    assert found["insert"]["items"] == sum(r["items"] for r in steps if r["operation"] == "insert")


def test_queries_do_not_come(data):
    X, y = data
    task = make_task("clustered", X, y, data="four", n_clusters=4, n_queries=40, n_items=100)
    assert (len(task.X), len(task.queries)) == (100, 40)
    assert not {row.tobytes() for row in task.X} & {row.tobytes() for row in task.queries}
    with pytest.raises(InputError, match="399 items and 40 queries are more than the 400 rows"):
        make_task("clustered", X, y, data="four", n_clusters=4, n_queries=40, n_items=399)


def test_a_system_is_given_no_labels_where_none_come(data):
    X, _ = data
    task = make_task("replacing", X, data="four", n_clusters=2, n_queries=40)
    system = Exact()
    steps = [*run_runbook(task, system, Judge(task), labelled=False)]
    assert system.seen
    assert all(labels is None for labels in system.seen)
    assert steps[1]["ways"]["exact"]["precision"] is None
    assert "map" not in steps[1]


def test_wrong_labels_are_given_and_right_ones_judge(data):
    X, y = data
    task = make_task(
        "clustered", X, y, data="four", stream_labels=y + 10, n_clusters=2, n_queries=40
    )
    assert set(task.y) == {10, 11, 12, 13}
    assert set(task.labels) == {0, 1, 2, 3}


def test_recall_counts_ties_and_not_what_is_gone():
    X = np.array([[1.0], [1], [1], [2], [3]], np.float32)
    book = Runbook("a", 5, (Step.insert(0, 5), SEARCH))
    task = Task(book, X, None, None, np.array([[0.0]], np.float32), None)
    judge = Judge(task, k=2)
    there = np.arange(5)
    assert judge.recall(np.array([[2, 1]]), there) == 1.0  # any two of the three at distance 1
    assert judge.recall(np.array([[0, 3]]), there) == 0.5
    assert judge.recall(np.array([[0, -1]]), there) == 0.5
    assert judge.recall(np.array([[4, -1]]), np.array([4])) == 1.0  # one is all there is


def test_a_row_that_is_returned_twice_counts_once():
    X = np.array([[1.0], [2], [3], [4]], np.float32)
    book = Runbook("a", 4, (Step.insert(0, 4), SEARCH))
    y = np.array([0, 0, 0, 1])
    task = Task(book, X, y, y, np.array([[0.0], [9.0]], np.float32), np.array([0, 0]))
    judge = Judge(task, k=3)
    answers = np.array([[0, 0, 0], [3, 1, 3]])
    assert judge.recall(answers, np.arange(4)) == (1 / 3 + 2 / 3) / 2
    assert judge.precision(answers) == (1 / 3 + 1 / 3) / 2


def test_map_is_that_of_the_metrics(data):
    from streamhash import LSH, mean_average_precision
    from streamhash.metrics import evaluate_by_class
    from streamhash.search import HammingIndex

    X, y = data
    book = Runbook("a", 360, (Step.insert(0, 360), SEARCH))
    task = file_task(book, X, y)
    assert len(task.queries) == 40
    hasher = LSH(12, random_state=0).fit(X)
    codes, asked = hasher.transform(task.X), hasher.transform(task.queries)
    index = HammingIndex(12)
    index.add(None, codes)
    found = Judge(task).mean_average_precision(index.search(asked, 360)[1])
    expected = mean_average_precision(asked, task.query_labels, codes, task.labels)
    by_class = evaluate_by_class(asked, task.query_labels, codes, task.labels).values()
    of_classes = np.mean([each["map"] for each in by_class])
    assert found == pytest.approx({"map": expected, "map_by_class": of_classes})
    assert abs(of_classes - expected) > 1e-4  # some classes ask more often than others


def test_data_that_do_not_fit_a_file_are_refused(data):
    X, y = data
    book = Runbook("a", 400, (Step.insert(0, 200), SEARCH, Step.insert(200, 400)), "read_runbook")
    with pytest.raises(InputError, match="read_runbook: step 3 needs row 399, and the data have 3"):
        file_task(book, X[:300], y[:300])
    with pytest.raises(InputError, match="none is left to ask"):
        file_task(book, X, y)
    task = file_task(book, X, y, queries=(X[:7], y[:7]))
    assert len(task.queries) == 7
