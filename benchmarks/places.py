"""Evaluation at the size of Places205: 4,100 queries against 2.5 million items, in bounded memory.

Codes are those of made-up data of that size and shape (205 classes), hashed by a short SDOH; the
metrics are the paper's two. Wall and processor seconds, and the memory of the whole process.

    python benchmarks/places.py
"""

import resource
import time

import numpy as np

from _machine import describe_machine
from streamhash import SDOH, get_threads
from streamhash.lab.datasets import PlacesLikeStream
from streamhash.metrics import mean_average_precision, precision_within_radius

ITEMS, QUERIES, PIECE_ROWS = 2_500_000, 4_100, 50_000


def main() -> None:
    print(describe_machine())
    stream = PlacesLikeStream(random_state=0)
    hasher = SDOH(64, random_state=0).partial_fit(*stream.take(20_000))
    codes, labels = [], []
    for X, y in stream.pieces(ITEMS + QUERIES, size=PIECE_ROWS):
        codes.append(hasher.transform(X))
        labels.append(y)
    database, names = np.concatenate(codes), np.concatenate(labels)
    asked = (database[ITEMS:], names[ITEMS:], database[:ITEMS], names[:ITEMS])
    mean_average_precision(*(part[:2000] for part in asked), top=1000)  # compiled before the clock
    precision_within_radius(*(part[:2000] for part in asked), radius=2)
    print(f"{QUERIES:,} queries x {ITEMS:,} items of 64 bits, {get_threads()} threads")
    for name in ("mAP@1000", "precision@H2"):
        wall, cpu = time.perf_counter(), time.process_time()
        if name == "mAP@1000":
            value = mean_average_precision(*asked, top=1000)
        else:
            value = precision_within_radius(*asked, radius=2)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        rate = QUERIES * ITEMS / cpu / 1e9
        print(f"{name:<14}{value:.3f}   {wall:6.1f} s, {cpu:6.1f} s of CPU, {rate:.2f} G pairs/s")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"memory of the process at most {memory:.2f} GiB, codes {database.nbytes / 2**30:.2f}")


if __name__ == "__main__":
    main()
