"""A live collection against a plain dict, by calls in any order."""

import tempfile

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fuzzing import machine_settings
from streamhash import OKH, SDOH
from streamhash.live import Collection, journal
from summing import Summing

WIDTH = 4


def vector(number):
    return np.sin(number * np.arange(1, WIDTH + 1) * 0.7).astype(np.float32)


ids_of_some = st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True)
some_label = st.sampled_from([None, 0, 1, 2])
several = st.lists(st.sampled_from([0, 1, "a", "b"]), max_size=3, unique=True)


def content(learner):
    return learner.to_bytes(), learner.hasher_.to_bytes(), learner.reservoir_.to_bytes()


class Machine(RuleBasedStateMachine):
    labels = None
    label_of_an_item = some_label

    def each(self, y):
        """The labels of an item that has some."""
        return [y]

    def stored(self, y):
        """A label as the collection has it."""
        return y

    def __init__(self):
        super().__init__()
        journal.TIDY_AFTER, journal.LOG_CHANGES = 5, 3  # tidy up after a few changes already,
        journal.LABEL_ROWS = 0  # and fold labels
        self.folder = tempfile.TemporaryDirectory()
        self.path = f"{self.folder.name}/items"
        self.c = Collection.create(self.path, self.hasher(), refresh=12, labels=self.labels)
        self.reader = Collection.open(self.path, read_only=True)
        self.there = {}
        self.judged = []
        self.n = 0

    def hasher(self):
        return SDOH(8, batch_size=4, n_features=16, memory=20, random_state=0)

    def teardown(self):
        self.c.close()
        self.reader.close()
        self.folder.cleanup()
        journal.TIDY_AFTER, journal.LOG_CHANGES, journal.LABEL_ROWS = 64, 2048, 2

    def draw_labels(self, data, n):
        return data.draw(st.lists(self.label_of_an_item, min_size=n, max_size=n))

    @rule(ids=ids_of_some, existing=st.sampled_from(["skip", "replace"]), data=st.data())
    def add(self, ids, existing, data):
        labels = self.draw_labels(data, len(ids))
        new = {}
        for i, y in zip(ids, labels, strict=True):
            self.n += 1
            new[i] = (self.n, self.stored(y))
        rows = np.array([vector(number) for number, _ in new.values()])
        extra = [{"n": number} for number, _ in new.values()]
        taken = [i for i in ids if existing == "replace" or i not in self.there]
        assert self.c.add(ids, rows, labels, metadata=extra, existing=existing) == len(taken)
        self.forget_judged(taken)
        for i in taken:
            self.there.pop(i, None)
            self.there[i] = new[i]

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def label(self, data):
        ids = data.draw(st.lists(st.sampled_from([*self.there]), min_size=1, unique=True))
        labels = self.draw_labels(data, len(ids))
        self.c.label(ids, labels)
        for i, y in zip(ids, labels, strict=True):
            self.there[i] = (self.there[i][0], self.stored(y))

    @precondition(lambda self: len(self.there) > 1 and self.c.hasher.learns_pairs)
    @rule(data=st.data(), as_item=st.booleans())
    def feedback(self, data, as_item):
        ids = data.draw(st.lists(st.sampled_from([*self.there]), min_size=1, max_size=6))
        good = data.draw(st.lists(st.booleans(), min_size=len(ids), max_size=len(ids)))
        if as_item:
            query = data.draw(st.sampled_from([*self.there]))
            pairs = [(i, g) for i, g in zip(ids, good, strict=True) if i != query]
            ids, good = [i for i, _ in pairs], [g for _, g in pairs]
            assert self.c.feedback(query_id=query, id=ids, good=good) == len(ids)
            self.judged += [(i, g, query, None) for i, g in pairs]
        else:
            self.n += 1
            assert self.c.feedback(vector(self.n), ids, good) == len(ids)
            self.judged += [(i, g, None, self.n) for i, g in zip(ids, good, strict=True)]

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def set_metadata(self, data):
        """Which stores items anew: what was judged of them stays."""
        ids = data.draw(st.lists(st.sampled_from([*self.there]), min_size=1, unique=True))
        self.c.set_metadata(ids, [{"n": self.there[i][0]} for i in ids])
        for i in ids:
            self.there[i] = self.there.pop(i)

    def forget_judged(self, ids):
        self.judged = [each for each in self.judged if not {each[0], each[2]} & {*ids}]

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def delete(self, data):
        ids = data.draw(st.lists(st.sampled_from([*self.there]), min_size=1, unique=True))
        self.c.delete(ids)
        self.forget_judged(ids)
        for i in ids:
            del self.there[i]

    @precondition(lambda self: self.c._learner.is_ready or self.c._learner.n_waiting)
    @rule()
    def refresh(self):
        self.c.refresh()
        assert self.c.gain() in (0, None)

    @rule()
    def reopen(self):
        before = content(self.c._learner)
        self.c.close()
        self.c = Collection.open(self.path)
        assert content(self.c._learner) == before

    @precondition(lambda self: self.c.model_number)
    @rule(k=st.integers(1, 40))
    def search(self, k):
        queries = np.array([vector(number) for number in (0, 1, self.n)])
        model = self.c.model()
        rows = np.array([vector(number) for number, _ in self.there.values()])
        distances, ids = self.c.search(queries, k)
        assert ids.shape == (3, k)
        if not self.there:
            assert (ids == -1).all()
            return
        codes, own = (
            np.unpackbits(model.transform(queries), 1),
            np.unpackbits(model.transform(rows), 1),
        )
        for q in range(3):
            far = (codes[q] != own).sum(axis=1)
            order = np.argsort(far, kind="stable")[:k]
            assert ids[q, : len(order)].tolist() == [[*self.there][i] for i in order]
            assert distances[q, : len(order)].tolist() == far[order].tolist()
            assert (ids[q, len(order) :] == -1).all()

    @invariant()
    def same_judgements(self):
        for c in (self.c, self.reader):
            found = c.judgements()
            assert [each[:3] for each in found] == [each[:3] for each in self.judged]
            for each, (*_, number) in zip(found, self.judged, strict=True):
                if number is not None:
                    assert np.array_equal(each.query, vector(number))
            feedback = c.status()["feedback"]
            assert feedback["stored"] == len(found) == feedback["learned"] + feedback["waiting"]

    @invariant()
    def same(self):
        for c in (self.c, self.reader):
            assert c.ids == [*self.there]
            items = c.get(c.ids)
            assert [(item.metadata["n"], item.label) for item in items] == [*self.there.values()]
            if items and c.model_number:
                rows = np.array([vector(number) for number, _ in self.there.values()])
                codes = np.array([item.code for item in items])
                assert np.array_equal(codes, c.model().transform(rows))
            if items:
                assert len(c._journal.keys()) == len(items)
        labels = [y for _, y in self.there.values() if y is not None]
        status = self.c.status()
        assert status["labelled"] == len(labels)
        assert status["classes"] == len({each for y in labels for each in self.each(y)})


class PairMachine(Machine):
    """With a method that learns pairs as such."""

    def hasher(self):
        return OKH(8, batch_size=4, n_anchors=8, random_state=0)


class ForgettingMachine(Machine):
    """With a method that forgets what is not there any more."""

    def hasher(self):
        return Summing(8, batch_size=4)

    def by_class(self, learner):
        """What is known of each class."""
        return learner.hasher_.by_class()

    @invariant()
    def what_is_there_was_learned_or_waits(self):
        learner = self.c._learner.copy()
        learner.forget_leaving()
        waiting = self.c._view.now.directory.listing.ids_of(learner.waiting_keys).tolist()
        labelled = {i: stored for i, stored in self.there.items() if stored[1] is not None}
        assert {*waiting} <= {*labelled}
        known = [stored for i, stored in labelled.items() if i not in waiting]
        if learner.is_ready:
            twin = Summing(8, batch_size=4)
            if known:  # each of several labels is learned as a row of its own would be
                rows = [(vector(number), each) for number, y in known for each in self.each(y)]
                twin.partial_fit(*map(list, zip(*rows, strict=True)))
            assert self.by_class(learner) == (twin.by_class() if known else {})
        else:
            assert not known


class SeveralMachine(Machine):
    """With none, one or several labels an item."""

    labels = "several"
    label_of_an_item = st.one_of(some_label, several)

    def each(self, y):
        return [*y]

    def stored(self, y):
        labels = y if isinstance(y, list) else [] if y is None else [y]
        return tuple(sorted(labels, key=lambda each: (isinstance(each, str), each))) or None


class ForgettingSeveralMachine(SeveralMachine, ForgettingMachine):
    """Whose columns are the classes in the order in which they came."""

    def by_class(self, learner):
        names = learner.knowledge.classes_.labels_
        return {names[column]: known for column, known in learner.hasher_.by_class().items()}


def marked(machine):
    case = machine.TestCase
    case.settings = machine_settings(examples=8, steps=25)
    case.pytestmark = [pytest.mark.machine, pytest.mark.slow]
    return case


TestMachine = marked(Machine)
TestPairMachine = marked(PairMachine)
TestForgettingMachine = marked(ForgettingMachine)
TestSeveralMachine = marked(SeveralMachine)
TestForgettingSeveralMachine = marked(ForgettingSeveralMachine)
