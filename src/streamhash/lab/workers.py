"""Many cells at once: each in one thread of one process, so that no result depends on how many."""

import logging
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from logging.handlers import QueueHandler, QueueListener
from multiprocessing import get_context, parent_process
from typing import Any

from streamhash.errors import StreamhashError
from streamhash.lab.plan import Plan
from streamhash.lab.rows import Row
from streamhash.lab.runner import run_plan
from streamhash.threads import get_threads, using_threads

__all__ = ["Result", "run_plans"]

Result = Row | StreamhashError  # an error that the library raised on purpose, such as divergence


def run_plans(
    plans: Sequence[Plan], jobs: int | None = None, executor: Executor | None = None
) -> Iterator[tuple[int, Result]]:
    """Run cells in parallel and yield (number of the plan, its row) in the order of their ends.

    ``jobs`` processes are started, None for one on each core; with 1 the cells run in this
    process. ``executor`` is any other pool to use instead: plans travel there with the name of
    their data, which must be found there under the same name.
    """
    jobs = min(len(plans), get_threads() if jobs is None else jobs)
    if executor is not None:
        yield from _submit(executor, plans)
    elif jobs <= 1:
        yield from ((number, _run(plan)) for number, plan in enumerate(plans))
    else:
        with _pool(jobs) as pool:
            yield from _submit(pool, plans)


def _run(plan: Plan) -> Result:
    """Run one cell on one thread; what it raises on purpose is its result."""
    try:
        with using_threads(1):
            return run_plan(plan)
    except StreamhashError as error:
        return error


def _submit(executor: Executor, plans: Sequence[Plan]) -> Iterator[tuple[int, Result]]:
    numbers = {executor.submit(_run, plan): number for number, plan in enumerate(plans)}
    try:
        for done in as_completed(numbers):
            yield numbers[done], done.result()
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "a worker process was killed (out of memory?); what is done is kept: run again to go "
            "on, with fewer --jobs if memory was short"
        ) from error
    finally:
        for future in numbers:
            future.cancel()


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Start processes that log to this one, and end with it whatever happens."""
    context = get_context("spawn")  # a fork would copy locks that numba's and BLAS's threads hold
    messages: Any = context.Queue()
    listener = QueueListener(messages, _Relay())
    pool = ProcessPoolExecutor(jobs, context, _begin, (messages,))
    listener.start()
    try:
        yield pool
    except BaseException:
        # Their cells are lost in any case, so there is nothing to wait for.
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        listener.stop()


class _Relay(logging.Handler):
    """Gives a message of a worker to the logger of the same name here."""

    def emit(self, record: logging.LogRecord) -> None:
        logging.getLogger(record.name).handle(record)


def _begin(messages: Any) -> None:
    """Set up a worker: log to the parent, leave Ctrl-C to it, and end if it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log = logging.getLogger("streamhash")
    log.addHandler(QueueHandler(messages))
    log.propagate = False
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
