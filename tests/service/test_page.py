"""The page in a real browser, against a real service process with a collection of digits."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from contextlib import contextmanager, suppress
from importlib.resources import files

import numpy as np
import pytest
from sklearn.datasets import load_digits

from streamhash import SDOH, unpack
from streamhash.hashers import METHODS

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
for part in ("lance", "fastapi", "uvicorn"):
    pytest.importorskip(part, reason=f"{part} is not installed")
from playwright.sync_api import expect  # noqa: E402

from streamhash.live import Collection  # noqa: E402

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
if BROWSER is None:
    pytest.skip(
        "Chromium is not installed; as root: apt-get install chromium", allow_module_level=True
    )

pytestmark = pytest.mark.slow
PAGE = files("streamhash.service").joinpath("page")
QUIET = [  # Chromium asks nobody for updates, and runs as root
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SECONDS = 30_000  # patience with a busy machine, in milliseconds
READ, WRITE = "a-token-that-reads", "a-token-that-writes"
X, y = load_digits(return_X_y=True)
y = y.tolist()
expect.set_options(timeout=SECONDS)


@contextmanager
def serving(path, **environment):
    """Run ``streamhash serve``, and give its address."""
    program = "from streamhash.cli import main; main()"
    command = [sys.executable, "-c", program, "serve", str(path), "--port", "0"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        line = process.stdout.readline()
        yield re.search(r"http://\S+?:\d+", line).group()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def ask(address, body=None):
    """Ask the service as a program does."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:  # kernels may be compiled first
        return json.load(answer)


def digits(start, stop):
    metadata = [{"image": {"width": 8, "height": 8}, "row": i} for i in range(start, stop)]
    ids = list(range(start, stop))
    return ids, X[start:stop], y[start:stop], metadata


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service with 500 digits and two models, that has learned since."""
    path = tmp_path_factory.mktemp("page") / "digits"
    hasher = SDOH(32, batch_size=50, random_state=0)
    with Collection.create(path, hasher, refresh="manual") as collection:
        for start in range(0, 500, 100):
            ids, rows, labels, metadata = digits(start, start + 100)
            collection.add(ids, rows, labels, metadata=metadata)
            if start == 200:
                collection.refresh()
    with serving(path) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=BROWSER, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture
def tab(browser):
    """Open a page on an address; at the end it must have had no error and no other host."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(SECONDS)
    page = context.new_page()
    page.errors, page.expected, hosts = [], [], set()
    page.on("console", lambda said: said.type in ("error", "warning") and note(page, said.text))
    page.on("pageerror", lambda error: note(page, str(error)))
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    yield page
    home = page.url.split("/")[2]
    context.close()
    unexpected = [text for text in page.errors if not any(map(text.__contains__, page.expected))]
    assert unexpected == []
    assert hosts == {home}


def note(page, text):
    page.errors.append(text)


def grid(page):
    return page.locator(".grid .cell")


def neighbours(page):
    return page.locator(".neighbours > li")


# ------------------------------------------------------------------------------------------ search


def test_search_by_a_click(tab, service):
    tab.goto(service)
    expect(grid(tab)).to_have_count(24)
    tab.get_by_label("Search with item 497, ").click()
    expect(neighbours(tab)).to_have_count(10)
    answer = ask(f"{service}/api/search", {"ids": [497], "k": 10})
    shown = [int(text) for text in tab.locator(".neighbours .distance b").all_inner_texts()]
    assert shown == [each["distance"] for each in answer["results"][0]]
    expect(tab.locator(".hex")).to_have_text(answer["codes"][0])
    same = sum(each["label"] == y[497] for each in answer["results"][0])
    expect(tab.locator(".query")).to_contain_text(f"{same} of 10 neighbours have its label")
    expect(tab.locator(".neighbours .other")).to_have_count(10 - same)
    expect(tab.locator(".neighbours canvas")).to_have_count(10)  # their pictures
    assert tab.url.endswith("#search?id=497")
    # Each strip marks as many bits as the distance says.
    for i, distance in enumerate(shown):
        name = tab.locator(".neighbours .strip").nth(i).get_attribute("aria-label")
        assert name.endswith(f"; {distance} differ from the query")
    # A neighbour is a query in its turn, and the browser's way back leads back.
    tab.locator(".neighbour-link").first.click()
    expect(tab.locator(".query h2")).not_to_have_text("Item 497")
    tab.go_back()
    expect(tab.locator(".query h2")).to_have_text("Item 497")


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


FILES = {
    "one.npy": npy(X[7].astype(np.float32)),
    "columns.npy": npy(np.asfortranarray(X[7:9])),
    "rows.json": json.dumps({"vectors": X[7:9].tolist()}).encode(),
    "named.csv": "\n".join(
        [",".join(f"f{i}" for i in range(64)), ",".join(map(str, X[7]))]
    ).encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_search_with_a_file(tab, service, name):
    tab.goto(service)
    expect(grid(tab).first).to_be_visible()
    drop(tab, name, FILES[name])
    expect(tab.locator(".query h2")).to_have_text(name)
    first = neighbours(tab).first
    expect(first.locator(".distance")).to_have_text("0 bits")
    body = {"vectors": [X[7].tolist()], "k": 10}
    expect(tab.locator(".hex")).to_have_text(ask(f"{service}/api/search", body)["codes"][0])
    if name in ("columns.npy", "rows.json"):
        tab.get_by_role("button", name="Next row").click()
        expect(tab.locator(".query")).to_contain_text("Row 2 of 2")
        body = {"vectors": [X[8].tolist()], "k": 10}
        expect(tab.locator(".hex")).to_have_text(ask(f"{service}/api/search", body)["codes"][0])


def drop(page, name, content):
    """Let go of a file over the page, as a hand does."""
    transfer = page.evaluate_handle(
        """([name, bytes]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(bytes)], name));
            return transfer;
        }""",
        [name, list(content)],
    )
    for event in ("dragenter", "dragover", "drop"):
        page.dispatch_event(".drop", event, {"dataTransfer": transfer})


UNUSABLE = [
    ("short.json", b"[1, 2, 3]", "has 3 numbers; vectors of this collection have 64"),
    ("text.csv", b"a,b\nc,d", "has 2 numbers"),
    ("holes.csv", b",".join([b"1"] * 63 + [b""]), "no finite number"),
    ("broken.npy", b"not a numpy file at all", "does not begin like one"),
    ("cut.npy", npy(X[:2])[:-8], "ends too early"),
    ("words.npy", npy(np.array(["a", "b"])), "Only arrays of numbers"),
    ("half.json", b"[1, 2", "no JSON"),
    ("empty.csv", b"", "holds no vector"),
    ("picture.gif", b"GIF89a", "none of .npy, .json and .csv"),
]


def test_files_that_cannot_be_used_are_explained(tab, service):
    tab.goto(service)
    expect(grid(tab).first).to_be_visible()
    for name, content, words in UNUSABLE:
        tab.locator("input[type=file]").set_input_files(
            {"name": name, "mimeType": "", "buffer": content}
        )
        expect(tab.get_by_role("alert")).to_contain_text(words)


def test_an_answer_that_comes_late_leaves_the_explanation(tab, service):
    held = []
    tab.route("**/search", lambda route: held.append(route))
    with tab.expect_request("**/search"):  # with the newest item, as an example
        tab.goto(service)
    expect(grid(tab).first).to_be_visible()
    assert held
    name, content, words = UNUSABLE[0]
    tab.locator("input[type=file]").set_input_files(
        {"name": name, "mimeType": "", "buffer": content}
    )
    expect(tab.get_by_role("alert")).to_contain_text(words)
    for route in held:
        with suppress(sync_api.Error):  # its request is gone
            route.continue_()
    tab.wait_for_timeout(2000)
    expect(tab.get_by_role("alert")).to_contain_text(words)


def test_numpy_files_are_read_exactly(tab, service):
    tab.goto(service)
    program = """async (bytes) => {
        const { fromNpy } = await import("/static/vectors.js");
        return fromNpy(new Uint8Array(bytes).buffer);
    }"""
    for kind in ("<f4", ">f4", "<f8", ">f8", "|u1", "|i1", "<i2", ">u2", "<i4", "<u4", "<i8"):
        for order in "CF":
            array = np.array([[0, 1, 2.5], [3, 100, 7]]).astype(kind).copy(order)
            assert tab.evaluate(program, list(npy(array))) == array.tolist(), (kind, order)


def test_codes_are_read_as_the_library_packs_them(tab, service):
    codes = np.random.default_rng(0).integers(0, 256, (1, 5), np.uint8)
    codes[0, -1] &= 0xE0  # 35 bits: the rest of the last byte is zero
    tab.goto(service)
    program = "async (hex) => (await import('/static/bits.js')).bitsOf(hex, 35)"
    assert tab.evaluate(program, codes.tobytes().hex()) == unpack(codes, 35)[0].tolist()


def test_an_older_model_and_fewer_neighbours(tab, service):
    tab.goto(f"{service}/#search?id=3")
    expect(tab.locator(".results-title")).to_contain_text("Nearest by model")
    tab.get_by_label("Neighbours").select_option("5")
    expect(neighbours(tab)).to_have_count(5)
    tab.get_by_label("Model").select_option("1")
    expect(tab.locator(".results-title")).to_have_text("Nearest by model 1")
    expect(tab.locator(".results")).to_contain_text("Tried on a sample of")


def test_an_id_that_is_not_there_is_explained(tab, service):
    tab.expected.append("404")
    tab.goto(service)
    expect(grid(tab).first).to_be_visible()
    tab.get_by_label("Id of an item").fill("987654")
    tab.get_by_role("button", name="Find").click()
    expect(tab.get_by_role("alert")).to_contain_text("987654")
    tab.get_by_label("Id of an item").fill("twelve")
    tab.get_by_role("button", name="Find").click()
    expect(tab.get_by_role("alert")).to_contain_text("whole numbers")
    tab.get_by_label("Id of an item").fill("12")
    tab.keyboard.press("Enter")
    expect(tab.locator(".query h2")).to_have_text("Item 12")


def test_a_filter_is_completed_kept_in_the_address_and_explained(tab, service):
    tab.expected.append("400")
    tab.goto(f"{service}/#search?id=3")
    expect(neighbours(tab)).to_have_count(10)
    line = tab.get_by_role("combobox", name="Only items where")
    line.click()
    offered = tab.get_by_role("listbox", name="Fields").get_by_role("option")
    expect(offered.filter(has_text="row")).to_have_text("rowwhole number")
    line.press_sequentially("label = 3 or ro")
    expect(offered).to_have_count(1)
    line.press("ArrowDown")
    expect(line).to_have_attribute("aria-activedescendant", offered.get_attribute("id"))
    line.press("Enter")
    expect(line).to_have_value("label = 3 or row ")
    expect(offered).to_have_count(0)
    line.press_sequentially("< 40")
    line.press("Enter")
    where = "label = 3 or row < 40"
    shown = tab.locator(".neighbours .quiet")
    found = ask(f"{service}/api/search", {"ids": [3], "where": where})["results"][0]
    expect(shown).to_have_text([f" item {each['id']}" for each in found])
    assert any(each["metadata"]["row"] >= 40 for each in found)  # some by their label alone
    # The address has it, also that of the next query; and the way back leads back.
    query = urllib.parse.parse_qs(tab.url.partition("?")[2])
    assert query == {"id": ["3"], "where": [where]}
    tab.get_by_label("Search with item 497, ").click()
    expect(tab.locator(".query h2")).to_have_text("Item 497")
    expect(tab.locator(".results")).to_contain_text(f"Only items where {where}.")
    tab.reload()
    expect(tab.locator(".results")).to_contain_text(f"Only items where {where}.")
    expect(line).to_have_value(where)
    for text, words in (
        ("rwo < 40", "No item has the field rwo; did you mean row?"),
        ("row < 'a'", "row (whole number)"),
        ("row <", "At character"),
    ):
        line.fill(text)
        line.press("Enter")
        expect(tab.get_by_role("alert")).to_contain_text(words)
        expect(line).to_have_attribute("aria-invalid", "true")
        expect(neighbours(tab)).to_have_count(0)
    line.fill("row > 100000")
    tab.get_by_role("button", name="Filter").click()
    expect(tab.locator(".results")).to_contain_text("No item matches the filter.")
    expect(tab.get_by_role("alert")).to_have_count(0)
    for _ in range(5):
        tab.go_back()
    expect(tab.locator(".query h2")).to_have_text("Item 3")
    expect(shown).to_have_text([f" item {each['id']}" for each in found])


def test_every_scoring_shows_what_the_service_answers(tab, service):
    tab.goto(f"{service}/#search?id=11")
    expect(neighbours(tab)).to_have_count(10)
    program = "async () => (await import('/static/scoring.js')).SCORINGS"
    orders = set()
    for each in tab.evaluate(program):
        body = {"ids": [11], "k": 10, **each["body"]}
        found = ask(f"{service}/api/search", body)["results"][0]
        tab.get_by_label("Scored by").select_option(each["name"])
        expect(tab.locator(".results")).to_contain_text(each.get("told", "Nearest by model"))
        expect(tab.locator(".neighbours .quiet")).to_have_text(
            [f" item {hit['id']}" for hit in found]
        )
        expect(tab.locator(".neighbours .distance b")).to_have_text(
            [str(hit["distance"]) for hit in found]
        )
        scores = tab.locator(".neighbours .score b")
        expect(scores).to_have_count(10 if each["body"] else 0)
        shown = [float(text) for text in scores.all_inner_texts()]
        assert shown == pytest.approx([hit["score"] for hit in found if shown], abs=0.006)
        expect(tab.locator(".neighbours .strip")).to_have_count(10)
        orders.add(tuple(hit["id"] for hit in found))
    assert len(orders) > 2
    assert tab.url.endswith("#search?id=11&scoring=projections")
    # An older model is tried by codes alone.
    tab.get_by_label("Model").select_option("1")
    expect(tab.locator(".results")).to_contain_text("by codes and without a filter")
    expect(tab.get_by_label("Scored by")).to_be_disabled()


def test_probabilities_and_how_reliable_they_are(tab, service):
    tab.goto(f"{service}/#search?id=21")
    found = ask(f"{service}/api/search", {"ids": [21], "k": 10})["results"][0]
    shown = tab.locator(".neighbours .probability")
    expect(shown).to_have_count(10)
    for text, hit in zip(shown.all_inner_texts(), found, strict=True):
        bound, number = re.fullmatch(r"([<>] )?(\d+) %", text).groups()
        assert abs(int(number) / 100 - hit["probability"]) <= (0.01 if bound else 0.0051)
    expect(tab.locator(".results")).to_contain_text("how likely a neighbour has the query's label")
    tab.goto(f"{service}/#live")
    plots = tab.locator(".plots .panel")
    known = ask(f"{service}/api/status")["quality"]["reliability"]
    for i, name in enumerate(("neighbours", "votes")):
        points = known[name]["points"]
        assert points
        expect(plots.nth(i).locator("circle")).to_have_count(len(points))
        error = f"{known[name]['error']:.3f}".removeprefix("0")
        expect(plots.nth(i)).to_contain_text(f"Off by {error} in the mean")
        plots.nth(i).get_by_text("The same as a table").click()
        expect(plots.nth(i).locator("tbody tr")).to_have_count(len(points))


def test_thumbs_judge_answers_and_show_what_was_said(tab, service):
    before = ask(f"{service}/api/status")["feedback"]["stored"]
    tab.goto(f"{service}#search?id=497")
    expect(neighbours(tab)).to_have_count(10)
    first = neighbours(tab).first
    good = first.get_by_role("button", name=re.compile("^A good answer: item"))
    bad = first.get_by_role("button", name=re.compile("^Not a good answer: item"))
    expect(good).to_have_attribute("aria-pressed", "false")
    good.click()
    expect(good).to_have_attribute("aria-pressed", "true")
    expect(bad).to_have_attribute("aria-pressed", "false")
    good.click()  # said already
    bad.focus()  # by keyboard, the other way round
    tab.keyboard.press("Enter")
    expect(bad).to_have_attribute("aria-pressed", "true")
    expect(good).to_have_attribute("aria-pressed", "false")
    expect(tab.locator("#announcer")).to_contain_text("is not a good answer")
    feedback = ask(f"{service}/api/status")["feedback"]
    assert feedback["stored"] == before + 2
    # What was said stays to be seen, of this query.
    tab.get_by_label("Search with item 496, ").click()
    expect(tab.locator(".query h2")).to_have_text("Item 496")
    expect(tab.locator('.thumb-button[aria-pressed="true"]')).to_have_count(0)
    tab.go_back()
    expect(tab.locator(".query h2")).to_have_text("Item 497")
    expect(tab.locator('.thumb-button[aria-pressed="true"]')).to_have_count(1)
    # A vector is a query as well.
    file = {"name": "one.npy", "mimeType": "application/octet-stream", "buffer": FILES["one.npy"]}
    tab.set_input_files("input[type=file]", file)
    expect(tab.locator(".query h2")).to_have_text("one.npy")
    neighbours(tab).nth(1).get_by_role("button", name=re.compile("^A good")).click()
    expect(tab.locator('.thumb-button[aria-pressed="true"]')).to_have_count(1)
    assert ask(f"{service}/api/status")["feedback"]["stored"] == before + 3
    tab.goto(f"{service}#live")
    expect(tab.locator(".tile.learner")).to_contain_text("judged answers")


def test_who_may_only_read_sees_nothing_that_changes_items(tab, tmp_path):
    with Collection.create(tmp_path / "digits", SDOH(16, batch_size=50, random_state=0)) as items:
        ids, rows, labels, metadata = digits(0, 60)
        items.add(ids, rows, labels, metadata=metadata)
        items.refresh()
    tokens = {"STREAMHASH_READ_TOKEN": READ, "STREAMHASH_WRITE_TOKEN": WRITE}
    with serving(tmp_path / "digits", **tokens) as address:
        tab.expected += ["401", "ERR_CONNECTION_REFUSED"]  # the last after its end
        tab.goto(f"{address}#search?id=5")
        tab.locator("#token-input").fill(READ)
        tab.keyboard.press("Enter")
        expect(neighbours(tab)).to_have_count(10)
        expect(tab.locator(".thumb-button")).to_have_count(0)
        tab.goto(f"{address}#items?item=5")
        expect(tab.locator(".item-dialog h2")).to_have_text("Item 5")
        expect(tab.locator(".item-dialog")).to_contain_text("row5")
        for name in ("Save", "Delete", "Add items", "Display"):
            expect(tab.get_by_role("button", name=name)).to_have_count(0)


def test_neighbours_can_be_asked_to_be_likely(tab, service):
    tab.goto(f"{service}#search?id=497")
    expect(neighbours(tab)).to_have_count(10)
    tab.get_by_label("At least as likely").select_option("90")
    expect(tab.locator(".results")).to_contain_text("at least 90")
    body = {"ids": [497], "k": 10, "min_probability": 0.9}
    expect(neighbours(tab)).to_have_count(len(ask(f"{service}/api/search", body)["results"][0]))
    assert "least=90" in tab.url
    tab.reload()  # the address holds it
    expect(tab.get_by_label("At least as likely")).to_have_value("90")
    expect(tab.locator(".results")).to_contain_text("at least 90")
    tab.get_by_label("At least as likely").select_option("")
    expect(neighbours(tab)).to_have_count(10)
    assert "least" not in tab.url


def test_items_with_titles_and_several_labels_are_read(tab, tmp_path):
    labels = [["odd" if each % 2 else "even", "large" if each > 4 else "small"] for each in y]
    tab.expected.append("ERR_CONNECTION_REFUSED")
    titles = [f"<b>News</b> <img src=x onerror=alert(1)> {i} " + "long " * 30 for i in range(60)]
    hasher = SDOH(16, batch_size=20, random_state=0)
    with Collection.create(tmp_path / "news", hasher) as collection:
        facts = [{"title": title, "place": "usa"} for title in titles]
        collection.add(range(60), X[:60], labels[:60], metadata=facts)
    with serving(tmp_path / "news") as address:
        tab.goto(f"{address}/#search?id=7")
        expect(tab.locator(".query h2")).to_have_text(titles[7].strip())
        own = sorted(labels[7])
        expect(tab.locator(".query .tag")).to_have_text(own)
        found = ask(f"{address}/api/search", {"ids": [7], "k": 10})["results"][0]
        same = sum(not {*each["label"]}.isdisjoint(own) for each in found)
        told = f"{same} of 10 neighbours have one of its labels"
        expect(tab.locator(".query")).to_contain_text(told)
        expect(tab.locator(".neighbours .other")).to_have_count(10 - same)
        for i, hit in enumerate(found):
            row = neighbours(tab).nth(i)
            expect(row.get_by_role("link")).to_have_text(titles[hit["id"]].strip())
            expect(row.locator(".tag")).to_have_text(hit["label"])
            others = [label for label in hit["label"] if label not in own]
            expect(row.locator(".apart")).to_have_text(others)
            expect(row.locator(".unlike")).to_have_count(int(others == hit["label"]))
        expect(tab.locator(".facts").first).to_have_text("placeusa")
        tab.get_by_role("combobox", name="Only items where").fill("'even' in labels")
        tab.keyboard.press("Enter")
        expect(neighbours(tab).filter(has_text="even")).to_have_count(10)
        tab.set_viewport_size({"width": 360, "height": 740})
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360
        tab.goto(f"{address}/#compare?ids=[7,8]")
        expect(tab.locator(".found .cell-title").first).to_contain_text("<b>News</b>")
        expect(tab.locator(".pairing-query h3").first).to_have_text(titles[7].strip())
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360
        expect(tab.locator("main img, main b > b")).to_have_count(0)


@pytest.mark.parametrize("part", ["constructor", "__proto__", "toString?__proto__={}", "%00?x=%"])
def test_an_address_that_names_no_view_shows_the_search(tab, service, part):
    tab.goto(f"{service}/#{part}")
    expect(grid(tab)).to_have_count(24)
    assert tab.title() == "Search · streamhash"


# -------------------------------------------------------------------------------------------- live


def test_live_moves_with_the_stream_and_refreshes(tab, service):
    tab.goto(f"{service}/#live")
    status = ask(f"{service}/api/status")
    expect(tab.locator(".tile.items .big")).to_have_text(str(status["items"]))
    expect(tab.locator(".tile.serving .big")).to_have_text(f"Model {status['serving']['model']}")
    expect(tab.locator(".bars")).to_have_count(2)  # balance, and flips by the second model
    ids, rows, labels, metadata = digits(status["items"], status["items"] + 100)
    body = {"ids": ids, "vectors": rows.tolist(), "labels": labels, "metadata": metadata}
    ask(f"{service}/api/items", body)
    expect(tab.locator(".tile.items .big")).to_have_text(str(status["items"] + 100))
    expect(tab.locator(".live-view")).not_to_contain_text("of information")
    expect(tab.locator(".refresh")).to_contain_text(f"for {status['items'] + 100} items")
    tab.get_by_role("button", name="Refresh now").click()
    number = status["serving"]["model"] + 1
    expect(tab.locator(".refresh .state")).to_have_text(f"Model {number} serves now.")
    expect(tab.locator(".tile.serving .big")).to_have_text(f"Model {number}")
    tab.get_by_role("button", name="Refresh now").click()
    expect(tab.locator(".refresh .state")).to_contain_text("the model stays")


def test_the_timeline_is_read_by_keyboard_and_as_tables(tab, service):
    tab.goto(f"{service}/#live")
    history = ask(f"{service}/api/history")
    drawing = tab.locator(".stage svg")
    expect(drawing).to_have_attribute("aria-label", re.compile("^Precision from .*refresh"))
    expect(tab.locator(".refresh-mark")).to_have_count(len(history["refreshes"]))
    tab.locator(".timeline").focus()
    tab.keyboard.press("Home")
    first = history["series"][0]
    expect(tab.locator(".readout")).to_contain_text(f"{first['items']:.0f} items, model 1")
    expect(tab.locator("#announcer")).to_contain_text("precision")
    tab.keyboard.press("ArrowRight")
    second = history["series"][1]
    expect(tab.locator(".readout")).to_contain_text(f"{second['items']:.0f} items")
    tab.get_by_text("The same as tables").click()
    rows = tab.get_by_role("region", name="Refreshes").locator("tbody tr")
    expect(rows).to_have_count(len(history["refreshes"]))
    expect(tab.get_by_role("region", name="Drifts")).to_contain_text("none so far")
    tab.get_by_label("Across").select_option("labelled")
    expect(tab.locator(".stage")).to_contain_text(f"{history['refreshes'][0]['labelled']:,}")


def test_an_idle_night_takes_little_of_the_time_axis(tab, service):
    tab.goto(service)
    program = """([values, at]) => import('/static/chart.js').then(({ axisFor }) => {
        const axis = axisFor(values, "time", 0, 1000);
        return [at.map(axis.to), axis.idle, at.map((value) => axis.from(axis.to(value)))];
    })"""
    evening = [1000.0 + 10 * i for i in range(60)]
    night = 8 * 3600
    morning = [evening[-1] + night + 10 * i for i in range(60)]
    at = [evening[0], evening[-1], morning[0], morning[-1]]
    places, idle, back = tab.evaluate(program, [evening + morning, at])
    assert places == sorted(places)
    assert places[1] - places[0] > 400  # both evenings can be read,
    assert places[3] - places[2] > 400
    assert places[2] - places[1] < 60  # and the night between them is a strip
    assert [each["seconds"] for each in idle] == [night]
    assert back == pytest.approx(at)
    # Without a gap, and with a single point, it is an ordinary axis.
    places, idle, _ = tab.evaluate(program, [evening, [evening[0], evening[30]]])
    assert idle == []
    assert places[1] == pytest.approx(1000 * 300 / (590 * 1.025))
    assert tab.evaluate(program, [[5.0], [5.0]])[0] == [0]


def test_a_stretch_of_the_timeline_is_looked_at_closely(tab, service):
    tab.goto(f"{service}/#live")
    history = ask(f"{service}/api/history")
    expect(tab.locator(".refresh-mark")).to_have_count(len(history["refreshes"]))
    box = tab.locator(".stage").bounding_box()
    tab.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 80)
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] - 5, box["y"] + 80, steps=4)
    tab.mouse.up()
    whole = tab.get_by_role("button", name="Show all of it")
    expect(whole).to_be_visible()
    marks = tab.locator(".refresh-mark").count()
    assert marks < len(history["refreshes"])
    tab.reload()  # the address holds it
    expect(tab.locator(".stage svg")).to_be_visible()
    expect(whole).to_be_visible()
    expect(tab.locator(".refresh-mark")).to_have_count(marks)
    whole.click()
    expect(tab.locator(".refresh-mark")).to_have_count(len(history["refreshes"]))


def test_which_classes_are_found_badly(tab, service):
    tab.goto(f"{service}/#live")
    tab.get_by_role("button", name="Work it out").click()
    known = ask(f"{service}/api/quality?seed=0")
    rows = tab.locator(".classes li")
    expect(rows).to_have_count(10)
    worst = known["classes"][0]
    expect(rows.first.locator("b")).to_have_text(f"{worst['precision']:.3f}".removeprefix("0"))
    rows.first.get_by_role("link").click()
    expect(tab.locator(".items-table .tag").first).to_have_text(str(worst["label"]))


# ----------------------------------------------------------------------------------------- compare


def test_compare_two_models_then_a_method(tab, service):
    ids = [3, 141, 265, 358]
    tab.goto(f"{service}/#compare?" + urllib.parse.urlencode({"ids": json.dumps(ids)}))
    expect(tab.locator(".pairings > li")).to_have_count(4)
    expect(tab.locator(".score h2").first).to_have_text("Model 1")
    tab.get_by_label("Left").select_option("method:lsh")
    expect(tab.locator(".score h2").first).to_have_text("LSH")
    sides = {"left": {"method": "lsh"}, "right": {"model": 2}}
    tab.get_by_label("Right").select_option("model:2")
    expect(tab.locator(".score h2").last).to_have_text("Model 2")
    answer = ask(f"{service}/api/compare", {"queries": ids, "k": 10, **sides})
    for i, side in enumerate(("left", "right")):
        value = f"{answer['precision'][side]:.3f}".removeprefix("0")
        expect(tab.locator(".score .big").nth(i)).to_have_text(value)
        shown = tab.locator(".pairings > li").first.locator(".answer").nth(i)
        told = [link.get_attribute("aria-label") for link in shown.locator(".found a").all()]
        expected = [f"Item {each['id']}, " for each in answer[side]["results"][0]]
        assert [text[: len(words)] for text, words in zip(told, expected, strict=True)] == expected
    expect(tab.locator(".verdict")).to_contain_text("is better than")
    # Under each picture is its label, and the distance says what it is.
    first = answer["left"]["results"][0][0]
    shown = tab.locator(".pairings > li").first.locator(".found li").first
    expect(shown.locator(".found-label")).to_have_text(str(first["label"]))
    unit = "bit" if first["distance"] == 1 else "bits"
    expect(shown.locator(".found-distance")).to_have_text(f"{first['distance']} {unit}")
    address = tab.url
    tab.get_by_role("button", name="Other queries").click()
    expect(tab.locator(".pairings > li")).to_have_count(8)
    assert tab.url != address
    assert "seed=1" in tab.url
    expect(tab.locator(".verdict")).to_contain_text("100 queries on")
    expect(tab.locator(".verdict")).to_contain_text("with 95 % confidence")
    labels = tab.locator(".pairing-query .tag").all_inner_texts()
    assert len({*labels}) == 8  # one of each class, before any comes twice


def test_the_methods_are_those_of_the_library(tab, service):
    tab.goto(service)
    program = "async () => (await import('/static/methods.js')).METHODS"
    assert tab.evaluate(program) == [*METHODS]


# ------------------------------------------------------------------------------- items, collections


def shop_items(path, n=120):
    """Embeddings with string ids, titles, prices and dates, a long tail of labels."""
    rng = np.random.default_rng(0)
    names = ["shoe", "hat", "coat's"]
    labels = [names[0 if i % 10 < 7 else 1 if i % 10 < 9 else 2] for i in range(n)]
    rows = np.eye(3)[[names.index(label) for label in labels]].repeat(4, axis=1)
    hasher = SDOH(16, batch_size=20, random_state=0)
    with Collection.create(path, hasher, refresh="manual") as items:
        facts = [
            {
                "title": f"A {label} of {i}",
                "price": (i * 37) % 100,
                "date": f"2026-01-{1 + i % 28:02}",
            }
            for i, label in enumerate(labels)
        ]
        vectors = rows + 0.1 * rng.standard_normal(rows.shape)
        items.add([f"sku-{i}" for i in range(n)], vectors, labels, metadata=facts)
        items.refresh()


@pytest.fixture(scope="module")
def shops(tmp_path_factory):
    """A service of a folder with two collections."""
    folder = tmp_path_factory.mktemp("folder")
    shop_items(folder / "shop")
    with Collection.create(folder / "digits", SDOH(16, batch_size=20, random_state=0)) as items:
        ids, rows, labels, metadata = digits(0, 60)
        items.add(ids, rows, labels, metadata=metadata)
        items.refresh()
    with serving(folder) as address:
        yield address


def test_collections_are_listed_and_the_page_shows_whose_items_one_looks_at(tab, shops):
    tab.goto(shops)
    cards = tab.locator(".collection")
    expect(cards).to_have_count(2)
    expect(tab).to_have_title("Collections · streamhash")
    shop = cards.filter(has_text="shop")
    expect(shop).to_contain_text("120")
    expect(shop).to_contain_text("SDOH, 16 bits")
    shop.get_by_role("link", name="shop").click()
    expect(tab.locator("#collection")).to_have_text("shop")
    expect(tab).to_have_title("Search · shop · streamhash")
    # It opens with an example, and the address holds that.
    expect(tab.locator(".query h2")).to_have_text("A coat's of 119")
    expect(neighbours(tab)).to_have_count(10)
    assert tab.url.endswith("#shop/search?id=sku-119")
    tab.get_by_role("navigation").get_by_role("link", name="Live").click()
    expect(tab.locator(".tile.items .big")).to_have_text("120")
    tab.goto(f"{shops}/#digits/search?id=7")
    expect(tab.locator(".query h2")).to_have_text("Item 7")
    expect(tab.locator("#collection")).to_have_text("digits")
    tab.go_back()
    expect(tab.locator(".tile.items .big")).to_have_text("120")
    tab.goto(f"{shops}/#nowhere/search")
    expect(tab.get_by_role("alert")).to_contain_text("There is no collection nowhere.")


def test_a_collection_is_made_filled_by_a_file_and_dropped(tab, shops):
    tab.goto(f"{shops}/#collections")
    tab.get_by_label("Name").fill("new-1")
    tab.get_by_label("Method").select_option("lsh")
    tab.get_by_role("button", name="Create").click()
    expect(tab.locator("#collection")).to_have_text("new-1")
    expect(tab.get_by_text("This collection is empty.")).to_be_visible()
    tab.get_by_role("navigation").get_by_role("link", name="Items").click()
    tab.get_by_role("button", name="Add items").click()
    lines = [{"id": f"a{i}", "vector": [i, 1.0, -i], "label": i % 2, "n": i} for i in range(5)]
    content = "\n".join(map(json.dumps, lines)).encode()
    file = {"name": "some.jsonl", "mimeType": "", "buffer": content}
    tab.locator(".add-panel input[type=file]").set_input_files(file)
    expect(tab.get_by_text("5 items of some.jsonl added.")).to_be_visible()
    expect(tab.locator(".notice.done")).to_contain_text("features: vector")
    expect(tab.locator(".items-table tbody tr")).to_have_count(5)
    # By the form.
    tab.get_by_role("button", name="Add items").click()
    tab.locator(".add-form [name=id]").fill("mine")
    tab.locator(".add-form [name=vector]").fill("[1, 2]")
    tab.get_by_role("button", name="Add", exact=True).click()
    expect(tab.get_by_role("alert")).to_contain_text("have 3")
    tab.locator(".add-form [name=vector]").fill("[1, 2, 3]")
    tab.locator(".add-form [name=metadata]").fill('{"n": 7}')
    tab.get_by_role("button", name="Add", exact=True).click()
    expect(tab.get_by_text("Item mine is added.")).to_be_visible()
    expect(tab.locator(".items-table tbody tr")).to_have_count(6)
    tab.goto(f"{shops}/#collections")
    tab.once("dialog", lambda dialog: dialog.accept())
    card = tab.locator(".collection").filter(has_text="new-1")
    card.get_by_role("button", name="Drop").click()
    expect(tab.locator(".collection")).to_have_count(2)


def test_items_are_browsed_by_label_field_and_filter(tab, shops):
    tab.goto(f"{shops}/#shop/items")
    rows = tab.locator(".items-table tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text("A coat's of 119")
    counts = tab.locator(".labels li")
    expect(counts).to_have_text(["All items120", "shoe84", "hat24", "coat's12"])
    counts.nth(3).get_by_role("link").click()
    expect(rows).to_have_count(12)
    expect(tab.locator(".pager")).to_contain_text("1 to 12 of 12 items")
    expect(tab.get_by_role("combobox", name="Only items where")).to_have_value("label = 'coat''s'")
    tab.get_by_role("button", name="price").click()
    prices = tab.locator(".items-table td:nth-child(5)")
    wanted = sorted((i * 37) % 100 for i in range(120) if i % 10 == 9)
    expect(prices).to_have_text([str(price) for price in wanted])
    tab.get_by_role("button", name="price").click()
    expect(prices).to_have_text([str(price) for price in wanted[::-1]])
    address = tab.url
    tab.reload()  # the address holds all of it
    expect(prices).to_have_text([str(price) for price in wanted[::-1]])
    assert tab.url == address
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Export", exact=True).click()
    lines = download.value.path().read_text().splitlines()
    assert len(lines) == 12
    assert {json.loads(line)["label"] for line in lines} == {"coat's"}
    tab.expected.append("400")
    tab.get_by_role("combobox", name="Only items where").fill("prise < 3")
    tab.keyboard.press("Enter")
    expect(tab.locator(".filter-problem")).to_contain_text("did you mean price?")


def test_an_item_is_opened_changed_and_deleted(tab, shops):
    tab.goto(f"{shops}/#shop/items?item=sku-3")
    dialog = tab.locator(".item-dialog")
    expect(dialog.locator("h2")).to_have_text("A shoe of 3")
    dialog.locator("[name=label]").fill("hat")
    dialog.locator("[name=metadata]").fill('{"title": "A better one", "stock": 4}')
    dialog.get_by_role("button", name="Save").click()
    expect(tab.get_by_text("Item sku-3 is changed.")).to_be_visible()
    expect(dialog).to_be_hidden()
    item = ask(f"{shops}/api/collections/shop/items/sku-3")
    assert (item["label"], item["metadata"]) == ("hat", {"title": "A better one", "stock": 4})
    tab.get_by_role("link", name="A better one").click()
    expect(dialog.locator("h2")).to_have_text("A better one")
    dialog.locator("[name=metadata]").fill("no JSON")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("The metadata are no JSON object.")
    tab.once("dialog", lambda asked: asked.accept())
    dialog.get_by_role("button", name="Delete").click()
    expect(tab.get_by_text("Item sku-3 is deleted.")).to_be_visible()
    # Put back, for the other tests.
    whole = {k: item[k] for k in ("vector", "label", "metadata")}
    whole |= {"label": "shoe", "metadata": {"title": "A shoe of 3", "price": 11}}
    request = urllib.request.Request(
        f"{shops}/api/collections/shop/items/sku-3",
        json.dumps(whole).encode(),
        {"Content-Type": "application/json"},
        method="PUT",
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 201


def test_what_items_are_called_by_is_guessed_and_can_be_changed(tab, shops):
    tab.goto(f"{shops}/#shop/search?id=sku-5")
    expect(tab.locator(".query h2")).to_have_text("A shoe of 5")
    expect(tab.locator(".query .facts")).to_contain_text("date2026-01-06")
    tab.goto(f"{shops}/#shop/items")
    tab.get_by_role("button", name="Display").click()
    panel = tab.locator(".display-panel")
    panel.locator("[name=title]").select_option("date")
    panel.get_by_role("checkbox", name="date").uncheck()
    panel.get_by_label("About this collection").fill("Clothes for the tests.")
    panel.get_by_role("button", name="Save").click()
    expect(panel).to_be_hidden()
    expect(tab.locator(".about")).to_have_text("Clothes for the tests.")
    tab.goto(f"{shops}/#shop/search?id=sku-5")
    expect(tab.locator(".query h2")).to_have_text("2026-01-06")
    said = ask(f"{shops}/api/collections/shop/display")
    assert (said["title"], said["guessed"]) == ("date", False)
    request = urllib.request.Request(
        f"{shops}/api/collections/shop/display",
        json.dumps({"title": "title", "subtitle": ["date", "price"]}).encode(),
        {"Content-Type": "application/json"},
        method="PUT",
    )
    urllib.request.urlopen(request, timeout=60).close()


def test_every_address_can_be_tried_on_the_page_of_addresses(tab, shops):
    tab.goto(f"{shops}/docs")
    expect(tab.get_by_role("heading", name="Every address of this service")).to_be_visible()
    document = ask(f"{shops}/openapi.json")
    shown = tab.locator(".operation")
    expect(shown).to_have_count(sum(len(each) for each in document["paths"].values()))
    search = tab.locator("[id='post/api/collections/{name}/search']")
    search.locator("summary").click()
    search.get_by_role("textbox", name="name").fill("shop")
    search.get_by_role("textbox", name="Body").fill('{"ids": ["sku-5"], "k": 2}')
    search.get_by_role("button", name="Send this POST").click()
    expect(search.locator("pre")).to_contain_text('"results"')
    tab.set_viewport_size({"width": 390, "height": 740})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


# ------------------------------------------------------------------- empty, refused, stopped, token


def test_an_empty_collection_says_what_to_do_and_a_stopped_service_is_told(tab, tmp_path):
    hasher = SDOH(16, batch_size=20, random_state=0)
    Collection.create(tmp_path / "empty", hasher, refresh="manual").close()
    with serving(tmp_path / "empty") as address:
        tab.goto(address)
        expect(tab.locator(".results")).to_contain_text("This collection is empty.")
        for view in ("live", "compare"):
            tab.goto(f"{address}/#{view}")
            expect(tab.get_by_text("This collection is empty.")).to_be_visible()
        tab.goto(f"{address}/#live")
        # The history was answered, and what can't be drawn yet is told in words.
        expect(tab.locator(".readout")).to_contain_text("The curve begins with the first items")
        expect(tab.locator(".stage svg")).to_have_count(0)
        tab.goto(f"{address}/#search")
        # Strings as ids and labels, and no pictures.
        names = [f"item-{i}" for i in range(30)]
        body = {"ids": names[:10], "vectors": X[:10].tolist()}
        ask(f"{address}/api/items", body)
        expect(tab.locator(".results")).to_contain_text("No model has been learned yet")
        labels = [f"digit {label}" for label in y[10:30]]
        ask(
            f"{address}/api/items",
            {"ids": names[10:], "vectors": X[10:30].tolist(), "labels": labels},
        )
        tab.get_by_role("button", name="Newest").click()
        tab.get_by_label("Search with item item-29, ").click()
        expect(neighbours(tab)).to_have_count(10)
        assert tab.url.endswith("#search?id=item-29")  # plain, as people write it
        expect(tab.locator(".query .tag")).to_have_text(labels[-1])
        # Without a picture and a title an item goes by its id, and its label stands there once.
        row = grid(tab).first
        expect(row).to_have_text(f"item-29{labels[-1]}")
        expect(neighbours(tab).first.get_by_text("digit ")).to_have_count(1)
        expect(tab.locator(".query")).to_contain_text("labelled neighbours have its label")
    tab.expected.append("ERR_CONNECTION_REFUSED")
    expect(tab.get_by_text("The service does not answer. Is it still running?")).to_be_visible()


def test_a_service_that_answers_again_is_found_again(tab, service):
    tab.goto(f"{service}/#live")
    expect(tab.locator(".stage svg")).to_be_visible()
    tab.expected.append("ERR_INTERNET_DISCONNECTED")
    tab.context.set_offline(True)
    expect(tab.get_by_role("alert")).to_contain_text("The service does not answer.")
    tab.context.set_offline(False)
    tab.get_by_role("button", name="Try again").click()
    expect(tab.get_by_role("alert")).to_have_count(0)


def test_a_token_is_asked_for_and_kept_in_this_tab(tab, tmp_path):
    hasher = SDOH(16, batch_size=20, random_state=0)
    with Collection.create(tmp_path / "closed", hasher) as collection:
        collection.add(*digits(0, 40)[:3])
    tokens = {"STREAMHASH_READ_TOKEN": READ, "STREAMHASH_WRITE_TOKEN": WRITE}
    tab.expected += ["401", "403", "ERR_CONNECTION_REFUSED"]
    with serving(tmp_path / "closed", **tokens) as address:
        tab.goto(f"{address}/#live")
        dialog = tab.get_by_role("dialog", name="This service asks for a token")
        expect(dialog).to_be_visible()
        tab.keyboard.press("Escape")
        expect(dialog).to_be_visible()
        tab.get_by_role("textbox", name="Token").fill("a-wrong-guess-of-it")
        tab.keyboard.press("Enter")
        expect(dialog).to_contain_text("That token was not accepted.")
        tab.get_by_role("textbox", name="Token").fill(READ)
        tab.keyboard.press("Enter")
        expect(tab.locator(".tile.items .big")).to_have_text("40")
        expect(dialog).to_be_hidden()
        expect(tab.get_by_role("button", name="Refresh now")).to_be_disabled()
        expect(tab.locator(".refresh .state")).to_contain_text("needs one that may write")
        tab.reload()
        expect(tab.locator(".tile.items .big")).to_have_text("40")
        assert tab.evaluate("[sessionStorage.length, localStorage.length]") == [1, 0]


# -------------------------------------------------------------------------- for everybody, anywhere


def test_all_of_it_by_keyboard(tab, service):
    tab.goto(service)
    expect(grid(tab).first).to_be_visible()
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the content"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "content"
    for _ in range(9):  # four choices, filter and file, the id, with their buttons
        tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Find"
    tab.keyboard.press("Tab")
    outline = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    tab.keyboard.press("Enter")
    expect(neighbours(tab)).to_have_count(10)
    expect(tab.locator("#announcer")).to_contain_text("10 neighbours found")
    for name in ("Items", "Live", "Compare", "Search"):
        link = tab.get_by_role("navigation").get_by_role("link", name=name)
        link.focus()
        tab.keyboard.press("Enter")
        expect(link).to_have_attribute("aria-current", "page")
        expect(tab.get_by_role("heading", level=1)).to_be_focused()
        expect(tab).to_have_title(f"{name} · streamhash")
        expect(tab.locator("h1")).to_have_count(1)


VIEWS = {
    "search?id=5": ".neighbours .strip",
    "items": ".items-table td",
    "items?item=5": ".item-dialog .strip",
    "live": ".stage svg",
    "compare": ".pairings .strip",
    "collections": ".collection",
}
NAMELESS = """() => [...document.querySelectorAll("a, button, input, select, summary, [role=img]")]
    .filter((each) => each.checkVisibility() && !each.closest("[aria-hidden=true]"))
    .filter((each) => !(each.getAttribute("aria-label") || each.textContent.trim()
        || each.labels?.[0]?.textContent.trim()))
    .map((each) => each.outerHTML)"""


# Texts of drawings that reach out of them.
CLIPPED = """() => [...document.querySelectorAll("svg text")].filter((each) => {
    const box = each.getBoundingClientRect(), all = each.ownerSVGElement.getBoundingClientRect();
    return box.left < all.left - 1 || box.right > all.right + 1;
}).map((each) => each.textContent)"""


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark"), (360, "light")])
def test_no_view_needs_sideways_scrolling_and_all_has_a_name(tab, service, view, width, scheme):
    tab.set_viewport_size({"width": width, "height": 740})
    tab.emulate_media(color_scheme=scheme)
    tab.goto(f"{service}/#{view}")
    expect(tab.locator(VIEWS[view]).first).to_be_visible()
    if view == "live":
        tab.get_by_text("The same as tables").click()
        expect(tab.get_by_role("region", name="Quality")).to_be_visible()
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(NAMELESS) == []
    assert tab.evaluate(CLIPPED) == []


PAIRS = [  # colours, what they are on, and the contrast that WCAG's AA asks for
    ("ink", ("paper", "surface", "sunken", "accent-soft", "mark-soft"), 4.5),
    ("muted", ("paper", "surface", "sunken"), 4.5),
    ("accent", ("paper", "surface"), 4.5),
    ("mark", ("paper", "surface"), 4.5),
    ("accent-ink", ("accent",), 4.5),
    ("edge", ("paper", "surface"), 3.0),
    ("one", ("zero", "paper"), 3.0),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrasts(tab, service, scheme):
    tab.emulate_media(color_scheme=scheme)
    tab.goto(service)
    dark = luminance(colour(tab, "paper")) < luminance(colour(tab, "ink"))
    assert dark == (scheme == "dark")
    for name, grounds, least in PAIRS:
        for ground in grounds:
            light, dim = sorted(map(luminance, (colour(tab, name), colour(tab, ground))))[::-1]
            assert (light + 0.05) / (dim + 0.05) >= least, (name, ground)


def colour(page, name):
    program = "name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`)"
    text = page.evaluate(program, name).strip().lstrip("#")
    return [int(text[i : i + 2], 16) / 255 for i in (0, 2, 4)]


def luminance(rgb):
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return float(np.dot(parts, [0.2126, 0.7152, 0.0722]))


# ---------------------------------------------------------------------------------------- its files


def test_the_page_names_only_its_own_files_and_holds_no_inline_code():
    there = {entry.name: entry.read_text(encoding="utf-8") for entry in PAGE.iterdir()}
    fronts, named = ("index.html", "docs.html"), set()
    for front in map(there.__getitem__, fronts):
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*src=)", front)
        named |= set(re.findall(r'(?:href|src)="/static/([^"]+)"', front))
    for name, text in there.items():
        assert "//" not in re.sub(r"http://www\.w3\.org/2000/svg|(?m:(^|\s)//(\s.*)?$)", "", text)
        if name.endswith(".js"):
            named |= set(re.findall(r'from "\./([^"]+)"', text))
            assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|eval\(", text), name
    assert named == {*there} - {*fronts}


def test_the_page_works_under_a_strict_policy(tab, service):
    policy = tab.goto(service).headers["content-security-policy"]
    assert "unsafe" not in policy
    assert re.search(r"(script|default)-src 'self'", policy)
    expect(grid(tab).first).to_be_visible()
    refused = tab.evaluate("""async () => {
        const refused = new Promise((resolve) => addEventListener(
            "securitypolicyviolation", (event) => resolve(event.effectiveDirective)));
        const script = document.createElement("script");
        script.textContent = "window.hurt = true";
        document.head.append(script);
        return refused;
    }""")
    assert refused.startswith("script-src")
    assert tab.evaluate("window.hurt") is None
    tab.expected.append("Content Security Policy")
