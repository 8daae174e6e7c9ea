"""Write the files that later versions must load; run once per format version and new method."""

from pathlib import Path

import numpy as np

from streamhash import (
    SDOH,
    AnchorMap,
    CenterScale,
    HammingIndex,
    SnapshotHasher,
    StreamPipeline,
    storage,
)
from streamhash.hashers import METHODS

HERE = Path(__file__).parent


def main() -> None:
    random = np.random.default_rng(0)
    y = random.integers(4, size=300)
    X = (random.standard_normal((4, 10))[y] + random.standard_normal((300, 10))).astype(np.float32)
    models = {name: method(n_bits=20, random_state=0) for name, method in METHODS.items()}
    models["sdoh_kernel"] = SDOH(n_bits=20, n_anchors=30, random_state=0)
    models["pipeline"] = StreamPipeline([CenterScale(), AnchorMap(30)], SDOH(20, random_state=0))
    models["snapshot"] = SnapshotHasher(SDOH(20, random_state=0), random_state=0)
    for name, model in models.items():
        path = HERE / f"v{storage.FORMAT_VERSION}-{name}.streamhash"
        if path.exists():  # files of a released version never change
            continue
        model.fit(X[:260], y[:260]).save(path)
        now = model.project(X[260:])
        after = model.partial_fit(X[260:], y[260:]).project(X[260:])
        np.savez(path.with_suffix(".npz"), X=X[260:], y=y[260:], now=now, after=after)
    codes = random.integers(0, 256, (2010, 3), dtype=np.uint8)
    numbers = random.permutation(10_000)[:2000]
    # v1-index-rows was written before codes were laid out in planes.
    for name, ids in {"index": numbers, "index-strings": [f"é{i}" for i in numbers]}.items():
        path = HERE / f"v{storage.FORMAT_VERSION}-{name}.streamhash"
        if path.exists():
            continue
        index = HammingIndex(24)
        index.add(ids, codes[:2000])
        index.save(path)
        distances, found = index.search(codes[2000:], 5)
        found = found.astype(str) if found.dtype == object else found
        np.savez(path.with_suffix(".npz"), queries=codes[2000:], distances=distances, ids=found)


if __name__ == "__main__":
    main()
