"""Options that several verbs share: one name, one meaning, one help text."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Changes",
    "Jobs",
    "Json",
    "LabelColumn",
    "Labels",
    "Model",
    "Nearest",
    "Scheduler",
    "Seed",
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that fit has saved.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of all that is random.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", metavar="N", min=1, help="Cells to run at once (default: one on each core)."
    ),
]
Nearest = Annotated[
    int, typer.Option("-k", "--nearest", metavar="K", min=1, help="Results for each query.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Work on the cluster of Dask whose scheduler is here: tcp://host:port.",
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a parameter of the method; may come several times.",
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option(
        "--labels", metavar="FILE", help="The labels, if they are in a file of their own."
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label-column",
        metavar="NAME",
        help="Column that holds the labels (default: one called label or y).",
    ),
]
