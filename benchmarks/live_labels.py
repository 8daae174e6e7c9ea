"""Several labels an item: the news of Reuters in order of time, learned by a collection.

A collection takes the first 9,000 news in pieces of 200 with their topics as lists; the method
alone learns the same rows with a 0/1 matrix. The last 2,280 are the queries; a hit shares a topic.

    python benchmarks/live_labels.py [--bits 32] [--seeds 3] [--method sdoh]

Data: ``reuters21578.npz`` in the folder STREAMHASH_DATA.
"""

import argparse
import tempfile
import time
from typing import Any

import numpy as np

from _machine import describe_machine
from streamhash.hashers import METHODS
from streamhash.lab.datasets import load_data
from streamhash.labels import label_lists
from streamhash.live import Collection
from streamhash.metrics import Retrieval, mean_over_classes

STREAM, PIECE = 9_000, 200


def measure(method: str, n_bits: int, seed: int) -> dict[str, Any]:
    """Return the figures of one seed."""
    data = load_data("reuters")
    X, Y = data.X[:STREAM], data.y[:STREAM]
    asked, topics = data.X[STREAM:], data.y[STREAM:]

    def quality(model: Any) -> tuple[float, float]:
        found = Retrieval(model.transform(asked), topics, model.transform(X), Y)
        precision = found.average_precision()
        return float(np.nanmean(precision)), mean_over_classes(precision, topics)

    hasher = METHODS[method](n_bits, random_state=seed)
    start = time.process_time()
    alone = METHODS[method](n_bits, random_state=seed).partial_fit(X, Y).settle()
    learned = time.process_time()
    with (
        tempfile.TemporaryDirectory() as folder,
        Collection.create(f"{folder}/news", hasher, random_state=seed) as news,
    ):
        for first in range(0, STREAM, PIECE):
            rows = slice(first, first + PIECE)
            news.add(range(first, first + PIECE), X[rows], label_lists(Y[rows]))
        added = time.process_time()
        news.refresh()
        curve = news.history().series
        of_alone, of_collection = quality(alone), quality(news.model())
        return {
            "alone": of_alone[0],
            "alone by class": of_alone[1],
            "collection": of_collection[0],
            "collection by class": of_collection[1],
            "precision": news.status()["quality"]["precision"],
            "refreshes": len(news.history().refreshes),
            "seconds alone": learned - start,
            "seconds added": added - learned,
            "curve": [
                (int(point["labelled"]), round(point["precision"], 3)) for point in curve[::6]
            ],
        }


def main() -> None:
    """Print a line a seed, and the means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--method", default="sdoh")
    options = parser.parse_args()
    print(describe_machine("pylance"))
    print(f"{options.method}, {options.bits} bits, mAP of {STREAM} news in order of time")
    found = []
    for seed in range(options.seeds):
        found.append(measure(options.method, options.bits, seed))
        print(f"seed {seed}: {found[-1]}", flush=True)
    means = [f"{each}{which}" for each in ("alone", "collection") for which in ("", " by class")]
    for name in (*means, "precision"):
        values = [each[name] for each in found]
        print(f"{name}: {np.mean(values):.4f} ± {np.std(values):.4f}")


if __name__ == "__main__":
    main()
