"""Write the files that later versions must load; run once per format version, then never again."""

from pathlib import Path

import numpy as np

from streamhash import LSH, SDOH, AnchorMap, CenterScale, StreamPipeline, storage

HERE = Path(__file__).parent


def main() -> None:
    random = np.random.default_rng(0)
    y = random.integers(4, size=260)
    X = (random.standard_normal((4, 10))[y] + random.standard_normal((260, 10))).astype(np.float32)
    for name, model in {
        "sdoh": SDOH(n_bits=20, random_state=0),
        "sdoh_kernel": SDOH(n_bits=20, kernel=30, random_state=0),
        "lsh": LSH(n_bits=20, random_state=0),
        "pipeline": StreamPipeline([CenterScale(), AnchorMap(30)], SDOH(20, random_state=0)),
    }.items():
        path = HERE / f"v{storage.FORMAT_VERSION}-{name}.streamhash"
        if path.exists():
            raise SystemExit(f"{path.name} is there: files of a released version never change")
        model.fit(X, y).save(path)
        now = model.project(X)
        after = model.partial_fit(X, y).project(X)
        np.savez_compressed(path.with_suffix(".npz"), X=X, y=y, now=now, after=after)


if __name__ == "__main__":
    main()
