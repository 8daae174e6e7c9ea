"""Docstrings as Markdown, for the site: sections of NumPy's kind, examples, and names in roles.

Parameters                      **Parameters**
----------                -->
n_bits : length of codes        - `n_bits`: length of codes
"""

import re
from collections.abc import Iterator
from typing import Any

import griffe

ENTRY = re.compile(r"(\*{0,2}[\w, *.()\"'/@=-]+?) : (.*)")
ROLE = re.compile(r":\w+:`~?([^`]+)`")
LISTED = ("Parameters", "Attributes", "Returns", "Raises", "Yields")


class Markdown(griffe.Extension):
    """Turns every docstring that is collected into Markdown."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(text: str) -> str:
    """Return a docstring as Markdown.

    >>> print(markdown("Attributes\\n----------\\nmean_ : array (d,)\\n    Of all rows."))
    **Attributes**
    <BLANKLINE>
    - `mean_` (array (d,)):
        Of all rows.
    >>> print(markdown("Sum.\\n\\nParameters\\n----------\\na, b : numbers\\n\\n>>> add(1, 2)\\n3"))
    Sum.
    <BLANKLINE>
    **Parameters**
    <BLANKLINE>
    - `a, b`: numbers
    <BLANKLINE>
    ```pycon
    >>> add(1, 2)
    3
    ```
    """
    text = ROLE.sub(lambda match: f"`{match[1].rpartition('.')[2]}`", text)
    return "\n".join(_lines(text.splitlines())).strip()


def _lines(lines: list[str]) -> Iterator[str]:
    section, place = "", 0
    while place < len(lines):
        line = lines[place]
        if place + 1 < len(lines) and line.strip() and re.fullmatch(r"-{3,}", lines[place + 1]):
            section = line.strip()
            yield from ("", f"**{section}**", "")
            place += 2
        elif line.lstrip().startswith(">>>"):
            end = place
            while end < len(lines) and lines[end].strip():
                end += 1
            yield from ("", "```pycon", *(each.strip("\n") for each in lines[place:end]), "```", "")
            place = end
        elif line.startswith("    ") and not section:  # a block that is shown as it is
            end = place
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            block = [each[4:] for each in lines[place:end]]
            yield from ("", "```text", *"\n".join(block).rstrip().splitlines(), "```", "")
            place = end
        elif section in LISTED and (entry := ENTRY.fullmatch(line)):
            follows = lines[place + 1 : place + 2]
            is_type = bool(follows) and re.match(r"    [A-Z0-9]", follows[0])
            yield f"- `{entry[1]}` ({entry[2]}):" if is_type else f"- `{entry[1]}`: {entry[2]}"
            place += 1
        else:
            yield line
            place += 1
