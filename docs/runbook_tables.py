"""The tables and figures of runbooks and of ann-benchmarks, from the rows of the benchmarks."""

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from performance_tables import markdown
from streamhash.lab.comparison import brief
from streamhash.lab.report.figures import BLUE, FLOOR, GREEN, GRID, INK, VERMILION, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RESULTS = Path(__file__).parents[1] / "results"
SETS = {"mnist": "MNIST", "miniplaces-features": "MiniPlaces", "long-tail": "long tail"}
ROWS = 10_000  # that come; the runs of all rows have a table of their own
KINDS = ("clustered", "deleting", "replacing")
SYSTEMS = ("faiss flat", "faiss HNSW", "SDOH 64", "ITQ 64", "ITQ 256")
# Lines of the figure: system, way, colour, dashes.
RECALLS: tuple[tuple[str, str, str, Any], ...] = (
    ("faiss HNSW", "HNSW", FLOOR, "-"),
    ("ITQ 256", "rescored", BLUE, "-"),
    ("ITQ 256", "real-valued", BLUE, (0, (4, 2))),
    ("ITQ 256", "Hamming", BLUE, (0, (1, 1.5))),
    ("SDOH 64", "rescored", VERMILION, "-"),
    ("SDOH 64", "Hamming", VERMILION, (0, (1, 1.5))),
)

Row = dict[str, Any]


@cache
def kept_rows() -> list[Row]:
    """All rows of benchmarks/runbooks.py."""
    return [
        json.loads(line)
        for data in SETS
        if (path := RESULTS / "runbooks" / f"{data}.jsonl").exists()
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


@cache
def runs() -> dict[tuple[str, str, str], Row]:
    """Every run with 10,000 rows by data set, runbook and system; of two, the last."""
    rows = [row for row in kept_rows() if row["rows"] == ROWS]
    return {(row["data"], row["runbook"], row["system"]): row for row in rows}


def shown_sets() -> list[str]:
    """The data sets that have a run."""
    return [data for data in SETS if any(key[0] == data for key in runs())]


def bits(system: str) -> str:
    """How a table calls a system: SDOH, 64 bits."""
    name, _, length = system.partition(" ")
    return f"{name}, {length} bits" if length.isdecimal() else system


def recall_table() -> str:
    """Mean recall@10 over the searches of each runbook, by system and way."""
    columns = [
        (data, kind)
        for data in shown_sets()
        for kind in KINDS
        if any(key[:2] == (data, kind) for key in runs())
    ]
    body = []
    for system in SYSTEMS:
        found = [runs().get((*column, system)) for column in columns]
        ways: Row = next((row["ways"] for row in found if row is not None), {})
        for way in ways:
            label = bits(system) if len(ways) == 1 else f"{bits(system)}: {way}"
            cells = ["–" if row is None else brief(row["ways"][way]["recall"]) for row in found]
            body.append([label, *cells])
    head = [f"{SETS[data]}, {kind}" for data, kind in columns]
    minutes = sum(row["cpu"] for row in runs().values()) / 60
    table = markdown(["recall@10, mean of all searches", *head], body)
    return f"{table}\n\n{len(runs())} runs, {minutes:.1f} minutes of processor time."


def labels_table() -> str:
    """The supervised twin: mAP and the share of ten that is right, along each runbook."""
    body = []
    names = ("map", "map_by_class", "last_map", "last_map_by_class")
    for data in shown_sets():
        for kind in KINDS:
            ours = runs().get((data, kind, "SDOH 64"))
            exact = runs().get((data, kind, "faiss flat"))
            if ours is None or exact is None:
                continue
            body.append(
                [
                    f"{SETS[data]}, {kind}",
                    *(
                        brief(row[name]) if name in row else "–"
                        for row in (ours, exact)
                        for name in names
                    ),
                    brief(ours["ways"]["Hamming"]["precision"]),
                    brief(exact["ways"]["exact"]["precision"]),
                ]
            )
    head = [
        f"{heading}, {system}" if heading == "mAP" else heading
        for system in ("SDOH", "floats")
        for heading in ("mAP", "by class", "at the end", "by class")
    ]
    return markdown(["", *head, "right of 10, SDOH", "right of 10, floats"], body)


def cost_table() -> str:
    """What the steps of the deleting runbook cost."""
    body = []
    for data in shown_sets():
        for system in SYSTEMS:
            row = runs().get((data, "deleting", system))
            if row is None:
                continue
            ms = [f"{way['ms']:.3f}" for way in row["ways"].values()]
            held, disk = row["bytes"], row["disk_bytes"]
            body.append(
                [
                    f"{SETS[data]}, {bits(system)}",
                    f"{row['insert']['a_second']:,.0f}",
                    f"{row['delete']['a_second']:,.0f}",
                    " / ".join(ms),
                    f"{held:,.0f}",
                    "–" if disk is None else f"{disk:,.0f}",
                ]
            )
    head = ["deleting runbook", "inserts/s", "deletes/s", "ms a query", "bytes an item searched"]
    return markdown([*head, "on disk at the end"], body)


def full_table() -> str:
    """The deleting runbook with all rows of MNIST: recall, labels and cost."""
    found = {row["system"]: row for row in kept_rows() if row["rows"] > ROWS}
    body = []
    for system in SYSTEMS:
        if system not in found:
            continue
        row = found[system]
        for way, each in row["ways"].items():
            label = bits(system) if len(row["ways"]) == 1 else f"{bits(system)}: {way}"
            quality = brief(row["map"]) if "map" in row else "–"
            cells = [brief(each["recall"]), brief(each["last_recall"]), brief(each["precision"])]
            speed = f"{row['insert']['a_second']:,.0f}"
            body.append([label, *cells, quality, f"{each['ms']:.3f}", speed])
    if not body:
        return "No rows yet; [results/README.md](../results/README.md) has the command."
    row = next(iter(found.values()))
    n_searches = sum(step["operation"] == "search" for step in row["steps"])
    head = ["recall@10", "at the end", "right of 10", "mAP by label", "ms a query", "inserts/s"]
    table = markdown([f"MNIST, {row['rows']:,} rows, {row['clusters']} clusters", *head], body)
    minutes = sum(row["cpu"] for row in found.values()) / 60
    return (
        f"{table}\n\nMeans of {n_searches} searches; at most {most_items(row):,} items at once; "
        f"{minutes:.0f} minutes of processor time."
    )


def most_items(row: Row) -> int:
    """The most items there were at once."""
    return max(int(step["there"]) for step in row["steps"])


def draw_runbooks() -> "Figure":
    """Recall, and mAP by label, at every search of the deleting runbook."""
    sets = [data for data in shown_sets() if (data, "deleting", "SDOH 64") in runs()]
    figure = new_figure(3.4 * len(sets) + 0.6, 5.6)
    panels = figure.subplots(2, len(sets), sharey="row", squeeze=False)
    for column, data in enumerate(sets):
        top, below = panels[:, column]
        for system, way, colour, dashes in RECALLS:
            steps = searches(data, system)
            top.plot(
                range(1, len(steps) + 1),
                [step["ways"][way]["recall"] for step in steps],
                color=colour,
                linestyle=dashes,
                label=bits(system) if way == system.split(" ")[-1] else f"{bits(system)}, {way}",
                linewidth=1.6,
            )
        for system, colour, name in (
            ("SDOH 64", VERMILION, "SDOH"),
            ("faiss flat", FLOOR, "floats"),
        ):
            steps = searches(data, system)
            values = [step["map"] for step in steps]
            below.plot(range(1, len(steps) + 1), values, color=colour, label=name, linewidth=1.6)
            below.annotate(name, (len(steps), values[-1]), (0, 4), textcoords="offset points",
                           ha="right", color=colour, fontsize=9)  # fmt: skip
        top.set_title(SETS[data], loc="left", fontsize=10, color=INK)
        below.set_xlabel("search")
        for axes in (top, below):
            axes.set_ylim(0, 1.02)
            axes.grid(axis="y", color=GRID, linewidth=0.8)
            tidy(axes)
    panels[0, 0].set_ylabel("recall@10")
    panels[1, 0].set_ylabel("mAP by label")
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=3, frameon=False, labelcolor=INK)
    return figure


def searches(data: str, system: str) -> list[Row]:
    """The searches of a run of the deleting runbook."""
    steps = runs()[data, "deleting", system]["steps"]
    return [step for step in steps if step["operation"] == "search"]


@cache
def ann_rows() -> list[Row]:
    """The rows of benchmarks/ann_benchmarks.py."""
    text = (RESULTS / "ann_benchmarks" / "hamming.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


LINES: dict[str, tuple[str, str, Any]] = {
    "streamhash-exact": (VERMILION, "*", "-"),
    "streamhash-buckets": (VERMILION, "o", "-"),
    "faiss-flat": (BLUE, "*", "-"),
    "faiss-ivf": (BLUE, "o", "-"),
    "faiss-hnsw": (GREEN, "s", "-"),
}


def draw_ann_benchmarks() -> "Figure":
    """Recall against queries a second, as ann-benchmarks draws it."""
    sets = [*dict.fromkeys(row["data"] for row in ann_rows())]
    figure = new_figure(3.1 * len(sets) + 0.6, 3.8)
    panels = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    for axes, data in zip(panels, sets, strict=True):
        _draw_trade(axes, [row for row in ann_rows() if row["data"] == data])
        axes.set_title(data, loc="left", fontsize=10, color=INK)
    panels[0].set_ylabel("queries a second (processor time)")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=5, frameon=False, labelcolor=INK)
    return figure


def _draw_trade(axes: "Axes", rows: list[Row]) -> None:
    for name, (colour, mark, dashes) in LINES.items():
        points = sorted(
            (row["recall"], 1 / row["seconds"]["query_cpu"])
            for row in rows
            if row["algorithm"] == name
        )
        x, y = zip(*points, strict=True)
        axes.plot(x, y, marker=mark, markersize=8 if mark == "*" else 4, color=colour,
                  linestyle=dashes, label=name, linewidth=1.4)  # fmt: skip
    axes.set_yscale("log")
    axes.set_xlim(None, 1.02)
    axes.set_xlabel("recall@10")
    axes.grid(color=GRID, linewidth=0.8)
    tidy(axes)


def ann_table() -> str:
    """The fastest of each algorithm at a recall of .95 or more: single queries, and batches."""
    sets = [*dict.fromkeys(row["data"] for row in ann_rows())]
    body = []
    for name in LINES:
        cells = []
        for data in sets:
            good = [
                row
                for row in ann_rows()
                if (row["data"], row["algorithm"]) == (data, name) and row["recall"] >= 0.95
            ]
            if not good:
                cells.append("–")
                continue
            one, many = (
                max(1 / row[part]["query_cpu"] for row in good)
                for part in ("seconds", "batch_seconds")
            )
            cells.append(f"{one:,.0f} / {many:,.0f}")
        body.append([name, *cells])
    return markdown(["queries/s at recall ≥ .95: single / batch", *sets], body)
