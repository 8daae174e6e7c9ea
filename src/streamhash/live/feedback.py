"""Judged answers: checked, read, and taken out of what was learned when their items go."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import check_similar
from streamhash.errors import InputError
from streamhash.hashers import METHODS
from streamhash.live.arrow import Keys
from streamhash.live.journal import Journal
from streamhash.live.judgements import (
    NO_KEY,
    Judgements,
    Pairs,
    are_there,
    read_pairs,
    renaming,
)
from streamhash.live.learner import Learner
from streamhash.live.validation import refuse_absent
from streamhash.live.view import View
from streamhash.records import Judgement
from streamhash.search.ids import check_ids
from streamhash.storable import check_vectors


class Feedback:
    """The judged answers of a collection, of items that are there."""

    def __init__(self, journal: Journal, view: View, learner: Learner) -> None:
        self._journal, self._view, self._learner = journal, view, learner

    # ------------------------------------------------------------------------------------- giving

    def give(self, query: Any, query_id: Any, id: Any, good: Any) -> int:
        """Store judged answers, and learn from them; return how many."""
        journal, learner, moment = self._journal, self._learner, self._view.now
        with journal.changing("feedback"):
            keys, query_keys, rows, said = self._checked(query, query_id, id, good)
            n = len(keys)
            if n == 0:
                return 0
            if rows is not None:
                vectors = rows.astype(np.float32, copy=False)
                learner.hasher_.refuse_extremes(vectors, "Collection.feedback", range(len(rows)))
            queries = [None] * n if rows is None else [row.tobytes() for row in rows]
            numbers = learner.n_judged_ + np.arange(n)
            journal.append_feedback(
                Judgements(numbers, keys, query_keys, said, queries * (n // len(queries))).columns()
            )
            twin = learner.judged(n, lambda first: self.pairs(first, n), moment.model)
            with journal.storing(learner, twin):
                pass
        return n

    def check(self, query: Any, query_id: Any, id: Any, good: Any) -> None:
        """Refuse what would be refused, and store nothing."""
        with self._journal.changing("feedback"):
            self._checked(query, query_id, id, good)

    def _checked(
        self, query: Any, query_id: Any, id: Any, good: Any
    ) -> tuple[Keys, Keys, NDArray[Any] | None, NDArray[np.bool_]]:
        """Return keys of items and of queries, the queries' vectors if they are no items."""
        place, hasher, journal = "Collection.feedback", self._learner.hasher, self._journal
        if not hasher.learns_pairs:
            learners = (each.__name__ for each in METHODS.values() if each.learns_pairs)
            raise InputError(
                f"{place}: {type(hasher).__name__} does not learn from judged answers; make the "
                f"collection with a method that does ({', '.join(learners)}), or change to one by "
                "rebuild."
            )
        if (query is None) == (query_id is None):
            raise InputError(f"{place}: pass either query, a vector, or query_id, of an item.")
        keys = self._keys_of(id, place)
        n = len(keys)
        said = good if isinstance(good, list | tuple | np.ndarray) else [good] * n
        flags = check_similar(said, n, n, f"{place}: good")
        rows, query_keys = None, np.full(n, NO_KEY)
        if query is None:
            query_keys = self._keys_of(query_id, place)
            if len(query_keys) == 1:
                query_keys = np.repeat(query_keys, n)
        else:
            rows = np.asarray(query) if isinstance(query, list) else query
            rows = rows.reshape(1, -1) if getattr(rows, "ndim", 2) == 1 else rows
            kind, width = journal.vector_type, self._view.n_features
            rows = check_vectors(rows, width, kind, place=f"{place}: query")
        n_queries = len(query_keys) if rows is None else len(rows)
        if n_queries not in (1, n):
            raise InputError(
                f"{place}: {n_queries} queries and {n} judged ids came; pass one query, or as many."
            )
        if (keys == query_keys).any():
            raise InputError(f"{place}: an item was judged as an answer to itself; leave that out.")
        return keys, query_keys, rows, flags

    def _keys_of(self, ids: Any, place: str) -> Keys:
        """Return the keys of items that are there, each as often as it comes; one id may come."""
        if isinstance(ids, str | int | np.integer):
            ids = [ids]
        if ids is None:
            raise InputError(f"{place}: id did not come; pass those of the judged items.")
        names = check_ids(ids, place=place)
        return refuse_absent(self._view.now.directory.find(names), names, place)

    # ------------------------------------------------------------------------------------ reading

    def pairs(self, first: int, n_more: int = 0) -> Pairs:
        """Return the judged pairs from a number on; ``n_more`` are stored and do not count yet."""
        last = self._learner.n_judged_ + n_more
        return read_pairs(self._journal, self._view.now, first, last)

    def _read(self, *, vectors: bool = False) -> Judgements:
        """Read what was judged of items that are there."""
        found = self._journal.read_feedback(self._learner.n_judged_, vectors=vectors)
        return found.some(are_there(found, self._view.now))

    def judgements(self) -> list[Judgement]:
        """Return them as users see them, in the order in which they came."""
        found, listing = self._read(vectors=True), self._view.now.listing
        ids = listing.ids_of(found.keys).tolist()
        is_item = found.query_keys >= 0
        asked = iter(listing.ids_of(found.query_keys[is_item]).tolist())
        kind, width = self._journal.vector_type, self._view.n_features or 0
        vectors = found.vectors(kind, width)
        return [
            Judgement(ids[i], good, next(asked), None)
            if is_item[i]
            else Judgement(ids[i], good, None, vectors[i])
            for i, good in enumerate(found.good.tolist())
        ]

    def status(self) -> dict[str, int]:
        """Return how many are stored, learned or wait."""
        judged, learner = self._read(), self._learner
        waiting = int((judged.numbers >= learner.judged_to_).sum())
        return {
            "stored": len(judged.good),
            "good": int(judged.good.sum()),
            "learned": len(judged.good) - waiting,
            "waiting": waiting,
        }

    # ---------------------------------------------------------------------------- items that go

    def without(
        self, keys: Keys, learner: Learner | None, *, queries: bool = True
    ) -> tuple[Learner | None, Keys]:
        """Let what pairs have taught of items leave; return the learner, and the pairs' numbers.

        Unless ``queries`` stay, those go too that were asked for these items alone.
        """
        old = self._learner
        judged = self._read() if len(keys) else None
        if judged is None or not judged.about(keys).any():
            return learner, keys[:0]
        numbers = judged.numbers[judged.about(keys)]
        if not (self._journal.forget_deleted and old.forgets_pairs):
            return learner, numbers
        learned = judged.some(judged.numbers < old.judged_to_)
        paired = np.append(learned.keys, learned.query_keys)
        rows = [self._journal.vectors(keys[np.isin(keys, paired)])]
        if queries:
            judged = self._read(vectors=True)
            others = {*judged.some(~judged.about(keys)).queries}
            gone = judged.some(judged.about(keys) & (judged.query_keys < 0))
            alone = [i for i, each in enumerate(gone.queries) if each not in others]
            kind, width = self._journal.vector_type, len(rows[0].T)
            rows.append(gone.some(np.array(alone, np.int64)).vectors(kind, width))
        twin = learner or old.copy()
        twin.leave_pairs(np.concatenate(rows).astype(np.float32))
        return twin, numbers

    def renamed(self, keys: Keys, new: Keys, learner: Learner | None) -> Learner | None:
        """Let judgements follow items that get other keys; return the learner."""
        old = self._learner
        if not len(keys) or not self._read().about(keys).any():
            return learner
        twin = learner or old.copy()
        self._journal.append_feedback(renaming(twin.n_judged_, keys, new))
        twin.n_judged_ += len(keys)
        twin.delta = None  # it is more than that
        return twin
