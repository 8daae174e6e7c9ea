"""How much one request, and all of them together, may ask for."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from streamhash.service.errors import Refusal

__all__ = ["Bodies", "Lane", "Limits", "overloaded"]

Result = TypeVar("Result")

MB = 2**20


@dataclass(frozen=True)
class Limits:
    """Bounds on single requests, and on all that are being answered."""

    body: int = 32 * MB  # bytes of a body
    bodies: int = 256 * MB  # bytes of all bodies that are being read or worked on
    body_seconds: float = 30.0  # until a body has come
    head_seconds: float = 15.0  # until the head of a request has come
    vectors: int = 10_000  # vectors, ids or labels of a request
    k: int = 1_000
    answers: int = 200_000  # neighbours of a request, over all its queries
    page: int = 1_000  # items of a list
    sample: int = 2_000  # items that an older model or another method is tried on
    requests: int = 512  # being answered at a time
    connections: int = 2_048
    searches: int = 256  # that wait; writes: an eighth of them, heavy work: a sixty-fourth


def overloaded(what: str) -> Refusal:
    """Return the answer when there is too much to do: come back in a second."""
    return Refusal(503, f"too many {what} at a time; try again.", headers={"Retry-After": "1"})


class Bodies:
    """Reads bodies, and counts the memory that they take until they are let go."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._bytes = limits, 0

    async def read(self, request: Request) -> bytes:
        """Return the body; refuse one that is too large or too slow."""
        limits, parts, size = self._limits, list[bytes](), 0
        try:
            async with asyncio.timeout(limits.body_seconds):
                async for part in request.stream():
                    size += len(part)
                    if size > limits.body:
                        raise too_large(limits.body)
                    if self._bytes + len(part) > limits.bodies:
                        raise overloaded("large bodies")
                    self._bytes += len(part)
                    parts.append(part)
        except TimeoutError:
            raise Refusal(
                408,
                f"the body took more than {limits.body_seconds:g} s to come.",
                headers={"Connection": "close"},
            ) from None
        except ClientDisconnect:
            raise Refusal(400, "the body broke off.") from None
        finally:
            # Counted once more until the answer has gone, see ``Guard``.
            request.scope["streamhash.let_go"] = lambda: self._let_go(sum(map(len, parts)))
        return b"".join(parts)

    def _let_go(self, size: int) -> None:
        self._bytes -= size


def too_large(most: int) -> Refusal:
    """Return the answer to a body that is too large."""
    return Refusal(413, f"the body has more than {most} bytes; send smaller batches.")


class Lane:
    """Threads for one kind of blocking work, and a bounded number of calls that wait for them."""

    def __init__(self, name: str, threads: int, waiting: int) -> None:
        self.name, self._most, self.n_calls = name, threads + waiting, 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"serve-{name}")

    def submit(self, work: Callable[..., Result], *arguments: Any) -> "asyncio.Future[Result]":
        """Call in a thread; refuse if too many calls wait already."""
        if self.n_calls >= self._most:
            raise overloaded(f"{self.name} requests")
        self.n_calls += 1
        call = asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)
        call.add_done_callback(self._done)
        return call

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Call in a thread and wait for the result; a request given up is worked on to its end."""
        return await asyncio.shield(self.submit(work, *arguments))

    def _done(self, _: "asyncio.Future[Any]") -> None:
        self.n_calls -= 1

    def close(self) -> None:
        """Wait for the calls that run."""
        self._pool.shutdown()
