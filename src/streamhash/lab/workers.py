"""Processes that run cells: they log to this one, leave Ctrl-C to it, and end with it."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from logging.handlers import QueueHandler, QueueListener
from multiprocessing import active_children, get_context, parent_process
from typing import Any


@contextmanager
def process_pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Start processes that log to this one, and end with it whatever happens."""
    context = get_context("spawn")  # a fork would copy locks that numba's and BLAS's threads hold
    messages: Any = context.Queue()
    listener = QueueListener(messages, _Relay())
    others = set(active_children())
    pool = ProcessPoolExecutor(jobs, context, _begin, (messages,))
    listener.start()
    try:
        yield pool
    except BaseException:
        # Their cells are lost in any case, so there is nothing to wait for.
        for process in set(active_children()) - others:
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
