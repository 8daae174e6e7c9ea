"""The documents as a site: built without a warning, whole, and loading nothing from elsewhere."""

import functools
import http.server
import re
import shutil
import subprocess
import sys
import threading
from html.parser import HTMLParser
from importlib import import_module

import pytest

from pages import ROOT, read_page, run_in_order

pytestmark = pytest.mark.slow
GUIDES = ("docs/start.md", "docs/guides/embeddings.md", "docs/guides/quantisation.md")
CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def hooks():
    sys.path.insert(0, str(ROOT / "docs"))
    yield pytest.importorskip("site_hooks")
    sys.path.remove(str(ROOT / "docs"))


class Loaded(HTMLParser):
    """What a page loads: scripts, styles, pictures, frames; but no links, which are for people."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        if tag != "a":
            self.found += [v for name, v in attrs if name in ("src", "href", "srcset") and v]


def test_nothing_is_loaded_from_elsewhere(site):
    pages = [*site.rglob("*.html")]
    assert len(pages) > 45
    for page in pages:
        parser = Loaded()
        parser.feed(page.read_text(encoding="utf-8"))
        outside = [each for each in parser.found if re.match(r"(https?:)?//", each)]
        assert not outside, f"{page.name} loads {outside}"
    for path in [*site.rglob("*.css"), *site.rglob("*.js")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"url\(\s*[\"']?(https?:)?//|@import\s+[\"'](https?:)?//", text), path
        assert not re.search(r"unpkg|jsdelivr|cdnjs|googleapis|gstatic|api\.github", text), path


def test_every_public_name_is_in_the_reference(site, hooks):
    for package in hooks.PACKAGES:
        text = (site / "api" / f"{package}.html").read_text(encoding="utf-8")
        for name in hooks.public_names(package):
            path = hooks.real_path(package, name)
            wanted = f'id="{path}"' if path and path.startswith("streamhash") else f"{name}</code>"
            assert wanted in text, f"{package}.{name} is not in the reference"


def test_every_package_with_a_stub_is_in_the_reference(hooks):
    stubs = (ROOT / "src").rglob("__init__.pyi")
    packages = {".".join(stub.parent.relative_to(ROOT / "src").parts) for stub in stubs}
    assert packages <= set(hooks.PACKAGES)
    assert all(import_module(package) for package in hooks.PACKAGES)


def test_every_document_is_a_page_that_can_be_found(site):
    home = (site / "index.html").read_text(encoding="utf-8")
    for path in (ROOT / "docs").rglob("*.md"):
        name = path.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        assert (site / name).exists(), name
        assert f'href="{name}"' in home, f"{name} is not in the navigation"
    for script in site.rglob("*.py"):
        pytest.fail(f"{script} is no document")


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_it_is_read_in_a_browser_that_reaches_nobody_else(site, width):
    playwright = pytest.importorskip("playwright.sync_api")
    handler = functools.partial(Quiet, directory=str(site))
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        playwright.sync_playwright() as started,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}"
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 844})
        others, problems = [], []
        page.on("request", lambda r: None if r.url.startswith(here) else others.append(r.url))
        page.on("pageerror", lambda error: problems.append(str(error)))
        for name in ("index", "start", "guides/quantisation", "api/streamhash", "cli", "live"):
            page.goto(f"{here}/{name}.html")
            assert page.locator("h1").first.is_visible()
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{name} is {wide} pixels wide"
        if width > 1000:
            page.locator(".md-search__input").fill("drift")
            page.locator(".md-search-result__item").first.wait_for(timeout=30_000)
        browser.close()
        server.shutdown()
    assert (others, problems) == ([], [])


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, *_):
        pass


def test_links_of_the_repository_become_links_of_the_site(hooks):
    text = "[a](../CONTRIBUTING.md#x) [b](live.md) [c](../src/streamhash/base.py) [d](https://e.f)"
    assert hooks.rewritten(text, "docs/cli.md") == (
        "[a](contributing.md#x) [b](live.md) c (`src/streamhash/base.py`) [d](https://e.f)"
    )
    assert hooks.rewritten("```\n[a](docs/live.md)\n```", "README.md").count("docs/live.md") == 1


@pytest.mark.parametrize("page", GUIDES)
def test_guides_run_and_print_what_they_say(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_in_order(page, tmp_path) > 10


def test_make_has_the_site():
    done = subprocess.run(
        ["make", "-n", "docs"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "mkdocs build --strict" in done.stdout
    assert "make docs" in read_page("README.md")
