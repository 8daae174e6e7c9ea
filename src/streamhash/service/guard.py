"""What every request passes before the service, and every answer after it.

The host that was meant, tokens, limits, and one shape for every error:
``{"error": {"code": …, "message": …}}``, never a stack trace or the name of a file.
"""

import asyncio
import hmac
import json
import logging
import re
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from types import coroutine
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamhash.errors import InputError, StreamhashError
from streamhash.service.logs import log_request, next_id, request_id

if TYPE_CHECKING:
    from streamhash.service.metrics import Metrics

logger = logging.getLogger(__name__)

Measures = tuple[Callable[[], None], Callable[[float], None]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHORTEST_TOKEN = 16  # characters
READING_POSTS = ("search", "encode", "predict", "compare", "items/get")
# Their addresses, of the only collection or of one by its name.
READING = re.compile(rf"/api/(collections/[^/]+/)?({'|'.join(READING_POSTS)})")
WITHOUT_TOKEN = ("/", "/docs", "/health", "/ready", "/openapi.json", "/favicon.ico")
WHEN_OVERLOADED = ("/health", "/metrics")  # answered even then
PIECE = 2**16  # bytes of an answer that are sent at once
NAMED = re.compile(r"\w+")
HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:/?#@\s]+)(:[0-9]*)?", re.IGNORECASE)

ANSWER_HEADERS = [
    (name.encode(), value.encode())
    for name, value in {
        "content-security-policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; "
            "img-src 'self' blob: data: https:; "  # pictures of items may be elsewhere
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "cache-control": "no-store",
    }.items()
]
ANSWER_NAMES = frozenset(name for name, _ in ANSWER_HEADERS)
CODES = {
    400: "bad_input",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    409: "conflict",
    413: "too_large",
    415: "unsupported_type",
    421: "wrong_host",
    422: "invalid",
    431: "head_too_large",
    503: "overloaded",
}
# Errors whose own text may name files or other machines: it is logged, this is answered.
PUBLIC_TEXTS = {
    "in_use": "another process writes to this collection.",
    "storage": "the collection could not be read or written; see the service's log.",
    "unreachable": "the server that holds this collection's codes does not answer; try again.",
    "internal": "something went wrong here; the service's log has more.",
}
ERROR_HEADERS = {
    401: {"WWW-Authenticate": "Bearer"},
    408: {"Connection": "close"},
    503: {"Retry-After": "1"},
}


@dataclass(frozen=True)
class Limits:
    """Bounds on single requests, and on all that are being answered."""

    body: int = 32 * 2**20  # bytes of a body
    bodies: int = 256 * 2**20  # bytes of all bodies that are being read or worked on
    body_seconds: float = 30.0  # until a body has come
    head: int = 2**16  # bytes of a head, and of trailers
    heads: int = 64 * 2**20  # bytes that heads take, of all requests that are not answered yet
    head_seconds: float = 15.0  # until the head of a request has come
    pipelined: int = 16  # requests of a connection that wait for the one before
    answer: int = 64 * 2**20  # bytes of an answer
    unread: int = 256 * 2**20  # bytes of all answers that are not read yet
    answer_seconds: float = 30.0  # until an answer has been read
    vectors: int = 10_000  # vectors, ids or labels of a request
    k: int = 1_000
    answers: int = 200_000  # neighbours of a request, over all its queries, or candidates
    page: int = 1_000  # items of a list
    sample: int = 2_000  # items that an older model or another method is tried on
    requests: int = 512  # being answered at a time
    connections: int = 2_048
    searches: int = 256  # that wait; large writes: an eighth of them, comparisons: a sixty-fourth

    def check(self, n: int, k: int = 0, *, rescore: int | None = None, what: str = "ids") -> None:
        """Refuse a request for more than one may ask for: ``n`` of something, ``k`` neighbours."""
        candidates = n * k * (rescore or 1)
        if k <= self.k and n <= self.vectors and candidates <= self.answers:
            return
        asked = f"k={k}" if rescore is None else f"k={k} and rescore={rescore}"
        for given, most, text in (
            (k, self.k, f"k={k}"),
            (n, self.vectors, f"{n} {what}"),
            (candidates, self.answers, f"{n} queries with {asked}, {candidates} answers"),
        ):
            if given > most:
                raise HTTPException(413, f"{text}: too much for a request; at most {most}.")


@dataclass(frozen=True, repr=False)
class Tokens:
    """What opens the service: the write token all of it, the read token what changes nothing.

    Without any token all is open; with a read token alone, nobody writes.
    """

    read: str | None = None
    write: str | None = None

    def __post_init__(self) -> None:
        for name, token in (("read", self.read), ("write", self.write)):
            if token is not None and not _is_usable(token):
                raise InputError(
                    f"the {name} token is too short or has strange characters; make one of at "
                    f"least {SHORTEST_TOKEN} letters and digits: python -c 'import secrets; "
                    "print(secrets.token_urlsafe())'"
                )
        if self.read is not None and self.read == self.write:
            raise InputError("the read token and the write token are the same; make two.")

    def __bool__(self) -> bool:
        return self.read is not None or self.write is not None

    def check(self, method: str, path: str, authorization: str) -> bool:
        """Refuse a request whose token does not open what it asks for; return if it may write."""
        if not self or path in WITHOUT_TOKEN or path.startswith("/static/"):
            return not self
        scheme, _, given = authorization.partition(" ")
        token = given.strip().encode() if scheme.lower() == "bearer" else b""
        # Both are compared at all times, so that the time taken tells nothing.
        writes = _same(token, self.write)
        reads = _same(token, self.read)
        if not (reads or writes):
            raise HTTPException(401, "a token is needed: send Authorization: Bearer TOKEN.")
        reading = method in ("GET", "HEAD") or (method == "POST" and READING.fullmatch(path))
        if not (writes or reading):
            raise HTTPException(403, "this token only reads; writing needs the write token.")
        return writes


def _is_usable(token: str) -> bool:
    return len(token) >= SHORTEST_TOKEN and token.isascii() and token.isprintable()


def _same(given: bytes, token: str | None) -> bool:
    return hmac.compare_digest(given, (token or "").encode()) and token is not None


def answer_error(error: Exception) -> Response:
    """Return the answer to an error, with the status that it carries."""
    headers = None
    if isinstance(error, RequestValidationError):
        status, code, message = 422, CODES[422], _explain(error.errors())
    elif isinstance(error, HTTPException):
        status, headers = error.status_code, error.headers
        code, message = CODES.get(status, "error"), str(error.detail)
        if message == "Not Found":  # as Starlette says it
            message = "there is nothing at this address."
    elif isinstance(error, StreamhashError):
        status, code, message = error.status, error.code, str(error)
    elif isinstance(error, OSError):
        status, code, message = 507, "storage", str(error)
    else:
        status, code, message = 500, "internal", repr(error)
    if code in PUBLIC_TEXTS:
        logger.error("%s: %s", code, message, exc_info=error if code == "internal" else None)
        message = PUBLIC_TEXTS[code]
    # JSON in ASCII can say any string, even one that UTF-8 cannot.
    body = json.dumps({"error": {"code": code, "message": message}})
    headers = headers or ERROR_HEADERS.get(status)
    return Response(body, status, headers, media_type="application/json")


def _explain(errors: Any) -> str:
    """Tell the first thing that is wrong with a request, and how many more there are."""
    first = errors[0]
    # Beside names and places in lists, pydantic names types that were tried.
    place = () if first["type"] == "json_invalid" else first["loc"][1:]
    parts = [str(part) for part in place if NAMED.fullmatch(str(part))]
    reason = first.get("ctx", {}).get("error", first["msg"])
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{'.'.join(parts) or first['loc'][0]}: {str(reason).rstrip('.')}{more}."[:500]


def host_patterns(host: str, allowed_hosts: Iterable[str]) -> list[str]:
    """Return the hosts that requests may be meant for, as ``is_host`` takes them.

    On loopback only its own names are taken, else a page of any site could reach the service by a
    name that its owner lets point to 127.0.0.1 (DNS rebinding). These are taken elsewhere, too.
    """
    names = [*allowed_hosts]
    for name in names:
        if "*" in name.removeprefix("*.") and name != "*":
            raise InputError(
                f"create_app: allowed_hosts has {name!r}; a star stands for all hosts, or first "
                "and before a dot: *.example.org."
            )
    if host not in LOOPBACK and names:
        names.append(host)
    if names or host in LOOPBACK:
        names += LOOPBACK  # by which the machine itself asks, whether it answers
    return [f"[{name}]" if ":" in name else name for name in names] or ["*"]


def is_host(header: str, patterns: list[str]) -> bool:
    """Whether a request is meant for one of these hosts; a port, and nothing else, may follow.

    >>> [is_host(each, ["[::1]", "*.example"]) for each in ("[::1]:80", "a.example", "[::1].a")]
    [True, True, False]
    """
    if "*" in patterns:
        return True
    found = HOST.fullmatch(header.lower())
    host = found[1] if found else ""
    return any(
        host.endswith(each[1:]) if each.startswith("*") else host == each for each in patterns
    )


def header(scope: Scope, name: bytes) -> str:
    """Return the first header of a request by this name in small letters, "" if there is none."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return ""


class Guard:
    """Middleware: host, token and size of a request; headers and measures of an answer."""

    def __init__(
        self, app: ASGIApp, tokens: Tokens, hosts: list[str], limits: Limits, metrics: "Metrics"
    ) -> None:
        self._app, self._tokens, self._limits, self._metrics = app, tokens, limits, metrics
        self._bodies, self._answers, self._running = _Bodies(limits), _Answers(limits), 0
        self._hosts = [pattern.lower() for pattern in hosts]
        self._last_host: str | None = None  # that was a good one
        self._measures: dict[tuple[str, int], Measures] = {}  # by route and status
        metrics.running.set_function(lambda: self._running)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, number = time.perf_counter(), next_id(scope["headers"])
        answer = _Answer(send, self._answers, number)
        request_id.set(number)
        body = _Body(receive, self._bodies)
        self._running += 1
        try:
            self._check(scope)
            await self._app(scope, body.receive, answer.send)
        except Exception as error:  # noqa: BLE001  each has its answer
            if answer.status == 0:  # else a handler of the app has answered it
                await answer_error(error)(scope, receive, answer.send)
        finally:
            self._running -= 1
            body.forget()
            route = getattr(scope.get("route"), "path", "other")
            seconds = time.perf_counter() - start
            count, observe = self._measured(route, answer.status)
            count()
            observe(seconds)
            log_request(scope, answer.status, seconds)

    def _measured(self, route: str, status: int) -> Measures:
        """Return what counts a request, and takes note of its seconds."""
        found = self._measures.get((route, status))
        if found is None:
            counter = self._metrics.requests.labels(route, str(status))
            found = counter.inc, self._metrics.seconds.labels(route).observe
            self._measures[route, status] = found
        return found

    def _check(self, scope: Scope) -> None:
        path = scope["path"]
        host = header(scope, b"host")
        if host != self._last_host:
            if not is_host(host, self._hosts):
                raise HTTPException(
                    421, "not a Host of this service; allow it with --allow-host NAME."
                )
            self._last_host = host
        if self._running > self._limits.requests and path not in WHEN_OVERLOADED:
            raise HTTPException(503, "too many requests at a time; try again.")
        scope["may_write"] = self._tokens.check(
            scope["method"], path, header(scope, b"authorization")
        )
        length = header(scope, b"content-length")
        if length.isdecimal() and int(length) > self._limits.body:
            raise _too_large(self._limits)


class _Bodies:
    """The bytes of all bodies that are worked on."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.bytes = limits, 0


class _Body:
    """Bounds a body in bytes and seconds; it counts until its request has been answered."""

    def __init__(self, receive: Receive, bodies: _Bodies) -> None:
        self._receive, self._all, self._size = receive, bodies, 0
        self._deadline = asyncio.get_running_loop().time() + bodies.limits.body_seconds

    async def receive(self) -> Message:
        """Receive the next part, or refuse what is too much or too slow."""
        limits, receiving = self._all.limits, self._receive().__await__()
        try:  # mostly it is there already, and needs no timer
            waits_for = next(receiving)
        except StopIteration as there:
            message: Message = there.value
        else:
            try:
                async with asyncio.timeout_at(self._deadline):
                    message = await _resumed(receiving, waits_for)
            except TimeoutError:
                text = f"the body took more than {limits.body_seconds:g} s to come."
                raise HTTPException(408, text) from None
        n = len(message.get("body", b""))
        if self._size + n > limits.body:
            raise _too_large(limits)
        if self._all.bytes + n > limits.bodies:
            raise HTTPException(503, "too many large bodies at a time; try again.")
        self._size, self._all.bytes = self._size + n, self._all.bytes + n
        return message

    def forget(self) -> None:
        """Count it no more."""
        self._all.bytes -= self._size


@coroutine
def _resumed(
    awaiting: Generator[Any, Any, Message], waits_for: Any
) -> Generator[Any, Any, Message]:
    """Go on with what was begun and waits for something."""
    yield waits_for
    return (yield from awaiting)


def _too_large(limits: Limits) -> HTTPException:
    return HTTPException(413, f"the body has more than {limits.body} bytes; send smaller batches.")


class _Answers:
    """The bytes of all answers that are not read yet."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.bytes = limits, 0


class _Answer:
    """Sends an answer with the headers of all, in pieces as they are read, within bounds."""

    def __init__(self, send: Send, answers: _Answers, number: str) -> None:
        self._send, self._all, self._number = send, answers, number.encode()
        self._start: Message | None = None
        self.status = 0  # until something is sent

    async def send(self, message: Message) -> None:
        """Send the start of an answer with its body, or refuse what is too much for now."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        body = message.get("body", b"")
        if self._start is not None:
            status, headers, self._start = self._start["status"], self._start["headers"], None
            if len(body) > PIECE and self._all.bytes + len(body) > self._all.limits.unread:
                refused = HTTPException(503, "too many answers are not read yet; try again.")
                answer = answer_error(refused)
                status, headers, body = 503, answer.raw_headers, answer.body
            there = {name for name, _ in headers}
            own = ANSWER_HEADERS
            if not ANSWER_NAMES.isdisjoint(there):
                own = [pair for pair in own if pair[0] not in there]
            headers = [*headers, *own, (b"x-request-id", self._number)]
            self.status = status
            start = {"type": "http.response.start", "status": status, "headers": headers}
            await self._send(start)
        if len(body) <= PIECE:
            await self._send({**message, "body": body})
            return
        self._all.bytes += len(body)
        try:
            whole = memoryview(body)
            for at in range(0, len(whole), PIECE):
                more = message.get("more_body", False) or at + PIECE < len(whole)
                await self._send({**message, "body": whole[at : at + PIECE], "more_body": more})
        finally:
            self._all.bytes -= len(body)
