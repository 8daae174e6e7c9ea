"""The table and the figure of ``live.md`` on feedback, from the rows of benchmarks/feedback.py."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from live_tables import chosen, read
from streamhash.lab.report.figures import GRID, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLES = {
    "sdoh": ("#d55e00", "SDOH"),
    "mihash": ("#0072b2", "MIHash"),
    "okh": ("#009e73", "OKH"),
    "adapthash": ("#7b8087", "AdaptHash"),
}
BITS = 32
LOOKS = (1_000, 5_000, 10_000)  # judged answers, or labels


def curves(method: str, way: str) -> NDArray[Any]:
    """Points (seeds, looks, values) of one line: number, mAP, and answers that were right."""
    rows = chosen(read("feedback.jsonl"), method=method, way=way, bits=BITS, tune=False)
    return np.array([row["points"] for row in rows], float)


def feedback_table() -> str:
    """mAP after so many judged answers, and after as many labels."""
    head = ["mAP", "unlearned (LSH)"]
    head += [f"{n:,} judged" for n in LOOKS] + [f"{n:,} labels" for n in LOOKS]
    head += ["answers right, first and last"]
    lines = [head, ["---"] + ["---:"] * (len(head) - 1)]
    for method, (_, name) in STYLES.items():
        judged, labels = (curves(method, way).mean(axis=0) for way in ("feedback", "labels"))
        at = {int(n): value for n, value, _ in judged}
        cells = [at[0], *(at[n] for n in LOOKS)]
        cells += [value for n, value in labels if n in LOOKS]
        right = f"{judged[1, 2]:.0%}, {judged[-1, 2]:.0%}"
        lines.append([name, *(f"{cell:.3f}" for cell in cells), right])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw_feedback() -> "Figure":
    """mAP against judged answers, and against labels."""
    figure = new_figure(8.4, 3.6)
    panels = figure.subplots(1, 2, sharey=True)
    titles = {"feedback": "judged answers, 10 % of them wrong", "labels": "labels"}
    for axes, (way, title) in zip(panels, titles.items(), strict=True):
        for method, (colour, name) in STYLES.items():
            found = curves(method, way)
            x, values = found[0, :, 0], found[:, :, 1]
            axes.plot(x, values.mean(axis=0), color=colour, label=name, linewidth=1.8)
            low, high = values.min(axis=0), values.max(axis=0)
            axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        floor = curves("sdoh", "feedback")[:, 0, 1].mean()
        axes.axhline(floor, color="#7b8087", linewidth=0.9, linestyle=(0, (3, 3)))
        axes.set_xlabel(title)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.grid(axis="y", color=GRID)
        tidy(axes)
    panels[0].set_ylabel("mAP, MNIST, 32 bits")
    panels[0].set_ylim(0, 1)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    return figure
