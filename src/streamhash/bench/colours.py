"""Colours that people with any colour vision tell apart (Okabe and Ito 2008), for both schemes.

Each colour has a lighter twin for dark pages; ``SCHEMES`` gives pages both as CSS variables.
"""

from collections.abc import Sequence
from typing import Any

from streamhash.bench.summary import Line

__all__ = ["GRID", "INK", "OTHER_PAIRS", "SCHEMES", "SIMILAR_PAIRS", "line_styles"]

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
}
SIMILAR_PAIRS, OTHER_PAIRS = list(PALETTE)[:2]
SCHEMES = {INK: "#e6edf3", GRID: "#30363d", FLOOR: "#9aa0a8", **PALETTE}
MARKERS = "osD^vPX"
DASHES = ("-", (0, (4, 1.5)), (0, (1.5, 1.5)))


def line_styles(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Choose colour, marker and dashes of each line; LSH, the floor, is grey."""
    styles, number = [], 0
    for line in lines:
        style: dict[str, Any] = {"linewidth": 1.8, "markersize": 4}
        if line.method == "lsh":
            styles.append({**style, "color": FLOOR, "marker": ".", "linestyle": (0, (4, 1.5))})
            continue
        styles.append(
            {
                **style,
                "color": list(PALETTE)[number % len(PALETTE)],
                "marker": MARKERS[number % len(MARKERS)],
                "linestyle": DASHES[number // len(PALETTE) % len(DASHES)],
            }
        )
        number += 1
    return styles
