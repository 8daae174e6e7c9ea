"""Codes set bit after bit (BSODH, FOH, SDOH-HC): the compiled sweep beside its plain twin.

    python benchmarks/bit_updates.py

d = 784, stages of 2,000 rows of ten classes, published settings, one thread, all in one run; read
the ratios. "sweep" is what all calls of one stage take, caught on their way; "class" is
``partial_fit`` of that stage, with either of the two inside. Codes are the same.
"""

import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

from _machine import describe_machine
from streamhash import BSODH, FOH, SDOHHC, OnlineHasher, set_threads
from streamhash.kernels.learning.bit_updates import plain_update_bits, update_bits
from streamhash.threads import single_threaded_blas

D, ROWS, CLASSES, ROUNDS = 784, 2000, 10, 5
METHODS: tuple[type[OnlineHasher], ...] = (BSODH, FOH, SDOHHC)


def stage(seed: int) -> tuple[Any, Any]:
    random = np.random.default_rng([seed, 1])
    y = random.integers(CLASSES, size=ROWS)
    means = np.random.default_rng(0).standard_normal((CLASSES, D))
    X = means[y] + 2 * random.standard_normal((ROWS, D))
    return (X / np.linalg.norm(X, axis=1)[:, None]).astype(np.float32), y


def seconds(call: Callable[[], Any]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def third_stage(method: type[OnlineHasher], k: int, sweep: Callable[..., Any]) -> Any:
    """Learn three stages; return the codes, the calls in the last and how long that took."""
    calls: list[tuple[Any, ...]] = []

    def caught(*arguments: Any) -> Any:
        calls.append(arguments)
        return sweep(*arguments)

    with patch(f"{method.__module__}.update_bits", caught):
        model = method.published("mnist", n_bits=k, random_state=0)
        for number in range(2):
            model.partial_fit(*stage(number))
        calls.clear()
        took = seconds(lambda: model.partial_fit(*stage(2)))
    return model.transform(stage(3)[0]), [*calls], took


def compare(method: type[OnlineHasher], k: int) -> None:
    ways = {"plain": plain_update_bits, "compiled": update_bits}
    best = {(way, what): np.inf for way in ways for what in ("sweep", "class")}
    codes = {}
    for _ in range(ROUNDS):
        for way, sweep in ways.items():
            codes[way], calls, took = third_stage(method, k, sweep)
            best[way, "class"] = min(best[way, "class"], took)
            swept = seconds(lambda: [sweep(*each) for each in calls])  # noqa: B023
            best[way, "sweep"] = min(best[way, "sweep"], swept)
    assert np.array_equal(codes["plain"], codes["compiled"]), "the codes differ"
    cells = "".join(
        f"{1e3 * best['plain', what]:9.1f} {1e3 * best['compiled', what]:9.1f}"
        f" {best['plain', what] / best['compiled', what]:6.1f}x"
        for what in ("sweep", "class")
    )
    print(f"{method.__name__:8} {k:4} {len(calls):6} {cells}")


def main() -> None:
    print(f"\nd = {D}, a stage of {ROWS} rows: CPU ms, best of {ROUNDS}, interleaved")
    print(f"{'':20} {'sweep, all calls':^26} {'class, the stage':^27}")
    print(f"{'':8} {'bits':>4} {'calls':>6} " + f"{'plain':>9} {'compiled':>9} {'ratio':>7}" * 2)
    for method in METHODS:
        for k in (32, 128):
            compare(method, k)


if __name__ == "__main__":
    set_threads(1)
    print(describe_machine())
    with single_threaded_blas():
        main()
