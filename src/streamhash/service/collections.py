"""The collections of one service: found by name, created and dropped."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anyio import to_thread

from streamhash.errors import ConflictError, InputError, NotFoundError, ReadOnlyError
from streamhash.hashers import METHODS
from streamhash.live import Collection
from streamhash.service.guard import Limits
from streamhash.service.models import CreateBody
from streamhash.service.served import Served

PASSED_ON = ("labels", "vectors", "refresh", "forget_deleted", "durability", "random_state")


class Collections:
    """What is served under which name.

    ``served`` is never changed, but replaced by another dict: what was made of it can tell by that
    whether it is out of date.
    """

    def __init__(
        self, given: Mapping[str, Collection], limits: Limits, folder: Path | None = None
    ) -> None:
        self._limits, self._folder = limits, folder
        self.served = {name: Served(name, each, limits) for name, each in given.items()}
        self._own: set[str] = set()  # those that were created here are closed here
        self._changing = asyncio.Lock()

    def find(self, name: str | None) -> Served:
        """Return a collection by its name, or the only one."""
        if name is None and len(self.served) == 1:
            return next(iter(self.served.values()))
        if name is None:
            raise NotFoundError(
                f"this service has {len(self.served)} collections; name one, as in "
                "/api/collections/NAME/search (GET /api/collections lists them)."
            )
        if name not in self.served:
            raise NotFoundError(
                f"there is no collection {name[:100]!r} here; GET /api/collections lists those "
                "there are."
            )
        return self.served[name]

    @property
    def can_create(self) -> bool:
        """Whether collections can be created and dropped here."""
        return self._folder is not None

    async def create(self, body: CreateBody) -> Served:
        """Make an empty collection in the service's folder."""
        async with self._changing:
            folder = self._writable_folder("create")
            if body.name in self.served or (folder / body.name).exists():
                raise ConflictError(
                    f"create: {body.name!r} is there already; choose another name, or drop that "
                    "first."
                )
            collection = await to_thread.run_sync(_create, folder / body.name, body)
            made = Served(body.name, collection, self._limits)
            self._own.add(body.name)
            self.served = {**self.served, body.name: made}
            return made

    async def drop(self, name: str) -> None:
        """Delete a collection of the service's folder, with all its items."""
        async with self._changing:
            folder = self._writable_folder("drop")
            gone = self.find(name)
            if Path(gone.collection.address).parent.resolve() != folder.resolve():
                raise ReadOnlyError(
                    f"drop: {name!r} is not in the folder that is served; delete it where it is."
                )
            if gone.collection.read_only:
                raise ReadOnlyError(f"drop: {name!r} is open to read only; drop it by its writer.")
            before, gone.is_dropped = self.served, True
            self.served = {each: its for each, its in before.items() if each != name}
            try:
                await gone.drop()
            except BaseException:  # such as a server that is away: all is as it was
                self.served, gone.is_dropped = before, False
                raise
            self._own.discard(name)

    def _writable_folder(self, verb: str) -> Path:
        if self._folder is None:
            raise ReadOnlyError(
                f"{verb}: this service has a fixed list of collections; serve the folder that they "
                "are in, as in `streamhash serve FOLDER`, to create and drop some."
            )
        return self._folder

    def close(self) -> None:
        """Wait for searches that run, and close what was created here."""
        for name, each in self.served.items():
            each.close()
            if name in self._own:
                each.collection.close()


def _create(path: Path, body: CreateBody) -> Collection:
    method = METHODS.get(body.method.lower())
    if method is None:
        raise InputError(
            f"create: there is no method {body.method[:50]!r}; choose from {', '.join(METHODS)}."
        )
    given: dict[str, Any] = {**body.parameters, "random_state": body.random_state}
    if body.n_bits is not None:
        given["n_bits"] = body.n_bits
    known = method().get_params()
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InputError(
            f"create: {method.__name__} has no parameter {unknown[0][:50]!r}; it has "
            f"{', '.join(known)}."
        )
    options = {name: getattr(body, name) for name in PASSED_ON}
    return Collection.create(path, method(**given), background=True, **options)
