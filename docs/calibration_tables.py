"""The table and the figure of ``live.md`` on probabilities, from benchmarks/calibration.py."""

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamhash.hashers import METHODS
from streamhash.lab.report.figures import BLUE, GRID, INK, VERMILION, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = Path(__file__).parents[1] / "results" / "answers" / "calibration.jsonl"
COLUMNS = {
    "nearest": ("end", "neighbours 1"),
    "10 nearest": ("end", "neighbours 10"),
    "100 nearest": ("end", "neighbours 100"),
    "`predict`": ("end", "predict"),
    "10 nearest, just refreshed": ("refreshed", "neighbours 10"),
    "`predict`, just refreshed": ("refreshed", "predict"),
}
FEWEST = 20  # answers that a point stands for
DATA = {"mnist": "MNIST", "reuters": "Reuters"}

Row = dict[str, Any]


@cache
def rows() -> list[Row]:
    """Rows asked with test queries."""
    lines = ROWS.read_text(encoding="utf-8").splitlines()
    found = [row for row in map(json.loads, lines) if row["queries"] == "test"]
    methods = [*METHODS]
    return sorted(found, key=lambda row: (row["data"], methods.index(row["method"]), row["bits"]))


def calibration_table() -> str:
    """Calibration errors of neighbours and votes, and what is left at a probability of 90 %."""
    head = ["calibration error", *COLUMNS, "of the 10 nearest, above 90 %", "right of these"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for row in rows():
        name = f"{DATA[row['data']]}, {METHODS[row['method']].__name__}, {row['bits']} bits"
        cells = [
            f"{row[when][what]['error']:.3f}" if when in row else "–"
            for when, what in COLUMNS.values()
        ]
        sure = row["end"]["predict"]
        cells += [f"{sure['share above 0.9']:.1%}", f"{sure['above 0.9']:.1%}"]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return "\n".join(lines)


def draw_calibration() -> "Figure":
    """Draw what came true against what was said, for SDOH with 32 bits."""
    shown = [row for row in rows() if (row["method"], row["bits"]) == ("sdoh", 32)]
    figure = new_figure(4.2 * len(shown), 4.2)
    for axes, row in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        axes.plot([0, 1], [0, 1], color=GRID, linewidth=2)
        for what, name, colour, marker in (
            ("neighbours 10", "the 10 nearest", BLUE, "o"),
            ("predict", "predicted labels", VERMILION, "s"),
        ):
            points = [each for each in row["end"][what]["points"] if each[2] >= FEWEST]
            said, true, n = zip(*points, strict=True)
            total = sum(n)
            sizes = [12 + 300 * count / total for count in n]
            axes.scatter(said, true, sizes, color=colour, marker=marker, label=name, alpha=0.8)
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="said", ylabel="came true")
        axes.set_title(f"{DATA[row['data']]}, 32 bits", loc="left", fontsize=10, color=INK)
        tidy(axes)
    axes.legend(frameon=False, labelcolor=INK, loc="upper left")
    return figure
