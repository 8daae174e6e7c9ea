"""Calls of threads that come at the same time, done together: the first does the work of all.

While a group is done, what comes waits and is the next group; a call that comes alone does not
wait. Whoever waits is woken when its own call is done, and one of them does the next group.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Generic, TypeVar

from streamhash.live.locks import uninterrupted

Request = TypeVar("Request")
Result = TypeVar("Result")

GROUP_CALLS = 256  # at most


class _Call(Generic[Request]):
    """A call that waits."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.woken = threading.Event()
        self.leads = False  # whether it does the next group
        self.answer: object = None
        self.is_done = False


class Groups(Generic[Request, Result]):
    """Does requests together, in the order in which they come.

    ``do`` returns a result or an error for each. What ``after`` has to do comes when all of a group
    have been told, and holds up nobody but the one that did the group.
    """

    def __init__(
        self,
        do: Callable[[Sequence[Request]], Sequence[Result | Exception]],
        after: Callable[[], None],
    ) -> None:
        self._do, self._after = do, after
        self.forked()

    def forked(self) -> None:
        """Know of no call: in a child of this process nobody waits."""
        self._lock = threading.Lock()
        self._waiting: deque[_Call[Request]] = deque()
        self._is_led = False

    def run(self, request: Request) -> Result:
        """Do one request, perhaps with those of others; return its result or raise its error."""
        call = _Call(request)
        with self._lock:
            self._waiting.append(call)
            call.leads, self._is_led = not self._is_led, True
        if not call.leads:
            try:
                call.woken.wait()
            except BaseException:
                self._give_up(call)
                raise
        if call.leads and self._lead():
            self._after()
        if isinstance(call.answer, BaseException):
            raise call.answer
        return call.answer  # type: ignore[return-value]

    def _lead(self) -> bool:
        """Do all that wait now, and let one of those that came meanwhile do the next group.

        Returns whether any of it succeeded.
        """
        with self._lock:
            n = min(len(self._waiting), GROUP_CALLS)
            group = [self._waiting.popleft() for _ in range(n)]
        try:
            # Of several calls, all are told of what was done, before Ctrl-C ends this thread's.
            with uninterrupted() if len(group) > 1 else nullcontext():
                answers = self._do([call.request for call in group])
                for call, answer in zip(group, answers, strict=True):
                    call.answer, call.is_done = answer, True
        except Exception as error:
            for call in group:
                call.answer, call.is_done = error, True
            raise
        finally:
            self._pass_on(group[1:])
        return not all(isinstance(answer, Exception) for answer in answers)

    def _pass_on(self, others: list[_Call[Request]]) -> None:
        """Wake those that are done; what was interrupted is not, and comes first in the next."""
        with self._lock:
            self._waiting.extendleft(call for call in reversed(others) if not call.is_done)
            if self._waiting:
                self._waiting[0].leads = True
                self._waiting[0].woken.set()
            self._is_led = bool(self._waiting)
        for call in others:
            if call.is_done:
                call.woken.set()

    def _give_up(self, call: _Call[Request]) -> None:
        """Wait no more, as Ctrl-C came: what is not begun is not done."""
        with self._lock:
            if call in self._waiting:
                self._waiting.remove(call)
        if call.leads and not call.is_done:
            self._pass_on([])
