"""Packages that are imported where they are first needed: optional ones, and slow ones."""

import importlib
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
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


@contextmanager
def imported_later(*names: str) -> Iterator[None]:
    """Leave modules out of the imports within the block; they come when somebody uses them.

    What is imported in the block holds on to a stand-in, which imports the module when a name is
    first looked up in it; everybody else imports the module itself, before and after.
    """
    stand_ins = {name: _StandIn(name) for name in names if name not in sys.modules}
    stand_ins = {name: module for name, module in stand_ins.items() if find_spec(name)}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for module in stand_ins.values():
            module.step_aside()


class _StandIn(ModuleType):
    _lock = threading.Lock()

    def step_aside(self) -> None:
        with self._lock:
            if sys.modules.get(self.__name__) is self:
                sys.modules.pop(self.__name__)

    def __getattr__(self, name: str) -> Any:
        self.step_aside()
        return getattr(importlib.import_module(self.__name__), name)
