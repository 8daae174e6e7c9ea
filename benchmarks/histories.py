"""Is a history of calls that overlap one that could have happened one after another?

A history is linearizable if every call can be given an instant between its beginning and its end,
so that each has the answer it would have had if all had been made one by one, at those instants
(Herlihy and Wing, 1990). Items do not depend on each other, so each has a history of its own.

It is checked as Lowe does (2017, "just-in-time linearization"): go through beginnings and ends in
the order of time, and keep every state that the item may be in, together with the calls under way
that have had their instant already. Where a call ends, it must have had it.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

State = Hashable
GONE = None  # the state of an item that is not there


class Step(NamedTuple):
    """A call, as far as it has to do with one item."""

    start: int  # nanoseconds, of one clock for all processes
    end: int
    about: object  # for people
    # From a state to the state after it; raises Impossible where the answer was not that of a call
    # made in this state.
    apply: Callable[[State], State]


class Impossible(Exception):  # noqa: N818  no error: what a call has answered cannot be
    """A call cannot have been made in this state."""


def violation(steps: Sequence[Step], first: State = GONE) -> str | None:
    """Return why a history cannot be put in an order, None if it can.

    >>> def write(value):
    ...     return lambda _: value
    >>> def read(value):
    ...     def apply(state):
    ...         if state != value:
    ...             raise Impossible
    ...         return state
    ...     return apply
    >>> early, late = Step(0, 10, "write 1", write(1)), Step(5, 15, "write 2", write(2))
    >>> violation([early, late, Step(20, 30, "read 1", read(1))])  # 2 may have come before 1
    >>> late = Step(11, 15, "write 2", write(2))
    >>> violation([early, late, Step(20, 30, "read 1", read(1))])
    'read 1 at 20 to 30: the item can only have been one of [2]'
    """
    begins = [(step.start, 0, number) for number, step in enumerate(steps)]
    ends = [(step.end, 1, number) for number, step in enumerate(steps)]
    under_way: set[int] = set()
    # Where two come at the same nanosecond, beginnings are first: the calls may have overlapped.
    possible: set[tuple[State, frozenset[int]]] = {(first, frozenset())}
    for _, is_end, number in sorted(begins + ends):
        if not is_end:
            under_way.add(number)
            continue
        after = {
            (state, done - {number}) for state, done in _until(number, possible, under_way, steps)
        }
        if not after:
            step, states = steps[number], sorted({str(state) for state, _ in possible})
            return (
                f"{str(step.about)[:200]} at {step.start} to {step.end}: the item can only have "
                f"been one of [{', '.join(states)}]"
            )
        possible = after
        under_way.remove(number)
    return None


def _until(
    number: int,
    possible: Iterable[tuple[State, frozenset[int]]],
    under_way: set[int],
    steps: Sequence[Step],
) -> set[tuple[State, frozenset[int]]]:
    """Let calls under way have their instants, in every order, until a certain one has had it."""
    found, seen, todo = set(), set(possible), list(possible)
    while todo:
        state, done = todo.pop()
        if number in done:
            found.add((state, done))
            continue
        for other in under_way - done:
            try:
                then = steps[other].apply(state), done | {other}
            except Impossible:
                continue
            if then not in seen:
                seen.add(then)
                todo.append(then)
    return found
