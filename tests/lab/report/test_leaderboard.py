"""The page of the leaderboard in a real browser; its tables and its diagram."""

import csv
import io
import json
import re
import shutil
from pathlib import Path

import pytest

from streamhash.lab import read_leaderboard, write_leaderboard
from streamhash.lab.leaderboard import RANKED_BY
from streamhash.lab.report.leaderboard import draw_ranks, placement, ranking_markdown, sentences
from streamhash.lab.rows import method_name

CHROMIUM = shutil.which("chromium")
SECONDS = 20_000


@pytest.fixture(scope="module")
def board():
    return read_leaderboard()


@pytest.fixture(scope="module")
def folder(board, tmp_path_factory):
    folder = tmp_path_factory.mktemp("leaderboard")
    assert write_leaderboard(board, folder) == folder / "index.html"
    return folder


def test_all_files_are_there_and_can_be_written_again(board, folder):
    names = {path.name for path in folder.iterdir()}
    assert names == {
        *("index.html", "leaderboard.md", "leaderboard.csv"),
        *("critical-difference.png", "critical-difference.svg"),
    }
    write_leaderboard(board, folder)


def test_the_page_has_no_outside_address(folder):
    page = (folder / "index.html").read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not a place


def test_markdown_has_a_line_for_each_ranked_method(board):
    for ranking in board.rankings():
        head, _, *lines = ranking_markdown(board, ranking).split("\n\n")[0].splitlines()
        assert head.startswith("|  | method | settings | mean rank | mean mAP |")
        assert ("| mean mAP by class |" in head) == (ranking.part.name == "several-labels")
        cells = [line.strip("| ").split(" | ") for line in lines]
        assert [row[1] for row in cells] == [method_name(method) for method in ranking.methods]
        assert [row[3] for row in cells] == [f"{rank:.2f}" for rank in ranking.mean_ranks]
        said = " ".join(sentences(ranking))
        assert f"Mean ranks less than {ranking.difference:.2f} apart" in said
        for method in ranking.unranked:
            assert method_name(method) in said


def test_csv_has_a_line_for_each_method_in_each_block(board, folder):
    rows = list(csv.DictReader(io.StringIO((folder / "leaderboard.csv").read_text())))
    rankings = board.rankings()
    assert len(rows) == sum(len(each.methods) * len(each.blocks) for each in rankings)
    assert float(rows[0]["map"]) == pytest.approx(rankings[0].values[0, 0], abs=1e-6)
    assert float(rows[0]["rank"]) == rankings[0].ranks[0, 0]
    assert rows[0]["command"].startswith("streamhash bench --data digits --method ")


def test_the_diagram_names_every_method_once(board):
    ranking = board.rankings()[0]
    texts = [text.get_text() for text in draw_ranks(ranking).axes[0].texts]
    for method, rank in zip(ranking.methods, ranking.mean_ranks, strict=True):
        found = [text for text in texts if method_name(method) in text.split()]
        assert len(found) == 1
        assert f"{rank:.2f}" in found[0]


def test_where_a_method_stands(board):
    ranking = board.rankings()[0]
    said = placement(ranking, ranking.methods[1])
    name = method_name(ranking.methods[1])
    assert said.startswith(f"{name} has place 2 of {len(ranking.methods)}, by a mean rank of")
    part = board.ranking(ranking.part, blocks=ranking.blocks[:3])
    said = placement(part, part.methods[0])
    assert f"over 3 blocks. The whole ranking has {len(ranking.blocks)}: its ranks" in said


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser, folder):
    """The page, from a file; it must have had no error, and asked for nothing else."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(SECONDS)
    tab = context.new_page()
    errors, asked = [], []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("console", lambda said: said.type == "error" and errors.append(said.text))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto((folder / "index.html").as_uri())
    yield tab
    context.close()
    assert errors == []
    assert {Path(address.partition("#")[0]).name for address in asked} == {"index.html"}


def shown(page):
    """What the table shows of ranked methods, in its order: their paths and mean ranks."""
    found = page.eval_on_selector_all(
        "#table tbody tr:not(.out)",
        "rows => rows.map(row => [row.dataset.method, Number(row.cells[3].textContent)])",
    )
    return dict(found)


def wanted(ranking):
    ranks = dict(zip(ranking.methods, ranking.mean_ranks, strict=True))
    return pytest.approx(ranks, abs=0.00501)  # shown with two digits


def choose(page, name, value):
    page.locator(f'input[name="{name}"][value="{value}"]').evaluate("input => input.click()")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_the_page_ranks_as_python_does(page, board):
    for ranking in board.rankings():
        choose(page, "parts", ranking.part.name)
        assert shown(page) == wanted(ranking)
        said = page.inner_text("#tests")
        statistic, chance = ranking.friedman
        assert f"χ² = {statistic:.1f}, p " in said
        assert ("below .0001" if chance < 1e-4 else f"= {chance:.4f}") in said
        assert f"Critical difference {ranking.difference:.2f}." in said
        near = page.inner_text("#tests").rpartition(": ")[2]
        names = [method_name(method) for method in ranking.near(ranking.methods[0])]
        assert re.findall(r"\w+", near.replace(" and ", " ")) == (names or ["none"])
        unranked = page.inner_text("#unranked")
        for method, why in ranking.unranked.items():
            assert method_name(method) in unranked
            assert why in unranked
        drawn = page.locator("#diagram text").all_text_contents()
        assert sum(len(text.split()) == 2 and "CD" not in text for text in drawn) == len(
            ranking.methods
        )


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_choices_rank_anew_and_the_address_keeps_them(page, board, browser):
    part = board.rules.part("one-label")
    blocks = [block for block in part.blocks if block.data != "mnist" and block.stream != "sorted"]
    choose(page, "data", "mnist")
    choose(page, "streams", "sorted")
    found = board.ranking(part, blocks=blocks)
    assert shown(page) == wanted(found)
    choose(page, "metrics", "map_by_class")
    assert "mean mAP by class" in page.inner_text("#table thead").replace("\n", " ")
    by_class = board.ranking(part, "map_by_class", blocks=blocks)
    assert shown(page) == wanted(by_class)
    other = browser.new_page()
    other.goto(page.url)
    other.wait_for_selector("#table tbody tr")
    assert [*shown(other)] == [*shown(page)]
    other.close()
    choose(page, "methods", 0)  # without the first of streamhash's methods
    assert board.methods[0] not in shown(page)
    assert len(shown(page)) == len(found.methods) - 1
    assert list(RANKED_BY) == ["map", "map_by_class"]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_headings_sort_and_a_value_opens_its_command(page, board):
    page.get_by_role("button", name="learn, µs a row").click()
    costs = page.eval_on_selector_all(
        "#table tbody tr:not(.out)", "rows => rows.map(row => Number(row.cells[5].textContent))"
    )
    assert costs == sorted(costs)
    page.get_by_role("button", name="learn, µs a row").click()
    assert next(iter(shown(page))) == max(
        board.ranking().methods, key=lambda method: board.costs(method, board.ranking().blocks)[0]
    )
    page.locator('tr[data-method="sdoh"] td button').first.click()
    detail = page.locator("#detail")
    assert "streamhash bench --data digits --method sdoh" in detail.inner_text()
    detail.get_by_role("button", name="Close").click()
    assert not detail.is_visible()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(page, width, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    page.reload()
    page.wait_for_selector("#diagram svg")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    clipped = """texts => texts.filter(text => {
        const box = text.getBoundingClientRect();
        const frame = text.ownerSVGElement.getBoundingClientRect();
        return box.left < frame.left - 1 || box.right > frame.right + 1;
    }).map(text => text.textContent)"""
    assert page.eval_on_selector_all("#diagram text", clipped) == []


def test_what_the_page_knows_cannot_end_its_script(board, tmp_path):
    path = "my</script>module:Class"
    rows = [json.loads(json.dumps(row)) for row in board.rows if row["method"] == "lsh"]
    mine = read_leaderboard([{**row, "method": path} for row in rows])
    page = write_leaderboard(mine, tmp_path, newcomer=path).read_text(encoding="utf-8")
    assert page.count("</script>") == 2
