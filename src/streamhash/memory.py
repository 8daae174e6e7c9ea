"""A sample of a labelled stream in which every class has its share, however the stream comes."""

import copy
from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, Streaming, new_generator
from streamhash.classes import ClassTable
from streamhash.errors import InputError
from streamhash.labels import same_width
from streamhash.learned import MOST, AnyOf, Array, Count, Generator, Part, Table
from streamhash.parameters import SEED, Whole, parameter

Entry = tuple[float, int]  # the key of a row, and its place among the stored rows


class ClassMemory(Streaming):
    """Keeps ``size`` rows of all that have come, as evenly over the classes as they allow.

    Every row draws a random key. A class keeps its q rows with the smallest keys, where q, the
    share of a class, is the largest whole number for which all fit: Σ min(n_c, q) ≤ ``size`` over
    the numbers n_c of rows seen of each class. As these numbers grow, q only falls, so that a row
    of the final sample is never dropped before: the sample depends on the keys, not on how the
    stream was cut. Of more classes than ``size``, those stay whose smallest keys are the smallest.

    With a 0/1 matrix of labels a row belongs to all its classes, and stays while one of them keeps
    it; rows without any label are a class of their own.

    State: up to 1.25 ``size`` rows of d numbers.

    Parameters
    ----------
    size : int, default=4000
        Rows kept in all.
    random_state : int, RandomState or None
        Seed of the keys.

    Attributes
    ----------
    classes_ : ClassTable
        The numbers of the classes; empty if labels come as a 0/1 matrix.
    counts_ : array (classes,)
        Rows seen of each class, and not forgotten.
    n_unlabelled_ : int
        Those without any label, in a 0/1 matrix.
    rows_, labels_, keys_ : arrays (≥ n, d), (≥ n,) or (≥ n, classes), (≥ n,)
        What is stored, with some rows that no class keeps any more; ``rows`` and ``labels`` are the
        sample itself.
    generator_ : numpy.random.Generator
        The source of the keys.

    Examples
    --------
    >>> memory = ClassMemory(4, random_state=0)
    >>> memory.take(np.arange(10, dtype=np.float32)[:, None], np.array(list("aaaaaaaabb")))
    >>> memory.rows.ravel(), memory.labels
    (array([3., 2., 8., 9.], dtype=float32), array([0, 0, 1, 1], dtype=int32))
    >>> memory.counts_
    array([8, 2])
    """

    size: int = parameter(Whole(1), default=4000, kw_only=False)
    random_state: Any = parameter(SEED, default=None)
    learns = Table(
        generator_=Generator(),
        classes_=Part(ClassTable),
        counts_=Array(np.int64, "C", low=0, high=MOST),
        n_unlabelled_=Count(),
        rows_=Array(np.float32, "n", "d"),
        labels_=AnyOf(Array(np.int32, "n", low=0, below="C"), Array(np.uint8, "n", "C", high=1)),
        keys_=Array(np.float64, "n", low=0, high=1),
    )

    def check_learned(self) -> None:
        """Refuse what was learned if it does not fit the class's own statement, ``learns``."""
        super().check_learned()
        if not self.has_learned():
            return
        n_names = len(self.counts_) if self.labels_.ndim == 1 else 0
        if len(self.classes_) != n_names or len(self.rows_) > self.size:
            raise InputError(
                f"ClassMemory: {len(self.classes_)} classes and {len(self.rows_)} rows are stored, "
                f"of {n_names} classes and at most {self.size} rows"
            )
        stored = np.bincount(
            [c for classes in _classes_of(self.labels_) for c in classes],
            minlength=len(self.counts_) + 1,
        )
        if (stored > np.append(self.counts_, self.n_unlabelled_)).any():
            raise InputError("ClassMemory: more rows of a class are stored than have come")

    def _start(self, d: int, y: NDArray[Any]) -> None:
        self.generator_ = new_generator(self.random_state)
        self.classes_ = ClassTable()
        self.counts_ = np.zeros(0, np.int64)
        self.n_unlabelled_ = 0
        self.rows_: Matrix = np.zeros((0, d), np.float32)
        self.labels_ = np.zeros((0, y.shape[1]), np.uint8) if y.ndim == 2 else np.zeros(0, np.int32)
        self.keys_ = np.zeros(0)

    @property
    def rows(self) -> Matrix:
        """The sample (n, d), in the order of the keys."""
        return self.rows_[self._order()]

    @property
    def labels(self) -> NDArray[Any]:
        """Its class numbers (n,), or the 0/1 matrix (n, classes)."""
        return self.labels_[self._order()]

    def __len__(self) -> int:
        return len(self._order()) if hasattr(self, "rows_") else 0

    def learned(self) -> dict[str, Any]:
        """Return what was learned, by name: of what is stored, the sample alone."""
        found = super().learned()
        if found:
            order = self._order()
            found.update({name: found[name][order] for name in ("rows_", "labels_", "keys_")})
        return found

    def take(self, X: Matrix, y: NDArray[Any]) -> None:
        """Offer rows (n, d) in their order, with labels (n,) or a 0/1 matrix (n, classes)."""
        self._check("take", X, y)
        if not hasattr(self, "rows_"):
            self._start(X.shape[1], y)
        labels = self.classes_.number(y) if y.ndim == 1 else y.astype(np.uint8, copy=False)
        stored, labels = same_width(self.labels_, labels)
        n_classes = len(self.classes_) if y.ndim == 1 else labels.shape[1]
        n_new = n_classes - len(self.counts_)
        shares, first = self._shared().grown(n_new), len(self.rows_)
        keys = self.generator_.random(len(X))
        for i, (key, classes) in enumerate(zip(keys.tolist(), _classes_of(labels), strict=True)):
            shares.count(classes)
            shares.offer(key, first + i, classes)
        shares.drop_surplus()
        self.labels_ = stored
        self.counts_ = np.array(shares.counts[:-1], np.int64)
        self.n_unlabelled_ = shares.counts[-1]
        new = shares.kept_since(first)
        shares.move({place: first + i for i, place in enumerate(new)})
        self._shares = shares
        chosen = np.array(new, np.intp) - first
        self._append(X[chosen], labels[chosen], keys[chosen])

    def draw(self, n: int, generator: np.random.Generator) -> NDArray[np.intp]:
        """Draw n rows of the sample, or all if there are fewer; return their indices.

        One row of each class in turn, the classes in random order, and no row twice: as many of
        each class as it has, up to the same number for all.
        """
        order = self._order()
        index = np.zeros(len(self.rows_), np.intp)
        index[order] = np.arange(len(order))
        return index[self._drawn(n, generator)]

    def sample(self, n: int, generator: np.random.Generator) -> tuple[Matrix, NDArray[Any]]:
        """Draw rows as ``draw`` does; return them and their labels, at a cost of n rows only."""
        places = self._drawn(n, generator)
        return self.rows_[places], self.labels_[places]

    def forget(self, X: Matrix, y: NDArray[Any]) -> None:
        """Take back rows that were taken before, with the labels they came with.

        The counts of their classes fall. Of each row that is still kept (the same numbers, the
        same label) one is dropped; its place, and those that a now larger share of each class
        gives, stay empty until new rows come, which then come in whatever their keys, or
        ``refill`` hands in old ones. So what is
        left is a part of the sample of the same stream without these rows, and lacks of it at most
        as many rows as were dropped, counted once for each of their labels, and one a class.

        Rows that never came cannot be told from rows that did and were not kept; more than have
        come of a class are refused, and nothing is changed.
        """
        self._check("forget", X, y)
        X, numbers = X.astype(np.float32, copy=False), self._known(y)
        counts = np.append(self.counts_, self.n_unlabelled_)
        for classes in _classes_of(numbers):
            counts[classes] -= 1
        if (counts < 0).any():
            raise InputError(
                "ClassMemory.forget: more rows are to be forgotten than have come of their "
                f"classes, {-counts[counts < 0].sum()} too many; pass rows that were taken, each "
                "once."
            )
        order = self._order()
        kept: dict[bytes, list[int]] = {}
        for place in order.tolist():
            kept.setdefault(_content(self.rows_[place], self.labels_[place]), []).append(place)
        dropped = []
        for row, label in zip(X, numbers, strict=True):
            places = kept.get(_content(row, label))
            if places:
                dropped.append(places.pop())
        self.counts_, self.n_unlabelled_ = counts[:-1], int(counts[-1])
        self._store(order[~np.isin(order, dropped)])

    def missing(self) -> dict[Any, int]:
        """Return how many rows of a class were forgotten, and not replaced by others that came.

        Classes are named by their labels, or by the columns of the 0/1 matrix.
        """
        if not hasattr(self, "rows_"):
            return {}
        shares, names = self._shared(), self.classes_.labels_ or range(len(self.counts_))
        due = [min(count, shares.share) for count in shares.counts]
        lacking = [n - len(held) for n, held in zip(due, shares.held, strict=True)]
        return {name: n for name, n in zip(names, lacking, strict=False) if n > 0}

    def refill(self, X: Matrix, y: NDArray[Any]) -> None:
        """Take in rows that came before and are not in the sample, where some are missing.

        Drawn at random from all such rows of a class, they make the sample one of the rows that
        were not forgotten: of the rows of a class that are not kept, whose keys exceed those that
        are, they get the smallest keys. (The largest key that was forgotten is not known any
        more, so that old rows stay a little longer than chance would have it.) What has no place
        is left out.
        """
        self._check("refill", X, y)
        X, numbers = X.astype(np.float32, copy=False), self._known(y)
        order = self._order()
        kept = {_content(self.rows_[i], self.labels_[i]) for i in order.tolist()}
        new = [i for i in range(len(X)) if _content(X[i], numbers[i]) not in kept]
        X, numbers = X[new], numbers[new]
        shares, keys = self._shared(), np.zeros(len(X))
        drawn: dict[int, Iterator[float]] = {}
        for i, classes in enumerate(_classes_of(numbers)):
            c = min(classes, key=shares.counts.__getitem__)  # of several, the rarest
            if c not in drawn:
                n_others = max(shares.counts[c] - len(shares.held[c]), len(X))
                drawn[c] = iter(np.sort(self.generator_.random(n_others)).tolist())
            most = max((shares.held[c][-1][0] for c in classes if shares.held[c]), default=0.0)
            keys[i] = most + (1 - most) * next(drawn[c])
        self.rows_ = np.concatenate([self.rows_[order], X])
        self.labels_ = np.concatenate([self.labels_[order], numbers])
        self.keys_ = np.concatenate([self.keys_[order], keys])
        del self._shares
        self._store(self._order())

    def join(self, old: Any, new: Any) -> tuple[int, int]:
        """Make the rows of a class, by its label, those of another; return the two numbers.

        What the classes keep of their rows then is a part of what one class would have kept.
        """
        names = np.fromiter([old, new], object, 2)
        numbers = self.classes_.number(names).tolist()
        counts = np.pad(self.counts_, (0, len(self.classes_) - len(self.counts_)))
        counts[numbers[1]] += counts[numbers[0]]
        counts[numbers[0]] = 0
        order = self._order()
        self.counts_ = counts
        self.labels_ = np.where(self.labels_ == numbers[0], numbers[1], self.labels_)
        self.labels_ = self.labels_.astype(np.int32)
        self._store(order)
        self._store(self._order())
        return numbers[0], numbers[1]

    @classmethod
    def merged(cls, a: Self, b: Self) -> Self:
        """Return the memory of two streams as if they had been one; both stay as they are.

        Classes are joined by their labels, 0/1 matrices by their columns. Its size is the smaller
        of the two.
        """
        whole = cls(min(a.size, b.size), random_state=a.random_state)
        both = [memory for memory in (a, b) if hasattr(memory, "rows_")]
        if not both:
            return whole
        both[0]._check("merged", both[-1].rows_, both[-1].labels_)
        classes = ClassTable()
        labels: list[NDArray[Any]] = []
        counts: list[NDArray[np.int64]] = []
        for memory in both:
            if memory.labels_.ndim == 1:
                names = memory.classes_.labels_
                numbers = classes.number(np.fromiter(names, object, len(names)))
                labels.append(numbers[memory.labels_])
                counts.append(np.bincount(numbers, memory.counts_, len(classes)).astype(np.int64))
            else:
                labels.append(memory.labels_)
                counts.append(memory.counts_)
        # A source of its own: should both have the same seed, keys to come would repeat theirs.
        seeds = [int(copy.deepcopy(memory.generator_).integers(2**63)) for memory in both]
        whole.generator_ = np.random.default_rng(seeds)
        whole.classes_ = classes
        whole.rows_ = np.concatenate([memory.rows_ for memory in both])
        whole.keys_ = np.concatenate([memory.keys_ for memory in both])
        whole.labels_ = np.concatenate(same_width(*labels))
        width = max(map(len, counts))
        whole.counts_ = np.sum([np.pad(each, (0, width - len(each))) for each in counts], axis=0)
        whole.n_unlabelled_ = sum(memory.n_unlabelled_ for memory in both)
        whole._store(whole._order())
        return whole

    def _check(self, verb: str, X: Matrix, y: NDArray[Any]) -> None:
        if not hasattr(self, "rows_"):
            if verb in ("forget", "refill"):
                raise InputError(
                    f"ClassMemory.{verb}: this memory has not seen any rows; take them first."
                )
            return
        if X.shape[1] != self.rows_.shape[1]:
            raise InputError(
                f"ClassMemory.{verb}: rows of {X.shape[1]} numbers came, and this memory keeps "
                f"rows of {self.rows_.shape[1]}; pass the same features or start a new one."
            )
        if y.ndim != self.labels_.ndim:
            raise InputError(
                f"ClassMemory.{verb}: the stream began with labels in {self.labels_.ndim} "
                f"dimensions and goes on with {y.ndim}; pass all labels as numbers or names, or "
                "all as a 0/1 matrix."
            )

    def _known(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return labels as they are kept, without making room for new classes."""
        n = len(self.counts_)
        if y.ndim == 2:
            unknown = bool(y[:, n:].any())
            numbers: NDArray[Any] = np.pad(y[:, :n], ((0, 0), (0, max(n - y.shape[1], 0))))
        else:
            numbers = copy.copy(self.classes_).number(y)
            unknown = bool((numbers >= n).any())
        if unknown:
            raise InputError(
                "ClassMemory: y has a class of which no row has come; pass rows that were taken, "
                "with the labels they came with."
            )
        return numbers.astype(self.labels_.dtype, copy=False)

    # What is stored ---------------------------------------------------------------------------

    def _shared(self) -> "_Shares":
        """Return what each class keeps, not to be written into; found anew after loading.

        It follows from what is stored: a row that no class keeps has a larger key than those kept.
        """
        if not hasattr(self, "_shares"):
            shares = _Shares(np.append(self.counts_, self.n_unlabelled_), self.size)
            classes = _classes_of(self.labels_)
            for place, (key, each) in enumerate(zip(self.keys_.tolist(), classes, strict=True)):
                shares.offer(key, place, each)
            shares.drop_surplus()
            self._shares = shares
        return self._shares

    def _order(self) -> NDArray[np.intp]:
        """Return the places of the sample's rows, in the order of their keys."""
        entries = sorted({entry for entries in self._shared().held for entry in entries})
        return np.array([place for _, place in entries], np.intp)

    def _drawn(self, n: int, generator: np.random.Generator) -> list[int]:
        held = [entries for entries in self._shared().held if entries]
        queues = [_shuffled(held[i], generator) for i in generator.permutation(len(held))]
        found: dict[int, None] = {}
        while queues and len(found) < n:
            filled = []
            for queue in queues[: n - len(found)]:
                place = next((place for place in queue if place not in found), None)
                if place is not None:
                    found[place] = None
                    filled.append(queue)
            queues = filled
        return [*found]

    def _append(self, X: Matrix, labels: NDArray[Any], keys: NDArray[Any]) -> None:
        """Store rows behind the others; where space runs out, of the others only those kept."""
        n = len(self.rows_)
        stored, new = (self.rows_, self.labels_, self.keys_), (X, labels, keys)
        buffer: _Buffer | None = getattr(self, "_buffer", None)
        if buffer is None or not buffer.has_room(stored, len(X)):
            order = self._order()
            old = order[order < n]
            places = [*old.tolist(), *range(n, n + len(X))]
            self._shares.move({place: i for i, place in enumerate(places)})
            stored = (self.rows_[old], self.labels_[old], self.keys_[old])
            limit = self.size + self.size // 4 + 16
            buffer = self._buffer = _Buffer(stored, min(limit, 64 + 2 * len(order)))
        self.rows_, self.labels_, self.keys_ = buffer.append(*new)

    def _store(self, places: NDArray[np.intp]) -> None:
        """Keep the rows at these places alone."""
        self.rows_, self.labels_ = self.rows_[places], self.labels_[places]
        self.keys_ = self.keys_[places]
        del self._shares


class _Shares:
    """What each class keeps, as (key, place) by key, while rows come; lists are replaced."""

    def __init__(self, counts: NDArray[np.int64], size: int) -> None:
        self.counts: list[int] = counts.tolist()
        self.held: list[list[Entry]] = [[] for _ in self.counts]
        self.size, self.share = size, fair_share(counts, size)
        self._n_due = int(np.minimum(counts, self.share).sum())  # Σ min(n_c, q)
        self._own: set[int] = set()  # classes whose list is this one's alone
        self._n_lists: dict[int, int] = {}  # of a place offered: the lists it is in

    def grown(self, n_new: int) -> "_Shares":
        """Return a copy to go on with, with so many classes more."""
        twin = copy.copy(self)
        twin.counts = [*self.counts[:-1], *[0] * n_new, self.counts[-1]]
        twin.held = [*self.held[:-1], *([] for _ in range(n_new)), self.held[-1]]
        twin._own, twin._n_lists = set(), {}
        return twin

    def count(self, classes: Iterable[int]) -> None:
        """A row of these classes has come: the share of a class may have to fall."""
        for c in classes:
            self._n_due += self.counts[c] < self.share
            self.counts[c] += 1
        while self._n_due > self.size and self.share > 1:
            self.share -= 1
            for c, count in enumerate(self.counts):
                if count > self.share:
                    self._n_due -= 1
                    if len(self.held[c]) > self.share:
                        self._drop(c)

    def offer(self, key: float, place: int, classes: Iterable[int]) -> None:
        """Let a row in where a class has fewer than its share, or rows with larger keys."""
        for c in classes:
            if len(self.held[c]) < self.share or key < self.held[c][-1][0]:
                insort(self._list(c), (key, place))
                self._n_lists[place] = self._n_lists.get(place, 0) + 1
                if len(self.held[c]) > self.share:
                    self._drop(c)

    def drop_surplus(self) -> None:
        """Of more classes than rows may be kept, drop the largest keys."""
        surplus = sum(map(len, self.held)) - self.size if self.share == 1 else 0
        if surplus > 0:
            last = ((*entries[-1], c) for c, entries in enumerate(self.held) if entries)
            for *_, c in nlargest(surplus, last):
                self._drop(c)

    def kept_since(self, first: int) -> list[int]:
        """Return the places from this one on that a class keeps."""
        return sorted(place for place, n in self._n_lists.items() if n and place >= first)

    def move(self, places: dict[int, int]) -> None:
        """Rows at some places have moved to others."""
        if any(old != new for old, new in places.items()):
            self.held = [
                [(key, places.get(place, place)) for key, place in entries] for entries in self.held
            ]

    def _list(self, c: int) -> list[Entry]:
        if c not in self._own:
            self._own.add(c)
            self.held[c] = self.held[c].copy()
        return self.held[c]

    def _drop(self, c: int) -> None:
        _, place = self._list(c).pop()
        if place in self._n_lists:
            self._n_lists[place] -= 1


class _Buffer:
    """Arrays with space behind for more rows, so that one row costs one row.

    A memory that goes back to an earlier state, or a second that goes on from it, finds the space
    used already, and lays out a buffer of its own: what others see is never written into.
    """

    def __init__(self, arrays: Sequence[NDArray[Any]], capacity: int) -> None:
        self._arrays = [np.empty((capacity, *a.shape[1:]), a.dtype) for a in arrays]
        self._n_used = 0
        self.append(*arrays)

    def has_room(self, arrays: Sequence[NDArray[Any]], n: int) -> bool:
        """Whether n rows can stand behind these arrays, which this buffer has given."""
        mine = all(a.base is b for a, b in zip(arrays, self._arrays, strict=True))
        return mine and self._n_used == len(arrays[0]) and self._n_used + n <= len(self._arrays[0])

    def append(self, *new: NDArray[Any]) -> list[NDArray[Any]]:
        """Add rows; return all that is used."""
        end = self._n_used + len(new[0])
        for array, rows in zip(self._arrays, new, strict=True):
            array[self._n_used : end] = rows
        self._n_used = end
        return [array[:end] for array in self._arrays]

    def __reduce__(self) -> tuple[Any, ...]:  # a copy of a memory lays out a buffer of its own
        return _Buffer, ([np.empty(0)] * 3, 0)


def fair_share(counts: NDArray[np.int64], size: int) -> int:
    """Return the largest q, at least 1, with Σ min(n, q) ≤ size; the size if all fit.

    >>> fair_share(np.array([2, 8, 9]), 10)
    4
    """
    ascending = np.sort(counts)
    n_left = np.arange(len(ascending), 0, -1)  # classes that have at least so many rows
    room = (
        size - np.cumsum(ascending) + ascending
    )  # for them, if all smaller classes are kept whole
    too_many = ascending * n_left > room
    if not too_many.any():
        return size
    first = int(np.argmax(too_many))
    return max(int(room[first] // n_left[first]), 1)


def _classes_of(labels: NDArray[Any]) -> list[list[int]]:
    """Return the classes of each row; rows without any are of the last, one more than columns."""
    if labels.ndim == 1:
        return [[c] for c in labels.tolist()]
    classes: list[list[int]] = [[] for _ in labels]
    for row, c in zip(*(index.tolist() for index in np.nonzero(labels)), strict=True):
        classes[row].append(c)
    return [each or [labels.shape[1]] for each in classes]


def _shuffled(entries: list[Entry], generator: np.random.Generator) -> Iterator[int]:
    for i in generator.permutation(len(entries)).tolist():
        yield entries[i][1]


def _content(row: Matrix, label: Any) -> bytes:
    return bytes((row + np.float32(0)).tobytes() + label.tobytes())  # -0 + 0 is 0
