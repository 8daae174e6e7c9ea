"""What one extreme row, or one extreme value, in a stream does to the codes of all others.

A stream of 2,000 rows of MNIST (or of digits) gets a row of huge values, or a row with a single
one, such as the fill value of a file that was never filled in: at its start, in the middle or at
the end. Every method learns the stream with and without it; what counts is the precision of the
ten nearest neighbours of rows that were not learned, among those that were.

    python benchmarks/fault_extreme.py
"""

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

import streamhash
from streamhash import (
    BSODH,
    FROSH,
    HCOH,
    HMOH,
    ITQ,
    LSH,
    OKH,
    OSH,
    PCAH,
    SDOH,
    AdaptHash,
    AnchorMap,
    CenterScale,
    InputError,
    MIHash,
    OnlineHasher,
    SketchHash,
    StreamPipeline,
)
from streamhash.lab.run import describe_machine

RESULTS = Path(__file__).parents[1] / "results" / "faults" / "extreme.jsonl"
SIZES = (1e6, 1e15, 1e30, 9.96921e36)  # the last is NetCDF's fill value
PLACES = ("start", "middle", "end")
KINDS = ("row", "value")
PIECE = 200  # rows handed over at a time
NEIGHBOURS = 10


class Data(NamedTuple):
    """A stream, and rows that ask for their neighbours in it."""

    name: str
    X: NDArray[np.float32]
    y: NDArray[Any]
    queries: NDArray[np.float32]
    wanted: NDArray[Any]


def methods() -> dict[str, OnlineHasher]:
    """Every method with its defaults, and what else prepares rows or keeps them."""
    plain: list[Any] = [AdaptHash, BSODH, FROSH, HCOH, HMOH, ITQ, LSH, MIHash, OKH, OSH, PCAH]
    made = {each.__name__: each(32, random_state=0) for each in [*plain, SDOH, SketchHash]}
    return {
        **made,
        "SDOH by stages": SDOH(32, memory=0, features=None, random_state=0),
        "SDOH on anchors": SDOH(32, memory=0, features=None, n_anchors=300, random_state=0),
        "HMOH as published": HMOH.published("mnist", random_state=0),
        "HCOH, fourier": HCOH(32, features="fourier", random_state=0),
        "HCOH, memory": HCOH(32, memory=500, random_state=0),
        "pipeline": StreamPipeline([CenterScale(), AnchorMap(300)], HCOH(32, random_state=0)),
    }


def digits() -> Data:
    """1,400 rows of scikit-learn's digits, asked by 300."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order].astype(np.float32), y[order]
    return Data("digits", X[:1400], y[:1400], X[1400:1700], y[1400:1700])


def mnist() -> Data:
    """2,000 rows of MNIST, asked by 500."""
    from streamhash.lab.datasets import load_data

    loaded: Any = load_data("mnist")
    order = np.random.default_rng(0).permutation(len(loaded.X))[:2500]
    X, y = np.asarray(loaded.X[order], np.float32), np.asarray(loaded.y)[order]
    return Data("mnist", X[:2000], y[:2000], X[2000:], y[2000:])


def spoilt(data: Data, place: str, kind: str, size: float) -> tuple[NDArray[np.float32], int]:
    """Return the stream with one extreme row, and where that is."""
    at = {"start": 0, "middle": len(data.X) // 2, "end": len(data.X) - 1}[place]
    X = data.X.copy()
    if kind == "row":
        X[at] = size
    else:
        X[at, X.shape[1] // 2] = size
    return X, at


def learned(hasher: OnlineHasher, X: NDArray[np.float32], y: NDArray[Any]) -> Any:
    """Return a twin of the hasher that has learned the stream, piece by piece."""
    twin = clone(hasher)
    for start in range(0, len(X), PIECE):
        twin.partial_fit(X[start : start + PIECE], y[start : start + PIECE])
    return twin.settle()


def precision(model: Any, data: Data) -> float:
    """Return the share of the nearest neighbours that have the label that is wanted."""
    codes, asked = model.transform(data.X), model.transform(data.queries)
    index = streamhash.HammingIndex(model.n_bits)
    index.add(np.arange(len(codes)), codes)
    _, ids = index.search(asked, NEIGHBOURS)
    return float((data.y[ids] == data.wanted[:, None]).mean())


def outcome(hasher: OnlineHasher, data: Data, place: str, kind: str, size: float) -> dict[str, Any]:
    """Learn a stream with one extreme row; return how good the codes are, and what went wrong."""
    X, at = spoilt(data, place, kind, size)
    found: dict[str, Any] = {"precision": None, "clipped": None, "error": None, "warnings": 0}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = learned(hasher, X, data.y)
            found["precision"] = round(precision(model, data), 4)
            found["clipped"] = getattr(model, "n_clipped_", None)
            model.transform(X[at : at + 1])
        except (InputError, np.linalg.LinAlgError, ValueError) as error:
            found["error"] = f"{type(error).__name__}: {error}"
    found["warnings"] = len(caught)
    return found


def trials(data: Data, names: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Go through all methods, places, kinds and sizes."""
    for name, hasher in methods().items():
        if names and name not in names:
            continue
        without = round(precision(learned(hasher, data.X, data.y), data), 4)
        for size in SIZES:
            for kind in KINDS:
                for place in PLACES:
                    case = {"method": name, "place": place, "kind": kind, "size": size}
                    start = time.perf_counter()
                    found = outcome(hasher, data, place, kind, size)
                    seconds = round(time.perf_counter() - start, 2)
                    yield {**case, "without": without, **found, "seconds": seconds}


def run(names: list[str] | None = None, *, quick: bool = False, path: Path = RESULTS) -> None:
    """Run all trials; append a row each to the results, and print what was lost."""
    data = digits() if quick else mnist()
    facts = {
        "fault": "extreme row",
        "data": data.name,
        "rows": len(data.X),
        "version": streamhash.__version__,
        "machine": describe_machine(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    worst: dict[str, float] = {}
    with path.open("a", encoding="utf-8") as file:
        for row in trials(data, names):
            file.write(json.dumps({**facts, **row}) + "\n")
            file.flush()
            lost = row["without"] - (row["precision"] or 0.0)
            if lost > worst.get(row["method"], -1.0):
                worst[row["method"]] = lost
                print(
                    f"{row['method']:20} {row['without']:.3f} -> {row['precision']} "
                    f"({row['kind']} of {row['size']:g} at the {row['place']}) "
                    f"{row['warnings']} warnings {row['error'] or ''}"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", action="append", help="default: all")
    parser.add_argument("--quick", action="store_true", help="digits instead of MNIST")
    arguments = parser.parse_args()
    run(arguments.method, quick=arguments.quick)


if __name__ == "__main__":
    main()
