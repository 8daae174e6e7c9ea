"""Who writes: writes are checked, stored as one change, and learned from, several at a time.

Writes that come at the same time are a group, as if one came after the other. What a write depends
on must not be changed by those before it in its group. So a group ends before one that touches what
it touches, where a stage is full and something is learned, where what leaves is forgotten, and with
the first items and the first labels of a collection. A group that does not go to the log is of
writes of one kind.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.errors import InputError, copies
from streamhash.live.arrow import Keys, labels_to_json
from streamhash.live.feedback import Feedback
from streamhash.live.journal import Journal
from streamhash.live.learner import Learner, Lesson
from streamhash.live.log import NO_KEYS, Change
from streamhash.live.validation import Part, Validation
from streamhash.live.view import View
from streamhash.live.writes import (
    VERBS,
    Addition,
    Deletion,
    Description,
    Labelling,
    Write,
    Written,
)

GROUP_ROWS = 4096  # of writes that are stored together, at most, unless one has more


class Later(Exception):  # noqa: N818  it is no error
    """A write depends on what others of its group change: it is of the next group."""


class Group:
    """Writes that are stored together; ``forget``: what was learned from items leaves with them."""

    def __init__(
        self, journal: Journal, view: View, learner: Learner, *, forget: bool = True
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


class Writer:
    """Changes a collection: what is stored, what searches see, and what has been learned."""

    def __init__(
        self, journal: Journal, view: View, learner: Learner, feedback: Feedback, checks: Validation
    ) -> None:
        self._journal, self._view, self._learner = journal, view, learner
        self._feedback, self._checks = feedback, checks

    def write_each(self, writes: Sequence[Write]) -> list[Written | Exception]:
        """Do writes as if one came after the other, in as few commits as can be.

        Returns what came of each, or its error; that of one is nothing to the others.
        """
        done: list[Written | Exception] = []
        while len(done) < len(writes):
            done += self._write_group(writes[len(done) :])
        return done

    def check(self, write: Write) -> None:
        """Refuse what would be refused, and store nothing."""
        with self._journal.changing(VERBS[type(write)], may_log=True):
            self._checks.part(write, Group(self._journal, self._view, self._learner))

    def _write_group(self, writes: Sequence[Write]) -> list[Written | Exception]:
        """Do the first of some writes, as many as can be stored together."""
        done: list[Written | Exception] = []
        group = None
        try:
            with self._journal.changing(VERBS[type(writes[0])], may_log=True):
                forget = self._journal.forget_deleted
                group = Group(self._journal, self._view, self._learner, forget=forget)
                for write in writes:
                    try:
                        part = self._checks.part(write, group)
                    except Later:
                        break
                    except Exception as error:  # noqa: BLE001  whatever it is, it is of this call
                        done.append(error)
                        continue
                    if len(part.ids):
                        if not group.takes(part):
                            break
                        group.add(part)
                    done.append(part.written())
                if group.parts:
                    self._store(group)
        except Exception as error:  # noqa: BLE001  whatever it is, it is of these calls
            if group is None or not done:  # it is of the first, and each of the others tries itself
                return [error]
            if isinstance(error, InputError) and len(group.parts) > 1:
                return self._write_group(writes[:1])  # which of them it is, each alone tells
            own = copies(error, len(done))
            return [each if isinstance(each, Exception) else own[i] for i, each in enumerate(done)]
        return done

    def _store(self, group: Group) -> None:
        """Store a group as one change, and learn from it."""
        journal, view = self._journal, self._view
        if not group.is_logged:
            journal.fold_log()
        parts = self._completed(group.parts)
        self._checks.warn_of_loss(parts)
        new, labelled, deleted = (
            [part for part in parts if part.kind in kinds]
            for kinds in ((Addition, Description), (Labelling,), (Deletion,))
        )
        keys = journal.next_keys(sum(len(part.ids) for part in new), is_logged=group.is_logged)
        learner, judged = self._learned(parts, keys)
        old, gone = (_joined(part.touched for part in some) for some in (new, deleted))
        given, labels = _joined(part.keys for part in labelled), values_of(labelled, "labels")
        ids, rows = _joined(part.ids for part in new), _joined(part.rows for part in new)
        names, texts = values_of(new, "labels"), values_of(new, "metadata")
        codes = _joined(part.codes for part in new) if new and view.now.model is not None else None

        def show() -> None:
            """Do it in memory."""
            if new:
                view.append(keys, ids, names, codes, old, texts)
            if labelled:
                view.label(given, labels)
            if deleted:
                view.delete(gone)

        if group.is_logged:
            change = Change(
                keys,
                ids,
                rows if new else None,
                labels_to_json(names),
                texts,
                codes,
                gone=_joined([old, gone]),
                labelled=given,
                new_labels=labels_to_json(labels),
            )
            with journal.recording(self._learner, learner, change):
                show()
        else:  # they are of one kind
            n_labels = int(bool(labelled))
            with journal.storing(self._learner, learner, items=1 - n_labels, labels=n_labels):
                if new:
                    journal.append_items(ids, rows, names, texts, codes)
                elif labelled:
                    journal.append_labels(given, labels)
                else:
                    journal.delete_items(gone)
                show()
            journal.delete_replaced(old)
        journal.delete_feedback(judged)

    def _completed(self, parts: Sequence[Part]) -> list[Part]:
        """Return parts with the vectors that their items have, and with codes of all vectors."""
        model, done = self._view.now.model, [*parts]
        there = [i for i, part in enumerate(parts) if part.rows is None and not part.is_gone]
        rows = self._journal.vectors(_joined(parts[i].keys for i in there))
        rows = rows.astype(self._journal.vector_type, copy=False)
        for i, own in zip(there, _split(rows, [parts[i] for i in there]), strict=True):
            done[i] = parts[i]._replace(rows=own)
        coded = [i for i, part in enumerate(done) if not part.is_gone]
        if model is None or not coded:
            return done
        rows = _joined(done[i].rows for i in coded)
        codes = model.encode_rows(rows.astype(np.float32, copy=False))
        for i, own in zip(coded, _split(codes, [done[i] for i in coded]), strict=True):
            done[i] = done[i]._replace(codes=own)
        return done

    def _learned(self, parts: Sequence[Part], keys: Keys) -> tuple[Learner | None, Keys]:
        """Return the learner after some parts, None if it is the same, and pairs that are gone."""
        forget, directory = self._journal.forget_deleted, self._view.now.directory
        forgets = forget and self._learner.hasher.can_forget
        lessons, codes = list[Lesson](), list[Codes | None]()
        gone, deleted, relabelled = list[Keys](), list[Keys](), list[Keys]()
        renamed, start = list[tuple[Keys, Keys]](), 0
        for part in parts:
            own, leaving = part.keys, part.touched
            if part.is_new:
                own, start = keys[start : start + len(part.ids)], start + len(part.ids)
            if part.kind is Description:
                renamed.append((part.keys, own))
                continue
            coded = part.codes
            if part.kind is Labelling:
                before = directory.listing.label_names_of(own)
                others = [i for i, old in enumerate(before) if old != part.labels[i]]
                leaving = own[others]
                relabelled.append(leaving)
            else:
                deleted.append(leaving)
            gone.append(leaving)
            if part.kind is Deletion:
                continue
            assert part.rows is not None
            lesson = Lesson(own, part.rows, [*part.labels], np.full(len(own), not part.is_new))
            if part.kind is Labelling and forgets:
                # What it has learned with the same label is not to be learned twice.
                lesson, coded = lesson.some(others), None if coded is None else coded[others]
            lessons.append(lesson)
            codes.append(coded)
        old, new = (_joined(pair[i] for pair in renamed) for i in (0, 1))
        before_last = (part for part in parts[:-1] if part.kind is not Labelling)
        n_items = len(directory) + len(keys) - sum(len(part.touched) for part in before_last)
        learner = self._learner.taught(
            self._view.now,
            Lesson.joined(lessons),
            None if self._view.now.model is None else _joined(codes),
            self._journal.vectors,
            gone=_joined(gone),
            renamed=(old, new),
            n_items=n_items,
            forget=forget,
        )
        if not self._learner.n_judged_:
            return learner, NO_KEYS
        learner, judged = self._feedback.without(_joined(deleted), learner)
        learner, _ = self._feedback.without(_joined(relabelled), learner, queries=False)
        return self._feedback.renamed(old, new, learner), judged


def _joined(arrays: Iterable[Any]) -> Any:
    """Return arrays as one; without any, no keys."""
    found = [*arrays]
    return found[0] if len(found) == 1 else np.concatenate(found) if found else NO_KEYS


def _split(array: NDArray[Any], parts: Sequence[Part]) -> list[NDArray[Any]]:
    """Return what was made of all parts at once, part by part."""
    ends = np.cumsum([len(part.ids) for part in parts])[:-1]
    return np.split(array, ends) if parts else []


def values_of(parts: Iterable[Part], name: str) -> list[Any]:
    """Return what all items of some parts have, one after the other."""
    return [value for part in parts for value in getattr(part, name)]
