"""More items than memory should hold: columns in mapped files, and codes in Milvus.

    python benchmarks/past_memory.py --mapped 50000000
    python benchmarks/past_memory.py --milvus 500000,2000000

A process of its own opens a collection with ``mmap=True`` (items of 16 features, 64 bits, any whole
numbers as ids, one of 100 labels), adds, labels and deletes 1,000 items, searches and refreshes.
After each step: MiB of its own memory (RssAnon) and with mapped files (RssFile: programs, and the
columns, whose pages the system takes back when it needs room), and the most of both during it. Of
mapped columns, the system grants the process at most so much memory of its own (RLIMIT_DATA, which
counts what is asked for, used or not): were anything held there an item, it would fail.
"""

import argparse
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _machine import describe_machine
from scale import CHANGED, STORED_FEATURES, Peak, ids_of, rows, store, used
from streamhash.live import Collection

LIMIT = 2**30
MIB = 2**20


def run_steps(path: Path, limit: int) -> None:
    """Print what each step takes."""
    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    X, y = rows(CHANGED, STORED_FEATURES, seed=5)
    ids = ids_of("any", 10**9, CHANGED)
    opened: list[Collection] = []
    steps: dict[str, Callable[[], Any]] = {
        "opened": lambda: opened.append(Collection.open(path, mmap=True)),
        "searched": lambda: opened[0].search(X[:10], 10),
        "added": lambda: opened[0].add(ids, X, y, existing="replace"),
        "labelled": lambda: opened[0].label(ids[:500], [0] * 500),
        "deleted": lambda: opened[0].delete(ids[500:]),
        "refreshed": lambda: opened[0].refresh(),
        "searched again": lambda: opened[0].search(X[:10], 10),
    }
    print(f"{'':16}{'s':>9}{'own':>9}{'peak':>9}{'all':>9}{'peak':>9}", flush=True)
    print(f"{'imported':16}{'':9}{used('RssAnon'):>9.0f}{'':9}{used('VmRSS'):>9.0f}", flush=True)
    for name, step in steps.items():
        with Peak() as most:
            start = time.perf_counter()
            step()
            seconds = time.perf_counter() - start
        gc.collect()
        print(
            f"{name:16}{seconds:>9.2f}{used('RssAnon'):>9.0f}{most.own:>9.0f}"
            f"{used('VmRSS'):>9.0f}{most.all:>9.0f}",
            flush=True,
        )
    assert opened[0].model_number == 2
    print(f"{len(opened[0]):,} items are there", flush=True)
    opened[0].close()


def in_process(path: Path, limit: int) -> None:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, __file__, "--steps", f"{path},{limit}"], check=True, env=environment
    )


def mapped(n: int, folder: str | None) -> None:
    print(
        f"\n{n:,} items of 64 bits, mmap=True; at most {LIMIT // MIB} MiB of its own allowed; load "
        f"{os.getloadavg()[0]:.0f}\n",
        flush=True,
    )
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        path = Path(folder or temporary) / f"any-{n}"
        if not path.exists():
            store(path, n, "any")
        in_process(path, LIMIT)


def in_milvus(sizes: list[int]) -> None:
    from milvus import MilvusServer, MilvusServerConfig  # type: ignore[import-untyped]

    with tempfile.TemporaryDirectory() as folder:
        server = MilvusServer(MilvusServerConfig(data_dir=str(Path(folder) / "milvus")))
        server.start()
        try:
            for n in sizes:
                print(
                    f"\n{n:,} items of 64 bits, codes in Milvus, mmap=True; load "
                    f"{os.getloadavg()[0]:.0f}\n",
                    flush=True,
                )
                path = Path(folder) / f"items-{n}"
                address = f"milvus://127.0.0.1:{server.listen_port}/items_{n}?timeout=600"
                store(path, n, "any", address)
                in_process(path, 0)
        finally:
            server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mapped", type=int, default=1_000_000, help="items; 0 leaves it out")
    parser.add_argument("--milvus", help="items, with commas")
    parser.add_argument("--folder", help="for the items, if not a temporary one")
    parser.add_argument("--steps", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.steps:
        path, limit = chosen.steps.split(",")
        run_steps(Path(path), int(limit))
        return
    print(describe_machine("pylance", "pymilvus"))
    if chosen.mapped:
        mapped(chosen.mapped, chosen.folder)
    if chosen.milvus:
        in_milvus([int(size) for size in chosen.milvus.split(",")])


if __name__ == "__main__":
    main()
