"""Run several cells with one progress bar."""

from collections.abc import Iterable, Iterator, Sequence

from streamhash.bench import Plan, Row, row_key, run_plan
from streamhash.cli._console import progress_bar

__all__ = ["run_cells"]


def run_cells(plans: Sequence[Plan], known: Iterable[Row] = ()) -> Iterator[tuple[Row, bool]]:
    """Yield the row of each plan as soon as it is there, and whether it is new.

    Cells that have a row in ``known`` are not run again.
    """
    there = {row_key(row): row for row in known}
    rows = [there.get(row_key(plan.identity())) for plan in plans]
    todo = [plan.stream for plan, row in zip(plans, rows, strict=True) if row is None]
    with progress_bar() as progress:
        task = progress.add_task("", total=sum(todo))
        before = 0
        for plan, row in zip(plans, rows, strict=True):
            if row is not None:
                yield row, False
                continue
            progress.update(task, description=_describe(plan))

            def advance(done: int, before: int = before) -> None:
                progress.update(task, completed=before + done)

            yield run_plan(plan, advance), True
            before += plan.stream


def _describe(plan: Plan) -> str:
    settings = "" if plan.settings == "default" else f" {plan.settings}"
    return f"{plan.method}{settings}, {plan.data.name}, {plan.n_bits} bits, seed {plan.seed}"
