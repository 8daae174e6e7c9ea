"""``streamhash encode``: features into packed codes."""

from pathlib import Path
from typing import Annotated

import typer

from streamhash.cli._options import LabelColumn, Model
from streamhash.errors import InputError

__all__ = ["run"]


def run(
    model: Model,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Features: .npy .npz .parquet .csv.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Where to save the codes, a .npy file.")
    ],
    label_column: LabelColumn = None,
) -> None:
    """Turn the rows of a file into codes, 8 bits a byte."""
    if out.suffix != ".npy":
        raise InputError(f"encode: --out {out}: codes are saved as .npy; name it so.")
    import os
    import tempfile

    import numpy as np

    from streamhash.cli._console import progress_bar
    from streamhash.cli._inputs import encode_pieces, read_input
    from streamhash.pipeline import load

    hasher = load(model)
    X, _ = read_input(file, label_column=label_column)
    pieces = []
    with progress_bar() as progress:
        task = progress.add_task("encoding", total=len(X))
        for codes in encode_pieces(hasher, X):
            pieces.append(codes)
            progress.advance(task, len(codes))
    codes = np.concatenate(pieces)
    # Written beside its place and renamed: a reader never sees half a file.
    with tempfile.NamedTemporaryFile(dir=out.parent, suffix=".npy", delete=False) as temporary:
        np.save(temporary, codes)
    os.replace(temporary.name, out)  # noqa: PTH105
    typer.echo(f"{len(codes):,} codes of {hasher.n_bits} bits; saved in {out}.")
