"""Charts of what benchmarks measured: for ``rebuild.py``."""

from typing import TYPE_CHECKING, Any

from performance_tables import batches, chosen, machines, shares, tenths, times_ours, writes
from streamhash.lab.report.figures import (
    BLUE,
    FLOOR,
    GREEN,
    GRID,
    INK,
    VERMILION,
    new_figure,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DASHES: dict[str, Any] = {"clustered": "-", "uniform": (0, (3, 2)), "learned": (0, (1, 1.5))}


def draw_search() -> "Figure":
    """Draw how many times as fast as faiss we are, and as one thread two are."""
    figure = new_figure(9.6, 3.6)
    left, middle, right = figure.subplots(1, 3, width_ratios=[3, 3, 2.4])
    _draw_lines(left, 200)
    _draw_lines(middle, 1)
    left.axhline(6, color=INK, linewidth=1, linestyle=":", label="asked for")
    _draw_threads(right)
    handles, names = left.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower left", ncols=4, frameon=False, labelcolor=INK)
    return figure


def _draw_lines(axes: "Axes", n_queries: int) -> None:
    bits: list[int] = []
    for (machine, rows), colour in zip(machines().items(), (VERMILION, BLUE, GREEN), strict=False):
        for data, dashes in DASHES.items():
            facts = {"part": "nearest", "data": data, "queries": n_queries}
            own = sorted({row["bits"] for row in chosen(rows, **facts)})
            ratios = [times_ours(rows, "faiss", **facts, bits=n) for n in own]
            label = f"{machine}, {data}"
            axes.plot(own, ratios, marker="o", color=colour, linestyle=dashes, label=label)
            bits = bits or own
    axes.axhline(1, color=FLOOR, linewidth=1)
    axes.annotate("faiss", (bits[0], 1), (0, -11), textcoords="offset points", size=8)
    axes.set_xscale("log", base=2)
    axes.set_xticks(bits, [str(n) for n in bits])
    axes.minorticks_off()
    axes.set_ylim(0, None)
    asked = "one query" if n_queries == 1 else f"{n_queries} queries"
    _name(axes, f"the 100 nearest, {asked}:\ntimes as fast as faiss", "bits of a code")


def _draw_threads(axes: "Axes") -> None:
    places: list[str] = []
    for machine, rows in machines().items():
        for n_bits in (64, 128):
            at = len(places)
            for shift, (who, colour) in enumerate({"search": BLUE, "reading": FLOOR}.items()):
                found = chosen(rows, part="threads", bits=n_bits, who=who)
                one, two = (chosen(found, threads=n)[0]["seconds"] for n in (1, 2))
                label = who if at == 0 else None
                axes.bar(at + 0.4 * shift - 0.2, one / two, 0.36, color=colour, label=label)
                axes.annotate(
                    f"{one / two:.2f}", (at + 0.4 * shift - 0.2, one / two), (0, 2),
                    textcoords="offset points", ha="center", fontsize=6, color=INK,
                )  # fmt: skip
            places.append(f"{machine.removeprefix('AMD EPYC ').removeprefix('Intel ')}\n{n_bits}")
    axes.axhline(1, color=FLOOR, linewidth=1)
    axes.set_xticks(range(len(places)), places, fontsize=8)
    axes.set_ylim(0, 2.3)
    axes.legend(loc="upper left", ncols=2, frameon=False, fontsize=8, labelcolor=INK)
    _name(axes, "two threads, one query:\ntimes as fast as one", "bits of a code")


def draw_writes() -> "Figure":
    """Draw single adds by how many come at a time, adds along many of them, and batches."""
    figure = new_figure(9.6, 3.4)
    left, middle, right = figure.subplots(1, 3, width_ratios=[3, 3, 2])
    for (who, kind), series in writes().items():
        if not kind.startswith("add"):
            continue
        colour = BLUE if who == "threads" else VERMILION
        dashes = DASHES["uniform"] if kind == "add" else DASHES["clustered"]
        at_once = sorted(series)
        label = f"{who}: {kind}"
        per_second = [series[n] for n in at_once]
        left.plot(at_once, per_second, marker="o", color=colour, linestyle=dashes, label=label)
    left.plot(
        [1, 64], [150, 2000], linestyle="none", marker="_", ms=16, color=INK, label="asked for"
    )
    left.set_xscale("log", base=2)
    left.set_yscale("log")
    left.set_xticks(at_once, [str(n) for n in at_once])
    left.set_yticks([200, 500, 1000, 2000, 5000], ["200", "500", "1,000", "2,000", "5,000"])
    left.minorticks_off()
    _name(left, "single rows:\ndurable adds a second", "at a time")
    p50, p99 = zip(*tenths(), strict=True)
    places = range(1, len(p50) + 1)
    for values, colour, label in ((p99, VERMILION, "p99"), (p50, BLUE, "p50")):
        middle.plot(places, values, marker="o", color=colour)
        middle.axhline(1.2 * values[1], color=colour, linewidth=1, linestyle=":")
        middle.annotate(label, (1, values[0]), (0, 6), textcoords="offset points", size=8)
    middle.set_ylim(0, None)
    middle.set_xticks(places)
    _name(middle, "100,000 labelled adds: ms each\n(dotted: 1.2 times the second)", "tenth")
    each = batches()
    for at, (who, colour) in enumerate({"Lance": FLOOR, "collection": BLUE}.items()):
        right.bar(at, each[who], 0.6, color=colour)
    right.axhline(0.6 * each["Lance"], color=INK, linewidth=1, linestyle=":")
    right.axhline(60_000, color=INK, linewidth=1, linestyle=":")
    right.set_xticks(range(2), ["Lance's\nappend", "ours"])
    right.yaxis.set_major_formatter("{x:,.0f}")
    _name(right, "batches: items a second\n(dotted: asked for)", "")
    handles, names = left.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower left", ncols=3, frameon=False, labelcolor=INK)
    return figure


def draw_service() -> "Figure":
    """Draw how many searches a second the service answers, beside an empty route."""
    figure = new_figure(6.4, 2.6)
    axes = figure.subplots()
    for at, (share, low, high) in enumerate(shares().values()):
        axes.bar(at, share, 0.5, color=BLUE)
        axes.plot(
            [at, at], [low, high], color=GREEN, linewidth=3, label="rounds" if at == 0 else ""
        )
        axes.annotate(
            f"{share:.2f}",
            (at - 0.05, share),
            (0, 3),
            textcoords="offset points",
            ha="right",
            size=8,
        )
    axes.axhline(0.8, color=INK, linewidth=1, linestyle=":", label="asked for")
    axes.set_xticks(range(len(shares())), [f"{n} client{'s' * (n > 1)}" for n in shares()])
    axes.set_ylim(0, 1.1)
    _name(axes, "searches a second, as a share of an empty route's", "")
    figure.legend(loc="outside right upper", frameon=False, labelcolor=INK)
    return figure


def _name(axes: "Axes", title: str, below: str) -> None:
    axes.set_xlabel(below)
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    tidy(axes)
