"""A refresh: from the model that serves to what has been learned, while searches and adds go on.

1. Under the lock of writers, the learner is stored as the next model.
2. Without it, fragment after fragment is encoded, in small memory: as many at a time as there are
   threads, or by any executor. What is done is noted, so that a refresh that was interrupted goes
   on from there. A worker gets an address and a number, reads the vectors itself, and writes the
   new column beside the data that is there.
3. Under the lock again, the fragments that came meanwhile are encoded, one commit makes the new
   column the one that serves, and a new moment takes the place of the old in the view.
   Codes that are searched in Milvus are sent there by whoever encodes them, to a table beside the
   one that serves, and must all be there before the commit.
4. The old column is dropped; searches have nothing to do with it any more.
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from streamhash.codes import code_bytes
from streamhash.errors import InputError, NotFoundError
from streamhash.live.arrow import Keys
from streamhash.live.backends import Backend
from streamhash.live.journal import Journal, Model, Pieces, Result, Send, encode
from streamhash.live.judgements import read_pairs
from streamhash.live.learner import Learner, Progress
from streamhash.live.view import View
from streamhash.refresh import Prospect, RefreshPolicy
from streamhash.threads import ProcessLock, get_threads

logger = logging.getLogger(__name__)

LEFT_FOR_THE_END = 4096  # items that may be encoded while writers wait
PASSES = 5  # at most, over what came meanwhile, before writers have to wait
NOTE_SECONDS = 2.0  # between notes of what is done
GUESSED_SECONDS = 2e-7  # an item and feature, before a refresh of many was measured
MANY_ITEMS = 1000


class Work(NamedTuple):
    """What a worker has to know to encode fragments."""

    address: str  # of the items,
    storage_options: dict[str, str] | None
    backend: str | None  # and where codes are sent to
    backend_options: dict[str, Any] | None
    version: int  # of the items
    model: int
    name: str  # no other work has it


class Refresher:
    """Makes what has been learned the model that serves: when it is asked to, and when it is due.

    By hand, a refresh learns first what waits; by itself it leaves that, so that what is learned
    does not depend on the size of the pieces in which items come.
    """

    def __init__(self, journal: Journal, view: View, learner: Learner, *, background: bool) -> None:
        self._journal, self._view, self._learner = journal, view, learner
        self._background = background
        self._progress = (0, 0)  # of the running refresh, or the last: items encoded, and in all
        self.encoded_items = 0  # by refreshes of this object, all together
        self.forked()

    def forked(self) -> None:
        """Know of no refresh that runs: in a child of this process there is none."""
        self._running = threading.Lock()
        self._thread: threading.Thread | None = None
        self._later: threading.Timer | None = None
        self.error: BaseException | None = None

    @property
    def is_running(self) -> bool:
        """Whether a refresh runs."""
        return self._running.locked()

    @property
    def policy(self) -> RefreshPolicy:
        """When to refresh by itself."""
        return RefreshPolicy.parse(self._journal.settings["refresh"], place="Collection.open")

    def is_due(self) -> bool:
        """Whether to refresh now, by the policy."""
        with self._journal.lock:
            moment, learner = self._view.now, self._learner
            if moment.model is None:
                return learner.is_ready
            if self._journal.pending is not None:
                return self.policy != RefreshPolicy()
            return self._may_leave_model() and self.policy.is_due(self._prospect())

    def _prospect(self) -> Prospect:
        """What a refresh would bring, what it costs, and the time that there is for it."""
        learner, monitor = self._learner, self._learner.monitor_
        precision, error = learner.precision_gain or (None, 0.0)
        known = monitor.learned_then
        return Prospect(
            learned=learner.n_learned_ - known,
            gain=learner.missed_,
            items=len(self._view.now.directory),
            precision=precision,
            error=error,
            seconds=self._cost(),
            spare=self.policy.spare(*monitor.refresh_times, time.time()),
            known=known,
        )

    def _cost(self) -> float:
        """Return the seconds that a refresh would take, by those of the last one."""
        last, n_items = self._learner.monitor_.last_refresh, len(self._view.now.directory)
        seconds, n = (0.0, 0) if last is None else (float(last["seconds"]), int(last["items"]))
        if n >= MANY_ITEMS:
            return seconds / n * n_items
        model = self._view.now.model  # of few items, encoding is the least
        each = GUESSED_SECONDS * (0 if model is None else int(model.n_features_in_))
        return seconds + each * max(n_items - n, 0)

    def run_if_due(self) -> None:
        """Refresh, perhaps in the background; what was added is added, even if that fails."""
        if self.is_running:
            return
        if not self.is_due():
            self._come_back()
            return
        if self._background and self._view.now.model is not None:
            self._thread = threading.Thread(target=self._run_quietly, daemon=True)
            self._thread.start()
        else:
            self._run_quietly()

    def catch_up(self) -> None:
        """Refresh if that is worth it, as nothing more comes soon, whatever time it takes."""
        with self._journal.lock:
            is_worth_it = self._may_leave_model() and self.policy.is_worth_it(self._prospect())
        if is_worth_it and not self.is_running:
            self._run_quietly()

    def _may_leave_model(self) -> bool:
        """Whether there is a model that serves, and no wish to stay with it."""
        monitor, missed = self._learner.monitor_, self._learner.missed_
        # Not back to what was left, unless it has shown to be better since.
        return self._view.now.model is not None and not (monitor.is_reverted and missed <= 0)

    def _come_back(self) -> None:
        """In the background, look again when a refresh that only waits for its time has it."""
        with self._journal.lock:
            wait = self.policy.wait(self._prospect()) if self._may_leave_model() else None
        if wait is None or not self._background or (self._later and self._later.is_alive()):
            return
        self._later = threading.Timer(wait, self.run_if_due)
        self._later.daemon = True
        self._later.start()

    def _run_quietly(self) -> None:
        try:
            self.run(by_hand=False)
        except Exception as error:  # noqa: BLE001  raised by wait and close, said by status
            logger.warning("a refresh failed, and will be tried again: %s", error)
            self.error = error

    def wait(self) -> None:
        """Wait for a refresh that runs in the background; raise the error it met, if any."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        error, self.error = self.error, None
        if error is not None:
            raise error

    def stop(self) -> None:
        """Let a running refresh end, and others write."""
        if self._later is not None:
            self._later.cancel()
        with self._running, self._journal.lock:
            try:
                self._journal.finish(self._view.now.directory)
            finally:
                self._journal.release()

    def run(
        self,
        executor: Executor | None = None,
        progress: Progress = lambda *_: None,
        *,
        by_hand: bool = True,
        older: int | None = None,
    ) -> bool:
        """Refresh now, or go back to an ``older`` model; return whether the serving one changed."""
        journal, view = self._journal, self._view
        with self._running:
            with journal.changing("refresh" if older is None else "revert"):
                if older is None:
                    self._finish_learning(by_hand)
                start = time.monotonic()
                model = self._begin() if older is None else self._begin_revert(older)
                if model is None:
                    self.error = None
                    return False
                work = _Work(journal, model, partial(self._report, progress))
            backend = view.prepare(model.number, work.hasher.n_bits)
            work.encode(executor, view.address, view.options)
            # Workers have sent what they made to the backend; this checks it, before writers wait.
            work.fill(backend, view)
            with journal.changing("refresh"):
                work.fill(backend, view)
                self._finish(work, start)
            view.drop_replaced()
            with journal.changing("refresh"):
                journal.mend(view.now.directory)
            self.error = None
        return True

    def _report(self, progress: Progress, done: int) -> None:
        """Take note of the items encoded so far."""
        self._progress = done, max(done, len(self._view.now.directory))
        progress(*self._progress)

    def _finish_learning(self, by_hand: bool) -> None:
        """Let the learner forget what it should, learn what waits if by hand, and settle."""
        journal, learner, moment = self._journal, self._learner, self._view.now
        if journal.pending is not None:
            return
        waits = by_hand and (learner.n_waiting or learner.has_waiting_pairs)
        if learner.n_leaving or learner.lacks_rows or waits:
            twin = learner.copy()
            twin.forget_leaving()
            if by_hand:
                twin.learn_waiting(moment, journal.vectors)
                if twin.has_waiting_pairs:
                    pairs = read_pairs(journal, moment, twin.judged_to_, twin.n_judged_)
                    twin.learn_pairs(pairs, all_now=True)
            twin.refill(moment, journal.vectors)
            with journal.storing(learner, twin):
                pass
        if learner.is_ready:
            learner.hasher_.settle()

    def _begin(self) -> Model | None:
        """Return the model to change to: the one an interrupted refresh had, or the learner now."""
        journal, learner, moment = self._journal, self._learner, self._view.now
        if journal.pending is not None:
            return journal.read_model(journal.pending)
        if not learner.is_ready:
            if moment.model is not None:  # all that was learned is forgotten: it goes on serving
                return None
            raise InputError(
                "Collection.refresh: nothing has been learned yet; add labelled items first, or "
                "judge answers with feedback."
            )
        content = learner.hasher_.encoder().to_bytes()
        if moment.model is not None and content == moment.model.to_bytes():
            return None
        gain = None if moment.model is None else learner.gain
        return self._stored(content, learned=learner.n_learned_, gain=gain)

    def _begin_revert(self, older: int) -> Model | None:
        """Return a model like an older one, to change to; None if that is what serves.

        A refresh that was interrupted is given up, unless it was to the same.
        """
        journal, moment = self._journal, self._view.now
        if older not in [number for number, _ in journal.models()]:
            raise NotFoundError(
                f"Collection.revert: there is no model {older}; models() lists those there are."
            )
        model = journal.read_model(older)
        pending = None if journal.pending is None else journal.read_model(journal.pending)
        if pending is not None and pending.facts.get("reverted_to") == older:
            return pending
        serves = None if moment.model is None else moment.model.to_bytes()
        if pending is None and model.hasher().to_bytes() == serves:
            return None
        facts = {"learned": model.facts["learned"], "gain": None, "reverted_to": older}
        return self._stored(model.content, **facts)

    def _stored(self, content: bytes, **facts: Any) -> Model:
        """Store a model as the next to serve."""
        journal, moment = self._journal, self._view.now
        journal.settle()
        journal.join_fragments("items")
        number = max(moment.number, journal.last_model) + 1
        facts = {"made": time.time(), "items": len(moment.directory), **facts}
        model = Model(number, content, facts)
        journal.append_model(model)
        return model

    def _finish(self, work: "_Work", start: float) -> None:
        """Encode what is left, commit all, and change to it in memory."""
        journal, view, model = self._journal, self._view, work.model
        results, schema = work.encode_rest()
        rows = sum(result["rows"] for result in results.values())
        flips = np.sum([result["flips"] for result in results.values()], axis=0) / max(rows, 1)
        event = {
            "model": model.number,
            "time": time.time(),
            "learned": model.facts["learned"],
            "labelled": view.now.directory.n_labelled,
            "items": rows,
            "seconds": time.monotonic() - start,
            "gain": model.facts["gain"],
        }
        twin, older = self._learner.copy(), model.facts.get("reverted_to")
        is_other = bool((flips < 0).any())  # codes of another length: no bit is the same one
        flips = flips if model.number > 1 and rows and not is_other else None
        twin.served(event, flips, work.hasher.n_bits, older)
        with journal.storing(self._learner, twin, items=1):
            journal.commit_codes(model.number, code_bytes(work.hasher.n_bits), results, schema)
            view.advance()
        self.encoded_items += rows - work.n_resumed
        work.show()

    def status(self) -> dict[str, Any]:
        """Return how it stands with refreshes, as plain values."""
        learner, n_items, policy = self._learner, len(self._view.now.directory), self.policy
        running, prospect, is_due = self.is_running, self._prospect(), self.is_due()
        worth = learner.missed_ / (policy.price * n_items) if policy.price and n_items else None
        progress = dict(zip(("done", "total"), self._progress, strict=True))
        return {
            "policy": str(policy),
            "due": is_due,
            "reason": None if is_due else self._reason(prospect),
            "running": running,
            "progress": progress if running else None,
            "interrupted": self._journal.pending is not None,
            "gain": None if self._view.now.model is None else learner.gain,
            "precision_gain": prospect.precision,  # among ten neighbours
            "precision_error": None if prospect.precision is None else prospect.error,
            "missed": learner.missed_,
            "worth": worth,  # in parts of what it costs: from 1 on it is due
            "cost_items": n_items,
            "cost_seconds": prospect.seconds,
            "error": None if self.error is None else str(self.error),
        }

    def _reason(self, prospect: Prospect) -> str:
        """Say why no refresh is due."""
        if self._view.now.model is None:
            return "too little has been learned for a first model"
        if self._learner.monitor_.is_reverted and self._learner.missed_ <= 0:
            return "the model was reverted to, and the learner has not shown to be better since"
        return self.policy.reason(prospect) or "it is done by hand"


class _Work:
    """The fragments that one refresh encodes, and what is done of them."""

    def __init__(self, journal: Journal, model: Model, report: Callable[[int], None]) -> None:
        self._journal, self.model, self.hasher = journal, model, model.hasher()
        self._results, self._report = journal.read_encoded(model.number), report
        self._unnoted: dict[int, Result] = {}
        self._noted_at, self._shown = time.monotonic(), 0
        self.n_resumed = sum(result["rows"] for result in self._results.values())

    def encode(
        self, executor: Executor | None, backend: str | None, options: dict[str, Any] | None
    ) -> None:
        """Encode the fragments that are there, until few items are left."""
        journal = self._journal
        for _ in range(PASSES):
            with journal.changing("refresh"):
                version = journal.version("items")
                rows = {each.fragment_id: int(each.count_rows()) for each in self._left()}
            # The smallest is left for the end: encoding it there tells the new schema.
            fragments = sorted(rows, key=lambda fragment: -rows[fragment])[:-1]
            if sum(rows.values()) <= LEFT_FOR_THE_END or not fragments:
                break
            name = secrets.token_hex(8)
            place = journal.address, journal.options, backend, options
            work = Work(*place, version, self.model.number, name)
            try:
                encode_fragments(work, fragments, executor, self._done)
            finally:
                self._note()

    def encode_rest(self) -> tuple[dict[int, Result], Any]:
        """Encode the rest; return the results of all fragments, and the schema with new codes."""
        fragments, schema = self._journal.fragments(), None
        smallest = sorted(fragments, key=lambda each: each.count_rows())[:1]
        with self._journal.store.translate_errors("items"):
            for fragment in self._left() or smallest:
                result, schema = encode(fragment, self.model.number, self.hasher)
                self._results[fragment.fragment_id] = result
        return {each.fragment_id: self._results[each.fragment_id] for each in fragments}, schema

    def _left(self) -> list[Any]:
        """The fragments that have no result; another may have had their number before."""

        def first_file(fragment: dict[str, Any]) -> Any:
            return fragment["files"][0]["path"]

        done = {number: first_file(each["fragment"]) for number, each in self._results.items()}
        return [
            each
            for each in self._journal.fragments()
            if done.get(each.fragment_id) != first_file(each.metadata.to_json())
        ]

    def _done(self, fragment: int, result: Result) -> None:
        self._results[fragment] = self._unnoted[fragment] = result
        if time.monotonic() - self._noted_at > NOTE_SECONDS:
            self._note()
        self.show()

    def _note(self) -> None:
        """Store what is done, for the case that this refresh is interrupted."""
        if self._unnoted:
            with self._journal.changing("refresh"):
                self._journal.append_encoded(self.model.number, self._unnoted)
        self._unnoted, self._noted_at = {}, time.monotonic()

    def show(self) -> None:
        """Tell how far it is; items that are deleted meanwhile do not set it back."""
        done = sum(result["rows"] for result in self._results.values())
        self._shown = max(self._shown, done)
        self._report(self._shown)

    def fill(self, backend: Backend | None, view: View) -> None:
        """Let a backend elsewhere hold the new codes of all items, encoding what it lacks."""
        if backend is not None:
            backend.fill(view.keys(), self._encoded)

    def _encoded(self, keys: Keys | None) -> Pieces:
        journal = self._journal.another()  # others may write meanwhile
        for batch in journal.scan(keys, "vector"):
            yield self.hasher.transform(batch.vectors), batch.keys


def encode_fragments(
    work: Work,
    fragments: Iterable[int],
    executor: Executor | None,
    done: Callable[[int, Result], None],
) -> None:
    """Encode fragments, calling ``done`` with each as it is ready; by threads if by nobody else."""
    with _threads() if executor is None else nullcontext(executor) as used:
        tasks: dict[Future[Result], int] = {
            used.submit(encode_fragment, work, fragment): fragment for fragment in fragments
        }
        try:
            for task in as_completed(tasks):
                done(tasks[task], task.result())
        finally:
            for task in tasks:
                task.cancel()


@contextmanager
def _threads() -> Iterator[Executor]:
    """Threads of this process, and no longer what they have encoded with."""
    try:
        with ThreadPoolExecutor(get_threads(), "streamhash-refresh") as threads:
            yield threads
    finally:
        _Encoder.forget()


def encode_fragment(work: Work, fragment: int) -> Result:
    """Write the codes of one fragment's items by a model, as a new column; return what it is."""
    return _Encoder.of(work).encode(fragment)


class _Encoder:
    """Encodes fragments of a version of items with a model, which is read once for all of them."""

    _lock = ProcessLock()
    _last: "ClassVar[tuple[str, _Encoder] | None]" = None  # the last work's

    def __init__(self, work: Work) -> None:
        self._journal, self._number = Journal(work.address, work.storage_options), work.model
        self._hasher = self._journal.read_model(work.model).hasher()
        self._items = self._journal.dataset("items").checkout_version(work.version)
        self._send: Send | None = None
        if work.backend is not None:
            from streamhash.live.backends.milvus import Server

            server = Server(work.backend, work.backend_options)
            self._send = server.table(work.model, self._hasher.n_bits).put

    @classmethod
    def of(cls, work: Work) -> "_Encoder":
        """Return the encoder of some work; threads share it, and the next work has another."""
        with cls._lock:
            last = cls._last
            if last is None or last[0] != work.name:
                last = cls._last = work.name, cls(work)
            return last[1]

    @classmethod
    def forget(cls) -> None:
        """Keep none for later calls."""
        with cls._lock:
            cls._last = None

    def encode(self, fragment: int) -> Result:
        """Encode one fragment."""
        with self._journal.store.translate_errors("items"):
            part = self._items.get_fragment(fragment)
            return encode(part, self._number, self._hasher, self._send)[0]
