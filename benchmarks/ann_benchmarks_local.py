"""ann-benchmarks itself, by ``--local`` (no docker): its runner, its clock, its metrics, its plot.

Takes a checkout of https://github.com/erikbern/ann-benchmarks, and runs in an environment that has
what it requires and ``streamhash[faiss]``. The adapter (examples/ann_benchmarks) is copied into the
checkout; the data sets of benchmarks/ann_benchmarks.py go into its ``data/``, with
``point_type = bit``, by which it chooses algorithms. Then its ``run.py`` and ``plot.py`` are called
as they are, one query at a time and in batches. What this script adds:

- ``--dataset`` takes names of a table only; so a line adds ours before it starts ``run.py``;
- a container has one core, or with ``--batch`` all; here the process is given as many;
- its worker at times finds its queue empty before it is filled, and ends with nothing done; as
  ``run.py`` leaves out what has results, it is called until nothing is left to run, or nothing
  comes of it (where lists are too small, its faiss answers -1 twice, which its runner refuses);
- beside ours, two of its own: faiss's IVF of floats, which is what it runs on Hamming data, with
  256 lists, and brute force (scikit-learn), which takes the distance, but has no definition for it.
  Brute force is slow: it runs once, and not in batches.

Many runs of few queries, since the best counts: other work on the machine lengthens all of long
ones. It goes by the clock; benchmarks/ann_benchmarks.py by processor time, too.

    python benchmarks/ann_benchmarks_local.py CHECKOUT [DATA ...] [--queries 200] [--runs 30]
        [--batch-runs 5]

A file of its results is a row of results/ann_benchmarks/local.jsonl; what has a row is not written
again. Its plots are results/DATA.png and results/DATA-batch.png in the checkout; one is shown in
docs/search.md.
"""

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import h5py

from ann_benchmarks import COUNT, ROOT, SETS, make_data
from streamhash import __version__
from streamhash.lab import append_row
from streamhash.lab.run import describe_machine

ROWS = ROOT / "results" / "ann_benchmarks" / "local.jsonl"
SHOWN, FIGURE = "mnist-itq-256-hamming", ROOT / "docs" / "figures" / "ann-benchmarks-local.png"
START = (
    "import runpy, sys; from ann_benchmarks.datasets import DATASETS; "
    "DATASETS[sys.argv[sys.argv.index('--dataset') + 1]] = None; "
    "runpy.run_path('run.py', run_name='__main__')"
)
OURS = ("streamhash-exact", "streamhash-buckets")
THEIRS: dict[str, dict[str, Any]] = {  # by name: definitions for bits
    "faiss-ivf": {
        "module": "ann_benchmarks.algorithms.faiss",
        "constructor": "FaissIVF",
        "base_args": ["euclidean"],
        "run_groups": {
            "base": {"args": [256], "query_args": [[32, 16, 8, 4, 2, 1]]},
        },
    },
    "bruteforce": {
        "module": "ann_benchmarks.algorithms.bruteforce",
        "constructor": "BruteForce",
        "base_args": ["@metric"],
        "run_groups": {"base": {"args": []}},
    },
}


def prepare(checkout: Path, names: list[str], n_queries: int) -> None:
    """Put the adapter, the definitions and the data sets into a checkout."""
    definitions = checkout / "definitions"
    for folder in (checkout / "ann_benchmarks" / "algorithms", definitions):
        shutil.copytree(
            ROOT / "examples" / "ann_benchmarks", folder / "streamhash", dirs_exist_ok=True
        )
    for name, definition in THEIRS.items():
        path = definitions / name / "config.yml"
        path.parent.mkdir(exist_ok=True)
        whole = {"name": name, "docker_tag": "none", **definition}
        path.write_text(json.dumps({"bit": {"hamming": [whole]}}), encoding="utf-8")  # is YAML
    (checkout / "data").mkdir(exist_ok=True)
    for name in names:
        with (
            h5py.File(make_data(name), "r") as made,
            h5py.File(checkout / "data" / f"{name}.hdf5", "w") as file,
        ):
            file.attrs.update({**made.attrs, "point_type": "bit"})
            file["train"] = made["train"][:]
            for part in ("test", "neighbors", "distances"):
                file[part] = made[part][:n_queries]


def run(checkout: Path, name: str, algorithm: str, batch: bool, n_runs: int) -> list[float]:
    """Call its run.py until nothing is left to run; return the load before and after."""
    cores, load, results = os.sched_getaffinity(0), os.getloadavg()[0], checkout / "results" / name
    command = [sys.executable, "-c", START, "--local", "--definitions", "definitions"]
    command += ["--dataset", name, "--algorithm", algorithm]
    command += ["--count", str(COUNT), "--runs", str(n_runs), *(["--batch"] if batch else [])]
    if not batch:
        os.sched_setaffinity(0, {max(cores)})
    idle = 0
    try:
        while idle < 4:
            before = len([*results.rglob("*.hdf5")])
            done = subprocess.run(command, cwd=checkout, capture_output=True, text=True)
            if "Nothing to run" in done.stderr:
                break
            idle = idle + 1 if len([*results.rglob("*.hdf5")]) == before else 0
        else:
            print(f"{algorithm} on {name} leaves something out: {done.stderr[-200:]}")
    finally:
        os.sched_setaffinity(0, cores)
    return [round(load, 2), round(os.getloadavg()[0], 2)]


def plot(checkout: Path, name: str, batch: bool) -> None:
    """Call its plot.py, which also computes the recall that a row has."""
    command = [sys.executable, "plot.py", "--dataset", name, "--count", str(COUNT), "-Y", "log"]
    command += ["--batch"] if batch else []
    subprocess.run(command, cwd=checkout, check=True, stdout=subprocess.DEVNULL)


def rows(checkout: Path, name: str, batch: bool) -> Iterator[dict[str, Any]]:
    """Yield what its result files say, of one data set and mode."""
    for path in sorted((checkout / "results" / name / str(COUNT)).rglob("*.hdf5")):
        with h5py.File(path, "r") as file:
            if bool(file.attrs["batch_mode"]) != batch:
                continue
            moment = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
            yield {
                "data": name,
                "algorithm": str(file.attrs["algo"]),
                "parameters": str(file.attrs["name"]),
                "batch": batch,
                "recall": float(file["metrics"]["knn"].attrs["mean"]),
                "queries_per_second": 1 / float(file.attrs["best_search_time"]),
                "build_seconds": float(file.attrs["build_time"]),
                "index_kilobytes": float(file.attrs["index_size"]),
                "queries": len(file["times"]),
                "count": int(file.attrs["count"]),
                "runs": int(file.attrs["run_count"]),
                "version": __version__,
                "faiss": version("faiss-cpu"),
                "machine": describe_machine(),
                "date": str(moment.date()),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("data", nargs="*", default=[*SETS])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--batch-runs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROWS)
    arguments = parser.parse_args()
    key = ("data", "algorithm", "parameters", "batch")
    lines = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    there = {tuple(json.loads(line)[part] for part in key) for line in lines}
    checkout = arguments.checkout.resolve()
    prepare(checkout, arguments.data, arguments.queries)
    for batch, name in product((False, True), arguments.data):
        loads = {}
        for algorithm in (*OURS, *THEIRS):
            slow = algorithm == "bruteforce"
            if not (slow and batch):
                n_runs = 1 if slow else arguments.batch_runs if batch else arguments.runs
                loads[algorithm] = run(checkout, name, algorithm, batch, n_runs)
                print(f"{name}, {algorithm}, batch={batch}: load {loads[algorithm]}", flush=True)
        plot(checkout, name, batch)
        for row in rows(checkout, name, batch):
            if tuple(row[part] for part in key) not in there:
                append_row(arguments.out, {**row, "load": loads[row["algorithm"]]})
    if SHOWN in arguments.data and arguments.out == ROWS:
        shutil.copyfile(checkout / "results" / f"{SHOWN}.png", FIGURE)


if __name__ == "__main__":
    main()
