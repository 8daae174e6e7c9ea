"""A durable collection: learns from labelled items as they come, and is searched all the while."""

import json
import logging
import os
import shutil
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamhash.base import NotStartedError, OnlineHasher
from streamhash.codes import Codes, code_bytes
from streamhash.errors import (
    ConflictError,
    FileError,
    InputError,
    UnreachableError,
)
from streamhash.estimators import clone
from streamhash.hashers import METHODS
from streamhash.labels import ItemLabel, each_label
from streamhash.live.arrow import Batch, Keys, code_columns
from streamhash.live.calibration import NEIGHBOURS, tally
from streamhash.live.feedback import Feedback
from streamhash.live.fields import Column, Fields
from streamhash.live.filters import Filter
from streamhash.live.groups import Groups
from streamhash.live.journal import TRIES, Journal, Model
from streamhash.live.learner import LOOKED_AT, Learner, Progress, is_fitted
from streamhash.live.locks import ReaderLease
from streamhash.live.mapped import MappedArrays
from streamhash.live.refresh import Refresher
from streamhash.live.scoring import Scorer, nearest
from streamhash.live.search import PLAIN, SearchOptions
from streamhash.live.store import DURABILITY
from streamhash.live.validation import (
    METADATA_READ,
    Validation,
    check_takes_several,
    refuse_absent,
)
from streamhash.live.view import Answer, View
from streamhash.live.writer import Writer
from streamhash.live.writes import (
    Addition,
    Deletion,
    Description,
    Labelling,
    Update,
    Write,
    Written,
)
from streamhash.parameters import Choice, Whole, check_parameters
from streamhash.records import (
    History as History,
    Item as Item,
    Judgement as Judgement,
    Prediction as Prediction,
    SearchResult as SearchResult,
)
from streamhash.refresh import RefreshPolicy
from streamhash.search.directory import Listing
from streamhash.search.ids import LARGEST_ID, check_ids, check_once
from streamhash.search.index import check_k
from streamhash.storable import check_vectors
from streamhash.storage import whole_file

logger = logging.getLogger(__name__)

RETRIES = 5  # of a search whose model was replaced, and its codes dropped, before it was through
MOST_VOTES = 1000  # of a prediction
METADATA_KEPT = 100_000  # items whose metadata are remembered
READ_BY_KEY = 5000  # items, at most: of more, all that lie between are gone through

Result = TypeVar("Result")


class Contents(NamedTuple):
    """All items of a collection as they were at one moment."""

    model: int  # the number of the one that serves, 0 while there is none
    n_bits: int
    id_kind: str | None
    n_features: int | None
    vector_type: str
    several_labels: bool
    label_names: list[Any]  # that items have or had
    batches: Iterator[Batch]  # in the order of adding


class Collection:
    """Items that are learned from, stored and searched at once, never with codes of two models.

    Two models are at work. The *learner* moves with every labelled item. The *serving* model has
    made the codes of all items, and makes those of queries. ``refresh`` encodes all items with the
    learner and makes it the serving model, in one step that searches never see the middle of.

    What a call has stored when it returns is there after a crash or a power cut (see
    ``durability`` of ``create``). One process may write at a time,
    any number may read; any threads may share one object.

    Make one with ``create``, come back with ``open``, and ``close`` it or use ``with``.

    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import SDOH
    >>> from streamhash.live import Collection
    >>> X, y = load_digits(return_X_y=True)
    >>> folder = tempfile.TemporaryDirectory()
    >>> items = Collection.create(f"{folder.name}/digits", SDOH(32, random_state=0))
    >>> items.add(range(1000), X[:1000], y[:1000])
    1000
    >>> distances, ids = items.search(X[1500:1501], k=5)
    >>> labels = [item.label for item in items.get(ids[0])]
    >>> labels.count(y[1500]) >= 3
    True
    >>> items.close()
    >>> folder.cleanup()
    """

    # It is composed of a journal (what is stored), a view (what searches see) and a learner; the
    # last two follow the first. A change is stored, then made in memory; if it fails on the way,
    # memory is read anew, so that it is always what is stored.

    def __init__(
        self,
        journal: Journal,
        *,
        background: bool,
        backend_options: dict[str, Any] | None,
        mmap: bool | str | PathLike[str] = False,
    ) -> None:
        self._journal = journal
        try:
            mapped = _mapped(journal, mmap)
        except BaseException:
            journal.release()
            raise
        self._view = View(journal, backend_options, mapped)
        self._learner = Learner.__new__(Learner)  # it becomes what is stored
        self._refresher = Refresher(journal, self._view, self._learner, background=background)
        self._feedback = Feedback(journal, self._view, self._learner)
        self._checks = Validation(journal, self._view, self._learner)
        self._writer = Writer(journal, self._view, self._learner, self._feedback, self._checks)
        self._writing: Groups[Write, Written] = Groups(self._writer.write_each, self._look_after)
        self._metadata_journal: Journal | None = None  # what is found is read by
        self._metadata: dict[int, Any] = {}
        self._reading_metadata = threading.Lock()
        self._scorer = Scorer(self._stored_vectors)
        self._view.fields = Fields(self._view, self._metadata_read)
        journal.reload = self._load
        _open.add(self)
        try:
            self._load()
        except BaseException:
            journal.release()
            raise

    def forked(self) -> None:
        """Change nothing any more, in a child of this process; what is in memory can be searched.

        Locks may be held by threads that the child does not have, so they are made anew.
        """
        self._journal.forked()
        self._refresher.forked()
        self._writing.forked()
        self._reading_metadata, self._metadata_journal = threading.Lock(), None
        self._scorer.forked()
        self._view.fields.forked()

    @property
    def looking(self) -> threading.Lock:
        """Held while what is in memory changes: forks wait for it."""
        return self._view.looking

    # ---------------------------------------------------------------------- create, open, close

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        hasher: OnlineHasher,
        *,
        labels: str | None = None,
        vectors: str = "float32",
        refresh: str | int = "auto",
        forget_deleted: bool = True,
        reservoir_size: int = 1000,
        random_state: int | None = None,
        durability: str = "synced",
        background: bool = False,
        storage_options: dict[str, str] | None = None,
        backend: str | None = None,
        backend_options: dict[str, Any] | None = None,
        mmap: bool | str | PathLike[str] = False,
    ) -> Self:
        """Make an empty collection.

        Parameters
        ----------
        path : str or path
            A folder, or an address that Lance knows, such as ``s3://bucket/name``.
        hasher : OnlineHasher
            The method that learns; one that has learned before goes on from there, and serves.
        labels : "one", "several" or None
            Whether items have one label or several, if the method takes several; None: as the
            first labels that come, several if one of them is a list.
        vectors : "float32" or "float16"
            How vectors are stored; what is learned and encoded is what is stored.
        refresh : "auto", "auto=SHARE", "gain", "gain=BITS", "manual" or a number of items
            When to refresh by itself: when it pays (``BITS`` of information are what encoding an
            item anew is worth, 0.001 if not given), or every so many learned items. The first
            model serves as soon as there is one, in any case.
        forget_deleted : bool
            Forget what was learned from items that are deleted, replaced or labelled otherwise, if
            the method can (``hasher.can_forget``). No model made later knows of them; the one that
            serves does until the next refresh.
        reservoir_size : int
            Items in the sample that labelled items ask, to measure the gain.
        random_state : int or None
            Seed of the sample.
        durability : "synced" or "process"
            What a call has stored when it returns is there after a power cut, or, a little faster,
            after the end of the process only; in an object store the two are the same.
        background : bool
            Refresh in a thread of its own, so that ``add`` need not wait for it.
        storage_options : dict
            Passed on to Lance: credentials and the like.
        backend : str
            Where codes are searched, if not in memory: ``milvus://host:port/name?option=value``.
            The address is stored, so it holds no secret: ``token_env=NAME`` names the variable of
            the environment that does.
        backend_options : dict
            Passed on to pymilvus and not stored: ``token``, ``server_pem_path`` and the like.
        mmap : bool or path
            Have ids, keys, labels and codes in files that are mapped, not in memory: for more items
            than memory holds. They lie in this folder, or in the collection's own (True), have no
            name, and are gone with the process; it is not stored. See ``open``.
        """
        place = "Collection.create"
        if not isinstance(hasher, OnlineHasher):
            raise InputError(
                f"{place}: hasher={hasher!r} is not a hasher; pass one such as SDOH()."
            )
        check_parameters(
            place,
            {
                "labels": labels,
                "vectors": vectors,
                "forget_deleted": forget_deleted,
                "durability": durability,
            },
            {
                "labels": Choice(None, "one", "several"),
                "vectors": Choice("float32", "float16"),
                "forget_deleted": Choice(True, False),
                "durability": Choice(*DURABILITY),
            },
        )
        policy = RefreshPolicy.parse(refresh, place=place)
        hasher.check_parameters()
        learner = Learner(hasher, reservoir_size=reservoir_size, random_state=random_state)
        learner.start(several=_several(labels, hasher, place))
        settings = {
            "vectors": vectors,
            "refresh": str(policy),
            "forget_deleted": forget_deleted,
            "durability": durability,
        }
        if backend is not None:
            from streamhash.live.backends.milvus import Server

            Server(backend, backend_options, place=place).refuse_taken()
            settings["backend"] = backend
        model = None
        if learner.is_ready:  # it has learned before, and serves from the first moment
            facts = {"made": time.time(), "learned": 0, "items": 0, "gain": None}
            model = Model(1, learner.hasher_.encoder().to_bytes(), facts)
        journal = Journal(fspath(path), storage_options)
        journal.create(learner, settings, model)
        return cls(journal, background=background, backend_options=backend_options, mmap=mmap)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        read_only: bool = False,
        background: bool = False,
        storage_options: dict[str, str] | None = None,
        backend_options: dict[str, Any] | None = None,
        mmap: bool | str | PathLike[str] = False,
    ) -> Self:
        """Open a collection, to write (one process at a time) or to read only (any number).

        Parameters are those of ``create``. With ``mmap`` a process that was forked from this one
        cannot search: it would share what this one changes.
        """
        journal = Journal(fspath(path), storage_options)
        journal.open(read_only=read_only)
        return cls(journal, background=background, backend_options=backend_options, mmap=mmap)

    @staticmethod
    def is_at(path: str | PathLike[str]) -> bool:
        """Tell whether a folder of this machine holds a collection, be it damaged."""
        return Journal.is_at(Path(path))

    def close(self) -> None:
        """Wait for a running refresh, and let others write."""
        try:
            self.wait()
        finally:
            if not self._journal.is_forked:
                self._journal.stop_rewriting()
                if self._view.now.backend is not None:
                    self._view.now.backend.close()
            self._refresher.stop()

    def drop(self) -> None:
        """Close the collection, and delete all that it has stored, also on its server."""
        journal = self._journal
        folder, backend = journal.folder, self._view.now.backend
        if folder is None:
            raise InputError(
                f"Collection.drop: {journal.address} is no folder of this machine; delete it with "
                "the tools of its store."
            )
        self.wait()
        with journal.changing("drop", may_log=True):  # or refused, as any change
            if backend is not None:
                backend.drop()
        self.close()
        # Renamed first: what is deleted half-way is no collection any more.
        gone = folder.with_name(f".{folder.name}.dropped-{time.time_ns()}")
        folder.rename(gone)
        shutil.rmtree(gone)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _load(self) -> None:
        """Follow what is stored; as the writer, put right what a crash has left behind."""
        journal, view = self._journal, self._view
        anew, journal.is_stale = journal.is_stale, True
        learner, lease = journal.load()
        with lease:
            if anew:
                view.load()
            else:
                view.advance()
        self._learner.become(learner)
        journal.is_stale = False
        if not journal.read_only:
            journal.mend(view.now.directory)

    def _follow(self) -> None:
        """As a reader, see what the writer has stored meanwhile."""
        journal = self._journal
        self._view.refuse_forked()
        if journal.is_closed or journal.is_forked or not (journal.read_only or journal.is_stale):
            return
        with journal.lock:
            if not journal.is_stale and (not journal.read_only or journal.is_current):
                return
            for tries_left in reversed(range(TRIES)):
                try:
                    return self._load()
                except (OSError, ValueError):
                    # The writer may delete what is looked at between two looks: look again.
                    if not tries_left:
                        raise

    def _read(self, read: Callable[[], Result]) -> Result:
        """Read what is stored; as a reader, again in a newer version if the writer deletes it."""
        journal = self._journal
        for tries_left in reversed(range(TRIES)):
            self._follow()
            with journal.lock:
                try:
                    with nullcontext() if tries_left == TRIES - 1 else journal.lease():
                        return read()
                except InputError:
                    raise
                except (OSError, ValueError):
                    if not tries_left or not journal.read_only:
                        raise
        raise AssertionError("the last try returns or raises")

    # ---------------------------------------------------------------------------------- changes

    def add(
        self,
        ids: Any,
        X: Any,
        y: Any = None,
        *,
        metadata: Any = None,
        existing: str = "refuse",
    ) -> int:
        """Store items, and learn from those that have labels; return how many were stored.

        Parameters
        ----------
        ids : whole numbers from 0 up or strings, one an item; None numbers them on
        X : array (n, d)
        y : whole numbers or strings, one an item; None, also for single items: without a label
            Several labels of an item are a list; those of all items may be a 0/1 matrix.
        metadata : a dict or None an item, or a table of pandas, polars or Arrow with a row an item;
            see ``streamhash.storable`` for what it may hold
        existing : "refuse", "skip", "replace" or "update"
            What to do with ids that are there: refuse the call, leave out those items (so that a
            call can be repeated when its answer was lost), put the new ones in their place, or
            change what is given and leave labels and metadata that are not, as ``update`` does.
        """
        return self._writing.run(Addition(ids, X, y, metadata, existing)).items

    def write_each(self, writes: Sequence[Write]) -> list[Written | Exception]:
        """Write for several callers, as if one after the other, in as few commits as can be.

        Returns what came of each, or the error that its method would have raised; that of one is
        nothing to the others. See ``streamhash.live.writes`` for what there is to write.
        """
        done = self._writer.write_each(writes)
        self._look_after()
        return done

    def _look_after(self) -> None:
        """Refresh if that is due, and tidy up."""
        self._refresher.run_if_due()
        self._tidy()

    def check(self, ids: Any, X: Any, y: Any = None, **options: Any) -> None:
        """Refuse what ``add`` would refuse, and store nothing: before adding piece by piece."""
        self._writer.check(Addition(ids, X, y, **options))

    def check_labels(self, y: Any, n: int, *, place: str) -> list[ItemLabel]:
        """Return labels as the items here have them: one each, or tuples of several."""
        return self._checks.labels(y, n, place=place)

    def label(self, ids: Any, y: Any) -> None:
        """Give items that are there (other) labels, and learn from them."""
        self._writing.run(Labelling(ids, y))

    def update(self, ids: Any, X: Any = None, y: Any = None, *, metadata: Any = None) -> None:
        """Change items that are there: what is given; the rest of each stays as it is.

        Vectors and labels are put in the place of the old ones, and learned; of metadata, the
        fields that are given, while others stay. All of a call is stored at once.

        Parameters
        ----------
        ids : whole numbers or strings, of items that are there
        X, y, metadata
            As those of ``add``; what is None stays, also for single items.
        """
        self._writing.run(Update(ids, X, y, metadata))

    def set_metadata(self, ids: Any, metadata: Any) -> None:
        """Give items that are there other metadata, as ``add`` takes them; nothing is learned.

        They are stored anew, as if replaced by themselves: in the order of adding they come last.
        """
        self._writing.run(Description(ids, metadata))

    def delete(self, ids: Any = None, *, where: Any = None) -> None:
        """Delete items, by their ids or by a filter, and forget what was learned from them.

        What was learned is forgotten if the method can. Those that wait to be learned are not. See
        ``forget_deleted`` of ``create``.
        """
        if (ids is None) == (where is None):
            raise InputError("Collection.delete: pass either ids or where.")
        if where is None:
            self._writing.run(Deletion(ids))
            return
        with self._view.fields.lock, self._journal.changing("delete", may_log=True):
            (done,) = self._writer.write_each([Deletion(self.find(where))])
        if isinstance(done, Exception):
            raise done
        self._look_after()

    # --------------------------------------------------------------------------------- feedback

    def feedback(
        self, query: Any = None, id: Any = None, good: Any = True, *, query_id: Any = None
    ) -> int:
        """Store judged answers, and learn from them; return how many.

        Judgements are learned when there are as many as a stage of the method has pairs of rows, or
        before the next ``refresh`` by hand; see ``status()["feedback"]``. One that was given in
        error is put right by the opposite one. What was judged of an item is forgotten with it.

        Parameters
        ----------
        query : array (d,) or (n, d)
            What was asked: one vector for all judgements, or one each.
        id : an id, or several
            The items that were judged as answers.
        good : bool, or several
            Whether they are good answers.
        query_id : an id, or several
            The query, in place of ``query``, if it is an item itself.
        """
        n = self._feedback.give(query, query_id, id, good)
        if n:
            self._look_after()
        return n

    def check_feedback(
        self, query: Any = None, id: Any = None, good: Any = True, *, query_id: Any = None
    ) -> None:
        """Refuse what ``feedback`` would refuse, and store nothing: before storing a whole file."""
        self._feedback.check(query, query_id, id, good)

    def judgements(self) -> list[Judgement]:
        """Return the judged answers of items that are there, in the order in which they came."""
        return self._read(self._feedback.judgements)

    # ------------------------------------------------------------------------------------ finding

    def _find(self, ids: Any, place: str) -> tuple[Keys, NDArray[Any]]:
        """Return the keys of items that are there, and their checked ids."""
        names = check_ids(ids, place=place)
        check_once(names, place=place)
        keys = self._view.now.directory.find(names)
        return refuse_absent(keys, names, place), names

    def _may_join(self) -> bool:
        """Whether fragments may be joined: a refresh has encoded them as they are."""
        return not (self._refresher.is_running or self._journal.pending is not None)

    def _tidy(self) -> None:
        with self._journal.lock:  # a refresh cannot begin meanwhile
            if not self._refresher.is_running:
                self._journal.tidy(self._view.now.directory, self._may_join)

    # ---------------------------------------------------------------------------------- refresh

    def refresh(
        self, *, executor: Executor | None = None, progress: Progress = lambda *_: None
    ) -> bool:
        """Encode all items with what has been learned, and serve that; return if it changed.

        Searches and changes go on meanwhile. A refresh that was interrupted goes on where it was.

        Parameters
        ----------
        executor : any concurrent.futures.Executor
            What encodes, piece by piece. Its workers read the items themselves, by their address.
        progress : function of two numbers
            Called with the items encoded so far and their number in all.
        """
        return self._refresher.run(executor, progress)

    def revert(
        self,
        model: int,
        *,
        executor: Executor | None = None,
        progress: Progress = lambda *_: None,
    ) -> bool:
        """Serve an older model again, by its number in ``models``; return if that is a change.

        It is a refresh to codes of the older model, which comes back under a new number; a refresh
        that was interrupted is given up for it. The learner stays as it is, and the collection does
        not refresh by itself until labelled items that came since have shown that the learner is
        better. One that learned what it should not have is put right by ``rebuild``.

        Parameters
        ----------
        model : int
        executor, progress
            As those of ``refresh``.
        """
        check_parameters("Collection.revert", {"model": model}, {"model": Whole(1)})
        return self._refresher.run(executor, progress, older=model)

    def rebuild(
        self,
        method: OnlineHasher | str | None = None,
        n_bits: int | None = None,
        *,
        executor: Executor | None = None,
        progress: Progress = lambda *_: None,
    ) -> bool:
        """Learn anew from the stored items alone, in the order in which they came, and refresh.

        For another method, settings or length of codes, and for a learner that learned what it
        should not have. Searches go on with the model that serves, until all items have their new
        codes; changes wait while items are learned. Returns whether another model serves now.

        Parameters
        ----------
        method : OnlineHasher or str
            What learns from now on: a hasher, or the name of a method, with its defaults and the
            seed of now; None: the same method, as new.
        n_bits : int
            Length of the codes; None: as it is, or as the hasher has it.
        executor, progress
            As those of ``refresh``; progress is told of items learned first, then of items encoded.
        """
        journal, learner = self._journal, self._learner
        hasher = _rebuilt(self.hasher, method, n_bits)
        if learner.several_:
            check_takes_several(hasher, "Collection.rebuild")
        with journal.lock:
            is_pending = journal.pending is not None
        if is_pending:
            self.refresh(executor=executor)  # that was interrupted
        with journal.changing("rebuild"):
            twin = learner.relearned(
                hasher, self._view.now, journal.vectors, self._feedback.pairs, progress
            )
            if not twin.is_ready and not twin.n_waiting and self._view.now.model is not None:
                raise InputError(
                    "Collection.rebuild: no stored item has a label to learn from; label some."
                )
            with journal.storing(learner, twin):
                pass
        return self.refresh(executor=executor, progress=progress)

    def wait(self) -> None:
        """Wait for a refresh that runs in the background; raise the error it met, if any."""
        self._refresher.wait()

    def catch_up(self) -> None:
        """Refresh if precision may gain by it, without waiting for its share of the time.

        For the end of a file or a stream: under ``refresh="auto"`` a refresh may be put off, and
        what a stage has gained is known only when more items come.
        """
        self._refresher.catch_up()

    def is_refresh_due(self) -> bool:
        """Whether the collection would refresh by itself now."""
        return self._refresher.is_due()

    @property
    def encoded_items(self) -> int:
        """How many items were encoded by refreshes of this object, all together."""
        return self._refresher.encoded_items

    def gain(self) -> float | None:
        """Return by how many bits of information the learner beat the serving model.

        Measured on the last labelled items, before they were learned; None while no model serves,
        or none came since.
        """
        return None if self._view.now.model is None else self._learner.gain

    # ---------------------------------------------------------------------------- what it holds

    def __len__(self) -> int:
        self._follow()
        return len(self._view)

    def __contains__(self, item: object) -> bool:
        self._follow()
        return item in self._view

    @property
    def address(self) -> str:
        """Where it is stored: a folder, or an address that Lance knows."""
        return self._journal.address

    @property
    def read_only(self) -> bool:
        """Whether it cannot be changed from here."""
        return self._journal.read_only

    @property
    def ids(self) -> list[Any]:
        """The ids, in the order of adding."""
        self._follow()
        return self._view.ids()

    @property
    def id_kind(self) -> str | None:
        """What ids are, "whole numbers" or "strings"; None before the first item."""
        self._follow()
        with self._journal.lock:
            return self._journal.id_kind

    @property
    def vector_type(self) -> str:
        """How vectors are stored: "float32" or "float16"."""
        return self._journal.vector_type

    @property
    def forget_deleted(self) -> bool:
        """Whether what was learned from items is forgotten when they are deleted."""
        return self._journal.forget_deleted

    @property
    def hasher(self) -> OnlineHasher:
        """The method that learns, as new; ``model`` is what it has learned."""
        new: OnlineHasher = clone(self._learner.hasher)
        return new

    @property
    def n_bits(self) -> int:
        """Length of the codes."""
        self._follow()
        model = self._view.now.model
        return int(self._learner.hasher.n_bits if model is None else model.n_bits)

    @property
    def n_features(self) -> int | None:
        """Length of the vectors, None while it is not known."""
        return self._view.n_features

    @property
    def model_number(self) -> int:
        """The number of the model that serves; 0 while there is none."""
        self._follow()
        return self._view.now.number

    # -------------------------------------------------------------------------------- searching

    def search(
        self,
        X: Any,
        k: int = 10,
        *,
        where: Any = None,
        rescore: int | None = None,
        by: str = "vectors",
        metric: str = "cosine",
        query: str = "code",
        min_probability: float | None = None,
        radius: int | None = None,
    ) -> SearchResult:
        """Find the ``k`` nearest items of each vector: distances and ids, both (n, k).

        Among equal distances the item added first comes first. Where there are fewer than ``k``
        items, rows end in distance 2147483647 and id -1 (None among strings). What is returned
        is these two, and has more by name: see ``SearchResult``. Options may be combined.

        Before there is a model, all vectors are read and compared as they are, which is exact and
        takes its time: ``model`` is 0, and distances are 1 - cosine (of ``metric``, if that is
        another), infinite where there are no more items.

        Parameters
        ----------
        where : str or dict
            A filter: the nearest of the items that it is true of.
        rescore : int
            Take so many candidates for each answer, the nearest by code, and score them exactly;
            the best come first. What has no score comes last.
        by : "vectors" or "projections"
            What is scored: the stored vectors, or what their bits are the signs of.
        metric : "cosine", "dot" or "euclidean"
            How it is; the distances of the last are best when small.
        query : "code" or "real"
            Compare the query's bits with those of the items, or its projections: an item is as far
            away as the sum of their sizes over the bits that differ.
        min_probability : float
            Leave out what has the query's label with a smaller probability; rows end earlier then.
        radius : int
            Leave out what is farther away, in bits; rows end earlier then.
        """
        options = self.search_options(
            where=where,
            rescore=rescore,
            by=by,
            metric=metric,
            query=query,
            min_probability=min_probability,
            radius=radius,
        )
        rows = check_vectors(X, self.n_features, "float32", place="Collection.search")
        check_k(k, len(rows), len(self), place="Collection.search")
        if options.rescore is not None:
            place = f"Collection.search: rescore={options.rescore}"
            check_k(k * options.rescore, len(rows), len(self), place=place)
        answer = self.answer(rows, k, options)
        return answer.at_least(min_probability, place="Collection.search").result()

    def search_options(self, *, place: str = "Collection.search", **options: Any) -> SearchOptions:
        """Return the options of ``search``, checked."""
        self._follow()
        return SearchOptions.checked(place, **options) if options else PLAIN

    def answer(self, rows: NDArray[np.float32], k: int, options: SearchOptions = PLAIN) -> Answer:
        """Search for rows that ``check_vectors`` returned; return all that was found of them."""
        self._follow()
        if self._view.now.model is None:
            found = self._answer_by_vectors(rows, k, options)
            if found is not None:
                return found
        for _ in range(RETRIES):
            number = self._view.now.number
            try:
                found = self._answer(rows, k, options)
            except UnreachableError:
                self._follow()
                # If another model serves meanwhile, the codes of the one before may be gone.
                if self._view.now.number == number:
                    raise
                continue
            if found is not None:
                return found
            self._follow()
        with self._view.fields.lock, self._journal.lock:  # now nobody changes anything
            found = self._answer(rows, k, options)
        if found is None:
            raise ConflictError(
                "Collection.search: items are deleted faster than their vectors can be read; try "
                "again."
            )
        return found

    def _answer(self, rows: NDArray[np.float32], k: int, options: SearchOptions) -> Answer | None:
        """Search once; None if what was found has been deleted, or another model serves."""
        found = self._view.answer(rows, k * (options.rescore or 1), options)
        found = found.within(options.radius)._replace(calibration=self._learner.calibration_)
        if options.rescore is None:
            return found
        moment = self._view.now
        if moment.number != found.model or moment.model is None:
            return None
        return self._scorer.rescore(found, rows, moment.model, k, options)

    def _answer_by_vectors(
        self, rows: NDArray[np.float32], k: int, options: SearchOptions
    ) -> Answer | None:
        """Search while there is no model, by all vectors; None if there is one meanwhile."""
        if options.query == "real" or options.by == "projections" or options.radius is not None:
            self._serving("search")

        some = None if options.where is None else self._view.fields.select(options.where).keys

        def read() -> Answer | None:
            moment = self._view.now
            if moment.model is not None:
                return None
            keys = moment.directory.keys if some is None else some[moment.directory.has(some)]
            items = self._journal.scan(keys, "vector") if len(keys) else ()
            scores, found = nearest(rows, items, k, options.metric)
            distances = scores if options.metric == "euclidean" else 1 - scores
            distances = np.where(np.isnan(scores), np.float32(1), distances)  # no direction
            distances = np.where(found < 0, np.float32(np.inf), distances)
            codes = np.zeros((len(rows), code_bytes(self.n_bits)), np.uint8)
            return Answer(0, codes, distances, found, moment.listing, scores)

        return self._read(read)

    @property
    def searches_wait(self) -> bool:
        """Whether a plain search may have to wait: for a server, or to read what is stored."""
        journal, backend = self._journal, self._view.now.backend
        return journal.read_only or journal.is_stale or backend is None or backend.is_shared

    def predict(self, X: Any, k: int = NEIGHBOURS) -> Prediction:
        """Predict the label of each vector by a vote of its ``k`` nearest labelled items.

        Each votes with the probability that it has the vector's label. What the vote says is made
        into a probability by what labelled items have found before they were learned. That is
        measured for votes of ten; those of other numbers are taken to be alike.
        """
        place = "Collection.predict"
        check_parameters(place, {"k": k}, {"k": Whole(1, MOST_VOTES)})
        self._follow()
        self._serving("predict")
        rows = check_vectors(X, self.n_features, "float32", place=place)
        check_k(LOOKED_AT * k // NEIGHBOURS, len(rows), len(self), place=place)
        answer = self.answer(rows, min(LOOKED_AT * k // NEIGHBOURS, max(len(self), 1)))
        known, ballots = answer.probabilities, []
        for i, labels in enumerate(answer.labels()):
            places = [j for j, label in enumerate(labels) if label is not None][:k]
            weights = np.ones(len(places)) if known is None else known[i, places]
            ballots.append(tally([each_label(labels[j]) for j in places], weights))
        votes = self._learner.calibration_.predictions(answer.model, ballots)
        if self._learner.several_:
            kept = [[each for i, each in enumerate(row) if not i or each[1] > 0.5] for row in votes]
            names, chances = ([tuple(each[j] for each in row) for row in kept] for j in (0, 1))
            return Prediction(names, chances)
        best = [row[0] if row else (None, np.nan) for row in votes]
        return Prediction([label for label, _ in best], np.array([p for _, p in best]))

    def encode(self, X: Any) -> Codes:
        """Return the codes of vectors by the model that serves."""
        self._follow()
        model = self._serving("encode")
        rows = check_vectors(X, self.n_features, "float32", place="Collection.encode")
        return model.transform(rows)

    def _serving(self, verb: str) -> OnlineHasher:
        """Return the model that serves."""
        model, learner = self._view.now.model, self._learner
        if model is None:
            needed = max(learner.hasher.batch_size - learner.n_waiting, 0)
            raise NotStartedError(
                f"Collection.{verb}: no model has been learned yet; add {needed} more "
                f"{'labelled ' if learner.hasher.needs_labels else ''}items, or call refresh to "
                f"learn from the {learner.n_waiting} that wait."
            )
        return model

    # ---------------------------------------------------------------------------------- reading

    def get(self, ids: Any) -> list[Item]:
        """Return items by their ids, in that order."""
        return self._read(partial(self._get, ids))

    def _get(self, ids: Any) -> list[Item]:
        keys, names = self._find(ids, "Collection.get")
        if len(keys) == 0:
            return []
        batch = self._journal.items(keys, codes=self._view.now.number)
        labels = self._view.now.listing.label_names_of(keys)
        codes = [None] * len(keys) if batch.codes is None else batch.codes
        rows = zip(names.tolist(), batch.vectors, labels, batch.metadata, codes, strict=True)
        return [Item(*row) for row in rows]

    def labels(self, ids: Any) -> list[Any]:
        """Return the labels of ids, from memory; None where there is no label, or no item.

        Where items have several, they are tuples.
        """
        self._follow()
        return self._view.labels(check_ids(ids, place="Collection.labels").tolist())

    def label_names(self) -> list[Any]:
        """Return the labels that items have or had."""
        self._follow()
        return self._view.label_names()

    def vectors_of(self, ids: Any) -> tuple[Keys, NDArray[np.float32]]:
        """Return the keys and the vectors of items by their ids, in that order."""

        def read() -> tuple[Keys, NDArray[np.float32]]:
            keys, _ = self._find(ids, "search")
            return keys, self._journal.vectors(keys)

        return self._read(read)

    def sample(self, choose: Callable[[Keys], Keys]) -> tuple[Keys, NDArray[np.float32], Listing]:
        """Return keys chosen among all, their vectors, and the listing that they belong to."""

        def read() -> tuple[Keys, NDArray[np.float32], Listing]:
            keys = choose(self._view.now.directory.keys)
            return keys, self._journal.vectors(keys), self._view.now.listing

        return self._read(read)

    def find(self, where: Any) -> list[Any]:
        """Return the ids of the items that a filter is true of, in the order of adding."""
        listing, keys = self._matching(where)
        return [*listing.ids_of(keys).tolist()]

    def count(self, where: Any = None) -> int:
        """Return how many items there are, or how many a filter is true of."""
        return len(self) if where is None else len(self._matching(where)[1])

    def _matching(self, where: Any) -> tuple[Listing, Keys]:
        """Return the keys of the items that a filter is true of, and their listing."""
        self._follow()
        found = self._view.fields.select(Filter.parse(where))
        return found.moment.listing, found.keys[self._view.has(found.keys)]

    def list_items(
        self,
        offset: int,
        limit: int,
        *,
        newest: bool = False,
        where: Any = None,
        sort: str | None = None,
        descending: bool = False,
    ) -> tuple[int, Keys, list[Any], list[Any]]:
        """Return how many items there are, and the keys, ids and labels of some.

        They are in the order of adding, or of a field: ``id``, ``label`` or one of the metadata.
        """
        if where is not None:
            listing, keys = self._matching(where)
        else:
            self._follow()
            with self._journal.lock:
                keys, listing = self._view.now.directory.keys, self._view.now.listing
        if sort is not None:
            keys = self._sorted(sort, keys, listing, descending)
        total, keys = len(keys), (keys[::-1] if newest else keys)[offset : offset + limit]
        return total, keys, listing.ids_of(keys).tolist(), listing.label_names_of(keys)

    def _sorted(self, name: str, keys: Keys, listing: Listing, descending: bool) -> Keys:
        """Return keys in the order of a field of their items."""
        field = next(Filter.parse(f"{name} is not null", place="sort").conditions()).field
        if field not in (("id",), ("label",), ("labels",)):
            keys = self._view.fields.sort(field, keys, descending=descending)
            return keys[listing.holds(keys)]
        column = Column(len(keys))
        of_labels = listing.label_names_of(keys)
        values = listing.ids_of(keys).tolist() if field == ("id",) else of_labels
        column.put(np.arange(len(keys)), [_comparable(value) for value in values])
        return keys[column.order(np.arange(len(keys)), descending=descending)]

    def count_labels(self) -> dict[Any, int]:
        """Return how many items have each label, and under None how many have none."""
        self._follow()
        with self._journal.lock:
            keys, listing = self._view.now.directory.keys, self._view.now.listing
        numbers, counts = np.unique(listing.labels_of(keys), return_counts=True)
        found: dict[Any, int] = {}
        for number, n in zip(numbers.tolist(), counts.tolist(), strict=True):
            for label in [None] if number < 0 else each_label(listing.names[number]):
                found[label] = found.get(label, 0) + n
        return found

    def metadata(self, keys: Keys) -> dict[int, Any]:
        """Return metadata by the keys of an answer, without waiting for those who write.

        A key's metadata never change, so what was read once is kept. What is read by may be older
        than the collection, and is opened anew when a key is not found.
        """
        found = self.known_metadata(keys)
        if found is not None:
            return found
        wanted, known = set(keys.ravel().tolist()) - {-1}, self._metadata
        missing = np.array([key for key in wanted if key not in known], np.int64)
        with self._reading_metadata:
            if len(known) + len(missing) > METADATA_KEPT:
                known = self._metadata = {key: known[key] for key in wanted if key in known}
            batch = self._read_aside(missing, partial(Journal.items, vectors=False))
            known.update(zip(batch.keys.tolist(), batch.metadata, strict=True))
        return {key: known.get(key) for key in wanted}

    def known_metadata(self, keys: Keys) -> dict[int, Any] | None:
        """Return what ``metadata`` would, if nothing has to be read for it; else None."""
        known = self._metadata
        try:
            return {key: known[key] for key in keys.ravel().tolist() if key >= 0}
        except KeyError:
            return None

    def _stored_vectors(self, keys: Keys) -> Batch:
        with self._reading_metadata:
            return self._read_aside(keys, Journal.stored_vectors)

    def _read_aside(self, keys: Keys, read: Callable[[Journal, Keys], Batch]) -> Batch:
        """Read what keys have for ever, in the version opened last, or else in a newer one."""
        for tries_left in (3, 2, 1, 0):
            journal = self._metadata_journal
            try:
                if tries_left < 3 or journal is None:
                    journal = self._metadata_journal = self._journal.another()
                with journal.lease() if tries_left < 2 else nullcontext():
                    found = read(journal, keys)
            except (OSError, ValueError):  # its files were deleted: it was too old
                if not tries_left:
                    raise
                continue
            if len(found.keys) == len(keys) or tries_left < 3:
                break
        return found

    @contextmanager
    def _metadata_read(self, wanted: Callable[[], Keys]) -> Iterator[Iterator[Batch]]:
        """Give the metadata of the items whose keys a function returns while nothing changes."""
        journal = self._journal

        def take() -> tuple[ReaderLease, Iterator[Batch]]:
            lease = journal.lease()
            try:
                keys = wanted()
                if not 0 < len(keys) <= READ_BY_KEY:
                    return lease, journal.scan(keys, "metadata", size=METADATA_READ)
                return lease, iter([journal.items(keys, vectors=False)])
            except BaseException:
                lease.release()
                raise

        def batches() -> Iterator[Batch]:
            for part in parts:
                lease.renew()
                yield part

        lease, parts = self._read(take)
        with lease:
            yield batches()

    def scan(self, *, vectors: bool = True, size: int = 8192, where: Any = None) -> Iterator[Batch]:
        """Go through all items, or those a filter is true of, about ``size`` at a time, in order.

        It sees the moment of its first batch, and no change after it. The writer keeps what it has
        still to read, as long as the next batch is asked for within ten minutes.
        """
        check_parameters("Collection.scan", {"size": size}, {"size": Whole(1, 2**31)})
        self._follow()
        return self._scan(vectors, size, None if where is None else Filter.parse(where))

    def _scan(self, vectors: bool, size: int, where: Filter | None) -> Iterator[Batch]:
        with self.contents(vectors=vectors, size=size, where=where) as contents:
            yield from contents.batches

    @contextmanager
    def contents(self, *, vectors: bool, size: int = 8192, where: Any = None) -> Iterator[Contents]:
        """Give all items, or those a filter is true of, as they are now, for the block's length."""
        condition = None if where is None else Filter.parse(where)

        def take() -> tuple[ReaderLease, Contents]:
            lease = self._journal.lease()
            try:
                return lease, self._contents(lease, vectors, size, condition)
            except BaseException:
                lease.release()
                raise

        with nullcontext() if condition is None else self._view.fields.lock:
            lease, contents = self._read(take)
        with lease:
            yield contents

    def _contents(
        self, lease: ReaderLease, vectors: bool, size: int, where: Filter | None
    ) -> Contents:
        journal, moment = self._journal, self._view.now
        keys, listing = moment.directory.keys, moment.listing
        if where is not None:
            keys = keys[self._view.fields.select(where).holds(keys)]
        labels, names = listing.labels_of(keys), [*listing.names, None]
        columns = ["id", "metadata", *["vector"][:vectors], *code_columns(moment.number)]
        parts = journal.scan(keys, *columns, size=size)

        def batches() -> Iterator[Batch]:
            try:
                for part in parts:
                    lease.renew()
                    numbers = labels[np.searchsorted(keys, part.keys)].tolist()
                    yield part._replace(labels=[names[number] for number in numbers])
            except (OSError, ValueError) as error:
                raise FileError(
                    f"{journal.uri('items')}: cannot be read as it was when this began ({error}); "
                    "begin again, and take each batch within ten minutes."
                ) from error

        return Contents(
            moment.number,
            self.n_bits,
            journal.id_kind,
            journal.n_features,
            self.vector_type,
            self._learner.several_ is True,
            [*moment.directory.classes],
            batches(),
        )

    def export(self, path: str | PathLike[str], *, vectors: bool = False, where: Any = None) -> int:
        """Write all items, or those a filter is true of, to a file for other programs; count them.

        The ending of ``path`` says what is written:

        - ``.parquet``: a row an item with ``id``, ``label`` (of several a list), ``metadata``
          (JSON), ``code`` and, if wanted, ``vector``; piece by piece, in bounded memory.
        - ``.npz``: arrays ``ids``, ``y`` (labels), ``codes`` and, if wanted, ``X``; several labels
          are a 0/1 matrix, and ``classes`` the names of its columns.
        - ``.faiss``: codes and ids as a ``faiss.IndexBinaryIDMap2``. Ids that are strings are
          numbered from 0, and listed in that order in ``path`` with ``.ids.json`` at its end.
        - ``milvus://host:port/name``: codes, and their places in the order of ``ids``, to a server.
        """
        from streamhash.live.export import export

        return export(self, path, vectors=vectors, where=where)

    def export_feedback(self, path: str | PathLike[str]) -> int:
        """Write the judged answers to a file of JSON lines; return how many.

        A line has ``id``, ``good`` and either ``query_id`` or ``query``, a vector;
        ``streamhash.live.feedback_from`` reads it.
        """
        judged = self.judgements()
        with whole_file(Path(path)) as temporary, temporary.open("w", encoding="utf-8") as file:
            for each in judged:
                asked = (
                    {"query_id": each.query_id}
                    if each.query is None
                    else {"query": each.query.tolist()}
                )
                line = {"id": each.id, **asked, "good": each.good}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        return len(judged)

    def models(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the number and the facts of every model that serves or has served."""
        return self._read(self._journal.models)

    def model(self, number: int | None = None) -> OnlineHasher:
        """Return the model that serves, or another by its number."""
        self._follow()
        if number is None or number == self._view.now.number:
            return self._serving("model")
        check_parameters("Collection.model", {"number": number}, {"number": Whole(0, LARGEST_ID)})
        return self._read(partial(self._journal.read_model, number)).hasher()

    def history(self) -> History:
        """Return the refreshes, the alarms of drift, and quality over time."""
        self._follow()
        monitor = self._learner.monitor_
        return History(monitor.refreshes, monitor.drifts_, monitor.series())

    def status(self) -> dict[str, Any]:
        """Return how the collection does, as plain values."""
        self._follow()
        fields = self._view.fields.types()
        with self._journal.lock:
            moment, learner, journal = self._view.now, self._learner, self._journal
            monitor = learner.monitor_
            last, drifts, flips = monitor.last_refresh, monitor.drifts_, monitor.flips_
            return {
                "address": journal.address,
                "items": len(moment.directory),
                "labelled": moment.directory.n_labelled,
                "classes": moment.directory.n_classes,
                "labels": {None: None, False: "one", True: "several"}[learner.several_],
                "bits": self.n_bits,
                "features": self.n_features,
                "vectors": self.vector_type,
                "fields": fields,
                "disk_bytes": journal.disk_bytes(),
                "log_bytes": journal.log_bytes,
                "version": journal.version("items"),
                "learner": {
                    "method": type(learner.hasher).__name__,
                    "learns_pairs": bool(learner.hasher.learns_pairs),
                    "learned": learner.n_learned_ - learner.n_pairs_,
                    "waiting": learner.n_waiting,
                    "leaving": learner.n_leaving,
                    "clipped": learner.n_clipped_,
                    "left_out": learner.n_left_out_,
                },
                "feedback": self._feedback.status(),
                "serving": {
                    "model": moment.number,
                    "learned": None if last is None else last["learned"],
                    "since": None if last is None else last["time"],
                    "reverted_to": None if last is None else last["reverted_to"],
                },
                "backend": self._view.status(),
                "refresh": self._refresher.status(),
                "quality": {
                    "precision": None if np.isnan(monitor.recent_) else monitor.recent_,
                    "answers": monitor.n_answers_,
                    "drifts": len(drifts),
                    "last_drift": drifts[-1] if drifts else None,
                    "reliability": learner.calibration_.reliability(),
                },
                "codes": {
                    "ones": None if moment.backend is None else moment.backend.share_of_ones(),
                    "flips": None if flips is None else np.round(flips, 4).tolist(),
                },
            }


# ------------------------------------------------------------------------------- what comes in


def _comparable(value: Any) -> Any:
    """Return a label as it is sorted by: several by their words."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else value


def _mapped(journal: Journal, mmap: bool | str | PathLike[str]) -> MappedArrays | None:
    """Return what makes columns in files, if that is wanted."""
    if mmap is False:
        return None
    folder = journal.folder if mmap is True else mmap
    if folder is None:
        raise InputError(
            f"{journal.address}: is no folder of this machine to map columns in; pass a folder as "
            "mmap."
        )
    if not isinstance(folder, str | PathLike) or not Path(folder).is_dir():
        raise InputError(f"Collection.open: mmap={mmap!r} is no folder; pass one, True or False.")
    return MappedArrays(Path(folder))


def _rebuilt(
    before: OnlineHasher, method: OnlineHasher | str | None, n_bits: int | None
) -> OnlineHasher:
    """Return the hasher that a collection is to learn with from now on."""
    place = "Collection.rebuild"
    if isinstance(method, str):
        if method not in METHODS:
            raise InputError(f"{place}: method={method!r} is none of {', '.join(METHODS)}.")
        seed = before.get_params().get("random_state")
        given = {"n_bits": before.n_bits, "random_state": seed}
        hasher = METHODS[method]()
        hasher.set_params(**{name: v for name, v in given.items() if name in hasher.get_params()})
    else:
        hasher = before if method is None else method
    if not isinstance(hasher, OnlineHasher):
        raise InputError(
            f"{place}: method={method!r} is no hasher; pass one, SDOH(64) say, or a method's name."
        )
    if n_bits is not None:
        hasher = clone(hasher).set_params(n_bits=n_bits)
    hasher.check_parameters()
    return hasher


def _several(labels: str | None, hasher: OnlineHasher, place: str) -> bool | None:
    """Tell if items are to have several labels; None if that is not known yet."""
    knows_labels = hasher.needs_labels and is_fitted(hasher)
    if labels != "several":
        return False if labels == "one" or knows_labels else None
    check_takes_several(hasher, place)
    if knows_labels:
        raise InputError(
            f'{place}: labels="several", and this {type(hasher).__name__} has learned before, from '
            "classes without names; pass a new one, and add the items it has learned."
        )
    return True


# ------------------------------------------------------------------------------------------ forks

_open: "weakref.WeakSet[Collection]" = weakref.WeakSet()  # collections of this process
_forking: dict[int, list[Collection]] = {}  # those that a fork by a thread waits for


def _before_fork() -> None:
    _forking[threading.get_ident()] = waiting = [*_open]
    for collection in waiting:
        collection.looking.acquire()


def _after_fork() -> None:
    for collection in _forking.pop(threading.get_ident()):
        collection.looking.release()


def _in_child() -> None:
    _after_fork()
    for collection in [*_open]:
        collection.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
