"""Take the pictures of the page that the documents show, in Chromium; look at them afterwards.

    python docs/screenshots.py [FOLDER]     default: docs/figures

A collection of digits learns the figures 0 to 4 first; then 5 to 9 arrive too, so that the timeline
has a drift and what comes after it. Beside it is the demo's long tail of synthetic embeddings, with
made-up titles, prices and dates. All else that is seen is real.
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
from streamhash.lab.datasets import LongTailStream
from streamhash.live import Collection

ROOT = Path(__file__).parents[1]
BATCH = 25
WIDE, PHONE = (1280, 900), (360, 760)
# name, view, what must be there first, how wide, colours
PICTURES = [
    ("page-collections", "collections", ".collection", WIDE, "light"),
    ("page-search", "digits/search?id=1493", ".neighbours canvas", WIDE, "light"),
    ("page-items", "shop/items?sort=price&descending=true", ".items-table td", WIDE, "light"),
    ("page-live", "digits/live", ".stage svg", WIDE, "light"),
    ("page-compare", "digits/compare?left=method:lsh", ".pairings canvas", WIDE, "light"),
    ("page-live-dark", "digits/live", ".stage svg", WIDE, "dark"),
    ("page-search-phone", "digits/search?id=1493", ".neighbours canvas", PHONE, "light"),
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


def fill_shop(path: Path) -> None:
    """Make a collection of embeddings, as a shop has them."""
    stream = LongTailStream(random_state=0)
    (X, y), rng = stream.take(3000), np.random.default_rng(0)
    kinds = ["shoe", "hat", "coat", "sock", "scarf", "belt", "shirt", "skirt", "dress", "glove"]
    labels = [f"{kinds[c % 10]} {c // 10 + 1}" for c in y.tolist()]
    colours, prices = ["Red", "Blue", "Green", "Grey"], rng.uniform(5, 95, 3000).round(2).tolist()
    facts = [
        {
            "title": f"{colours[i % 4]} {label.split()[0]} no. {i}",
            "price": prices[i],
            "date": f"2026-{1 + i % 12:02}-{1 + i % 28:02}",
            "brand": ["Alder", "Birch", "Cedar"][i % 3],
        }
        for i, label in enumerate(labels)
    ]
    with Collection.create(path, SDOH(64, random_state=0), refresh="manual") as collection:
        for part in (slice(0, 1500), slice(1500, 3000)):
            ids = [f"sku-{i}" for i in range(3000)][part]
            collection.add(ids, X[part], labels[part], metadata=facts[part])
            collection.refresh()


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
        page.screenshot(path=folder / f"{name}.png", full_page=width > 500 and "items" not in name)
        context.close()


def main() -> None:
    """Make the collection, serve it, and take all pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "figures"
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        fill(Path(scratch) / "digits")
        fill_shop(Path(scratch) / "shop")
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with serving(Path(scratch)) as address:
            take(browser, address, folder)
        browser.close()


if __name__ == "__main__":
    main()
