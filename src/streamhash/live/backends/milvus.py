"""A home in Milvus: changes flow there after they are stored in Lance.

While the server is away, changes are only noted, and searches say so. When it answers again (at the
next search, or when a thread that tries now and then finds it), what it holds is compared with what
it should hold, and the difference is sent: so nothing depends on what a crash has left in between.
"""

import logging
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.errors import UnreachableError
from streamhash.live.backends.address import MilvusAddress
from streamhash.live.backends.tables import Server

if TYPE_CHECKING:
    from streamhash.live.backends import Keys, Read

__all__ = ["MilvusHome"]

logger = logging.getLogger(__name__)

RETRY = 1.0  # seconds before a server that was away is tried again, at first
RARELY = 30.0  # and at last

_open: "weakref.WeakSet[MilvusHome]" = weakref.WeakSet()  # homes of this process


class MilvusHome:
    """The codes of one model in a Milvus server."""

    is_shared = True

    def __init__(
        self,
        address: MilvusAddress,
        options: dict[str, Any] | None,
        number: int,
        n_bits: int,
        *,
        writes: bool,
        wanted: "Callable[[], Keys]",
        read: "Read",
    ) -> None:
        self.address, self.number, self.n_bits = address, number, n_bits
        self._server = Server(address, options)
        self._table = self._server.table(number, n_bits)
        self._writes, self._wanted, self._read = writes, wanted, read
        self._held: Keys | None = None  # what the table holds, while it is filled
        # Locks are taken in this order: catching up, then the collection's (by wanted), then this.
        self._catching, self._changing = threading.Lock(), threading.Lock()
        self._is_known = not writes  # what the table lacked, when this process began
        self._late_adds: list[Keys] = []
        self._late_removes: list[Keys] = []
        self._error: UnreachableError | None = None  # why it is behind; None if it is not
        self._tried_at, self._delay = 0.0, RETRY
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        _open.add(self)

    # ------------------------------------------------------------------------------------- changes

    def add(self, keys: "Keys", codes: Codes) -> None:
        """Send codes of new keys; if the server is away, later."""
        with self._changing:
            self._late_adds.append(keys)
            self._send(lambda: self._table.put(codes, keys))

    def delete(self, keys: "Keys") -> None:
        """Delete keys; if the server is away, later."""
        if len(keys):
            with self._changing:
                self._late_removes.append(keys)
                self._send(lambda: self._table.remove(keys))

    def _send(self, change: Callable[[], None]) -> None:
        """Make a change, unless it waits for others or has to wait itself."""
        if not self._writes:
            self._late_adds, self._late_removes = [], []
        elif self._error is None:
            try:
                change()
            except UnreachableError as error:
                self._fall_behind(error)
            else:
                self._late_adds, self._late_removes = [], []

    def check(self) -> None:
        """Catch up, unless the server was found away just now."""
        self._be_up_to_date(self._delay)

    def prepare(self) -> None:
        """Make the table, for workers to send codes to."""
        self._held = None
        self._table.create()

    def fill(self, keys: "Keys", read: "Read") -> None:
        """Hold these keys and no others; what it holds is asked only the first time."""
        if self._held is None:
            self._table.create()
            self._held = self._table.keys()
        self._table.remove(np.setdiff1d(self._held, keys))
        missing = np.setdiff1d(keys, self._held)
        if len(missing):
            for codes, some in read(missing):
                self._refuse_closed()
                self._table.put(codes, some)
        self._held = keys

    def serve(self, keys: "Keys", read: "Read") -> None:
        """Hold these keys and no others, and let others find them by the plain name."""
        if not self._writes:
            return
        try:
            self.fill(keys, read)
            self._take_over()
        except UnreachableError as error:
            with self._changing:
                self._fall_behind(error)

    def _take_over(self) -> None:
        """Let the plain name mean this table."""
        with self._changing:
            self._refuse_closed()
            self._held, self._is_known = None, True
            self._server.point_alias(self.number)

    def sweep(self) -> None:
        """Drop the tables of older models that no search of this process uses."""
        used = {home.number for home in _open if home.address == self.address}
        if self._writes and self._error is None:
            with suppress(UnreachableError):  # the next sweep will
                for number in self._server.numbers():
                    if number < self.number and number not in used:
                        self._server.drop(number)

    # ---------------------------------------------------------------------------------- catching up

    def _fall_behind(self, error: UnreachableError) -> None:
        """Note that the server is away, and look for it now and then."""
        self._error, self._tried_at = error, time.monotonic()
        if self._thread is None and not self._closed.is_set():
            self._thread = threading.Thread(target=self._look_for_it, daemon=True)
            self._thread.start()
            logger.warning("%s", error)

    def _look_for_it(self) -> None:
        self._delay = RETRY
        while not self._closed.wait(self._delay):
            try:
                self.catch_up()
            except UnreachableError:
                self._delay = min(2 * self._delay, RARELY)
            except Exception:
                logger.exception("%s: catching up failed", self.address)
                self._delay = RARELY
            if self._error is None:
                break
        self._thread = None

    def catch_up(self) -> None:
        """Send what the server has missed, or raise an UnreachableError."""
        with self._catching:
            if self._error is None or self._closed.is_set():
                return
            try:
                n_adds, n_removes = len(self._late_adds), len(self._late_removes)
                keys = self._wanted()  # with those noted so far
                self._held = None
                self.fill(keys, self._read)
                self._take_over()
                with self._changing:
                    self._refuse_closed()
                    del self._late_adds[:n_adds], self._late_removes[:n_removes]
                    self._send_late()
                    self._error = None
            except UnreachableError as error:
                self._error, self._tried_at = error, time.monotonic()
                raise
        logger.info("%s: is up to date again", self.address)
        self.sweep()

    def _send_late(self) -> None:
        removes = np.concatenate([np.empty(0, np.int64), *self._late_removes])
        adds = np.setdiff1d(np.concatenate([np.empty(0, np.int64), *self._late_adds]), removes)
        if len(adds):
            for codes, some in self._read(adds):
                self._table.put(codes, some)
        self._table.remove(removes)
        self._late_adds, self._late_removes = [], []

    def _be_up_to_date(self, patience: float = RETRY) -> None:
        error = self._error
        if error is not None and self._writes:
            if time.monotonic() - self._tried_at < patience:
                raise error
            self.catch_up()

    # -------------------------------------------------------------------------------------- reading

    def search(self, codes: Codes, k: int) -> tuple[NDArray[np.int32], "Keys"]:
        """Find the nearest, after catching up."""
        self._be_up_to_date()
        return self._table.search(codes, k)

    def glance(self, codes: Codes, k: int) -> tuple[NDArray[np.int32], "Keys"]:
        """Search without waiting for the last changes to be seen."""
        if self._error is not None:
            raise self._error
        try:
            return self._table.search(codes, k, level="Eventually")
        except UnreachableError as error:
            with self._changing:
                self._fall_behind(error)
            raise

    def share_of_ones(self) -> list[float] | None:
        """Not told: it would take reading all codes."""
        return None

    def status(self) -> dict[str, Any]:
        """Say where it is, whether it answers, and how many changes it has not got yet."""
        error, count = self._error, None
        try:
            if error is None:
                count = self._table.count()
        except UnreachableError as found:
            error = found
        late: int | None = sum(len(keys) for keys in (*self._late_adds, *self._late_removes))
        if error is not None and not self._is_known:
            late = None
        return {
            "home": str(self.address),
            "reachable": error is None,
            "lag": late if self._writes or count is None else abs(count - len(self._wanted())),
            "error": None if error is None else str(error),
        }

    def retire(self) -> None:
        """Change nothing any more: another home serves."""
        with self._changing:
            self._closed.set()

    def close(self) -> None:
        """Do so, and wait for a thread that is changing something."""
        self.retire()
        with self._catching:
            pass

    def _refuse_closed(self) -> None:
        if self._closed.is_set():
            raise UnreachableError(f"{self.address}: this collection was closed.")
