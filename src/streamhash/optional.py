"""Optional packages, imported where they are first needed."""

import importlib
import warnings
from typing import Any

from streamhash.errors import MissingPartError


def import_optional(name: str, *, extra: str, place: str, otherwise: str = "") -> Any:
    """Import a module of an optional package, or say how to install it.

    Parameters
    ----------
    name : str
        The module, such as "pyarrow.parquet".
    extra : str
        The extra of streamhash that installs it.
    place : str
        Who needs it, as the message begins.
    otherwise : str
        What a person can do instead of installing it, if there is something.

    >>> import_optional("no_such_module", extra="live", place="a collection")
    Traceback (most recent call last):
    streamhash.errors.MissingPartError: a collection needs no_such_module, which is not installed;
    run pip install "streamhash[live]".
    """
    try:
        with warnings.catch_warnings():  # faiss's wrappers warn of themselves on Python 3.12
            warnings.simplefilter("ignore", DeprecationWarning)
            return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0].replace("PIL", "Pillow")
        end = f", or {otherwise}." if otherwise else "."
        raise MissingPartError(
            f"{place} needs {package}, which is not installed; run pip install "
            f'"streamhash[{extra}]"{end}'
        ) from error
