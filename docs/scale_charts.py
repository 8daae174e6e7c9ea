"""Charts of memory, from what benchmarks printed: for ``rebuild.py``."""

from typing import TYPE_CHECKING

from scale_tables import WAYS, encoded, opened, steps
from streamhash.lab.report.figures import BLUE, GREEN, INK, VERMILION, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_memory() -> "Figure":
    """Draw what many items take: memory of the process, files it maps, and peaks."""
    most = max(one.items for one in opened())
    shown = [one for one in opened() if one.items == most]
    figure = new_figure(8.4, 1.2 + 0.6 * len(shown))
    axes = figure.subplots()
    for at, one in enumerate(shown):
        peak = max(one.open_peak * one.own, one.refresh_peak * one.refreshed)
        axes.barh(at, one.own, color=BLUE, height=0.5, label="own" if at == 0 else None)
        label = "programs' files" if at == 0 else None
        files = one.everything - one.own
        axes.barh(at, files, left=one.own, color=GREEN, height=0.5, label=label)
        label = "own, at the peak of a refresh" if at == 0 else None
        axes.plot([peak], [at], linestyle="none", color=VERMILION, marker="|", ms=22, label=label)
        axes.annotate(
            f"{one.everything:.0f} MiB",
            (one.everything - 8, at),
            ha="right",
            va="center",
            fontsize=8,
            color="white",
        )
    axes.axvline(0.75e9 / 2**20, color=INK, linewidth=1, linestyle=":", label="0.75 GB")
    axes.set_yticks(range(len(shown)), [f"ids: {one.ids}" for one in shown])
    axes.set(
        xlabel=f"MiB, {most:,} items of 64 bits", ylim=(len(shown) - 0.5, -0.5), xlim=(0, 1000)
    )
    figure.legend(loc="outside upper left", ncols=4, frameon=False, labelcolor=INK)
    tidy(axes)
    return figure


def draw_past_memory() -> "Figure":
    """Draw the memory of a process, step by step, that has its columns in mapped files."""
    ((case, taken),) = steps("past_memory").items()
    figure = new_figure(8.4, 2.8)
    axes, places = figure.subplots(), range(len(taken))
    axes.bar(places, [one.own_peak for one in taken], width=0.6, color=BLUE, label="own, at most")
    everything = [one.everything for one in taken]
    axes.plot(places, everything, color=GREEN, marker="o", label="with all files mapped, after it")
    axes.axhline(1024, color=INK, linewidth=1, linestyle=":", label="1 GiB")
    axes.set_xticks(places, [one.name for one in taken])
    axes.set(ylabel="MiB")
    axes.set_title(case.split(";")[0], loc="left", fontsize=10, color=INK)
    figure.legend(loc="outside upper left", ncols=3, frameon=False, labelcolor=INK)
    tidy(axes)
    return figure


def draw_reencoding() -> "Figure":
    """Draw how many times as fast as one thread items are encoded anew by two."""
    figure = new_figure(8.4, 2.8)
    axes, cases = figure.subplots(), encoded()
    for way, colour in zip(range(1, len(WAYS)), (BLUE, GREEN, VERMILION), strict=True):
        places = [at + 0.26 * (way - 2) for at in range(len(cases))]
        speeds = [one.speeds[way] for one in cases]
        axes.bar(places, speeds, 0.24, color=colour, label=WAYS[way])
        for at, speed in zip(places, speeds, strict=True):
            axes.annotate(f"{speed:.2f}", (at, 0.05), ha="center", color="white", fontsize=8)
    axes.axhline(1.6, color=INK, linewidth=1, linestyle=":", label="asked; of Dask 1.4")
    axes.set_xticks(range(len(cases)), [f"{one.items:,} of {one.features:,}" for one in cases])
    axes.set(xlabel="items, of features", ylabel="times as fast as one thread", ylim=(0, 2.1))
    figure.legend(loc="outside upper left", ncols=4, frameon=False, labelcolor=INK)
    tidy(axes)
    return figure
