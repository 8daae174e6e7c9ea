"""The figures of a report, drawn by matplotlib from result rows.

Each is a ``Figure`` of matplotlib with light colours, which ``picture.py`` turns into PNG files and
into SVG whose colours follow the page.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamhash.lab.report.colours import GRID, INK, OTHER_PAIRS, SIMILAR_PAIRS, line_styles
from streamhash.lab.summary import METRICS, Line
from streamhash.optional import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "Trace",
    "draw_curves",
    "draw_distances",
    "draw_precision",
    "name_lines",
    "new_figure",
    "plot_curves",
    "plot_precision",
    "tenths",
    "tidy",
]

LABEL_SIZE = 10.0
LABEL_GAP = 0.065  # least distance of two such labels, as a share of the axes' height

End = tuple[str, float, float, str]  # a label, the place where its line ends, and its colour


@dataclass(frozen=True)
class Trace:
    """A line as it is drawn."""

    label: str
    line: Line
    style: dict[str, Any]


def draw_curves(lines: Sequence[Line]) -> "Figure":
    """Draw mAP against instances seen: mean over the seeds, and their range as a band."""
    figure = new_figure(5.4, 3.5)
    name_lines(*plot_curves(figure.subplots(), _traces(lines)))
    return figure


def draw_precision(lines: Sequence[Line]) -> "Figure":
    """Draw the precision among the first R results, mean over the seeds."""
    figure = new_figure(5.4, 3.5)
    name_lines(*plot_precision(figure.subplots(), _traces(lines)))
    return figure


def _traces(lines: Sequence[Line]) -> list[Trace]:
    return [
        Trace(line.label, line, style)
        for line, style in zip(lines, line_styles(lines), strict=True)
    ]


def plot_curves(axes: "Axes", traces: Sequence[Trace]) -> tuple["Axes", list[End]]:
    """Plot lines against the instances seen, and return where each ends."""
    from matplotlib.ticker import MaxNLocator

    ends: list[End] = []
    for trace in traces:
        rows, colour = trace.line.rows, trace.style["color"]
        metric = rows[0]["curve_metric"]
        x = [at["instances"] for at in rows[0]["curve"]]
        values = np.array([[at[metric] for at in row["curve"]] for row in rows], float)
        axes.plot(x, values.mean(axis=0), **trace.style)
        if len(values) > 1:
            low, high = values.min(axis=0), values.max(axis=0)
            axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
        ends.append((trace.label, x[-1], float(values.mean(axis=0)[-1]), colour))
    axes.set(xlabel="instances seen", ylabel=METRICS[metric][0], xlim=(0, None))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return axes, ends


def plot_precision(axes: "Axes", traces: Sequence[Trace]) -> tuple["Axes", list[End]]:
    """Plot the precision against the number of results looked at, and return where each ends."""
    ends: list[End] = []
    for trace in traces:
        points = sorted(_precisions(trace.line))
        ranks, values = [rank for rank, _ in points], [value for _, value in points]
        axes.plot(ranks, values, **trace.style)
        ends.append((trace.label, ranks[-1], values[-1], trace.style["color"]))
    axes.set(xlabel="R, results looked at", ylabel="precision among the first R", xlim=(0, None))
    return axes, ends


def draw_distances(lines: Sequence[Line]) -> "Figure":
    """Draw how far similar and dissimilar pairs lie apart, before learning and after."""
    learned = [line for line in lines if line.method != "lsh"]
    panels = [("before learning: random projections", _shares(lines[0], "before"))]
    panels += [(f"after learning: {line.label}", _shares(line, "after")) for line in learned]
    n_columns = min(len(panels), 3)
    n_rows = -(-len(panels) // n_columns)
    figure = new_figure(10.8, 2.9 * n_rows)
    grid = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    for axes, (title, shares) in zip(grid.flat, panels, strict=False):
        _draw_pairs(axes, title, shares)
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    for axes in grid[:, 0]:
        axes.set_ylabel("share of pairs")
        axes.set_ylim(0, None)  # once all panels are drawn, as they share the axis
    _name_pairs(grid.flat[0])
    return figure


def new_figure(width: float, height: float) -> "Figure":
    """Make an empty figure, of a size in inches."""
    matplotlib = import_optional("matplotlib.figure", extra="plots", place="a figure")
    figure: Figure = matplotlib.Figure(figsize=(width, height), layout="constrained")
    return figure


def _precisions(line: Line) -> Iterator[tuple[int, float]]:
    for metric in line.rows[0]["metrics"]:
        rank = metric.removeprefix("precision@")
        mean = line.mean(metric)
        if rank.isdigit() and mean is not None:
            yield int(rank), mean


def _shares(line: Line, when: str) -> dict[str, NDArray[np.float64]]:
    """Return the share of pairs at each distance, over all seeds."""
    shares = {}
    for kind in ("similar", "dissimilar"):
        counts = np.sum([row["distances"][when][kind] for row in line.rows], axis=0)
        shares[kind] = counts / max(1, counts.sum())
    return shares


def _draw_pairs(axes: "Axes", title: str, shares: dict[str, NDArray[np.float64]]) -> None:
    for kind, colour in (("dissimilar", OTHER_PAIRS), ("similar", SIMILAR_PAIRS)):
        share = shares[kind]
        edges = np.arange(len(share) + 1) - 0.5
        axes.stairs(share, edges, fill=True, color=colour, alpha=0.25)
        axes.stairs(share, edges, color=colour, linewidth=1.6, label=f"{kind} pairs")
        mean = float(np.arange(len(share)) @ share)
        axes.axvline(mean, color=colour, linewidth=1.1, linestyle=(0, (3, 2)))
    axes.tick_params(labelbottom=True)  # also where a panel below was left out
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.set(xlabel="Hamming distance", xlim=(-0.5, len(share) - 0.5))
    tidy(axes)


def _name_pairs(axes: "Axes") -> None:
    legend = axes.legend(frameon=False, loc="upper right", handlelength=1.2, reverse=True)
    for text in legend.get_texts():
        text.set_color(INK)


def tidy(axes: "Axes") -> None:
    """Leave of a frame what a reader needs."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRID)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, length=0)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_color(INK)


def name_lines(
    axes: "Axes",
    ends: Sequence[End],
    size: float = LABEL_SIZE,
    limits: tuple[float, float] | None = None,
) -> None:
    """Give a plot of lines its frame, from 0 up, and each line its name at its end."""
    tidy(axes)
    low, high = (0.0, tenths(axes)[1]) if limits is None else limits
    axes.set_ylim(low, high)
    ends = sorted(ends, key=lambda end: end[2])
    gap = LABEL_GAP * size / LABEL_SIZE
    places = _spread([y - low for _, _, y, _ in ends], high - low, gap)
    for (name, x, y, colour), at in zip(ends, places, strict=True):
        place: dict[str, Any] = {"xycoords": "data", "textcoords": axes.get_yaxis_transform()}
        axes.annotate(
            name,
            (x, y),
            (1.03, low + at),
            va="center",
            color=INK,
            fontsize=size,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.8, "relpos": (0, 0.5)},
            **place,
        )


def tenths(axes: "Axes") -> tuple[float, float]:
    """Return the tenths between which all that is drawn lies, within 0 and 1."""
    low, high = axes.get_ylim()
    return max(0.0, math.floor(low * 10) / 10), min(1.0, math.ceil(high * 10) / 10)


def _spread(heights: list[float], top: float, share: float = LABEL_GAP) -> list[float]:
    """Move labels at rising heights apart until none covers another, each as little as can be."""
    gap = min(share, 1 / max(1, len(heights) - 1)) * top
    # Without their gaps the labels only have to rise: where two would fall, they meet half way.
    piles: list[list[float]] = []
    for number, height in enumerate(heights):
        piles.append([height - number * gap])
        while len(piles) > 1 and np.mean(piles[-2]) > np.mean(piles[-1]):
            piles[-2:] = [piles[-2] + piles[-1]]
    places = np.repeat([np.mean(pile) for pile in piles], [len(pile) for pile in piles])
    places = np.clip(places, 0, top - (len(heights) - 1) * gap)
    return [float(place) + number * gap for number, place in enumerate(places)]
