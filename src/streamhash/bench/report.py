"""A folder with figures and one page, rebuilt from result rows."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from streamhash.bench.figures import draw_curves, draw_distances, draw_precision
from streamhash.bench.page import GENERATOR, Picture, make_page
from streamhash.bench.picture import save_png, to_svg
from streamhash.bench.rows import Row
from streamhash.bench.summary import Line, by_group, summarise
from streamhash.bench.words import curve_words, distance_words, precision_words
from streamhash.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["have_figures", "write_report"]

PAGE = "index.html"
Draw = Callable[[Sequence[Line]], "Figure"]
Say = Callable[[Sequence[Line]], str]
FIGURES: dict[str, tuple[str, Draw, Say]] = {
    "map": ("mAP against instances seen", draw_curves, curve_words),
    "precision": ("Precision among the first R results", draw_precision, precision_words),
    "distances": ("Distances of similar and dissimilar pairs", draw_distances, distance_words),
}


def write_report(rows: Iterable[Row], folder: Path, *, command: str, figures: bool = True) -> Path:
    """Write the page and a PNG of every figure into ``folder``, and return the page's path.

    ``command`` is what the page names for making all of it again. ``figures=False`` leaves them
    out, where matplotlib is not installed.
    """
    lines = summarise(rows)
    if not lines:
        raise InputError(
            f"{folder}: there are no result rows to report; run streamhash bench with --out first."
        )
    page = folder / PAGE
    if page.exists() and GENERATOR not in page.read_text(encoding="utf-8", errors="replace"):
        raise InputError(
            f"{page} was not written by streamhash; move it, or choose another folder."
        )
    pictures = {}
    if figures:
        pictures = {key: _draw(group, folder) for key, group in by_group(lines).items()}
    text = make_page(lines, pictures, command)
    folder.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    return page


def _draw(lines: Sequence[Line], folder: Path) -> list[Picture]:
    """Draw the figures of one group, save each as PNG, and return them for the page."""
    pictures = []
    for kind, (title, draw, say) in FIGURES.items():
        name = f"{kind}-{lines[0].data}-{lines[0].n_bits}"
        figure, sentence = draw(lines), say(lines)
        folder.mkdir(parents=True, exist_ok=True)
        save_png(figure, folder / f"{name}.png")
        svg = to_svg(figure, name, f"{title}. {sentence}")
        pictures.append(Picture(name, title, sentence, svg, wide=kind == "distances"))
    return pictures


def have_figures() -> bool:
    """Whether matplotlib is installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return True
