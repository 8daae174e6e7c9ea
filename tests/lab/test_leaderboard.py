"""The leaderboard: which rows count, which settings, who is ranked; and a newcomer on digits."""

import json
import shlex
import sys

import pytest

from command_line import refused, run
from pages import ROOT
from streamhash import OnlineHasher
from streamhash.errors import FileError, InputError
from streamhash.lab import Leaderboard, add_method, bench, read_leaderboard, row_key
from streamhash.lab.leaderboard import (
    Block,
    cell_command,
    kept_fields,
    read_given,
    read_results,
    read_rules,
    shipped_rows,
    write_shipped,
)

RULES = read_rules()
PART = RULES.part("one-label")
METHOD = """
import numpy as np
from streamhash import OnlineHasher

class FirstSigns(OnlineHasher):
    needs_labels = False

    def _start(self, X, y):
        self.W_ = np.eye(X.shape[1], self.n_bits, dtype=np.float32)

    def _learn(self, X, y):
        pass

    def _project(self, X):
        return (X - 4) @ self.W_
"""


def row(method="lsh", quality=0.5, block=PART.blocks[0], seed=0, settings="default", **facts):
    """A row as bench would have made it."""
    known = RULES.sets[block.data]
    return {
        **{"method": method, "settings": settings, "changes": {}, "parameters": {}},
        **{"features": "raw", "data": block.data, "data_checksum": known.checksum, "seed": seed},
        **{"n_bits": block.n_bits, "stream": known.stream, "checkpoints": 1, "split": "all"},
        **{"queries_per_class": known.queries_per_class, "database_codes": "encoded"},
        **{"query_share": None, "database": 900, "queries": 100, "instances": known.stream},
        **{"metrics": {"map": quality}, "version": "9.9", "date": "2026-01-01"},
        "seconds": {"learn": {"cpu": 2.0}, "encode": {"cpu": 0.5}},
        **{"machine": {"cpu": "abacus"}, "command": "streamhash bench"},
        **RULES.stream_facts(block),
        **facts,
    }


def rows_of(method, qualities, **facts):
    """Rows of a method in the first blocks of the ranking."""
    return [
        row(method, quality, block, **facts)
        for block, quality in zip(PART.blocks, qualities, strict=False)
    ]


def test_a_ranking_by_hand():
    blocks = PART.blocks[:2]
    board = Leaderboard(
        [*rows_of("sdoh", [0.9, 0.5]), *rows_of("hcoh", [0.7, 0.5]), *rows_of("lsh", [0.8, 0.1])]
    )
    found = board.ranking(PART, blocks=blocks)
    assert found.methods == ("sdoh", "hcoh", "lsh")
    assert found.ranks.tolist() == [[1, 1.5], [3, 1.5], [2, 3]]
    assert found.mean_ranks == [1.25, 2.25, 2.5]
    assert [found.place(method) for method in found.methods] == [1, 2, 3]
    assert found.near("sdoh") == ["hcoh", "lsh"]
    assert board.costs("lsh", blocks) == (pytest.approx(2e6 / 1497), pytest.approx(500))


def test_settings_are_tuned_unless_default_ones_were_run_in_more_blocks():
    both = [*rows_of("lsh", [0.1, 0.1]), *rows_of("lsh", [0.2, 0.2], settings="tuned")]
    board = Leaderboard(both)
    assert board.settings("lsh") == "tuned"
    board = Leaderboard([*both, *rows_of("lsh", [0.1] * 3)])
    assert board.settings("lsh") == "default"
    (value,) = board.found("lsh", PART.blocks[1]).values()
    assert value["metrics"]["map"] == 0.1
    other = row("lsh", 0.3, Block("mnist", "sorted", 32), settings="tuned")
    assert Leaderboard([*both, *rows_of("lsh", [0.1] * 3), other]).settings("lsh") == (
        "tuned, default"
    )


def test_a_value_is_the_mean_over_the_seeds_that_all_have():
    board = Leaderboard(
        [
            *(row("sdoh", 0.2 * seed, seed=seed) for seed in range(3)),
            *(row("lsh", 0.1, seed=seed) for seed in (0, 1, 7)),
        ]
    )
    found = board.ranking(PART, blocks=PART.blocks[:1])
    assert found.seeds[PART.blocks[0]] == (0, 1)
    assert found.values.ravel().tolist() == [0.1, 0.1]
    assert found.ranks.ravel().tolist() == [1.5, 1.5]
    kept = [(each["method"], each["seed"]) for each in board.rows]
    assert kept == [("sdoh", 0), ("sdoh", 1), ("lsh", 0), ("lsh", 1)]


def test_of_two_rows_of_a_cell_the_later_counts():
    rows = [row(quality=0.3, date="2026-02-01"), row(quality=0.2, date="2026-01-01")]
    for given in (rows, rows[::-1]):
        assert Leaderboard(given).rows[0]["metrics"]["map"] == 0.3


def test_who_has_no_rank_is_told_why():
    reuters = RULES.part("several-labels").blocks
    board = Leaderboard(
        [
            *(row("lsh", 0.5, block) for block in reuters),
            *(row("mihash", 0.5, block) for block in reuters[:4]),
            *(row("osh", 0.5, block, seed=1) for block in reuters),
            *rows_of("hcoh", [0.5]),
        ]
    )
    found = board.ranking("several-labels")
    assert found.methods == ("lsh",)
    assert found.unranked["hcoh"] == "for one label a row, and reuters has several"
    assert found.unranked["mihash"] == (
        "not run: reuters, runs, 32 bits; reuters, 20 % wrong labels, 32 bits"
    )
    assert found.unranked["osh"] == "6 blocks of reuters were not run"  # seed 0 is needed
    assert not found.is_tested
    by_class = Leaderboard([row("lsh", 0.5, reuters[0])])
    with pytest.raises(InputError, match="no method has rows in all blocks"):
        by_class.ranking("several-labels", "map_by_class", blocks=reuters[:1])
    with pytest.raises(InputError, match="metric='auc'"):
        board.ranking("several-labels", "auc")
    with pytest.raises(InputError, match="there is no ranking 'best'"):
        board.ranking("best")


def test_seeds_without_the_metric_do_not_count():
    block = RULES.part("several-labels").blocks[0]
    both = {"metrics": {"map": 0.4, "map_by_class": 0.3}}
    rows = [row("lsh", 0.5, block, seed=1), row("osh", 0.5, block, seed=1, **both)]
    rows += [row(method, 0.5, block, **both) for method in ("lsh", "osh")]
    found = Leaderboard(rows).ranking("several-labels", "map_by_class", blocks=[block])
    assert found.seeds[block] == (0,)
    assert Leaderboard(rows).ranking("several-labels", blocks=[block]).seeds[block] == (0, 1)


MISFITS = {
    "data set": ({"data": "mine"}, "data set mine is none of digits, mnist,"),
    "checksum of the data": (
        {"data_checksum": "00000000"},
        "checksum of the data: 00000000; on digits, 2099324e counts",
    ),
    "split": ({"split": "unseen"}, "split: unseen; on digits, all counts"),
    "database": ({"database_codes": "labelled"}, "database: labelled; on digits, encoded counts"),
    "length of the stream": ({"stream": 500}, "length of the stream: 500; on digits, 1497 counts"),
    "queries of each class": (
        {"queries_per_class": 5},
        "queries of each class: 5; on digits, 30 counts",
    ),
    "settings": ({"settings": "published"}, "settings: published; on digits, tuned or default"),
    "changed settings": ({"changes": {"ridge": 1}}, "changed settings: {'ridge': 1}; on digits"),
    "code length": ({"n_bits": 12}, "code length: 12; on digits, 32 or 48 or 64 or 128 counts"),
    "stream": ({"label_noise": 0.5}, "stream: shuffled, 0.5 wrong labels; shuffled, sorted,"),
    "mAP": ({"metrics": {"map": 1.5}}, "mAP: 1.5; it lies between 0 and 1"),
    "fields": ({"version": None, "machine": None}, "fields lack version, machine;"),
    "rows learned": ({"instances": 3}, "method has learned 3 of 1497 rows"),
    "seconds": ({"seconds": {}}, "seconds to learn and to encode are missing"),
    "method": ({"method": "best"}, "method: best; pass package.module:Class"),
}


@pytest.mark.parametrize("what", MISFITS)
def test_rows_that_do_not_fit_are_refused_in_a_file_and_counted_in_a_folder(what, tmp_path):
    change, why = MISFITS[what]
    folder = tmp_path / "run"
    folder.mkdir()
    path = folder / "rows.jsonl"
    both = row("mine:First"), row(**{"method": "mine:First"} | change)
    path.write_text("".join(f"{json.dumps(each)}\n" for each in both))
    with pytest.raises(FileError) as error:
        read_given([path])
    assert str(error.value).startswith(f"leaderboard: {path}, row 2 (")
    assert f"its {why}" in str(error.value)
    rows, left_out = read_given([folder])
    assert (len(rows), left_out) == (1, {what: 1})
    assert Leaderboard(both).left_out == {what: 1}


def test_rows_of_our_own_methods_are_not_replaced(tmp_path):
    """Their later date would win, silently."""
    path = tmp_path / "submitted" / "Mine" / "rows.jsonl"
    path.parent.mkdir(parents=True)
    given = row("mine:First"), row("sdoh", 0.1, date="2999-01-01")
    path.write_text("".join(f"{json.dumps(each)}\n" for each in given))
    said = (
        f"leaderboard: {path}, row 2 (sdoh): its method is one of streamhash, whose rows come with "
        "the package and are not replaced; run streamhash leaderboard --add for rows that fit, or "
        "leave this one out."
    )
    refused(run("leaderboard", path), said)
    with pytest.raises(FileError, match="method is one of streamhash") as error:
        read_results(tmp_path)
    assert str(error.value) == said
    rows, left_out = read_given([path.parent])
    assert [each["method"] for each in rows] == ["mine:First"]
    assert left_out == {"method of streamhash": 1}
    refused(
        run("leaderboard", "--add", "sdoh"),
        "leaderboard: SDOH is on it already; pass a method of your own, package.module:Class.",
    )


def test_where_classes_ask_unequally_both_means_are_shown():
    blocks = RULES.part("several-labels").blocks
    both = {"metrics": {"map": 0.4, "map_by_class": 0.3}}
    board = Leaderboard([row("lsh", 0, block, **both) for block in blocks])
    found = board.ranking("several-labels")
    assert board.shown_metrics(found) == ["map", "map_by_class"]
    assert board.mean(found, "lsh", "map_by_class") == pytest.approx(0.3)
    by_class = board.ranking("several-labels", "map_by_class")
    assert board.shown_metrics(by_class) == ["map_by_class", "map"]
    without = Leaderboard([row("lsh", 0.5, block) for block in blocks])
    assert without.mean(without.ranking("several-labels"), "lsh", "map_by_class") is None
    alike = Leaderboard(rows_of("lsh", [0.5] * len(PART.blocks)))
    assert alike.shown_metrics(alike.ranking(PART)) == ["map"]


def test_the_rows_of_the_package_are_those_of_results():
    board = Leaderboard(read_results(ROOT / "results"))
    text = write_shipped(board)
    shipped = (ROOT / "src/streamhash/lab/leaderboard.jsonl").read_text(encoding="utf-8")
    assert text == shipped, "run python docs/rebuild.py"
    assert len(shipped) < 1_000_000  # a tenth of it in a wheel
    again = read_leaderboard()
    assert again.left_out == {}
    for part in RULES.parts:
        assert again.ranking(part).mean_ranks == board.ranking(part).mean_ranks
        assert again.ranking(part).is_tested


def test_every_data_set_of_the_rules_has_rows_and_every_ranking_its_blocks():
    assert {each["data"] for each in shipped_rows()} == set(RULES.sets)
    for part in RULES.parts:
        assert set(part.data) <= set(RULES.sets)
        assert set(part.streams) <= set(RULES.streams)
        assert set(part.bits) <= set(RULES.bits)


@pytest.mark.parametrize("choice", [{}, {"order": "sorted"}, {"label_noise": 0.2}])
def test_the_command_of_a_cell_runs_that_cell(choice):
    (made,) = bench("lsh", "digits", checkpoints=1, jobs=1, **choice)
    program, verb, *words = shlex.split(cell_command(kept_fields(made)))
    assert (program, verb) == ("streamhash", "bench")
    result = run(verb, *words, "--json", "--jobs", "1")
    again = json.loads(result.stdout)
    assert row_key(again) == row_key(json.loads(json.dumps(made)))
    assert again["metrics"] == made["metrics"]


@pytest.fixture
def newcomer(tmp_path, monkeypatch):
    (tmp_path / "first_signs.py").write_text(METHOD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield "first_signs:FirstSigns"
    sys.modules.pop("first_signs", None)


def test_a_newcomer_runs_the_fixed_part_and_is_placed(newcomer, tmp_path):
    result = run("leaderboard", "--add", newcomer, "--data", "digits", "--out", "out", "--jobs", 1)
    assert result.exit_code == 0, result.stderr
    lines = (tmp_path / "out/FirstSigns.jsonl").read_text().splitlines()
    made = [json.loads(line) for line in lines]
    assert [(each["order"], each["label_noise"]) for each in made] == [
        *[("shuffled", 0), ("sorted", 0), ("halves", 0), ("runs", 0), ("shuffled", 0.2)],
    ]
    assert "Skipped mnist: not asked for." in result.stderr
    (said,) = [line for line in result.stdout.splitlines() if line.startswith("FirstSigns has")]
    others = len(read_leaderboard().methods)
    ranking = read_leaderboard(made).rankings(newcomer)[0]
    assert len(ranking.methods) <= others + 1
    place = ranking.place(newcomer)
    assert said.startswith(f"FirstSigns has place {place} of {len(ranking.methods)}, by a mean ")
    assert "over 5 blocks. The whole ranking has 25: its ranks may differ." in said
    assert (tmp_path / "out/index.html").exists()

    # Again: nothing runs. Its rows are read, and give the same place.
    again = run("leaderboard", "--add", newcomer, "--data", "digits", "--out", "out", "--jobs", 1)
    assert said in again.stdout
    assert len((tmp_path / "out/FirstSigns.jsonl").read_text().splitlines()) == 5
    given = run("leaderboard", "out/FirstSigns.jsonl", "--out", "out")
    assert said in given.stdout


def test_a_stopped_newcomer_goes_on(newcomer, tmp_path, monkeypatch):
    from streamhash.lab import find_method

    monkeypatch.syspath_prepend(tmp_path)
    first = add_method(newcomer, tmp_path / "out", data=["digits"], jobs=1)
    lines = first.rows_file.read_text().splitlines(keepends=True)
    first.rows_file.write_text("".join(lines[:2]))
    add_method(find_method(newcomer), tmp_path / "out", data=["digits"], jobs=1)
    again = first.rows_file.read_text().splitlines(keepends=True)
    assert (len(again), again[:2]) == (5, lines[:2])
    assert issubclass(find_method(newcomer), OnlineHasher)


def test_data_that_are_not_here_are_skipped_and_named(newcomer, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("STREAMHASH_DATA", str(tmp_path))
    monkeypatch.setenv("STREAMHASH_CACHE", str(tmp_path))
    with pytest.raises(InputError, match=r"nothing to run \(.*mnist: not on this machine"):
        add_method(newcomer, tmp_path / "out", data=["mnist"], jobs=1)


def test_what_the_verb_refuses(tmp_path):
    refused(
        run("leaderboard", "--data", "digits"),
        "leaderboard: --data is for --add; choose data sets in the page.",
    )
    refused(
        run("leaderboard", tmp_path / "none.jsonl"),
        f"leaderboard: there is no file or folder {tmp_path / 'none.jsonl'}; check it.",
    )
    (tmp_path / "empty.jsonl").touch()
    refused(
        run("leaderboard", tmp_path / "empty.jsonl"),
        f"leaderboard: {tmp_path / 'empty.jsonl'} has no rows; run streamhash leaderboard --add.",
    )
    (tmp_path / "index.html").write_text("mine")
    refused(
        run("leaderboard", "--out", tmp_path),
        f"{tmp_path / 'index.html'} was not written by streamhash; move it, or choose another "
        "folder.",
    )
