"""What callers ask to be written, and which of it is stored together.

Writes that come at the same time are a group, as if one came after the other. What a write depends
on must not be changed by those before it in its group. So a group ends before one that touches what
it touches, where a stage is full and something is learned, where what leaves is forgotten, and with
the first items and the first labels of a collection. A group that does not go to the log is of
writes of one kind.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.live.arrow import Keys

if TYPE_CHECKING:
    from streamhash.live.journal import Journal
    from streamhash.live.learner import Learner
    from streamhash.live.view import View

GROUP_ROWS = 4096  # of writes that are stored together, at most, unless one has more


class Addition(NamedTuple):
    """What ``add`` is called with."""

    ids: Any
    X: Any
    y: Any = None
    metadata: Any = None
    existing: str = "refuse"


class Update(NamedTuple):
    """What ``update`` is called with."""

    ids: Any
    X: Any = None
    y: Any = None
    metadata: Any = None


class Labelling(NamedTuple):
    """What ``label`` is called with."""

    ids: Any
    y: Any


class Description(NamedTuple):
    """What ``set_metadata`` is called with."""

    ids: Any
    metadata: Any


class Deletion(NamedTuple):
    """What ``delete`` is called with."""

    ids: Any


Write = Addition | Update | Labelling | Description | Deletion

VERBS: dict[type[Write], str] = {
    Addition: "add",
    Update: "update",
    Labelling: "label",
    Description: "set_metadata",
    Deletion: "delete",
}


class Written(NamedTuple):
    """What came of a write."""

    items: int  # that were stored, labelled, described or deleted
    created: int = 0  # of those that were added, in the place of no other


class Part(NamedTuple):
    """What a write comes to, once it is checked: a part of what is stored together."""

    kind: type[Write]  # Addition, Labelling, Description or Deletion
    keys: Keys  # of the items that are there, -1 for others
    ids: NDArray[Any]
    rows: NDArray[Any] | None = None  # None: those that the items have
    labels: Sequence[Any] = ()
    metadata: Sequence[str | None] = ()  # JSON
    codes: Codes | None = None
    losses: tuple[str, ...] = ()  # what did not come and others may have whose place these take

    def some(self, places: NDArray[np.int64]) -> "Part":
        """Return the items at these places."""
        assert self.rows is not None
        labels, texts = ([values[i] for i in places] for values in (self.labels, self.metadata))
        return Part(
            self.kind, self.keys[places], self.ids[places], self.rows[places], labels, texts
        )

    @property
    def touched(self) -> Keys:
        """The keys of items that are there and are changed, or make room for others."""
        return self.keys[self.keys >= 0]

    @property
    def is_new(self) -> bool:
        """Whether items are stored anew."""
        return self.kind in (Addition, Description)

    @property
    def is_gone(self) -> bool:
        """Whether items are deleted."""
        return self.kind is Deletion

    @property
    def named(self) -> list[Any]:
        """The labels to be learned from."""
        is_taught = self.kind in (Addition, Labelling)
        return [label for label in self.labels if label is not None] if is_taught else []

    def written(self) -> Written:
        """Return what came of it."""
        n = len(self.ids)
        return Written(n, n - len(self.touched) if self.kind is Addition else 0)


class Later(Exception):  # noqa: N818  it is no error
    """A write depends on what others of its group change: it is of the next group."""


class Group:
    """Writes that are stored together; ``forget``: what was learned from items leaves with them."""

    def __init__(
        self, journal: "Journal", view: "View", learner: "Learner", *, forget: bool = True
    ) -> None:
        self._journal, self._directory, self._learner = journal, view.now.directory, learner
        self._forgets = forget and learner.is_ready
        self.parts: list[Part] = []
        self.next_id = 0 if journal.id_kind == "strings" else self._directory.next_id
        self._first_key = int(journal.next_keys(1)[0])  # a mark: items may get others
        self._keys: dict[Any, int] = {}  # of its new items, by their ids
        self._touched: set[int] = set()
        self._n_rows = self._n_new = self._n_learned = 0
        self._is_full = self.is_logged = False

    def find(self, ids: NDArray[Any], *, may_be_new: bool = False) -> Keys:
        """Return the keys of items, -1 for those that are not there."""
        found = self._directory.find(ids)
        if self._touched and not self._touched.isdisjoint(found.tolist()):
            raise Later
        if not self._keys:
            return found
        names = zip(ids.tolist(), found.tolist(), strict=True)
        now = np.array([self._keys.get(*each) for each in names], np.int64)
        if not may_be_new and (now != found).any():
            raise Later
        return now

    def takes(self, part: Part) -> bool:
        """Whether a write may be stored with the others."""
        n, n_new = self._n_rows + len(part.ids), self._n_new + len(part.ids) * part.is_new
        is_logged = self._journal.takes(n, n_new)
        if not self.parts:
            self.is_logged = is_logged
            return True
        if self._is_full or n > GROUP_ROWS or is_logged != self.is_logged:
            return False
        if not is_logged and part.kind is not self.parts[0].kind:
            return False
        n_learned = self._count_learned(part)
        return not n_learned or self._n_learned + n_learned <= self._until_stage

    def add(self, part: Part) -> None:
        """Take a write."""
        names, touched, n_learned = part.ids.tolist(), part.touched, self._count_learned(part)
        if part.is_new:
            first = self._first_key + len(self._keys)
            self._keys.update(zip(names, range(first, first + len(names)), strict=True))
            if part.ids.dtype != object:
                self.next_id = max(self.next_id, int(part.ids.max()) + 1)
        self._touched.update(touched.tolist())
        self._n_rows += len(names)
        self._n_new += len(names) * part.is_new
        self._n_learned += n_learned
        self.parts.append(part)
        self._is_full = (
            not self._journal.has_items
            or self._has_first_labels(part)
            or (n_learned > 0 and self._n_learned >= self._until_stage)
            or (self._forgets and len(touched) > 0 and len(self._touched) >= self._until_forgotten)
        )

    def _count_learned(self, part: Part) -> int:
        """How many items of a write are learned from, at most."""
        if self._learner.hasher.needs_labels:
            return len(part.named)
        return len(part.ids) if part.kind in (Addition, Labelling) else 0

    def _has_first_labels(self, part: Part) -> bool:
        """Whether a write has labels that decide which ones later writes may have."""
        several, known = self._learner.several_, self._directory.classes.keys()
        if several is None:
            return bool(part.named)
        return several and not {*chain(*part.named)} <= known

    @cached_property
    def _until_stage(self) -> int:
        return self._learner.n_until_stage

    @cached_property
    def _until_forgotten(self) -> int:
        return self._learner.n_until_forgotten

    def of(self, *kinds: type[Write]) -> list[Part]:
        """Return the parts of some kinds, in their order."""
        return [part for part in self.parts if part.kind in kinds]


def values_of(parts: Iterable[Part], name: str) -> list[Any]:
    """Return what all items of some parts have, one after the other."""
    return [value for part in parts for value in getattr(part, name)]
