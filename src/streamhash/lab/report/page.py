"""One page that shows a result: self-contained, light and dark, for any browser."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

from streamhash.lab.report.cell_details import CellDetails
from streamhash.lab.report.colours import GRID, INK
from streamhash.lab.report.comparison_page import comparison_parts, overview
from streamhash.lab.report.contents import Contents
from streamhash.lab.report.page_parts import Picture, facts, figure_part, machine_facts
from streamhash.lab.report.picture import colour_variables
from streamhash.lab.report.table import HEADINGS, SECONDS, group_sizes, table_cells
from streamhash.lab.report.words import headline, join
from streamhash.lab.rows import Row
from streamhash.lab.summary import METRICS, Line, by_group

__all__ = ["GENERATOR", "Pictures", "group_name", "make_page"]

GENERATOR = '<meta name="generator" content="streamhash">'  # by which a page is known as ours
FEW = 20  # lines of no experiment that are shown at once
Pictures = Mapping[str, Sequence[Picture]]  # by the name of a comparison, or of a group


def make_page(contents: Contents, pictures: Pictures, command: str) -> str:
    """Write the page: comparisons with a paper first, then all other lines."""
    if contents.comparisons:
        title, body = _experiments(contents, pictures)
    else:
        title, body = _groups_alone(contents.rest, pictures)
    lines = [line for each in contents.comparisons for line in each.lines()]
    data = list(dict.fromkeys(line.data for line in [*lines, *contents.rest]))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{GENERATOR}
<title>streamhash: {escape(", ".join(data))}</title>
<style>
{_style()}</style>
</head>
<body>
<main{' class="wide"' if contents.comparisons else ""}>
<header><p>streamhash · codes learned from a stream, searched by Hamming distance</p>
<h1>{escape(title)}</h1></header>
{body}
{_making(contents, command)}
</main>
</body>
</html>
"""


def _style() -> str:
    names = f"--ink: var(--c{INK[1:]}); --line: var(--c{GRID[1:]});"
    dark = "--paper: #0d1117; --soft: #161b22; --quiet: #9aa4af;"
    css = files("streamhash.lab.report").joinpath("page.css").read_text(encoding="utf-8")
    light_rule = f":root {{ {names} {colour_variables(dark=False)} }}"
    dark_rule = f":root {{ {dark} {colour_variables(dark=True)} }}"
    return f"{css}{light_rule}\n@media (prefers-color-scheme: dark) {{ {dark_rule} }}\n"


def _experiments(contents: Contents, pictures: Pictures) -> tuple[str, str]:
    """Return the title and the body of a page that puts results beside a paper's."""
    comparisons = contents.comparisons
    papers = list(dict.fromkeys(comparison.experiment.paper for comparison in comparisons))
    details = CellDetails(comparisons)
    parts = [overview(comparisons)]
    parts += [comparison_parts(each, details, pictures.get(each.name, [])) for each in comparisons]
    if contents.rest:
        groups = by_group(contents.rest).values()
        opened = " open" if len(contents.rest) <= FEW else ""
        tables = "".join(_group(group, [], level=3) for group in groups)
        parts.append(
            f"<section><h2>Rows of no experiment</h2><details{opened}>"
            f"<summary>{len(contents.rest)} lines, by data set and code length: other settings, "
            "sizes or methods</summary>"
            f"{_meanings()}{tables}</details></section>\n"
        )
    parts.append(details.section())
    return f"Beside the paper: {join(papers)}", "".join(parts)


def _groups_alone(lines: Sequence[Line], pictures: Pictures) -> tuple[str, str]:
    """Return the headline of the first group, and a section for each group."""
    groups = list(by_group(lines).values())
    said = [headline(group) for group in groups]
    sections = [
        _group(
            group,
            pictures.get(group_name(group), []),
            sentence=sentence if len(groups) > 1 else "",
            meanings=_meanings(),
        )
        for group, sentence in zip(groups, said, strict=True)
    ]
    return said[0], "".join(sections)


def group_name(lines: Sequence[Line]) -> str:
    """Return the name of a group, for files."""
    return f"{lines[0].data}-{lines[0].n_bits}"


def _group(
    lines: Sequence[Line],
    pictures: Sequence[Picture],
    *,
    level: int = 2,
    sentence: str = "",
    meanings: str = "",
) -> str:
    title = f"{lines[0].data}, {lines[0].n_bits} bits"
    figures = f'<div class="figures">{"".join(map(figure_part, pictures))}</div>'
    return f"""<section>
<h{level}>{escape(title)}</h{level}>
{f"<p>{escape(sentence)}</p>" if sentence else ""}
{_table(lines)}
{meanings}
{figures if pictures else ""}
</section>
"""


def _table(lines: Sequence[Line]) -> str:
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in HEADINGS)
    body = []
    for (label, _), *cells in table_cells(lines):
        values = "".join(f"<td>{_mark(escape(text), best)}</td>" for text, best in cells)
        body.append(f'<tr><th scope="row">{escape(label)}</th>{values}</tr>')
    return (
        f'<div class="scroll"><table><caption>{escape(group_sizes(lines))}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _mark(text: str, best: bool) -> str:
    return f"<b>{text}</b>" if best else text


def _meanings() -> str:
    return facts({**dict(METRICS.values()), SECONDS: "processor seconds to learn the whole stream"})


def _making(contents: Contents, command: str) -> str:
    """Say how to make it again; cells of experiments say it themselves."""
    lines = contents.rest
    every = [row for each in contents.comparisons for line in each.lines() for row in line.rows]
    every += [row for line in lines for row in line.rows]
    conventions = facts(every[0]["conventions"])
    listed = ""
    if lines:
        commands = "\n".join(row["command"] for line in lines for row in line.rows)
        settings = {f"{line.label}, {line.n_bits} bits": _settings(line.rows[0]) for line in lines}
        which = " of no experiment" if contents.comparisons else ""
        listed = f"""<details><summary>One command for each result{which}</summary>
<pre>{escape(commands)}</pre></details>
<details><summary>Settings of the methods{which}</summary>{facts(settings)}</details>
"""
    return f"""<section>
<h2>How this was made</h2>
<p>Queries are drawn at random from every class; all other instances are the database, and the
stream is the start of it, seen once. The seed draws the split, the order and the method's
start.</p>
<pre>{escape(command)}</pre>
<p class="quiet">{escape(contents.account())}</p>
{listed}<details><summary>Conventions of the metrics</summary>{conventions}</details>
{facts(machine_facts(every))}
</section>
"""


def _settings(row: Row) -> str:
    parameters = ", ".join(f"{name}={value}" for name, value in row["parameters"].items())
    return f"{row['settings']} settings, {row['features']} features: {parameters}"
