"""Small parts of pages that several sections share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from streamhash.lab.rows import Row

__all__ = ["Picture", "facts", "figure_part", "machine_facts"]

VERSIONS = ("python", "numpy", "numba", "scikit-learn")


@dataclass(frozen=True)
class Picture:
    """A drawn figure with its words; a wide one takes the whole width of the page."""

    name: str
    title: str
    sentence: str
    svg: str
    wide: bool = False


def figure_part(picture: Picture) -> str:
    """Write a figure with its caption."""
    return f"""
<figure{' class="wide"' if picture.wide else ""}>
<figcaption><b>{escape(picture.title)}</b>{escape(picture.sentence)}</figcaption>
<div class="scroll">{picture.svg}</div></figure>"""


def facts(told: Mapping[str, str]) -> str:
    """Write names and what they are as a list."""
    items = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in told.items())
    return f"<dl>{items}</dl>"


def machine_facts(rows: Sequence[Row]) -> dict[str, str]:
    """Say on what and when the rows were made, with what versions."""
    machines = {
        f"{machine['cpu']}, {machine['cores']} cores, {machine['threads']} threads in use, "
        f"{machine['system']}": None
        for machine in (row["machine"] for row in rows)
    }
    versions = {
        ", ".join(
            [
                f"streamhash {row['version']}",
                *(f"{name} {row['machine'][name]}" for name in VERSIONS),
            ]
        ): None
        for row in rows
    }
    dates = sorted({str(row["date"]) for row in rows})
    return {
        "machine": "; ".join(machines),
        "versions": "; ".join(versions),
        "date": " to ".join(dict.fromkeys([dates[0], dates[-1]])),
    }
