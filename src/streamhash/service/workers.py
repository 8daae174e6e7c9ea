"""Threads for what would hold up the event loop; a bounded number of calls waits for them."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.exceptions import HTTPException

Result = TypeVar("Result")


class Workers:
    """Threads for one kind of blocking work."""

    def __init__(self, kind: str, n: int, max_waiting: int) -> None:
        self._kind, self._limiter = kind, CapacityLimiter(n)
        self._n_calls, self._max_calls = 0, n + max_waiting

    @property
    def is_busy(self) -> bool:
        """Whether a call runs or waits."""
        return self._n_calls > 0

    async def run(self, work: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
        """Call in a thread; refuse if too many calls wait already."""
        if self._n_calls >= self._max_calls:
            raise HTTPException(503, f"too many {self._kind} requests at a time; try again.")
        self._n_calls += 1
        try:
            call = partial(work, *arguments, **named)
            return await to_thread.run_sync(call, limiter=self._limiter)
        finally:
            self._n_calls -= 1
