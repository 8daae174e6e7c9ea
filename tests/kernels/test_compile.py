"""Kernels are compiled once for a machine, which is announced, and quick to load after that."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streamhash.kernels import compile

pytestmark = pytest.mark.slow  # each process compiles

PROGRAM = """
import sys
import numpy as np
from streamhash.kernels.hamming.scan import sort_by_key

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
    "streamhash: compiling kernels.hamming.scan.sort_by_key for this machine "
    "(only the first time)\n"
)


def start(cache, *words, program=PROGRAM):
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
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


def test_a_change_in_any_file_of_kernels_compiles_them_anew(tmp_path):
    changed = "import streamhash.kernels.compile as c\nc._stamp = lambda: 'another'\n"
    start(tmp_path)
    assert start(tmp_path, program=changed + PROGRAM) == (["True"], ANNOUNCED)
    assert start(tmp_path) == (["False"], "")


def test_the_stamp_is_of_every_file_of_kernels(tmp_path):
    copy = tmp_path / "kernels"
    shutil.copytree(Path(compile.__file__).parent, copy, ignore=shutil.ignore_patterns("*.nb*"))
    show = [sys.executable, "-c", "import compile; print(compile._stamp())"]

    def stamp():
        done = subprocess.run(show, cwd=copy, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert stamp() == compile._stamp()
    with (copy / "hamming" / "planes.py").open("a") as file:
        file.write("# changed\n")
    assert stamp() != compile._stamp()


def test_without_the_insides_of_numba_kernels_are_plain_cached_functions(tmp_path):
    without = (
        "import sys, numba, numba.core.runtime.nrt\n"
        "sys.modules['numba.core.event'] = sys.modules['numba.core.runtime.nrt'] = None\n"
        "del numba.core.event\n"
    )
    done, announced = start(tmp_path, program=without + PROGRAM)
    assert (done, announced) == (["True"], "")
    assert list(tmp_path.rglob("*sort_by_key*.nbi"))  # it was kept on disk


WITH_A_CLASS = """
import sys
import numpy as np
from streamhash.kernels.hamming import items as module, scan

items = module.Items
if "renamed" in sys.argv:
    items.__name__ = items.__qualname__ = "Renamed"
    module.Renamed = items
    del module.Items
one = items(np.zeros((1, 1, 64), np.uint8), np.arange(64), np.empty(0, np.int64), 64, 64, 64, 0)
found = np.empty(1, np.int32), np.empty(1, np.int64)
scan._arrange(np.array([3 << 48, 2 << 48], np.uint64), one, 9, *found)
print(found[0][0])
"""


def test_what_another_version_has_kept_is_compiled_anew(tmp_path):
    announced = ANNOUNCED.replace("sort_by_key", "arrange")
    for words in ((), ("renamed",)):
        assert start(tmp_path, *words, program=WITH_A_CLASS) == (["2"], announced)
        assert start(tmp_path, *words, program=WITH_A_CLASS) == (["2"], "")
