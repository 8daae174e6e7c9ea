"""Run many cells in parallel with one progress bar that tells the time left."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack

from streamhash.cli._console import note, progress_bar
from streamhash.cluster import cluster_executor
from streamhash.errors import StreamhashError
from streamhash.lab import Plan, Row, row_key, run_plans
from streamhash.threads import get_threads

__all__ = ["describe", "run_cells"]


def run_cells(
    plans: Sequence[Plan],
    known: Iterable[Row] = (),
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    keep: Callable[[Row], None] | None = None,
    is_long: bool = False,
) -> list[Row]:
    """Return the row of each plan; those with a row in ``known`` are not run again.

    With a ``scheduler``, they run on the cluster of Dask at that address.

    ``keep`` is given each new row as soon as it is there. A cell that fails ends the run; a long
    run leaves it out with a note instead, and tells of each cell where no terminal shows a bar.
    Rows come back in the order of the plans.
    """
    there = {row_key(row): row for row in known}
    rows: list[Row | None] = [there.get(row_key(plan.identity())) for plan in plans]
    todo = [number for number, row in enumerate(rows) if row is None]
    left = _TimeLeft([plans[number] for number in todo], there.values(), jobs or get_threads())
    with ExitStack() as stack:
        progress = stack.enter_context(progress_bar())
        executor = None
        if scheduler is not None and todo:
            executor = stack.enter_context(cluster_executor(scheduler))
        task = progress.add_task("", total=len(todo))
        for place, result in run_plans([plans[number] for number in todo], jobs, executor):
            plan = plans[todo[place]]
            if isinstance(result, StreamhashError):
                if not is_long:
                    raise result
                note(f"{describe(plan)}: {result}")
            else:
                rows[todo[place]] = result
                if keep is not None:
                    keep(result)
            left.done(plan, result)
            progress.update(task, advance=1, description=f"{describe(plan)}; {left}")
            if progress.disable and is_long:
                note(f"{left.n_done}/{len(todo)} {describe(plan)}; {left}")
    return [row for row in rows if row is not None]


def describe(plan: Plan) -> str:
    """Name a cell in a few words."""
    words = [plan.method, *([plan.settings] if plan.settings != "default" else [])]
    words += [f"{name}={value}" for name, value in plan.changes.items()]
    if plan.split != "all":
        words.append(f"({plan.split})")
    return f"{' '.join(words)}, {plan.data.name}, {plan.n_bits} bits, seed {plan.seed}"


class _TimeLeft:
    """Guesses the time left from cells that are done: of the same kind, or of any."""

    def __init__(self, plans: Iterable[Plan], known: Iterable[Row], jobs: int) -> None:
        self._left = [_kind(plan) for plan in plans]
        self._jobs = max(1, min(jobs, len(self._left)))
        self._seconds: dict[tuple[object, ...], list[float]] = {}
        self._began, self.n_done = time.monotonic(), 0
        for row in known:
            self._learn(row)

    def _learn(self, row: Row) -> None:
        if "cell" in row["seconds"]:
            for kind in (_kind(row), ()):
                self._seconds.setdefault(kind, []).append(row["seconds"]["cell"]["wall"])

    def done(self, plan: Plan, result: Row | StreamhashError) -> None:
        """Take note of a cell that has come to its end."""
        self.n_done += 1
        self._left.remove(_kind(plan))
        if not isinstance(result, StreamhashError):
            self._learn(result)

    def __str__(self) -> str:
        if not self._left:
            return f"done in {_duration(time.monotonic() - self._began)}"
        usual = self._seconds.get((), [0.0])
        guesses = [self._seconds.get(kind, usual) for kind in self._left]
        seconds = sum(sum(guess) / len(guess) for guess in guesses) / self._jobs
        return f"about {_duration(seconds)} left"


def _kind(cell: Plan | Row) -> tuple[object, ...]:
    """Cells that take about the same time."""
    if isinstance(cell, Plan):
        return cell.data.name, cell.method, cell.settings, cell.n_bits, cell.split
    return tuple(cell[name] for name in ("data", "method", "settings", "n_bits", "split"))


def _duration(seconds: float) -> str:
    """Tell a duration in the unit that fits.

    >>> _duration(42.3), _duration(200), _duration(8000)
    ('42 s', '3 min', '2 h 13 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
