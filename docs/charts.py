"""Charts of what benchmarks printed: for ``rebuild.py``."""

import re
from typing import TYPE_CHECKING, NamedTuple

from streamhash.lab.report.figures import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    VERMILION,
    new_figure,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_search", "read_search"]

K = 100  # neighbours that the chart is about
# Colour, marker, and how far above the mark its number stands: neighbours share a line.
STYLES = {
    "faiss": (VERMILION, "s", 7),
    "NumPy": (GREEN, "D", 7),
    "usearch": (PURPLE, "^", 7),
    "torch": (ORANGE, "v", -14),
}


class Measured(NamedTuple):
    """How many times as long as streamhash a peer took."""

    n_items: int
    n_bits: int
    n_queries: int
    k: int
    peer: str
    ratio: float


def read_search(text: str) -> list[Measured]:
    """Read the ratios that ``benchmarks/search.py`` printed."""
    found = []
    for line in text.splitlines():
        if size := re.match(r"([\d,]+) codes of (\d+) bits", line):
            n_items, n_bits = int(size[1].replace(",", "")), int(size[2])
        elif asked := re.match(r" +(\d+) queries, k = (\d+)", line):
            n_queries, k = int(asked[1]), int(asked[2])
        elif timed := re.match(r" +(\w+).* \(([\d.]+)\)$", line):
            ratio = float(timed[2])
            found.append(Measured(n_items, n_bits, n_queries, k, timed[1], ratio))
    return found


def draw_search(measured: list[Measured]) -> "Figure":
    """Draw, for each size of codes, how many times as long as ours the peers' searches took."""
    shown = [one for one in measured if one.k == K]
    bits = sorted({one.n_bits for one in shown})
    sizes = sorted({one.n_items for one in shown})
    figure = new_figure(8.4, 1.0 + 1.9 * len(sizes))
    grid = figure.subplots(len(sizes), len(bits), sharex=True, sharey=True, squeeze=False)
    for row, n_items in zip(grid, sizes, strict=True):
        for axes, n_bits in zip(row, bits, strict=True):
            here = [one for one in shown if (one.n_items, one.n_bits) == (n_items, n_bits)]
            _draw_panel(axes, here)
            title = f"{n_items // 10**6} million codes of {n_bits} bits"
            axes.set_title(title, loc="left", fontsize=10, color=INK)
    for axes in grid[-1]:
        axes.set_xlabel("processor time, as a multiple of streamhash's")
    handles, names = grid[0, 0].get_legend_handles_labels()  # the smallest: all peers were asked
    figure.legend(
        handles, names, loc="outside upper left", ncols=len(names), frameon=False, labelcolor=INK
    )
    return figure


def _draw_panel(axes: "Axes", measured: list[Measured]) -> None:
    """One row of marks for each number of queries, the ratio written beside each mark."""
    asked = sorted({one.n_queries for one in measured})
    axes.axvline(1, color=BLUE, linewidth=2, label="streamhash")
    for peer, (colour, marker, above) in STYLES.items():
        points = [(one.ratio, asked.index(one.n_queries)) for one in measured if one.peer == peer]
        if not points:
            continue
        x, y = zip(*points, strict=True)
        axes.plot(x, y, linestyle="none", color=colour, marker=marker, markersize=7, label=peer)
        for ratio, at in points:
            text = f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"
            axes.annotate(
                text,
                (ratio, at),
                (0, above),
                textcoords="offset points",
                ha="center",
                fontsize=8,
                color=INK,
            )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    axes.set(xlim=(0.8, 500), ylim=(len(asked) - 0.5, -0.65))
    axes.set_yticks(range(len(asked)))
    axes.set_yticklabels(["1 query" if n == 1 else f"{n:,} queries" for n in asked])
    tidy(axes)
    axes.minorticks_off()
    axes.grid(axis="x", color="#eef1f4", linewidth=0.8)
