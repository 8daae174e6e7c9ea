"""Files on the command line: what each column holds is said once, and answers have ids."""

import json

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from command_line import notes, refused, run
from data import need_data

N, D = 300, 8
RANDOM = np.random.default_rng(0)
KINDS = RANDOM.integers(3, size=N)
X = (3 * np.eye(D)[KINDS] + RANDOM.standard_normal((N, D))).astype(np.float32)
SHOP = {
    "id": [f"sku-{i}" for i in range(N)],
    "title": [f"Item {i}" for i in range(N)],
    "price": (RANDOM.lognormal(3, 2, N) * 1000).tolist(),
    "label": KINDS.tolist(),
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Embeddings of a shop: in one column, and in many beside a numeric id and a price."""
    folder = tmp_path_factory.mktemp("shop")
    parquet.write_table(pyarrow.table({**SHOP, "embedding": X.tolist()}), folder / "shop.parquet")
    wide = {**SHOP, "id": np.arange(N) * 1000, **{f"x{i}": X[:, i] for i in range(D)}}
    parquet.write_table(pyarrow.table(wide), folder / "wide.parquet")
    for name in ("shop", "wide"):
        words = ["--feature-columns", "x*"] if name == "wide" else []
        file, model = folder / f"{name}.parquet", folder / name
        result = run("fit", file, "--model", model, "--set", "memory=0", *words)
        assert result.exit_code == 0, result.stderr
    return folder


def test_neither_id_nor_price_is_learned(shop):
    """0.1.0 learned from both: mAP .123 instead of .997."""
    message = (
        f"read_table: {shop / 'wide.parquet'} has numbered columns, x0 to x7, beside other "
        "numbers, price; say which are features: pass --feature-columns 'x*', with '*' for all, "
        "or --ignore-columns price."
    )
    for words in (["fit", "--model", shop / "new"], ["encode", shop / "wide", "--out", "c.npy"]):
        refused(run(*words, shop / "wide.parquet"), message)
    refused(run("bench", "--data", shop / "wide.parquet", "--method", "lsh"), message)
    found = []
    for name, words in (("shop", []), ("wide", ["--ignore-columns", "price"])):
        file = shop / f"{name}.parquet"
        result = run(
            *("evaluate", shop / name, "--database", file, "--queries", file, "--json", *words)
        )
        found.append(json.loads(result.stdout)["map"])
    assert found[0] == found[1] > 0.9


def test_what_columns_hold_is_said_once(shop, tmp_path):
    file = shop / "shop.parquet"
    said = f"{file}: features: embedding; id: id; label: label; ignored: title, price.\n"
    fitted = run("fit", file, "--model", tmp_path / "m", "--method", "lsh")
    assert notes(fitted.stderr) == said
    encoded = run("encode", tmp_path / "m", file, "--out", tmp_path / "codes.npy")
    assert notes(encoded.stderr) == said
    evaluated = run("evaluate", tmp_path / "m", "--database", file, "--queries", file)
    assert notes(evaluated.stderr) == said
    benched = run("bench", "--data", file, "--method", "lsh", "--jobs", 1, "--quick")
    assert notes(benched.stderr) == said
    searched = run("search", tmp_path / "m", tmp_path / "codes.npy", file, "--json")
    assert notes(searched.stderr) == said  # of the codes, one array, there is nothing to say
    run("live", "create", tmp_path / "items", "--method", "lsh")
    added = run("live", "add", tmp_path / "items", file)
    assert notes(added.stderr) == said.replace("ignored", "metadata")


def test_queries_have_no_metadata(shop, tmp_path):
    """What a query file has beside its vectors is ignored, and said to be."""
    file, items = shop / "shop.parquet", tmp_path / "items"
    run("live", "create", items, "--method", "lsh")
    run("live", "add", items, file)
    said = f"{file}: features: embedding; id: id; label: label; ignored: title, price.\n"
    for verb in ("search", "predict"):
        assert notes(run("live", verb, items, file, "--json").stderr) == said


def test_of_a_data_set_there_is_nothing_to_say(tmp_path):
    need_data("reuters")
    fitted = run("fit", "reuters", "--model", tmp_path / "m", "--method", "lsh")
    assert (fitted.exit_code, notes(fitted.stderr)) == (0, "")


def test_search_answers_in_ids_and_shows_fields(shop):
    file = shop / "shop.parquet"
    words = ["search", shop / "shop", file, file, "-k", 3]
    answers = json.loads(run(*words, "--fields", "title,price", "--json").stdout)
    assert [answer["query"] for answer in answers] == SHOP["id"]
    for answer in answers[:5]:
        assert answer["title"] == [f"Item {name.removeprefix('sku-')}" for name in answer["items"]]
    table = run(*words, "--fields", "title").stdout.splitlines()
    assert table[1].split() == ["query", "rank", "item", "distance", "title"]
    assert "title" not in json.loads(run(*words, "--json").stdout)[0]
    every = json.loads(run(*words, "--fields", "*", "--json").stdout)[0]
    assert {"title", "price"} <= every.keys()
    refused(
        run(*words, "--fields", "titel"),
        "search: --fields titel is in none of the items, which have price, title.",
    )


def test_a_collection_shows_fields_and_leaves_vectors_out(shop, tmp_path):
    items = tmp_path / "items"
    run("live", "create", items, "--method", "lsh")
    run("live", "add", items, shop / "shop.parquet")
    words = ["live", "search", items, "--id", "sku-3", "-k", 2, "--fields", "title,price"]
    (answer,) = json.loads(run(*words, "--json").stdout)
    assert answer["title"] == [f"Item {name.removeprefix('sku-')}" for name in answer["items"]]
    heading = run(*words).stdout.splitlines()[1].split()
    assert heading[-2:] == ["title", "price"]
    (item,) = json.loads(run("live", "get", items, "sku-3", "--json").stdout)
    assert item["metadata"] == {"title": "Item 3", "price": SHOP["price"][3]}
    assert "vector" not in item
    words = ["live", "get", items, "sku-3", "--fields", "title"]
    (item,) = json.loads(run(*words, "--vectors", "--json").stdout)
    assert item["metadata"] == {"title": "Item 3"}
    np.testing.assert_array_equal(np.float32(item["vector"]), X[3])
    assert run(*words).stdout.splitlines()[1].split() == ["id", "label", "title", "code"]
    refused(
        run("live", "search", items, "--id", "sku-3", "--fields", "titel"),
        "search: --fields titel is in none of the items, which have price, title.",
    )
