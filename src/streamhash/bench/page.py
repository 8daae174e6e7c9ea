"""One page that shows a result: self-contained, light and dark, for any browser."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from streamhash.bench.colours import GRID, INK
from streamhash.bench.picture import colour_variables
from streamhash.bench.rows import Row
from streamhash.bench.summary import METRICS, Line, by_group
from streamhash.bench.table import HEADINGS, SECONDS, group_sizes, table_cells
from streamhash.bench.words import headline

__all__ = ["GENERATOR", "Picture", "make_page"]

GENERATOR = '<meta name="generator" content="streamhash">'  # by which a page is known as ours


@dataclass(frozen=True)
class Picture:
    """A drawn figure with its words; a wide one takes the whole width of the page."""

    name: str
    title: str
    sentence: str
    svg: str
    wide: bool = False


def make_page(
    lines: Sequence[Line], pictures: dict[tuple[str, int], list[Picture]], command: str
) -> str:
    """Write the page of all ``lines``, with the pictures of each group."""
    groups = by_group(lines)
    first = next(iter(groups.values()))
    sections = [_group(group, pictures.get(key, [])) for key, group in groups.items()]
    if len(groups) > 1:  # each group then says its result itself
        sections = [
            section.replace("<!--result-->", f"<p>{escape(headline(group))}</p>")
            for section, group in zip(sections, groups.values(), strict=True)
        ]
    data = sorted({line.data for line in lines})
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
<main>
<header><p>streamhash · codes learned from a stream, searched by Hamming distance</p>
<h1>{escape(headline(first))}</h1></header>
{"".join(sections)}
{_making(lines, command)}
</main>
</body>
</html>
"""


def _style() -> str:
    names = f"--ink: var(--c{INK[1:]}); --line: var(--c{GRID[1:]});"
    dark = "--paper: #0d1117; --soft: #161b22; --quiet: #9aa4af;"
    css = files("streamhash.bench").joinpath("page.css").read_text(encoding="utf-8")
    light_rule = f":root {{ {names} {colour_variables(dark=False)} }}"
    dark_rule = f":root {{ {dark} {colour_variables(dark=True)} }}"
    return f"{css}{light_rule}\n@media (prefers-color-scheme: dark) {{ {dark_rule} }}\n"


def _group(lines: Sequence[Line], pictures: Sequence[Picture]) -> str:
    data, n_bits = lines[0].data, lines[0].n_bits
    return f"""<section>
<h2>{escape(data)}, {n_bits} bits</h2>
<!--result-->
{_table(lines)}
{_meanings()}
<div class="figures">{"".join(map(_figure, pictures))}</div>
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
    meanings = {**dict(METRICS.values()), SECONDS: "processor seconds to learn the whole stream"}
    return _facts(meanings)


def _facts(facts: dict[str, str]) -> str:
    items = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
    return f"<dl>{items}</dl>"


def _figure(picture: Picture) -> str:
    return f"""
<figure{' class="wide"' if picture.wide else ""}>
<figcaption><b>{escape(picture.title)}</b>{escape(picture.sentence)}</figcaption>
<div class="scroll">{picture.svg}</div></figure>"""


def _making(lines: Sequence[Line], command: str) -> str:
    row = lines[0].rows[0]
    commands = "\n".join(row["command"] for line in lines for row in line.rows)
    settings = {f"{line.label}, {line.n_bits} bits": _settings(line.rows[0]) for line in lines}
    return f"""<section>
<h2>How this was made</h2>
<p>Queries are drawn at random from every class; all other instances are the database, and the
stream is the start of it, seen once. The seed draws the split, the order and the method's
start.</p>
<pre>{escape(command)}</pre>
<details><summary>One command for each result</summary><pre>{escape(commands)}</pre></details>
<details><summary>Settings of the methods</summary>{_facts(settings)}</details>
<details><summary>Conventions of the metrics</summary>{_facts(row["conventions"])}</details>
{_facts(_machine(row))}
</section>
"""


def _settings(row: Row) -> str:
    parameters = ", ".join(f"{name}={value}" for name, value in row["parameters"].items())
    return f"{row['settings']} settings, {row['features']} features: {parameters}"


def _machine(row: Row) -> dict[str, str]:
    machine = row["machine"]
    versions = ("python", "numpy", "numba", "scikit-learn")
    return {
        "machine": f"{machine['cpu']}, {machine['cores']} cores, {machine['threads']} threads in "
        f"use, {machine['system']}",
        "versions": f"streamhash {row['version']}, "
        + ", ".join(f"{name} {machine[name]}" for name in versions),
        "date": row["date"],
    }
