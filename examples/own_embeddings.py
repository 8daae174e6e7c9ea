"""Embeddings of one's own, with metadata and filters: from arrays to answers.

The embeddings are made up (SYNTHETIC: five kinds of products, 64 numbers each), so that the script
runs anywhere. Put your own in the place of ``made_up``.

    python examples/own_embeddings.py
"""

import tempfile

import numpy as np
from numpy.typing import NDArray

from streamhash import SDOH, Collection

KINDS = np.array(["shoes", "hats", "bags", "belts", "socks"])


def made_up(n: int) -> tuple[NDArray[np.float32], NDArray[np.str_], list[dict[str, object]]]:
    """Vectors (n, 64), a label each, and what else is known of each product."""
    random = np.random.default_rng(0)
    kinds = random.integers(len(KINDS), size=n)
    X = random.normal(size=(len(KINDS), 64))[kinds] + 1.5 * random.normal(size=(n, 64))
    prices = random.lognormal(3, 0.8, n).round(2)
    metadata: list[dict[str, object]] = [
        {"title": f"{KINDS[kind][:-1]} no. {i}", "price": float(price), "sold": bool(i % 3 == 0)}
        for i, (kind, price) in enumerate(zip(kinds, prices, strict=True))
    ]
    return X.astype(np.float32), KINDS[kinds], metadata


def main() -> None:
    """Store, search, filter, and compare with the embeddings themselves."""
    X, kinds, metadata = made_up(3000)
    ids = [f"sku-{i}" for i in range(3000)]
    with tempfile.TemporaryDirectory() as folder:
        items = Collection.create(f"{folder}/shop", SDOH(n_bits=64, random_state=0))
        items.add(ids[:2500], X[:2500], kinds[:2500], metadata=metadata[:2500])
        print(f"{len(items):,} products, {items.n_bits // 8} bytes each instead of {X[0].nbytes}")

        query = 2600  # one that was not stored
        print(f"\nnearest to {metadata[query]['title']!r}:")
        show(items, X[query : query + 1])
        print("\nthe same, not sold yet and below 20:")
        show(items, X[query : query + 1], where="NOT sold AND price < 20")

        found = items.search(X[2500:], k=10)
        right = np.mean(
            [[a == b for a in row] for row, b in zip(found.labels, kinds[2500:], strict=True)]
        )
        exact = nearest_by_cosine(X[2500:], X[:2500])
        by_cosine = (kinds[exact] == kinds[2500:, None]).mean()
        print(f"\nof ten neighbours of 500 new products, of the same kind: {right:.3f} by codes,")
        print(f"{by_cosine:.3f} by cosine of the embeddings, which know no labels")
        items.close()


def show(items: Collection, query: NDArray[np.float32], where: str | None = None) -> None:
    """Print the three nearest."""
    found = items.search(query, k=3, where=where)
    for item, distance in zip(items.get(found.ids[0]), found.distances[0], strict=True):
        facts = item.metadata or {}
        print(f"  {distance:2d} bits  {item.id:8}  {facts['title']:14}  {facts['price']:7.2f}")


def nearest_by_cosine(queries: NDArray[np.float32], rows: NDArray[np.float32]) -> NDArray[np.int64]:
    """The ten nearest rows of each query, exactly."""
    a, b = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (queries, rows))
    return np.argsort(-(a @ b.T), axis=1)[:, :10]


if __name__ == "__main__":
    main()
