"""Options that several verbs share: one name, one meaning, one help text; and their values."""

import importlib
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from streamhash.errors import InputError

if TYPE_CHECKING:
    from streamhash import OnlineHasher
    from streamhash.files import Columns

METHOD, BITS = "sdoh", 32  # unless a verb is given others
PYTHON_CONSTANTS = {"None": None, "none": None, "True": True, "False": False}

Json = Annotated[bool, Option("--json", help="Print JSON and nothing else.")]
Model = Annotated[Path, Argument(metavar="MODEL", help="A model saved by fit.")]
Method = Annotated[
    str, Option(metavar="NAME", help="The method that learns; or package.module:Class.")
]
ModelMethod = Annotated[
    str | None,
    Option("--method", metavar="NAME", help="Of a model of your own: package.module:Class."),
]
Settings = Annotated[
    Path | None,
    Option(metavar="FILE", help="Settings of the method: a .toml as tune writes it."),
]
Bits = Annotated[int, Option(metavar="K", help="Length of the codes.")]
Seed = Annotated[int, Option(metavar="N", help="Random seed.")]
Jobs = Annotated[
    int | None,
    Option(metavar="N", min=1, help="Cells to run at once (default: one on each core)."),
]
Mmap = Annotated[
    bool,
    Option("--mmap", help="Have codes, ids and labels in mapped files: for many items."),
]
Nearest = Annotated[
    int, Option("-k", "--nearest", metavar="K", min=1, help="Results for each query.")
]
Scheduler = Annotated[
    str | None,
    Option(
        metavar="ADDRESS",
        help="Run on the Dask cluster of this scheduler: tcp://host:port.",
    ),
]
Changes = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a parameter of the method; may be repeated.",
    ),
]
Labels = Annotated[
    Path | None, Option(metavar="FILE", help="File with the labels, if they are separate.")
]
LabelColumn = Annotated[
    str | None,
    Option(metavar="NAME", help="Column of the labels (default: label or y)."),
]
IdColumn = Annotated[str | None, Option(metavar="NAME", help="Column of the ids (default: id).")]
VectorColumn = Annotated[
    str | None, Option(metavar="NAME", help="Column of lists (default: vector, or the only one).")
]
FeatureColumns = Annotated[
    str | None,
    Option(metavar="NAMES", help="Columns of numbers that are the features, with commas; x*."),
]
IgnoreColumns = Annotated[
    str | None, Option(metavar="NAMES", help="Columns not to be used, with commas; x*, or *.")
]


def file_columns(
    *,
    ids: str | None = None,
    vector: str | None = None,
    label: str | None = None,
    metadata: str | None = None,
    features: str | None = None,
    ignore: str | None = None,
) -> "Columns":
    """Return what the options for columns say."""
    from streamhash.files import Columns

    return Columns(ids, vector, label, metadata or (), features or (), ignore or ()).split()


Fields = Annotated[
    str | None,
    Option(metavar="NAMES", help="Fields of the metadata to show, with commas; * for all."),
]


def check_fields(place: str, names: Iterable[str], metadata: Iterable[Any]) -> None:
    """Refuse a field that no item has."""
    known = sorted({name for each in metadata for name in each or ()})
    for name in names:
        if name not in known:
            has = f"which have {', '.join(known)}" if known else "which have no metadata"
            raise InputError(f"{place}: --fields {name} is in none of the items, {has}.")


def make_hasher(
    method: str,
    bits: int,
    seed: int,
    settings: Path | None = None,
    changes: Iterable[str] | None = None,
) -> "OnlineHasher":
    """Make a hasher as the options say: what ``--set`` changes goes before a file's settings."""
    from streamhash.lab import file_settings, make_hasher

    (name,) = method_names(method)
    own = file_settings(settings, name) if settings is not None else {}
    return make_hasher(name, bits, seed, changes={**own, **parse_changes(changes)})


def load_model(path: Path, method: str | None = None) -> "OnlineHasher":
    """Load a model; its class is imported only if it is named, and then must be the model's."""
    from streamhash import load
    from streamhash.lab import find_method

    wanted = find_method(method_names(method)[0]) if method is not None else None
    model = load(path)
    if wanted is not None and type(model) is not wanted:
        raise InputError(
            f"{path}: holds a model of {type(model).__name__}, not of {method}; leave out --method."
        )
    return model


def method_names(text: str) -> list[str]:
    """Split the names of methods; modules of the working folder can be named, too."""
    names = split_names(text) or [text]
    use_modules([name.partition(":")[0] for name in names if ":" in name])
    return names


_modules: list[str] = []  # that people have named: what workers import as well


def find_modules_here() -> None:
    """Let modules of the working folder be imported, after those that are installed."""
    folder = os.getcwd()  # noqa: PTH109
    if folder not in sys.path:
        sys.path.append(folder)


def use_modules(names: Sequence[str]) -> None:
    """Take note of modules that people have named; they may lie in the working folder."""
    if names:
        find_modules_here()
    _modules.extend(name for name in names if name not in _modules)


def import_modules(names: Sequence[str]) -> None:
    """Import modules, whose classes can then be loaded from files."""
    use_modules(names)
    for name in names:
        try:
            importlib.import_module(name)
        except (ImportError, ValueError) as error:
            raise InputError(
                f"--import {name}: cannot be imported ({error}); install its package, or run where "
                "its module lies."
            ) from error


def used_modules() -> list[str]:
    """Return the modules that were named, for processes that are begun anew."""
    return [*_modules]


def split_names(text: str) -> list[str]:
    """Split a list at its commas.

    >>> split_names("sdoh, lsh")
    ['sdoh', 'lsh']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def split_numbers(option: str, text: str) -> list[int]:
    """Split a list of whole numbers at its commas.

    >>> split_numbers("--bits", "32,64")
    [32, 64]
    """
    numbers = split_names(text)
    if not numbers or not all(number.isdecimal() for number in numbers):
        raise InputError(f"{option} {text}: pass whole numbers with commas, such as 32,64.")
    return [int(number) for number in numbers]


def parse_changes(texts: Iterable[str] | None) -> dict[str, Any]:
    """Read parameters from NAME=VALUE; values are numbers, true, false, none, or else text.

    >>> parse_changes(["n_anchors=1000", "gradient=exact", "sigma=none"])
    {'n_anchors': 1000, 'gradient': 'exact', 'sigma': None}
    """
    changes = {}
    for text in texts or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not name or not equals or not value:
            raise InputError(f"--set {text}: pass NAME=VALUE, such as --set batch_size=100.")
        if name in ("n_bits", "random_state"):
            raise InputError(f"--set {text}: use --bits for n_bits and --seed for random_state.")
        changes[name] = _value(value)
    return changes


def _value(text: str) -> Any:
    if text in PYTHON_CONSTANTS:
        return PYTHON_CONSTANTS[text]
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
