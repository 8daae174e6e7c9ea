"""Many cells at once: the same rows for any number of processes, and nothing lost when stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from streamhash.errors import InputError
from streamhash.lab import plan_cell, row_key, run as lab_run, run_cells
from streamhash.lab.datasets import load_data

pytestmark = pytest.mark.slow
PROGRAM = Path(sys.executable).with_name("streamhash")
VARYING = ("seconds", "date")
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="finds processes in /proc"
)


def plans(*methods, **choices):
    data = load_data("digits")
    return [
        plan_cell(method, data, 16, seed, stream=400, checkpoints=2, **choices)
        for method in methods
        for seed in (0, 1)
    ]


def measured(rows):
    return [{name: row[name] for name in row if name not in VARYING} for row in rows]


def test_rows_do_not_depend_on_how_many_processes_make_them():
    cells = plans("sdoh", "mihash", "bsodh")
    alone = measured(run_cells(cells, jobs=1))
    assert [row_key(row) for row in alone] == [row_key(plan.identity()) for plan in cells]
    assert measured(run_cells(cells, jobs=2)) == alone
    context = get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:  # any other executor, threads as they are
        assert measured(run_cells(cells, executor=pool)) == alone


def test_a_cell_that_fails_ends_the_run_or_is_left_out_with_a_warning(caplog):
    data = load_data("digits")
    fine = plan_cell("lsh", data, 8, 0, stream=100, checkpoints=1)
    too_long = plan_cell("lsh", data, 8, 0, stream=5000, checkpoints=1)
    for jobs in (1, 2):
        with pytest.raises(InputError, match=r"^split: stream=5000 is more than "):
            run_cells([too_long, fine], jobs=jobs)
        caplog.clear()
        (row,) = run_cells([too_long, fine], jobs=jobs, skip_failures=True)
        assert row["metrics"]["map"] > 0
        (message,) = caplog.messages
        assert message.startswith("lsh, digits, 8 bits, seed 0: split: stream=5000 is more than ")


LONG = ["tune", "lsh,hcoh,sdoh", "--budget", "10", "--jobs", "2"]


def rows_of(folder):
    path = folder / "rows.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def started(folder):
    """Start a long run and wait until it has kept a row."""
    process = subprocess.Popen(
        [PROGRAM, *LONG, "--out", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline, before = time.monotonic() + 90, len(rows_of(folder))
    while len(rows_of(folder)) == before and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.05)
    assert len(rows_of(folder)) > before, "no row came within 90 seconds"
    return process


def state(pid):
    """Return the state letter and the parent of a process; None once it is gone."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return None if words[0] == "Z" else (words[0], int(words[1]))


def children(process):
    pids = [int(place.name) for place in Path("/proc").iterdir() if place.name.isdecimal()]
    return [pid for pid in pids if (state(pid) or (None, None))[1] == process.pid]


def gone(pids):
    deadline = time.monotonic() + 20
    while any(map(state, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(state, pids))


@needs_proc
def test_ctrl_c_and_kill_lose_no_finished_cell_and_leave_no_process(tmp_path):
    for number in (signal.SIGINT, signal.SIGKILL):
        process = started(tmp_path)
        workers = children(process)
        assert len(workers) >= 2
        os.kill(process.pid, number)
        _, words = process.communicate(timeout=30)
        before = rows_of(tmp_path)
        if number == signal.SIGINT:
            assert process.returncode == 130
            assert words.splitlines()[-1] == "streamhash: interrupted."
        assert gone(workers)
        for line in before:
            json.loads(line)
        assert rows_of(tmp_path) == before  # no worker writes on
    done = subprocess.run(
        [PROGRAM, *LONG, "--out", tmp_path], capture_output=True, text=True, check=True, timeout=300
    )
    after = rows_of(tmp_path)
    assert after[: len(before)] == before
    keys = [row_key(json.loads(line)) for line in after]
    assert len(keys) == len(set(keys))  # no cell was run twice
    assert done.stdout.startswith("# Found by streamhash tune on digits at 32 bits, with 10 ")


@needs_proc
def test_a_killed_worker_is_told_and_what_is_done_is_kept(tmp_path):
    process = started(tmp_path)
    for pid in children(process):
        if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 2
    assert words.splitlines()[-1] == (
        "streamhash: a worker process was killed (out of memory?); what is done is kept: run again "
        "to go on, with fewer --jobs if memory was short."
    )
    assert all(json.loads(line) for line in rows_of(tmp_path))


def test_large_data_are_gathered_piece_by_piece_with_the_same_result(monkeypatch):
    (small,) = measured(run_cells(plans("sdoh", "hcoh", settings="default")[:1], jobs=1))
    monkeypatch.setattr(lab_run, "HELD_WHOLE_BYTES", 0)
    monkeypatch.setattr(lab_run, "ROWS_AT_ONCE", 100)
    lab_run._prepare.cache_clear()
    (large,) = measured(run_cells(plans("sdoh", "hcoh", settings="default")[:1], jobs=1))
    lab_run._prepare.cache_clear()
    assert np.isfinite(large["metrics"]["map"])
    assert large == small
