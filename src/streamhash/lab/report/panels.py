"""The figures of a paper's experiments: a panel for each code length, one kind of settings each.

Lines of the paper are thick, those of other methods and variants thin; the name of each line stands
at its end, so that no legend has to be matched with colours.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from streamhash.lab.report.colours import INK, line_styles
from streamhash.lab.report.comparison import Comparison, Entry, heading, method_name, own_method
from streamhash.lab.report.figures import (
    Trace,
    draw_distances,
    name_lines,
    new_figure,
    plot_curves,
    plot_precision,
    tenths,
)
from streamhash.lab.report.words import join

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_comparison", "figure_words"]

LABEL_SIZE = 8.0
SHOWN_DISTANCES = 64  # bits at which an ablation shows its distances


def draw_comparison(comparison: Comparison, settings: str) -> "Figure | None":
    """Draw the figure of an experiment for one kind of settings; None if its table says it all."""
    draw = {
        "precision": _draw_panels,
        "unseen": _draw_panels,
        "curve": _draw_panels,
        "auc": _draw_areas,
        "ablation": _draw_distances,
    }.get(comparison.experiment.kind)
    if draw is None or len(list(comparison.entries(settings))) < 2:
        return None
    return draw(comparison, settings)


def figure_words(comparison: Comparison, settings: str) -> str:
    """Say what the figure shows."""
    seeds = "mean over the seeds"
    what = {
        "precision": f"Precision among the first R results, {seeds}, at each code length.",
        "unseen": f"Precision among the first R results for classes never learned, {seeds}.",
        "curve": f"Quality while the stream goes by: {seeds}, and their range as a band.",
        "auc": f"Area under the curve at each code length: {seeds}, and ± one deviation.",
        "ablation": "How far similar and dissimilar pairs lie apart, before learning and after.",
    }[comparison.experiment.kind]
    others = [e for e in comparison.entries(settings) if not _is_thick(comparison, settings, e)]
    if not others or comparison.experiment.kind == "ablation":
        return what
    names = dict.fromkeys(method_name(entry.run.method) for entry in others)
    return f"{what} Thin: {join(list(names))}, which are not lines of the paper."


def _is_thick(comparison: Comparison, settings: str, entry: Entry) -> bool:
    return entry in comparison.contenders(settings)


def _label(entry: Entry) -> str:
    """Name a line as shortly as can be: OSH (hinge)."""
    changes = entry.run.changes.items()
    told = ", ".join(value if isinstance(value, str) else f"{k}={value}" for k, value in changes)
    name = method_name(entry.run.method)
    return f"{name} ({told})" if told else name


def _styles(comparison: Comparison, settings: str) -> list[tuple[Entry, dict[str, Any]]]:
    """Choose the style of every entry once, so that it is the same in every panel."""
    entries = list(comparison.entries(settings))
    styles = line_styles([next(iter(entry.lines.values())) for entry in entries])
    own = own_method(comparison.experiment)
    found = []
    for entry, style in zip(entries, styles, strict=True):
        thick = _is_thick(comparison, settings, entry)
        width = 0.9 if not thick else 2.6 if entry.run.method == own else 1.6
        above = 3 if not thick else 5 if entry.run.method == own else 4
        size = 4 if thick else 2.5
        found.append((entry, {**style, "linewidth": width, "markersize": size, "zorder": above}))
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
        traces = [Trace(_label(e), e.lines[bits], style) for e, style in styles if bits in e.lines]
        drawn.append(plot(axes, traces))
        if len(comparison.experiment.bits) > 1:
            axes.set_title(f"{bits} bits", loc="left", fontsize=10, color=INK)
    lows, highs = zip(*(tenths(axes) for axes, _ in drawn), strict=True)
    for axes, ends in drawn:  # the same heights in all panels; not from 0, for room at the top
        name_lines(axes, ends, LABEL_SIZE, (min(lows), max(highs)))
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
    name_lines(axes, ends, LABEL_SIZE)
    return figure


def _draw_distances(comparison: Comparison, settings: str) -> "Figure | None":
    entries: Sequence[Entry] = list(comparison.entries(settings))
    shared = [b for b in comparison.experiment.bits if all(b in e.lines for e in entries)]
    if not shared:
        return None
    bits = SHOWN_DISTANCES if SHOWN_DISTANCES in shared else shared[0]
    return draw_distances([entry.lines[bits] for entry in entries])
