"""The table and the figure of ``live.md`` on drift, from the rows of benchmarks/live_drift.py."""

import itertools
import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamhash.lab.report.figures import GRID, INK, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = Path(__file__).parents[1] / "results" / "live"
STYLES = {
    "every batch": ("#56b4e9", "refreshed at every batch"),
    "on its own": ("#d55e00", "refreshing on its own"),
    "every N": ("#009e73", "every 2,000 items"),
    "frozen": ("#7b8087", "frozen"),
}
STREAMS = {"change": "classes 0–4, then 5–9", "join": "classes 0–4, then all"}

NAMES = {  # of the methods, as the table calls them
    "sdoh": "SDOH",
    "sdoh plain": "SDOH, `memory=0`, `features=None`",
    "hcoh": "HCOH",
    "mihash": "MIHash",
}

SEEDS = 3
BITS = 32  # of the table; codes of 64 bits are alike

Row = dict[str, Any]


@cache
def read(name: str) -> list[Row]:
    """Rows of a file in results/live."""
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def chosen(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Rows with these values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def drift_table() -> str:
    """mAP at the end of each stream, and the share of encoding."""
    rows = read("drift.jsonl")
    names = ["every batch", "on its own", "every N", "frozen"]
    head = [
        "mAP at the end",
        *(STYLES[name][1] for name in names),
        "difference, mean",
        "least",
        "old classes",
        "new classes",
        "encoded",
    ]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for method, stream in itertools.product(NAMES, STREAMS):
        by_name = {
            name: {
                row["seed"]: row
                for row in chosen(rows, stream=stream, method=method, bits=BITS, strategy=name)
            }
            for name in names
        }
        seeds = set.intersection(*(set(found) for found in by_name.values()))
        if not seeds:
            continue
        few = "" if len(seeds) == SEEDS else f" ({len(seeds)} of the seeds)"
        cells = [f"{STREAMS[stream]}; {NAMES[method]}{few}"]
        for name in names:
            values = [by_name[name][seed]["map"] for seed in seeds]
            spread = f" ± {np.std(values):.3f}" if len(values) > 1 else ""
            cells.append(f"{np.mean(values):.3f}{spread}")
        own, every = by_name["on its own"], by_name["every batch"]
        differences = [own[seed]["map"] - every[seed]["map"] for seed in seeds]
        cells += [f"{np.mean(differences):+.3f}", f"{min(differences):+.3f}"]
        for value in ("map_old", "map_new"):  # not in rows of version 0.1
            there = all(value in row for row in (*own.values(), *every.values()))
            found = [own[seed][value] - every[seed][value] for seed in seeds] if there else []
            cells.append(f"{np.mean(found):+.3f}" if found else "–")
        share = max(own[seed]["encoded"] / every[seed]["encoded"] for seed in seeds)
        cells.append(f"{share:.1%}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def price_table(method: str = "sdoh") -> str:
    """A method's prices beside refreshing at every batch, on a seed and queries to choose by."""
    values = {"map": "all", "map_old": "old classes", "map_new": "new classes"}
    lines = [f"| {NAMES[method]}, mAP at the end | {' | '.join(values.values())} | encoded |"]
    lines.append("|---|" + "---:|" * (len(values) + 1))
    for stream in STREAMS:
        found = chosen(read("price.jsonl"), method=method, stream=stream)
        every = next(row for row in found if row["strategy"] == "every batch")
        for row in found:
            name = STYLES["every batch"][1] if row is every else f'`"{row["refresh"]}"`'
            cells = [
                f"{row[value]:.3f}"
                + ("" if row is every else f" ({row[value] - every[value]:+.3f})")
                for value in values
            ]
            share = f"{row['encoded'] / every['encoded']:.1%}"
            lines.append("| " + " | ".join([f"{STREAMS[stream]}; {name}", *cells, share]) + " |")
    return "\n".join(lines)


REFRESHED = {  # the streams of benchmarks/refresh_policies.py: data, seconds a piece, items before
    ("mnist", 0.0, 0): "MNIST at full speed",
    ("long-tail", 1.0, 0): "embeddings, 200 a second",
    ("long-tail", 1.0, 60_000): "the same, beside 60,000",
}
POLICIES = {"gain": '`"gain"`', "auto": '`"auto"`', "200": "every stage", "manual": "never"}


def policy_table() -> str:
    """What each policy found along a stream, and after it, and the time it took."""
    head = ["precision@10", "along", "at the end", "at rest", "by hand"]
    head += ["refreshes", "longest, s", "of the time"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    rows = read("refresh.jsonl")
    for (data, every, stored), stream in REFRESHED.items():
        found = chosen(rows, data=data, every=every, stored=stored)
        for seed, policy in itertools.product(sorted({row["seed"] for row in found}), POLICIES):
            for row in chosen(found, seed=seed, policy=policy):
                cells = [f"{stream}, {row['items']:,} items, seed {seed}; {POLICIES[policy]}"]
                cells += [f"{np.mean(row['along']):.3f}"]
                cells += [f"{row[name]:.3f}" for name in ("end", "rest", "by_hand")]
                cells += [
                    str(row["refreshes"]),
                    f"{row['longest']:.2f}",
                    f"{row['refreshing']:.1%}",
                ]
                lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def alarm_table() -> str:
    """How soon changes are noticed, and how often without one."""
    rows = chosen(read("drift.jsonl"), strategy="on its own")
    lines = [
        "| detector | items after the change: median | most | missed | false, before | steady |"
    ]
    lines.append("|---|---:|---:|---:|---:|---:|")
    for name in dict.fromkeys(name for row in rows for name in row["alarms"]):
        late: list[int] = []
        missed = early = steady = n = n_steady = 0
        for row in rows:
            if name not in row["alarms"]:  # river was not at hand
                continue
            alarms, half = row["alarms"][name], row["items"] // 2
            if row["stream"] == "steady":
                steady, n_steady = steady + len(alarms), n_steady + 1
                continue
            after = [at - half for at in alarms if at >= half]
            late, missed, n = late + after[:1], missed + (not after), n + 1
            early += sum(at < half for at in alarms)
        lines.append(
            f"| {name} | {np.median(late) if late else np.nan:.0f} | {max(late, default=0)} "
            f"| {missed} of {n} | {early} in {n} | {steady} in {n_steady} |"
        )
    return "\n".join(lines)


MILLION = {  # the rows of results/benchmarks/live_million.txt that the page shows
    "add, batches of 1,000: items/s",
    "add, single rows: items/s",
    "search p50, ms",
    "search, adding p50, ms",
    "search, refreshing p50, ms",
    "search, refreshing p99, ms",
    "refresh, s",
    "get 10 items p50, ms",
    "peak of memory, MB",
    "disk, bytes an item",
    "open again, s",
}


def million_table() -> str:
    """What a million items cost, in a collection and by hand."""
    text = (FOLDER.parent / "benchmarks" / "live_million.txt").read_text(encoding="utf-8")
    lines = ["| | collection | faiss, by hand |", "|---|---:|---:|"]
    for line in text.splitlines():
        name, *cells = re.split(r"\s{2,}", line.strip())
        if name in MILLION:
            lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def draw_drift(method: str = "sdoh plain", bits: int = 32) -> "Figure":
    """mAP along two streams, of all classes so far and of those that come now; encoded items."""
    rows = chosen(read("drift.jsonl"), method=method, bits=bits)
    figure = new_figure(9.6, 6.6)
    grid = figure.subplots(3, 2, sharex=True, sharey="row", height_ratios=[3, 3, 2])
    panels = [
        ("map", "mAP, classes so far"),
        ("map_now", "mAP, classes now"),
        ("encoded", "items encoded"),
    ]
    for column, stream in zip(grid.T, STREAMS, strict=True):
        found = chosen(rows, stream=stream)
        for axes, (value, title) in zip(column, panels, strict=True):
            _plot(axes, found, value)
            axes.axvline(found[0]["items"] / 2, color=INK, linewidth=0.8, linestyle=(0, (2, 2)))
            axes.set_ylabel(title)
            axes.label_outer()
            tidy(axes)
        column[2].set_yscale("log")
        column[0].set_title(STREAMS[stream], fontsize=11, color=INK)
        column[2].set_xlabel("items added")
        column[2].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    return figure


def _plot(axes: "Axes", rows: list[Row], value: str) -> None:
    for strategy, (colour, label) in STYLES.items():
        found = chosen(rows, strategy=strategy)
        if not found:
            continue
        x = [look["items"] for look in found[0]["curve"]]
        curves = np.array([[look[value] for look in row["curve"]] for row in found], float)
        mean = curves.mean(axis=0)
        width = 2.2 if strategy == "on its own" else 1.6
        axes.plot(x, mean, color=colour, label=label, linewidth=width)
        if len(curves) > 1:
            low, high = curves.min(axis=0), curves.max(axis=0)
            axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        if strategy == "on its own" and value != "encoded":
            # The refreshes of one run: those of all would be a blur.
            at = [n for n in found[0]["refreshes"] if n >= x[0]]
            axes.plot(at, np.interp(at, x, mean), "o", color=colour, markersize=5, mec="white")
    axes.grid(axis="y", color=GRID)
