"""How kernels are compiled: once for this machine, cached on disk, and announced.

``@kernel`` is ``numba.njit`` with the settings shared by all. When numba really compiles (that is,
finds nothing in its cache on disk), a line is logged as a warning on ``streamhash.kernels``, so
that a person sees why the first call takes seconds. Silence it with
``logging.getLogger("streamhash.kernels").setLevel(logging.ERROR)``.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

__all__ = ["kernel", "part"]

F = TypeVar("F", bound=Callable[..., Any])
# Sums may be re-associated, so that they vectorise; NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}
log = logging.getLogger("streamhash.kernels")


def kernel(function: F) -> F:
    """Compile a loop at its first call, without the interpreter's lock, cached on disk."""
    # error_model: a check for division by zero would keep loops from vectorising.
    compiled: Any = numba.njit(nogil=True, fastmath=FAST, error_model="numpy")(function)
    compiled._cache = _Cache(function)  # type: ignore[no-untyped-call]
    return cast(F, compiled)


def part(function: F) -> F:
    """Compile a loop into the kernels that call it: no call, and no counting of references."""
    inlined = numba.njit(nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
    return cast(F, inlined(function))


class _Cache(FunctionCache):
    """numba's cache on disk, quick to load from.

    Before it looks there, numba declares all functions that it can compile, which takes a third of
    the second in which a process loads its first kernel. What is compiled already needs none of
    them; where something must be compiled, numba declares them once more anyway.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]


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


event.register("numba:compile", _Announce())  # type: ignore[no-untyped-call]
