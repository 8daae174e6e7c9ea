"""How many threads are used, and that results do not depend on it."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from streamhash import InputError
from streamhash.threads import (
    get_threads,
    run_blocks,
    set_threads,
    single_threaded_blas,
    using_threads,
)


def test_the_number_of_threads_can_be_set(monkeypatch):
    monkeypatch.setenv("STREAMHASH_THREADS", "3")
    assert get_threads() == 3
    set_threads(2)
    assert get_threads() == 2
    set_threads(None)
    monkeypatch.setenv("STREAMHASH_THREADS", "none")
    with pytest.raises(InputError, match="expected a number from 1 up"):
        get_threads()
    with pytest.raises(InputError, match="n=0 is less than 1"):
        set_threads(0)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_results_come_in_the_order_of_the_blocks(n_threads):
    with using_threads(n_threads):
        assert get_threads() == n_threads
        assert run_blocks(lambda block: block * block, range(20)) == [i * i for i in range(20)]


def test_the_thread_that_calls_takes_its_part():
    both = threading.Barrier(2)

    def meet(_):
        both.wait(10)
        return threading.get_ident()

    with using_threads(2):
        threads = run_blocks(meet, range(2))
    assert threading.get_ident() in threads
    assert len({*threads}) == 2


def test_blocks_may_have_blocks():
    with using_threads(2):
        assert run_blocks(lambda i: sum(run_blocks(abs, range(i))), range(9)) == [
            sum(range(i)) for i in range(9)
        ]


def test_the_first_of_the_blocks_that_failed_is_told_of():
    both = threading.Barrier(2)

    def fail(block):
        if block in (3, 4):
            both.wait(10)  # they fail at the same time
            raise ValueError(f"block {block}")
        return block

    with using_threads(2), pytest.raises(ValueError, match="block 3"):
        run_blocks(fail, range(100))
    with using_threads(2):
        assert run_blocks(abs, range(3)) == [0, 1, 2]


def blas_threads():
    """Threads of NumPy's BLAS; that of faiss and others stay as they are."""
    return {info["num_threads"] for info in threadpool_info() if "numpy" in info["filepath"]}


def test_blas_has_one_thread_while_anyone_needs_it():
    # In a process of its own: OpenBLAS 0.3.31 does not heed what a second thread asks for once
    # the main thread has asked for something, as other tests may have done.
    ended = subprocess.run([sys.executable, __file__], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def keep_blas_to_one_thread():
    np.ones((2, 2)) @ np.ones((2, 2))  # which loads it
    before = blas_threads()
    entered, leave = threading.Event(), threading.Event()

    def stay():
        with single_threaded_blas():
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=stay)
    other.start()
    entered.wait(10)
    with single_threaded_blas(), single_threaded_blas():
        assert blas_threads() == {1}
    assert blas_threads() == {1}  # the other one is still inside
    leave.set()
    other.join()
    assert blas_threads() == before


if __name__ == "__main__":
    keep_blas_to_one_thread()
