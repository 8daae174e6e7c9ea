"""Mean average precision of 1,000 queries over 59,000 items: ours against sorting per query.

One thread each, all in one run, rounds interleaved, the least processor time of each; the results
are checked to be equal. Read the ratios: they hold on other machines, the seconds do not.
"""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from _machine import describe_machine
from streamhash import mean_average_precision, pack, set_threads, unpack
from streamhash.threads import single_threaded_blas

N_QUERIES, N_ITEMS, N_CLASSES, ROUNDS = 1_000, 59_000, 10, 3

Codes = NDArray[np.uint8]
Labels = NDArray[np.int64]


def make(n_bits: int) -> tuple[Codes, Labels, Codes, Labels]:
    """Codes that cluster by class, as learned ones do: each bit flipped with probability 0.3."""
    rng = np.random.default_rng(n_bits)
    centres = rng.choice([-1.0, 1.0], (N_CLASSES, n_bits))

    def draw(n: int) -> tuple[Codes, Labels]:
        labels = rng.integers(0, N_CLASSES, n)
        return pack(centres[labels] * rng.choice([-1, 1], (n, n_bits), p=[0.3, 0.7])), labels

    return *draw(N_QUERIES), *draw(N_ITEMS)


def mean_over_rankings(
    distances_from: Callable[[int], NDArray[np.generic]], query_labels: Labels, labels: Labels
) -> float:
    """Sort the items of every query, ties in database order, and follow the definition."""
    ranks = np.arange(1, len(labels) + 1)
    values = []
    for q, label in enumerate(query_labels):
        order = np.argsort(distances_from(q), kind="stable")
        relevant = labels[order] == label
        values.append((relevant.cumsum() / ranks)[relevant].mean())
    return float(np.mean(values))


def by_sorting_floats(queries: Codes, query_labels: Labels, items: Codes, labels: Labels) -> float:
    """Distances by matrix products of ±1, as the papers' code has them, then a stable sort."""
    n_bits = 8 * items.shape[1]
    B, Q = (2 * unpack(codes, n_bits).astype(np.float32) - 1 for codes in (items, queries))
    return mean_over_rankings(lambda q: (n_bits - B @ Q[q]) / 2, query_labels, labels)


def by_sorting_bytes(queries: Codes, query_labels: Labels, items: Codes, labels: Labels) -> float:
    """Distances by counting bits, then NumPy's radix sort, which 8-bit numbers get."""
    width = 8 if items.shape[1] % 8 == 0 else 4
    B, Q = (np.ascontiguousarray(codes.view(f"u{width}").T) for codes in (items, queries))

    def distances_from(q: int) -> NDArray[np.uint8]:
        total: NDArray[np.uint8] = np.bitwise_count(B[0] ^ Q[0, q])
        for w in range(1, len(B)):
            total += np.bitwise_count(B[w] ^ Q[w, q])
        return total

    return mean_over_rankings(distances_from, query_labels, labels)


METHODS: dict[str, Callable[..., float]] = {
    "float distances, stable argsort": by_sorting_floats,
    "uint8 distances, radix argsort": by_sorting_bytes,
    "streamhash, ties='index'": mean_average_precision,
    "streamhash, ties='expected'": lambda *case: mean_average_precision(*case, ties="expected"),
}


def main() -> None:
    set_threads(1)
    print(describe_machine())
    print(f"mAP, {N_QUERIES} queries x {N_ITEMS} items, {N_CLASSES} classes, one thread")
    mean_average_precision(*(part[:10] for part in make(32)))  # compile
    mean_average_precision(*(part[:10] for part in make(32)), ties="expected")
    for n_bits in (32, 64, 128):
        case = make(n_bits)
        seconds = dict.fromkeys(METHODS, np.inf)
        values = {}
        for _ in range(ROUNDS):
            for name, method in METHODS.items():
                start = time.process_time()
                values[name] = method(*case)
                seconds[name] = min(seconds[name], time.process_time() - start)
        by_floats, by_bytes, ours, expected = values.values()
        np.testing.assert_allclose([by_bytes, ours], by_floats, rtol=1e-12)
        np.testing.assert_allclose(expected, ours, rtol=0.01)  # another policy, nearly the same
        slowest, radix = list(seconds.values())[:2]
        print(f"\n{f'{n_bits} bits':<32}{'seconds':>8}{'x argsort':>12}{'x radix':>10}{'mAP':>12}")
        for name, time_taken in seconds.items():
            ratios = f"{slowest / time_taken:>12.1f}{radix / time_taken:>10.1f}"
            print(f"{name:<32}{time_taken:>8.3f}{ratios}{values[name]:>12.6f}")


if __name__ == "__main__":
    with single_threaded_blas():
        main()
