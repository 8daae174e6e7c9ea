"""Collections that version 0.1.0 wrote open, answer and go on as they did then."""

import json
import runpy
import zipfile
from pathlib import Path

import numpy as np
import pytest

from streamhash.live import Collection

ROOT = Path(__file__).parents[1]
NAMES = ["v1-collection", "v1-collection-interrupted"]

rng = np.random.default_rng(0)
Y = rng.integers(4, size=400)
X = (rng.standard_normal((4, 8))[Y] * 2 + rng.standard_normal((400, 8))).astype(np.float32)


def same_processor():
    """Whether codes are to be the same bit for bit, as they were made by such a processor."""
    machine = runpy.run_path(str(ROOT / "golden" / "make.py"))["machine"]
    return machine() in json.loads((ROOT / "golden" / "codes.json").read_text())


EXACT = same_processor()


@pytest.fixture(params=NAMES)
def old(request, tmp_path):
    """The folder of a collection, and what was true of it."""
    with zipfile.ZipFile(ROOT / "files" / f"{request.param}.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path, json.loads((ROOT / "files" / f"{request.param}.json").read_text())


def check(collection, facts):
    assert (len(collection), collection.model_number) == (facts["len"], facts["model_number"])
    distances, ids = collection.search(X[350:360], k=5)
    assert distances.shape == ids.shape == (10, 5)
    if EXACT:
        assert distances.tolist() == facts["distances"]
        assert ids.tolist() == facts["ids"]


def check_items(collection, facts):
    items = collection.get(collection.ids)
    assert [[i.id, i.vector.tolist(), i.label, i.metadata] for i in items] == facts["items"]
    assert collection.labels(collection.ids) == [item[2] for item in facts["items"]]
    status = collection.status()
    assert status["refresh"]["interrupted"] == facts["interrupted"]
    assert status["backend"]["address"] == "memory"
    check(collection, facts)


def test_it_opens_and_goes_on(old):
    folder, facts = old
    assert np.allclose(facts["queries"], X[350:360])
    with Collection.open(folder, read_only=True) as reader:
        check_items(reader, facts)
        with Collection.open(folder) as collection:
            check_items(collection, facts)
        check_items(reader, facts)
        is_named = isinstance(facts["items"][0][0], str)
        ids = [f"é{i}" if is_named else i for i in range(300, 340)]
        with Collection.open(folder) as collection:
            collection.add(ids, X[360:400], Y[360:400])
            collection.refresh()
            check(collection, facts["after"])
            assert collection.status()["refresh"]["interrupted"] is False
        check(reader, facts["after"])
    with Collection.open(folder) as collection:
        check(collection, facts["after"])
        rows = [item.vector for item in collection.get(ids)]
        assert np.allclose(rows, X[360:400], rtol=1e-3)
