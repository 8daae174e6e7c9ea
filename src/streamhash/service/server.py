"""Running the service: the socket, the process's signals and memory, requests that never end."""

import asyncio
import ctypes
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from streamhash.errors import InputError
from streamhash.service.errors import Refusal
from streamhash.service.limits import Limits
from streamhash.service.security import LOOPBACK, Tokens

__all__ = ["check_open", "listen", "run"]

IDLE = 75  # seconds that a connection without a request is kept
STOPPING = 60  # seconds that running requests have to end
M_MMAP_THRESHOLD = -3  # of glibc's mallopt


def check_open(host: str, tokens: Tokens) -> None:
    """Refuse to listen where others can reach it without a token."""
    if host not in LOOPBACK and not tokens:
        raise InputError(
            f"serve: --host {host} lets other machines in, and no token is set; put one into a "
            "file for --write-token-file (or --read-token-file), or into STREAMHASH_WRITE_TOKEN."
        )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        at = socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"serve: cannot listen at {host} port {port} ({reason}); choose another --port."
        ) from error
    # Connections inherit it. asyncio sets it only where a socket names its protocol, which those of
    # create_server do not; without it, answers in two parts wait 40 ms for an acknowledgement.
    at.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return at


def run(
    app: ASGIApp,
    at: socket.socket,
    limits: Limits | None = None,
    started: Callable[[], None] | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that run then are answered first."""
    _give_back_memory()
    config = uvicorn.Config(
        app,
        http=_patient(limits or Limits()),
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing here depends on who asks
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=STOPPING,
    )
    with _quiet_signals():
        server = uvicorn.Server(config)
        if started is not None:
            _call_when_started(server, started)
        server.run(sockets=[at])


def _give_back_memory() -> None:
    """Let large arrays go back to the system as soon as they are freed.

    glibc does so at first, but keeps ever larger ones the more of them it has seen. Every refresh
    then leaves other gaps behind: after 15 of them, 100,000 items took 667 MB instead of 430.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:  # None where the C library is another one
            mallopt(M_MMAP_THRESHOLD, 2**20)


def _call_when_started(server: uvicorn.Server, started: Callable[[], None]) -> None:
    start = server.startup

    async def startup(*arguments: Any, **named: Any) -> None:
        await start(*arguments, **named)
        started()

    server.startup = startup  # type: ignore[method-assign]


@contextmanager
def _quiet_signals() -> Iterator[None]:
    """Let uvicorn end by a signal without ending the process: the collection is still open.

    It raises what it has caught once more, at the end; so that is caught here.
    """
    names = (signal.SIGTERM, signal.SIGINT)
    before = {name: signal.signal(name, lambda *_: None) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _patient(limits: Limits) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with bounds: connections, and seconds for a head."""

    class Patient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                transport.close()
                return
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, error: Exception | None) -> None:
            self._stop_timer()
            super().connection_lost(error)

        def send_400_response(self, msg: str) -> None:
            """Answer what is not even HTTP, in the shape of all errors."""
            body = Refusal(400, f"{msg.rstrip('.')}.").body()
            head = (
                "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nx-content-type-options: nosniff\r\n"
                "connection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
            self.transport.close()

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

    return Patient
