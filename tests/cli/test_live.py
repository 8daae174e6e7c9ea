"""The verbs of a live collection, on real files and with real second processes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from command_line import errors, heavy_imports, refused, run
from streamhash.lab.datasets import load_data
from streamhash.live import Collection

pytest.importorskip("lance", reason="Lance is not installed")

PROGRAM = Path(sys.executable).with_name("streamhash")
N = 600


def live(*words, **options):
    result = run("live", *words, **options)
    assert result.exit_code == 0, result.output
    return result.stdout


def any_model(text):
    """Return what is said of an add, whatever number the model has: refreshes go by the clock."""
    return re.sub(r"model \d+ serves", "model N serves", text)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A folder with the digits in files."""
    folder = tmp_path_factory.mktemp("digits")
    for ending in ("jsonl", "csv", "npz"):
        result = run("data", "write", "digits", "--out", folder / f"digits.{ending}")
        assert result.stdout == f"1,797 rows of digits are in {folder / f'digits.{ending}'}.\n"
    data = load_data("digits")
    np.save(folder / "some.npy", data.X[:N])
    np.save(folder / "some-labels.npy", data.y[:N])
    lines = (folder / "digits.jsonl").read_text().splitlines(keepends=True)
    (folder / "some.jsonl").write_text("".join(lines[:N]))
    (folder / "queries.jsonl").write_text("".join(lines[1500:1503]))
    return folder


@pytest.fixture(scope="module")
def stored(tmp_path_factory, digits):
    """A collection to read from."""
    path = tmp_path_factory.mktemp("stored") / "stored"
    live("create", path, "--bits", 32)
    live("add", path, digits / "some.jsonl")
    return path


@pytest.fixture
def fresh(tmp_path):
    """A collection to write to."""
    path = tmp_path / "fresh"
    live("create", path, "--bits", 16, "--method", "lsh")
    return path


def contents(path):
    """Ids, vectors, labels and metadata of all items."""
    with Collection.open(path, read_only=True) as items:
        batches = [*items.scan()]
    ids = [i for batch in batches for i in batch.ids.tolist()]
    vectors = [row for batch in batches for row in batch.vectors.tolist()]
    labels = [label for batch in batches for label in batch.labels]
    return ids, vectors, labels, [m for batch in batches for m in batch.metadata]


def test_create_says_what_was_made(tmp_path):
    path = tmp_path / "stored"
    assert live("create", path, "--set", "batch_size=100", "--refresh", "manual") == (
        f"{path} is an empty collection: SDOH, 32 bits. Go on with streamhash live add.\n"
    )
    status = json.loads(live("status", path, "--json"))
    assert (status["items"], status["bits"], status["refresh"]["policy"]) == (0, 32, "manual")
    refused(
        run("live", "create", path),
        f"{path}: there is a collection already; open it, or choose another path.",
    )
    refused(
        run("live", "create", tmp_path / "other", "--refresh", "often"),
        'Collection.create: --refresh often must be "auto", "auto=SHARE", "gain", "gain=BITS", '
        '"manual", or a number of items from 1 up.',
    )
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("ending", ["csv", "npz", "parquet", "name"])
def test_every_form_stores_the_same_items(digits, tmp_path, ending):
    wanted, got = tmp_path / "wanted", tmp_path / "got"
    for path in (wanted, got):
        live("create", path, "--method", "lsh", "--bits", 8)
    live("add", wanted, digits / "digits.jsonl")
    source = digits / f"digits.{ending}"
    if ending == "parquet":
        source = tmp_path / "digits.parquet"
        live("export", wanted, "--to", source, "--vectors")
    elif ending == "name":
        source = "digits"
    assert live("add", got, source) == (
        f"1,797 items added to {got}; 1,797 in all; model 1 serves.\n"
    )
    ids, vectors, labels, _ = contents(got)
    wanted_ids, wanted_vectors, wanted_labels, _ = contents(wanted)
    assert (ids, labels) == (wanted_ids, wanted_labels)
    np.testing.assert_array_equal(vectors, wanted_vectors)


def test_vectors_alone_are_numbered_on_or_from_a_number(digits, fresh):
    words = ("add", fresh, digits / "some.npy", "--labels", digits / "some-labels.npy")
    live(*words, "--batch", 250)
    assert f"{N:,} items added" in live(*words)
    ids, _, labels, _ = contents(fresh)
    assert ids == [*range(2 * N)]
    assert labels == load_data("digits").y[:N].tolist() * 2
    refused(
        run("live", *words, "--existing", "skip"),
        "add: the items have no ids, so nobody can tell which are there already; pass "
        "--first-id as when they were added first, or leave out existing.",
    )
    stored = live(*words, "--existing", "skip", "--first-id", N + 100)
    assert stored.startswith(f"100 items added to {fresh}; 500 were there; 1,300 in all; ")


def test_columns_can_be_named(fresh, tmp_path):
    file = tmp_path / "my.csv"
    file.write_text("name,kind,page,a,b\nx,cat,4,1,2\ny,,5,3,4\n")
    live(
        "add",
        fresh,
        file,
        *("--id-column", "name", "--label-column", "kind"),
        *("--metadata-columns", "page"),
    )
    assert contents(fresh) == (
        ["x", "y"],
        [[1, 2], [3, 4]],
        ["cat", None],
        [{"page": 4}, {"page": 5}],
    )


def test_items_come_from_standard_input(digits, fresh):
    lines = (digits / "some.jsonl").read_text()
    live("add", fresh, "-", "--batch", 100, input=lines)
    text = (digits / "digits.csv").read_text().splitlines(keepends=True)
    added = live(
        "add", fresh, "-", "--format", "csv", "--existing", "skip", input="".join(text[: N + 11])
    )
    assert (
        any_model(added)
        == f"10 items added to {fresh}; 600 were there; 610 in all; model N serves.\n"
    )


def test_a_file_with_a_fault_changes_nothing(digits, fresh, tmp_path):
    good = (digits / "some.jsonl").read_text().splitlines()
    vector = json.loads(good[0])["vector"]
    faults = {
        '{"id": 700, "vector": [1, 2]}': "is not a list of 64 numbers",
        json.dumps({"id": 5, "vector": vector}): "add: id 5 came twice; pass each id once.",
        json.dumps({"id": "a", "vector": vector}): "add: ids are whole numbers and strings",
        json.dumps({"id": 700, "vector": vector, "label": 0.5}): "y holds 0.5",
        json.dumps({"id": 700, "vector": [float("nan"), *vector[1:]]}): "NaN, infinite or too",
        '{"id": 700': "line 601 of",
    }
    for line, message in faults.items():
        file = tmp_path / "bad.jsonl"
        file.write_text("\n".join([*good, line]))
        result = run("live", "add", fresh, file, "--batch", 100)
        assert (result.exit_code, result.stdout) == (2, ""), line
        assert message in errors(result)
        assert errors(result).count("\n") == 1
        assert result.stderr.count(f"{file}: features: vector; id: id") == 1
    assert contents(fresh) == ([], [], [], [])


def test_standard_input_says_what_was_stored_before_a_fault(digits, fresh):
    good = (digits / "some.jsonl").read_text().splitlines()
    result = run("live", "add", fresh, "-", "--batch", 100, input="\n".join([*good[:250], "{"]))
    assert (result.exit_code, result.stdout) == (2, "")
    assert errors(result) == (
        "streamhash: read_items: line 251 of standard input is not JSON (Expecting property name "
        "enclosed in double quotes, column 2); write one whole object a line. The 200 items before "
        "are stored; mend it, and add the rest.\n"
    )
    ids, *_ = contents(fresh)
    assert ids == [*range(200)]


def test_search_prints_a_table_or_json(digits, stored):
    lines = live("search", stored, digits / "queries.jsonl", "-k", 2).split("\n")
    assert lines[1].split() == ["query", "rank", "id", "distance", "probability", "label"]
    assert len(lines[3].split()) == 6
    answers = json.loads(live("search", stored, digits / "queries.jsonl", "-k", 5, "--json"))
    assert [answer["query"] for answer in answers] == [1500, 1501, 1502]
    data = load_data("digits")
    with Collection.open(stored, read_only=True) as items:
        distances, ids = items.search(data.X[1500:1503], 5)
    assert [answer["items"] for answer in answers] == ids.tolist()
    assert [answer["distances"] for answer in answers] == distances.tolist()
    assert [answer["labels"] for answer in answers] == data.y[ids].tolist()
    piped = live(
        "search", stored, "-", "-k", 5, "--json", input=(digits / "queries.jsonl").read_text()
    )
    assert json.loads(piped) == answers
    np.save(digits / "queries.npy", data.X[1500:1503])
    rows = json.loads(live("search", stored, digits / "queries.npy", "-k", 5, "--json"))
    assert [answer["query"] for answer in rows] == [0, 1, 2]


def test_mapped_files_are_for_every_verb_that_goes_through_all_items(digits, tmp_path, monkeypatch):
    opened = []
    real = Collection.open
    monkeypatch.setattr(
        Collection, "open", lambda *a, **named: (opened.append(named["mmap"]), real(*a, **named))[1]
    )
    for name, words in (("plain", []), ("mapped", ["--mmap"])):
        path = tmp_path / name
        live("create", path, "--set", "memory=0", "--set", "features=none", "--refresh", "manual")
        live("add", path, digits / "digits.csv", *words)
        live("add", path, digits / "digits.csv", "--existing", "replace", *words)
        live("refresh", path, *words)
        live("revert", path, "--model", "1", *words)
        live("rebuild", path, *words)
    assert opened == [False] * 5 + [True] * 5
    found = [
        json.loads(live("search", tmp_path / name, digits / "some.npy", "--json", *words))
        for name, words in (("plain", []), ("mapped", ["--mmap"]))
    ]
    assert found[0] == found[1]


def test_search_and_export_with_a_filter(digits, stored, tmp_path):
    search = ("search", stored, digits / "queries.jsonl", "-k", 5, "--json")
    answers = json.loads(live(*search, "--where", "id < 100 AND NOT label IN (1, 2)"))
    for answer in answers:
        assert len(answer["items"]) == 5
        assert max(answer["items"]) < 100
        assert not {1, 2} & {*answer["labels"]}
    assert [a["items"] for a in json.loads(live(*search, "--where", "id < 0"))] == [[], [], []]
    live("export", stored, "--to", tmp_path / "some.npz", "--where", "id < 10")
    assert np.load(tmp_path / "some.npz")["ids"].tolist() == [*range(10)]
    refused(
        run("live", *search, "--where", "id <"),
        "Collection.search: where: at character 5, near 'id <': the end is no value; write a "
        "number, 'text', true, false or date '2026-01-31'.",
    )


def test_search_takes_the_options_of_the_library(stored):
    way = ("--where", "id < 900", "--rescore", 3, "--metric", "euclidean", "--query", "real")
    (answer,) = json.loads(live("search", stored, "--id", 7, "-k", 3, *way, "--json"))
    with Collection.open(stored, read_only=True) as items:
        vector = items.get([7])[0].vector
        named = {"where": "id < 900", "rescore": 3, "metric": "euclidean", "query": "real"}
        found = items.search([vector], 4, **named)
    assert (found.ids[0, 0], found.scores[0, 0]) == (7, 0)  # the item itself
    assert answer["items"] == found.ids[0, 1:].tolist()
    assert answer["scores"] == found.scores[0, 1:].tolist()
    assert answer["labels"] == found.labels[0][1:]
    lines = live("search", stored, "--id", 7, "-k", 2, "--rescore", 2).split("\n")
    assert lines[1].split()[:5] == ["query", "rank", "id", "distance", "score"]
    refused(
        run("live", "search", stored, "--id", 7, "--by", "projections"),
        "search: --by projections and --metric cosine say how to rescore; pass "
        "--rescore 4 with them.",
    )


def test_search_for_an_item_leaves_it_out(stored):
    (answer,) = json.loads(live("search", stored, "--id", 7, "-k", 3, "--json"))
    assert answer["query"] == 7
    assert len(answer["items"]) == 3
    assert 7 not in answer["items"]
    refused(
        run("live", "search", stored),
        "search: pass QUERIES, a file of vectors or -, or --id ITEM.",
    )
    refused(
        run("live", "search", stored, "--id", "none"),
        "search: id 'none' is not in this collection; check it, or add it.",
    )


def test_answers_have_probabilities_and_predictions_too(digits, tmp_path):
    live("create", tmp_path / "items", "--method", "hcoh")
    live("add", tmp_path / "items", "digits", "--batch", 200)
    queries = digits / "queries.jsonl"
    lines = live("search", tmp_path / "items", queries, "-k", 2).split("\n")
    assert lines[1].split() == ["query", "rank", "id", "distance", "probability", "label"]
    asked = "search", tmp_path / "items", "--id", 7, "-k", 20, "--json"
    (answer,) = json.loads(live(*asked))
    assert len(answer["probabilities"]) == 20
    least = sorted(answer["probabilities"])[-5]
    (sure,) = json.loads(live(*asked, "--min-probability", least))
    assert sure["items"] == answer["items"][: len(sure["items"])]
    assert min(sure["probabilities"]) >= np.float32(least)
    told = json.loads(live("predict", tmp_path / "items", queries, "--json"))
    with Collection.open(tmp_path / "items", read_only=True) as items:
        labels, probabilities = items.predict(load_data("digits").X[1500:1503])
    assert [row["query"] for row in told] == [1500, 1501, 1502]
    assert [row["label"] for row in told] == labels
    assert [row["probability"] for row in told] == probabilities.tolist()
    table = live("predict", tmp_path / "items", queries).split("\n")
    assert table[1].split() == ["query", "label", "probability"]
    assert table[3].split() == ["1500", str(labels[0]), f"{probabilities[0]:.3f}"]


def test_get_prints_items(stored):
    assert [line.split()[:2] for line in live("get", stored, 7, 0).splitlines()[3:5]] == [
        ["7", "7"],
        ["0", "0"],
    ]
    (item,) = json.loads(live("get", stored, 7, "--json"))
    assert "vector" not in item
    (item,) = json.loads(live("get", stored, 7, "--vectors", "--json"))
    assert (item["id"], item["label"], item["metadata"]) == (7, 7, None)
    assert len(item["code"]) == 32
    np.testing.assert_array_equal(item["vector"], load_data("digits").X[7])


def test_several_labels_of_an_item(tmp_path):
    path, file = tmp_path / "news", tmp_path / "news.csv"
    live("create", path, "--bits", 8, "--method", "lsh", "--labels", "several")
    file.write_text("id,label,a,b\n1,grain|wheat,1,2\n2,7,2,1\n3,,0,1\n")
    live("add", path, file, "--label-separator", "|")
    assert live("label", path, "--id", 3, "--label", "oil", "--label", "ship") == (
        "1 items labelled; 3 of 3 have labels.\n"
    )
    live("refresh", path)
    assert [item["label"] for item in json.loads(live("get", path, 1, 2, 3, "--json"))] == [
        ["grain", "wheat"],
        [7],
        ["oil", "ship"],
    ]
    assert "grain, wheat" in live("get", path, 1)
    answer = json.loads(live("search", path, "--id", 1, "-k", 2, "--json"))
    assert sorted(answer[0]["labels"], key=str) == [["oil", "ship"], [7]]
    assert "3, of 5 classes, several an item" in live("status", path)
    live("label", path, "--id", 3, "--label", "")
    assert json.loads(live("get", path, 3, "--json"))[0]["label"] is None


def test_labels_come_later(digits, fresh, tmp_path):
    rows = [json.loads(line) for line in (digits / "some.jsonl").read_text().splitlines()]
    bare = "".join(json.dumps({"id": r["id"], "vector": r["vector"]}) + "\n" for r in rows)
    live("add", fresh, "-", input=bare)
    file = tmp_path / "labels.csv"
    file.write_text("id,label\n" + "".join(f"{r['id']},{r['label']}\n" for r in rows[:300]))
    assert live("label", fresh, file, "--batch", 70) == (
        "300 items labelled; 300 of 600 have labels.\n"
    )
    assert live("label", fresh, "--id", 400, "--label", "four") == (
        "1 items labelled; 301 of 600 have labels.\n"
    )
    (item,) = json.loads(live("get", fresh, 400, "--json"))
    assert item["label"] == "four"
    file.write_text("id,label\n1,9\n9999,1\n")
    refused(
        run("live", "label", fresh, file, "--batch", 1),
        "label: id 9999 is not in this collection; add it first.",
    )
    _, _, labels, _ = contents(fresh)
    assert labels[1] == rows[1]["label"]
    file.write_text("id,kind\n1,9\n")
    refused(
        run("live", "label", fresh, file),
        f"label: {file} has no labels; name their column (--label-column NAME).",
    )
    refused(
        run("live", "label", fresh, "--id", "4"),
        "label: pass a FILE with ids and labels, or --id ITEM --label LABEL.",
    )


def said(*words):
    """What a verb says that refuses."""
    result = run("live", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


def test_feedback_is_stored_exported_and_read_again(digits, tmp_path):
    path, again, file = tmp_path / "judged", tmp_path / "again", tmp_path / "judged.jsonl"
    for each in (path, again):
        live("create", each, "--bits", 16, "--set", "memory=100", "--set", "n_features=64")
        live("add", each, digits / "some.npy")
    assert live("feedback", path, "--id", 5, "--query-id", 7) == (
        "1 answers judged; 1 in all, 0 of them learned.\n"
    )
    live("feedback", path, "--id", 6, "--query-id", 7, "--bad")
    vector = np.load(digits / "some.npy")[0].tolist()
    lines = [{"id": 8, "query": vector}, {"id": 9, "query": vector, "good": False}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    assert live("feedback", path, "-", input=text).startswith("2 answers judged; 4 in all")
    assert live("export", path, "--to", file, "--feedback") == f"4 judgements are in {file}.\n"
    written = [json.loads(line) for line in file.read_text().splitlines()]
    assert written[:2] == [
        {"id": 5, "query_id": 7, "good": True},
        {"id": 6, "query_id": 7, "good": False},
    ]
    assert [(each["id"], each["good"], each["query"] == vector) for each in written[2:]] == [
        (8, True, True),
        (9, False, True),
    ]
    live("feedback", again, file)
    with Collection.open(path) as one, Collection.open(again, read_only=True) as other:
        for first, second in zip(one.judgements(), other.judgements(), strict=True):
            assert first[:3] == second[:3]
            assert np.array_equal(first.query, second.query)
    assert "judged answers" in live("status", path)
    assert json.loads(live("status", path, "--json"))["feedback"] == {
        "stored": 4,
        "good": 2,
        "learned": 0,
        "waiting": 4,
    }
    for words, message in (
        ([], "feedback: pass a FILE of judgements, or --id ITEM --query-id ITEM."),
        (["--id", 5], "feedback: pass a FILE of judgements, or --id ITEM --query-id ITEM."),
        ([file, "--bad"], "feedback: --bad is for one judgement; a file says it in each line."),
    ):
        refused(run("live", "feedback", path, *words), message)
    file.write_text('{"id": 5, "query_id": 7}\n{"id": 99999, "query_id": 7}\n')
    assert "id 99999 is not in this collection" in said("feedback", path, file)
    file.write_text('{"id": 5, "query_id": 7}\nnonsense\n')
    assert "line 2 is no judgement" in said("feedback", path, file)
    assert "stored': 4" in str(json.loads(live("status", path, "--json"))["feedback"])


def test_metadata_change_alone(digits, fresh, tmp_path):
    live("add", fresh, digits / "some.npy")
    assert live("set-metadata", fresh, "--id", 3, "--metadata", '{"page": 1}') == (
        "1 items have other metadata.\n"
    )
    file = tmp_path / "metadata.jsonl"
    file.write_text('{"id": 4, "metadata": {"page": 2}}\n{"id": 5, "metadata": null}\n')
    assert live("set-metadata", fresh, file) == "2 items have other metadata.\n"
    with Collection.open(fresh, read_only=True) as items:
        assert [item.metadata for item in items.get([3, 4, 5])] == [{"page": 1}, {"page": 2}, None]
    file.write_text('{"id": 4, "metadata": {"page": 3}}\n{"id": 99999, "metadata": {}}\n')
    assert "id 99999 is not in this collection" in said("set-metadata", fresh, file)
    assert "is no JSON" in said("set-metadata", fresh, "--id", 3, "--metadata", "{")
    assert "pass a FILE with ids" in said("set-metadata", fresh)
    with Collection.open(fresh, read_only=True) as items:
        assert items.get([4])[0].metadata == {"page": 2}


def test_delete_takes_all_or_none(digits, fresh, tmp_path):
    live("add", fresh, digits / "some.jsonl")
    assert live("delete", fresh, 1, 2) == "2 items deleted; 598 are left.\n"
    (tmp_path / "ids").write_text("3\n4\n")
    live("delete", fresh, "--ids", tmp_path / "ids")
    assert live("delete", fresh, "--ids", "-", input="5\n") == "1 items deleted; 595 are left.\n"
    refused(
        run("live", "delete", fresh, 6, 1),
        "Collection.delete: id 1 is not in this collection; check it, or add it.",
    )
    assert json.loads(live("get", fresh, 6, "--json"))[0]["id"] == 6
    refused(run("live", "delete", fresh), "delete: no ids came; pass some, or --ids FILE.")


def test_status_is_a_page_and_json(stored, tmp_path):
    page = live("status", stored)
    for part in ("Items", "Models", "Quality", "Refresh", "Codes"):
        assert f"\n{part}" in f"\n{page}"
    assert "600, of 10 classes" in page
    assert "worth it now?" in page
    strip = next(line for line in page.splitlines() if "0 to 31" in line).split()[-1]
    assert len(strip) == 32
    assert set(strip) <= set("▁▂▃▄▅▆▇█")
    with Collection.open(stored, read_only=True) as items:
        status = items.status()
    told = json.loads(live("status", stored, "--json"))
    del told["disk_bytes"], status["disk_bytes"]  # a lease of a reader more or less
    assert told == status
    live("create", tmp_path / "empty")
    assert "none yet: nothing can be searched" in live("status", tmp_path / "empty")


@pytest.mark.slow
def test_refresh_tells_what_it_did_and_history_keeps_it(digits, tmp_path):
    path = tmp_path / "stored"
    live("create", path, "--bits", 32, "--refresh", "manual")
    live("add", path, digits / "some.jsonl", "--batch", 200)
    live("add", path, digits / "digits.jsonl", "--existing", "skip")
    assert "worth it now?" in live("status", path)
    told = live("refresh", path, "--jobs", 1)
    assert told.startswith("Model 2 serves 1,797 items, of 1,797 learned ones, after ")
    assert told.endswith("of all bits changed.\n")
    assert live("refresh", path) == ("Model 2 serves all that has been learned: nothing to do.\n")
    table = live("history", path)
    assert table.index("model 1 serves") < table.index("model 2 serves")
    happened = json.loads(live("history", path, "--json"))
    assert [event["model"] for event in happened["refreshes"]] == [1, 2]
    assert happened["series"]


@pytest.mark.slow
def test_refresh_by_two_processes_gives_the_same_codes(tmp_path):
    data = load_data("digits")
    X = np.tile(data.X, (4, 1)) + np.repeat(np.arange(4), len(data.X))[:, None] / 16
    np.savez(tmp_path / "many.npz", X=X.astype(np.float32), y=np.tile(data.y, 4))
    live("create", tmp_path / "stored1", "--bits", 32, "--refresh", "manual")
    live("add", tmp_path / "stored1", tmp_path / "many.npz")
    shutil.copytree(tmp_path / "stored1", tmp_path / "stored2")
    codes = []
    for jobs in (1, 2):
        path = tmp_path / f"stored{jobs}"
        if jobs == 1:
            told = live("refresh", path)
        else:
            words = [str(PROGRAM), "live", "refresh", str(path), "--jobs", str(jobs)]
            told = subprocess.run(
                words, capture_output=True, text=True, timeout=120, check=True
            ).stdout
        assert told.startswith("Model 2 serves 7,188 items")
        with Collection.open(path, read_only=True) as items:
            codes.append(np.concatenate([batch.codes for batch in items.scan(vectors=False)]))
    np.testing.assert_array_equal(*codes)


@pytest.mark.parametrize("ending", ["parquet", "npz", "faiss"])
def test_export_writes_what_the_library_writes(stored, tmp_path, ending):
    if ending == "faiss":
        pytest.importorskip("faiss", reason="faiss is not installed")
    file = tmp_path / f"items.{ending}"
    assert live("export", stored, "--to", file) == f"600 items are in {file}.\n"
    with Collection.open(stored, read_only=True) as items:
        items.export(tmp_path / f"same.{ending}")
    assert file.read_bytes() == (tmp_path / f"same.{ending}").read_bytes()


def test_export_of_names_puts_them_beside_the_index(fresh, tmp_path):
    pytest.importorskip("faiss", reason="faiss is not installed")
    live(
        "add",
        fresh,
        "-",
        "--batch",
        5,
        input="".join(f'{{"id": "n{i}", "vector": [{i}, 1]}}\n' for i in range(300)),
    )
    file = tmp_path / "items.faiss"
    assert live("export", fresh, "--to", file) == (
        f"300 items are in {file}. Their ids are in {file}.ids.json.\n"
    )
    assert json.loads((tmp_path / "items.faiss.ids.json").read_text())[:2] == ["n0", "n1"]


@pytest.mark.parametrize("verb", [["status"], ["add", "x.npy"], ["search", "--id", "1"]])
def test_no_collection(tmp_path, verb):
    refused(
        run("live", verb[0], tmp_path / "none", *verb[1:]),
        f"{tmp_path / 'none'}: there is no collection here; make one with Collection.create or "
        "`streamhash live create`.",
    )
    assert not (tmp_path / "none").exists()


def program(*words, **options):
    return subprocess.Popen([str(PROGRAM), "live", *map(str, words)], text=True, **options)


@pytest.mark.slow
def test_others_read_while_one_writes_and_nobody_else_writes(digits, fresh):
    lines = (digits / "some.jsonl").read_text().splitlines(keepends=True)
    writer = program(
        "add", fresh, "-", "--batch", 300, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        writer.stdin.write("".join(lines[:300]))
        writer.stdin.flush()
        _wait_for(fresh, 300, model=1)
        assert json.loads(live("search", fresh, "--id", 7, "-k", 1, "--json"))[0]["items"]
        result = run("live", "delete", fresh, 1)
        refused(
            result,
            f"{fresh}: process {writer.pid} is writing to this collection; close it there, or "
            "wait until it ends; verbs that only read, such as search and status, work meanwhile.",
        )
        out, _ = writer.communicate("".join(lines[300:]), timeout=60)
        assert any_model(out) == f"600 items added to {fresh}; 600 in all; model N serves.\n"
    finally:
        writer.kill()
        writer.wait()


@pytest.mark.slow
def test_a_killed_add_goes_on_where_it_was(digits, fresh):
    lines = (digits / "some.jsonl").read_text().splitlines(keepends=True)
    writer = program("add", fresh, "-", "--batch", 100, stdin=subprocess.PIPE)
    writer.stdin.write("".join(lines[:250]))
    writer.stdin.flush()
    try:
        _wait_for(fresh, 200)
    finally:
        os.kill(writer.pid, signal.SIGKILL)
        writer.stdin.close()
        writer.wait()
    assert any_model(live("add", fresh, digits / "some.jsonl", "--existing", "skip")) == (
        f"400 items added to {fresh}; 200 were there; 600 in all; model N serves.\n"
    )
    ids, *_ = contents(fresh)
    assert ids == [*range(N)]


def _wait_for(path, n, model=0):
    """Wait until another process has stored so many items, and until a model serves them."""
    end = time.monotonic() + 60
    with Collection.open(path, read_only=True) as items:
        while len(items) < n or items.model_number < model:
            assert time.monotonic() < end, "the writer stored too little"
            time.sleep(0.05)


def test_help_imports_nothing_heavy():
    heavy, printed = heavy_imports("live", "add", "--help")
    assert heavy == ""
    assert "--first-id" in printed


def test_verify_names_what_is_damaged(tmp_path, digits):
    place = tmp_path / "items"
    live("create", place, "--durability", "process")
    live("add", place, digits / "digits.npz")
    assert live("verify", place).endswith("MB: all are whole.\n")
    file = max((place / "items.lance" / "data").iterdir(), key=lambda path: path.stat().st_size)
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)
    result = run("live", "verify", place, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert [damage["file"] for damage in found["damages"]] == [str(file)]
    result = run("live", "verify", place)
    assert result.exit_code == 1
    assert "1 damaged: restore a backup with streamhash live restore." in result.stdout
    assert file.name in result.stdout


def test_backup_and_restore(tmp_path, fresh, digits):
    live("add", fresh, digits / "some.jsonl")
    tar = tmp_path / "fresh.tar"
    said = live("backup", fresh, tar)
    assert said.startswith(f"600 items are in {tar}: ")
    result = run("live", "backup", fresh, tar)
    assert result.exit_code == 2
    assert "is there already; choose another name" in errors(result)
    assert live("restore", tar, tmp_path / "again").startswith(
        f"{tmp_path / 'again'} has 600 items"
    )
    assert live("verify", tmp_path / "again").endswith("all are whole.\n")
    assert live("verify", tar).endswith("all are whole.\n")
    place = tmp_path / "backups"
    assert live("backups", place) == f"{place} has no backups.\n"
    for _ in range(3):
        live("backup", fresh, place, "--keep", 2)
    found = json.loads(live("backups", place, "--json"))
    assert [each["items"] for each in found] == [600, 600]
    assert live("backups", place).count("600 items, model 1") == 2
    live("restore", place, tmp_path / "third", "--name", found[0]["name"])
    with Collection.open(tmp_path / "third", read_only=True) as items:
        assert len(items) == 600
