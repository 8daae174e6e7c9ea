"""How far do judged answers alone take a method, beside as many labels?

A collection of 10,000 rows of MNIST without labels is asked by 1,000 other rows of the training
part, 100 at a time; each of the ten nearest items is judged as an answer, good if it has the
query's digit, and one judgement in ten is wrong. After 100 queries the method learns these 1,000
pairs, and all items are encoded anew, so that the next ones ask a better model. The first ask codes
that nobody has learned (LSH). Beside it, the same method learns as many labels of items, none of
them wrong. Quality is the mean average precision of all items, asked by 1,000 test rows.

    python benchmarks/feedback.py [--bits 32] [--seeds 3] [--tune] [--out FILE.jsonl]

Methods have their default settings; ``--tune`` asks rows set aside from the training part instead
of test rows, for decisions. Rows are appended to ``--out``; those there are not run again.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import streamhash
from streamhash import LSH, HammingIndex, OnlineHasher, mean_average_precision
from streamhash.hashers import METHODS
from streamhash.lab.datasets import load_data
from streamhash.lab.rows import to_json
from streamhash.lab.run import describe_machine

ITEMS, QUERIES, ROUND, ANSWERS, WRONG, ASKED = 10_000, 1_000, 100, 10, 0.1, 1_000
LEARNERS = ("sdoh", "okh", "adapthash", "mihash")
OUT = Path(__file__).parents[1] / "results" / "live" / "feedback.jsonl"


class Task:
    """The rows of one seed: items, queries whose answers are judged, and those that measure."""

    def __init__(self, seed: int, *, tune: bool) -> None:
        data = load_data("mnist")
        X, y = np.asarray(data.X, np.float32), np.asarray(data.y)
        n_train = len(X) - 10_000
        order = np.random.default_rng(seed).permutation(n_train)
        test = n_train + np.random.default_rng(seed).permutation(10_000)[:ASKED]
        if tune:
            test = order[ITEMS + QUERIES :][:ASKED]
        parts = order[:ITEMS], order[ITEMS : ITEMS + QUERIES], test
        (self.items, self.digits), (self.queries, self.asked), self.test = (
            (X[rows], y[rows]) for rows in parts
        )

    def quality(self, model: OnlineHasher) -> float:
        """Mean average precision of all items."""
        X, y = self.test
        codes = model.transform(self.items)
        return float(mean_average_precision(model.transform(X), y, codes, self.digits))


def judged_answers(
    task: Task, model: OnlineHasher, first: int, random: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_], float]:
    """Ask a model; return rows of queries and answers, what was judged, and how many were right."""
    some = slice(first, first + ROUND)
    index = HammingIndex(model.n_bits)
    index.add(None, model.transform(task.items))
    places = index.search(model.transform(task.queries[some]), ANSWERS)[1]
    right = task.digits[places] == task.asked[some][:, None]
    said = right ^ (random.random(right.shape) < WRONG)
    queries = np.repeat(task.queries[some], ANSWERS, axis=0)
    return queries, task.items[places.ravel()], said.ravel(), float(right.mean())


def by_feedback(task: Task, method: str, bits: int, seed: int) -> list[list[float]]:
    """Judged answers so far, quality, and of the answers the share that was right."""
    random, model = np.random.default_rng(seed), METHODS[method](bits, random_state=seed)
    asked: OnlineHasher = LSH(bits, random_state=seed).fit(task.items)
    points = [[0, task.quality(asked), np.nan]]
    for first in range(0, QUERIES, ROUND):
        queries, answers, said, right = judged_answers(task, asked, first, random)
        asked = model.partial_fit_pairs(queries, answers, said)
        points.append([(first + ROUND) * ANSWERS, task.quality(asked), right])
    return points


def by_labels(task: Task, method: str, bits: int, seed: int) -> list[list[float]]:
    """Labels so far, and quality."""
    model, points = METHODS[method](bits, random_state=seed), []
    for first in range(0, ITEMS, ROUND * ANSWERS):
        some = slice(first, first + ROUND * ANSWERS)
        model.partial_fit(task.items[some], task.digits[some])
        points.append([some.stop, task.quality(model)])
    return points


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    lines = given.out.read_text(encoding="utf-8").splitlines() if given.out.exists() else []
    names = ("method", "way", "bits", "seed", "tune")
    there = {tuple(row[name] for name in names) for row in map(json.loads, lines)}
    for seed in range(given.seeds):
        task = Task(seed, tune=given.tune)
        for method in LEARNERS:
            for way, run in (("feedback", by_feedback), ("labels", by_labels)):
                cell = dict(zip(names, (method, way, given.bits, seed, given.tune), strict=True))
                if tuple(cell.values()) in there:
                    continue
                start = time.process_time()
                points = run(task, method, given.bits, seed)
                row = {
                    **cell,
                    "points": [[n, *(round(each, 4) for each in rest)] for n, *rest in points],
                    "seconds": time.process_time() - start,
                    "wrong": WRONG,
                    "items": ITEMS,
                    "queries": ASKED,
                    "version": streamhash.__version__,
                    "machine": describe_machine(),
                }
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(to_json(row) + "\n")
                print(method, way, seed, row["points"][-1], f"{row['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
