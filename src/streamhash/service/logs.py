"""What the service writes down: a line a request, and what went wrong, as text or as JSON.

A line has the request's id, address, status and times; never a token, a query, a body or an answer.
"""

import json
import logging
import re
import sys
from collections.abc import MutableMapping
from contextvars import ContextVar
from datetime import UTC, datetime
from itertools import count
from secrets import token_hex
from typing import Any

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
GIVEN_ID = re.compile(rb"[\w.:-]{1,64}")

access = logging.getLogger("streamhash.service.access")
request_id: ContextVar[str] = ContextVar("request_id", default="")

_process, _numbers = token_hex(4), count(1)


def next_id(headers: list[tuple[bytes, bytes]]) -> str:
    """Return the id that a request came with, if it is a decent one, or a new one.

    >>> next_id([(b"x-request-id", b"trace-7")])
    'trace-7'
    """
    for name, value in headers:
        if name == b"x-request-id" and GIVEN_ID.fullmatch(value):
            return value.decode()
    return f"{_process}-{next(_numbers)}"


def log_request(scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
    """Write a line about a request that has been answered; at warning what was not its fault."""
    level = logging.WARNING if status >= 500 or status == 0 else logging.INFO
    if not access.isEnabledFor(level):
        return
    client = scope.get("client")
    facts = {
        "method": scope["method"],
        "path": scope["path"],
        "status": status,
        "ms": round(seconds * 1000, 2),
        "client": client[0] if client else None,
    }
    # A path can have line breaks and worse in it, once it is decoded.
    text = f"{facts['method']} {json.dumps(facts['path'])[1:-1]} {status} {facts['ms']} ms"
    access.log(level, "%s", text, extra={"facts": facts})


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        parts = [_time(record), f"{record.levelname:7}", request_id.get(), _plain(record)]
        line = " ".join(part for part in parts if part)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"time": _time(record), "level": record.levelname.lower(), "logger": record.name}
        if request_id.get():
            line["request_id"] = request_id.get()
        line |= getattr(record, "facts", None) or {"message": record.getMessage()}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _plain(record: logging.LogRecord) -> str:
    """Return a message on one line: what others have sent writes no line of its own."""
    return "".join(
        sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in record.getMessage()
    )


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def set_up(level: str, form: str) -> None:
    """Write what the service and its server say to standard error, from a level up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    handler.setLevel(level.upper())
    # What columns a file has is told to who sent it: the command line would say it here.
    logging.getLogger("streamhash.files").handlers = []
    for name in ("streamhash", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
