"""Optional packages, loaded when they are first needed."""

import importlib
import warnings
from typing import Any

from streamhash.errors import MissingPartError

__all__ = ["load_part"]

_EXTRAS = {"faiss": "faiss", "pyarrow": "files"}


def load_part(name: str, place: str) -> Any:
    """Import a package, or say how to install it."""
    try:
        with warnings.catch_warnings():  # faiss' wrappers warn of themselves on Python 3.12
            warnings.simplefilter("ignore", DeprecationWarning)
            return importlib.import_module(name)
    except ImportError as error:
        raise MissingPartError(
            f"{place}: needs {name}, which is not installed; run "
            f'pip install "streamhash[{_EXTRAS[name]}]".'
        ) from error
