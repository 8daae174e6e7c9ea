"""What a result says, in plain words: computed from the rows, so that it cannot disagree."""

from collections.abc import Sequence

import numpy as np

from streamhash.lab.summary import Line

__all__ = ["curve_words", "distance_words", "headline", "join", "precision_words"]


def headline(lines: Sequence[Line]) -> str:
    """Tell the result of one group: the best method against the floor."""
    ranked = sorted(lines, key=lambda line: line.mean("map") or 0.0, reverse=True)
    best, row = ranked[0], ranked[0].rows[0]
    start = (
        f"After one pass over {row['instances']:,} instances of {row['data']}, the "
        f"{row['n_bits']}-bit codes of {best.label} reach a mean average precision of "
        f"{best.mean('map'):.3f}"
    )
    floor = next((line for line in ranked if line.method == "lsh"), None)
    if floor is not None and floor is not best:
        return f"{start}; random codes of the same length (LSH) reach {floor.mean('map'):.3f}."
    if len(ranked) > 1:
        return f"{start}, ahead of {ranked[1].label} with {ranked[1].mean('map'):.3f}."
    return f"{start}."


def curve_words(lines: Sequence[Line]) -> str:
    """Tell how soon the best method is good."""
    best = max(lines, key=lambda line: line.mean("map") or 0.0)
    curve, metric = best.rows[0]["curve"], best.rows[0]["curve_metric"]
    goal = 0.95 * curve[-1][metric]
    soon = next(at for at in curve if at[metric] >= goal)
    return (
        f"Quality while the stream goes by: {best.label} starts at {curve[0][metric]:.3f} after "
        f"{curve[0]['instances']:,} instances and has 95 % of its final value at "
        f"{soon['instances']:,}."
    )


def precision_words(lines: Sequence[Line]) -> str:
    """Tell what the first results are worth: with each of a few methods, or best and least."""
    found = sorted(
        ((mean, line.label) for line in lines if (mean := line.mean("precision@100")) is not None),
        reverse=True,
    )
    if not found:
        return "How many of the first R results are similar to the query."
    told = found if len(found) <= 3 else [found[0], found[-1]]
    shares = join([f"{100 * mean:.0f} with {label}" for mean, label in told])
    return f"The first results: of 100 that are looked at, {shares} are similar to the query."


def distance_words(lines: Sequence[Line]) -> str:
    """Tell how far learning, with the best method, moves similar and dissimilar pairs apart."""
    near, far = _mean_distances(lines[0], "before")
    start = (
        f"Random projections leave similar pairs {near:.1f} and dissimilar pairs {far:.1f} bits "
        "apart on average (dashed)"
    )
    learned = [line for line in lines if line.method != "lsh"]
    if not learned:
        return f"{start}; the less the two overlap, the better the search."
    best = max(learned, key=lambda line: line.mean("map") or 0.0)
    near, far = _mean_distances(best, "after")
    return (
        f"{start}; after learning it is {near:.1f} and {far:.1f} with {best.label}. "
        "The less they overlap, the better the search."
    )


def join(texts: Sequence[str]) -> str:
    """List texts as a sentence does.

    >>> join(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _mean_distances(line: Line, when: str) -> tuple[float, float]:
    def mean(kind: str) -> float:
        counts = np.sum([row["distances"][when][kind] for row in line.rows], axis=0)
        return float(np.arange(len(counts)) @ counts / max(1, counts.sum()))

    return mean("similar"), mean("dissimilar")
