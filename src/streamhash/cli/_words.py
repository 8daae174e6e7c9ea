"""Messages of the library in the words of the command line: options for parameters of Python."""

import re
import shlex
from typing import Any

# Parameters that the command line calls otherwise: Python's name, and that of the verb's parameter.
OTHER_NAMES = {
    "n_bits": "bits",
    "random_state": "seed",
    "column": "label_column",
    "columns": "label_column",
    "methods": "method",
    "seeds": "seeds",
    "reservoir_size": "sample",
    "batch_size": "batch",
}
COLUMNS = {
    "id": "--id-column",
    "vector": "--vector-column",
    "label": "--label-column",
    "metadata": "--metadata-columns",
    "features": "--feature-columns",
    "ignore": "--ignore-columns",
}
# What only Python can do, and what takes its place.
OTHER_WAYS = {
    "close it there, or open it here with read_only=True": "close it there, or wait until it ends; "
    "verbs that only read, such as search and status, work meanwhile",
    "ask `id in collection` first, or add it": "check it, or add it",
    "models() lists those there are": "streamhash live history lists those there are",
}
UNKNOWN_CLASS = re.compile(r"holds an? (\w+) of (\S+), which is not known here; import \2 first")
TEXT = r"""(?:"[^"]*"|'[^']*')"""
ASSIGNED = re.compile(
    rf"(?<!--set )\b([A-Za-z_]+)=({TEXT}|[\w+-]+(?:\.\w+)*)((?:(?:, | or ){TEXT}(?![=\w]))*)"
)
OF_COLUMNS = re.compile(rf"Columns\((\w+)=({TEXT})\)")
BARE = re.compile(r"(?<![\w./=-])([a-z]+(?:_[a-z]+)+)(?![\w=/(-]|\.\w)")


def in_options(message: str, verb: Any = None) -> str:
    """Return a message with the options of a verb in the place of parameters of Python.

    What the verb has no option for stays; a parameter of a hasher is one of ``--set``.
    """
    options = _options(verb)
    if "--read-only" not in options.values():
        for ours, theirs in OTHER_WAYS.items():
            message = message.replace(ours, theirs)
    message = UNKNOWN_CLASS.sub(
        r"holds a \1 of \2, which is not known here; run streamhash --import \2 and the verb",
        message,
    )
    is_hashers = _is_of_a_hasher(message) and "--set" in options.values()

    def assigned(match: re.Match[str]) -> str:
        name, value, more = match.groups()
        option = options.get(name) or options.get(OTHER_NAMES.get(name, ""))
        if name == "batch_size" and is_hashers:
            option = None
        if option is not None:
            if value in ("True", "False"):
                return option if value == "True" else f"no {option}"
            return f"{option} {_typed(value)}{re.sub(TEXT, lambda m: _typed(m[0]), more)}"
        return f"--set {name}={value.strip(chr(34) + chr(39))}" if is_hashers else match[0]

    def bare(match: re.Match[str]) -> str:
        return options.get(match[1], match[0])

    message = OF_COLUMNS.sub(lambda m: f"{COLUMNS[m[1]]} {_typed(m[2])}", message)
    message = message.replace(" (--first-id N)", "")
    return BARE.sub(bare, ASSIGNED.sub(assigned, message))


def _options(verb: Any) -> dict[str, str]:
    """Return the options of a verb by the names of its parameters."""
    found = {}
    for parameter in getattr(verb, "params", ()):
        names = [name for name in parameter.opts if name.startswith("-")]
        if names:
            found[parameter.name] = names[0]
    return found


def _is_of_a_hasher(message: str) -> bool:
    from streamhash.hashers import METHODS

    return message.partition(":")[0] in {method.__name__ for method in METHODS.values()}


def _typed(value: str) -> str:
    """Return a value as one types it: in quotes where a shell would read more into it."""
    return shlex.quote(value.strip("\"'") or "")
