"""Charts of what benchmarks measured: for ``rebuild.py``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from performance_tables import Row, chosen, times_ours
from streamhash.lab.report.figures import BLUE, FLOOR, GRID, INK, VERMILION, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUERIES = {1: VERMILION, 200: BLUE}
DASHES: dict[str, Any] = {"clustered": "-", "uniform": (0, (3, 2))}


def draw_search(rows: Sequence[Row]) -> "Figure":
    """Draw how many times as fast as faiss we are, and as one thread two are."""
    figure = new_figure(9.6, 3.4)
    left, middle, right = figure.subplots(1, 3, width_ratios=[3, 3, 2])
    _draw_lines(left, rows, "nearest", "the 100 nearest")
    _draw_lines(middle, rows, "within", "all within a radius")
    _draw_threads(right, chosen(rows, part="threads"))
    handles, names = left.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower left", ncols=4, frameon=False, labelcolor=INK)
    return figure


def _draw_lines(axes: "Axes", rows: Sequence[Row], part: str, title: str) -> None:
    bits = sorted({row["bits"] for row in chosen(rows, part=part)})
    for n_queries, colour in QUERIES.items():
        for data, dashes in DASHES.items():
            ratios = [
                times_ours(rows, "faiss", part=part, data=data, bits=n, queries=n_queries)
                for n in bits
            ]
            label = f"{n_queries} {'query' if n_queries == 1 else 'queries'}, {data}"
            axes.plot(bits, ratios, marker="o", color=colour, linestyle=dashes, label=label)
    axes.axhline(1, color=FLOOR, linewidth=1)
    axes.annotate("faiss", (bits[0], 1), (0, -11), textcoords="offset points", size=8)
    axes.set_xscale("log", base=2)
    axes.set_xticks(bits, [str(n) for n in bits])
    axes.minorticks_off()
    axes.set_ylim(0, None)
    axes.set_xlabel("bits of a code")
    axes.set_title(f"{title}:\ntimes as fast as faiss", loc="left", fontsize=10, color=INK)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    tidy(axes)


def _draw_threads(axes: "Axes", rows: Sequence[Row]) -> None:
    bits = sorted({row["bits"] for row in rows})
    for shift, (who, colour) in enumerate({"search": BLUE, "reading": FLOOR}.items()):
        for i, n_bits in enumerate(bits):
            one, two = (chosen(rows, bits=n_bits, who=who, threads=n)[0]["seconds"] for n in (1, 2))
            at = i + 0.4 * shift - 0.2
            axes.bar(at, one / two, 0.36, color=colour)
            axes.annotate(
                f"{who}\n{one / two:.2f}", (at, one / two), (0, 3), textcoords="offset points",
                ha="center", fontsize=8, color=INK,
            )  # fmt: skip
    axes.axhline(1, color=FLOOR, linewidth=1)
    axes.set_xticks(range(len(bits)), [f"{n} bits" for n in bits])
    axes.set_ylim(0, 2.3)
    title = "two threads, one query:\ntimes as fast as one"
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    tidy(axes)
