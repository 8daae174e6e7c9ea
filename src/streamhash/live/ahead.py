"""Rows of a log, written to files before it is folded, by a thread: then little is left to do.

No version knows these files before the log is folded. Those of a process that dies are deleted with
all others that no version knows.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from streamhash.errors import StreamhashError

if TYPE_CHECKING:
    from streamhash.live.store import Loose

logger = logging.getLogger(__name__)


class Ahead:
    """The first rows of a log, in files that no version knows yet."""

    def __init__(self) -> None:
        self.n_begun = 0  # rows that are written, or are being written
        self._n_written = 0
        self._written: list[Loose] = []
        self._schema: Any = None  # of the dataset that they were written for
        self._thread: threading.Thread | None = None
        self._has_failed = False

    @property
    def is_ready(self) -> bool:
        """Whether more rows may be written."""
        return not (self._has_failed or (self._thread is not None and self._thread.is_alive()))

    def begin(self, n_rows: int, schema: Any, write: Callable[[], "Loose"]) -> None:
        """Write rows, in a thread: then the first ``n_rows`` are."""
        self.n_begun, self._schema = n_rows, schema

        def work() -> None:
            try:
                self._written.append(write())
                self._n_written = n_rows
            except (StreamhashError, OSError) as error:  # whoever folds the log tries it, and tells
                logger.info("rows of the log are not written ahead: %s", error)
                self._has_failed = True

        self._thread = threading.Thread(target=work, name="streamhash-ahead", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until nothing is being written."""
        if self._thread is not None:
            self._thread.join()

    def taken(self, schema: Any) -> tuple[int, Sequence["Loose"]]:
        """Return how many rows are in files that fit a dataset, and the files."""
        self.wait()
        return (self._n_written, self._written) if schema == self._schema else (0, [])
