"""Take the pictures of the page that the documents show, in Chromium; look at them afterwards.

    python docs/screenshots.py [FOLDER]     default: docs/figures

A collection of digits learns the figures 0 to 4 first; then 5 to 9 arrive too, so that the timeline
has a drift and what comes after it. All that is seen is real.
"""

import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, sync_playwright
from sklearn.datasets import load_digits

from streamhash import SDOH
from streamhash.live import Collection

ROOT = Path(__file__).parents[1]
BATCH = 25
WIDE, PHONE = (1280, 900), (360, 760)
# name, view, what must be there first, how wide, colours
PICTURES = [
    ("page-search", "search?id=1493", ".neighbours canvas", WIDE, "light"),
    ("page-live", "live", ".stage svg", WIDE, "light"),
    (
        "page-compare",
        "compare?left=%22method:lsh%22&ids=%5B1493,888,1207,1003%5D",
        ".pairings canvas",
        WIDE,
        "light",
    ),
    ("page-live-dark", "live", ".stage svg", WIDE, "dark"),
    ("page-search-phone", "search?id=1493", ".neighbours canvas", PHONE, "light"),
]


def fill(path: Path) -> None:
    """Make the collection."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    early = rng.permutation(np.flatnonzero(y < 5))
    first, rest = early[:600], early[600:]
    order = np.concatenate([first, rng.permutation([*rest, *np.flatnonzero(y >= 5)])])[:1500]
    hasher = SDOH(64, batch_size=50, memory=0, features=None, random_state=0)
    with Collection.create(path, hasher, refresh="gain=0.03") as collection:
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            facts = [{"image": {"width": 8, "height": 8}, "row": int(row)} for row in rows]
            ids = range(start, start + len(rows))
            collection.add(ids, X[rows], y[rows], metadata=facts)


@contextmanager
def serving(path: Path) -> Iterator[str]:
    """Run the service, and give its address."""
    program = "from streamhash.cli import main; main()"
    command = [sys.executable, "-c", program, "serve", str(path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = re.search(r"http://\S+?:\d+", process.stdout.readline())
        assert address is not None, "the service did not start"
        yield address.group()
        process.send_signal(signal.SIGTERM)


def take(browser: Browser, address: str, folder: Path) -> None:
    """Take all pictures."""
    for name, view, ready, (width, height), scheme in PICTURES:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            device_scale_factor=2 if width < 500 else 1,
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page = context.new_page()
        page.goto(f"{address}/#{view}")
        page.locator(ready).first.wait_for()
        page.wait_for_timeout(1500)  # the pictures of the grid
        page.screenshot(path=folder / f"{name}.png", full_page=width > 500)
        context.close()


def main() -> None:
    """Make the collection, serve it, and take all pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "figures"
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        fill(Path(scratch) / "digits")
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with serving(Path(scratch) / "digits") as address:
            take(browser, address, folder)
        browser.close()


if __name__ == "__main__":
    main()
