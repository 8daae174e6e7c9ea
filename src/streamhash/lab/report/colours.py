"""Colours that people with any colour vision tell apart (Okabe and Ito 2008), for both schemes.

Each colour has a lighter twin for dark pages; ``SCHEMES`` gives pages both as CSS variables. A
method has one colour and marker in every figure; lines of one method differ by their dashes.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from streamhash.lab.summary import Line

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
    "#8c510a": "#c9975b",  # brown
    "#54478c": "#a597e0",  # indigo
}
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BROWN, INDIGO = PALETTE
SIMILAR_PAIRS, OTHER_PAIRS = BLUE, VERMILION
SCHEMES = {INK: "#e6edf3", GRID: "#30363d", FLOOR: "#9aa0a8", **PALETTE}
DASHES = ("-", (0, (4, 1.5)), (0, (1.5, 1.5)), (0, (5, 1.5, 1, 1.5)))
# Colour, marker and first dashes. A method that grew out of another shares its colour, dashed;
# methods that need no labels are grey.
METHOD_STYLES = {
    "sdoh": (BLUE, "o", 0),
    "hcoh": (VERMILION, "s", 0),
    "hmoh": (VERMILION, "P", 1),
    "bsodh": (GREEN, "D", 0),
    "mihash": (PURPLE, "^", 0),
    "osh": (ORANGE, "v", 0),
    "adapthash": (SKY, "X", 0),
    "sketchhash": (BROWN, "<", 0),
    "frosh": (BROWN, ">", 1),
    "okh": (INDIGO, "p", 0),
    "itq": (FLOOR, "d", 2),
    "pcah": (FLOOR, "h", 3),
    "lsh": (FLOOR, ".", 1),
}
UNKNOWN = (INK, "*", 0)  # a method of somebody else


def line_styles(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Choose colour, marker and dashes of each line, by its method."""
    styles, seen = [], Counter[str]()
    for line in lines:
        colour, marker, dashes = METHOD_STYLES.get(line.method, UNKNOWN)
        number = (dashes + seen[line.method]) % len(DASHES)
        seen[line.method] += 1
        styles.append(
            {
                "color": colour,
                "marker": marker,
                "linestyle": DASHES[number],
                "linewidth": 1.8 if number == 0 else 1.3,
                "markersize": 4,
            }
        )
    return styles
