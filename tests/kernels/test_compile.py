"""Kernels are compiled once for a machine, which is announced, and quick to load after that."""

import os
import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
from streamhash.kernels.hamming.bits import plain_sweep_bits, sweep_bits

rng = np.random.default_rng(0)
B, P, G = np.sign(rng.standard_normal((6, 4))).astype(np.int8), rng.random((6, 4)), np.eye(4)

def show(P):
    assert np.array_equal(sweep_bits(B, P, G), plain_sweep_bits(B, P, G))
    print("numba.typed.typeddict" in sys.modules)  # one of all the things that numba can compile

show(P)
if sys.argv[1:]:
    show(P.astype(sys.argv[1]))
"""
ANNOUNCED = (
    "streamhash: compiling kernels.hamming.bits.sweep for this machine (only the first time)\n"
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
