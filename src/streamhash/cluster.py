"""Work on other machines: a cluster of Dask, as an executor like any other.

What is sent there is small: names, addresses and numbers. Workers read data and items themselves,
so they need to see them under the same names and addresses.
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from streamhash.errors import InputError, UnreachableError
from streamhash.optional import import_optional

PATIENCE = 10  # seconds for a scheduler to answer


@contextmanager
def cluster_executor(scheduler: str, *, patience: float = PATIENCE) -> Iterator[Executor]:
    """Open an executor of the cluster whose scheduler is at an address, ``tcp://host:port``."""
    distributed = import_optional("distributed", extra="cluster", place="work on a cluster")
    try:
        client: Any = distributed.Client(scheduler, timeout=patience, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise UnreachableError(
            f"{scheduler}: no scheduler answers there ({error}); start one with `dask scheduler`, "
            "and workers with `dask worker ADDRESS`."
        ) from error
    except ValueError as error:
        raise InputError(
            f"scheduler={scheduler!r} is not an address ({error}); write tcp://host:port."
        ) from error
    with client:
        if not client.nthreads():
            raise UnreachableError(
                f"{scheduler}: this scheduler has no workers; start some with "
                f"`dask worker {scheduler}`."
            )
        # Not pure: what was asked twice is done twice, as what it wrote may be gone.
        yield client.get_executor(pure=False)
