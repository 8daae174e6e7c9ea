"""Where the codes of a collection are searched: in memory, or in Milvus.

Lance holds the truth; a home holds a copy of the codes of one model, by key. A new model means a
new home, filled beside the old one, so that no search sees codes of two models.

    memory.py    in this process: nothing else to run, the fastest up to what one machine holds
    address.py   ``milvus://host:port/name?option=value``, read and checked
    tables.py    one collection of a Milvus server: keys and codes, searched exactly
    milvus.py    a home there: falls behind while the server is away, and catches up by itself
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.live.backends.address import MilvusAddress
from streamhash.live.backends.memory import MemoryHome

__all__ = ["Home", "Homes", "Keys", "MemoryHome", "Pieces", "Read", "check_serving", "sender"]

Keys = NDArray[np.int64]
Pieces = Iterable[tuple[Codes, Keys]]
Read = Callable[[Keys], Pieces]  # the codes of those of these keys that are there, in pieces


class Home(Protocol):
    """The codes of one model, by key."""

    is_shared: bool  # other processes search, or change, the same codes

    def add(self, keys: Keys, codes: Codes) -> None:
        """Take codes of new keys."""

    def delete(self, keys: Keys) -> None:
        """Forget keys."""

    def search(self, codes: Codes, k: int) -> tuple[NDArray[np.int32], Keys]:
        """Find the nearest, among equals the lowest key: distances and keys, (n, k)."""

    def glance(self, codes: Codes, k: int) -> tuple[NDArray[np.int32], Keys]:
        """Find near ones quickly: equals in any order, the last changes perhaps not seen."""

    def check(self) -> None:
        """Raise an UnreachableError if it is known to be away."""

    def prepare(self) -> None:
        """Get ready to be filled, by whoever makes codes."""

    def fill(self, keys: Keys, read: Read) -> None:
        """Hold these keys and no others, reading only codes that are missing."""

    def serve(self, keys: Keys, read: Read) -> None:
        """Do so, and be the one that is searched from now on."""

    def share_of_ones(self) -> list[float] | None:
        """Share of the codes in which each bit is one, where it is quickly told."""

    def status(self) -> dict[str, Any]:
        """How the home does, as plain values."""

    def retire(self) -> None:
        """Change nothing any more: another home serves."""

    def sweep(self) -> None:
        """Drop what homes of older models have left, if nothing uses it."""

    def close(self) -> None:
        """Let go of it; what it holds stays."""


class Homes:
    """Makes the homes of one collection.

    ``wanted`` tells the keys that the serving home should hold now, ``read`` their codes by a
    model's number.
    """

    def __init__(
        self,
        options: dict[str, Any] | None,
        *,
        writes: bool,
        wanted: Callable[[], Keys],
        read: Callable[[int, Keys], Pieces],
    ) -> None:
        self.address: str | None = None  # where codes are searched; None: in memory
        self.options = options
        self._writes, self._wanted, self._read = writes, wanted, read
        self._filling: Home | None = None
        self._filling_number = 0

    def home(self, number: int, n_bits: int) -> Home:
        """Return a home for the codes of a model: the one that a refresh has filled, or a new."""
        if self._filling is not None and self._filling_number == number:
            return self._filling
        if self.address is None:
            return MemoryHome(n_bits)
        from streamhash.live.backends.milvus import MilvusHome

        address = MilvusAddress.parse(self.address)
        return MilvusHome(
            address,
            self.options,
            number,
            n_bits,
            writes=self._writes,
            wanted=self._wanted,
            read=lambda keys: self._read(number, keys),
        )

    def prepare(self, number: int, n_bits: int, serving: Home | None) -> Home | None:
        """Return a home to be filled before its model serves; None where that is needless."""
        if self.address is None:
            return None
        if serving is not None:
            serving.check()
        home = self.home(number, n_bits)
        home.prepare()
        self._filling, self._filling_number = home, number
        return home

    def swept(self, serving: Home | None) -> None:
        """Forget what was prepared, as it serves now, and drop what it has replaced."""
        self._filling = None
        if serving is not None:
            serving.sweep()

    def status(self) -> dict[str, Any]:
        """Say where the codes are, while no model serves."""
        return {"home": self.address or "memory", "reachable": None, "lag": 0, "error": None}


def check_serving(address: str, options: dict[str, Any] | None, *, place: str) -> str:
    """Return the address of a home for a new collection, when it is right, there, and free."""
    from streamhash.live.backends.tables import Server

    Server(MilvusAddress.parse(address, place=place), options).refuse_taken()
    return address


def sender(
    address: str | None, options: dict[str, Any] | None, number: int, n_bits: int
) -> Callable[[Codes, Keys], None] | None:
    """Return what sends codes of a model to their home, for a worker that makes them."""
    if address is None:
        return None
    from streamhash.live.backends.tables import Server

    return Server(MilvusAddress.parse(address), options).table(number, n_bits).put
