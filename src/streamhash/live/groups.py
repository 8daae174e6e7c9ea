"""Calls of threads that come at the same time, done together: the first does the work of all.

While a group is done, what comes waits and is the next group; a call that comes alone does not
wait. Whoever waits is woken when its own call is done, and one of them does the next group.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import Generic, TypeVar

from streamhash.errors import copies
from streamhash.live.locks import uninterrupted

Request = TypeVar("Request")
Result = TypeVar("Result")

GROUP_CALLS = 256  # at most


class _Call(Generic[Request]):
    """A call that waits."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.woken = threading.Event()  # it is done, or has to do the next group
        self.answer: object = None
        self.is_done = False


class Groups(Generic[Request, Result]):
    """Does requests together, in the order in which they come.

    ``do`` returns a result or an error for each. What ``after`` has to do comes when all of a group
    have been told, and holds up nobody but the one that did the group.
    """

    # A call waits until it is done or given up, also while a group does it; the first of those that
    # wait does the group. So whatever ends a call, Ctrl-C too, to take it out and to wake the first
    # is all that is to do, and it may be done twice.

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

    def run(self, request: Request) -> Result:
        """Do one request, perhaps with those of others; return its result or raise its error."""
        call = _Call(request)
        try:
            with self._lock:
                self._waiting.append(call)
                self._wake()
            call.woken.wait()
            has_changed = not call.is_done and self._lead()
            self._leave(call)
        except BaseException:
            self._leave(call)
            raise
        if has_changed:
            self._after()
        if isinstance(call.answer, BaseException):
            raise call.answer
        return call.answer  # type: ignore[return-value]

    def _lead(self) -> bool:
        """Do all that wait now; return whether any of it succeeded."""
        with self._lock:
            group = [*islice(self._waiting, GROUP_CALLS)]
        try:
            # Of several calls, all are told of what was done, before Ctrl-C ends this thread's.
            with uninterrupted() if len(group) > 1 else nullcontext():
                answers = self._do([call.request for call in group])
                self._tell(group, answers)
        except Exception as error:
            self._tell(group, copies(error, len(group)))
            raise
        return not all(isinstance(answer, Exception) for answer in answers)

    def _tell(self, group: list[_Call[Request]], answers: Sequence[object]) -> None:
        with self._lock:
            for call, answer in zip(group, answers, strict=True):
                call.answer, call.is_done = answer, True

    def _leave(self, call: _Call[Request]) -> None:
        """Let a call wait no more, done or not; what was not begun is not done."""
        with self._lock:
            if call in self._waiting:
                self._waiting.remove(call)
            self._wake()

    def _wake(self) -> None:
        """Wake those that are done, and the first of the others, which does the next group."""
        while self._waiting and self._waiting[0].is_done:
            self._waiting[0].woken.set()
            self._waiting.popleft()
        if self._waiting:
            self._waiting[0].woken.set()
