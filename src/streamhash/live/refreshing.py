"""A refresh: from the model that serves to what has been learned, while searches and adds go on.

1. Under the lock of writers, the learner is stored as the next model.
2. Without it, fragment after fragment is encoded; what is done is noted, so that a refresh that was
   interrupted goes on from there.
3. Under it again, the fragments that came meanwhile are encoded, one commit makes the new column
   the one that serves, and a new view takes the place of the old.
"""

import time
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np

from streamhash.errors import InputError
from streamhash.live.encoding import Result, encode_fragments, encode_part
from streamhash.live.learner import Learner
from streamhash.live.store import Model
from streamhash.live.view import View, advance

if TYPE_CHECKING:
    from streamhash.live.collection import Collection, Progress

__all__ = ["Refresh"]

FEW = 4096  # items that may be left for the end, when writers wait
PASSES = 5  # at most, over what came meanwhile, before writers have to wait
SECONDS = 2.0  # between notes of what is done


class Refresh:
    """One refresh of a collection; its caller sees to it that there is only one."""

    def __init__(
        self, collection: "Collection", executor: Executor | None, progress: "Progress | None"
    ) -> None:
        self.collection, self.store = collection, collection._store
        self.executor, self.progress = executor, progress
        self.results: dict[int, Result] = {}
        self.unnoted: dict[int, Result] = {}
        self.noted_at = time.monotonic()

    def run(self) -> bool:
        """Return whether the serving model changed."""
        start = time.monotonic()
        with self.collection._writing:
            model = self._begin()
        if model is None:
            return False
        self.results = self.store.read_encoded(model.number)
        n_before = sum(result["rows"] for result in self.results.values())
        for _ in range(PASSES):
            todo = self._todo()
            if sum(todo.values()) <= FEW:
                break
            # The smallest is left for the end: encoding it there tells the new schema.
            smallest = min(todo, key=lambda fragment: todo[fragment])
            work = [fragment for fragment in todo if fragment != smallest]
            if not work:
                break
            encode_fragments(self.store, model.number, work, self.executor, self._done)
            self._note(model.number)
        with self.collection._writing:
            self._finish(model, n_before, start)
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
        store.join_fragments()
        gain = None if view.model is None else learner.gain(view.model)
        facts = {
            "made": time.time(),
            "learned": learner.n_learned_,
            "items": len(view.directory),
            "gain": gain,
        }
        model = Model(view.number + 1, learner.hasher_.to_bytes(), facts)
        store.append_model(model)
        return model

    def _learned(self) -> Learner:
        """Return the learner, when it has learned what waits."""
        collection = self.collection
        learner = collection._learner
        if learner.n_waiting:
            learner = learner.copy()
            learner.learn_waiting()
            with collection._durably(learner):
                pass
        if not learner.is_ready:
            raise InputError(
                "Collection.refresh: nothing has been learned yet; add labelled items first."
            )
        return learner

    def _todo(self) -> dict[int, int]:
        with self.collection._writing:
            there = self.store.fragments()
        return {fragment: n for fragment, n in there.items() if fragment not in self.results}

    def _done(self, fragment: int, result: Result) -> None:
        self.results[fragment] = self.unnoted[fragment] = result
        if time.monotonic() - self.noted_at > SECONDS:
            self._note(self._number_of(result))
        self._show()

    @staticmethod
    def _number_of(result: Result) -> int:
        return int(result["model"])

    def _note(self, number: int) -> None:
        if self.unnoted:
            with self.collection._writing:
                self.store.append_encoded(number, self.unnoted)
        self.unnoted, self.noted_at = {}, time.monotonic()

    def _show(self) -> None:
        if self.progress is not None:
            done = sum(result["rows"] for result in self.results.values())
            self.progress(done, max(done, len(self.collection._view.directory)))

    def _finish(self, model: Model, n_before: int, start: float) -> None:
        collection, store = self.collection, self.store
        hasher = model.hasher()
        schema: Any = None
        fragments = store.dataset("items").get_fragments() if store.has_items else []
        left = [each for each in fragments if each.fragment_id not in self.results]
        for fragment in left or fragments[-1:]:
            result, schema = encode_part(fragment, model.number, hasher)
            self.results[fragment.fragment_id] = result
        self._show()
        if not fragments:
            raise InputError(
                "Collection.refresh: there are no items yet; the first that come are encoded."
            )
        there = {each.fragment_id for each in fragments}
        results = {number: self.results[number] for number in there}
        store.commit_codes(results, schema)
        collection._view = self._new_view(collection._view)
        rows = sum(result["rows"] for result in results.values())
        seconds = time.monotonic() - start
        collection.encoded_items += rows - n_before
        flips = np.sum([result["flips"] for result in results.values()], axis=0) / max(rows, 1)
        event = {
            "model": model.number,
            "time": time.time(),
            "learned": model.facts["learned"],
            "labelled": collection._view.directory.n_labelled,
            "items": rows,
            "seconds": seconds,
            "gain": model.facts["gain"],
            "flips": [round(flip, 4) for flip in flips.tolist()] if model.number > 1 else None,
        }
        learner = collection._learner.copy()
        learner.monitor_.refreshed(event)
        with collection._durably(learner):
            pass

    def _new_view(self, view: View) -> View:
        return advance(view, self.store)
