"""Searches among some of the items, and for queries that are not rounded to bits, beside the plain
search.

A million codes of 64 bits around common centres, one thread, all in one run, rounds interleaved,
the least processor time of each. A filtered search includes all it takes to go from a mask (or from
ids, or from a mask by key as a collection has it) to the answer. *Untidy* is an index of which a
tenth was deleted and a hundredth replaced. *Many equal* are codes like learned ones: ten classes,
every third code that of its class. Answers are compared with those of the plain NumPy twin.
Read the ratios: they hold on other machines, the milliseconds do not.

    python benchmarks/answers.py [--quick]
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _machine import describe_machine
from streamhash import HammingIndex, pack, set_threads
from streamhash.kernels.hamming import asymmetric, scan

QUICK = "--quick" in sys.argv
N, N_CLUSTERS = (100_000 if QUICK else 1_000_000), 1_000
SHARES = (0.001, 0.01, 0.1, 0.5, 0.9)
Call = Callable[[], Any]


def make(
    n_bits: int, n_clusters: int = N_CLUSTERS, spread: float = 0.5
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Codes of items, and projections of queries, around the same centres."""
    rng = np.random.default_rng(n_bits)
    centres = rng.standard_normal((n_clusters, n_bits), np.float32)

    def draw(n: int) -> NDArray[np.float32]:
        noise = rng.standard_normal((n, n_bits), np.float32)
        drawn: NDArray[np.float32] = centres[rng.integers(0, n_clusters, n)] + spread * noise
        return drawn

    return np.concatenate([pack(draw(N // 10)) for _ in range(10)]), draw(1_000)


def least_times(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """Least processor time of each; a search that goes on all day finds its codes in the cache."""
    seconds = dict.fromkeys(calls, np.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            for _ in range(3):
                start = time.process_time()
                call()
                seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds


def show(title: str, seconds: dict[str, float]) -> None:
    """Milliseconds, how many times the plain search, and what is above 1.5 times of it."""
    plain = seconds["plain search"]
    print(f"\n{title:<46}{'ms':>8}{'ratio':>8}{'ms above 1.5':>14}")
    for name, taken in seconds.items():
        above = max(taken - 1.5 * plain, 0) * 1e3
        print(f"  {name:<44}{taken * 1e3:>8.3f}{taken / plain:>8.2f}{above:>14.3f}")


def filters(index: HammingIndex, untidy: HammingIndex, queries: NDArray[np.uint8], k: int) -> None:
    """Searches among random shares of the items, and among the last ones."""
    rng, moment = np.random.default_rng(0), index.moment()
    keys = index.ids
    calls: dict[str, Call] = {"plain search": lambda: index.search(queries, k)}

    def add(name: str, searched: HammingIndex, allowed: Any) -> None:
        calls[name] = lambda: searched.search(queries, k, allowed=allowed)
        seen = searched.moment()
        seen = seen.where(allowed) if allowed.dtype == bool else seen.with_keys(allowed)
        found, positions = scan.plain_nearest(queries[:2], seen.items, k)
        distances, ids = searched.search(queries[:2], k, allowed=allowed)
        there = found.shape[1]  # fewer than k where so few are allowed
        np.testing.assert_array_equal(distances[:, :there], found)
        np.testing.assert_array_equal(ids[:, :there], seen.ids[positions])
        assert (ids[:, there:] == -1).all()

    def by_key(mask: NDArray[np.bool_]) -> Call:
        return lambda: index.search(queries, k, at=moment.with_keys(keys, mask))

    for share in SHARES:
        mask = rng.random(N) < share
        add(f"{share:.1%}, a mask", index, mask)
        calls[f"{share:.1%}, a mask by key"] = by_key(mask)
    add("1.0%, the last ones", index, np.arange(N) >= 0.99 * N)
    add("1.0%, ids", index, np.flatnonzero(rng.random(N) < 0.01))
    for share in (0.01, 0.9):
        add(f"{share:.1%}, a mask, untidy", untidy, rng.random(len(untidy)) < share)
    asked = "one query" if len(queries) == 1 else f"{len(queries)} queries"
    show(f"{asked}, k = {k}", least_times(calls, 12 if len(queries) == 1 else 3))


def real(title: str, index: HammingIndex, projections: NDArray[np.float32], k: int) -> None:
    """Searches by asymmetric distance."""
    queries, mask = pack(projections), np.random.default_rng(0).random(N) < 0.1
    found, positions = asymmetric.plain_nearest(projections[:2], index.moment().items, k)
    distances, ids = index.search_real(projections[:2], k)
    np.testing.assert_array_equal(distances, found)
    np.testing.assert_array_equal(ids, positions)
    calls: dict[str, Call] = {
        "plain search": lambda: index.search(queries, k),
        "real-valued": lambda: index.search_real(projections, k),
        "real-valued, 10.0%, a mask": lambda: index.search_real(projections, k, allowed=mask),
    }
    asked = "one query" if len(queries) == 1 else f"{len(queries)} queries"
    show(f"{asked}, k = {k}, {title}", least_times(calls, 12 if len(queries) == 1 else 3))


def filled(n_bits: int, codes: NDArray[np.uint8]) -> HammingIndex:
    """An index of these codes."""
    index = HammingIndex(n_bits)
    index.add(None, codes)
    return index


def main() -> None:
    set_threads(1)
    print(describe_machine())
    codes, projections = make(64)
    index, untidy = filled(64, codes), filled(64, codes)
    untidy.delete(np.flatnonzero(np.random.default_rng(1).random(N) < 0.1))
    some = untidy.ids[::100]
    untidy.replace(some, codes[some])
    print(f"\nFilters: {N:,} codes of 64 bits")
    for n_queries, k in ((1, 10), (1, 100), (100, 10)):
        filters(index, untidy, pack(projections[:n_queries]), k)
    print(f"\nReal-valued queries: {N:,} codes")
    kinds = {
        "64 bits": (64, N_CLUSTERS, 0.5),
        "128 bits": (128, N_CLUSTERS, 0.5),
        "64 bits, many equal": (64, 10, 0.05),
    }
    for title, (n_bits, n_clusters, spread) in kinds.items():
        codes, projections = make(n_bits, n_clusters, spread)
        index = filled(n_bits, codes)
        for n_queries, k in ((1, 10), (1, 1000), (100, 10)):
            real(title, index, projections[:n_queries], k)


if __name__ == "__main__":
    main()
