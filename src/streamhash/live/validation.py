"""What a write comes to: its ids, vectors, labels and metadata, checked against what is stored."""

import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.base import OnlineHasher
from streamhash.codes import Codes
from streamhash.errors import ConflictError, InputError, NotFoundError, shown
from streamhash.hashers import METHODS
from streamhash.labels import ItemLabel, check_item_labels, each_label
from streamhash.live.arrow import Keys
from streamhash.live.journal import Journal
from streamhash.live.learner import Learner
from streamhash.live.log import NO_KEYS
from streamhash.live.view import View
from streamhash.live.writes import (
    VERBS,
    Addition,
    Deletion,
    Description,
    Labelling,
    Update,
    Write,
    Written,
)
from streamhash.parameters import Choice, check_parameters
from streamhash.search.ids import LARGEST_ID, check_ids, check_once, kind
from streamhash.storable import check_metadata, check_new_ids, check_vectors

if TYPE_CHECKING:
    from streamhash.live.writer import Group

logger = logging.getLogger(__name__)

MOST_CLASSES = 10_000  # different labels, where items have several: columns of what is learned
METADATA_READ = 1024  # items whose metadata, of up to a megabyte each, are read at a time


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


class Validation:
    """Checks the writes of a collection, and completes them by what is stored."""

    def __init__(self, journal: Journal, view: View, learner: Learner) -> None:
        self._journal, self._view, self._learner = journal, view, learner
        self._loss_is_known = False  # of what replaced items had

    def part(self, write: Write, group: "Group") -> Part:
        """Return what a write comes to, after those of a group."""
        place = f"Collection.{VERBS[type(write)]}"
        if isinstance(write, Addition):
            return self._addition(write, group, place)
        if isinstance(write, Update):
            return self._update(write, group, place)
        keys, ids = self._find(write.ids, group, place)
        if isinstance(write, Labelling):
            return Part(Labelling, keys, ids, None, self.labels(write.y, len(keys), place=place))
        if isinstance(write, Description):
            texts = check_metadata(write.metadata, len(keys), place=place)
            return self._described(keys, ids, texts)
        return Part(Deletion, keys, ids)

    def _addition(self, write: Addition, group: "Group", place: str) -> Part:
        existing = write.existing
        check_parameters(
            place,
            {"existing": existing},
            {"existing": Choice("refuse", "skip", "replace", "update")},
        )
        rows = self._vectors(write.X, place)
        labels = self.labels(write.y, len(rows), place=place)
        texts = check_metadata(write.metadata, len(rows), place=place)
        ids = self._new_ids(write.ids, len(rows), place, group.next_id)
        keys = group.find(ids, may_be_new=existing in ("refuse", "skip"))
        new, there = Part(Addition, keys, ids, rows, labels, texts), keys >= 0
        if not there.any():
            return new
        if existing == "replace":
            given = {"labels": write.y, "metadata": write.metadata}
            return new._replace(losses=tuple(name for name, each in given.items() if each is None))
        if existing == "update":
            return self._completed(new, place)
        if existing == "refuse":
            raise ConflictError(
                f"{place}: id {ids[there].tolist()[0]!r} is there already; pass "
                'existing="skip" or "replace", or another id.'
            )
        return new.some(np.flatnonzero(~there))

    def _update(self, write: Update, group: "Group", place: str) -> Part:
        if write.X is None and write.y is None and write.metadata is None:
            raise InputError(f"{place}: nothing came; pass X, y or metadata.")
        keys, ids = self._find(write.ids, group, place)
        texts = check_metadata(write.metadata, len(keys), place=place)
        if write.X is None and write.y is None:
            return self._described(keys, ids, texts, is_update=True)
        rows = self._vectors(self._journal.vectors(keys) if write.X is None else write.X, place)
        if len(rows) != len(keys):
            raise _uneven(place, len(rows), len(keys))
        labels = self.labels(write.y, len(keys), place=place)
        return self._completed(Part(Addition, keys, ids, rows, labels, texts), place)

    def _described(
        self, keys: Keys, ids: NDArray[Any], texts: Sequence[str | None], *, is_update: bool = False
    ) -> Part:
        """Return items to be stored anew with other metadata, as if replaced by themselves."""
        if len(keys) == 0:
            return Part(Description, keys, ids)
        if is_update:
            both = _merged(self._journal.items(keys, vectors=False).metadata, texts)
            texts = check_metadata(both, len(keys), place="Collection.update")
        labels = self._view.now.directory.listing.label_names_of(keys)
        return Part(Description, keys, ids, None, labels, texts)

    def _completed(self, new: Part, place: str) -> Part:
        """Take what did not come from the items whose place these take."""
        places = np.flatnonzero(new.keys >= 0)
        labels, texts = [*new.labels], [*new.metadata]
        names = self._view.now.directory.listing.label_names_of(new.touched)
        old = self._journal.items(new.touched, vectors=False).metadata
        given = [texts[i] for i in places]
        both = check_metadata(_merged(old, given), len(places), place=place)
        for i, name, text in zip(places, names, both, strict=True):
            labels[i], texts[i] = name if labels[i] is None else labels[i], text
        return new._replace(labels=labels, metadata=texts)

    def warn_of_loss(self, parts: Sequence[Part]) -> None:
        """Say once that items which take the place of others have nothing of theirs."""
        losing = [part for part in parts if part.losses and len(part.touched)]
        if self._loss_is_known or not losing:
            return
        of_labels, of_metadata = (
            np.concatenate([NO_KEYS, *(part.touched for part in losing if name in part.losses)])
            for name in ("labels", "metadata")
        )
        labels = self._view.now.directory.listing.label_names_of(of_labels)
        metadata = self._journal.items(of_metadata[:METADATA_READ], vectors=False).metadata
        had = {"labels": labels, "metadata": metadata}
        lost = [name for name in had if any(each is not None for each in had[name])]
        if lost:
            self._loss_is_known = True
            logger.warning(
                "Items that replace others take their place whole: %s of theirs are gone, as none "
                "came; update changes what is given, and leaves the rest.",
                " and ".join(lost),
            )

    def _vectors(self, X: Any, place: str) -> NDArray[Any]:
        """Return vectors as the items here have them."""
        return check_vectors(X, self._view.n_features, self._journal.vector_type, place=place)

    def labels(self, y: Any, n: int, *, place: str) -> list[ItemLabel]:
        """Return labels as the items here have them: one each, or tuples of several."""
        labels, learner = check_item_labels(y, n, place=place), self._learner
        several = () if y is None else (label for label in labels if isinstance(label, tuple))
        found = next(iter(several), ())
        if not (found or learner.several_):
            return labels
        if learner.several_ is False:
            raise InputError(
                f"{place}: y holds {shown([*found])}, a list of labels, and the items here have "
                'one each; pass one, or add them to a collection made with labels="several".'
            )
        check_takes_several(learner.hasher, place)
        known = self._view.now.directory.classes
        new = {each for label in labels for each in each_label(label) if each not in known}
        if new and len({*known, *new, *learner.knowledge.classes_.labels_}) > MOST_CLASSES:
            raise InputError(
                f"{place}: with {shown(next(iter(new)))} the items have more than {MOST_CLASSES} "
                "different labels; pass the most frequent ones, and keep all in the metadata."
            )
        return [each_label(label) or None for label in labels]

    def _new_ids(self, ids: Any, n: int, place: str, first: int) -> NDArray[Any]:
        """Return ids of ``n`` items to be added; None numbers them on, from ``first``."""
        wanted = self._journal.id_kind
        if ids is None:
            if wanted == "strings":
                raise InputError(
                    f"{place}: ids did not come, and this collection has strings; pass one an item."
                )
            if first + n > LARGEST_ID:
                raise InputError(f"{place}: no number is left after id {first - 1}; pass ids.")
            return np.arange(first, first + n)
        names = check_ids(ids, place=place)
        if len(names) != n:
            raise _uneven(place, n, len(names))
        check_once(names, place=place)
        check_new_ids(names, place=place)
        if n and wanted is not None and kind(names) != wanted:
            raise InputError(
                f"{place}: ids are {kind(names)}, those of this collection are {wanted}; pass "
                f"{wanted}."
            )
        return names

    def _find(self, ids: Any, group: "Group", place: str) -> tuple[Keys, NDArray[Any]]:
        """Return the keys of items that are there, and their checked ids."""
        names = check_ids(ids, place=place)
        check_once(names, place=place)
        return refuse_absent(group.find(names), names, place), names


def refuse_absent(keys: Keys, ids: NDArray[Any], place: str) -> Keys:
    """Return the keys of items that are there; refuse ids of which there is none."""
    if (keys < 0).any():
        raise NotFoundError(
            f"{place}: id {shown(ids[keys < 0].tolist()[0])} is not in this collection; ask "
            "`id in collection` first, or add it."
        )
    return keys


def check_takes_several(hasher: OnlineHasher, place: str) -> None:
    """Refuse a method that learns from one label an item only."""
    if hasher.needs_labels and not hasher.multi_label:
        takers = (
            name for name, each in METHODS.items() if each.multi_label or not each.needs_labels
        )
        raise InputError(
            f"{place}: {type(hasher).__name__} learns from one label an item, not from several; "
            f"pass one, or choose a method that does: {', '.join(takers)}."
        )


def _uneven(place: str, n: int, n_ids: int) -> InputError:
    return InputError(f"{place}: {n} items and {n_ids} ids came; pass one id an item.")


def _merged(old: Sequence[Any], new: Sequence[str | None]) -> list[Any]:
    """Return metadata with fields, as JSON, put in the place of those that they had."""
    return [
        known if text is None else {**(known or {}), **json.loads(text)}
        for known, text in zip(old, new, strict=True)
    ]
