"""What each refresh policy finds and costs: a stream of labelled items, searched all the while.

    python benchmarks/refresh_policies.py                               # MNIST at full speed
    python benchmarks/refresh_policies.py --data long-tail --items 3000 --every 1
    python benchmarks/refresh_policies.py --data long-tail --items 3000 --every 1 --stored 60000

The same stream goes to one collection after the other, 200 items at a time, with ids that are
strings, titles and prices: as fast as it is taken, or a piece ``--every`` so many seconds. With
``--stored`` so many items without labels are there before: there is much to encode anew. Every
1,000 items (of a long stream, 5,000), 500 rows that the stream holds back ask for their ten
nearest: precision is the share of their class, whatever label it came with. Its mean along the
stream says what users saw; then there is what they see right at the end, once the collection has
caught up, and after a refresh by hand, with the seconds that this takes. *refreshing* is the share
of the time that refreshes took. Rows are appended to ``--out``.

The clock of refreshes is the processor time of this process, so that a busy machine changes
nothing, and pauses are not waited for: the clock is set forward. Rows of the stream alone are used,
no test query. Embeddings (``long-tail``) are synthetic, with 5 % of wrong labels.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix
from streamhash.lab import make_hasher
from streamhash.lab.datasets import LongTailStream, load_data
from streamhash.live import Collection, refresh

BATCH, QUERIES = 200, 500
STORED_BATCH = 10_000  # items without labels, at a time


class Clock:
    """Processor time, and the pauses that were not waited for."""

    def __init__(self) -> None:
        self._skipped = time.time() - time.process_time()

    def time(self) -> float:
        """Return the seconds."""
        return time.process_time() + self._skipped

    monotonic = time

    def forward(self, until: float) -> None:
        """Set it to a later time, if that is later."""
        self._skipped += max(until - self.time(), 0.0)


class Stream(NamedTuple):
    """Rows with the labels that come with them and their true ones, and queries with theirs."""

    X: Matrix
    y: list[int]
    true: NDArray[np.int64]
    queries: Matrix
    wanted: NDArray[np.int64]


def read(data: str, n: int, seed: int) -> Stream:
    """Return a stream in random order."""
    total = n + QUERIES
    if data == "long-tail":
        stream = LongTailStream(random_state=seed)
        (X, true), y = stream.take(total), stream.labels(total)
    else:
        found = load_data(data)
        order = np.random.default_rng(seed).permutation(len(found.X))[:total]
        X, true = found.X[order], np.asarray(found.y)[order]
        y = true
    return Stream(X[QUERIES:], y[QUERIES:].tolist(), true[QUERIES:], X[:QUERIES], true[:QUERIES])


def precision(items: Collection, stream: Stream) -> float:
    """Return the share of right ones among the ten nearest."""
    places = [
        [int(each.removeprefix("item-")) for each in row]
        for row in items.search(stream.queries, 10).ids
    ]
    return float((stream.true[np.array(places)] == stream.wanted[:, None]).mean())


def add(items: Collection, stream: Stream, start: int, stop: int, *, labels: bool) -> None:
    """Add the items at these places of the stream."""
    places = range(start, stop)
    items.add(
        [f"item-{place}" for place in places],
        stream.X[start:stop],
        stream.y[start:stop] if labels else None,
        metadata=[{"title": f"Number {place}", "price": place % 97} for place in places],
    )


def run(
    policy: str, method: str, stream: Stream, *, every: float, look: int, stored: int
) -> dict[str, Any]:
    """Take the stream by a policy; return what was seen."""
    along: list[float] = []
    clock = Clock()
    refresh.__dict__["time"] = clock
    with tempfile.TemporaryDirectory() as folder:
        hasher = make_hasher(method, 32, 0)
        items = Collection.create(f"{folder}/items", hasher, refresh=policy, random_state=0)
        for at in range(0, stored, STORED_BATCH):
            add(items, stream, at, min(at + STORED_BATCH, stored), labels=False)
        start = clock.time()
        for number, at in enumerate(range(stored, len(stream.X), BATCH)):
            clock.forward(start + number * every)
            add(items, stream, at, min(at + BATCH, len(stream.X)), labels=True)
            if (at - stored + BATCH) % look == 0:
                along.append(precision(items, stream))
        took, done = clock.time() - start, items.history().refreshes
        end = precision(items, stream)
        items.catch_up()
        rest = precision(items, stream)
        begun = clock.time()
        items.refresh()
        seconds = clock.time() - begun
        by_hand = precision(items, stream)
        items.close()
    return {
        "along": along,
        "end": end,
        "rest": rest,
        "by_hand": by_hand,
        "by_hand_seconds": seconds,
        "refreshes": len(done),
        "longest": max(event["seconds"] for event in done),
        "refreshing": sum(event["seconds"] for event in done) / took,
        "seconds": took,
    }


def main() -> None:
    """Print a line for each policy, and keep a row."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--items", type=int, default=6000)
    parser.add_argument("--stored", type=int, default=0, help="items without labels before")
    parser.add_argument("--every", type=float, default=0.0, help="seconds from piece to piece")
    parser.add_argument("--method", default="sdoh")
    parser.add_argument("--policies", default="200,gain,auto,manual")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a file of rows, such as results/live/...jsonl")
    given = parser.parse_args()
    look = 1000 if given.items <= 20_000 else 5000
    stream = read(given.data, given.stored + given.items, given.seed)
    pace = f"every {given.every:g} s" if given.every else "at full speed"
    print(
        f"{given.data}, {given.method}, 32 bits, {given.items:,} items after {given.stored:,}, "
        f"{BATCH} at a time, {pace}, seed {given.seed}\n"
        "refresh     along  at end  at rest  by hand  seconds by hand  refreshes  refreshing"
    )
    for policy in given.policies.split(","):
        options = {"every": given.every, "look": look, "stored": given.stored}
        seen = run(policy, given.method, stream, **options)
        print(
            f"{policy:<10} {np.mean(seen['along']):>6.3f} {seen['end']:>7.3f} {seen['rest']:>8.3f} "
            f"{seen['by_hand']:>8.3f} {seen['by_hand_seconds']:>16.1f} {seen['refreshes']:>10} "
            f"{seen['refreshing']:>11.1%}",
            flush=True,
        )
        if given.out:
            facts = {
                name: getattr(given, name) for name in ("data", "items", "stored", "every", "seed")
            }
            with given.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**facts, "look": look, "policy": policy, **seen}) + "\n")


if __name__ == "__main__":
    main()
