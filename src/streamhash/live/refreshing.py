"""A refresh: from the model that serves to what has been learned, while searches and adds go on.

1. Under the lock of writers, the learner is stored as the next model.
2. Without it, fragment after fragment is encoded; what is done is noted, so that a refresh that was
   interrupted goes on from there.
3. Under it again, the fragments that came meanwhile are encoded, one commit makes the new column
   the one that serves, and a new view takes the place of the old.
   Codes that are searched in Milvus are sent there by whoever encodes them, to a table beside the
   one that serves, and must all be there before the commit.
4. The old column is dropped; searches have nothing to do with it any more.
"""

import time
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import OnlineHasher
from streamhash.codes import code_bytes
from streamhash.errors import InputError
from streamhash.live.arrow import vectors_of
from streamhash.live.backends import Home, Pieces
from streamhash.live.encoding import Result, encode_fragments, encode_part, is_of
from streamhash.live.learner import Learner
from streamhash.live.locks import uninterrupted
from streamhash.live.store import MANY, Model
from streamhash.live.view import advance

if TYPE_CHECKING:
    from streamhash.live.collection import Collection, Progress

__all__ = ["Refresh"]

FEW = 4096  # items that may be left for the end, when writers wait
PASSES = 5  # at most, over what came meanwhile, before writers have to wait
SECONDS = 2.0  # between notes of what is done


class Refresh:
    """One refresh of a collection; its caller sees to it that there is only one.

    By hand, it learns first what waits; by itself it leaves that, so that what is learned does not
    depend on the size of the pieces in which items come.
    """

    def __init__(
        self,
        collection: "Collection",
        executor: Executor | None = None,
        progress: "Progress | None" = None,
        *,
        by_hand: bool = True,
    ) -> None:
        self.by_hand = by_hand
        self.collection, self.store = collection, collection._store
        self.executor, self.progress = executor, progress
        self.results: dict[int, Result] = {}
        self.unnoted: dict[int, Result] = {}
        self.start = self.noted_at = time.monotonic()
        self.n_resumed = self.shown = 0
        self.home: Home | None = None

    def run(self) -> bool:
        """Return whether the serving model changed."""
        with self.collection._changing("refresh"):
            model = self._begin()
            if model is None:
                return False
            self.results = self.store.read_encoded(model.number)
        self.n_resumed = sum(result["rows"] for result in self.results.values())
        hasher, homes = model.hasher(), self.collection._homes
        self.home = homes.prepare(model.number, hasher.n_bits, self.collection._view.index)
        serving = homes.address, homes.options
        for _ in range(PASSES):
            version, todo = self._todo()
            if sum(todo.values()) <= FEW:
                break
            # The smallest is left for the end: encoding it there tells the new schema.
            work = sorted(todo, key=lambda fragment: -todo[fragment])[:-1]
            if not work:
                break
            try:
                encode_fragments(
                    self.store, version, model.number, work, self.executor, self._done, serving
                )
            finally:
                self._note()
        # Workers have sent what they made to its home; this sees to it, before writers must wait.
        self._fill_home(hasher)
        with self.collection._changing("refresh"):
            self._fill_home(hasher)
            self._finish(model)
        homes.swept(self.collection._view.index)
        self._tidy()
        return True

    def _begin(self) -> Model | None:
        """Return the model to change to: the one an interrupted refresh had, or the learner now."""
        collection, store = self.collection, self.store
        number = collection._pending()
        if number is not None:
            return store.read_model(number)
        learner = self._learned()
        view = collection._view
        if view.model is not None and learner.hasher_.to_bytes() == view.model.to_bytes():
            return None
        collection._settle()
        with uninterrupted():
            store.join_fragments("items", MANY)
        gain = None if view.model is None else learner.gain_
        facts = {
            "made": time.time(),
            "learned": learner.n_learned_,
            "items": len(view.directory),
            "gain": gain,
        }
        model = Model(view.number + 1, learner.hasher_.to_bytes(), facts)
        with uninterrupted():
            store.append_model(model)
        return model

    def _learned(self) -> Learner:
        """Return the learner, when it has learned what waits."""
        collection = self.collection
        learner = collection._learner
        if learner.n_waiting and self.by_hand:
            learner = learner.copy()
            learner.learn_waiting()
            with collection._storing(learner):
                pass
        if not learner.is_ready:
            raise InputError(
                "Collection.refresh: nothing has been learned yet; add labelled items first."
            )
        return learner

    def _todo(self) -> tuple[int, dict[int, int]]:
        """Return the version, the fragments that are to be encoded yet, and their rows."""
        with self.collection._writing:
            left = self._left(self.store.fragments())
            rows = {each.fragment_id: int(each.count_rows()) for each in left}
            return self.store.version("items"), rows

    def _left(self, fragments: list[Any]) -> list[Any]:
        done = self.results
        return [
            each
            for each in fragments
            if each.fragment_id not in done or not is_of(done[each.fragment_id], each)
        ]

    def _done(self, fragment: int, result: Result) -> None:
        self.results[fragment] = self.unnoted[fragment] = result
        if time.monotonic() - self.noted_at > SECONDS:
            self._note()
        self._show()

    def _note(self) -> None:
        """Store what is done, for the case that this refresh is interrupted."""
        if self.unnoted:
            number = next(iter(self.unnoted.values()))["model"]
            with self.collection._changing("refresh"), uninterrupted():
                self.store.append_encoded(number, self.unnoted)
        self.unnoted, self.noted_at = {}, time.monotonic()

    def _show(self) -> None:
        """Tell how far it is; items that are deleted meanwhile do not set it back."""
        done = sum(result["rows"] for result in self.results.values())
        self.shown = max(self.shown, done)
        shown = self.shown, max(self.shown, len(self.collection._view.directory))
        self.collection._progress = shown
        if self.progress is not None:
            self.progress(*shown)

    def _finish(self, model: Model) -> None:
        """Encode what is left, commit all, and change to it in memory."""
        collection, store, hasher = self.collection, self.store, model.hasher()
        fragments = store.fragments()
        smallest = sorted(fragments, key=lambda each: each.count_rows())[:1]
        schema: Any = None
        with store.told("items"):
            for fragment in self._left(fragments) or smallest:
                result, schema = encode_part(fragment, model.number, hasher)
                self.results[fragment.fragment_id] = result
        there = {each.fragment_id: self.results[each.fragment_id] for each in fragments}
        learner = collection._learner.copy()
        rows = sum(result["rows"] for result in there.values())
        changed = np.sum([result["flips"] for result in there.values()], axis=0) / max(rows, 1)
        flips = changed if model.number > 1 and rows else None
        learner.served(self._event(model, rows), flips)
        with collection._storing(learner, items=1):
            store.commit_codes(model.number, code_bytes(hasher.n_bits), there, schema)
            collection._view = advance(collection._view, store, collection._homes)
        collection.encoded_items += rows - self.n_resumed
        self._show()

    def _fill_home(self, hasher: OnlineHasher) -> None:
        """Let a home elsewhere hold the new codes of all items, encoding what it lacks."""
        if self.home is not None:
            self.home.fill(self.collection._keys_now(), partial(self._encoded, hasher))

    def _encoded(self, hasher: OnlineHasher, keys: NDArray[np.int64]) -> Pieces:
        store = self.store.another()  # others may write meanwhile
        for column, here in store.scan_items("vector", keys):
            yield hasher.transform(vectors_of(column)), here

    def _event(self, model: Model, rows: int) -> dict[str, Any]:
        """Return what the history says of this refresh."""
        return {
            "model": model.number,
            "time": time.time(),
            "learned": model.facts["learned"],
            "labelled": self.collection._view.directory.n_labelled,
            "items": rows,
            "seconds": time.monotonic() - self.start,
            "gain": model.facts["gain"],
        }

    def _tidy(self) -> None:
        """Drop the old codes; if that fails, it is made up for later."""
        with self.collection._changing("refresh"):
            self.collection._mend()
