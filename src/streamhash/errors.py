"""Everything that streamhash raises on purpose, in one tree, with the status it has over HTTP.

    StreamhashError           500
    ├── InputError            400  (a ValueError) an argument, parameter or array of no use
    │   ├── NotStartedError   409  (a NotFittedError) codes asked for before any data was learned
    │   ├── ExtremeRowsError  400  rows too extreme, and too many, to be learned
    │   ├── NotFoundError     404  an item or a model that is not there
    │   ├── ConflictError     409  an item that is there already
    │   └── ReadOnlyError     403  a change to what is open to read only
    ├── FileError             507  (a ValueError) a file corrupt, foreign or of a newer version
    ├── InUseError            409  (a RuntimeError) a collection that another process writes to
    ├── MissingDataError      404  (a FileNotFoundError) a data set that is not on this machine
    ├── MissingPartError      501  (an ImportError) an optional part that is not installed
    ├── UnreachableError      503  (a ConnectionError) a server that does not answer
    │   └── GoneError         503  a table that a server does not have any more
    └── ServiceError               a request that a service has refused

Each message names the place and the argument, what came, what is wanted, and the next step. The
command line prints it as one line and exits with code 2. NotStartedError lives in ``base.py``,
since scikit-learn, which defines NotFittedError, is slow to import.
"""

from typing import TypeVar

Fault = TypeVar("Fault", bound=BaseException)


class StreamhashError(Exception):
    """The root of the tree: catch this to catch all that streamhash raises on purpose."""

    status = 500  # over HTTP
    code = "internal"  # a word for programs


class InputError(StreamhashError, ValueError):
    """An argument, a parameter or an array that cannot be used."""

    status, code = 400, "bad_input"


class ExtremeRowsError(InputError):
    """Rows that are too extreme, and too many, to be learned.

    Attributes
    ----------
    rows : list of int
        Their places in X; empty if a row that was learned before is to blame.
    """

    def __init__(self, message: str, rows: list[int]) -> None:
        super().__init__(message)
        self.rows = rows


class NotFoundError(InputError):
    """An item or a model that is not there."""

    status, code = 404, "not_found"


class ConflictError(InputError):
    """An item that is there already."""

    status, code = 409, "conflict"


class ReadOnlyError(InputError):
    """A change to a collection that is open to read only."""

    status, code = 403, "read_only"


class FileError(StreamhashError, ValueError):
    """A file that is corrupt, foreign, or written by a newer version."""

    status, code = 507, "storage"


class InUseError(StreamhashError, RuntimeError):
    """A collection that another process writes to."""

    status, code = 409, "in_use"


class MissingDataError(StreamhashError, FileNotFoundError):
    """A data set that is not on this machine and could not be fetched."""

    status, code = 404, "not_found"


class MissingPartError(StreamhashError, ImportError):
    """An optional part of streamhash that is not installed."""

    status, code = 501, "not_installed"


class UnreachableError(StreamhashError, ConnectionError):
    """A server that does not answer, or not as it should."""

    status, code = 503, "unreachable"


class GoneError(UnreachableError):
    """A table that a server does not have any more."""


class ServiceError(StreamhashError):
    """A request that a service has refused, or that did not reach it.

    Attributes
    ----------
    status : int
        Of HTTP; 0 if there was no answer.
    code : str
        A word for programs, such as ``bad_input`` or ``overloaded``.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


def shown(value: object, longest: int = 100) -> str:
    """Return a value as an error's text shows it: never endless, and never an error itself.

    >>> shown("a"), shown([0] * 100, 10), shown(-(10**5000))
    ("'a'", '[0, 0, 0, …', 'int of too many digits or levels')
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python does not write out numbers of 4,300 digits
        return f"{type(value).__name__} of too many digits or levels"
    return text if len(text) <= longest else f"{text[:longest]}…"


def copies(error: Fault, n: int) -> list[Fault]:
    """Return an error for each of ``n`` callers to raise: one that is shared grows with each.

    Those of streamhash are of the same type, text and attributes, with the error as their cause. Of
    others nobody knows what they hold, so they are shared.
    """
    if n == 1 or not isinstance(error, StreamhashError):
        return [error] * n
    return [_copy(error) for _ in range(n)]


def _copy(error: Fault) -> Fault:
    twin = type(error).__new__(type(error))  # its __init__ may want other arguments
    twin.args, twin.__cause__ = error.args, error
    vars(twin).update(vars(error))
    return twin
