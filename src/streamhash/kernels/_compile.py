"""How kernels are compiled: once for this machine, cached on disk, and announced.

``@kernel`` is ``numba.njit`` with the settings shared by all. When numba really compiles (that is,
finds nothing in its cache on disk), a line is logged as a warning on ``streamhash.kernels``, so
that a person sees why the first call takes seconds. Silence it with
``logging.getLogger("streamhash.kernels").setLevel(logging.ERROR)``.
"""

import importlib
import importlib.util
import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numba.np.linalg
from numba.core import event

__all__ = ["kernel", "part"]

F = TypeVar("F", bound=Callable[..., Any])
# Sums may be re-associated, so that they vectorise; NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}
log = logging.getLogger("streamhash.kernels")


def kernel(function: F) -> F:
    """Compile a loop at its first call, without the interpreter's lock, cached on disk."""
    # error_model: a check for division by zero would keep loops from vectorising.
    compiled = numba.njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")(function)
    return cast(F, compiled)


def part(function: F) -> F:
    """Compile a loop into the kernels that call it: no call, and no counting of references."""
    inlined = numba.njit(nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
    return cast(F, inlined(function))


def _load_arrays() -> None:
    """Load numba's array functions, which every process needs, without all of scipy.linalg.

    numba imports that only to know whether it is there, and it takes a quarter of the second in
    which a process loads its first kernel. A kernel that multiplies matrices still imports it.
    """
    ensure_blas = numba.np.linalg.ensure_blas

    def look_for_scipy() -> None:
        if importlib.util.find_spec("scipy") is None:
            raise ImportError("scipy")

    numba.np.linalg.ensure_blas = look_for_scipy
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        numba.np.linalg.ensure_blas = ensure_blas


class _Announce(event.Listener):
    """Says so when one of our kernels is compiled; the kernels it calls are part of it."""

    def __init__(self) -> None:
        self._depth = 0

    def on_start(self, compilation: Any) -> None:
        function = compilation.data["dispatcher"].py_func
        if self._depth == 0 and function.__module__.startswith("streamhash."):
            log.warning(
                "streamhash: compiling %s.%s for this machine (only the first time)",
                function.__module__.removeprefix("streamhash."),
                function.__name__.lstrip("_"),
            )
        self._depth += 1

    def on_end(self, compilation: Any) -> None:  # noqa: ARG002
        self._depth -= 1


_load_arrays()
event.register("numba:compile", _Announce())  # type: ignore[no-untyped-call]
