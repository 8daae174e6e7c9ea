"""``streamhash fit``: learn a model from a file, or go on learning."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamhash.cli._options import Changes, LabelColumn, Labels
from streamhash.errors import InputError

if TYPE_CHECKING:
    from streamhash.base import OnlineHasher

__all__ = ["run"]

METHOD, BITS = "sdoh", 64
PIECE = 2000  # about so many rows between two steps of the progress bar


def run(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Features with labels: .npy .npz .parquet .csv.")
    ],
    model: Annotated[Path, typer.Option("--model", metavar="FILE", help="The model to save.")],
    method: Annotated[
        str | None, typer.Option("--method", metavar="NAME", help=f"Method (default: {METHOD}).")
    ] = None,
    bits: Annotated[
        int | None, typer.Option("--bits", metavar="K", help=f"Code length (default: {BITS}).")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Seed of the start (default: 0).")
    ] = None,
    changes: Changes = None,
    labels: Labels = None,
    label_column: LabelColumn = None,
    go_on: Annotated[
        bool, typer.Option("--continue", help="Load the model, and go on learning with it.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a model that is there already.")
    ] = False,
) -> None:
    """Learn a model from the rows of a file.

    The file is the stream, read in its order: shuffle rows that are sorted by class first.
    """
    if model.exists() and not go_on and not overwrite:
        raise InputError(
            f"fit: {model} is there already; pass --continue to go on learning with it, or "
            "--overwrite to replace it."
        )
    if go_on and (method or bits or changes or seed is not None):
        raise InputError(
            "fit: --continue takes method, bits, seed and parameters from the model; leave out "
            "--method, --bits, --seed and --set."
        )
    from streamhash.cli._console import progress_bar
    from streamhash.cli._inputs import read_input
    from streamhash.pipeline import load

    hasher = load(model) if go_on else _new(method, bits, seed, changes)
    X, y = read_input(file, labels, label_column)
    if y is None and hasher.needs_labels:
        raise InputError(
            f"fit: {file} has no labels, and {type(hasher).__name__} learns from them; pass "
            "--labels FILE or --label-column NAME."
        )
    # Whole stages in every piece: a shorter piece would be a stage of its own.
    size = hasher.batch_size * max(1, PIECE // hasher.batch_size)
    with progress_bar() as progress:
        task = progress.add_task("learning", total=len(X))
        for start in range(0, len(X), size):
            piece = slice(start, start + size)
            hasher.partial_fit(X[piece], None if y is None else y[piece])
            progress.update(task, completed=min(start + size, len(X)))
    hasher.save(model)
    typer.echo(
        f"{type(hasher).__name__} with {hasher.n_bits} bits has learned from "
        f"{hasher.n_samples_seen_:,} rows; saved in {model}."
    )


def _new(
    method: str | None, bits: int | None, seed: int | None, changes: Sequence[str] | None
) -> "OnlineHasher":
    from streamhash.cli._values import parse_changes
    from streamhash.lab import make_hasher

    n_bits = BITS if bits is None else bits
    return make_hasher(method or METHOD, n_bits, seed or 0, changes=parse_changes(changes))
