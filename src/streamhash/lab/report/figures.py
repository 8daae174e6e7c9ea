"""The figures of a report, drawn by matplotlib from result rows.

Each is a ``Figure`` of matplotlib with light colours; :func:`save_png` writes it as a PNG file,
:func:`to_svg` as SVG whose colours follow the page. Colours are those that people with any
colour vision tell apart (Okabe and Ito 2008); each has a lighter twin for dark pages. A method has
one colour and marker in every figure; lines of one method differ by their dashes, and the name of
each line stands at its end, so that no legend has to be matched with colours.
"""

import io
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamhash.lab.comparison import Comparison, Entry, heading, own_method
from streamhash.lab.report.sentences import (
    describe_curve,
    describe_distances,
    describe_precision,
    join,
)
from streamhash.lab.rows import METRICS, Line, Row, method_name
from streamhash.optional import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#24292f"
GRID = "#d8dee4"
FLOOR = "#7b8087"
PALETTE = {
    "#0072b2": "#4aa8e0",  # blue
    "#d55e00": "#f08040",  # vermilion
    "#009e73": "#2fc79b",  # green
    "#cc79a7": "#e09fc5",  # purple
    "#e69f00": "#f0b840",  # orange
    "#56b4e9": "#8accf2",  # sky
    "#8c510a": "#c9975b",  # brown
    "#54478c": "#a597e0",  # indigo
}
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BROWN, INDIGO = PALETTE
SIMILAR_PAIRS, OTHER_PAIRS = BLUE, VERMILION
SCHEMES = {INK: "#e6edf3", GRID: "#30363d", FLOOR: "#9aa0a8", **PALETTE}
DASHES = ("-", (0, (4, 1.5)), (0, (1.5, 1.5)), (0, (5, 1.5, 1, 1.5)))
# Colour, marker and first dashes. A method that grew out of another shares its colour, dashed;
# methods that need no labels are grey.
METHOD_STYLES = {
    "sdoh": (BLUE, "o", 0),
    "hcoh": (VERMILION, "s", 0),
    "hmoh": (VERMILION, "P", 1),
    "bsodh": (GREEN, "D", 0),
    "mihash": (PURPLE, "^", 0),
    "osh": (ORANGE, "v", 0),
    "adapthash": (SKY, "X", 0),
    "sketchhash": (BROWN, "<", 0),
    "frosh": (BROWN, ">", 1),
    "okh": (INDIGO, "p", 0),
    "sdohhc": (BLUE, "H", 2),
    "foh": (GREEN, "8", 1),
    "lemon": (ORANGE, "4", 1),
    "athoh": (VERMILION, "3", 2),
    "ohweu": (SKY, "2", 1),
    "ridgehash": (INK, "1", 2),
    "itq": (FLOOR, "d", 2),
    "pcah": (FLOOR, "h", 3),
    "lsh": (FLOOR, ".", 1),
}
UNKNOWN = (INK, "*", 0)  # a method of somebody else
LABEL_POINTS = 10.0
LABEL_GAP = 0.065  # least distance of two such labels, as a share of the axes' height

Trace = tuple[str, Line, dict[str, Any]]  # a label, its line, and how it is drawn
End = tuple[str, float, float, str]  # a label, the place where its line ends, and its colour
PANEL_LABEL_POINTS = 8.0
SHOWN_DISTANCES = 64  # bits at which an ablation shows its distances


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
        (line.label, line, style) for line, style in zip(lines, line_styles(lines), strict=True)
    ]


def plot_curves(axes: "Axes", traces: Sequence[Trace]) -> tuple["Axes", list[End]]:
    """Plot lines against the instances seen, and return where each ends."""
    from matplotlib.ticker import MaxNLocator

    ends: list[End] = []
    for label, line, style in traces:
        rows, colour = line.rows, style["color"]
        metric = rows[0]["curve_metric"]
        x = [at["instances"] for at in rows[0]["curve"]]
        values = np.array([[at[metric] for at in row["curve"]] for row in rows], float)
        axes.plot(x, values.mean(axis=0), **style)
        if len(values) > 1:
            low, high = values.min(axis=0), values.max(axis=0)
            axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
        ends.append((label, x[-1], float(values.mean(axis=0)[-1]), colour))
    axes.set(xlabel="instances seen", ylabel=METRICS[metric][0], xlim=(0, None))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return axes, ends


def plot_precision(axes: "Axes", traces: Sequence[Trace]) -> tuple["Axes", list[End]]:
    """Plot the precision against the number of results looked at, and return where each ends."""
    ends: list[End] = []
    for label, line, style in traces:
        points = sorted(_precisions(line))
        ranks, values = [rank for rank, _ in points], [value for _, value in points]
        axes.plot(ranks, values, **style)
        ends.append((label, ranks[-1], values[-1], style["color"]))
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
    first: Axes = grid.flat[0]
    first.legend(frameon=False, loc="upper right", handlelength=1.2, reverse=True, labelcolor=INK)
    return figure


def draw_class_curves(lines: Sequence[Line]) -> "Figure":
    """Draw the quality of each class along the stream, side by side for each line.

    A thin line is one class with the first seed, from its first row on, and the dot on it where it
    stopped coming. The thick line is the mean over all classes that have come, and all seeds.
    """
    n_columns = min(len(lines), 3)
    n_rows = -(-len(lines) // n_columns)
    figure = new_figure(max(5.4, 3.6 * n_columns), 3.3 * n_rows)
    grid = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    for axes, line in zip(grid.flat, lines, strict=False):
        _draw_classes(axes, line)
    for axes in grid.flat[len(lines) :]:
        axes.remove()
    for axes in grid[:, 0]:
        axes.set_ylabel(METRICS[lines[0].rows[0]["curve_metric"]][0])
        axes.set_ylim(0, 1)
    return figure


def _draw_classes(axes: "Axes", line: Line) -> None:
    from matplotlib.ticker import MaxNLocator

    colour = METHOD_STYLES.get(line.method, UNKNOWN)[0]
    row = line.rows[0]
    x = np.array([at["instances"] for at in row["curve"]])
    found = row["class_curve"]
    for values, last in zip(found["values"], found["last"], strict=True):
        heights = np.array(values, float)  # null is NaN, which is not drawn
        axes.plot(x, heights, color=colour, linewidth=0.8, alpha=0.5)
        ended = np.flatnonzero(x >= (last or np.inf))[:1]
        axes.plot(x[ended], heights[ended], color=colour, marker=".", markersize=5, linestyle="")
    means = [_mean_of_classes(row) for row in line.rows]
    axes.plot(x, np.mean(means, axis=0), color=INK, linewidth=2.6)
    axes.set_title(line.label, loc="left", fontsize=10, color=INK)
    axes.tick_params(labelbottom=True)  # also where a panel below was left out
    axes.set(xlabel="instances seen", xlim=(0, None))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    tidy(axes)


def _mean_of_classes(row: Row) -> NDArray[np.float64]:
    """Return the mean over the classes that have come, at each look."""
    values = np.array(row["class_curve"]["values"], float)  # (C, looks)
    came = ~np.isnan(values)
    total = np.where(came, values, 0).sum(axis=0)
    mean: NDArray[np.float64] = total / np.maximum(came.sum(axis=0), 1)  # one has come in any case
    return mean


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
    size: float = LABEL_POINTS,
    limits: tuple[float, float] | None = None,
) -> None:
    """Give a plot of lines its frame, from 0 up, and each line its name at its end."""
    tidy(axes)
    low, high = (0.0, tenths(axes)[1]) if limits is None else limits
    axes.set_ylim(low, high)
    ends = sorted(ends, key=lambda end: end[2])
    gap = LABEL_GAP * size / LABEL_POINTS
    places = _spread([y - low for _, _, y, _ in ends], high - low, gap)
    for (name, x, y, colour), at in zip(ends, places, strict=True):
        place: dict[str, Any] = {"xycoords": "data", "textcoords": axes.get_yaxis_transform()}
        arrow = {"arrowstyle": "-", "color": colour, "linewidth": 0.8, "relpos": (0, 0.5)}
        place |= {"va": "center", "annotation_clip": False, "arrowprops": arrow}
        axes.annotate(name, (x, y), (1.03, low + at), color=INK, fontsize=size, **place)


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


def line_styles(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Choose colour, marker and dashes of each line, by its method."""
    styles, seen = [], Counter[str]()
    for line in lines:
        colour, marker, dashes = METHOD_STYLES.get(line.method, UNKNOWN)
        number = (dashes + seen[line.method]) % len(DASHES)
        seen[line.method] += 1
        style = {"color": colour, "marker": marker, "linestyle": DASHES[number], "markersize": 4}
        styles.append({**style, "linewidth": 1.8 if number == 0 else 1.3})
    return styles


def draw_comparison(comparison: Comparison, settings: str) -> "Figure | None":
    """Draw the figure of an experiment for one kind of settings; None if its table says it all."""
    kind = comparison.experiment.kind
    if kind == "table" or len(list(comparison.entries(settings))) < 2:
        return None
    draw = {"auc": _draw_areas, "ablation": _draw_distances}.get(kind, _draw_panels)
    return draw(comparison, settings)


def figure_caption(comparison: Comparison, settings: str) -> str:
    """Say what the figure shows."""
    seeds = "mean over the seeds"
    what = {
        "precision": f"Precision among the first R results, {seeds}, at each code length.",
        "unseen": f"Precision among the first R results for classes never learned, {seeds}.",
        "curve": f"Quality while the stream goes by: {seeds}, and their range as a band.",
        "auc": f"Area under the curve at each code length: {seeds}, and ± one deviation.",
        "ablation": "How far similar and dissimilar pairs lie apart, before learning and after.",
    }[comparison.experiment.kind]
    thick = comparison.contenders(settings)
    others = [entry for entry in comparison.entries(settings) if entry not in thick]
    if not others or comparison.experiment.kind == "ablation":
        return what
    names = dict.fromkeys(method_name(entry.run.method) for entry in others)
    return f"{what} Thin: {join(list(names))}, which are not lines of the paper."


def _label(entry: Entry) -> str:
    """Name a line as shortly as can be: OSH (hinge)."""
    changes = entry.run.changes.items()
    changed = ", ".join(value if isinstance(value, str) else f"{k}={value}" for k, value in changes)
    name = method_name(entry.run.method)
    return f"{name} ({changed})" if changed else name


def _styles(comparison: Comparison, settings: str) -> list[tuple[Entry, dict[str, Any]]]:
    """Choose the style of every entry once, so that it is the same in every panel."""
    entries = list(comparison.entries(settings))
    styles = line_styles([next(iter(entry.lines.values())) for entry in entries])
    own, thick = own_method(comparison.experiment), comparison.contenders(settings)
    thin = {"linewidth": 0.9, "markersize": 2.5, "zorder": 3}
    found = []
    for entry, style in zip(entries, styles, strict=True):
        width, above = (2.6, 5) if entry.run.method == own else (1.6, 4)
        bold = {"linewidth": width, "markersize": 4, "zorder": above}
        found.append((entry, {**style, **(bold if entry in thick else thin)}))
    return found


def _draw_panels(comparison: Comparison, settings: str) -> "Figure":
    styles = _styles(comparison, settings)
    lengths = [
        bits for bits in comparison.experiment.bits if any(bits in e.lines for e, _ in styles)
    ]
    n_columns = min(2, len(lengths))
    n_rows = math.ceil(len(lengths) / n_columns)
    figure = new_figure(10.8 if n_columns == 2 else 5.4, 3.6 * n_rows)
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    plot = plot_curves if comparison.experiment.kind == "curve" else plot_precision
    drawn = []
    for axes, bits in zip(grid.flat, lengths, strict=False):
        traces = [(_label(e), e.lines[bits], style) for e, style in styles if bits in e.lines]
        drawn.append(plot(axes, traces))
        if len(comparison.experiment.bits) > 1:
            axes.set_title(f"{bits} bits", loc="left", fontsize=10, color=INK)
    lows, highs = zip(*(tenths(axes) for axes, _ in drawn), strict=True)
    for axes, ends in drawn:  # the same heights in all panels; not from 0, for room at the top
        name_lines(axes, ends, PANEL_LABEL_POINTS, (min(lows), max(highs)))
    for axes in grid.flat[len(lengths) :]:
        axes.remove()
    return figure


def _draw_areas(comparison: Comparison, settings: str) -> "Figure":
    """Draw a value for each code length; the lengths stand at even distances."""
    metric, lengths = comparison.experiment.metrics[0], comparison.experiment.bits
    figure = new_figure(5.4, 3.9)
    axes = figure.subplots()
    ends = []
    for entry, style in _styles(comparison, settings):
        places = [place for place, bits in enumerate(lengths) if bits in entry.lines]
        lines = [entry.lines[lengths[place]] for place in places]
        means = np.array([line.mean(metric) for line in lines], float)
        spread = np.array([line.std(metric) or 0.0 for line in lines])
        axes.errorbar(places, means, yerr=spread, elinewidth=0.8, **style)
        ends.append((_label(entry), places[-1], float(means[-1]), style["color"]))
    axes.set_xticks(range(len(lengths)), [f"{bits} bits" for bits in lengths])
    axes.set(ylabel=heading(metric), xlim=(-0.2, len(lengths) - 0.8))
    name_lines(axes, ends, PANEL_LABEL_POINTS)
    return figure


def _draw_distances(comparison: Comparison, settings: str) -> "Figure | None":
    entries: Sequence[Entry] = list(comparison.entries(settings))
    shared = [b for b in comparison.experiment.bits if all(b in e.lines for e in entries)]
    if not shared:
        return None
    bits = SHOWN_DISTANCES if SHOWN_DISTANCES in shared else shared[0]
    return draw_distances([entry.lines[bits] for entry in entries])


def save_png(figure: "Figure", path: Path, *, dpi: int = 200) -> None:
    """Write a picture for documents: light, on white, by default sharp on dense screens."""
    figure.savefig(path, format="png", dpi=dpi, facecolor="white", metadata={"Software": None})


def to_svg(figure: "Figure", name: str, alt: str) -> str:
    """Write a picture for a page: text stays text, colours are variables, no address in it."""
    import matplotlib

    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    buffer = io.StringIO()
    # The salt keeps the ids of two pictures on one page apart.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg).replace("xlink:href", "href")
    box = re.search(r'viewBox="[^"]*"', svg)
    top = f'<svg {box.group() if box else ""} role="img" aria-label="{escape(alt)}">'
    svg = re.sub(r"<svg[^>]*>", lambda _: top, svg, count=1)
    svg = re.sub(r' id="((?:figure|axes|patch|matplotlib|line2d|text|xtick|ytick)[^"]*)"', "", svg)
    svg = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font: \1 var(--sans)", svg)
    for colour in SCHEMES:
        svg = svg.replace(colour, f"var({_variable(colour)})")
    return svg


def colour_variables(dark: bool) -> str:
    """Write the colours of one scheme as CSS variables."""
    return " ".join(
        f"{_variable(light)}: {twin if dark else light};" for light, twin in SCHEMES.items()
    )


def _variable(colour: str) -> str:
    return f"--c{colour[1:]}"


def have_figures() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


# The figures of lines of no experiment: title, what draws it, what says it.
GROUP_FIGURES = {
    "map": ("mAP against instances seen", draw_curves, describe_curve),
    "precision": ("Precision among the first R results", draw_precision, describe_precision),
    "distances": ("Distances of similar and dissimilar pairs", draw_distances, describe_distances),
}
