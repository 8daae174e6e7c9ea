"""A collection while items keep coming, and the world changes in the middle.

The stream is SYNTHETIC: ten classes; after half of it, class c suddenly looks as class c + 1 did.
The collection keeps the last 3,000 items; what is deleted is also forgotten by the model. Watch the
share of neighbours that are right, asked with rows that have not been stored yet.

    python examples/live_stream.py
"""

import tempfile

import numpy as np

from streamhash import SDOH, Collection
from streamhash.lab.datasets import SyntheticStream

ROWS, PIECE, KEPT = 10_000, 1_000, 3_000


def main() -> None:
    """Feed a collection piece by piece; before each piece, ask with it."""
    X, y = SyntheticStream(random_state=0, length=ROWS, drift_at=0.5).take(ROWS)
    shares = []
    with tempfile.TemporaryDirectory() as folder:
        hasher = SDOH(n_bits=32, n_features=1000, random_state=0)
        items = Collection.create(f"{folder}/items", hasher, durability="process")
        print("rows so far   neighbours right   model   alarms of drift")
        for start in range(0, ROWS, PIECE):
            if start:
                asked = slice(start, start + 200)
                found = items.search(X[asked], k=10)
                pairs = zip(found.labels, y[asked].tolist(), strict=True)
                right = [[label == own for label in row] for row, own in pairs]
                shares.append(float(np.mean(right)))
                drifts = items.status()["quality"]["drifts"]
                print(f"{start:11,}   {shares[-1]:16.3f}   {items.model_number:5}   {drifts:15}")
            piece = slice(start, start + PIECE)
            items.add(range(start, start + PIECE), X[piece], y[piece].tolist())
            if start >= KEPT:
                items.delete(range(start - KEPT, start - KEPT + PIECE))
                items.refresh()  # now, rather than when it is worth it: this is a short story
        items.close()
    change = ROWS // 2 // PIECE - 1
    print(f"\nbefore the change {shares[change - 1]:.3f}, at it {shares[change]:.3f}, ")
    print(f"and {shares[-1]:.3f} at the end, when all items kept are of after it")


if __name__ == "__main__":
    main()
