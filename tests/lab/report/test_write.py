"""The page, its figures and its words."""

import itertools
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from streamhash.errors import InputError
from streamhash.lab import run_cell, summarise, write_report
from streamhash.lab.report.figures import _spread
from streamhash.lab.report.sentences import (
    describe_curve,
    describe_distances,
    describe_precision,
    headline,
)

VOID = {"meta", "br", "link", "img", "input", "hr"}


@pytest.fixture(scope="module")
def rows():
    return [
        run_cell(method, "digits", 16, seed, stream=400, checkpoints=3)
        for method in ("sdoh", "lsh")
        for seed in (0, 1)
    ]


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    write_report(rows, folder, command="streamhash demo <&>")
    return folder


@pytest.fixture(scope="module")
def page(folder):
    return (folder / "index.html").read_text(encoding="utf-8")


class Balance(HTMLParser):
    """Checks that every element is closed, and gathers ids."""

    def __init__(self):
        super().__init__()
        self.open, self.ids = [], []

    def handle_starttag(self, tag, attributes):
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, _tag, attributes):
        self.ids += [value for name, value in attributes if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_its_ids_are_unique(page):
    parser = Balance()
    parser.feed(page)
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))


def test_the_page_loads_nothing(page):
    assert "http:" not in page
    assert "https:" not in page
    assert not re.search(r"<(script|link|img|iframe|object)\b|@import|url\((?!#)", page)


def test_every_reference_within_the_page_has_its_target(page):
    targets = set(re.findall(r'(?:href="#|url\(#)([^")]+)', page))
    assert targets
    assert targets <= set(re.findall(r'id="([^"]+)"', page))


def test_the_page_has_the_headline_the_table_and_three_figures(page, rows):
    lines = summarise(rows)
    assert headline(lines) in page
    assert page.count("<svg") == 3
    assert lines[0].text("map") in page
    assert "streamhash demo &lt;&amp;&gt;" in page
    assert rows[0]["machine"]["cpu"] in page
    assert rows[0]["command"] in page
    assert "prefers-color-scheme: dark" in page


def test_figures_take_their_colours_from_the_page(page):
    svg = page[page.index("<svg") : page.rindex("</svg>")]
    assert "var(--c0072b2)" in svg
    assert "#0072b2" not in svg


def test_figures_are_saved_as_pictures(folder):
    names = sorted(path.name for path in folder.glob("*.png"))
    assert names == ["distances-digits-16.png", "map-digits-16.png", "precision-digits-16.png"]
    for name in names:
        content = (folder / name).read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) > 10_000


def test_the_words_tell_the_numbers(rows):
    lines = summarise(rows)
    best, floor = (f"{line.mean('map'):.3f}" for line in lines)
    assert headline(lines) == (
        "After one pass over 400 instances of digits, the 16-bit codes of SDOH reach a mean "
        f"average precision of {best}; random codes of the same length (LSH) reach {floor}."
    )
    assert headline(lines[:1]).endswith(f"precision of {best}.")
    assert describe_curve(lines).startswith("Quality while the stream goes by: SDOH starts at 0.")
    assert describe_precision(lines).endswith(" with LSH are similar to the query.")
    assert " with SDOH." in describe_distances(lines)
    assert describe_distances(lines[1:]).endswith(
        "the less the two overlap, the better the search."
    )


def test_without_figures_the_page_still_shows_the_table(rows, tmp_path):
    page = write_report(rows, tmp_path, command="c", figures=False).read_text(encoding="utf-8")
    assert "<svg" not in page
    assert "mAP@1000" in page


def test_several_groups_each_say_their_result(rows, tmp_path):
    both = [*rows, *({**row, "data": "other"} for row in rows)]
    page = write_report(both, tmp_path, command="c", figures=False).read_text(encoding="utf-8")
    assert page.count("<h2>") == 3
    assert "instances of other" in page


def test_a_page_of_somebody_else_is_not_overwritten(rows, tmp_path):
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(InputError, match="was not written by streamhash; move it"):
        write_report(rows, tmp_path, command="c")
    assert (tmp_path / "index.html").read_text() == "mine"
    with pytest.raises(InputError, match="there are no result rows"):
        write_report([], tmp_path, command="c")


def test_labels_are_spread_without_leaving_their_order_or_the_axes():
    places = _spread([0.1, 0.1, 0.5, 0.99, 1.0], 1.0)
    assert places == sorted(places)
    assert min(b - a for a, b in itertools.pairwise(places)) > 0.06
    assert places[-1] <= 1.0


@pytest.mark.slow
def test_missing_matplotlib_is_one_clear_error():
    code = (
        "import sys; sys.modules['matplotlib.figure'] = None\n"
        "from streamhash.lab.report.figures import draw_curves\n"
        "try: draw_curves([])\n"
        "except Exception as error: sys.stdout.write(f'{type(error).__name__}: {error}')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "MissingPartError: a figure needs matplotlib, which is not installed; "
        'run pip install "streamhash[plots]".'
    )


@pytest.mark.slow
def test_missing_jinja2_is_one_clear_error():
    code = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from streamhash.lab import Report\n"
        "try: Report.of([]).markdown()\n"
        "except Exception as error: sys.stdout.write(f'{type(error).__name__}: {error}')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "MissingPartError: a report needs jinja2, which is not installed; "
        'run pip install "streamhash[plots]".'
    )


def test_rows_with_classes_get_their_figure(tmp_path):
    choices = {"stream": 400, "checkpoints": 3, "order": "sorted", "curve_by_class": True}
    rows = [run_cell("sdoh", "digits", 16, seed, **choices) for seed in (0, 1)]
    page = write_report(rows, tmp_path, command="streamhash bench").read_text(encoding="utf-8")
    assert (tmp_path / "classes-digits-16.png").exists()
    assert "Each class along the stream" in page
    assert "SDOH (sorted)" in page
