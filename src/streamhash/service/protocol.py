"""Connections within bounds: heads, requests that wait, and answers that nobody reads."""

import asyncio
import socket
import struct
import time
from collections import deque
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from streamhash.service.guard import Limits, answer_error

REQUEST_COST = 4096  # bytes of memory that a request takes beside its head, about
LINE_COST = 200  # and a line of a head
CONTINUE = b"HTTP/1.1 100 "  # begins what is sent before an answer


class Heads:
    """The bytes of all heads that are being received, or wait for an answer."""

    def __init__(self) -> None:
        self.total = 0
        self.n_requests = 0  # that have come and are not answered yet

    def is_one(self) -> bool:
        """Whether there is one request only: nobody waits while it is answered."""
        return self.n_requests == 1


class _Joining:
    """A transport that sends the head of an answer together with what follows: one call less."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self._head, self._has_sent = transport, b"", False
        self.is_closing = transport.is_closing

    def write(self, content: bytes) -> None:
        if self._has_sent:
            self._transport.write(content)
        elif self._head:
            self._has_sent = True
            self._transport.write(b"".join([self._head, content]))
        elif content.startswith(CONTINUE):
            self._transport.write(content)
        else:
            self._head = content

    def flush(self) -> None:
        """Send a head that nothing follows."""
        if not self._has_sent:
            self._has_sent = True
            self._transport.write(self._head)

    def close(self) -> None:
        self.flush()
        self._transport.close()


def bounded_protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """Return uvicorn's protocol with bounds."""
    heads = Heads()

    class Bounded(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None
        _head = 0  # bytes of the head that is being received, and of trailers
        _has_called = False  # whether what has come made the parser call

        def connection_made(self, transport: Any) -> None:
            self._held = deque[int]()  # costs of the requests that are not answered yet
            self._cost = 0  # of the head that is being received
            self._unread_since: float | None = None
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                transport.abort()
                return
            self._watch()

        def data_received(self, data: bytes) -> None:
            self._has_called = False
            super().data_received(data)
            if not self._has_called:  # the middle of a line, which the parser keeps
                self._count(len(data))
            if self._head > limits.head or heads.total > limits.heads:
                self._refuse()
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            heads.total -= self._cost + sum(self._held)
            heads.n_requests -= len(self._held)
            self._cost = 0
            self._held.clear()
            super().connection_lost(exc)

        # ------------------------------------------------------------- called by the parser

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.scope["is_alone"] = heads.is_one  # type: ignore[typeddict-unknown-key]
            self._has_called, self._head = True, 0
            self._count(0, REQUEST_COST)

        def on_url(self, url: bytes) -> None:
            super().on_url(url)
            self._count(len(url))

        def on_header(self, name: bytes, value: bytes) -> None:
            super().on_header(name, value)
            self._count(len(name) + len(value) + 4, LINE_COST)

        def on_headers_complete(self) -> None:
            if len(self.pipeline) >= limits.pipelined:
                raise ValueError  # which the parser takes for the end of what it can read
            self._held.append(self._cost)
            heads.n_requests += 1
            self._cost, self._has_called = 0, True
            before = self.cycle
            super().on_headers_complete()
            if self.cycle is not before:
                joining = _Joining(self.transport)
                self.cycle.transport = joining  # type: ignore[assignment]
                self.cycle.on_response = partial(self._on_answered, joining)

        def on_body(self, body: bytes) -> None:
            self._has_called = True
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._has_called = True
            super().on_message_complete()

        def _count(self, n: int, more: int = 0) -> None:
            self._has_called = True
            self._head += n
            self._cost += n + more
            heads.total += n + more
            if self._head > limits.head:
                raise ValueError

        # ---------------------------------------------------------------------- answering

        def _on_answered(self, joining: _Joining) -> None:
            joining.flush()
            self.on_response_complete()

        def on_response_complete(self) -> None:
            if self._held:
                heads.total -= self._held.popleft()
                heads.n_requests -= 1
            super().on_response_complete()

        def send_400_response(self, msg: str) -> None:
            """Answer what cannot be read, in the shape of all errors."""
            self._refuse(f"{msg.rstrip('.')}.")

        def _refuse(self, text: str = "") -> None:
            if self.transport.is_closing():
                return
            if self.pipeline or (self.cycle is not None and not self.cycle.response_complete):
                self.transport.abort()  # in the midst of another answer
                return
            error = HTTPException(400, text)
            if self._head > limits.head:
                text = f"the head has more than {limits.head} bytes; send a shorter one."
                error = HTTPException(431, text)
            elif heads.total > limits.heads:
                error = HTTPException(503, "too many requests at a time; try again.")
            answer = answer_error(error)
            lines = [b"HTTP/1.1 %d \r\nconnection: close" % answer.status_code]
            lines += [name + b": " + value for name, value in answer.raw_headers]
            lines += [b"x-content-type-options: nosniff", b"", bytes(answer.body)]
            self.transport.write(b"\r\n".join(lines))
            self.transport.close()

        # ------------------------------------------------------------------- slow clients

        def drop_slow_reader(self) -> None:
            """Give up a client that does not read its answer; called every second."""
            now = time.monotonic()
            if self.transport is None or self.transport.get_write_buffer_size() == 0:
                self._unread_since = None
            elif self._unread_since is None:
                self._unread_since = now
            elif now - self._unread_since > limits.answer_seconds:
                # So that the system, too, gives up what it has taken to send.
                self.transport.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                self.transport.abort()

        def _watch(self) -> None:
            """Give a head that has begun some seconds, however its bytes come."""
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_timer()
            elif self._timer is None:
                self._timer = self.loop.call_later(limits.head_seconds, self._give_up)

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _give_up(self) -> None:
            if self.cycle is None or self.cycle.response_complete:
                self.transport.close()

    return Bounded
