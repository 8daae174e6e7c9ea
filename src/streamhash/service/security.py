"""Who may ask for what: tokens, the host that was meant, and what a browser may do with answers."""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.datastructures import Headers

from streamhash.errors import InputError
from streamhash.service.errors import Refusal

__all__ = ["LOOPBACK", "PAGE_HEADERS", "Tokens", "check_host", "host_names"]

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
SHORTEST = 16  # characters of a token
READS = frozenset({"/api/search", "/api/encode", "/api/compare", "/api/items/get"})  # by POST
OPEN = frozenset({"/", "/health", "/ready", "/openapi.json", "/favicon.ico"})
PAGE_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True, repr=False)
class Tokens:
    """What opens the service: the write token all of it, the read token what changes nothing.

    Without any token all is open; with a read token alone, nobody writes.
    """

    read: str | None = None
    write: str | None = None

    def __post_init__(self) -> None:
        for name, token in (("read", self.read), ("write", self.write)):
            if token is None:
                continue
            if len(token) < SHORTEST or not token.isascii() or not token.isprintable():
                raise InputError(
                    f"the {name} token is too short or has strange characters; make one of at "
                    f"least {SHORTEST} letters and digits: python -c 'import secrets; "
                    "print(secrets.token_urlsafe())'"
                )
        if self.read is not None and self.read == self.write:
            raise InputError("the read token and the write token are the same; make two.")

    def __bool__(self) -> bool:
        return self.read is not None or self.write is not None

    def check(self, method: str, path: str, headers: Headers) -> None:
        """Refuse a request whose token does not open what it asks for."""
        if not self or path in OPEN or path.startswith("/static/"):
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        token = given.strip().encode() if scheme.lower() == "bearer" else b""
        # Both are compared at all times, so that the time taken tells nothing.
        writes = _same(token, self.write)
        reads = _same(token, self.read)
        if not (reads or writes):
            raise Refusal(
                401,
                "a token is needed: send the header Authorization: Bearer TOKEN.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if method not in ("GET", "HEAD") and path not in READS and not writes:
            raise Refusal(403, "this token only reads; writing needs the write token.")


def _same(given: bytes, token: str | None) -> bool:
    return hmac.compare_digest(given, (token or "").encode()) and token is not None


def host_names(host: str, allowed: Iterable[str]) -> frozenset[str] | None:
    """Return the names that requests may call this service by; None for any.

    On loopback only its own names, else a page of any site could reach the service by a name that
    its owner lets point to 127.0.0.1 (DNS rebinding).
    """
    names = frozenset(name.lower() for name in allowed)
    if host in LOOPBACK:
        return LOOPBACK | names
    return names | {host.lower()} if names else None


def check_host(names: frozenset[str] | None, headers: Headers) -> None:
    """Refuse a request that was meant for another host."""
    if names is None:
        return
    host = headers.get("host", "").lower()
    name = host[1 : host.index("]")] if host.startswith("[") and "]" in host else host
    if name == host:
        name = host.partition(":")[0]
    if name not in names:
        raise Refusal(
            421, "this service does not go by that Host; allow it with --allow-host NAME."
        )
