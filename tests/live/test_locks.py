"""One writer and any number of readers, by locks that die with their process."""

import os
import subprocess
import sys
import textwrap
import time
from contextlib import ExitStack

import pytest

from streamhash import InUseError
from streamhash.live.locks import LEASE_SECONDS, LEASES, ReaderLease, WriterLock, leased


def test_one_writer_at_a_time(tmp_path):
    first = WriterLock(tmp_path)
    with pytest.raises(InUseError, match=r"process \d+ is writing to this collection"):
        WriterLock(tmp_path)
    first.release()
    WriterLock(tmp_path).release()


def test_the_versions_in_use_are_known(tmp_path):
    assert leased(tmp_path) == (set(), set())
    with ReaderLease(tmp_path, 5, 2), ReaderLease(tmp_path, 5, 3), ReaderLease(tmp_path, 9, 3):
        assert leased(tmp_path) == ({5, 9}, {2, 3})
    assert leased(tmp_path) == (set(), set())
    assert not [*(tmp_path / "readers").iterdir()]


def test_readers_that_stopped_are_given_up_and_there_are_never_too_many(tmp_path):
    with ExitStack() as leases:
        held = [leases.enter_context(ReaderLease(tmp_path, i, 0)) for i in range(1, LEASES + 3)]
        assert leased(tmp_path).items == {*range(3, LEASES + 3)}  # the latest
        for path in (tmp_path / "readers").iterdir():
            os.utime(path, (0, time.time() - LEASE_SECONDS))
        assert leased(tmp_path).items == set()
        held[0].renew()
        assert leased(tmp_path).items == {1}


def test_a_lease_that_cannot_be_looked_into_counts_until_it_is_old(tmp_path):
    path = tmp_path / "readers" / "4.1-0f3a"
    path.mkdir(parents=True)  # as little to be opened as a file of another user
    assert leased(tmp_path) == ({4}, {1})
    os.utime(path, (0, time.time() - LEASE_SECONDS))
    assert leased(tmp_path) == (set(), set())


def test_a_lease_that_cannot_be_left_is_done_without(tmp_path):
    (tmp_path / "readers").write_text("in the way")
    with ReaderLease(tmp_path, 5, 2) as lease:
        lease.renew()
    assert (tmp_path / "readers").read_text() == "in the way"


def test_leases_of_the_dead_and_of_version_01(tmp_path):
    program = """
        import os, signal, sys
        from pathlib import Path
        from streamhash.live.locks import ReaderLease
        lease = ReaderLease(Path(sys.argv[1]), 3, 1)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(tmp_path)])
    (left,) = (tmp_path / "readers").iterdir()
    assert left.name.startswith("3.1-")
    (tmp_path / "readers" / "0f3a").write_text("7")  # as 0.1.0 named them
    assert leased(tmp_path) == (set(), set())
    assert not [*(tmp_path / "readers").iterdir()]


def test_it_is_imported_where_there_is_no_fcntl():
    program = "import sys; sys.modules['fcntl'] = None; import streamhash.live"
    subprocess.run([sys.executable, "-c", program], check=True)
