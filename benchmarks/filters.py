"""Searches with a filter beside searches without one: ours, Lance's scanner and Milvus.

A million made-up items with codes of 64 bits and three fields (a price, a category of ten, and
whether it is sold); one query at a time, k = 10. "anew" is a filter that was not asked before: its
mask is worked out from the columns. "again" is one that was. Ours are compared by processor time,
in milliseconds; with others by the clock, since Milvus is a process of its own. Answers of ours are
compared with NumPy's, those of the others with ours.

    python benchmarks/filters.py [--items 1000000] [--milvus]

``--milvus`` starts the server of the package milvus, which takes a minute or two to be filled. Read
the ratios: they hold on other machines, the milliseconds do not.
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _machine import describe_machine
from streamhash import LSH
from streamhash.live import Collection

DIMENSIONS, BITS, K, PIECE, TURNS, PEER_TURNS = 16, 64, 10, 50_000, 60, 10
CATEGORIES = [f"category {n}" for n in range(10)]
FILTERS = {  # with what they keep
    "price < {}": {"1 %": 10, "10 %": 100, "90 %": 900},
    "category IN ('category 1', 'category 2') AND NOT sold AND price < {}": {"10 %": 1000},
}

Columns = dict[str, NDArray[Any]]


def made_up(n: int) -> tuple[NDArray[np.float32], Columns]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, DIMENSIONS), np.float32)
    columns = {"price": rng.integers(0, 1000, n), "category": rng.integers(0, 10, n)}
    return X, {**columns, "sold": rng.random(n) < 0.5}


def metadata(columns: Columns, start: int, stop: int) -> list[dict[str, Any]]:
    price, category, sold = (columns[name][start:stop].tolist() for name in columns)
    rows = zip(price, category, sold, strict=True)
    return [{"price": p, "category": CATEGORIES[c], "sold": s} for p, c, s in rows]


def keeps(text: str, columns: Columns, price: float) -> NDArray[np.bool_]:
    mask = columns["price"] < price
    if "category" in text:
        mask &= np.isin(columns["category"], (1, 2)) & ~columns["sold"]
    return mask


def truth(own: NDArray[Any], mask: NDArray[np.bool_], codes: NDArray[Any]) -> NDArray[np.int64]:
    """The nearest of the items that match, by NumPy."""
    there = np.flatnonzero(mask)
    far = np.bitwise_count(codes[there] ^ own).sum(axis=1)
    return there[np.argsort(far, kind="stable")[:K]]


def milliseconds(
    *searches: Callable[[int], Any], turns: int = TURNS, clock: Callable[[], float]
) -> list[float]:
    """Time of searches, asked in turn with the number of a query: that of the quicker third.

    Other programs on the machine make the rest slower.
    """
    seconds = np.empty((len(searches), turns))
    for i in range(turns):
        for at, search in enumerate(searches):
            start = clock()
            search(i)
            seconds[at, i] = clock() - start
    return [float(each) for each in np.quantile(seconds, 1 / 3, axis=1) * 1e3]


def lance_search(folder: Path, codes: NDArray[Any], columns: Columns) -> Callable[..., list[int]]:
    import lance
    import pyarrow as pa

    names = pa.array(CATEGORIES).take(pa.array(columns["category"]))
    code = pa.FixedSizeListArray.from_arrays(pa.array(codes.ravel()), codes.shape[1])
    table = {"key": np.arange(len(codes)), "code": code, "price": columns["price"]}
    data = lance.write_dataset(
        pa.table({**table, "category": names, "sold": columns["sold"]}), folder / "peer.lance"
    )

    def search(code: NDArray[Any], where: str | None) -> list[int]:
        nearest = {"column": "code", "q": pa.array(code), "k": K, "metric": "hamming"}
        found = data.to_table(
            columns=["key", "_distance"],
            nearest={**nearest, "use_index": False},
            filter=where,
            prefilter=where is not None,
        )
        return found["_distance"].to_pylist()  # type: ignore[no-any-return]

    return search


def in_milvus(where: str) -> str:
    """Return a filter as Milvus 2.3 takes it."""
    where = where.replace("IN (", "in [").replace("')", "']")
    return where.replace("NOT sold", "sold == false").replace("AND", "and")


@contextmanager
def milvus_search(
    folder: Path, codes: NDArray[Any], columns: Columns
) -> Iterator[Callable[..., list[int]]]:
    from milvus import MilvusServer, MilvusServerConfig  # type: ignore[import-untyped]
    from pymilvus import DataType, MilvusClient

    server = MilvusServer(MilvusServerConfig(data_dir=str(folder / "milvus")))
    with suppress(subprocess.TimeoutExpired), server:  # it waits three seconds for its end
        client = MilvusClient(uri=f"http://127.0.0.1:{server.listen_port}", timeout=600)
        schema = MilvusClient.create_schema(auto_id=False)
        schema.add_field("key", DataType.INT64, is_primary=True)
        schema.add_field("code", DataType.BINARY_VECTOR, dim=BITS)
        schema.add_field("price", DataType.INT64)
        schema.add_field("category", DataType.VARCHAR, max_length=20)
        schema.add_field("sold", DataType.BOOL)
        index = MilvusClient.prepare_index_params()
        index.add_index("code", index_type="BIN_FLAT", metric_type="HAMMING")
        client.create_collection("peer", schema=schema, index_params=index)
        for start in range(0, len(codes), PIECE // 5):
            stop = start + PIECE // 5
            rows = metadata(columns, start, stop)
            keys = range(start, start + len(rows))
            content = (code.tobytes() for code in codes[start:stop])
            more = ({"key": k, "code": c} for k, c in zip(keys, content, strict=True))
            client.insert("peer", [row | each for row, each in zip(rows, more, strict=True)])
        client.flush("peer")
        client.load_collection("peer")

        def search(code: NDArray[Any], where: str | None) -> list[int]:
            (found,) = client.search(
                "peer",
                data=[code.tobytes()],
                filter=in_milvus(where or ""),
                limit=K,
                search_params={"metric_type": "HAMMING"},
                consistency_level="Bounded",
            )
            return [each["distance"] for each in found]

        yield search


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--milvus", action="store_true")
    arguments = parser.parse_args()
    n = arguments.items
    print(describe_machine("pylance", *["milvus"][: arguments.milvus]))
    X, columns = made_up(n)
    queries = np.random.default_rng(1).standard_normal((TURNS, DIMENSIONS)).astype(np.float32)
    room = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    folder = Path(room.name)
    hasher = LSH(BITS, random_state=0).fit(X[:1000])
    items = Collection.create(folder / "items", hasher, refresh="manual", durability="process")
    for start in range(0, n, PIECE):
        some = metadata(columns, start, start + PIECE)
        items.add(range(start, start + len(some)), X[start : start + PIECE], metadata=some)
    model = items.model()
    codes, own = model.transform(X), model.transform(queries)

    began = time.process_time()
    items.count("price < 0 AND category = 'none' AND sold")
    seconds = time.process_time() - began
    print(f"{n} items; columns of three fields are read in {seconds:.1f} s of processor time")
    for query in queries:
        items.search(query[None], K)  # all is compiled and warm

    def ours(i: int, where: str | None = None) -> Any:
        return items.search(queries[i, None], K, where=where)

    print(
        f"{'filter':70} {'keeps':>6} {'none':>7} {'anew':>7} {'ratio':>5} {'again':>7} {'ratio':>5}"
    )
    for text, levels in FILTERS.items():
        for share, price in levels.items():

            def where(i: int, text: str = text, price: int = price) -> str:
                return text.format(price - (i + 1) / (TURNS + 9))  # all keep the same

            for i in range(3):
                ids = ours(i, where(TURNS + i))[1]
                assert ids[0].tolist() == truth(own[i], keeps(text, columns, price), codes).tolist()
            plain, anew, again = milliseconds(
                ours,
                lambda i, where=where: ours(i, where(i)),  # type: ignore[misc]
                lambda i, where=where: ours(i, where(0)),  # type: ignore[misc]
                clock=time.process_time,
            )
            print(
                f"{text.format(price):70} {share:>6} {plain:7.2f} {anew:7.2f} {anew / plain:5.2f} "
                f"{again:7.2f} {again / plain:5.2f}  "
                f"{'within' if anew <= 1.5 * plain + 2 else 'beyond'} 1.5 × + 2 ms"
            )

    def beside(name: str, search: Callable[..., list[int]]) -> None:
        for text, levels in {"none": {"100 %": 0}, **FILTERS}.items():
            for share, price in levels.items():
                where = None if text == "none" else text.format(price)
                assert search(own[0], where) == ours(0, where)[0][0].tolist()
                own_time, theirs = milliseconds(
                    lambda i, where=where: ours(i, where),  # type: ignore[misc]
                    lambda i, where=where: search(own[i], where),  # type: ignore[misc]
                    turns=PEER_TURNS,
                    clock=time.perf_counter,
                )
                print(
                    f"{name:8} {where!s:70} {share:>6} {own_time:8.2f} {theirs:8.2f} "
                    f"{theirs / own_time:8.1f} ×"
                )

    print("\nours, theirs, and how many times as long that is, by the clock")
    beside("Lance", lance_search(folder, codes, columns))
    if arguments.milvus:
        with milvus_search(folder, codes, columns) as search:
            beside("Milvus", search)
    items.close()
    room.cleanup()


if __name__ == "__main__":
    main()
