"""Rebuild every table and figure in the documents from the rows in results/; type none by hand.

    python docs/rebuild.py           write what has changed
    python docs/rebuild.py --check   change nothing; exit 1 if something would change (a test)

A document holds a table between ``<!-- table: NAME -->`` and ``<!-- end -->``.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

from streamhash.bench import read_rows, summarise
from streamhash.bench.summary import Line

ROOT = Path(__file__).parents[1]
BITS = (32, 48, 64, 128)
DATA = ("mnist", "cifar10-features", "miniplaces-features")

# The paper's MNIST table, and a transcription of the third author's program (one seed).
PAPER = {"map": (0.814, 0.799, 0.802, 0.823), "precision@h2": (0.835, 0.833, 0.850, 0.828)}
PROGRAM = {"map": (0.799, None, 0.80, None), "precision@h2": (0.821, None, 0.82, None)}

LABELS = {
    "sdoh published": "SDOH, published settings",
    "sdoh default": "SDOH, our default",
    "sdoh default kernel=1000": "SDOH, our default, `kernel=1000`",
    "lsh default": "LSH",
    "lsh published": "LSH, published settings",
}


def lines(data: str) -> dict[str, dict[int, Line]]:
    """Lines of a data set's rows, by settings and code length."""
    found: dict[str, dict[int, Line]] = {}
    for line in summarise(read_rows(ROOT / "results" / data / "rows.jsonl")):
        row = line.rows[0]
        changes = [f"{name}={value}" for name, value in row["changes"].items()]
        name = " ".join([row["method"], row["settings"], *changes])
        found.setdefault(name, {})[line.n_bits] = line
    return found


def markdown(head: list[str], body: list[list[str]]) -> str:
    """A Markdown table, the first column of which is text."""
    rows = [head, ["---"] + ["---:"] * (len(head) - 1), *body]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def numbers(values: tuple[float | None, ...]) -> list[str]:
    """Published numbers as cells."""
    return ["–" if value is None else f"{value:.3f}" for value in values]


def cells(by_bits: dict[int, Line], metric: str) -> list[str]:
    """Our mean ± std as cells."""
    return [by_bits[k].text(metric) if k in by_bits else "–" for k in BITS]


def of_data(data: str, wanted: tuple[str, ...], metric: str) -> list[list[str]]:
    """Table lines of a data set."""
    found = lines(data)
    return [[LABELS[name], *cells(found[name], metric)] for name in wanted if name in found]


SDOH = ("sdoh published", "sdoh default", "sdoh default kernel=1000")
HEAD = [f"{k} bits" for k in BITS]


def readme() -> str:
    """MNIST in short."""
    body = [["SDOH, the paper", *numbers(PAPER["map"])]]
    body += of_data("mnist", (*SDOH, "lsh default"), "map")
    return markdown(["MNIST, mAP", *HEAD], body)


def sdoh_mnist() -> str:
    """MNIST, two metrics, beside paper and program."""
    tables = []
    for metric, title in (("map", "mAP"), ("precision@h2", "Precision@H2")):
        body = [
            ["SDOH, the paper", *numbers(PAPER[metric])],
            ["SDOH, authors' program transcribed, one seed", *numbers(PROGRAM[metric])],
            *of_data("mnist", (*SDOH, "lsh default"), metric),
        ]
        tables.append(markdown([f"MNIST, {title}", *HEAD], body))
    return "\n\n".join(tables)


def sdoh_other() -> str:
    """The same default elsewhere."""
    wanted = (*SDOH[1:], "lsh default")
    return "\n\n".join(
        markdown([f"{data}, mAP", *HEAD], of_data(data, wanted, "map")) for data in DATA[1:]
    )


def sdoh_seconds() -> str:
    """Processor seconds to learn the stream."""
    found = lines("mnist")
    body = [
        [LABELS[name], *[f"{found[name][k].seconds('learn'):.2f}" for k in BITS]]
        for name in SDOH
        if name in found
    ]
    machine = found["sdoh default"][32].rows[0]["machine"]
    return markdown([f"CPU s on {machine['cpu']}", *HEAD], body)


def lsh_mnist() -> str:
    """LSH under both settings."""
    return markdown(["mAP", *HEAD], of_data("mnist", ("lsh default", "lsh published"), "map"))


def printed(name: str) -> Callable[[], str]:
    """What a benchmark printed, kept in results/benchmarks."""

    def table() -> str:
        text = (ROOT / "results" / "benchmarks" / f"{name}.txt").read_text(encoding="utf-8")
        return f"```text\n{text.strip()}\n```"

    return table


TABLES: dict[str, Callable[[], str]] = {
    "readme": readme,
    "sdoh-mnist": sdoh_mnist,
    "sdoh-other": sdoh_other,
    "sdoh-seconds": sdoh_seconds,
    "lsh-mnist": lsh_mnist,
    "benchmark-sdoh-step": printed("sdoh_step"),
    "benchmark-evaluation": printed("evaluation"),
}
PLACE = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def draw() -> None:
    """Draw the README's figure: quality against instances seen."""
    from streamhash.bench.figures import draw_curves
    from streamhash.bench.picture import save_png

    found = lines("mnist")
    folder = ROOT / "docs" / "figures"
    folder.mkdir(exist_ok=True)
    wanted = ("sdoh default kernel=1000", "sdoh default", "sdoh published", "lsh default")
    save_png(draw_curves([found[name][32] for name in wanted]), folder / "mnist-curve.png")


def rebuilt(text: str) -> str:
    """Return a document with all its tables made anew."""
    return PLACE.sub(lambda place: f"{place[1]}{TABLES[place[2]]()}\n{place[3]}", text)


def main() -> int:
    """Rebuild or check all documents."""
    stale = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        before = path.read_text(encoding="utf-8")
        after = rebuilt(before)
        if after != before:
            stale.append(str(path.relative_to(ROOT)))
            if "--check" not in sys.argv:
                path.write_text(after, encoding="utf-8")
    if "--check" not in sys.argv:
        draw()
    sys.stdout.write("".join(f"{name}\n" for name in stale))
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
