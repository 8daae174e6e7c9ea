"""The adapters for ann-benchmarks, called as its runner calls them."""

import doctest
import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from streamhash import InputError, pack
from streamhash.threads import using_threads

FOLDER = Path(__file__).parents[2] / "examples" / "ann_benchmarks"
spec = spec_from_file_location("ann_benchmarks_module", FOLDER / "module.py")
module = module_from_spec(spec)
spec.loader.exec_module(module)
StreamhashBuckets, StreamhashExact = module.StreamhashBuckets, module.StreamhashExact


def run_as_ann_benchmarks_does(algorithm, train, queries, count, groups):
    """What its runner does to an algorithm, without the clock (ann_benchmarks/runner.py)."""
    before = algorithm.get_memory_usage()
    algorithm.fit(train)
    assert algorithm.get_memory_usage() > before
    answers = []
    for arguments in groups or [[]]:
        if arguments:
            algorithm.set_query_arguments(*arguments)
        single = [algorithm.query(v, count) for v in queries]
        algorithm.batch_query(queries, count)
        assert [list(row) for row in algorithm.get_batch_results()] == single
        for row in single:
            assert len(row) == len(set(row)) <= count
            assert all(0 <= int(item) < len(train) for item in row)
        assert dict(algorithm.get_additional()) == {}
        answers.append((str(algorithm), single))
    algorithm.done()
    return answers


@pytest.mark.parametrize("form", [np.bool_, np.uint8, np.float32, "packed"])
def test_the_exact_adapter_finds_the_nearest(form):
    rng = np.random.default_rng(0)
    train, queries = rng.integers(0, 2, (300, 16)), rng.integers(0, 2, (9, 16))
    distances = (queries[:, None] != train).sum(axis=2)
    expected = np.argsort(distances, axis=1, kind="stable")[:, :10].tolist()
    packed = form == "packed"
    if packed:
        train, queries = pack(train), pack(queries)
    else:
        train, queries = train.astype(form), queries.astype(form)
    algorithm = StreamhashExact("hamming", packed=packed)
    answers = run_as_ann_benchmarks_does(algorithm, train, queries, 10, [])
    assert answers == [("StreamhashExact()", expected)]


def test_the_adapter_of_buckets_takes_the_number_to_look_into():
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    rng = np.random.default_rng(0)
    train, queries = (rng.integers(0, 2, (n, 16)).astype(bool) for n in (300, 9))
    with using_threads(1):
        (few, _), (every, found) = run_as_ann_benchmarks_does(
            StreamhashBuckets("hamming", 8), train, queries, 10, [[1], [8]]
        )
    assert (few, every) == (
        "StreamhashBuckets(n_buckets=8, n_probe=1)",
        "StreamhashBuckets(n_buckets=8, n_probe=8)",
    )
    distances = (queries[:, None] != train).sum(axis=2)
    nearest = np.sort(distances, axis=1)[:, :10]
    np.testing.assert_array_equal(np.take_along_axis(distances, np.array(found), axis=1), nearest)


def test_the_adapters_refuse_what_they_cannot_do():
    with pytest.raises(InputError, match="metric='angular' came; run it on data sets of hamming"):
        StreamhashExact("angular")
    with pytest.raises(InputError, match="other values than 0 and 1; pass packed=True"):
        StreamhashExact("hamming").fit(np.full((9, 2), 255, np.uint8))
    with pytest.raises(InputError, match="leave query_args out"):
        StreamhashExact("hamming").set_query_arguments(4)
    with pytest.raises(InputError, match=r"call fit\(X\) first"):
        StreamhashExact("hamming").query([0, 1], 1)
    with pytest.raises(InputError, match="pass n_probe alone"):
        StreamhashBuckets("hamming").set_query_arguments(4, 5)


def test_the_configuration_names_classes_that_are_there():
    configuration = (FOLDER / "config.yml").read_text(encoding="utf-8")
    assert re.findall("constructor: (.*)", configuration) == sorted(module.__all__)[::-1]


def test_the_example_of_its_docstring_runs():
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_our_script_follows_its_protocol(tmp_path, monkeypatch):
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    h5py = pytest.importorskip("h5py")
    script = pytest.importorskip("ann_benchmarks")
    rng = np.random.default_rng(0)
    train, test = rng.integers(0, 2, (400, 32)) != 0, rng.integers(0, 2, (6, 32)) != 0
    distances = np.sort((test[:, None] != train).mean(axis=2), axis=1)[:, :100]
    nearest = np.argsort((test[:, None] != train).mean(axis=2), axis=1)
    exact = [row[:10].tolist() for row in nearest]
    assert script.recall(exact, train, test, distances) == 1.0
    assert script.recall([row[:5] for row in exact], train, test, distances) == 0.5
    assert script.recall([row[-10:].tolist() for row in nearest], train, test, distances) == 0.0
    tied = [
        np.flatnonzero((train != v).mean(axis=1) <= d[9])[-10:]
        for v, d in zip(test, distances, strict=True)
    ]
    assert script.recall([row.tolist() for row in tied], train, test, distances) == 1.0
    with h5py.File(tmp_path / "own.hdf5", "w") as file:
        file.attrs["distance"] = "hamming"
        file["train"], file["test"], file["distances"] = train, test, distances
    made = {
        "streamhash-exact": lambda: StreamhashExact("hamming"),
        "faiss-flat": script.FaissFlat,
        "faiss-ivf": lambda: script.FaissIVF(8),
        "faiss-hnsw": lambda: script.FaissHNSW(8),
    }
    groups = {"faiss-ivf": [(8,)], "faiss-hnsw": [(200,)]}
    found = {name: script.Algorithm(make, groups.get(name, [()])) for name, make in made.items()}
    monkeypatch.setattr(script, "algorithms", lambda: found)
    rows = [*script.run("own", tmp_path / "own.hdf5", 6, 1)]
    assert [row["algorithm"] for row in rows] == [*made]
    assert all(row["recall"] == row["batch_recall"] for row in rows)
    assert [row["recall"] for row in rows[:3]] == [1.0] * 3
    assert rows[3]["recall"] > 0.8


RUN = """
import sys
from pathlib import Path
import h5py
from ann_benchmarks.datasets import DATASETS
arguments = dict(zip(sys.argv[2::2], sys.argv[3::2])) if sys.argv[1] == "--local" else {}
name, algorithm = arguments["--dataset"], arguments["--algorithm"]
assert name in DATASETS
assert Path(arguments["--definitions"]).is_dir()
batch = "--batch" in sys.argv
path = Path("results", name, "10", algorithm + "-batch" * batch, "one.hdf5")
if path.exists():
    raise Exception("Nothing to run")
path.parent.mkdir(parents=True)
with h5py.File(path, "w") as file, h5py.File(f"data/{name}.hdf5") as data:
    assert data.attrs["point_type"] == "bit"
    file["times"] = [0.1] * len(data["test"])
    runs = int(arguments["--runs"])
    file.attrs.update(algo=algorithm, name=algorithm, batch_mode=batch, count=10, run_count=runs)
    file.attrs.update(best_search_time=0.5, build_time=2.0, index_size=3.0)
"""

PLOT = """
import sys
from pathlib import Path
import h5py
for path in Path("results", sys.argv[2]).rglob("*.hdf5"):
    with h5py.File(path, "r+") as file:
        file.require_group("metrics/knn").attrs["mean"] = 0.75
"""


def test_our_script_calls_its_runner_until_nothing_is_left(tmp_path, monkeypatch):
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    h5py = pytest.importorskip("h5py")
    script = pytest.importorskip("ann_benchmarks_local")
    checkout, made = tmp_path / "checkout", tmp_path / "made.hdf5"
    package = checkout / "ann_benchmarks"
    (package / "algorithms").mkdir(parents=True)
    (package / "datasets.py").write_text("DATASETS = {}")
    (checkout / "run.py").write_text(RUN)
    (checkout / "plot.py").write_text(PLOT)
    with h5py.File(made, "w") as file:
        file.attrs["distance"] = "hamming"
        for part in ("train", "test", "neighbors", "distances"):
            file[part] = np.zeros((9, 8))
    monkeypatch.setattr(script, "make_data", lambda _: made)
    out = tmp_path / "rows.jsonl"
    given = ["--queries", "4", "--runs", "7", "--batch-runs", "2", "--out", str(out)]
    monkeypatch.setattr("sys.argv", ["script", str(checkout), "own-set", *given])
    for _ in range(2):  # the second finds rows there and adds none
        script.main()
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        assert sorted((row["algorithm"], row["batch"]) for row in rows) == [
            ("bruteforce", False),
            *((name, batch) for name in ("faiss-ivf", *sorted(script.OURS)) for batch in (0, 1)),
        ]
    found = {(row["algorithm"] == "bruteforce", row["batch"]): row["runs"] for row in rows}
    assert found == {(True, False): 1, (False, False): 7, (False, True): 2}
    for row in rows:
        assert (row["recall"], row["queries_per_second"], row["queries"]) == (0.75, 2.0, 4)
        assert len(row["load"]) == 2
    assert (package / "algorithms" / "streamhash" / "module.py").exists()
    definitions = sorted(path.parent.name for path in checkout.glob("definitions/*/config.yml"))
    assert definitions == ["bruteforce", "faiss-ivf", "streamhash"]
