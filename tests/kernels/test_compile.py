"""Kernels are compiled once for a machine, which is announced, and quick to load after that."""

import os
import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
from streamhash.kernels.hamming.items import sort_by_key

def show(keys):
    positions = np.arange(6)
    sort_by_key(positions, keys)
    assert positions.tolist() == np.argsort(keys).tolist()
    print("numba.typed.typeddict" in sys.modules)  # one of all the things that numba can compile

show(np.array([3, 1, 5, 0, 4, 2]))
if sys.argv[1:]:
    show(np.array([3, 1, 5, 0, 4, 2], sys.argv[1]))
"""
ANNOUNCED = (
    "streamhash: compiling kernels.hamming.items.sort_by_key for this machine "
    "(only the first time)\n"
)


def start(cache, *words):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
    )
    return done.stdout.split(), done.stderr


def test_a_later_process_neither_compiles_nor_loads_what_compiling_needs(tmp_path):
    assert start(tmp_path) == (["True"], ANNOUNCED)
    assert start(tmp_path) == (["False"], "")


def test_what_was_loaded_and_what_is_compiled_work_in_one_process(tmp_path):
    start(tmp_path)
    assert start(tmp_path, "float32") == (["False", "True"], ANNOUNCED)
    assert start(tmp_path, "float32") == (["False", "False"], "")
