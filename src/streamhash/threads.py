"""How many cores are used, and how work is spread over them.

Work is always cut into the same blocks, each block is computed by one thread with single-threaded
BLAS, and every block writes its own part of the result: so the outcome is the same, bit for bit,
for any number of threads. ``STREAMHASH_THREADS`` or ``set_threads`` change the number.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from streamhash.errors import InputError

Block = TypeVar("Block")
Result = TypeVar("Result")

_chosen: int | None = None


def get_threads() -> int:
    """Return the number of threads in use: as set, else ``STREAMHASH_THREADS``, else all cores."""
    if _chosen is not None:
        return _chosen
    from_environment = os.environ.get("STREAMHASH_THREADS", "")
    if from_environment:
        if not from_environment.isdigit() or int(from_environment) < 1:
            raise InputError(
                f"STREAMHASH_THREADS={from_environment!r}: expected a number from 1 up; "
                "unset it to use all cores."
            )
        return int(from_environment)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_threads(n: int | None) -> None:
    """Use ``n`` threads from now on; ``None`` goes back to the environment's number."""
    global _chosen
    if n is not None and n < 1:
        raise InputError(f"set_threads: n={n} is less than 1; pass None to use all cores.")
    _chosen = n


@contextmanager
def using_threads(n: int | None) -> Iterator[None]:
    """Use ``n`` threads inside the block, and as many as before after it."""
    before = _chosen
    set_threads(n)
    try:
        yield
    finally:
        set_threads(before)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="streamhash")


def after_fork(call: Callable[[], None]) -> None:
    """Call it in every child that ``os.fork`` makes of this process, if there is such a thing."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


after_fork(_pool.cache_clear)  # whose threads a child does not have


def run_blocks(work: Callable[[Block], Result], blocks: Iterable[Block]) -> list[Result]:
    """Call ``work`` on every block, on as many threads as are set; results in their order.

    The thread that calls takes its part: others take a while to wake up, and it need not wait for
    those that have not begun when all is done.
    """
    todo = list(blocks)
    threads = min(get_threads(), len(todo)) if len(todo) > 1 else 1
    if threads == 1:
        return [work(block) for block in todo]
    waiting = deque(enumerate(todo))
    results: dict[int, Result] = {}
    failed: dict[int, BaseException] = {}

    def take_turns() -> None:
        while waiting:
            try:
                at, block = waiting.popleft()
            except IndexError:  # another was quicker
                return
            try:
                results[at] = work(block)
            except BaseException as error:  # noqa: BLE001  raised below
                failed[at] = error
                waiting.clear()

    others = [_pool(threads - 1).submit(take_turns) for _ in range(threads - 1)]
    take_turns()
    wait([each for each in others if not each.cancel()])
    if failed:
        raise failed[min(failed)]
    return [results[at] for at in range(len(todo))]


class ProcessLock:
    """A lock among the threads of a process, for its whole life; a forked child finds it open.

    Else a child would wait for threads that only its parent has.
    """

    def __init__(self) -> None:
        self._renew()
        after_fork(self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class _SingleThreadedBlas:
    """BLAS at one thread while anyone needs it: the first to enter sets it, the last restores.

    In a child that was forked meanwhile it stays so. OpenBLAS 0.3.31 does not heed another thread
    once the main thread has set a number: where the main thread has been inside and left, and
    others go in, OPENBLAS_NUM_THREADS=1 in the environment is the only sure way.
    """

    def __init__(self) -> None:
        self._lock = ProcessLock()
        self._users = 0
        self._before: list[tuple[Any, int]] = []  # libraries, and the threads that each had

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Keep NumPy's BLAS to one thread inside the block (safe to nest and to share)."""
        with self._lock:
            if self._users == 0:
                # Asked and set one by one: the whole of threadpoolctl's way takes 50 µs.
                found = [(each, each.get_num_threads()) for each in _libraries()]
                self._before = [(each, n) for each, n in found if n != 1]
                for each, _ in self._before:
                    each.set_num_threads(1)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    for each, n in self._before:
                        each.set_num_threads(n)


@cache
def _libraries() -> list[Any]:
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


single_threaded_blas = _SingleThreadedBlas()
