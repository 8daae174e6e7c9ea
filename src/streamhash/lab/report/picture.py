"""From a matplotlib figure to a PNG file, and to SVG that takes its colours from the page."""

import io
import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from streamhash.lab.report.colours import SCHEMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["colour_variables", "save_png", "to_svg"]


def save_png(figure: "Figure", path: Path, *, dpi: int = 200) -> None:
    """Write a picture for documents: light, on white, by default sharp on dense screens."""
    figure.savefig(path, format="png", dpi=dpi, facecolor="white", metadata={"Software": None})


def to_svg(figure: "Figure", name: str, alt: str) -> str:
    """Write a picture for a page: text stays text, colours are variables, no address in it."""
    import matplotlib

    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    buffer = io.StringIO()
    # The salt keeps the ids of two pictures on one page apart.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg).replace("xlink:href", "href")
    box = re.search(r'viewBox="[^"]*"', svg)
    top = f'<svg {box.group() if box else ""} role="img" aria-label="{escape(alt)}">'
    svg = re.sub(r"<svg[^>]*>", lambda _: top, svg, count=1)
    svg = re.sub(r' id="((?:figure|axes|patch|matplotlib|line2d|text|xtick|ytick)[^"]*)"', "", svg)
    svg = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font: \1 var(--sans)", svg)
    for colour in SCHEMES:
        svg = svg.replace(colour, f"var({_variable(colour)})")
    return svg


def colour_variables(dark: bool) -> str:
    """Write the colours of one scheme as CSS variables."""
    return " ".join(
        f"{_variable(light)}: {twin if dark else light};" for light, twin in SCHEMES.items()
    )


def _variable(colour: str) -> str:
    return f"--c{colour[1:]}"
