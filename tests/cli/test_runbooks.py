"""``streamhash runbook``: made and read runbooks, through a real collection."""

import json

import numpy as np
import pytest

from command_line import program, refused, run
from streamhash.lab import Runbook, Step
from streamhash.lab.runbooks import SEARCH

pytest.importorskip("yaml")
pytest.importorskip("lance")
BOOK = Runbook("mine", 300, (Step.insert(0, 300), SEARCH, Step("delete", range(100)), SEARCH))


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 340)
    X = (9 * np.eye(3, 8)[y] + rng.normal(size=(340, 8))).astype(np.float32)
    np.savez(tmp_path / "mine.npz", X=X, y=y)
    np.save(tmp_path / "mine.npy", X)
    BOOK.write(tmp_path / "book.yaml")
    return tmp_path


def answer(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.slow
def test_a_file_is_run_and_every_answer_judged(files):
    words = ("runbook", files / "book.yaml", "--data", files / "mine.npz", "--set", "memory=0")
    found = answer(run(*words, "--set", "features=none", "--bits", "16", "--json"))
    assert [step["operation"] for step in found["steps"]] == [
        "insert",
        "search",
        "delete",
        "search",
    ]
    assert [step["there"] for step in found["steps"]] == [300, 300, 200, 200]
    assert list(found["ways"]) == ["Hamming", "real-valued", "rescored"]
    for step in found["steps"][1::2]:
        assert step["ways"]["Hamming"]["precision"] > 0.9
        assert step["map"] > 0.9
    assert found["ways"]["rescored"]["recall"] > found["ways"]["Hamming"]["recall"]
    assert found["delete"]["items"] == 100


@pytest.mark.slow
def test_vectors_without_labels_are_run_by_a_method_that_needs_none(files):
    words = (
        "runbook",
        "replacing",
        "--data",
        files / "mine.npy",
        "--unlabelled",
        "--method",
        "lsh",
    )
    result = run(*words, "--clusters", "3", "--queries", "40", "--write", files / "made.yaml")
    assert result.exit_code == 0, result.stderr
    assert "mAP" not in result.stdout
    assert "replace: " in result.stdout
    assert "of them searches for 40 queries" in result.stdout
    text = (files / "made.yaml").read_text()
    assert text.startswith("mine:\n  max_pts: ")
    assert "operation: replace\n    tags_start: " in text


def test_a_max_pts_that_is_too_small_is_told_on_the_command_line(files):
    text = (files / "book.yaml").read_text().replace("max_pts: 300", "max_pts: 200")
    (files / "book.yaml").write_text(text)
    result = program("runbook", str(files / "book.yaml"), "--data", str(files / "none.npy"))
    first = result.stderr.splitlines()[0]
    assert first.endswith("max_pts is 200, and there are up to 300 items; going on with 300.")


def test_what_cannot_be_run_is_refused(files):
    book, data = files / "book.yaml", files / "mine.npz"
    refused(
        run("runbook", "clustered", "--data", data, "--unlabelled"),
        "runbook: SDOH learns from labels; leave out --unlabelled, or pass a method that needs "
        "none, such as --method itq.",
    )
    refused(
        run("runbook", book, "--data", data, "--rows", "10"),
        "runbook: --rows is for a runbook that is made; FILE names its rows.",
    )
    refused(
        run("runbook", "clustered", "--data", data, "--name", "mine"),
        "runbook: --name is for a FILE, and clustered is made; leave it out.",
    )
    refused(
        run("runbook", book, "--data", "digits", "--name", "digits"),
        f"read_runbook: {book} has no steps for 'digits'; it has some for mine.",
    )
    Runbook("mine", 400, (Step.insert(0, 400), SEARCH)).write(book)
    refused(
        run("runbook", book, "--data", data),
        f"read_runbook: {book}: step 1 needs row 399, and the data have 340 rows; take the data "
        "that the runbook was made for.",
    )
