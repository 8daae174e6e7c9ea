"""Several labels an item: how a collection comes to have them, learns from them and is judged."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from data import need_data
from streamhash import (
    HCOH,
    HMOH,
    LSH,
    SDOH,
    AdaptHash,
    InputError,
    MIHash,
    mean_average_precision,
)
from streamhash.classes import ClassTable
from streamhash.lab.datasets import load_data
from streamhash.labels import check_item_labels, label_lists
from streamhash.live import Collection, add_from, label_from, validation
from streamhash.live.learner import Learner
from streamhash.refresh import information_gain

TOPICS = ["grain", "wheat", "corn", "oil", "gold", "ship"]


def news(n, topics=6, seed=0):
    """Rows that are the mean of their topics' centres, and noise; topics as lists."""
    random = np.random.default_rng(seed)
    centres = 3 * np.random.default_rng(0).standard_normal((6, 8))
    labels = [
        [*random.choice(topics, min(topics, size), False)] for size in random.integers(1, 4, n)
    ]
    X = [centres[each].mean(axis=0) + random.standard_normal(8) for each in labels]
    return np.array(X, np.float32), [[TOPICS[topic] for topic in each] for each in labels]


X, Y = news(300)


def hasher(**settings):
    return SDOH(16, batch_size=20, n_features=32, memory=60, random_state=0, **settings)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "items"


def test_labels_are_sorted_sets():
    labels = check_item_labels([["b", "a", 2, 1], {"a"}, ("a", "a"), [], "a"], 5, place="add")
    assert labels == [(1, 2, "a", "b"), ("a",), ("a",), None, "a"]
    matrix = np.array([[0, 1, 1], [0, 0, 0]])
    assert check_item_labels(matrix, 2, place="add") == [(1, 2), None]
    frame = pd.DataFrame(matrix, columns=["grain", "wheat", "corn"])
    assert check_item_labels(frame, 2, place="add") == [("corn", "wheat"), None]


@pytest.mark.parametrize(
    "method",
    [
        hasher(),
        SDOH(16, batch_size=20, memory=0, features=None, random_state=0),
        MIHash(16, batch_size=20, random_state=0),
        HMOH(16, batch_size=20, random_state=0),
        AdaptHash(16, batch_size=20, random_state=0),
        LSH(16, batch_size=20, random_state=0),
    ],
    ids=lambda method: type(method).__name__ + str(method.memory),
)
def test_what_is_learned_is_what_the_method_learns_from_the_matrix(path, method):
    """In any pieces, with classes that come late, and opened again in between."""
    parts = [news(100, n, n) for n in (1, 3, 6)]
    X, Y = np.concatenate([X for X, _ in parts]), [label for _, Y in parts for label in Y]
    with Collection.create(path, method, refresh="manual", random_state=0) as c:
        c.add(range(7), X[:7], Y[:7])
    for start in range(7, 300, 61):
        with Collection.open(path) as c:
            rows = slice(start, start + 61)
            c.add(None, X[rows], Y[rows])
    with Collection.open(path) as c:
        c.refresh()
        assert (c.status()["labels"], c.status()["classes"]) == ("several", 6)
        assert c._learner.n_learned_ == 300
        learned = c._learner.hasher_
    table, plain = ClassTable(), clone(method)
    sets, done = check_item_labels(Y, 300, place=""), 0
    while done < 300:  # the stages in which a collection learns
        stage = slice(done, min(done + max(plain.next_stage // 20 * 20, 20), 300))
        plain.partial_fit(X[stage], table.matrix(sets[stage]))
        done = stage.stop
    assert np.array_equal(learned.transform(X), plain.transform(X))
    assert np.array_equal(learned.project(X), plain.project(X))


def test_answers_are_judged_by_a_label_in_common(path):
    with Collection.create(path, hasher(), refresh="manual") as c:
        c.add(range(200), X[:200], Y[:200])
        c.refresh()
        before = c.status()["quality"]["answers"]
        codes, asked = c.model().transform(X[:200]), c.encode(X[200:201])[0]
        far = np.unpackbits(codes ^ asked, axis=1).sum(axis=1)
        near = np.argsort(far, kind="stable")[:10]
        shared = np.mean([not {*Y[200]}.isdisjoint(Y[i]) for i in near])
        total = c._learner.monitor_.sum_answers_
        c.add([200], X[200:201], Y[200:201])
        assert c.status()["quality"]["answers"] == before + 1
        assert c._learner.monitor_.sum_answers_ - total == pytest.approx(shared)


def test_the_gain_is_of_items_that_share_a_label():
    learner = Learner(hasher(), reservoir_size=80, random_state=0)
    learner.start(several=True)
    sets = check_item_labels(Y, 300, place="")
    rows, few = news(100, topics=2)
    learner.learn(rows, check_item_labels(few, 100, place=""))
    serving = learner.copy().hasher_
    learner.learn(X[100:200], sets[100:200], n_items=200)
    before = learner.copy()
    learner.learn(X[200:300], sets[200:300], serving=serving, n_items=300)
    names, sample = before.knowledge.classes_.labels_, before.reservoir_
    of_sample = [{names[column] for column in np.flatnonzero(row)} for row in sample.labels]
    same = [[not own.isdisjoint(each) for each in of_sample] for own in map(set, Y[200:300:2])]
    wanted = information_gain(before.hasher_, serving, sample.rows, np.array(same), X[200:300:2])
    assert wanted > 0.01
    assert learner.gain_ == pytest.approx(wanted, abs=1e-12)


def test_what_is_forgotten_was_never_learned(path, tmp_path):
    kept = [i for i in range(200) if i % 5]
    gone = [i for i in range(200) if i % 5 == 0]
    with (
        Collection.create(path, hasher(), refresh="manual") as c,
        Collection.create(tmp_path / "twin", hasher(), refresh="manual") as twin,
    ):
        c.add(range(200), X[:200], Y[:200])
        c.delete(gone[:20])
        c.label(gone[20:], [None] * 20)
        twin.add(kept, X[kept], [Y[i] for i in kept])
        c.refresh()
        twin.refresh()
        names, others = (each._learner.knowledge.classes_.labels_ for each in (c, twin))
        counts, wanted = (each._learner.hasher_.memory_.counts_.tolist() for each in (c, twin))
        assert dict(zip(names, counts, strict=True)) == dict(zip(others, wanted, strict=True))


def test_one_label_or_several_is_what_comes_first(path, tmp_path):
    with Collection.create(path, hasher()) as c:
        c.add([0], X[:1])
        assert c.status()["labels"] is None
        c.add([1, 2], X[1:3], ["oil", ["grain", "wheat"]])
        assert c.labels([0, 1, 2]) == [None, ("oil",), ("grain", "wheat")]
        c.label([0, 1], ["ship", []])
        assert c.labels([0, 1]) == [("ship",), None]
        assert c.label_names() == ["oil", "grain", "wheat", "ship"]
        assert c.get([2])[0].label == ("grain", "wheat")
        with pytest.raises(InputError) as caught:
            c.rebuild(HCOH(16))
        assert str(caught.value).startswith("Collection.rebuild: HCOH learns from one label")
    one = Collection.create(tmp_path / "one", hasher())
    with one as c:
        c.add([0], X[:1], ["oil"])
        assert c.status()["labels"] == "one"
        for change in (lambda: c.add([1], X[1:2], [["oil"]]), lambda: c.label([0], [{"oil"}])):
            with pytest.raises(InputError) as caught:
                change()
        assert str(caught.value) == (
            "Collection.label: y holds ['oil'], a list of labels, and the items here have one "
            'each; pass one, or add them to a collection made with labels="several".'
        )
        assert c.labels([0, 1]) == ["oil", None]
        c.delete([0])
    with Collection.open(tmp_path / "one") as c:  # what it has learned from is what it is
        with pytest.raises(InputError, match="have one each"):
            c.add([1], X[1:2], [["oil"]])
        assert len(c) == 0


def test_labels_that_a_collection_cannot_take(path, tmp_path, monkeypatch):
    with Collection.create(path, HCOH(16)) as c:
        with pytest.raises(InputError) as caught:
            c.add([0], X[:1], [["oil", "ship"]])
        assert str(caught.value) == (
            "Collection.add: HCOH learns from one label an item, not from several; pass one, or "
            "choose a method that does: sdoh, hmoh, mihash, osh, adapthash, okh, sdohhc, foh, "
            "lemon, athoh, ohweu, ridgehash, frosh, sketchhash, itq, pcah, lsh."
        )
        c.add([0], X[:1], ["oil"])
    with pytest.raises(InputError, match="HCOH learns from one label an item"):
        Collection.create(tmp_path / "new", HCOH(16), labels="several")
    with pytest.raises(InputError, match="labels='two' must be one of None, 'one', 'several'"):
        Collection.create(tmp_path / "new", hasher(), labels="two")
    matrix = ClassTable().matrix(Y)
    learned = hasher().partial_fit(X, matrix)
    with pytest.raises(InputError, match="has learned before, from classes without names"):
        Collection.create(tmp_path / "new", learned, labels="several")
    assert not (tmp_path / "new").exists()
    monkeypatch.setattr(validation, "MOST_CLASSES", 6)
    with Collection.create(tmp_path / "few", hasher(), labels="several") as c:
        c.add(range(100), X[:100], Y[:100])
        with pytest.raises(InputError, match="with 'tea' the items have more than 6 different"):
            c.label([0], [["oil", "tea"]])
        assert c.status()["classes"] == 6


# -------------------------------------------------------------------------------------- files


@pytest.fixture
def files(tmp_path):
    """The same news in every form; the first has one label, and the third none."""
    labels = ["oil", *Y[1:20]]
    labels[2] = []
    rows = [
        {"id": i, "vector": x, "label": y}
        for i, (x, y) in enumerate(zip(X.tolist(), labels, strict=False))
    ]
    (tmp_path / "news.jsonl").write_text("\n".join(map(json.dumps, rows)))
    lists = [[y] if isinstance(y, str) else y for y in labels]
    cells = [[i, "|".join(y), *x] for i, (y, x) in enumerate(zip(lists, X.tolist(), strict=False))]
    lines = ["id,labels," + ",".join("abcdefgh"), *(",".join(map(str, row)) for row in cells)]
    (tmp_path / "news.csv").write_text("\n".join(lines))
    pd.DataFrame([{**row, "label": y} for row, y in zip(rows, lists, strict=True)]).to_parquet(
        tmp_path / "news.parquet"
    )
    matrix = np.array([[topic in y for topic in TOPICS] for y in lists], np.uint8)
    np.savez(tmp_path / "news.npz", X=X[:20], ids=np.arange(20), y=matrix, classes=TOPICS)
    return tmp_path, [tuple(sorted(y)) or None for y in lists]


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "npz"])
def test_every_form_of_file_has_several_labels(path, files, form):
    folder, labels = files
    separator = "|" if form == "csv" else None
    with Collection.create(path, hasher(), labels=None) as c:
        file = folder / f"news.{form}"
        assert add_from(c, file, label_separator=separator, batch_size=1).stored == 20
        assert c.labels(range(20)) == labels
        c.label(range(20), [None] * 20)
        assert label_from(c, file, label_separator=separator, batch_size=3) == 20
        assert c.labels(range(20)) == labels


def test_a_file_of_lists_changes_nothing_where_items_have_one_label(path, files):
    folder, _ = files
    with Collection.create(path, hasher(), labels="one") as c:
        for form in ("jsonl", "parquet", "npz"):
            with pytest.raises(InputError, match="a list of labels, and the items here have one"):
                add_from(c, folder / f"news.{form}", batch_size=1)
        assert len(c) == 0
        c.add(range(20), X[:20])
        with pytest.raises(InputError, match=r"label: y holds .*, a list of labels"):
            label_from(c, folder / "news.jsonl", batch_size=1)
        assert c.labels(range(20)) == [None] * 20
        # Text that is open is stored as it comes.
        text = io.StringIO((folder / "news.jsonl").read_text())
        with pytest.raises(InputError, match="a list of labels"):
            label_from(c, text, format="jsonl", batch_size=1)
        assert c.labels([0, 1]) == ["oil", None]


def test_names_of_columns_are_as_many_as_columns(path, files):
    folder, _ = files
    np.savez(folder / "wrong.npz", X=X[:2], y=np.eye(2), classes=TOPICS)
    with Collection.create(path, hasher()) as c:
        with pytest.raises(InputError, match="have 2 columns and 6 names; save a name for each"):
            add_from(c, folder / "wrong.npz")
        with pytest.raises(InputError, match='label_separator="" separates nothing'):
            add_from(c, folder / "news.csv", label_separator="")
        np.savez(folder / "one.npz", X=X[:2], y=np.array([[1], [0]]), classes=["oil"])
        add_from(c, folder / "one.npz")
        assert c.labels([0, 1]) == [("oil",), None]


@pytest.mark.parametrize("names", [{}, {topic: i for i, topic in enumerate(TOPICS)}])
def test_what_is_exported_is_read_again(path, tmp_path, names):
    labels = [[names.get(each, each) for each in y] for y in Y]
    labels[3] = None
    with Collection.create(path, hasher()) as c:
        c.add(range(300), X, labels)
        c.refresh()
        wanted = c.labels(range(300))
        for form in ("parquet", "npz"):
            assert c.export(tmp_path / f"news.{form}", vectors=True) == 300
            with Collection.create(tmp_path / form, hasher()) as other:
                add_from(other, tmp_path / f"news.{form}")
                assert other.labels(range(300)) == wanted
                assert np.array_equal([i.vector for i in other.get(range(300))], X)


@pytest.mark.slow
def test_news_in_order_of_time_are_found_by_their_topics(path):
    """What the collection has learned is what the method learns of the same rows, on real data."""
    need_data("reuters")
    data = load_data("reuters")
    method = SDOH(32, n_features=512, memory=1000, random_state=0)
    X, Y, topics = data.X[:2000], data.y[:2000], label_lists(data.y[:2000])
    with Collection.create(path, method, random_state=0) as c:
        for start in range(0, 1500, 300):
            c.add(range(start, start + 300), X[start : start + 300], topics[start : start + 300])
        c.refresh()
        items, asked = c.encode(X[:1500]), c.encode(X[1500:])
        precision = c.status()["quality"]["precision"]
        ids = c.search(X[1500:], 10).ids
    plain = clone(method).partial_fit(X[:1500], ClassTable().matrix(topics[:1500]))
    assert np.array_equal(items, plain.transform(X[:1500]))
    found = mean_average_precision(asked, Y[1500:], items, Y[:1500])
    near = (Y[1500:, None] & Y[ids]).any(axis=2)
    assert found > 0.7
    assert near.mean() > 0.7
    assert abs(precision - near.mean()) < 0.15  # it was judged before, with fewer items
