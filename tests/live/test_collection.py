"""The live collection: every verb, every error, and what threads, readers and reopening see."""

import json
import threading
import time

import numpy as np
import pytest

from streamhash import LSH, SDOH, FileError, InputError, InUseError, NotStartedError, ReadOnlyError
from streamhash.live import Collection, journal
from streamhash.live.learner import Monitor

NO_ITEM = 2147483647


def stream(n=200, d=8, classes=3, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = 3 * np.eye(classes, d)[y] + random.standard_normal((n, d))
    return X.astype(np.float32), y.tolist()


X, Y = stream(400)


def hasher(n_bits=16):
    return SDOH(n_bits, batch_size=20, n_features=32, memory=60, random_state=0)


@pytest.fixture
def often(monkeypatch):
    """Tidy up after a few changes already."""
    monkeypatch.setattr(journal, "TIDY_AFTER", 8)
    monkeypatch.setattr(journal, "LOG_CHANGES", 2)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "items"


def whole(collection):
    """Check that all codes are those of one model, and return the contents."""
    items = collection.get(collection.ids)
    if items and collection.model_number:
        rows = np.array([item.vector for item in items])
        codes = np.array([item.code for item in items])
        assert np.array_equal(codes, collection.model().transform(rows))
        assert np.array_equal(codes, collection._view.now.backend.codes)
    assert len(collection._journal.keys()) == len(items) if items else True
    return {item.id: (item.vector.tobytes(), item.label, item.metadata) for item in items}


# ------------------------------------------------------------------------------------ changes


def test_add_label_delete_get_and_search(path):
    with Collection.create(path, hasher(), refresh="manual") as c:
        assert len(c) == 0
        assert c.ids == []
        assert c.add(["a", "b"], X[:2], metadata=[{"at": 1}, None]) == 2
        assert c.add(map(str, range(2, 100)), X[2:100], Y[2:100]) == 98
        assert "a" in c
        assert "z" not in c
        assert c.status()["serving"]["model"] == 1  # the first model serves in any case
        c.label(["a", "b"], [7, None])
        (a, b, two) = c.get(["a", "b", "2"])
        assert (a.label, b.label, two.label) == (7, None, Y[2])
        assert (a.metadata, b.metadata) == ({"at": 1}, None)
        assert np.array_equal(a.vector, X[0])
        assert a.vector.dtype == np.float32
        assert np.array_equal(a.code, c.encode(X[:1])[0])
        distances, ids = c.search(X[:3], k=1)
        assert distances.ravel().tolist() == [0, 0, 0]
        assert ids.dtype == object
        c.delete(["a"])
        assert "a" not in c
        assert len(c) == 99
        assert "a" not in c.search(X[:1], k=200)[1].ravel().tolist()
        c.add(["a"], X[5:6], [1])
        assert c.get(["a"])[0].label == 1
        assert c.ids[-1] == "a"
        assert c.get([]) == []
        c.delete([])
        c.label([], [])
        assert c.add([], X[:0]) == 0
        whole(c)


def test_k_beyond_the_items_and_no_items_left(path):
    with Collection.create(path, hasher()) as c:
        c.add(range(20), X[:20], Y[:20])
        distances, ids = c.search(X[:2], k=25)
        assert distances[:, 20:].tolist() == [[NO_ITEM] * 5] * 2
        assert ids[:, 20:].tolist() == [[-1] * 5] * 2
        c.delete(range(20))
        assert c.search(X[:1], k=2)[1].tolist() == [[-1, -1]]
        assert c.refresh() is False
        c.add([3], X[3:4])
        assert c.search(X[3:4], k=1)[1].tolist() == [[3]]


def test_strings_that_are_all_gone_are_still_strings(path):
    with Collection.create(path, hasher()) as c:
        c.add(map(str, range(40)), X[:40], Y[:40])
        c.delete(c.ids)
    with Collection.open(path) as c:
        assert c.search(X[:1], k=1)[1].tolist() == [[None]]
        with pytest.raises(InputError, match="ids did not come, and this collection has strings"):
            c.add(None, X[:1])
        with pytest.raises(InputError, match="ids are whole numbers, those of this collection"):
            c.add([1], X[:1])


def test_a_refresh_when_all_items_are_gone(path):
    with Collection.create(path, hasher(), refresh="manual", forget_deleted=False) as c:
        c.add(range(40), X[:40], Y[:40])
        c.add(range(40, 80), X[40:80], Y[40:80])
        c.delete(c.ids)
        assert c.refresh() is True
        assert c.model_number == 2
        c.add([1], X[1:2])
        assert c.search(X[1:2], 1)[1].tolist() == [[1]]
    with Collection.open(path) as c:
        assert whole(c).keys() == {1}
        assert c.model_number == 2


def test_ids_that_are_there(path):
    with Collection.create(path, hasher()) as c:
        c.add([1, 2], X[:2], [0, 1])
        with pytest.raises(InputError, match="id 2 is there already"):
            c.add([2, 3], X[2:4])
        assert 3 not in c
        assert c.add([2, 3], X[2:4], existing="skip") == 1
        assert c.get([2])[0].label == 1
        assert c.add([2, 3, 4], X[4:7], [5, None, 6], existing="replace") == 3
        assert [item.label for item in c.get([1, 2, 3, 4])] == [0, 5, None, 6]
        assert np.array_equal(c.get([2])[0].vector, X[4])
        assert c.ids == [1, 2, 3, 4]
        assert len(whole(c)) == 4
        assert c.add(None, X[:2]) == 2
        assert c.ids[-2:] == [5, 6]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.add([1], X[:2]), "2 items and 1 ids came"),
        (lambda c: c.add([1, 1], X[:2]), "id 1 came twice"),
        (lambda c: c.add([-1], X[:1]), "from 0 to"),
        (lambda c: c.add(["a"], X[:1]), "those of this collection are whole numbers"),
        (lambda c: c.add([50], X[:1, :3]), "X has 3 columns"),
        (lambda c: c.add([50], X[0]), "pass a 2-d array"),
        (lambda c: c.add([50], X[:1] * np.nan), "row 0 of X has values that are NaN"),
        (lambda c: c.add([50], X[:1], [1, 2]), "1 items and 2 labels came"),
        (lambda c: c.add([50], X[:1], [1.5]), "y holds 1.5"),
        (lambda c: c.add([50], X[:1], metadata=[{1: {2}}]), "is not JSON"),
        (lambda c: c.add([50], X[:1], metadata={"a": 1}), "metadata came for 1 of 1"),
        (lambda c: c.add([50], X[:1], existing="keep"), "existing='keep'"),
        (lambda c: c.label([0, 0], [1, 1]), "id 0 came twice"),
        (lambda c: c.label([99], [1]), "id 99 is not in this collection"),
        (lambda c: c.label([0], [1, 2]), "1 items and 2 labels"),
        (lambda c: c.delete([99]), "Collection.delete: id 99 is not in this collection"),
        (lambda c: c.get([99]), "Collection.get: id 99 is not in this collection"),
        (lambda c: c.search(X[:1], 0), "k=0"),
        (lambda c: c.search(X[:1, :2], 1), "X has 2 columns"),
        (lambda c: c.encode(X[:1, :2]), "X has 2 columns"),
        (lambda c: c.model(9), "there is no model 9"),
    ],
)
def test_a_call_that_is_refused_changes_nothing(shared, call, message):
    before, status = whole(shared), shared.status()
    with pytest.raises(InputError, match=message):
        call(shared)
    assert whole(shared) == before
    assert shared.status() == status


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with Collection.create(tmp_path_factory.mktemp("shared") / "items", hasher()) as c:
        c.add(range(40), X[:40], Y[:40])
        yield c


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hasher": "SDOH"}, "hasher='SDOH' is not a hasher"),
        ({"vectors": "float64"}, "vectors='float64'"),
        ({"refresh": "often"}, "refresh='often' must be"),
        ({"hasher": SDOH(0)}, "n_bits=0"),
    ],
)
def test_what_create_refuses(path, arguments, message):
    with pytest.raises(InputError, match=message):
        Collection.create(path, **{"hasher": hasher(), **arguments})
    assert not path.exists()


def test_create_and_open_know_what_is_there(path, tmp_path):
    with pytest.raises(FileError, match="there is no collection here"):
        Collection.open(path)
    Collection.create(path, hasher()).close()
    with pytest.raises(InputError, match="there is a collection already"):
        Collection.create(path, hasher())
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be made a folder"):
        Collection.create(tmp_path / "file" / "items", hasher())


def test_readers_and_closed_collections_change_nothing(path):
    c = Collection.create(path, hasher())
    c.add(range(40), X[:40], Y[:40])
    reader = Collection.open(path, read_only=True)
    c.close()
    for each in (c, reader):
        for call in (
            lambda each=each: each.add([99], X[:1]),
            lambda each=each: each.label([1], [1]),
            lambda each=each: each.delete([1]),
            lambda each=each: each.refresh(),
        ):
            with pytest.raises(InputError, match="open to read only, or closed"):
                call()
        assert each.search(X[:1], 1)[0].tolist() == [[0]]
    reader.close()
    reader.close()


def test_before_the_first_model(path):
    with Collection.create(path, hasher()) as c:
        with pytest.raises(NotStartedError, match="add 20 more labelled items, or call refresh"):
            c.search(X[:1], 1, query="real")
        with pytest.raises(InputError, match="nothing has been learned yet"):
            c.refresh()
        c.add(range(5), X[:5], Y[:5])
        with pytest.raises(NotStartedError, match=r"add 15 more .* from the 5 that wait"):
            c.encode(X[:1])
        with pytest.raises(NotStartedError):
            c.model()
        assert c.get([0])[0].code is None
        assert c.gain() is None
        assert c.refresh() is True
        assert c.search(X[:1], 1)[1].tolist() == [[0]]
        whole(c)


def test_a_hasher_that_has_learned_serves_at_once(path):
    fitted = hasher().partial_fit(X[:100], Y[:100])
    expected = fitted.transform(X)
    with Collection.create(path, fitted) as c:
        assert c.model_number == 1
        assert c.n_features == 8
        assert c.search(X[:2], 3)[1].tolist() == [[-1] * 3] * 2
        assert np.array_equal(c.encode(X), expected)
        assert c.refresh() is False
        with pytest.raises(InputError, match="X has 3 columns"):
            c.add([1], X[:1, :3])
    with Collection.open(path) as c, Collection.open(path, read_only=True) as reader:
        assert np.array_equal(c.encode(X), expected)
        other = next(i for i in range(2, 100) if Y[i] != Y[1])
        c.add([1, 2], X[[1, other]])  # without labels: it goes on serving with what it has
        assert c.model_number == 1
        assert np.array_equal(c.get([1])[0].code, expected[1])
        assert reader.search(X[[other]], 1)[1].tolist() == [[2]]
        assert [number for number, _ in c.models()] == [1]
        c.add(range(3, 200), X[3:200], Y[3:200])
        whole(c)


def test_a_hasher_that_needs_no_labels(path):
    with Collection.create(path, LSH(16, random_state=0), refresh="manual") as c:
        c.add([1], X[:1])
        c.refresh()
        c.add(range(2, 80), X[2:80], [None] * 40 + Y[42:80])
        assert c.search(X[5:6], 1)[1].tolist() == [[5]]
        assert c.status()["learner"]["learned"] + c.status()["learner"]["waiting"] == 79
        whole(c)


def test_half_precision_is_what_is_learned_and_encoded(path):
    with Collection.create(path, hasher(), vectors="float16") as c:
        c.add(range(100), X[:100], Y[:100])
        assert c.get([1])[0].vector.dtype == np.float16
        whole(c)
        with pytest.raises(InputError, match="too large for float16"):
            c.add([200], X[:1] * 1e6)
    twin = hasher()
    for start in range(0, 100, 20):
        twin.partial_fit(X[start : start + 20].astype(np.float16), Y[start : start + 20])
    assert np.array_equal(c.model().transform(X), twin.transform(X))


def test_single_rows_learn_as_pieces_do(tmp_path):
    with (
        Collection.create(tmp_path / "one", hasher(), refresh="manual") as one,
        Collection.create(tmp_path / "all", hasher(), refresh="manual") as pieces,
    ):
        for i in range(45):
            one.add([i], X[i : i + 1], Y[i : i + 1])
        pieces.add(range(45), X[:45], Y[:45])
        assert one._learner.hasher_.to_bytes() == pieces._learner.hasher_.to_bytes()
        assert one._learner.n_waiting == pieces._learner.n_waiting == 5


# ---------------------------------------------------------------------------------- reopening


@pytest.mark.slow
def test_reopening_goes_on_exactly(tmp_path):
    def run(path, reopened):
        c = Collection.create(path, hasher(), refresh=60, random_state=0)
        for i in range(0, 180, 15):
            c.add(range(i, i + 15), X[i : i + 15], [*Y[i : i + 14], None])
            if i % 45 == 0:
                c.label([i + 14], [Y[i + 14]])
                c.delete([i])
            if i == 90:
                c.refresh()
            if reopened:
                c.close()
                c = Collection.open(path)
        with c:
            learner = c._learner
            model = learner.hasher_.to_bytes(), learner.reservoir_.to_bytes(), c.encode(X).tobytes()
            answers = learner.monitor_.n_answers_, learner.monitor_.recent_
            events = [{**e, "time": 0, "seconds": 0} for e in c.history().refreshes]
            return model, answers, events, whole(c), c.model_number

    assert run(tmp_path / "a", True) == run(tmp_path / "b", False)


def test_status_and_history(path):
    with Collection.create(path, hasher(), refresh="gain=5") as c:
        c.add(range(100), X[:100], Y[:100])
        c.add([100], X[100:101])
        assert c.is_refresh_due() is False
        c.refresh()
        c.add(range(101, 200), X[101:200], Y[101:200])
        c.refresh()
        status = c.status()
        assert json.loads(json.dumps(status)) == status
        assert (status["items"], status["labelled"], status["classes"]) == (200, 199, 3)
        assert (status["bits"], status["features"], status["vectors"]) == (16, 8, "float32")
        none = {"waiting": 0, "leaving": 0, "clipped": 0, "left_out": 0}
        method = {"method": "SDOH", "learns_pairs": True}
        assert status["learner"] == {**method, "learned": 199, **none}
        judged = {"stored": 0, "good": 0, "learned": 0, "waiting": 0}
        assert status["feedback"] == judged
        assert status["serving"]["model"] == c.model_number == 2
        assert status["refresh"]["policy"] == "gain=5"
        assert status["refresh"]["interrupted"] is False
        assert status["refresh"]["error"] is None
        assert len(status["codes"]["ones"]) == len(status["codes"]["flips"]) == 16
        assert 0.5 < status["quality"]["precision"] <= 1
        assert status["quality"]["answers"] == 99
        assert status["disk_bytes"] > 0
        history = c.history()
        assert [event["model"] for event in history.refreshes] == [1, 2]
        assert [event["items"] for event in history.refreshes] == [100, 200]
        assert history.series[-1]["items"] == 200
        assert [number for number, _ in c.models()] == [1, 2]
        old, new = c.model(1), c.model(2)
        assert old.to_bytes() != new.to_bytes() == c.model().to_bytes()
        c.delete(c.ids[:150])
        assert c.status()["items"] == 50


def test_the_curve_is_bounded_and_drift_is_a_fall_and_not_noise():
    random = np.random.default_rng(0)
    monitor = Monitor(size=64)
    for i in range(5000):
        monitor.answers(random.random(2) < 0.8, time=i, labelled=2 * i)
        monitor.point(
            **dict.fromkeys(("time", "items", "labelled", "model"), i),
            **dict.fromkeys(("precision", "balance", "gain"), 0.5),
        )
    assert 32 <= len(monitor.series()) <= 64
    assert monitor.drifts_ == []
    for i in range(5000, 5200):
        monitor.answers(random.random(2) < 0.3, time=i, labelled=2 * i)
    (drift,) = monitor.drifts_
    assert 10_000 < drift["labelled"] <= 10_200


# ------------------------------------------------------------------------------------ threads


@pytest.mark.slow
def test_threads_see_one_model_at_a_time(path):
    """Each answer is that of one model: the item's own vector is at distance 0 in it."""
    c = Collection.create(path, hasher(), refresh="manual")
    c.add(range(100), X[:100], Y[:100])
    errors, stop = [], threading.Event()

    def guard(work):
        def run():
            try:
                while not stop.is_set():
                    work()
            except BaseException as error:  # noqa: BLE001  raised at the end
                errors.append(error)
                stop.set()

        return threading.Thread(target=run)

    answers = []

    def search():
        distances, ids = c.search(X[:50], k=1)
        answers.append(len(answers))
        assert (distances == 0).all()
        assert (ids >= 0).all()

    def get():
        items = c.get(range(50))
        codes = np.array([item.code for item in items])
        assert any(np.array_equal(codes, c.model(n).transform(X[:50])) for n, _ in c.models()[-3:])

    threads = [guard(search), guard(search), guard(get)]
    for thread in threads:
        thread.start()
    random = np.random.default_rng(1)
    end, i = time.monotonic() + 3, 100
    while (time.monotonic() < end or c.model_number <= 3) and not stop.is_set():
        rows = random.integers(100, 400, 30)
        c.add(range(i, i + 30), X[rows], [Y[row] for row in rows])
        c.add([*range(i, i + 5)], X[rows[:5]], existing="replace")
        c.delete(range(i, i + 20))
        i += 30
        c.refresh()
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(answers) > 10
    assert c.model_number > 3
    whole(c)
    c.close()


def test_a_refresh_in_the_background(path):
    with Collection.create(path, hasher(), refresh=20, background=True) as c:
        for i in range(0, 160, 20):
            c.add(range(i, i + 20), X[i : i + 20], Y[i : i + 20])
        c.wait()
        whole(c)
        assert c.model_number >= 2


# ------------------------------------------------------------------------------------ readers


@pytest.mark.usefixtures("often")
def test_a_reader_follows_the_writer(path):
    with (
        Collection.create(path, hasher(), refresh="manual") as c,
        Collection.open(path, read_only=True) as reader,
    ):

        def same():
            assert whole(reader) == whole(c)
            assert reader.ids == c.ids
            assert reader.model_number == c.model_number
            if c.model_number:
                for each, other in zip(reader.search(X[:9], 30), c.search(X[:9], 30), strict=True):
                    assert np.array_equal(each, other)

        assert len(reader) == 0
        assert reader.search(X[:1], 1).ids.tolist() == [[-1]]
        c.add(range(10), X[:10])
        same()
        c.add(range(10, 60), X[10:60], Y[10:60])
        same()
        c.label(range(10), Y[:10])
        same()
        c.delete(range(5, 15))
        c.add([7], X[70:71], [9])
        same()
        c.add([8, 20, 21], X[80:83], [1, None, 2], existing="replace")
        same()
        c.refresh()
        c.label([7], [1])
        same()
        for _ in range(30):  # the labels are folded, and joined
            c.label([7, 8, 3, 4], [1, 2, 0, 0])
        assert c._journal.fold > 0
        same()
        c.label([7], [None])
        same()
        for i in range(100, 120):
            c.add([i], X[i : i + 1], [Y[i]])
        same()
        assert reader.status()["items"] == len(c)
        assert reader.history().refreshes == c.history().refreshes


@pytest.mark.usefixtures("often")
def test_versions_are_kept_while_a_reader_reads_them(path):
    with Collection.create(path, hasher(), refresh="manual") as c:
        c.add(range(100), X[:100], Y[:100])
        reader = Collection.open(path, read_only=True)
        used, batches = reader._journal.version("items"), reader.scan(size=10)
        ids = [*next(batches).ids]
        for i in range(100, 115):
            c.add([i], X[i : i + 1], [Y[i]])
        c.refresh()

        def versions():
            return [each["version"] for each in c._journal.dataset("items").versions()]

        assert used in versions()
        assert ids + [i for batch in batches for i in batch.ids] == [*range(100)]
        for i in range(115, 130):  # now it is idle, and keeps nothing
            c.add([i], X[i : i + 1], [Y[i]])
        assert used not in versions()
        assert not [*(path / "readers").iterdir()]
        assert len(reader.get(reader.ids)) == 130
        reader.close()


# ------------------------------------------------------------------------------- bounded growth


def n_files(path):
    return sum(file.is_file() for file in path.rglob("*"))


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_small_changes_do_not_fill_the_disk(path):
    with Collection.create(path, hasher(), refresh="manual") as c:
        c.add(range(40), X[:40], Y[:40])
        counts = []
        for i in range(60):
            c.add([7], X[i : i + 1], existing="replace")
            c.label([7], [i % 3])
            counts.append(n_files(path))
        assert max(counts[30:]) <= 1.2 * max(counts[:30])
        assert c._journal.dataset("labels").count_rows() < 110
        contents = whole(c)
        assert contents[7][0] == X[59].tobytes()
    with Collection.open(path) as c:
        assert whole(c) == contents


@pytest.mark.usefixtures("often")
def test_joining_fragments_keeps_everything(path):
    with Collection.create(path, hasher(), refresh="manual") as c:
        for i in range(36):
            c.add([str(i)], X[i : i + 1], [Y[i]], metadata=[{"i": i}])
            if i % 3 == 0:
                c.delete([str(i)])
        assert len(c._journal.fragments()) <= 20
        contents = whole(c)
        assert contents == {str(i): (X[i].tobytes(), Y[i], {"i": i}) for i in range(36) if i % 3}
    with Collection.open(path) as c:
        assert whole(c) == contents


def test_memory_does_not_grow_with_what_is_gone(path):
    with Collection.create(path, hasher(), refresh="manual") as c:
        c.add(range(40), X[:40], Y[:40])
        for i in range(6):
            ids = range(1000 * i + 100, 1000 * i + 500)
            c.add(ids, X, [f"label {i}", *[None] * 399])
            c.delete(ids)
        listing = c._view.now.directory.listing
        assert listing.size <= 40 * 2 + 1024
        assert len(listing.names) < 10
        assert c.search(X[:3], 1)[0].ravel().tolist() == [0, 0, 0]


def test_a_lock_that_is_held_is_an_error(path):
    with Collection.create(path, hasher()) as c:
        with pytest.raises(InUseError, match="is writing to this collection; close it there"):
            Collection.open(path)
        c.add(range(40), X[:40], Y[:40])
    Collection.open(path).close()


def test_fragments_of_wide_vectors_have_few_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "FRAGMENT_NUMBERS", 64 * 1500)  # of 64 features: 1,500 rows
    with Collection.create(tmp_path / "items", hasher(), refresh="manual") as c:
        c.add(range(5000), np.zeros((5000, 64)))
        assert [each.count_rows() for each in c._journal.fragments()] == [1500, 1500, 1500, 500]


def test_a_dropped_collection_is_gone_and_its_place_is_free(tmp_path):
    path = tmp_path / "items"
    with Collection.create(path, LSH(8, random_state=0)) as items:
        items.add([1, 2], np.eye(2))
        with Collection.open(path, read_only=True) as reader:
            with pytest.raises(ReadOnlyError, match="this collection is open to read only"):
                reader.drop()
            assert len(reader) == 2
        assert Collection.is_at(path)
        items.drop()
        with pytest.raises(ReadOnlyError):
            items.add([3], np.eye(1, 2))
    assert [*tmp_path.iterdir()] == []
    assert not Collection.is_at(path)
    Collection.create(path, LSH(8, random_state=0)).close()
