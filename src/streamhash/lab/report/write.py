"""A folder with tables, figures and one page, rebuilt from result rows by Jinja2 templates.

Rows of an experiment of a paper stand beside the paper's numbers, all others by data set and code
length. Every row has its place, and how many went where is said.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamhash.errors import InputError
from streamhash.lab import comparison as comparisons_module, rows as rows_module
from streamhash.lab.comparison import Comparison, compare, compare_all
from streamhash.lab.experiment import Experiment
from streamhash.lab.report import figures as drawing, sentences, tables
from streamhash.lab.rows import (
    METRICS,
    Line,
    Row,
    by_group,
    describe_database,
    describe_stream,
    latest,
    summarise,
)
from streamhash.optional import import_optional

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = "index.html"
ROW_FIELDS = ("data", "method", "settings", "n_bits", "command", "version")
CSV_FIELDS = (
    *("experiment", "data", "method", "settings", "changes", "n_bits", "metric", "mean", "std"),
    *("n_seeds", "paper", "difference", "command", "version"),
)
# The files of a report, and what each of ours holds: others are never written over.
OURS = {
    PAGE: '<meta name="generator" content="streamhash">',
    "report.md": "<!-- written by streamhash report -->\n",
    "tables.tex": "% written by streamhash report\n",
    "results.csv": ",".join(CSV_FIELDS) + "\n",
}
TINT_STEPS = (0.02, 0.05, 0.1)  # differences from the paper at which the tint grows
CLASSES_TITLE = "Each class along the stream"
CLASSES_SENTENCE = """\
Thin: the queries of one class, from its first row on, with a dot where it stopped coming (first \
seed). Thick: the mean over the classes that have come, and over the seeds."""
ONE_PANEL_INCHES = 8.0  # a wider figure takes the whole page
LATEX_SIGNS = {
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"–": "--", "±": r"$\pm$", "−": "$-$", "×": r"$\times$"},
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
LATEX_SYNTAX = {  # as LaTeX is full of braces
    **{"block_start_string": "<%", "block_end_string": "%>"},
    **{"variable_start_string": "<<", "variable_end_string": ">>"},
    **{"comment_start_string": "<#", "comment_end_string": "#>"},
}


@dataclass(frozen=True)
class Report:
    """Rows as comparisons with a paper, all other lines, and how many rows went where."""

    comparisons: tuple[Comparison, ...]
    rest: tuple[Line, ...]  # lines of no experiment, and those that belong beside them
    n_rows: int
    n_trials: int  # rows of a search for settings
    n_replaced: int  # rows of a cell that has a later one

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "Report":
        """Put rows where a report shows them; trials of a search for settings are no results."""
        given = list(rows)
        results = [row for row in given if row.get("split") != "validation"]
        lines = summarise(results)
        comparisons = tuple(compare_all(lines))
        compared = {id(line) for comparison in comparisons for line in comparison.lines}
        others = {_contest(line) for line in lines if id(line) not in compared}
        return cls(
            comparisons=comparisons,
            rest=tuple(
                line for line in lines if id(line) not in compared or _contest(line) in others
            ),
            n_rows=len(given),
            n_trials=len(given) - len(results),
            n_replaced=len(results) - len(latest(results)),
        )

    @property
    def has_lines(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.comparisons or self.rest)

    def account(self) -> str:
        """Say how many rows were used for what."""
        compared = {id(line): line for each in self.comparisons for line in each.lines}
        others = [line for line in self.rest if id(line) not in compared]
        counts = {
            "in experiments of a paper": sum(len(line.rows) for line in compared.values()),
            "by data set and code length": sum(len(line.rows) for line in others),
            "left out as trials of a search for settings": self.n_trials,
            "left out as their cells have later rows": self.n_replaced,
        }
        parts = [f"{number:,} {what}" for what, number in counts.items() if number]
        return f"{self.n_rows:,} rows: {sentences.join(parts)}." if parts else "No rows."

    def markdown(self) -> str:
        """Write the comparisons with what they say, then all other lines, in Markdown."""
        return _tidy(read_template("report.md").render(report=self))

    def latex(self) -> str:
        """Write a ``table*`` for each comparison that is a table and for each kind of settings.

        And for all other lines, those of one data set together.
        """
        template = read_template("tables.tex")
        return _tidy(template.render(comparisons=self.comparisons, rest=self.rest))

    def csv(self) -> str:
        """Write a line for each cell and metric; those of no experiment have an empty first field.

        For spreadsheets and data frames.
        """
        text = io.StringIO()
        writer = csv.DictWriter(text, CSV_FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(_records(self))
        return text.getvalue()

    def page(self, pictures: dict[str, list[Any]], command: str) -> str:
        """Write one page that shows it all: self-contained, light and dark, for any browser."""
        lines = [*(line for each in self.comparisons for line in each.lines), *self.rest]
        page: str = read_template("page.html").render(
            report=self,
            pictures=pictures,
            command=command,
            details=_details(self.comparisons),
            every_row=[row for line in lines for row in line.rows],
        )
        return page

    def write(self, folder: Path, *, command: str, figures: bool = True) -> Path:
        """Write page, tables and figures into ``folder``, and return the page's path."""
        if not self.has_lines:
            what = "only trials of a search for settings" if self.n_trials else "no result rows"
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
        texts = {
            PAGE: self.page(_draw(self, folder) if figures else {}, command),
            "report.md": OURS["report.md"] + "\n" + self.markdown(),
            "results.csv": self.csv(),
            "tables.tex": OURS["tables.tex"] + "\n" + self.latex(),
        }
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
        return folder / PAGE


def write_report(rows: Iterable[Row], folder: Path, *, command: str, figures: bool = True) -> Path:
    """Write page, tables and figures of rows into ``folder``, and return the page's path.

    ``command`` is what the page names for making all of it again. ``figures=False`` leaves them
    out, where matplotlib is not installed.
    """
    return Report.of(rows).write(folder, command=command, figures=figures)


def comparison_markdown(
    experiment: Experiment, lines: Sequence[Line], data: str, settings: str | None = None
) -> str:
    """Write the tables of an experiment on a data set, one for each metric.

    ``settings`` picks the lines with one kind of them, such as "published".
    """
    macros = read_template("tables.md").module
    return _tidy(macros.comparison_tables(compare(experiment, lines, data), settings)).strip()


def markdown_table(lines: Sequence[Line]) -> str:
    """Write the table in Markdown, best values bold, with a title line above each group."""
    return _tidy(read_template("tables.md").module.group_tables(lines))


def _tidy(text: str) -> str:
    """Leave one empty line where a template has left several."""
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _contest(line: Line) -> tuple[object, ...]:
    """Return what lines share that are compared with each other where no paper is.

    Only lines with default settings have company outside their experiment.
    """
    row = line.rows[0]
    alone = id(line) if row["settings"] != "default" else None
    stream = (row["stream"], describe_stream(row), row["split"], row["checkpoints"])
    return (line.data, line.n_bits, *stream, describe_database(row), alone)


def _records(report: Report) -> Iterator[dict[str, Any]]:
    for comparison in report.comparisons:
        experiment = comparison.experiment
        name = f"{experiment.name} (quick)" if experiment.is_quick else experiment.name
        for entry in comparison.entries():
            for metric, bits in comparison.columns:
                if entry.mean(metric, bits) is not None:
                    yield {
                        **_record(name, entry.lines[bits], metric),
                        "paper": comparison.paper(entry.run, metric, bits),
                        "difference": comparison.difference(entry, metric, bits),
                    }
    for line in report.rest:
        yield from (_record("", line, metric) for metric in METRICS if line.values(metric))


def _record(experiment: str, line: Line, metric: str) -> dict[str, Any]:
    row = line.rows[0]
    return {
        **{name: row[name] for name in ROW_FIELDS},
        "experiment": experiment,
        "changes": " ".join(f"{name}={value}" for name, value in row["changes"].items()),
        "metric": metric,
        "mean": line.mean(metric),
        "std": line.std(metric),
        "n_seeds": len(line.values(metric)),
    }


def _details(comparisons: Sequence[Comparison]) -> dict[int, dict[str, Any]]:
    """Gather what a click on a cell opens; cells of one line share it, in all tables."""
    found: dict[int, dict[str, Any]] = {}
    for comparison in comparisons:
        for entry in comparison.entries():
            for bits, line in entry.lines.items():
                new = {"name": f"cell-{len(found)}", "line": line, "printed": {}}
                detail = found.setdefault(id(line), {**new, "metrics": dict.fromkeys(METRICS)})
                detail["metrics"].update(dict.fromkeys(comparison.experiment.metrics))
                for source, metric, value in comparison.experiment.printed(line.method, bits):
                    source = "the paper" if source == "paper" else source
                    detail["printed"].setdefault(source, {})[metric] = value
    return found


def tint(difference: float) -> str:
    """Return the class of a difference from the paper: up1 to up3, down1 to down3, or none."""
    step = sum(abs(round(difference, 3)) > least for least in TINT_STEPS)  # of what is shown
    return f"{'up' if difference > 0 else 'down'}{step}" if step else ""


def escape_latex(text: str) -> str:
    r"""Write text so that LaTeX prints it as it is.

    >>> escape_latex("P@H2, 50 % of a_b")
    'P@H2, 50 \\% of a\\_b'
    """
    return "".join(LATEX_SIGNS.get(sign, sign) for sign in text)


def _draw(report: Report, folder: Path) -> dict[str, list[Any]]:
    """Draw the figures of all comparisons; groups have some where there is nothing else."""
    found: dict[str, list[Any]] = {}

    def add(key: str, name: str, title: str, sentence: str, figure: "Figure") -> None:
        drawing.save_png(figure, folder / f"{name}.png")
        svg = drawing.to_svg(figure, name, f"{title}. {sentence}")
        wide = figure.get_figwidth() > ONE_PANEL_INCHES
        found.setdefault(key, []).append((title, sentence, svg, wide))

    for each in report.comparisons:
        for settings in each.settings:
            figure = drawing.draw_comparison(each, settings)
            if figure is not None:
                title = f"{each.title}, {settings} settings"
                caption = drawing.figure_caption(each, settings)
                add(each.name, f"{each.name}-{settings}", title, caption, figure)
    for lines in [] if report.comparisons else by_group(report.rest).values():
        for kind, (title, draw, describe) in drawing.GROUP_FIGURES.items():
            name = tables.group_name(lines)
            add(name, f"{kind}-{name}", title, describe(lines), draw(lines))
        if by_class := [line for line in lines if "class_curve" in line.rows[0]]:
            figure = drawing.draw_class_curves(by_class)
            add(name, f"classes-{name}", CLASSES_TITLE, CLASSES_SENTENCE, figure)
    return found


@cache
def _environment() -> Any:
    jinja2 = import_optional("jinja2", extra="plots", place="a report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("streamhash.lab.report"),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for module in (comparisons_module, rows_module, sentences, tables):
        environment.globals.update(vars(module))
    environment.globals.update(SCHEMES=drawing.SCHEMES, TINT_STEPS=TINT_STEPS, tint=tint, id=id)
    environment.filters["tex"] = escape_latex
    return environment


def read_template(name: str) -> Any:
    """Return a template of a report by its name."""
    environment = _environment()
    if name.endswith(".tex"):
        environment = environment.overlay(**LATEX_SYNTAX)
    return environment.get_template(name)
