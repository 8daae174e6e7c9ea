"""Options that several verbs share: one name, one meaning, one help text."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

__all__ = [
    "BITS",
    "METHOD",
    "Bits",
    "Changes",
    "Jobs",
    "Json",
    "LabelColumn",
    "Labels",
    "Method",
    "Model",
    "Nearest",
    "Scheduler",
    "Seed",
]

METHOD, BITS = "sdoh", 32  # unless a verb is given others

Json = Annotated[bool, Option("--json", help="Print JSON and nothing else.")]
Model = Annotated[Path, Argument(metavar="MODEL", help="A model that fit has saved.")]
Method = Annotated[str, Option(metavar="NAME", help="The method that learns.")]
Bits = Annotated[int, Option(metavar="K", help="Length of the codes.")]
Seed = Annotated[int, Option(metavar="N", help="Seed of all that is random.")]
Jobs = Annotated[
    int | None,
    Option(metavar="N", min=1, help="Cells to run at once (default: one on each core)."),
]
Nearest = Annotated[
    int, Option("-k", "--nearest", metavar="K", min=1, help="Results for each query.")
]
Scheduler = Annotated[
    str | None,
    Option(
        metavar="ADDRESS",
        help="Work on the cluster of Dask whose scheduler is here: tcp://host:port.",
    ),
]
Changes = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a parameter of the method; may come several times.",
    ),
]
Labels = Annotated[
    Path | None, Option(metavar="FILE", help="The labels, if they are in a file of their own.")
]
LabelColumn = Annotated[
    str | None,
    Option(metavar="NAME", help="Column of the labels (default: label or y)."),
]
