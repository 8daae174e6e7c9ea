"""Work on other machines: a cluster of Dask, as an executor like any other.

What is sent there is small: names, addresses and numbers. Workers read data and items themselves,
so they need to see them under the same names and addresses. Only models that have learned there
come back whole.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import reduce
from typing import Any, TypeVar

from streamhash.base import OnlineHasher, new_generator
from streamhash.errors import InputError, UnreachableError
from streamhash.estimators import clone
from streamhash.optional import import_optional

Hasher = TypeVar("Hasher", bound=OnlineHasher)
Share = TypeVar("Share")
Pieces = Iterable[tuple[Any, Any]]  # X and y, one after the other

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


def learn_on(
    executor: Executor, hasher: Hasher, read: Callable[[Share], Pieces], shares: Iterable[Share]
) -> Hasher:
    """Learn the shares of a stream on several workers; return one model that has learned all.

    Parameters
    ----------
    executor : any executor: a cluster's, or a pool of processes
    hasher : says how to learn, by a method whose models can be merged, as SDOH's; stays as it is
    read : called on a worker with a share, gives its pieces (X, y)
    shares : what tells workers where to read, such as the names of files
    """
    merged = getattr(hasher, "merged", None)
    if merged is None:
        raise InputError(
            f"learn_on: models of {type(hasher).__name__} cannot be merged; take SDOH, or learn in "
            "one process."
        )
    # A seed for each: what is drawn for one share must not be drawn again for the next.
    generator = new_generator(hasher.random_state)
    futures = []
    for share in shares:
        beginner = clone(hasher).set_params(random_state=int(generator.integers(2**63)))
        futures.append(executor.submit(_learned, beginner, read, share))
    if not futures:
        raise InputError("learn_on: there are no shares to learn; pass at least one.")
    whole: Hasher = reduce(merged, (future.result() for future in futures))
    whole.set_params(random_state=hasher.random_state)
    return whole


def _learned(hasher: Hasher, read: Callable[[Share], Pieces], share: Share) -> Hasher:
    for X, y in read(share):
        hasher.partial_fit(X, y)
    return hasher
