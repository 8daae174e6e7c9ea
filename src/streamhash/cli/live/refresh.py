"""``streamhash live refresh``: encode all items with what has been learned."""

from typing import Annotated

import typer

from streamhash.cli._options import Scheduler
from streamhash.cli.live._options import Address

__all__ = ["run"]


def run(
    collection: Address,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=1, help="Processes that encode.")
    ] = 1,
    scheduler: Scheduler = None,
) -> None:
    """Encode all items with what has been learned, and serve that.

    Searches go on with the old model until the new one takes over, at once. A refresh that was
    interrupted goes on where it was.
    """
    from concurrent.futures import Executor, ProcessPoolExecutor
    from contextlib import ExitStack
    from multiprocessing import get_context

    from streamhash.cli._console import progress_bar
    from streamhash.cluster import cluster_executor
    from streamhash.live import Collection

    with ExitStack() as stack:
        items = stack.enter_context(Collection.open(collection))
        bar = stack.enter_context(progress_bar())
        task = bar.add_task("encoding", total=len(items))
        executor: Executor | None = None
        if scheduler is not None:
            executor = stack.enter_context(cluster_executor(scheduler))
        elif jobs > 1:  # processes that are begun anew, as threads may run in this one
            pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
            executor = stack.enter_context(pool)
        changed = items.refresh(
            executor=executor,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
        if not changed:
            typer.echo(
                f"Model {items.model_number} serves all that has been learned: nothing to do."
            )
            return
        event = items.history().refreshes[-1]
    flips = event["flips"]
    changes = "" if flips is None else f"; {flips:.1%} of all bits changed"
    typer.echo(
        f"Model {event['model']} serves {event['items']:,} items, of {event['learned']:,} learned "
        f"ones, after {event['seconds']:.1f} s{changes}."
    )
