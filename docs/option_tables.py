"""The lists of options in ``cli.md``, as ``--help`` has them; what several verbs take, once."""

import re
from collections import Counter
from typing import Any

import typer

from streamhash.cli import app

__all__ = ["verbs", "with_options"]

TOP: Any = typer.main.get_command(app)


def verbs() -> dict[str, Any]:
    """Every verb with its command: ``fit``, ``live``, ``live add`` and so on, in their order."""
    found = {}
    for name, command in TOP.commands.items():
        found[name] = command
        for below, further in getattr(command, "commands", {}).items():
            found[f"{name} {below}"] = further
    return found


def with_options(page: str) -> str:
    """Return the page with the list at the end of each verb's section made anew."""
    sections = page.split("\n## ")
    for i, section in enumerate(sections):
        heading, _, prose = section.partition("\n")
        verb = heading.removeprefix("streamhash ")
        if verb in verbs():
            lines = _options_of(verb)
        elif heading == "Shared options":
            lines = [line for line, times in _counts().items() if times > 1]
        else:
            continue
        prose = re.sub(r"^- .*\n?", "", prose, flags=re.MULTILINE).strip()
        sections[i] = (
            "\n\n".join(part for part in (heading, prose, "\n".join(lines)) if part) + "\n"
        )
    return "\n## ".join(sections)


def _options_of(verb: str) -> list[str]:
    """A line for each option that is the verb's own, then the names of the shared ones."""
    times, params = _counts(), verbs()[verb].params
    own = [_line(parameter) for parameter in params if times[_line(parameter)] == 1]
    shared = [_names(parameter, "") for parameter in params if times[_line(parameter)] > 1]
    return [*own, *([f"- also {', '.join(shared)}"] if shared else [])]


def _counts() -> Counter[str]:
    return Counter(_line(parameter) for command in verbs().values() for parameter in command.params)


def _line(parameter: Any) -> str:
    text = parameter.help
    if parameter.default not in (None, False, []) and not callable(parameter.default):
        text = f"{text.rstrip('.')} (default: {parameter.default})."
    return f"- {_names(parameter)}: {text}"


def _names(parameter: Any, metavar: str | None = None) -> str:
    if not parameter.opts[0].startswith("-"):
        return f"`{parameter.metavar}`"
    value = parameter.metavar if metavar is None else metavar
    return ", ".join(f"`{name} {value}`" if value else f"`{name}`" for name in parameter.opts)
