"""The adapters for ann-benchmarks, called as its runner calls them."""

import doctest
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
