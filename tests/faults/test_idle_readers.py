"""Readers that do nothing, stand still or were killed keep no more than a few old versions."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from streamhash import SDOH
from streamhash.live import Collection, journal, locks

ROOT = Path(__file__).parents[2]
# As docs/live.md has it: the versions of TIDY_AFTER changes, of LEASES readers, and a few.
VERSIONS = journal.TIDY_AFTER + locks.LEASES + 2 * journal.KEPT
FILES = 1000


@pytest.mark.slow
def test_files_and_versions_stay_few_beside_idle_readers():
    ended = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "fault_threads.py", "leases", "--operations", "160"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert ended.returncode == 0, ended.stderr
    row = json.loads(ended.stdout)
    assert row["versions"] <= VERSIONS < 160
    assert row["files"] <= FILES
    assert row["lost"] == 0  # all saw what they should when they went on


def test_a_reader_that_was_away_for_long_comes_back(tmp_path):
    X = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)
    hasher = SDOH(8, batch_size=20, n_features=32, memory=60, random_state=0)
    with Collection.create(tmp_path / "items", hasher, refresh="manual", durability="process") as c:
        c.add(range(40), X[:40], [i % 3 for i in range(40)])
        with Collection.open(tmp_path / "items", read_only=True) as reader:
            assert len(reader.get(reader.ids)) == 40
            assert not [*(tmp_path / "items" / "readers").iterdir()]  # idle, it holds nothing
            for i in range(40, 240):
                c.add([i], X[i : i + 1])
            c.delete([3])
            manifests = [*(tmp_path / "items" / "items.lance" / "_versions").iterdir()]
            assert len(manifests) <= VERSIONS
            assert len(reader.get(reader.ids)) == 239
            assert reader.search(X[100:101], 1)[1].tolist() == c.search(X[100:101], 1)[1].tolist()
