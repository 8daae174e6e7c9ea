"""Results beside a paper's: groups, places, differences, verdicts, and the four files of a report.

The rows are made up: a real row of the digits, with the facts of an experiment put in.
"""

import csv
import io
import re
from functools import cache, partial
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.io import savemat
from typer.testing import CliRunner

from command_line import run as run_command
from data import need_data
from mat_files import save_73
from streamhash.cli import app
from streamhash.errors import InputError, MissingDataError
from streamhash.lab import (
    Report,
    append_row,
    comparison_markdown,
    read_experiment,
    reproduce,
    run_cell,
    summarise,
    write_report,
)
from streamhash.lab.comparison import compare, own_method, papers_methods
from streamhash.lab.report.sentences import (
    closeness,
    lead_sentence,
    missing_sentence,
    protocol_sentence,
    verdicts,
)
from streamhash.lab.report.write import CSV_FIELDS, escape_latex, tint
from streamhash.lab.rows import read_folder

PRECISIONS = ("precision@1", "precision@10", "precision@50", "precision@100")
VALUES = {"sdoh": 0.8, "hcoh": 0.7, "mihash": 0.75, "hmoh": 0.85}  # hmoh: not in the paper


@cache
def real_row():
    return run_cell("lsh", "digits", 16, 0, stream=400, checkpoints=3)


STAGE_BY_STAGE = {"memory": 0, "features": None}  # as the ablation has SDOH's default settings


def made(method, n_bits, seed, value, *, settings="published", changes=None, **more):
    changes = changes or {}
    metric = more.get("curve_metric", "map")
    names = ("map", "map@1000", "precision@h2", "auc", *PRECISIONS)
    return {
        **real_row(),
        "method": method,
        "settings": settings,
        "changes": changes,
        "parameters": {"n_bits": n_bits, "random_state": seed, "rate": 0.5, **changes},
        "data": "mnist",
        "n_bits": n_bits,
        "seed": seed,
        "stream": 20_000,
        "queries_per_class": 100,
        "checkpoints": 10,
        "metrics": dict.fromkeys(names, value),
        "curve": [{"instances": 2000 * i, metric: value * i / 10} for i in range(1, 11)],
        "command": f"streamhash bench --method {method} --bits {n_bits} --first-seed {seed}",
        **more,
    }


def made_table(values=VALUES, bits=(32, 64), **more):
    return [
        made(method, k, seed, value + 0.01 * seed, **more)
        for method, value in values.items()
        for k in bits
        for seed in (0, 1)
    ]


def compared(rows, name="mnist-table", data="mnist"):
    return compare(read_experiment(name), summarise(rows), data)


@pytest.fixture(scope="module")
def table():
    return compared(made_table())


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    released = [made("osh", 32, 0, 0.13, changes={"state": "released"})]
    write_report([*made_table(), *released], folder, command="streamhash report x")
    return folder


def test_the_paper_is_about_its_last_method():
    experiment = read_experiment("mnist-curve")  # which prints no numbers itself
    assert len(papers_methods(experiment.paper)) == 8
    assert own_method(experiment) == "sdoh"


def test_published_lines_of_the_paper_stand_apart_from_the_others(table):
    titles = {group.title: [e.run.method for e in group.entries] for group in table.groups}
    assert titles == {
        "Published settings: the paper's methods": ["mihash", "hcoh", "sdoh"],
        "Published settings: others and variants": ["hmoh"],
    }
    assert "all with tuned settings" in missing_sentence(table)
    assert "BSODH" in missing_sentence(table)


def test_places_go_by_what_is_shown_and_one_alone_has_none(table):
    papers, others = table.groups
    places = {e.run.method: papers.place(e, "map", 32) for e in papers.entries}
    assert places == {"sdoh": 1, "mihash": 2, "hcoh": 0}
    assert papers.place(papers.entries[0], "map", 48) == 0  # not measured
    assert others.place(others.entries[0], "map", 32) == 0
    even = compared(made_table({"sdoh": 0.8, "hcoh": 0.80001, "mihash": 0.7})).groups[0]
    assert [even.place(e, "map", 32) for e in even.entries] == [2, 1, 1]


def test_differences_are_ours_minus_the_papers_for_its_own_lines_only(table):
    sdoh = next(e for e in table.entries() if e.run.method == "sdoh")
    hmoh = next(e for e in table.entries() if e.run.method == "hmoh")
    assert table.difference(sdoh, "map", 32) == pytest.approx(0.805 - 0.814)
    assert table.difference(sdoh, "map", 48) is None
    assert table.difference(hmoh, "map", 32) is None
    kept, released = (
        made("osh", 32, 0, 0.5),
        made("osh", 32, 0, 0.13, changes={"state": "released"}),
    )
    osh = compared([kept, released])
    by_changes = {bool(e.run.changes): osh.difference(e, "map", 32) for e in osh.entries()}
    assert by_changes == {True: pytest.approx(0.0), False: None}


def test_what_stands_in_shows_the_papers_value_and_no_difference():
    rows = made_table(data="cifar10-features", settings="tuned")
    stand_in = compared(rows, "cifar10-table", "cifar10-features")
    sdoh = next(e for e in stand_in.entries() if e.run.method == "sdoh")
    assert stand_in.paper(sdoh.run, "map", 32) == 0.765
    assert stand_in.difference(sdoh, "map", 32) is None
    assert stand_in.why_apart == "cifar10-features stands in for cifar10-vgg16"
    assert closeness(stand_in) == []
    assert lead_sentence(stand_in) == (
        "cifar10-features (stands in for cifar10-vgg16): what the paper says of SDOH holds in 4 "
        "of 4 columns with tuned settings."
    )


def test_verdicts_name_places_leaders_and_outsiders(table):
    (verdict,) = verdicts(table)
    assert (verdict.kind, verdict.outcome) == ("yes", "holds in 4 of 4 columns")
    assert "mAP: SDOH is first at 32 and 64 bits." in verdict.sentences
    assert verdict.sentences[-2].startswith("No rows with published settings yet: OKH, SketchHash")
    assert verdict.sentences[-1] == (
        "Not a line of the paper, and ahead of SDOH: HMOH in 4 of 4 columns."
    )
    (beaten,) = verdicts(compared(made_table({**VALUES, "sdoh": 0.72})))
    assert (beaten.kind, beaten.outcome) == ("no", "does not hold in any of 4 columns")
    assert beaten.sentences[0] == "mAP: SDOH is second at 32 and 64 bits (MIHash leads by .030)."
    assert verdicts(compared(made_table({"hcoh": 0.7, "mihash": 0.6}))) == []


def test_a_column_that_the_paper_does_not_claim_is_not_counted():
    rows = made_table(VALUES, (128,), data="cifar10-vgg16")
    (verdict,) = verdicts(compared(rows, "cifar10-table", "cifar10-vgg16"))
    assert verdict.cases == 1  # Precision@H2 at 128 bits is BSODH's in the paper


def test_curves_and_areas_are_judged_too():
    rows = made_table()
    (curve,) = verdicts(compared(rows, "mnist-curve"))
    assert curve.outcome == "holds at 20 of 20 looks"
    assert "at 4,000 instances and 32 bits, it has a mAP of .161" in curve.sentences[1]
    (area,) = verdicts(compared(rows, "mnist-auc"))
    assert "On average it is +6.6 % from the best of the others." in area.sentences


def test_an_ablation_compares_the_whole_with_its_parts():
    plain = [made("sdoh", 32, 0, 0.7, changes={"label_distribution": "plain"})]
    (verdict,) = verdicts(compared([*made_table(), *plain], "mnist-ablation"))
    assert verdict.outcome == "holds in 2 of 2 comparisons"
    near = [
        made("sdoh", 32, seed, value, changes={"label_distribution": "plain"})
        for seed, value in ((0, 0.7), (1, 0.9))  # worse on average, but not by the deviation
    ]
    (other,) = verdicts(compared([*made_table(), *near], "mnist-ablation"))
    assert other.kind == "no"
    assert verdict.sentences[0] == (
        "mAP, mean change over the lengths: label_distribution=plain −.105."
    )


def test_an_ablation_names_only_what_a_part_changes_in_the_whole():
    changes = {**STAGE_BY_STAGE, "label_distribution": "plain"}
    rows = [
        *made_table({"sdoh": 0.8}, settings="default", changes=STAGE_BY_STAGE),
        made("sdoh", 32, 0, 0.7, settings="default", changes=changes),
    ]
    (verdict,) = verdicts(compared(rows, "mnist-ablation"))
    assert verdict.sentences[0] == (
        "mAP, mean change over the lengths: label_distribution=plain −.105."
    )
    assert verdicts(compared(rows[4:], "mnist-ablation")) == []  # no whole to judge a part by


def test_closeness_counts_differences_as_they_are_shown(table):
    near, farthest = closeness(table)
    assert near.startswith("3 of 12 cells are within .020 of the paper's and 7 within .050;")
    assert farthest == ("Farthest: HCOH, P@H2 at 32 bits, .705 against the paper's .826.")
    assert (
        lead_sentence(table) == "mnist: SDOH's mean mAP over two lengths is .805, the paper's .808."
    )
    assert [tint(d) for d in (0.0204, 0.021, -0.06, -0.2)] == ["", "up1", "down2", "down3"]


def test_the_protocol_is_told_from_the_rows(table):
    assert protocol_sentence(table) == (
        "On mnist: 300 queries (100 of each class), 1,497 items (encoded) searched, a "
        "stream of 20,000 instances seen once, 2 seeds."
    )


def test_a_quick_look_is_said_loudly_and_not_compared(tmp_path):
    rows = [{**row, "stream": 4000, "checkpoints": 3} for row in made_table(bits=(32,))]
    contents = Report.of(rows)
    assert {c.experiment.is_quick for c in contents.comparisons} == {True}
    text = contents.markdown()
    assert "**No differences from the paper are taken: a quick look learns from" in text
    page = write_report(rows, tmp_path, command="c", figures=False).read_text(encoding="utf-8")
    assert "A quick look, not a reproduction: it learns from 4,000 instances only." in page
    assert "<i>" not in page[: page.index("How this was made")]
    both = Report.of([*rows, *made_table()])  # the whole run counts
    assert not any(c.experiment.is_quick for c in both.comparisons)
    assert {line.rows[0]["stream"] for line in both.rest} == {4000}


def test_a_quick_look_does_not_judge_methods_that_have_hardly_begun(tmp_path):
    def quick(of_method, name="mnist-table"):
        rows = [{**row, "stream": 4000, "checkpoints": 3} for row in made_table(bits=(32,))]
        rows = [{**row, **of_method.get(row["method"], {})} for row in rows]
        return rows, compare(read_experiment(name).quick(), summarise(rows), "mnist")

    rows, fair = quick({})
    assert [verdict.kind for verdict in verdicts(fair)] == ["yes"]
    places = {group.place(entry, "map", 32) for group in fair.groups for entry in group.entries}
    assert 1 in places
    rows, short = quick({"hcoh": {"parameters": {"batch_size": 4000}}})
    (verdict,) = verdicts(short)
    assert verdict.kind == "open"
    assert verdict.outcome == (
        "is not judged: a stream too short for HCOH, of which it is less than two stages"
    )
    places = {group.place(entry, "map", 32) for group in short.groups for entry in group.entries}
    assert places == {0}
    page = write_report(rows, tmp_path, command="c", figures=False).read_text(encoding="utf-8")
    assert "With published settings this is not judged: a stream too short for HCOH" in page
    both = {method: {"parameters": {"batch_size": 4000}} for method in ("hcoh", "sdoh")}
    assert "too short for HCOH and SDOH, of" in verdicts(quick(both)[1])[0].why_not
    looks = [{"instances": at, "map": 0.5} for at in (0, 100, 4000)]
    assert verdicts(quick({"hcoh": {"curve": looks}})[1])[0].kind == "yes"  # the end is the same
    (verdict,) = verdicts(quick({"hcoh": {"curve": looks}}, "mnist-curve")[1])
    assert verdict.why_not == "the methods were looked at after different numbers of instances"


def test_a_quick_look_says_in_the_terminal_what_does_not_compare(tmp_path, monkeypatch):
    rows = [{**row, "stream": 4000, "checkpoints": 3} for row in made_table(bits=(32,))]
    for row in rows:
        row["parameters"] = {"batch_size": 4000} if row["method"] == "hcoh" else {}
        append_row(tmp_path / "rows.jsonl", row)
    short = compare(read_experiment("mnist-table").quick(), summarise(rows), "mnist")
    monkeypatch.setattr("streamhash.lab.reproduce", lambda *_, **__: [short])
    words = ["reproduce", "mnist-table", "--quick", "--out", str(tmp_path)]
    said = CliRunner().invoke(app, words).stdout
    assert (
        "With published settings these do not compare: a stream too short for HCOH, of which it is "
        "less than two stages.\n"
    ) in said


def test_no_row_is_lost_in_silence():
    trials = [{**row, "split": "validation", "test_seeds": 3} for row in made_table()[:3]]
    other = [made("lsh", 32, 0, 0.3, data="digits")]
    again = made_table()[:1]
    contents = Report.of([*made_table(), *trials, *other, *again])
    assert contents.account() == (
        "21 rows: 16 in experiments of a paper, 1 by data set and code length, 3 left out as "
        "trials of a search for settings and 1 left out as their cells have later rows."
    )
    with_trials_only = Report.of(trials)
    assert not with_trials_only.has_lines


def test_a_default_line_alone_is_no_comparison_and_keeps_its_company():
    rows = made_table({"sdoh": 0.8}, settings="default", changes=STAGE_BY_STAGE)
    rows += made_table({"lsh": 0.3}, settings="default")
    contents = Report.of(rows)
    assert contents.comparisons == ()
    assert len(contents.rest) == 4
    changes = {**STAGE_BY_STAGE, "label_distribution": "plain"}
    plain = [made("sdoh", 32, 0, 0.7, settings="default", changes=changes)]
    contents = Report.of([*rows, *plain])
    assert [c.name for c in contents.comparisons] == ["mnist-ablation"]
    assert [line.method for line in contents.rest if line.n_bits == 64] == ["sdoh", "lsh"]
    assert contents.account().startswith("9 rows: 5 in experiments of a paper and 4 by data")


def test_markdown_marks_the_best_two_and_dashes_what_is_missing():
    experiment, lines = read_experiment("mnist-table"), summarise(made_table())
    text = comparison_markdown(experiment, lines, "mnist", "published")
    assert "| SDOH | **0.805 ± 0.007** (0.814) | – (0.799) | **0.805 ± 0.007** (0.802) |" in text
    assert "| MIHash | <u>0.755 ± 0.007</u> (0.744) |" in text
    assert "| HMOH | 0.855 ± 0.007 | – | 0.855 ± 0.007 | – |" in text
    assert text.count("| --- |") == 2
    assert comparison_markdown(experiment, lines, "mnist", "tuned") == ""


def test_latex_has_the_papers_form():
    rows = [*made_table(), made("osh", 32, 0, 0.13, changes={"state": "released"})]
    text = Report.of(rows).latex()
    assert text.count(r"\begin{table*}") == text.count(r"\end{table*}") > 1
    assert text.count("{") == text.count("}")
    assert text.isascii()
    for part in re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", text, re.DOTALL):
        form = re.search(r"\{tabular\}\{([c|]+)\}", part)[1]
        rows_of_it = [line for line in part.splitlines() if line.endswith(r"\\")]
        spans = [sum(map(int, re.findall(r"multicolumn\{(\d+)\}", line))) for line in rows_of_it]
        plain = [1 + line.count("&") - line.count("multicolumn") for line in rows_of_it]
        assert {a + b for a, b in zip(spans, plain, strict=True)} == {form.count("c")}
    assert r"\begin{tabular}{c|cccc|cccc}" in text
    assert r"SDOH & \textbf{.805}{\scriptsize$\pm$.007} & -- &" in text
    assert r"\underline{.755}" in text
    assert "OSH, state=released" in text
    assert "Published settings; mean $\\pm$ standard deviation; streamhash" in text


def test_latex_has_all_other_rows_by_data_set():
    """0.1.0 had LaTeX for experiments of the paper alone."""
    rows = [
        made("lsh", k, seed, 0.3, data="my_own", stream=400) for k in (16, 32) for seed in (0, 1)
    ]
    rows += [made("hcoh", 32, 0, 0.5, data="my_own", stream=400), made("lsh", 8, 0, 0.2, data="b")]
    text = Report.of(rows).latex()
    assert text.count(r"\begin{table*}") == text.count(r"\end{table*}") == 2
    assert text.count("{") == text.count("}")
    assert text.isascii()
    assert r"\caption{my\_own: " in text
    assert r"HCOH published & -- & \textbf{.500}" in text
    assert r"LSH published & .300{\scriptsize$\pm$.000} & \underline{.300}" in text
    for part in re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", text, re.DOTALL):
        n_columns = re.search(r"\{tabular\}\{([c|]+)\}", part)[1].count("c")
        cells = [line for line in part.splitlines() if line.endswith(r"\\") and "multi" not in line]
        assert {1 + line.count("&") for line in cells} == {n_columns}


def test_latex_names_the_parts_of_an_ablation_shortly():
    plain = made("sdoh", 32, 0, 0.7, changes={"label_distribution": "plain"})
    text = Report.of([*made_table(), plain]).latex()
    assert "SDOH, plain P & \\underline{.700} & -- &" in text


def test_latex_prints_special_characters_as_they_are():
    assert escape_latex("a_b & 5 % {x} #1 $ ~ ^ \\ ± − –") == (
        r"a\_b \& 5 \% \{x\} \#1 \$ \textasciitilde{} \textasciicircum{} \textbackslash{} "
        r"$\pm$ $-$ --"
    )


def test_csv_reads_back_to_the_same_numbers():
    contents = Report.of([*made_table(), made("lsh", 16, 0, 0.3, data="digits")])
    records = list(csv.DictReader(io.StringIO(contents.csv())))
    assert tuple(records[0]) == CSV_FIELDS
    (cell,) = [
        record
        for record in records
        if (record["experiment"], record["method"], record["n_bits"], record["metric"])
        == ("mnist-table", "sdoh", "32", "map")
    ]
    assert float(cell["mean"]) == pytest.approx(0.805)
    assert float(cell["std"]) == pytest.approx(0.00707, abs=1e-5)
    assert float(cell["difference"]) == pytest.approx(-0.009)
    assert (cell["n_seeds"], cell["paper"]) == ("2", "0.814")
    assert cell["command"] == "streamhash bench --method sdoh --bits 32 --first-seed 0"
    rest = [record for record in records if not record["experiment"]]
    assert {record["data"] for record in rest} == {"digits"}
    assert {record["paper"] for record in rest} == {""}


def test_the_command_tells_where_the_rows_went(tmp_path, monkeypatch):
    monkeypatch.setattr("streamhash.lab.have_figures", lambda: False)
    for row in made_table():
        append_row(tmp_path / "mnist" / "rows.jsonl", row)
    result = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert result.stdout == f"The report is in {tmp_path / 'index.html'}: open it in a browser.\n"
    assert result.stderr == (
        "16 rows: 16 in experiments of a paper.\n"
        'The report has no figures; for them, run pip install "streamhash[plots]".\n'
    )
    result = CliRunner().invoke(app, ["report", str(tmp_path), "--markdown"])
    assert result.stdout == (tmp_path / "report.md").read_text(encoding="utf-8").split("\n\n", 1)[1]


class Links(HTMLParser):
    """Checks that every element is closed, and gathers ids and what points at them."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.targets = [], [], []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids += [found["id"]] if "id" in found else []
        self.targets += [found["popovertarget"]] if "popovertarget" in found else []
        if found.get("href", "").startswith("#"):
            self.targets.append(found["href"][1:])
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, _tag, attributes):
        self.ids += [value for name, value in attributes if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_every_cell_opens(report):
    page = (report / "index.html").read_text(encoding="utf-8")
    parser = Links()
    parser.feed(page)
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))
    assert set(parser.targets) <= set(parser.ids)
    assert page.count('class="detail"') == 9  # one for each line, whatever the metrics
    assert "http:" not in page
    assert "https:" not in page
    assert not re.search(r"<(script|link|img|iframe|object)\b|@import|url\((?!#)", page)


def test_the_page_shows_ours_the_papers_and_the_difference(report):
    page = (report / "index.html").read_text(encoding="utf-8")
    std = '<span class="std">±.007</span>'
    assert f"<b>.805</b>{std}<small>.814 <i>−.009</i></small>" in page
    assert '<small>.756 <i class="down2">−.051</i></small>' in page
    assert "SDOH&#39;s mean mAP over two lengths is .805, the paper&#39;s .808." in page
    assert "authors&#39; program, transcribed to NumPy, one seed" in page
    assert "streamhash bench --method sdoh --bits 32 --first-seed 1" in page
    assert "the released program forgets its table of codewords" in page


def test_the_report_has_all_its_files(report):
    names = sorted(path.name for path in report.iterdir())
    assert names == [
        "index.html",
        "mnist-auc-published.png",
        "mnist-curve-published.png",
        "mnist-precision-published.png",
        "report.md",
        "results.csv",
        "tables.tex",
    ]
    write_report(made_table(), report, command="c", figures=False)  # ours are replaced


@pytest.mark.parametrize("name", ["index.html", "report.md", "tables.tex", "results.csv"])
def test_files_of_somebody_else_are_not_overwritten(name, tmp_path):
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=f"{name} was not written by streamhash; move it, or"):
        write_report(made_table(), tmp_path, command="c", figures=False)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_trials_alone_are_nothing_to_report(tmp_path):
    trials = [{**row, "split": "validation"} for row in made_table()]
    with pytest.raises(InputError, match="there are only trials of a search for settings"):
        write_report(trials, tmp_path, command="c")


def test_experiments_without_their_data_are_left_out_with_a_warning(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("STREAMHASH_DATA", str(tmp_path))
    monkeypatch.setenv("STREAMHASH_CACHE", str(tmp_path))
    assert reproduce("all", out=tmp_path / "results") == []
    assert caplog.messages[0] == (
        "cifar10-table is left out: its data are not here (streamhash data)."
    )
    with pytest.raises(MissingDataError, match=r"'mnist' .* is not in"):
        reproduce("mnist-table", out=tmp_path / "results")


@pytest.mark.slow
def test_a_reproduction_shares_its_cells_and_goes_on_where_it_was_stopped(tmp_path):
    need_data("mnist")
    names, states = ["mnist-table", "mnist-auc"], []
    run = partial(reproduce, quick=True, methods="lsh", out=tmp_path, jobs=1)
    table, area = run(names, progress=lambda state: states.append((state.n_done, state.n_total)))
    assert states == [(0, 2), (1, 2), (2, 2)]  # published and tuned, once for both
    assert (table.data, table.experiment.kind, area.experiment.kind) == ("mnist", "table", "auc")
    assert {entry.run.method for entry in table.entries()} == {"lsh"}
    states.clear()
    run(names, progress=lambda state: states.append((state.n_done, state.n_total)))
    assert states == [(0, 0)]


def papers_features(kind):
    """Made-up features with the name, the fields and the width of the paper's files."""
    random = np.random.default_rng(0)
    classes, d, n = (10, 4096, 5200) if kind == "cifar10" else (205, 128, 8300)
    y = np.arange(n) % classes
    X = random.standard_normal((classes, d), np.float32)[y] + random.standard_normal(
        (n, d), np.float32
    )
    if kind == "cifar10":
        train, test = slice(0, -1000), slice(-1000, None)
        fields = {"trainCNN": X[train], "testCNN": X[test]}
        return "CIFAR10_VGG16_fc7.mat", fields | {
            "trainLabels": y[train, None],
            "testLabels": y[test, None],
        }
    return "Places205_AlexNet_fc7_PCA128.mat", {"pca_feats": X, "labels": y[:, None]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "save", "methods"),
    [
        ("cifar10", savemat, "hcoh,lsh"),
        ("cifar10", save_73, "hcoh,lsh"),
        ("places205", savemat, "hcoh,lsh"),
        ("places205", save_73, "all"),
    ],
    ids=["cifar10-5", "cifar10-7.3", "places205-5", "places205-7.3"],
)
def test_with_the_papers_own_features_one_command_makes_the_missing_table(
    tmp_path, monkeypatch, kind, save, methods
):
    """By the command itself: both layouts, published settings, and for one all of the table."""
    name, fields = papers_features(kind)
    save(tmp_path / name, fields)
    monkeypatch.setenv("STREAMHASH_DATA", str(tmp_path))
    monkeypatch.setenv("STREAMHASH_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "results"
    result = run_command(
        *("reproduce", f"{kind}-table", "--quick", "--method", methods, "--out", out),
        *("--jobs", 1),
    )
    assert result.exit_code == 0, result.stderr
    data = {"cifar10": "cifar10-vgg16", "places205": "places205"}[kind]
    experiment = read_experiment(f"{kind}-table").quick()
    table = compare(experiment, summarise(read_folder(out)), data)
    found = {
        entry.run.method: entry.mean("map", 32)
        for entry in table.entries()
        if entry.run.settings == "published"
    }
    assert set(found) == set(experiment.methods if methods == "all" else methods.split(","))
    assert found["hcoh"] > found["lsh"] > 1 / len(np.unique(fields.get("labels", range(10))))
    texts = [
        (out / file).read_text("utf-8") for file in ("index.html", "tables.tex", "results.csv")
    ]
    assert all(data in text for text in texts)
    papers = str(experiment.published("hcoh", experiment.metrics[0], 32))[1:]
    assert papers in texts[0]  # beside ours
