"""``streamhash live create``: an empty collection."""

from typing import Annotated

import typer

from streamhash.cli._options import Changes, Seed
from streamhash.cli.live._options import Address

__all__ = ["run"]


def run(
    collection: Address,
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="The method that learns.")
    ] = "sdoh",
    bits: Annotated[int, typer.Option("--bits", metavar="K", help="Length of the codes.")] = 64,
    seed: Seed = 0,
    changes: Changes = None,
    vectors: Annotated[
        str, typer.Option("--vectors", metavar="TYPE", help="float32, or float16: half the disk.")
    ] = "float32",
    refresh: Annotated[
        str,
        typer.Option(
            "--refresh",
            metavar="WHEN",
            help="When to refresh by itself: gain, gain=BITS, a number of items, or manual.",
        ),
    ] = "gain",
    reservoir_size: Annotated[
        int,
        typer.Option("--sample", metavar="N", help="Items on which the gain is measured."),
    ] = 1000,
    serving: Annotated[
        str | None,
        typer.Option(
            "--serving",
            metavar="ADDRESS",
            help="Where codes are searched, if not in memory: milvus://host:port/name.",
        ),
    ] = None,
) -> None:
    """Make an empty collection."""
    from streamhash.cli._values import parse_changes
    from streamhash.lab import make_hasher
    from streamhash.live import Collection

    hasher = make_hasher(method, bits, seed, changes=parse_changes(changes))
    Collection.create(
        collection,
        hasher,
        vectors=vectors,
        refresh=refresh,
        reservoir_size=reservoir_size,
        random_state=seed,
        serving=serving,
    ).close()
    typer.echo(
        f"{collection} is an empty collection: {type(hasher).__name__}, {hasher.n_bits} bits. "
        "Go on with streamhash live add."
    )
