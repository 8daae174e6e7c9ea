"""Everything that streamhash raises on purpose, in one tree.

    StreamhashError
    ├── InputError            (a ValueError)         an argument, parameter or array of no use
    │   └── NotStartedError   (a NotFittedError)     codes asked for before any data was learned
    ├── FileError             (a ValueError)         a file corrupt, foreign or of a newer version
    ├── InUseError            (a RuntimeError)       a collection that another process writes to
    ├── MissingDataError      (a FileNotFoundError)  a data set that is not on this machine
    ├── MissingPartError      (an ImportError)       an optional part that is not installed
    └── UnreachableError      (a ConnectionError)    a server that does not answer

Each message names the place and the argument, what came, what is wanted, and the next step. The
command line prints it as one line and exits with code 2. NotStartedError lives in ``base.py``,
since scikit-learn, which defines NotFittedError, is slow to import.
"""

__all__ = [
    "FileError",
    "InUseError",
    "InputError",
    "MissingDataError",
    "MissingPartError",
    "StreamhashError",
    "UnreachableError",
]


class StreamhashError(Exception):
    """The root of the tree: catch this to catch all that streamhash raises on purpose."""


class InputError(StreamhashError, ValueError):
    """An argument, a parameter or an array that cannot be used."""


class FileError(StreamhashError, ValueError):
    """A file that is corrupt, foreign, or written by a newer version."""


class InUseError(StreamhashError, RuntimeError):
    """A collection that another process writes to."""


class MissingDataError(StreamhashError, FileNotFoundError):
    """A data set that is not on this machine and could not be fetched."""


class MissingPartError(StreamhashError, ImportError):
    """An optional part of streamhash that is not installed."""


class UnreachableError(StreamhashError, ConnectionError):
    """A server that does not answer, or not as it should."""
