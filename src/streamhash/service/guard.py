"""The door: what every request passes before, and every answer after, the service proper."""

import time
from collections.abc import Callable
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamhash.service.errors import Refusal
from streamhash.service.limits import Limits, overloaded, too_large
from streamhash.service.metrics import Metrics
from streamhash.service.security import PAGE_HEADERS, Tokens, check_host

__all__ = ["Guard"]

ALWAYS = ("/health", "/metrics")  # answered even when there is too much to do


class Guard:
    """Middleware: host, token and size of a request; headers and measures of an answer."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: Tokens,
        hosts: frozenset[str] | None,
        limits: Limits,
        metrics: Metrics,
    ) -> None:
        self._app, self._tokens, self._hosts = app, tokens, hosts
        self._limits, self._metrics, self._running = limits, metrics, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it here."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in PAGE_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        self._running += 1
        self._metrics.running.set(self._running)
        try:
            try:
                self._check(scope)
            except Refusal as refusal:
                await _answer(refusal, scope, send_guarded)
            else:
                await self._app(scope, receive, send_guarded)
        except Exception:
            if status == 0:  # else its own handler has logged and answered it
                raise
        finally:
            self._running -= 1
            self._metrics.running.set(self._running)
            let_go: Callable[[], None] | None = scope.get("streamhash.let_go")
            if let_go is not None:
                let_go()
            self._metrics.answered(_route(scope), status, time.perf_counter() - start)

    def _check(self, scope: Scope) -> None:
        headers, method, path = Headers(scope=scope), scope["method"], scope["path"]
        check_host(self._hosts, headers)
        if self._running > self._limits.requests and path not in ALWAYS:
            raise overloaded("requests")
        self._tokens.check(method, path, headers)
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._limits.body:
            raise too_large(self._limits.body)


async def _answer(refusal: Refusal, scope: Scope, send: Send) -> None:
    body = refusal.body()
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **{name.lower(): value for name, value in refusal.headers.items()},
    }
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
    content = b"" if scope["method"] == "HEAD" else body
    await send({"type": "http.response.body", "body": content})


def _route(scope: Scope) -> str:
    route: Any = scope.get("route")
    return str(getattr(route, "path", "other"))
