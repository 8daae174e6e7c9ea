"""Every combination of the options of a search, by calls in any order, against plain NumPy."""

import tempfile

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from answer_twin import TwinItem, assert_found, find
from fuzzing import machine_settings
from streamhash import LSH, OKH, InputError
from streamhash.base import NotStartedError
from streamhash.live import Collection, journal, pages
from streamhash.live.scoring import RowCache

WIDTH = 64  # of 256 bytes: from here on Lance lays vectors out as they are


def vector(number, width=WIDTH):
    """Different directions and lengths, every seventh without any."""
    return (np.sin(number * np.arange(1, width + 1) * 0.7) * (number % 7)).astype(np.float32)


WHERE = {  # what each keeps
    "n > 6": lambda item: item.metadata["n"] > 6,
    "label = 1": lambda item: item.label == 1,
    "id IN (1, 2, 3, 5, 8) OR n < 4": lambda item: (
        item.id in (1, 2, 3, 5, 8) or item.metadata["n"] < 4
    ),
    "n > 1000000": lambda _: False,
}
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "where": st.sampled_from([*WHERE]),
        "rescore": st.integers(1, 5),
        "by": st.sampled_from(["vectors", "projections"]),
        "metric": st.sampled_from(["cosine", "dot", "euclidean"]),
        "query": st.sampled_from(["code", "real"]),
    },
).filter(lambda options: "rescore" in options or not {"by", "metric"} & {*options})


def twin_options(options):
    rest = {name: options[name] for name in ("rescore", "by", "metric") if name in options}
    matches = WHERE.get(options.get("where"))
    return {**rest, "real": options.get("query") == "real", "matches": matches}


class Machine(RuleBasedStateMachine):
    vectors = "float32"

    def __init__(self):
        super().__init__()
        journal.TIDY_AFTER, journal.LOG_CHANGES = 5, 3
        self.folder = tempfile.TemporaryDirectory()
        path = f"{self.folder.name}/items"
        self.c = Collection.create(path, self.hasher(), vectors=self.vectors)
        self.reader = Collection.open(path, read_only=True)
        self.there, self.n = {}, 0

    def hasher(self):
        return LSH(12, batch_size=4, random_state=0)

    def teardown(self):
        self.c.close()
        self.reader.close()
        self.folder.cleanup()
        journal.TIDY_AFTER, journal.LOG_CHANGES = 64, 2048

    @rule(ids=st.lists(st.integers(0, 30), min_size=4, max_size=12, unique=True))
    def add(self, ids):
        for id_ in ids:
            self.n += 1
            self.there.pop(id_, None)
            row = vector(self.n).astype(self.vectors)
            self.there[id_] = TwinItem(id_, row, self.n % 3, {"n": self.n})
        new = [self.there[id_] for id_ in ids]
        extra = [item.metadata for item in new]
        labels = [item.label for item in new]
        rows = np.array([item.vector for item in new])
        self.c.add(ids, rows, labels, metadata=extra, existing="replace")

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def delete(self, data):
        ids = data.draw(st.lists(st.sampled_from([*self.there]), min_size=1, unique=True))
        self.c.delete(ids)
        for id_ in ids:
            del self.there[id_]

    @precondition(lambda self: self.c.model_number)
    @rule(k=st.integers(1, 40), options=OPTIONS)
    def search(self, k, options):
        queries = np.array([vector(number) for number in (0, 3, self.n + 1)])
        items, model = [*self.there.values()], self.c.model()
        expected = [find(model, items, query, k, **twin_options(options)) for query in queries]
        for c in (self.c, self.reader):
            assert_found(c.search(queries, k, **options), expected, k)

    @precondition(lambda self: self.c.model_number)
    @rule(k=st.integers(1, 40), options=OPTIONS, least=st.floats(0, 1))
    def search_sure(self, k, options, least):
        queries = np.array([vector(number) for number in (0, 3, self.n + 1)])
        for c in (self.c, self.reader):
            found, sure = c.search(queries, k, **options), {**options, "min_probability": least}
            if found.probabilities is None:
                with pytest.raises(NotStartedError, match="leave it out"):
                    c.search(queries, k, **sure)
                continue
            result = c.search(queries, k, **sure)
            for i, keep in enumerate(found.probabilities >= least):
                n = int(keep.sum())
                assert result.ids[i].tolist() == found.ids[i, keep].tolist() + [-1] * (k - n)
                for name in ("distances", "probabilities", "scores"):
                    before, after = getattr(found, name), getattr(result, name)
                    if before is not None:
                        np.testing.assert_array_equal(after[i, :n], before[i, keep])
                assert np.isnan(result.probabilities[i, n:]).all()


class HalfMachine(Machine):
    vectors = "float16"


class JudgedMachine(Machine):
    """With answers that are judged, and models that learn from that."""

    def hasher(self):
        return OKH(12, batch_size=4, n_anchors=8, random_state=0)

    @precondition(lambda self: self.c.model_number and self.there)
    @rule(number=st.integers(1, 40), data=st.data())
    def judge(self, number, data):
        before = self.c.status()["feedback"]["stored"]
        ids = self.c.search([vector(number)], 3).ids[0]
        ids = ids[ids >= 0]
        good = data.draw(st.lists(st.booleans(), min_size=len(ids), max_size=len(ids)))
        assert self.c.feedback(vector(number), ids, good) == len(ids)
        assert self.c.status()["feedback"]["stored"] == before + len(ids)

    @precondition(lambda self: self.c.model_number)
    @rule()
    def refresh(self):
        self.c.refresh()
        assert self.c.status()["feedback"]["waiting"] == 0


def case_of(machine, examples):
    case = machine.TestCase
    case.settings = machine_settings(examples=examples, steps=10)
    case.pytestmark = [pytest.mark.machine, pytest.mark.slow]
    return case


TestAnswers, TestAnswersOfHalves = case_of(Machine, 6), case_of(HalfMachine, 2)
TestJudgedAnswers = case_of(JudgedMachine, 3)


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    hasher = LSH(16, batch_size=10, random_state=0)
    with Collection.create(tmp_path_factory.mktemp("answers") / "items", hasher) as c:
        c.add(range(100), [vector(n) for n in range(100)])
        yield c


def test_scores_that_are_no_number_come_last_as_they_were_found(items):
    found = items.search([vector(3)], 100, rescore=1)
    lengthless = [n for n in range(100) if n % 7 == 0]
    plain = [i for i in items.search([vector(3)], 100).ids[0].tolist() if i in lengthless]
    assert found.ids[0, -len(lengthless) :].tolist() == plain
    assert np.isnan(found.scores[0, -len(lengthless) :]).all()
    assert (np.diff(found.scores[0, : -len(lengthless)]) <= 0).all()
    without_direction = items.search([vector(0)], 5, rescore=2)  # a query that has none
    assert np.isnan(without_direction.scores).all()
    assert np.array_equal(without_direction.ids, items.search([vector(0)], 5).ids)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rescore": 0}, "rescore=0 must be None or a whole number from 1 to 1000"),
        ({"rescore": 2, "by": "codes"}, "by='codes' must be one of 'vectors', 'projections'"),
        ({"rescore": 2, "metric": "l2"}, "metric='l2' must be one of"),
        ({"query": "float"}, "query='float' must be one of 'code', 'real'"),
        ({"metric": "dot"}, "say how to rescore; pass rescore=4"),
    ],
)
def test_wrong_options_say_what_is_wanted(items, options, message):
    with pytest.raises(InputError, match=message):
        items.search([vector(1)], **options)


def test_a_result_is_the_pair_that_it_was_and_more(items):
    result = items.search([vector(1), vector(2)], 3)
    distances, ids = result
    assert len(result) == 2
    assert distances is result.distances is result[0]
    assert ids is result.ids is result[1]
    assert (result.scores, result.probabilities, result.model) == (None, None, 1)
    assert result.labels == [[None] * 3] * 2


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_vectors_are_read_from_the_files_as_lance_reads_them(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(journal, "LOG_CHANGES", 1)
    monkeypatch.setattr(journal, "TIDY_AFTER", 4)  # fragments are joined, and rows deleted
    hasher = LSH(16, batch_size=10, random_state=0)
    with Collection.create(tmp_path / "items", hasher, vectors=kind) as c:
        for start in range(0, 120, 12):
            rows = np.array([vector(n, 128) for n in range(start, start + 12)])
            c.add(range(start, start + 12), rows)
            c.delete([start + 1, start + 7])
        own = c._journal
        keys = c._view.now.directory.find([110, 3, 45, 90])
        addresses = own._addresses.find(own.dataset("items"), np.insert(keys, 2, 10**6))
        assert (addresses >= 0).tolist() == [True, True, False, True, True]
        read = pages.VectorFiles().read(own.dataset("items"), addresses[addresses >= 0])
        assert read is not None, "Lance describes its pages in other words: see pages.FLAT"
        assert read.dtype == kind
        assert np.array_equal(read, np.array([vector(n, 128) for n in (110, 3, 45, 90)], kind))


def test_narrow_vectors_are_read_by_lance(tmp_path):
    with Collection.create(tmp_path / "items", LSH(8, batch_size=5, random_state=0)) as c:
        c.add(range(30), np.random.default_rng(0).normal(size=(30, 5)))
        own = c._journal
        assert pages.VectorFiles().read(own.dataset("items"), np.arange(3)) is None
        query = c.get([4])[0].vector
        assert c.search([query], 1, rescore=30).ids.tolist() == [[4]]


def test_a_cache_holds_what_is_used_within_its_bytes():
    rows = np.random.default_rng(0).normal(size=(1200, 4)).astype(np.float32)
    cache = RowCache(4, np.float32, n_bytes=100 * (16 + 128))
    hot, asked = np.arange(20), []

    def read(keys):
        asked.extend(keys.tolist())
        return rows[keys]

    for start in range(20, 1000, 20):
        some = np.concatenate([hot, np.arange(start, start + 20)])
        assert np.array_equal(cache.filled(some, read), rows[some])
        assert len(cache) <= 100
    assert asked == [*range(1000)]  # none of them twice
    everything = np.arange(1200)
    assert np.array_equal(cache.filled(everything, read), rows)
    assert len(cache) <= 100
    assert cache.filled(np.array([5000]), lambda _: None) is None


def test_items_replaced_and_deleted_while_they_are_scored_are_found_at_a_newer_moment(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(journal, "LOG_CHANGES", 1)
    monkeypatch.setattr(journal, "TIDY_AFTER", 2)  # what is deleted is soon gone from the files
    with Collection.create(tmp_path / "items", LSH(16, batch_size=10, random_state=0)) as c:
        for start in range(0, 40, 10):
            c.add(range(start, start + 10), [vector(n + 1) for n in range(start, start + 10)])
        scorer, read, sizes = c._scorer, c._scorer._read, []

        def change_first(keys):
            if not sizes:
                c.add([5], [vector(3)], existing="replace")
                c.delete([6])
                for n in range(4):
                    c.label([n], [n])
                    c.add([50 + n], [vector(50 + n)])
                for n in range(30):  # it is tidied up in pieces, one after each change
                    c.label([0], [n])
            sizes.append(len(keys))
            return read(keys)

        scorer._read = change_first
        found = c.search([vector(3)], 50, rescore=1)
        assert len(sizes) > 1
        assert sorted(found.ids[0, :43].tolist()) == sorted(c.ids)
        best = found.ids[0, np.isclose(found.scores[0], 1)].tolist()
        assert {2, 5} <= {*best}  # the same direction: once, and once replaced
