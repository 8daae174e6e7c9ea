"""What tune has found fits wherever a model is made: ``--settings FILE``."""

import json

import pytest

from command_line import TINY, errors, refused, run
from streamhash import load
from streamhash.live import Collection


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    out = tmp_path_factory.mktemp("tuned")
    words = ["--budget", "3", "--bits", "8", "--jobs", "1", "--stream", "300", "--out", out]
    result = run("tune", "hcoh,lsh", *words)
    assert result.exit_code == 0, result.stderr
    path = out / "tuned.toml"
    # The search may come out at the defaults; what it would write is what is read.
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if not line.startswith("learning_rate")))
    text = path.read_text()
    head = next(line for line in text.splitlines() if line.startswith("[hcoh]"))
    path.write_text(text.replace(head, f"{head}\nlearning_rate = 0.3"))
    return path


def test_fit_takes_what_tune_has_found(tuned, tmp_path):
    words = ["fit", "digits", "--method", "hcoh", "--bits", 8, "--settings", tuned]
    assert run(*words, "--model", tmp_path / "m").exit_code == 0
    assert load(tmp_path / "m").learning_rate == 0.3
    changed = ["--model", tmp_path / "other", "--set", "learning_rate=0.5"]
    assert run(*words, *changed).exit_code == 0
    assert load(tmp_path / "other").learning_rate == 0.5  # --set goes before the file


def test_a_collection_takes_what_tune_has_found(tuned, tmp_path):
    items = tmp_path / "items"
    words = ["--method", "hcoh", "--bits", 8, "--settings", tuned]
    assert run("live", "create", items, *words).exit_code == 0
    with Collection.open(items, read_only=True) as made:
        assert made.hasher.learning_rate == 0.3
    run("live", "create", tmp_path / "plain", "--method", "hcoh", "--bits", 8)
    run("live", "add", tmp_path / "plain", "digits")
    relearned = run("live", "rebuild", tmp_path / "plain", "--settings", tuned)
    assert relearned.exit_code == 0, relearned.stderr
    with Collection.open(tmp_path / "plain", read_only=True) as made:
        assert made.hasher.learning_rate == 0.3


def test_bench_takes_a_file_and_its_rows_do_not_need_it(tuned):
    words = ["bench", "--bits", "8", "--jobs", "1", "--settings", tuned, "--json", *TINY]
    result = run(*words, "--method", "hcoh")
    row = json.loads(result.stdout)
    assert (row["settings"], row["changes"]) == ("default", {"learning_rate": 0.3})
    assert "--set learning_rate=0.3" in row["command"]
    every = run(*words)
    assert {json.loads(line)["method"] for line in every.stdout.splitlines()} == {"hcoh", "lsh"}
    assert "left out, as" in errors(every)


def test_files_that_do_not_fit_are_one_line(tuned, tmp_path):
    words = ["fit", "digits", "--model", tmp_path / "m", "--settings"]
    refused(
        run(*words, tuned),
        f"settings: {tuned} has none of sdoh, but of hcoh, lsh; pass another method, or write a "
        'table ["sdoh"] into it.',
    )
    refused(
        run(*words, tmp_path / "no.toml"),
        f"settings: there is no file {tmp_path / 'no.toml'}; check the path.",
    )
    bad = tmp_path / "bad.toml"
    bad.write_text("batch_size = 10\n")
    refused(
        run(*words, bad),
        f"settings: {bad} sets batch_size for no method; put it into a table of a method, such as "
        "[sdoh].",
    )
    bad.write_text("[sdoh\n")
    assert "is not TOML" in errors(run(*words, bad))
    bad.write_text("[sdoh]\nno_such = 1\n")
    assert "SDOH has no parameter 'no_such' to set" in errors(run(*words, bad))
    assert not (tmp_path / "m").exists()
