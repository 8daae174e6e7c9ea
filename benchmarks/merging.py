"""Learning on a cluster: two workers learn half a stream each, and their models are merged.

    python benchmarks/merging.py

A scheduler of Dask and two worker processes of one thread each. The stream is that of the papers'
protocol, 20,000 rows; it is cut into random halves, and, which is harder, into halves that have no
class in common. mAP of the model of the whole stream, learned in this process, of the models of the
two halves, and of the two merged. A worker's CPU seconds are for learning alone: the hash functions
are worked out here.
"""

import argparse
import pickle
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _machine import describe_machine
from reencoding import start_cluster
from streamhash import SDOH, mean_average_precision, set_threads
from streamhash.cluster import learn_on
from streamhash.lab import plan_cell
from streamhash.lab.datasets import DataSet, load_data
from streamhash.lab.run import PreparedSplit, prepare_split

BITS, TOGETHER, WORKERS = 32, 2000, 2
CUTS = ("at random", "by class")


def read(share: str) -> Iterator[tuple[Any, Any]]:
    """Read a share of the stream piece by piece, on the worker."""
    X, y = np.load(f"{share}-X.npy", mmap_mode="r"), np.load(f"{share}-y.npy")
    for start in range(0, len(X), TOGETHER):
        yield X[start : start + TOGETHER], y[start : start + TOGETHER]


def write(share: Path, X: NDArray[Any], y: NDArray[Any]) -> str:
    np.save(f"{share}-X.npy", X)
    np.save(f"{share}-y.npy", y)
    return str(share)


def in_first_half(y: NDArray[Any], cut: str, seed: int) -> NDArray[np.bool_]:
    if cut == "at random":
        return np.arange(len(y)) < len(y) // 2  # the stream is shuffled
    names = np.random.default_rng(seed).permutation(np.unique(y))
    return np.isin(y, names[: len(names) // 2])


class Costs:
    """Seconds of the whole stream here and of its halves on the workers; bytes of a model."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.whole: list[tuple[float, float]] = []  # wall, CPU
        self.merged: list[tuple[float, float]] = []  # wall, CPU of the busiest worker
        self.merging: list[float] = []  # wall, of putting two models together
        self.sizes: list[int] = []

    def learn_whole(self, hasher: SDOH, share: str) -> SDOH:
        wall, cpu = time.perf_counter(), time.process_time()
        for X, y in read(share):
            hasher.partial_fit(X, y)
        hasher.settle()
        self.whole.append((time.perf_counter() - wall, time.process_time() - cpu))
        return hasher

    def learn_merged(self, hasher: SDOH, shares: list[str]) -> SDOH:
        before, wall = self._worker_seconds(), time.perf_counter()
        model = learn_on(self._client.get_executor(pure=False), hasher, read, shares)
        model.settle()
        passed, after = time.perf_counter() - wall, self._worker_seconds()
        self.merged.append((passed, max(after[name] - before[name] for name in after)))
        return model

    def learn_half(self, hasher: SDOH, share: str) -> SDOH:
        model = learn_on(self._client.get_executor(pure=False), hasher, read, [share])
        self.sizes.append(len(pickle.dumps(model, protocol=5)))
        return model

    def merge(self, halves: list[SDOH]) -> None:
        wall = time.perf_counter()
        SDOH.merged(*halves)
        self.merging.append(time.perf_counter() - wall)

    def _worker_seconds(self) -> dict[str, float]:
        found: dict[str, float] = self._client.run(time.process_time)
        return found

    def __str__(self) -> str:
        (wall, cpu), (both, worker) = np.median(self.whole, 0), np.median(self.merged, 0)
        return (
            f"whole {wall:.1f} s ({cpu:.1f} of CPU); two workers {both:.1f} s ({worker:.1f} of CPU"
            f" the busier one); merging {np.median(self.merging):.2f} s; a model travels in"
            f" {max(self.sizes) / 1e6:.1f} MB"
        )


def quality(model: SDOH, parts: PreparedSplit) -> float:
    return mean_average_precision(*parts.encode(model))


def compare(client: Any, data: DataSet, seeds: int, stream: int | None) -> None:
    costs = Costs(client)
    found: dict[str, list[list[float]]] = {cut: [] for cut in CUTS}
    for seed in range(seeds):
        parts = prepare_split(plan_cell("sdoh", data, BITS, seed, stream=stream))
        X, y = parts.stream[: len(parts.stream)], parts.stream.labels
        hasher = SDOH(BITS, random_state=seed)
        with tempfile.TemporaryDirectory() as folder:
            share = write(Path(folder) / "whole", X, y)
            whole = quality(costs.learn_whole(SDOH(BITS, random_state=seed), share), parts)
            for cut in CUTS:
                first = in_first_half(y, cut, seed)
                shares = [
                    write(Path(folder) / name, X[rows], y[rows])
                    for name, rows in (("first", first), ("second", ~first))
                ]
                halves = [costs.learn_half(hasher, share) for share in shares]
                costs.merge(halves)
                merged = costs.learn_merged(hasher, shares)
                models = (*halves, merged)
                found[cut].append([whole, *(quality(model, parts) for model in models)])
    for cut in CUTS:
        values = np.array(found[cut])
        apart = np.abs(values[:, 3] - values[:, 0]).max()
        cells = "".join(f"{value:>9.3f}" for value in values.mean(axis=0))
        print(f"{data.name:<20}{cut:<11}{cells}{apart:>15.3f}", flush=True)
    print(f"  {costs}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="mnist,miniplaces-features")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--stream", type=int, default=20_000)
    chosen = parser.parse_args()
    from distributed import Client

    set_threads(1)
    print(describe_machine("distributed"))
    print(f"\nSDOH, {BITS} bits, {chosen.stream:,} rows, mAP, mean of {chosen.seeds} seeds;")
    print("seconds: median, with working out the hash functions\n")
    heads = ("whole", "1st half", "2nd half", "merged")
    print(f"{'data':<20}{'cut':<11}" + "".join(f"{head:>9}" for head in heads) + "   largest diff.")
    with tempfile.TemporaryDirectory() as folder:
        address, processes = start_cluster(Path(folder), WORKERS)
        try:
            client: Any = Client(address, set_as_default=False)  # type: ignore[no-untyped-call]
            with client:
                client.wait_for_workers(WORKERS)
                for name in chosen.data.split(","):
                    compare(client, load_data(name), chosen.seeds, chosen.stream)
        finally:
            for process in processes:
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
