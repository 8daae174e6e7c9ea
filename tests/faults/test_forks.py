"""A process that writes and is forked: the child reads what was in memory, the parent goes on."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
]

PROGRAM = """
    import faulthandler, os, sys, threading, warnings
    import numpy as np
    from streamhash import InUseError, ReadOnlyError, SDOH
    from streamhash.live import Collection

    warnings.simplefilter("ignore")
    X = np.random.default_rng(0).standard_normal((200, 8)).astype(np.float32)
    path, kind = sys.argv[1:]
    hasher = SDOH(16, batch_size=20, n_features=32, memory=60, random_state=0)
    c = Collection.create(path, hasher, refresh="manual")
    c.add(range(100), X[:100], [i % 3 for i in range(100)])
    if kind == "reader":
        c.close()
        c = Collection.open(path, read_only=True)
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(30, exit=True)
        assert len(c) == 100 and c.read_only and 5 in c
        assert c.search(X[:1], 1)[0].tolist() == [[0]]
        assert c.labels([4]) == [1]
        for change in (
            lambda: c.add([100], X[:1]),
            lambda: c.label([1], [1]),
            lambda: c.delete([1]),
            lambda: c.refresh(),
            lambda: c.revert(1),
        ):
            try:
                change()
            except ReadOnlyError as error:
                assert "was forked from the one that opened the collection" in str(error)
            else:
                sys.exit("a child has written")
        for look in (lambda: c.get([1]), lambda: [*c.scan()], lambda: c.status()):
            try:
                look()
            except InUseError as error:
                assert "start processes by spawn or forkserver" in str(error)
            else:
                sys.exit("a child has read")
        if kind == "closes":
            c.close()
        sys.exit(0)  # the whole way out
    assert os.waitpid(child, 0)[1] == 0
    if kind == "reader":
        assert len(c.get(range(100))) == 100
        sys.exit(0)
    try:
        Collection.open(path)
        sys.exit("the lock of the writer is gone")
    except InUseError:
        pass
    c.add([100], X[100:101])
    c.close()
    with Collection.open(path) as c:
        assert c.ids == [*range(101)]
"""


@pytest.mark.parametrize("kind", ["ends", "closes", "reader"])
def test_a_child_may_search_and_nothing_else(tmp_path, kind):
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path / "items"), kind]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr


def test_forks_at_any_moment_lose_nothing_and_hang_nowhere():
    ended = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "fault_threads.py", "forks", "--operations", "15"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert ended.returncode == 0, ended.stderr
    row = json.loads(ended.stdout)
    assert row["lost"] == 0, ended.stderr
    assert row["operations"] == 15
    assert row["stored"] > 60  # the parent went on
