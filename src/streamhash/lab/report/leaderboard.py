"""The leaderboard as a page that needs no server, as Markdown and CSV, and its diagram.

The page has all values in it and ranks anew what its reader chooses (``leaderboard.js``); a test
compares what it shows with :mod:`streamhash.lab.leaderboard`.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamhash.errors import InputError
from streamhash.hashers import METHODS
from streamhash.lab.comparison import brief
from streamhash.lab.leaderboard import (
    RANKED_BY,
    Leaderboard,
    Ranking,
    cell_command,
    learns_one_label,
    microseconds,
)
from streamhash.lab.ranks import ALPHA, critical_value
from streamhash.lab.report.figures import GRID, INK, have_figures, new_figure, save_png
from streamhash.lab.report.sentences import join
from streamhash.lab.report.write import OURS, PAGE, read_template
from streamhash.lab.rows import method_name, to_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIAGRAM = "critical-difference"
CSV_FIELDS = (
    *("ranking", "place", "method", "settings", "mean_rank", "data", "stream", "n_bits"),
    *("map", "map_by_class", "rank", "learn_microseconds", "encode_microseconds", "n_seeds"),
    *("version", "command"),
)
MARKDOWN = "leaderboard.md"
TABLE = "leaderboard.csv"
MARKS = {
    PAGE: OURS[PAGE],
    MARKDOWN: "<!-- written by streamhash leaderboard -->\n",
    TABLE: ",".join(CSV_FIELDS) + "\n",
}
MOST_METHODS = 60  # of which the page knows the critical values


def write_leaderboard(board: Leaderboard, folder: Path, *, newcomer: str | None = None) -> Path:
    """Write page, tables and diagram into ``folder``, and return the page's path.

    ``newcomer`` is a method that the page shows in colour, over the blocks that it has.
    """
    check_folder(folder)
    rankings = board.rankings(newcomer)
    folder.mkdir(parents=True, exist_ok=True)
    page = read_template("leaderboard.html").render(
        content=to_json(page_content(board, newcomer)).replace("<", "\\u003c"),
        script=files(__package__).joinpath("templates/leaderboard.js").read_text(encoding="utf-8"),
    )
    tables = "\n\n".join(
        f"## {each.part.title}\n\n{ranking_markdown(board, each)}" for each in rankings
    )
    texts = {
        PAGE: page,
        MARKDOWN: f"{MARKS[MARKDOWN]}\n# Leaderboard\n\n{tables}\n",
        TABLE: board_csv(board, rankings),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    if have_figures() and rankings[0].is_tested:
        figure = draw_ranks(rankings[0], newcomer)
        save_png(figure, folder / f"{DIAGRAM}.png")
        figure.savefig(folder / f"{DIAGRAM}.svg", format="svg", facecolor="white")
    return folder / PAGE


def check_folder(folder: Path) -> None:
    """Refuse a folder in which a file of somebody else would be written over."""
    for name, mark in MARKS.items():
        path = folder / name
        if path.exists() and mark not in path.read_text(encoding="utf-8", errors="replace"):
            raise InputError(
                f"{path} was not written by streamhash; move it, or choose another folder."
            )


def ranking_head(board: Leaderboard, ranking: Ranking) -> list[str]:
    """Return the headings of ``ranking_rows``; the place has none."""
    means = [f"mean {RANKED_BY[metric]}" for metric in board.shown_metrics(ranking)]
    return ["", "method", "settings", "mean rank", *means, "learn, µs a row", "encode, µs an item"]


def ranking_rows(board: Leaderboard, ranking: Ranking) -> Iterator[list[str]]:
    """Yield the cells of each ranked method: place, name, settings, mean rank, means and costs."""
    data = dict.fromkeys(block.data for block in ranking.blocks)
    metrics = board.shown_metrics(ranking)
    for method, rank in zip(ranking.methods, ranking.mean_ranks, strict=True):
        means = [board.mean(ranking, method, metric) for metric in metrics]
        yield [
            str(ranking.place(method)),
            method_name(method),
            board.settings(method, data),
            f"{rank:.2f}",
            *("–" if mean is None else brief(mean) for mean in means),
            *(f"{cost:.3g}" for cost in board.costs(method, ranking.blocks)),
        ]


def ranking_markdown(board: Leaderboard, ranking: Ranking) -> str:
    """Write a ranking in Markdown: the table, what the tests say, and who has no rank and why."""
    head = ranking_head(board, ranking)
    lines = [head, ["---:", "---", "---", *["---:"] * (len(head) - 3)]]
    lines += ranking_rows(board, ranking)
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return "\n\n".join([table, *sentences(ranking)])


def sentences(ranking: Ranking) -> list[str]:
    """Say what a ranking covers, what the tests say, and who has no rank and why."""
    data = list(dict.fromkeys(block.data for block in ranking.blocks))
    streams = list(dict.fromkeys(block.stream for block in ranking.blocks))
    bits = list(dict.fromkeys(str(block.n_bits) for block in ranking.blocks))
    said = [
        f"{len(ranking.methods)} methods over {len(ranking.blocks)} blocks: {join(data)}; "
        f"{join(streams)}; {join(bits)} bits."
    ]
    if ranking.is_tested:
        statistic, probability = ranking.friedman
        chance = "below .0001" if probability < 1e-4 else f"{probability:.4f}"
        said[0] += (
            f" Friedman's test: χ² = {statistic:.1f}, p {chance}. Mean ranks less than "
            f"{ranking.difference:.2f} apart are not told apart (Nemenyi, {ALPHA})."
        )
        first, near = ranking.methods[0], ranking.near(ranking.methods[0])
        names = join([method_name(method) for method in near])
        said[0] += f" Not told apart from {method_name(first)}: {names or 'none'}."
    by_reason: dict[str, list[str]] = {}
    for method, why in ranking.unranked.items():
        by_reason.setdefault(why, []).append(method_name(method))
    if by_reason:
        reasons = [f"{join(names)} ({why})" for why, names in by_reason.items()]
        said.append(f"Without a rank: {'; '.join(reasons)}.")
    return said


def placement(ranking: Ranking, method: str) -> str:
    """Say where a method stands, and over how much of the ranking."""
    name, n_blocks, whole = method_name(method), len(ranking.blocks), len(ranking.part.blocks)
    rank = ranking.mean_ranks[ranking.methods.index(method)]
    said = f"{name} has place {ranking.place(method)} of {len(ranking.methods)}, by a mean rank of "
    said += f"{rank:.2f} over {n_blocks} blocks."
    if n_blocks < whole:
        said += f" The whole ranking has {whole}: its ranks may differ."
    if ranking.is_tested:
        near = join([method_name(other) for other in ranking.near(method)])
        said += f" Not told apart from it: {near or 'none'}."
    return said


def board_csv(board: Leaderboard, rankings: Iterable[Ranking]) -> str:
    """Write a line for each method in each block of each ranking: for spreadsheets."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_FIELDS, lineterminator="\n")
    writer.writeheader()
    for ranking in rankings:
        for i, method in enumerate(ranking.methods):
            for j, block in enumerate(ranking.blocks):
                found = board.found(method, block)
                rows = [found[seed] for seed in ranking.seeds[block]]
                learn, encode = microseconds(rows[0])
                of_classes = [row["metrics"].get("map_by_class") for row in rows]
                writer.writerow(
                    {
                        **{"ranking": ranking.part.name, "place": ranking.place(method)},
                        **{"method": method, "settings": rows[0]["settings"]},
                        **{"data": block.data, "stream": block.stream, "n_bits": block.n_bits},
                        "mean_rank": round(ranking.mean_ranks[i], 4),
                        "map": _mean([row["metrics"]["map"] for row in rows]),
                        "map_by_class": _mean(of_classes) if None not in of_classes else "",
                        "rank": ranking.ranks[i, j],
                        **{"learn_microseconds": round(learn, 3), "n_seeds": len(rows)},
                        "encode_microseconds": round(encode, 3),
                        **{"version": rows[0]["version"], "command": cell_command(rows[0])},
                    }
                )
    return text.getvalue()


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 6)


def page_content(board: Leaderboard, newcomer: str | None = None) -> dict[str, Any]:
    """Return all that the page knows, as JSON can hold it."""
    rules, blocks = board.rules, board.blocks
    parts = [
        {"name": part.name, "title": part.title, "streams": part.streams, "bits": part.bits}
        | {"data": [d for d in part.data if newcomer is None or _has(board, newcomer, d)]}
        for part in rules.parts
    ]
    cells: list[dict[int, list[Any]]] = []
    for method in board.methods:
        own: dict[int, list[Any]] = {}
        for number, block in enumerate(blocks):
            for seed, row in sorted(board.found(method, block).items()):
                times = [round(value, 2) for value in microseconds(row)]
                quality = [row["metrics"].get(metric) for metric in RANKED_BY]
                own.setdefault(number, []).append(
                    [seed, quality, *times, row["version"], row["date"][:10], cell_command(row)]
                )
        cells.append(own)
    machines = {row["machine"]["cpu"] for row in board.rows}
    return {
        "alpha": ALPHA,
        "critical": [0, 0, *(round(critical_value(k), 4) for k in range(2, MOST_METHODS + 1))],
        "metrics": RANKED_BY,
        "blocks": [[block.data, block.stream, block.n_bits] for block in blocks],
        "sets": {name: each.several_labels for name, each in rules.sets.items()},
        "parts": [part for part in parts if part["data"]],
        "methods": [
            {
                "path": method,
                "name": method_name(method),
                "settings": {data: board.settings(method, [data]) for data in rules.sets},
                "oneLabel": learns_one_label(method),
                "isNew": method == newcomer or method not in METHODS,
            }
            for method in board.methods
        ],
        "cells": cells,
        "machines": sorted(machines),
    }


def _has(board: Leaderboard, method: str, data: str) -> bool:
    return any(block.data == data and board.found(method, block) for block in board.blocks)


def draw_ranks(ranking: Ranking, newcomer: str | None = None) -> "Figure":
    """Draw the critical-difference diagram: methods on an axis of mean ranks, the best at the left.

    A thick line joins methods that are not told apart.
    """
    k, ranks = len(ranking.methods), ranking.mean_ranks
    groups = [
        (ranks[ranking.methods.index(group[0])], ranks[ranking.methods.index(group[-1])])
        for group in ranking.groups
    ]
    half = (k + 1) // 2
    top = 0.5 + 0.28 * len(groups)
    height = top + 0.42 * half + 0.2
    figure = new_figure(8.6, 0.42 * height + 0.6)
    axes = figure.subplots()
    axes.set(xlim=(0.6 - 0.26 * k, k + 0.4 + 0.26 * k), ylim=(-height, 1.3))
    axes.axis("off")
    axes.plot([1, k], [0, 0], color=INK, linewidth=1.2)
    for tick in range(1, k + 1):
        axes.plot([tick, tick], [0, 0.14], color=INK, linewidth=1.0)
        axes.text(tick, 0.22, str(tick), ha="center", va="bottom", color=INK, fontsize=9)
    axes.plot([1, 1 + ranking.difference], [1.1, 1.1], color=INK, linewidth=1.6)
    for end in (1, 1 + ranking.difference):
        axes.plot([end, end], [1.02, 1.18], color=INK, linewidth=1.2)
    axes.text(
        1.2 + ranking.difference,
        1.1,
        f"critical difference {ranking.difference:.2f}",
        va="center",
        color=INK,
        fontsize=9,
    )
    for number, (first, last) in enumerate(groups):
        y = -0.3 - 0.28 * number
        axes.plot([first - 0.06, last + 0.06], [y, y], color=INK, linewidth=3.4)
    for number, (method, rank) in enumerate(zip(ranking.methods, ranks, strict=True)):
        is_left = number < half
        level = number if is_left else k - 1 - number
        y = -top - 0.42 * level - 0.2
        edge = 0.8 if is_left else k + 0.2
        axes.plot([rank, rank, edge], [0, y, y], color=GRID, linewidth=1.0, zorder=1)
        axes.plot([rank], [0], color=INK, marker="o", markersize=3.5, zorder=3)
        name = (
            f"{method_name(method)}  {rank:.2f}"
            if is_left
            else f"{rank:.2f}  {method_name(method)}"
        )
        axes.text(
            edge - 0.1 if is_left else edge + 0.1,
            y,
            name,
            ha="right" if is_left else "left",
            va="center",
            color=INK,
            fontsize=9.5,
            fontweight="bold" if method == newcomer else "normal",
        )
    return figure
