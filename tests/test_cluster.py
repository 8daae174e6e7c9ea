"""A cluster of Dask: a real scheduler and two worker processes, one of which is killed."""

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import Executor
from pathlib import Path

import numpy as np
import pytest

from data import need_data
from streamhash import HCOH, SDOH, mean_average_precision
from streamhash.cluster import cluster_executor, learn_on
from streamhash.errors import InputError, UnreachableError
from streamhash.lab import plan_cell, read_folder, run_cells
from streamhash.lab.datasets import load_data
from streamhash.live import Collection, journal

pytestmark = pytest.mark.slow

pytest.importorskip("distributed", reason="needs Dask")

PROGRAM = Path(sys.executable).with_name("streamhash")
SMALL = 4096  # bytes that a task or its result may take


class Cluster:
    def __init__(self, folder):
        self.file, self.processes = folder / "scheduler.json", []
        self._start("scheduler", "--host=127.0.0.1", "--port=0", f"--scheduler-file={self.file}")
        self.scheduler = self._address()
        self.workers = [self.start_worker() for _ in range(2)]

    def _start(self, *words):
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "dask", *words, "--no-dashboard"],
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        self.processes.append(process)
        return process

    def _address(self):
        for _ in range(600):
            if self.file.exists() and self.file.read_text().strip().endswith("}"):
                return json.loads(self.file.read_text())["address"]
            time.sleep(0.05)
        raise AssertionError("the scheduler does not start")

    def start_worker(self):
        folder = self.file.parent / f"worker{len(self.processes)}"
        return self._start(
            "worker", self.scheduler, "--nthreads=1", "--no-nanny", f"--local-directory={folder}"
        )

    def wait_for_workers(self, n):
        from distributed import Client

        with Client(self.scheduler, set_as_default=False) as client:
            client.wait_for_workers(n, timeout=60)

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    found = Cluster(tmp_path_factory.mktemp("cluster"))
    found.wait_for_workers(2)
    yield found
    found.stop()


class Weighed(Executor):
    """An executor that weighs what passes through it."""

    def __init__(self, inner):
        self.inner, self.sizes, self.submitted = inner, [], 0

    def submit(self, function, /, *arguments, **named):
        from distributed.protocol.pickle import dumps

        self.submitted += 1
        self.sizes.append(len(dumps((function, arguments, named))))
        future = self.inner.submit(function, *arguments, **named)
        future.add_done_callback(lambda done: self.sizes.append(len(dumps(done.result()))))
        return future


def filled(path, n, parts):
    random = np.random.default_rng(0)
    y = random.integers(10, size=n)
    X = (random.standard_normal((10, 64))[y] + random.standard_normal((n, 64))).astype(np.float32)
    items = Collection.create(path, SDOH(32, random_state=0), refresh="manual")
    for some in np.array_split(np.arange(n), parts):
        items.add(some, X[some], y[some])
    return items, X


def twins(folder, n, parts):
    """Two collections of the same items, each in its own folder, and these."""
    items, X = filled(folder / "one", n, parts)
    items.close()
    shutil.copytree(folder / "one", folder / "other")
    return Collection.open(folder / "one"), Collection.open(folder / "other"), X


def assert_same(one, other, X):
    assert one.model_number == other.model_number
    for ours, theirs in zip(one.search(X[:50], 10), other.search(X[:50], 10), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_workers_read_the_items_themselves_and_encode_the_same(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(journal, "SMALL_KEYS", 0)  # every change is a fragment
    alone, items, X = twins(tmp_path, 6_000, 4)
    with cluster_executor(cluster.scheduler) as executor:
        weighed = Weighed(executor)
        assert items.refresh(executor=weighed)
    assert alone.refresh()
    assert weighed.submitted == 3  # the last fragment is encoded here
    assert len(weighed.sizes) == 6
    assert max(weighed.sizes) < SMALL < X.nbytes // 100
    assert_same(items, alone, X)
    alone.close()
    items.close()


def test_the_command_line_refreshes_on_a_cluster(tmp_path, cluster):
    items, X = filled(tmp_path / "items", 6_000, 4)
    items.close()
    program = "from streamhash.cli import main; main()"
    words = ["live", "refresh", str(tmp_path / "items"), "--scheduler", cluster.scheduler]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Model 2 serves 6,000 items" in done.stdout
    with Collection.open(tmp_path / "items") as again:
        assert again.model_number == 2
        assert (again.search(X[:1], 1)[0] == 0).all()


def test_a_worker_that_is_killed_in_the_middle_loses_nothing(tmp_path, cluster):
    alone, items, X = twins(tmp_path, 12_000, 12)
    victim, seen = cluster.workers.pop(), []

    def kill(done, _):
        if not seen:
            victim.kill()
            victim.wait()
        seen.append(done)

    with cluster_executor(cluster.scheduler) as executor:
        assert items.refresh(executor=executor, progress=kill)
    assert alone.refresh()
    assert seen[0] < seen[-1] == 12_000
    assert items.encoded_items == alone.encoded_items
    assert_same(items, alone, X)
    cluster.workers.append(cluster.start_worker())
    cluster.wait_for_workers(2)
    alone.close()
    items.close()


def test_experiments_run_on_a_cluster(cluster):
    data = load_data("digits")
    cells = [plan_cell("lsh", data, 16, seed, stream=200, checkpoints=1) for seed in (0, 1, 2)]
    here = [row["metrics"] for row in run_cells(cells, jobs=1)]
    with cluster_executor(cluster.scheduler) as executor:
        weighed = Weighed(executor)
        there = [row["metrics"] for row in run_cells(cells, executor=weighed)]
    assert there == here
    assert max(weighed.sizes) < 10 * SMALL


def test_the_papers_tables_are_made_on_a_cluster(tmp_path, cluster):
    need_data("mnist")
    words = ("reproduce", "mnist-table", "--data", "mnist", "--quick", "--method", "lsh")
    done = subprocess.run(
        [PROGRAM, *words, "--scheduler", cluster.scheduler, "--out", tmp_path],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert {row["method"] for row in read_folder(tmp_path)} == {"lsh"}


@pytest.mark.parametrize("cut", ["at random", "by class"])
def test_workers_learn_a_half_each(tmp_path, cluster, cut):
    data = load_data("digits")
    X, y = data.X[:1400].astype(np.float32), data.y[:1400]
    is_first = np.arange(1400) % 2 == 0 if cut == "at random" else y < 5
    files = [tmp_path / name for name in ("first.npz", "second.npz")]
    for file, rows in zip(files, (is_first, ~is_first), strict=True):
        np.savez(file, X=X[rows], y=y[rows])

    def read(file):
        with np.load(file) as arrays:
            yield from zip(*(np.array_split(arrays[name], 4) for name in "Xy"), strict=True)

    def quality(model):
        asked = model.transform(data.X[1400:]), data.y[1400:]
        return mean_average_precision(*asked, model.transform(X), y)

    hasher = SDOH(32, n_features=512, random_state=0)
    with cluster_executor(cluster.scheduler) as executor:
        weighed = Weighed(executor)
        model = learn_on(weighed, hasher, read, files)
        halves = [learn_on(executor, hasher, read, [file]) for file in files]
    assert weighed.submitted == 2
    assert sorted(weighed.sizes)[1] < SMALL < X.nbytes // 10  # no rows among the two tasks
    assert not hasattr(hasher, "n_samples_seen_")
    assert model.get_params() == hasher.get_params()
    assert [each.n_samples_seen_ for each in (model, *halves)] == [
        1400,
        *map(sum, (is_first, ~is_first)),
    ]
    whole = quality(SDOH(32, n_features=512, random_state=0).fit(X, y))
    assert quality(model) == pytest.approx(whole, abs=0.01)
    if cut == "by class":
        assert max(map(quality, halves)) < whole - 0.2


def test_only_what_can_be_merged_is_learned_on_a_cluster(cluster):
    with cluster_executor(cluster.scheduler) as executor:
        with pytest.raises(InputError, match="models of HCOH cannot be merged; take SDOH"):
            learn_on(executor, HCOH(32), list, [[]])
        with pytest.raises(InputError, match="no shares to learn; pass at least one"):
            learn_on(executor, SDOH(32), list, [])


def test_a_scheduler_that_is_not_there_is_an_error():
    with (
        pytest.raises(UnreachableError, match="no scheduler answers there"),
        cluster_executor("tcp://127.0.0.1:1", patience=0.5),
    ):
        pass
