"""Which files of streamhash a call passes through, in the order in which they are first entered."""

import sys
import threading
from pathlib import Path
from typing import Self

import streamhash

PACKAGE = Path(streamhash.__file__).parent


class Way:
    """Collects, inside a ``with`` block, the files whose functions run, in all new threads too.

    What importing a module runs does not count, and neither do compiled loops, which Python does
    not see: the function that calls them does.
    """

    def __init__(self) -> None:
        self._files: dict[str, None] = {}

    def __enter__(self) -> Self:
        threading.setprofile(self._look)
        sys.setprofile(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def forget(self) -> None:
        """Leave out what has run so far."""
        self._files.clear()

    @property
    def files(self) -> list[str]:
        """The files, as paths below ``src/streamhash``."""
        return list(self._files)

    def _look(self, frame, event, _):
        code = frame.f_code
        is_import = code.co_name == "<module>" or "__qualname__" in code.co_names[:3]
        path = Path(code.co_filename)
        if event == "call" and not is_import and path.is_relative_to(PACKAGE):
            self._files.setdefault(path.relative_to(PACKAGE).as_posix())
