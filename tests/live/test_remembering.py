"""A method that remembers: what waits, what is stored when, and what is forgotten on purpose."""

import numpy as np
import pytest

from streamhash import HCOH, SDOH, InputError
from streamhash.live import Collection, journal, learner, verify
from streamhash.live.learner import pack_keys, unpack_keys
from summing import Summing

pytest.importorskip("lance", reason="Lance is not installed")


def stream(n=600, d=8, classes=3, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = 3 * np.eye(classes, d)[y] + random.standard_normal((n, d))
    return X.astype(np.float32), y.tolist()


X, Y = stream()


def hasher(**options):
    return Summing(16, batch_size=20, random_state=0, **options)


def create(path, method=None, **options):
    return Collection.create(path, method or hasher(), random_state=0, **options)


def learned(collection):
    mine = collection._learner
    waiting = collection._view.now.directory.listing.ids_of(mine.waiting_keys).tolist()
    content = mine.hasher_.to_bytes(), mine.reservoir_.to_bytes()
    return content, waiting, mine.n_learned_


def n_states(collection):
    return collection._journal.version("state")


# --------------------------------------------------------------------------------------- waiting


def test_keys_that_wait_take_little_room():
    for keys in ([], [5], [3, 2, 9], np.arange(50_000) << 32, np.arange(50_000) + (7 << 32)):
        assert np.array_equal(unpack_keys(pack_keys(np.array(keys, np.int64))), keys)
        assert len(pack_keys(np.array(keys, np.int64))) < 4000


@pytest.mark.parametrize("vectors", ["float32", "float16"])
def test_larger_and_larger_stages_however_items_come(tmp_path, vectors):
    with create(tmp_path / "one", vectors=vectors) as one:
        stages = []
        for i in range(150):
            one.add([i], X[i : i + 1], Y[i : i + 1])
            if one._learner.n_learned_ > sum(stages):
                stages.append(one._learner.n_learned_ - sum(stages))
            if i == 19:
                assert one.model_number == 1  # as soon as there are batch_size rows
        assert stages == [20, 20, 20, 20, 20, 20, 20]
        one.add(range(150, 600), X[150:], Y[150:])
        expected = learned(one)
    with create(tmp_path / "all", vectors=vectors) as whole:
        whole.add(range(600), X, Y)
        assert learned(whole) == expected
    with create(tmp_path / "pieces", vectors=vectors) as pieces:
        for start in range(0, 600, 75):
            pieces.add(range(start, start + 75), X[start : start + 75], Y[start : start + 75])
        assert learned(pieces) == expected
    plain = hasher()
    rows = X[: expected[2]].astype(vectors).astype(np.float32)
    plain.partial_fit(rows, Y[: expected[2]])
    assert np.array_equal(plain.sums_, pieces._learner.hasher_.sums_)


def test_a_stage_fits_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(learner, "STAGE_NUMBERS", 50 * 8)
    with create(tmp_path / "items", refresh="manual") as c:
        stages = []
        for start in range(0, 600, 5):
            c.add(range(start, start + 5), X[start : start + 5], Y[start : start + 5])
            if c._learner.n_learned_ > sum(stages):
                stages.append(c._learner.n_learned_ - sum(stages))
        assert stages == [20] * 8 + [40] * 11


def test_what_waits_is_read_again_after_opening(tmp_path):
    def run(path, reopened):
        c = create(path, vectors="float16", refresh="manual")
        for i in range(0, 300, 15):
            c.add(range(i, i + 15), X[i : i + 15], Y[i : i + 15])
            c.label([i + 1], [1])  # perhaps while it waits
            c.delete([i])
            c.add([i + 2], X[i : i + 1], ["a"], existing="replace")
            if reopened:
                c.close()
                c = Collection.open(path)
        with c:
            return learned(c), c.encode(X).tobytes()

    assert run(tmp_path / "a", True) == run(tmp_path / "b", False)


def test_an_item_that_waits_is_learned_as_it_is_then(tmp_path):
    for method in (SDOH(16, batch_size=20, random_state=0), hasher()):
        with create(tmp_path / type(method).__name__, method, refresh="manual") as c:
            c.add(range(18), X[:18], Y[:18])
            c.delete([0])
            c.label([1], [2])
            c.label([2], [None])
            c.add([3], X[100:101], [1], existing="replace")
            assert c.status()["learner"]["waiting"] == 16
            c.add(range(20, 24), X[20:24], Y[20:24])
            rows, y = [*range(4, 18), 1, 100, 20, 21, 22, 23], dict(enumerate(Y)) | {1: 2, 100: 1}
            twin = type(method)(16, batch_size=20, random_state=0)
            twin.partial_fit(X[rows], [y[row] for row in rows])
            assert c._learner.hasher_.to_bytes() == twin.to_bytes()
            assert c.status()["learner"]["waiting"] == 0


# -------------------------------------------------------------------------------- heavy and light


def test_what_was_learned_is_stored_only_when_it_has_changed(tmp_path):
    with create(tmp_path / "items", refresh="manual") as c:
        assert n_states(c) == 1
        for i in range(40):
            c.add([i], X[i : i + 1], Y[i : i + 1])
        assert n_states(c) == 3
        c.add(range(40, 59), X[40:59], Y[40:59])
        c.add([100, 101], X[100:102])
        c.label([100], [None])
        c.delete([101, 58])  # one has no label, one waits
        assert n_states(c) == 3
        assert c._journal.dataset("state").versions()[0]["version"] == 3  # older ones are gone
        c.delete([1])
        assert n_states(c) == 3  # it leaves together with others,
        c.delete(range(2, 20))
        assert n_states(c) == 3
        c.delete([20, 21])  # when there are as many as a batch,
        assert (n_states(c), c._learner.n_leaving) == (4, 0)
        c.delete([22])
        c.refresh()  # or all is stored anyway
        assert (n_states(c), c._learner.n_leaving) == (5, 0)
        last = learned(c)
    with Collection.open(tmp_path / "items", read_only=True) as reader:
        assert reader._learner._knowledge is None  # a reader does not need it
        status = reader.status()
        assert reader.search(X[:1], 1)[1].shape == (1, 1)
        assert reader._learner._knowledge is None
        assert (status["learner"]["learned"], status["learner"]["method"]) == (58, "Summing")
        assert learned(reader) == last


def test_a_change_that_fails_leaves_what_was_learned_before(tmp_path, monkeypatch):
    path = tmp_path / "items"
    with create(path, refresh="manual") as c:
        c.add(range(30), X[:30], Y[:30])
        last = learned(c)

        def fails(*_):
            raise OSError("No space left")

        monkeypatch.setattr(journal, "SMALL_KEYS", 1)
        for name in ("append_items", "_write_learner"):
            with monkeypatch.context() as patched:
                patched.setattr(c._journal, name, fails)
                with pytest.raises(OSError, match="No space left"):
                    c.add(range(30, 60), X[30:60], Y[30:60])
            assert learned(c) == last
            with Collection.open(path, read_only=True) as reader:
                assert learned(reader) == last
        assert n_states(c) == 4  # two of them never counted
        c.add([90], X[90:91])
        assert len(c._journal.dataset("state").versions()) == 3  # the one that counts is kept
    with Collection.open(path) as c:
        assert learned(c) == last
        c.add(range(30, 60), X[30:60], Y[30:60])
        last = learned(c)
        assert len(c._journal.dataset("state").versions()) == 1
    with Collection.open(path) as c:
        assert learned(c) == last


def test_a_reader_whose_state_is_gone_reports_the_last(tmp_path):
    path = tmp_path / "items"
    with create(path, refresh="manual") as c:
        c.add(range(30), X[:30], Y[:30])
        with Collection.open(path, read_only=True) as reader:
            before = reader._learner
            c.add(range(30, 60), X[30:60], Y[30:60])
            assert before.state == 2
            assert before.hasher_.to_bytes() == c._learner.hasher_.to_bytes()
            assert reader.status()["learner"]["learned"] == 60


def test_the_model_that_serves_has_nothing_that_only_learning_needs(tmp_path):
    fitted = hasher().partial_fit(X[:100], Y[:100])
    with create(tmp_path / "items", fitted, refresh="manual") as c:
        assert not hasattr(c.model(), "sums_")
        assert c.refresh() is False
        c.add(range(100, 200), X[100:200], Y[100:200])
        assert c.refresh() is True
        assert not hasattr(c.model(), "sums_")
        expected = hasher().partial_fit(X[:200], Y[:200])
        assert np.array_equal(c.encode(X), expected.transform(X))


# ------------------------------------------------------------------------------------ forgetting


def test_what_is_deleted_replaced_or_labelled_otherwise_is_forgotten(tmp_path):
    with create(tmp_path / "items", refresh="manual") as c:
        c.add(range(105), X[:105], Y[:105])
        c.add([200], X[200:201])
        c.delete([1, 2, 104, 200])  # learned, learned, waiting, never learned
        c.add([3], X[103:104], [2], existing="replace")
        c.label([4, 5, 6], [(Y[4] + 1) % 3, Y[5], None])
        c.refresh()
        rows = [0, *range(7, 100), 5, *range(100, 104), 103, 4]
        y = [*(Y[row] for row in rows[:-2]), 2, (Y[4] + 1) % 3]
        twin = hasher().partial_fit(X[rows], y)
        assert c._learner.hasher_.by_class() == twin.by_class()
        assert np.array_equal(c.encode(X), twin.transform(X))
        sample = {row.tobytes() for row in c._learner.reservoir_.rows}
        assert sample == {X[row].tobytes() for row in rows}


@pytest.mark.parametrize("labels", ["one", "several"])
def test_places_of_forgotten_rows_are_filled_from_the_stored_items(tmp_path, labels):
    """So the memory is a whole sample of what is stored, as if the others had never come."""
    names = Y if labels == "one" else [[label, 10][: 1 + i % 2] for i, label in enumerate(Y)]
    method = SDOH(16, batch_size=20, memory=30, n_features=64, random_state=0)
    path = tmp_path / "items"
    with create(path, method, refresh="manual", labels=labels) as c:
        c.add(range(300), X[:300], names[:300])
        c.refresh()
        rows = {row.tobytes(): i for i, row in enumerate(X)}
        kept = [rows[row.tobytes()] for row in c._learner.hasher_.memory_.rows]
        gone = kept[::2]
        c.delete(gone)
        c.add(range(300, 310), X[300:310], names[300:310])  # they wait
        assert c.refresh()
        memory = c._learner.hasher_.memory_
        now = [rows[row.tobytes()] for row in memory.rows]
        assert memory.missing() == {}
        assert len(now) == len({*now})
        assert {*kept[1::2]} <= {*now} <= {*c.ids}
        if labels == "one":
            assert len(now) == 30
        assert memory.counts_.sum() == sum(1 if labels == "one" else 1 + i % 2 for i in c.ids)
        last = learned(c)
    with Collection.open(path) as c:
        assert learned(c) == last
        assert c.refresh() is False


def test_a_collection_that_has_forgotten_all_begins_anew(tmp_path):
    path = tmp_path / "items"
    with create(path, refresh="manual") as c:
        c.add(range(100), X[:100], Y[:100])
        codes = c.encode(X)
        c.delete(c.ids)
        assert c._learner.is_ready is False
        assert len(c._learner.reservoir_.rows) == 0
        assert c.refresh() is False  # to what? the model that serves goes on
    with Collection.open(path) as c:
        assert c.is_refresh_due() is False
        assert np.array_equal(c.encode(X), codes)
        c.add(range(30), X[100:130], Y[100:130])
        assert c.refresh() is True
        assert np.array_equal(
            c.encode(X), hasher().partial_fit(X[100:130], Y[100:130]).transform(X)
        )


def test_what_leaves_is_durable_and_gone_before_more_is_learned(tmp_path):
    path = tmp_path / "items"
    with create(path, refresh="manual") as c:
        c.add(range(60), X[:60], Y[:60])
        c.delete([5, 6])
        c.label([7], [(Y[7] + 1) % 3])
        assert (c._learner.n_leaving, c._learner.n_waiting) == (3, 1)
        assert c.status()["learner"]["leaving"] == 3
    with Collection.open(path) as c:
        assert (c._learner.n_leaving, c._learner.n_waiting) == (3, 1)
        c.label([7], [Y[7]])  # after all
        c.add(range(60, 79), X[60:79], Y[60:79])
        assert (c._learner.n_leaving, c._learner.n_waiting) == (0, 0)
        rows = [*range(5), *range(7, 79)]
        twin = hasher().partial_fit(X[rows], [Y[row] for row in rows])
        assert c._learner.hasher_.by_class() == twin.by_class()


@pytest.mark.parametrize("forget_deleted", [True, False])
def test_what_stays_learned(tmp_path, forget_deleted):
    """If forgetting is not wanted, or the method cannot."""
    method = HCOH(16, batch_size=20, random_state=0) if forget_deleted else hasher()
    path = tmp_path / "items"
    with create(path, method, refresh="manual", forget_deleted=forget_deleted) as c:
        c.add(range(60), X[:60], Y[:60])
        before = c._learner.hasher_.to_bytes()
        c.delete(range(10))
        assert c._learner.n_leaving == (10 if forget_deleted else 0)
        c.refresh()  # weighed by the sample of what is there
        assert len(c._learner.reservoir_.rows) == (50 if forget_deleted else 60)
        assert c._learner.hasher_.to_bytes() == before
    with Collection.open(path) as c:
        assert c.forget_deleted is forget_deleted
        c.delete([20])
        assert c._learner.hasher_.to_bytes() == before
    with pytest.raises(InputError, match="forget_deleted='yes'"):
        create(tmp_path / "other", forget_deleted="yes")


def test_a_refresh_comes_after_larger_pieces_too(tmp_path):
    random = np.random.default_rng(3)
    centres = 3 * random.standard_normal((6, 8))

    def piece(n, classes):
        y = random.choice(classes, n)
        return (centres[y] + random.standard_normal((n, 8))).astype(np.float32), y.tolist()

    with create(tmp_path / "items", refresh="gain") as c:
        for _ in range(20):
            c.add(None, *piece(100, [0, 1, 2]))
        before = c.model_number
        for _ in range(15):
            c.add(None, *piece(100, [3, 4, 5]))
        assert before >= 1
        events = c.history().refreshes[before:]
        assert events
        assert events[0]["items"] < 3500
        assert events[0]["gain"] > 0


def test_a_refresh_before_anything_was_weighed_has_no_gain(tmp_path):
    random = np.random.default_rng(0)
    y = random.integers(3, size=900)
    X = (3 * np.eye(3, 8)[y] + random.standard_normal((900, 8))).astype(np.float32)
    with create(tmp_path / "items", refresh="manual") as c:
        c.add(None, X[:300], y[:300].tolist())
        c.refresh()
        assert c.gain() == 0  # it serves what was learned
        c.add(None, X[300:350], y[300:350].tolist())  # fewer than a stage: they wait
        c.refresh()  # by hand, it learns what waits
        assert c.model_number == 2
        assert c.history().refreshes[-1]["gain"] is None
        for start in (350, 600):
            c.add(None, X[start : start + 250], y[start : start + 250].tolist())
        assert c.gain() is not None
        c.refresh()
        assert isinstance(c.history().refreshes[-1]["gain"], float)


# ------------------------------------------------------------------------------- learning anew


def test_learning_anew_is_as_if_the_items_had_just_come(tmp_path):
    with create(tmp_path / "one", refresh="manual") as one:
        one.add(range(300), X[:300], Y[:300])
        one.add(range(300, 310), X[300:310])  # without labels
        one.delete(range(50))
        one.label(range(50, 60), [(label + 1) % 3 for label in Y[50:60]])
        assert one.rebuild()
        assert one.model_number == 2
        ids, labels = one.ids, one.labels(one.ids)
        vectors = np.array([item.vector for item in one.get(ids)])
        codes = one.encode(X)
        with create(tmp_path / "other", refresh="manual") as other:
            other.add(ids, vectors, labels)
            other.refresh()
            assert learned(one) == learned(other)
            assert np.array_equal(codes, other.encode(X))
        assert len(one.history().refreshes) == 2
        assert not one.rebuild()  # nothing changed
    with Collection.open(tmp_path / "one") as one:
        assert np.array_equal(codes, one.encode(X))


def test_learning_anew_by_another_method(tmp_path):
    with create(tmp_path / "items", HCOH(16, batch_size=20, random_state=0)) as items:
        items.add(range(200), X[:200], Y[:200])
        seen = []
        items.rebuild(hasher(), progress=lambda done, total: seen.append((done, total)))
        assert isinstance(items.model(), Summing)
        assert isinstance(items.hasher, Summing)
        assert seen[-1] == (200, 200)
        items.add(range(200, 300), X[200:300], Y[200:300])
        assert items.status()["learner"]["method"] == "Summing"
    with Collection.open(tmp_path / "items") as items:
        assert isinstance(items.hasher, Summing)
        _, ids = items.search(X[:3], k=1)
        assert ids[0, 0] in range(300)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("none",), "method='none' is none of sdoh, "),
        ((3,), "method=3 is no hasher"),
        ((None, 0), "n_bits=0 must be"),
    ],
)
def test_learning_anew_refuses_what_is_no_method(tmp_path, wrong, said):
    with create(tmp_path / "items") as items:
        items.add(range(60), X[:60], Y[:60])
        before = learned(items)
        with pytest.raises(InputError, match=said):
            items.rebuild(*wrong)
        assert learned(items) == before


@pytest.mark.parametrize("other", [("hcoh", 8), (None, 40), (HCOH(24), None), ("lsh", 16)])
def test_codes_of_another_length_come_in_one_step(tmp_path, other):
    with create(tmp_path / "items") as items:
        items.add(range(200), X[:200], Y[:200], metadata=[{"n": i} for i in range(200)])
        items.label([3], [Y[4]])
        before = items.search(X[:20]).ids
        with Collection.open(tmp_path / "items", read_only=True) as reader:
            assert items.rebuild(*other)
            method, n_bits = other
            n_bits = n_bits or method.n_bits
            for each in (items, reader):
                assert each.n_bits == each.model().n_bits == n_bits
                found = each.search(X[:20], 20)
                assert found.distances.max() <= n_bits
                for item in each.get(range(200)):
                    assert item.code.tolist() == each.encode([item.vector])[0].tolist()
                    assert item.metadata == {"n": item.id}
        if other[0] is None:
            assert type(items.hasher) is type(hasher())
        items.add(range(200, 300), X[200:300], Y[200:300])
        items.refresh()
        items.predict(X[:5])
        number = items.model_number
        assert items.revert(1)
        assert items.n_bits == 16
        assert items.search(X[:20], where="n < 200").ids.tolist() == before.tolist()
        assert items.model_number == number + 1
        items.add(range(300, 350), X[300:350], Y[300:350])
        assert items.n_bits == 16
    with Collection.open(tmp_path / "items") as items:
        assert len(items) == 350
        items.refresh()
        assert items.n_bits == n_bits
    assert verify(tmp_path / "items").damages == []


def test_learning_anew_that_is_killed_half_way_changes_nothing(tmp_path):
    with create(tmp_path / "items") as items:
        items.add(range(200), X[:200], Y[:200])
        before, number = learned(items), items.model_number

        def interrupt(done, _):
            if done > 100:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            items.rebuild(progress=interrupt)
        assert (learned(items), items.model_number) == (before, number)
