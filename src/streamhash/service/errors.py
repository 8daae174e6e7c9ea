"""One shape for every error: ``{"error": {"code": …, "message": …}}``, and never a stack trace."""

import json
import logging
from collections.abc import Mapping

from streamhash.base import NotStartedError
from streamhash.errors import InputError, InUseError, StreamhashError

__all__ = ["CODES", "Refusal", "refusal_of"]

logger = logging.getLogger(__name__)

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
    500: "internal",
    503: "overloaded",
    507: "storage",
}


class Refusal(Exception):  # noqa: N818  an answer, and often no error of ours
    """A request that is answered with an error."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.code = code or CODES.get(status, "error")
        self.headers = dict(headers or {})

    def body(self) -> bytes:
        """Return the answer's body."""
        # JSON in ASCII can say any string, even one that UTF-8 cannot.
        return json.dumps({"error": {"code": self.code, "message": self.message}}).encode("ascii")


def refusal_of(error: Exception) -> Refusal:
    """Return the answer to an error: the library's own words, or none of an accident's."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, NotStartedError):
        return Refusal(409, str(error), code="not_ready")
    if isinstance(error, InUseError):
        return Refusal(409, "another process writes to this collection.", code="in_use")
    if isinstance(error, InputError):
        return Refusal(400, str(error))
    if isinstance(error, StreamhashError | OSError):  # its words may name files
        logger.error("storage failed: %s", error)
        return Refusal(507, "the collection could not be read or written; see the service's log.")
    logger.error("a request failed", exc_info=error)
    return Refusal(500, "something went wrong here; the service's log has more.")
