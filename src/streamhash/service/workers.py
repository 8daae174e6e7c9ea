"""Threads for what would hold up the event loop; a bounded number of calls waits for them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.exceptions import HTTPException

FEW_ITEMS = 16  # of a request: eight times as many of such may wait

Result = TypeVar("Result")


class Places:
    """For requests of a kind that wait or are worked on; those with many items have an eighth.

    The two do not take each other's: many small ones leave room for a large one.
    """

    def __init__(self, kind: str, n: int) -> None:
        self._kind, self._most = kind, {False: n, True: max(n // 8, 1)}
        self._taken = {False: 0, True: 0}

    @property
    def are_taken(self) -> bool:
        """Whether any request waits or is worked on."""
        return any(self._taken.values())

    @contextmanager
    def one(self, n_items: float = 1) -> Iterator[None]:
        """Hold a place for a request with so many items; refuse it if none is left."""
        is_large = n_items > FEW_ITEMS
        if self._taken[is_large] >= self._most[is_large]:
            raise HTTPException(503, f"too many {self._kind} requests at a time; try again.")
        self._taken[is_large] += 1
        try:
            yield
        finally:
            self._taken[is_large] -= 1


class Workers:
    """Threads for one kind of blocking work."""

    def __init__(self, kind: str, n: int, max_waiting: int) -> None:
        self._limiter, self._places = CapacityLimiter(n), Places(kind, n + max_waiting)

    @property
    def is_busy(self) -> bool:
        """Whether a call runs or waits."""
        return self._places.are_taken

    async def run(self, work: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
        """Call in a thread; refuse if too many calls wait already."""
        return await self.run_for(1, work, *arguments, **named)

    async def run_for(
        self, n_items: float, work: Callable[..., Result], *arguments: Any, **named: Any
    ) -> Result:
        """Call in a thread for a request with so many items."""
        with self._places.one(n_items):
            call = partial(work, *arguments, **named)
            return await to_thread.run_sync(call, limiter=self._limiter)
