"""Classes out of judged pairs: what belongs together, told of two at a time."""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, Streaming
from streamhash.classes import ClassTable
from streamhash.errors import InputError
from streamhash.learned import Array, Part, Table
from streamhash.parameters import Whole, parameter

MOST_GROUPS = 1000  # at a time
MOST_ROWS = 1 << 20  # that are known again
GROUP = "pairs"  # the name of a group is this word and a number

Name = Any  # of a class: a label, or that of a group


class Grouped(NamedTuple):
    """What some pairs have told."""

    moved: dict[Name, Name]  # groups that are one with another class now
    joined: dict[int, Name]  # places of rows to be learned, and the class of each
    left: dict[int, Name]  # places of rows to be taken back, and the class that they had


class PairGroups(Streaming):
    """Puts rows into classes by pairs that belong together, and by pairs that do not.

    Two rows that belong together and are in no class yet begin a group; a row that belongs with one
    of a class joins that class. A pair within two classes is a vote: for both being one if its rows
    belong together, else against it. When the votes for it are ``votes`` more than those against
    it, the two are one from then on. A single vote would not do: where one judgement in ten is
    wrong, all classes would soon be one. A pair within one class speaks for both of its rows or
    against them, and a row that as many pairs speak against as for leaves its class: so a judgement
    is undone by the opposite one. Other pairs that do not belong together say nothing.

    A row with a label is in the class of its label and stays there; two labels never become one.

    A row is known again by its numbers: state grows by 24 bytes a row, up to 24 MB. There are at
    most 1,000 groups; when there are as many, a pair of two unknown rows says nothing.

    Parameters
    ----------
    votes : int, default=3
        So many more votes for it than against it make two classes one.

    Attributes
    ----------
    classes_ : ClassTable
        The names of classes: labels, and ``("pairs", i)`` of groups.
    rows_, members_, support_ : arrays (n,)
        Fingerprints of the rows, the oldest first; the numbers of their classes; the pairs that
        speak for them less those that speak against them.
    links_ : array (m, 3)
        Two classes, the smaller number first, and the votes for their being one less those against.

    Examples
    --------
    >>> X = np.eye(4, dtype=np.float32)
    >>> groups = PairGroups()
    >>> groups.learn(X[[0, 1, 1, 2]], np.array([True, True]), [None] * 4).joined
    {0: ('pairs', 0), 1: ('pairs', 0), 3: ('pairs', 0)}
    >>> groups.learn(X[[3, 0, 2, 1]], np.array([False, False]), [None] * 4).left
    {2: ('pairs', 0)}
    """

    votes: int = parameter(Whole(1), default=3)
    learns = Table(
        classes_=Part(ClassTable, started=False),
        rows_=Array(np.int64, "n"),
        members_=Array(np.int64, "n", low=0),
        support_=Array(np.int64, "n", low=1),
        links_=Array(np.int64, "links", 3),
    )

    def check_learned(self) -> None:
        """Refuse what was learned if it does not fit the class's own statement, ``learns``."""
        super().check_learned()
        if self.has_learned():
            n = len(self.classes_)
            numbers = np.append(self.members_, self.links_[:, :2].ravel())
            if len(numbers) and (numbers.min() < 0 or numbers.max() >= n):
                raise InputError("PairGroups: rows are in classes that are not there")

    def _start(self) -> None:
        self.classes_ = ClassTable()
        self.rows_: NDArray[np.int64] = np.empty(0, np.int64)
        self.members_: NDArray[np.int64] = np.empty(0, np.int64)
        self.support_: NDArray[np.int64] = np.empty(0, np.int64)
        self.links_: NDArray[np.int64] = np.empty((0, 3), np.int64)

    def learn(self, X: Matrix, similar: NDArray[np.bool_], labels: Sequence[Any]) -> Grouped:
        """Learn from pairs (m,), of rows (0, 1), (2, 3), ... of X, of which some have labels."""
        if not hasattr(self, "rows_"):
            self._start()
        state = _State(self)
        prints = fingerprints(X).tolist()
        before = {each: state.members.get(each) for each in prints}
        for i, together in enumerate(similar.tolist()):
            state.judge([2 * i, 2 * i + 1], prints, labels, together)
        names = self.classes_.labels_ = state.names
        self.rows_ = np.array([*state.members], np.int64)[-MOST_ROWS:]
        self.members_ = np.array([*state.members.values()], np.int64)[-MOST_ROWS:]
        self.support_ = np.array([state.support[row] for row in self.rows_.tolist()], np.int64)
        links = [(*pair, balance) for pair, balance in state.links.items()]
        self.links_ = np.array(links, np.int64).reshape(-1, 3)
        joined, left = dict[int, Name](), dict[int, Name]()
        place_of = {each: place for place, each in reversed([*enumerate(prints)])}
        for each, place in sorted(place_of.items(), key=lambda item: item[1]):
            old, new = before[each], state.members.get(each)
            old = None if old is None else state.last(old)
            if old != new:
                if old is not None:
                    left[place] = names[old]
                if new is not None:
                    joined[place] = names[new]
        moved = {names[old]: names[state.last(old)] for old in state.moved}
        return Grouped(moved, joined, left)

    def names_of(self, X: Matrix) -> list[Name]:
        """Return the class of each row, None of those in none."""
        if not hasattr(self, "rows_"):
            return [None] * len(X)
        members = dict(zip(self.rows_.tolist(), self.members_.tolist(), strict=True))
        names = [*self.classes_.labels_, None]
        return [names[members.get(each, -1)] for each in fingerprints(X).tolist()]

    def drop(self, X: Matrix) -> None:
        """Know these rows no more."""
        if hasattr(self, "rows_"):
            kept = ~np.isin(self.rows_, fingerprints(X))
            self.rows_, self.members_ = self.rows_[kept], self.members_[kept]
            self.support_ = self.support_[kept]


class _State:
    """Rows, classes and votes while pairs are learned; what it was made from stays as it is."""

    def __init__(self, groups: PairGroups) -> None:
        self.votes, self.names = groups.votes, [*groups.classes_.labels_]
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.members: dict[int, int] = dict(
            zip(groups.rows_.tolist(), groups.members_.tolist(), strict=True)
        )
        self.support = dict(zip(groups.rows_.tolist(), groups.support_.tolist(), strict=True))
        self.links = {(a, b): votes for a, b, votes in groups.links_.tolist()}
        self.groups = {n for n, name in enumerate(self.names) if is_group(name)}
        there = {*self.members.values()}
        self.free = sorted(self.groups - there)  # to be used again
        for old in self.free:
            self._unlink(old)
        self.moved: dict[int, int] = {}

    def judge(
        self, places: list[int], prints: Sequence[int], labels: Sequence[Any], together: bool
    ) -> None:
        """Learn from one pair."""
        rows = [prints[i] for i in places]
        if rows[0] == rows[1]:
            return
        classes = [self._class(prints[i], labels[i]) for i in places]
        known = [each for each in classes if each is not None]
        if len(known) == 2 and known[0] != known[1]:
            self._vote(min(known), max(known), 1 if together else -1)
        elif len(known) == 2:
            for i, row in zip(places, rows, strict=True):
                if labels[i] is None:
                    self._speak(row, 1 if together else -1)
        elif together:
            joins = known[0] if known else self._new_group()
            for row, i in zip(rows, places, strict=True):
                if joins is not None and labels[i] is None:
                    self.members[row] = joins
                    self._speak(row, 1)

    def last(self, number: int) -> int:
        """Return what a class is part of by now."""
        while number in self.moved:
            number = self.moved[number]
        return number

    def _class(self, fingerprint: int, label: Any) -> int | None:
        if label is None:
            return self.members.get(fingerprint)
        return self._number(label)

    def _number(self, name: Name) -> int:
        number = self.numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def _new_group(self) -> int | None:
        if self.free:
            return self.free.pop(0)
        if len(self.groups) >= MOST_GROUPS:
            return None
        number = self._number((GROUP, len(self.groups)))
        self.groups.add(number)
        return number

    def _speak(self, row: int, vote: int) -> None:
        """Count what speaks for a row's being in its class; without any, it leaves."""
        self.support[row] = self.support.get(row, 0) + vote
        if self.support[row] <= 0:
            del self.support[row], self.members[row]

    def _vote(self, a: int, b: int, vote: int) -> None:
        if a not in self.groups and b not in self.groups:
            return
        self.links[a, b] = self.links.get((a, b), 0) + vote
        if self.links[a, b] >= self.votes:
            self._join(b, a) if b in self.groups else self._join(a, b)

    def _join(self, old: int, new: int) -> None:
        """Make a group part of another class, with its rows and its votes."""
        self.moved[old] = new
        self.members = {row: new if each == old else each for row, each in self.members.items()}
        for other, votes in self._unlink(old).items():
            if other != new and (other in self.groups or new in self.groups):
                pair = min(other, new), max(other, new)
                self.links[pair] = self.links.get(pair, 0) + votes

    def _unlink(self, old: int) -> dict[int, int]:
        """Drop the votes on a class; return them, by the other class."""
        pairs = [pair for pair in self.links if old in pair]
        return {pair[pair[0] == old]: self.links.pop(pair) for pair in pairs}


def is_group(name: Name) -> bool:
    """Whether a class is a group of rows without a label."""
    return isinstance(name, tuple) and len(name) == 2 and name[0] == GROUP


def fingerprints(X: Matrix) -> NDArray[np.int64]:
    """Return 64 bits of each row, the same for the same numbers."""
    rows = np.ascontiguousarray(X, np.float32) + np.float32(0)  # -0 + 0 is 0
    found = [hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in rows]
    return np.frombuffer(b"".join(found), "<i8").astype(np.int64)
