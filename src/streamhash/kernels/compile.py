"""How kernels are compiled: once for this machine, cached on disk, and announced.

``@kernel`` is ``numba.njit`` with the settings shared by all but an ``@exact_kernel``. When numba
really compiles (that is, finds nothing in its cache on disk), a line is logged as a warning on
``streamhash.kernels``, so that a person sees why the first call takes seconds. Silence it with
``logging.getLogger("streamhash.kernels").setLevel(logging.ERROR)``.

A kernel has others compiled into it, of any file of this folder, so what is kept counts only while
all of these files are as they were.

The quick loading, the announcement and the care for forks use parts of numba that are not public.
Where a version of numba lacks them, kernels are plain ``njit(cache=True)`` functions, and nothing
is announced.
"""

import hashlib
import logging
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])
# Sums may be re-associated, so that they vectorise; NaN and infinity keep their meaning. A check
# for division by zero (error_model) would keep loops from vectorising.
OPTIONS: Any = {
    "nogil": True,
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
}
# Every sum, product and division is rounded as it stands, as NumPy does it.
AS_WRITTEN: Any = {**OPTIONS, "fastmath": False}
log = logging.getLogger("streamhash.kernels")


def kernel(function: F) -> F:
    """Compile a loop at its first call, without the interpreter's lock, cached on disk."""
    return _compiled(function, OPTIONS)


def exact_kernel(function: F) -> F:
    """Do so with every number rounded as the loop is written."""
    return _compiled(function, AS_WRITTEN)


def _compiled(function: F, options: Any) -> F:
    quick_cache = _quick_cache()
    compiled: F = numba.njit(cache=quick_cache is None, **options)(function)
    if quick_cache is not None:
        vars(compiled)["_cache"] = quick_cache(function)  # numba has no other way to choose one
    return compiled


def part(function: F) -> F:
    """Compile a loop into the kernels that call it: no call, and no counting of references."""
    inlined: F = numba.njit(forceinline=True, **OPTIONS)(function)
    return inlined


def exact_part(function: F) -> F:
    """Do so with every number rounded as the loop is written."""
    inlined: F = numba.njit(forceinline=True, **AS_WRITTEN)(function)
    return inlined


@cache
def _quick_cache() -> Any:
    """numba's cache on disk, quick to load from; None where this numba does not allow for it.

    Before it looks there, numba declares all functions that it can compile, which takes a third of
    the second in which a process loads its first kernel. What is compiled already needs none of
    them; where something must be compiled, numba declares them once more anyway.
    """
    try:
        from numba.core.caching import FunctionCache
        from numba.core.runtime.nrt import rtsys
    except ImportError:
        return None
    used = ("_guard_against_spurious_io_errors", "_index_key", "_load_overload", "load_overload")
    if not all(hasattr(FunctionCache, name) for name in used) or not hasattr(rtsys, "initialize"):
        return None

    class QuickCache(FunctionCache):
        def _index_key(self, sig: Any, codegen: Any) -> Any:
            return *super()._index_key(sig, codegen), _stamp()  # type: ignore[no-untyped-call]

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            rtsys.initialize(target_context)
            try:
                with self._guard_against_spurious_io_errors():
                    return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
            except (AttributeError, ImportError):  # kept by a version that had other classes
                self.flush()  # type: ignore[no-untyped-call]
                return None

    return QuickCache


@cache
def _stamp() -> str:
    """Tell the files of all kernels from those of other versions."""
    stamp = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        stamp.update(path.read_bytes())
    return stamp.hexdigest()


def _announce_compiling() -> None:
    """Say so when one of our kernels is compiled; the kernels it calls are part of it."""
    try:
        from numba.core import event
    except ImportError:
        return

    class Announce(event.Listener):
        depth = 0

        def on_start(self, compilation: Any) -> None:
            function = compilation.data["dispatcher"].py_func
            if self.depth == 0 and function.__module__.startswith("streamhash."):
                log.warning(
                    "streamhash: compiling %s.%s for this machine (only the first time)",
                    function.__module__.removeprefix("streamhash."),
                    function.__name__.lstrip("_"),
                )
            self.depth += 1

        def on_end(self, compilation: Any) -> None:  # noqa: ARG002
            self.depth -= 1

    event.register("numba:compile", Announce())  # type: ignore[no-untyped-call]


def _let_forks_wait() -> None:
    """Fork only between compilations: a child would wait for one that goes on in its parent."""
    try:
        from numba.core.compiler_lock import global_compiler_lock as lock
    except ImportError:
        return
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )


_announce_compiling()
_let_forks_wait()
