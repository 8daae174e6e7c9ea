"""The paper's experiments as files: complete, runnable as they stand, and found again in rows."""

import math
import re
from pathlib import Path

import pytest

from streamhash.errors import InputError
from streamhash.hashers import METHODS
from streamhash.lab import (
    experiment_names,
    plan_cell,
    read_experiment,
    row_key,
    run_cell,
    summarise,
)
from streamhash.lab.datasets import available, load_data
from streamhash.lab.experiment import Run

PAPER = Path(__file__).parents[3] / "shared" / "paper.tex"
PAPERS_METHODS = ["okh", "sketchhash", "adapthash", "osh", "mihash", "hcoh", "bsodh", "sdoh"]
TABLES = {"cifar10": "cifar-map", "places205": "places-map", "mnist": "mnist-map"}


def test_there_is_one_for_every_table_and_figure():
    kinds = ("table", "precision", "curve", "auc", "unseen", "ablation")
    assert experiment_names() == [
        f"{data}-{kind}" for data in ("cifar10", "mnist", "places205") for kind in kinds
    ]


@pytest.mark.parametrize("name", experiment_names())
def test_every_run_can_be_made(name):
    experiment = read_experiment(name)
    known = {card.name for card in available()}
    assert experiment.title
    assert experiment.paper
    for protocol in experiment.protocols:
        assert protocol.data in known
        runs = experiment.runs(protocol.data)
        assert len({(run.method, run.settings, str(run.changes)) for run in runs}) == len(runs)
        for run in runs:
            assert run.settings in ("default", "published", "tuned")
            rules = METHODS[run.method].rules
            for parameter, value in run.changes.items():
                assert rules[parameter].allows(value)
    for numbers in experiment.numbers:
        assert numbers.method in METHODS
        for values in numbers.values.values():
            assert set(values) <= set(experiment.bits)


def numbers_in_the_paper(label):
    """Read a table of the paper from its TeX: values by method, dashes as NaN."""
    text = PAPER.read_text(encoding="utf-8")
    end = text.index(f"\\label{{{label}")
    body = text[text.rindex("\\begin{tabular}", 0, end) : end]
    found = {}
    for line in body.replace("\n                        &", " &").splitlines():
        name, *cells = line.partition("\\\\")[0].split("&")
        if name.strip().lower() in PAPERS_METHODS:
            bare = [re.sub(r"[^\d.]", "", cell) for cell in cells]
            found[name.strip().lower()] = [float(cell) if cell else math.nan for cell in bare]
    return found


@pytest.mark.skipif(not PAPER.exists(), reason="needs the paper's TeX in ../shared")
@pytest.mark.parametrize("data", TABLES)
def test_published_numbers_are_those_of_the_paper(data):
    experiment = read_experiment(f"{data}-table")
    printed = numbers_in_the_paper(TABLES[data])
    assert list(printed) == PAPERS_METHODS
    for method, values in printed.items():
        ours = [
            experiment.published(method, metric, bits)
            for metric in experiment.metrics
            for bits in experiment.bits
        ]
        assert ours == [None if math.isnan(value) else value for value in values]


def test_figures_share_the_cells_of_their_table():
    table, figure = read_experiment("mnist-table"), read_experiment("mnist-precision")
    assert figure.runs("mnist") == table.runs("mnist")
    assert figure.protocols == table.protocols
    assert figure.metrics[-1] == "precision@100"


def test_the_papers_osh_is_the_one_that_forgets():
    runs = read_experiment("mnist-table").runs("mnist")
    papers = [run for run in runs if run.method == "osh" and run.is_papers]
    assert [run.changes for run in papers] == [{"state": "released"}]
    assert Run("osh", "published", bits=(32, 48, 64, 128)) in runs
    assert sum(run.is_papers for run in runs if run.method == "sdoh") == 1


def test_the_papers_data_come_first_and_the_synthetic_only_if_asked_for():
    places = read_experiment("places205-table")
    assert places.choose_data({"places205", "miniplaces-features"}) == "places205"
    assert places.choose_data({"miniplaces-features", "places205-synthetic"}) == (
        "miniplaces-features"
    )
    assert places.choose_data({"places205-synthetic"}) is None
    assert places.protocol("places205-synthetic").stream == 100_000


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="there is no experiment 'table-1'; choose from cifar10-"):
        read_experiment("table-1")
    with pytest.raises(InputError, match="mnist-table is not defined on digits; pass one of mnist"):
        read_experiment("mnist-table").runs("digits")


def as_if(row, **facts):
    """The row as if it were of other data."""
    return {**row, **facts}


def test_cells_are_found_among_rows_by_their_whole_protocol():
    row = run_cell("hcoh", "digits", 32, 0, stream=200, checkpoints=2)
    experiment = read_experiment("mnist-table")
    facts = {"data": "mnist", "stream": 20_000, "queries_per_class": 100, "checkpoints": 10}
    facts["settings"] = "published"
    other = {"learning_rate": 0.3}
    rows = [
        as_if(row, **facts),
        as_if(row, **facts, seed=1),
        as_if(row, **{**facts, "stream": 2000}, seed=2),
        as_if(row, **facts, split="unseen", seed=3),
        as_if(row, **facts, changes=other, parameters={**row["parameters"], **other}, seed=4),
    ]
    found = experiment.found(summarise(rows), "mnist")
    filled = [(run, by_bits) for run, by_bits in found if by_bits]
    assert [(run.method, run.settings) for run, _ in filled] == [("hcoh", "published")]
    assert [row["seed"] for row in filled[0][1][32].rows] == [0, 1]


def test_a_quick_look_is_smaller_and_says_so():
    quick = read_experiment("mnist-table").quick()
    assert "a quick look" in quick.title
    assert (quick.bits, quick.seeds) == ((32,), 1)
    assert quick.protocol("mnist").stream == 4000
    assert quick.published("sdoh", "map", 32) == 0.814
    assert read_experiment("mnist-unseen").quick().bits == (64,)


def test_plans_follow_the_file_seed_by_seed():
    experiment = read_experiment("mnist-unseen")
    digits = load_data("digits")
    smaller = type(digits)("mnist", digits.X, digits.y, digits.card)
    plans = experiment.plans(smaller, seeds=2, methods=["sdoh"])
    assert [plan.seed for plan in plans] == sorted(plan.seed for plan in plans)
    assert {plan.split for plan in plans} == {"unseen"}
    assert {plan.checkpoints for plan in plans} == {1}
    assert {"learning_rate": 0.01} in [plan.changes for plan in plans]
    keys = [row_key(plan.identity()) for plan in plans]
    assert len(keys) == len(set(keys))


def test_unseen_classes_are_neither_learned_nor_missing():
    row = run_cell(
        "sdoh", "digits", 16, 0, split="unseen", queries_per_class=20, stream=500, checkpoints=1
    )
    assert row["queries"] == 3 * 20
    assert row["database"] < 600
    assert 0 < row["metrics"]["precision@100"] <= 1
    with pytest.raises(InputError, match="split='half' is unknown; pass one of all, unseen"):
        plan_cell("lsh", "digits", 8, 0, split="half")
