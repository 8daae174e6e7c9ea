"""One writer and any number of readers, by locks that die with their process."""

import subprocess
import sys
import textwrap

import pytest

from streamhash import InUseError
from streamhash.live.locks import ReaderLease, WriterLock, oldest_lease


def test_one_writer_at_a_time(tmp_path):
    first = WriterLock(tmp_path)
    with pytest.raises(InUseError, match=r"process \d+ is writing to this collection"):
        WriterLock(tmp_path)
    first.release()
    WriterLock(tmp_path).release()


def test_the_oldest_version_in_use_is_known(tmp_path):
    assert oldest_lease(tmp_path, 12) == 12
    first, second = ReaderLease(tmp_path), ReaderLease(tmp_path, 9)
    assert oldest_lease(tmp_path, 12) == 0  # a reader that has not said which keeps all
    first.use(5)
    assert oldest_lease(tmp_path, 12) == 5
    first.use(11)
    assert oldest_lease(tmp_path, 12) == 9
    first.release()
    second.release()
    first.release()
    assert oldest_lease(tmp_path, 12) == 12
    assert not [*(tmp_path / "readers").iterdir()]


def test_leases_of_the_dead_and_of_version_01(tmp_path):
    program = """
        import os, signal, sys
        from pathlib import Path
        from streamhash.live.locks import ReaderLease
        lease = ReaderLease(Path(sys.argv[1]), 3)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(tmp_path)])
    (left,) = (tmp_path / "readers").iterdir()
    assert left.name.startswith("3-")
    (tmp_path / "readers" / "0f3a").write_text("7")  # as 0.1.0 named them
    assert oldest_lease(tmp_path, 12) == 12
    assert not [*(tmp_path / "readers").iterdir()]


def test_it_is_imported_where_there_is_no_fcntl():
    program = "import sys; sys.modules['fcntl'] = None; import streamhash.live"
    subprocess.run([sys.executable, "-c", program], check=True)
