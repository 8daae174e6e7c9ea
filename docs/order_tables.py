"""The tables and the figure of ``results.md`` on orders of the stream, from results/orders."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamhash.hashers import METHODS
from streamhash.lab import ORDERS, Line, read_rows, summarise
from streamhash.lab.comparison import brief
from streamhash.lab.report.figures import draw_class_curves
from streamhash.lab.rows import LATER, Row, describe_items

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "ablation_table",
    "draw_sorted",
    "forgetting_table",
    "noise_table",
    "order_table",
    "sorted_figure",
]

FOLDER = Path(__file__).parents[1] / "results" / "orders"
CURVES = "curves"  # the folder of rows with a curve for each class
DRAWN = ("sdoh", "hmoh", "bsodh", "ridgehash", "foh")  # methods in the figure
ABLATION = "ablation"  # the folder of SDOH's rows with one addition off
SETS = ("mnist", "cifar10-features", "miniplaces-features", "digits", "long-tail", "reuters")
BITS = 32
OWN = "sdoh"  # shown with its default settings as well as with tuned ones
PICTURE = "![mAP of each class along a sorted stream](figures/sorted-stream.png)"
NOTHING = "No rows yet; [results/README.md](../results/README.md) has the commands."

Column = tuple[str, float]  # order, and share of wrong labels
LOOKS: tuple[Column, ...] = ("shuffled", 0), ("sorted", 0), ("shuffled", 0.2)
SAME = {("natural", 0.2): ("shuffled", 0.2)}  # wrong labels come in the set's usual order
ByColumn = dict[Column, Line]


BY_CLASS = "-by-class"  # at the end of a table's name: mAP as a mean over the classes


def order_table(name: str, folder: Path = FOLDER) -> str:
    """All methods, each in all orders of one data set: mAP, mean of the seeds, the best bold."""
    data = name.removesuffix(BY_CLASS)
    metric, title = ("map", "mAP") if data == name else ("map_by_class", "mAP by class")
    found = _by_method(data, folder)
    if not found:
        return NOTHING
    lines = [line for by_column in found.values() for line in by_column.values()]
    there = {column for by_column in found.values() for column in by_column}
    columns = sorted(there, key=lambda column: (column[1], [*ORDERS].index(column[0])))
    best = {
        column: max(_value(by_column, column, metric) for by_column in found.values())
        for column in columns
    }
    columns = [column for column in columns if best[column] >= 0]
    head = [f"{data}, {title}, {BITS} bits", "settings", *map(_title, columns)]
    rows = [head, ["---", "---"] + ["---:"] * len(columns)]
    for (method, settings), by_column in found.items():
        cells = []
        for column in columns:
            value = _value(by_column, column, metric)
            text = brief(value) if value >= 0 else "–"
            cells.append(f"**{text}**" if value == best[column] else text)
        rows.append([METHODS[method].__name__, settings, *cells])
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{table}\n\n{_sizes(lines, metric)}"


def ablation_table(folder: Path = FOLDER) -> str:
    """SDOH with one addition off at a time, on all sets, in ``LOOKS``: mAP of seed 0.

    Of a set whose classes do not ask equally often, mAP by class as well.
    """
    found: dict[str, dict[tuple[str, Column], float]] = {}
    rows = [row for data in (*SETS, ABLATION) for row in read_rows(folder / data / "rows.jsonl")]
    for row in rows:
        cell = row["method"], row["settings"], row["n_bits"], row["seed"]
        look = SAME.get(_column(row), _column(row))
        if cell == (OWN, "default", BITS, 0) and look in LOOKS:
            changes = ", ".join(f"`{name}={value}`" for name, value in row["changes"].items())
            by_set = found.setdefault(changes or "default", {})
            by_set[row["data"], look] = row["metrics"]["map"]
            if not row["queries_per_class"] and "map_by_class" in row["metrics"]:
                by_set[f"{row['data']}, by class", look] = row["metrics"]["map_by_class"]
    if len(found) < 2:
        return NOTHING
    means = {data: None for by_set in found.values() for data, _ in by_set if data not in SETS}
    sets = [*SETS, *means]
    head = [f"SDOH, mAP, {BITS} bits, {' / '.join(map(_title, LOOKS))}", *sets]
    lines = [head, ["---", *["---:"] * len(sets)]]
    for changes, by_set in found.items():
        cells = [
            " / ".join(
                brief(by_set[data, look]) if (data, look) in by_set else "–" for look in LOOKS
            )
            for data in sets
        ]
        lines.append([changes, *cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n\nOne seed."


def noise_table(folder: Path = FOLDER) -> str:
    """What a fifth of wrong labels costs SDOH, and the best of the other methods, on each set."""
    head = ["mAP, right labels, then 20 % wrong ones", "SDOH", "loses", "best other", "", "loses"]
    lines = [head, ["---", "---:", "---:", "---", "---:", "---:"]]
    for data in SETS:
        found = _by_method(data, folder)
        noisy = {column for by in found.values() for column in by if column[1]}
        if not noisy:
            continue
        order, noise = min(noisy)
        pairs = {
            method: (_value(by, (order, 0.0)), _value(by, (order, noise)))
            for (method, _), by in found.items()
            if (order, 0.0) in by and (order, noise) in by
        }
        own = pairs.pop(OWN, None)
        if own is None or not pairs:
            continue
        best = max(pairs, key=lambda method: pairs[method])
        cells = [
            cell
            for name, (right, wrong) in (("", own), (METHODS[best].__name__, pairs[best]))
            for cell in (name, f"{brief(right)}, {brief(wrong)}", brief(right - wrong))
        ]
        lines.append([data, *cells[1:]])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _column(row: Row) -> Column:
    return row["order"], row["label_noise"]


def _by_method(data: str, folder: Path) -> dict[tuple[str, str], ByColumn]:
    """Lines by method and settings, then by column: tuned settings where there are some."""
    found: dict[tuple[str, str], ByColumn] = {}
    for line in summarise(read_rows(folder / data / "rows.jsonl")):
        row = line.rows[0]
        if row["method"] in METHODS and (line.n_bits, row["split"], row["changes"]) == (
            *(BITS, LATER["split"]),
            {},
        ):
            by_column = found.setdefault((row["method"], row["settings"]), {})
            by_column[_column(row)] = line
    return {
        (method, settings): found[method, settings]
        for method in METHODS
        for settings in ("default", "tuned")
        if (method, settings) in found
        and (settings == "tuned" or method == OWN or (method, "tuned") not in found)
    }


def _value(by_column: ByColumn, column: Column, metric: str = "map") -> float:
    """The mean, rounded as it is shown; -1 where nothing was measured."""
    mean = by_column[column].mean(metric) if column in by_column else None
    return -1.0 if mean is None else round(mean, 3)


def _title(column: Column) -> str:
    order, noise = column
    wrong = f"{100 * noise:g} % wrong labels"
    if not noise:
        return order
    return wrong if order in ("shuffled", "natural") else f"{order}, {wrong}"


def _sizes(lines: list[Line], metric: str) -> str:
    """Say what was asked, searched and learned, and in how many seeds that have the metric."""
    row = lines[0].rows[0]
    counts = sorted({len(line.values(metric)) for line in lines} - {0})
    seeds = f"{counts[0]} to {counts[-1]} seeds" if len(counts) > 1 else f"{counts[0]} seeds"
    if counts == [1]:
        seeds = "one seed"
    return (
        f"{row['queries']:,} queries, {describe_items(line.rows[0] for line in lines)}, "
        f"a stream of {row['stream']:,}; mean of {seeds}."
    )


def _curves(folder: Path) -> list[Line]:
    rows = read_rows(folder / CURVES / "rows.jsonl")
    return [line for line in summarise(rows) if "class_curve" in line.rows[0]]


def sorted_figure(folder: Path = FOLDER) -> str:
    """The place of the figure in the page, if there are rows for it."""
    return PICTURE if _curves(folder) else NOTHING


def draw_sorted(folder: Path = FOLDER) -> "Figure | None":
    """Draw the quality of each class along a sorted stream; None if there are no rows."""
    found = [line for line in _curves(folder) if line.method in DRAWN]
    return draw_class_curves(found) if found else None


def forgetting_table(folder: Path = FOLDER) -> str:
    """What each method keeps of the classes that stopped coming, along a sorted stream."""
    lines = _curves(folder)
    if not lines:
        return NOTHING
    kept = {line.label: np.mean([_kept(row) for row in line.rows], axis=0) for line in lines}
    seeds = {line.label: len(line.rows) for line in lines}
    rows = [
        [label, *map(brief, (then, end, end - then)), str(seeds[label])]
        for label, (then, end) in sorted(kept.items(), key=lambda entry: -entry[1][1])
    ]
    head = ["mAP of classes that stopped", "as they stopped", "at the end", "change", "seeds"]
    rows = [head, ["---", *["---:"] * 4], *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _kept(row: Row) -> tuple[float, float]:
    """Mean quality of the classes that stopped: at the first look after it, and at the last."""
    looks = np.array([look["instances"] for look in row["curve"]])
    found, ends = row["class_curve"], []
    for values, last in zip(found["values"], found["last"], strict=True):
        stopped = np.flatnonzero(looks >= (last or np.inf))[:1]
        if len(stopped) and stopped[0] < len(looks) - 1:
            ends.append((values[stopped[0]], values[-1]))
    then, end = np.mean(ends, axis=0)
    return float(then), float(end)
