"""A folder with tables, figures and one page, rebuilt from result rows."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from streamhash.errors import InputError
from streamhash.lab.report.comparison import Comparison
from streamhash.lab.report.contents import Contents, sort_rows
from streamhash.lab.report.figures import draw_curves, draw_distances, draw_precision
from streamhash.lab.report.latex import latex_tables
from streamhash.lab.report.markdown import report_markdown
from streamhash.lab.report.page import GENERATOR, group_name, make_page
from streamhash.lab.report.page_parts import Picture
from streamhash.lab.report.panels import draw_comparison, figure_words
from streamhash.lab.report.picture import save_png, to_svg
from streamhash.lab.report.results_csv import CSV_FIELDS, results_csv
from streamhash.lab.report.words import curve_words, distance_words, precision_words
from streamhash.lab.rows import Row
from streamhash.lab.summary import Line, by_group

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["have_figures", "write_contents", "write_report"]

PAGE = "index.html"
# The files of a report, and what each of ours holds: others are never written over.
OURS = {
    PAGE: GENERATOR,
    "report.md": "<!-- written by streamhash report -->\n",
    "tables.tex": "% written by streamhash report\n",
    "results.csv": ",".join(CSV_FIELDS) + "\n",
}
ONE_PANEL = 8.0  # inches; a wider figure takes the whole page
Draw = Callable[[Sequence[Line]], "Figure"]
Say = Callable[[Sequence[Line]], str]
FIGURES: dict[str, tuple[str, Draw, Say]] = {
    "map": ("mAP against instances seen", draw_curves, curve_words),
    "precision": ("Precision among the first R results", draw_precision, precision_words),
    "distances": ("Distances of similar and dissimilar pairs", draw_distances, distance_words),
}


def write_report(rows: Iterable[Row], folder: Path, *, command: str, figures: bool = True) -> Path:
    """Write page, tables and figures of rows into ``folder``, and return the page's path.

    ``command`` is what the page names for making all of it again. ``figures=False`` leaves them
    out, where matplotlib is not installed.
    """
    return write_contents(sort_rows(rows), folder, command=command, figures=figures)


def write_contents(contents: Contents, folder: Path, *, command: str, figures: bool = True) -> Path:
    """Write the report of rows that were sorted already."""
    if not contents.has_lines:
        what = "only trials of a search for settings" if contents.n_trials else "no result rows"
        raise InputError(
            f"{folder}: there are {what} to report; run streamhash bench with --out first."
        )
    for name, mark in OURS.items():
        path = folder / name
        if path.exists() and mark not in path.read_text(encoding="utf-8", errors="replace"):
            raise InputError(
                f"{path} was not written by streamhash; move it, or choose another folder."
            )
    folder.mkdir(parents=True, exist_ok=True)
    pictures = _draw_all(contents, folder) if figures else {}
    texts = {
        PAGE: make_page(contents, pictures, command),
        "report.md": OURS["report.md"] + "\n" + report_markdown(contents),
        "results.csv": results_csv(contents),
    }
    if contents.comparisons:
        texts["tables.tex"] = OURS["tables.tex"] + "\n" + latex_tables(contents.comparisons)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return folder / PAGE


def _draw_all(contents: Contents, folder: Path) -> dict[str, list[Picture]]:
    """Draw the figures of all comparisons; groups have some where there is nothing else."""
    if contents.comparisons:
        return {each.name: _draw_comparison(each, folder) for each in contents.comparisons}
    groups = by_group(contents.rest).values()
    return {group_name(group): _draw_group(group, folder) for group in groups}


def _draw_comparison(comparison: Comparison, folder: Path) -> list[Picture]:
    pictures = []
    for settings in comparison.settings:
        figure = draw_comparison(comparison, settings)
        if figure is not None:
            name = f"{comparison.name}-{settings}"
            title = f"{comparison.title}, {settings} settings"
            sentence = figure_words(comparison, settings)
            wide = figure.get_figwidth() > ONE_PANEL
            pictures.append(_save(figure, folder, name, title, sentence, wide))
    return pictures


def _draw_group(lines: Sequence[Line], folder: Path) -> list[Picture]:
    """Draw the figures of one group, save each as PNG, and return them for the page."""
    pictures = []
    for kind, (title, draw, say) in FIGURES.items():
        name, wide = f"{kind}-{group_name(lines)}", kind == "distances"
        pictures.append(_save(draw(lines), folder, name, title, say(lines), wide))
    return pictures


def _save(
    figure: "Figure", folder: Path, name: str, title: str, sentence: str, wide: bool
) -> Picture:
    save_png(figure, folder / f"{name}.png")
    return Picture(name, title, sentence, to_svg(figure, name, f"{title}. {sentence}"), wide=wide)


def have_figures() -> bool:
    """Whether matplotlib is installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return True
