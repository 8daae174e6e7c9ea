"""The approximate index against the exact one: build time, speed, and what it finds.

64-bit codes in a thousand groups, each bit of a group's centre flipped with probability 1/8; the
queries are drawn likewise. Tie recall is the share of found items that are no farther than the
true k-th. One thread each, all in one run, rounds interleaved, the least processor time of each.
A million codes, then ten million.

    python benchmarks/approximate.py [--quick]

``--quick`` takes the million only.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from _machine import describe_machine
from streamhash import HammingIndex, pack, set_threads
from streamhash.search import ApproximateIndex

N_BITS, N_GROUPS, FLIP, K, ROUNDS = 64, 1_000, 1 / 8, 100, 3
PROBES = (1, 4, 8, 16)


def draw(n: int, centres: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Codes of ``n`` items, made in pieces to keep memory low."""
    pieces = []
    for first in range(0, n, 100_000):
        groups = rng.integers(0, N_GROUPS, min(100_000, n - first))
        flips = rng.random((len(groups), N_BITS), dtype=np.float32) < FLIP
        pieces.append(pack(centres[groups] ^ flips))
    return np.concatenate(pieces)


def main(n_items: int) -> None:
    set_threads(1)
    print(describe_machine("faiss-cpu"))
    rng = np.random.default_rng(0)
    centres = rng.random((N_GROUPS, N_BITS)) < 0.5
    index = HammingIndex(N_BITS)
    index.add(None, draw(n_items, centres, rng))
    queries = draw(1_000, centres, rng)
    exact, _ = index.search(queries, K)  # compiles, too

    start = time.process_time()
    near = ApproximateIndex(index, random_state=0)
    built = time.process_time() - start
    start = time.process_time()
    if near.is_stale:
        raise SystemExit("nothing has changed")
    stale = time.process_time() - start
    print(f"{n_items:,} codes of {N_BITS} bits, k={K}, one thread")
    print(f"build {built:.1f} s, is_stale {stale:.2f} s (processor time)")
    print(f"\n{'':<16}{'one query':>14}{'':>8}{'1,000 queries':>17}{'':>8}{'tie recall':>13}")
    columns = f"{'ms':>14}{'ratio':>8}{'ms a query':>17}{'ratio':>8}"
    print(f"{'':<16}{columns}")

    searches: dict[str, Callable[[NDArray[np.uint8]], NDArray[np.int32]]] = {
        "exact": lambda codes: index.search(codes, K)[0]
    }
    for n_probe in PROBES:

        def search(codes: NDArray[np.uint8], n_probe: int = n_probe) -> NDArray[np.int32]:
            near.n_probe = n_probe
            return near.search(codes, K)[0]

        searches[f"n_probe={n_probe}"] = search
    one, many = dict.fromkeys(searches, np.inf), dict.fromkeys(searches, np.inf)
    recalls = {}
    for _ in range(ROUNDS):
        for name, work in searches.items():
            for q in range(20):
                start = time.process_time()
                work(queries[q : q + 1])
                one[name] = min(one[name], time.process_time() - start)
            start = time.process_time()
            found = work(queries)
            many[name] = min(many[name], (time.process_time() - start) / len(queries))
            recalls[name] = (found <= exact[:, -1:]).mean()
    for name in searches:
        ratios = [times["exact"] / times[name] for times in (one, many)]
        print(
            f"{name:<16}{1e3 * one[name]:>14.3f}{ratios[0]:>8.1f}{1e3 * many[name]:>17.4f}"
            f"{ratios[1]:>8.1f}{recalls[name]:>13.4f}"
        )


if __name__ == "__main__":
    main(1_000_000)
    if "--quick" not in sys.argv:
        print()
        main(10_000_000)
