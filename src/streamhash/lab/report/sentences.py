"""What results say, in plain words: computed from the rows, so that it cannot disagree with them.

First whether what a paper says holds in the rows (:func:`verdicts`), then what figures and tables
show.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from streamhash.lab.comparison import (
    Comparison,
    Entry,
    brief,
    heading,
    own_method,
    papers_methods,
    signed,
)
from streamhash.lab.rows import Line, describe_items, method_name

NEAR, NOT_FAR = 0.02, 0.05  # differences from the paper that are counted
NEARLY_ALL = 0.9
NAMED_AT_ONCE = 3  # methods in a sentence
NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


@dataclass(frozen=True)
class Verdict:
    """Whether the paper's claim holds with some settings: in how many of the cases, and why."""

    settings: str
    agreed: int
    cases: int
    of_what: str
    sentences: tuple[str, ...]
    enough: float = 1.0  # share of the cases that makes the claim hold
    why_not: str = ""  # it is not judged at all

    @property
    def kind(self) -> str:
        """Return "yes", "part" or "no", or "open" if it is not judged."""
        if self.why_not:
            return "open"
        if self.agreed >= self.enough * self.cases:
            return "yes"
        return "part" if self.agreed else "no"

    @property
    def outcome(self) -> str:
        """Say it in a few words."""
        place = "at" if self.of_what == "looks" else "in"
        if self.why_not:
            return f"is not judged: {self.why_not}"
        if self.kind == "no":
            return f"does not hold {place} any of {self.cases} {self.of_what}"
        return f"holds {place} {self.agreed} of {self.cases} {self.of_what}"


def verdicts(comparison: Comparison) -> list[Verdict]:
    """Judge the claims for each kind of settings that has the paper's method and another."""
    judge = {"curve": _judge_curve, "ablation": _judge_ablation}
    kind = comparison.experiment.kind
    found = []
    for settings in comparison.settings:
        if why := comparison.why_unjudged(settings):
            found.append(Verdict(settings, 0, 0, "", (), why_not=why))
            continue
        verdict = judge.get(kind, _judge_table)(comparison, settings)
        found += [verdict] if verdict is not None and verdict.cases else []
    return found


def _rivals(comparison: Comparison, settings: str) -> tuple[Entry | None, list[Entry]]:
    """Return the paper's own method, and the other methods of the paper."""
    contenders = comparison.contenders(settings)
    own = own_method(comparison.experiment)
    mine = next((entry for entry in contenders if entry.run.method == own), None)
    return mine, [entry for entry in contenders if entry.run.method != own]


def _judge_table(comparison: Comparison, settings: str) -> Verdict | None:
    """Judge in which columns the paper's method is the first of the paper's methods."""
    mine, rivals = _rivals(comparison, settings)
    if mine is None or not rivals:
        return None
    agreed = cases = 0
    sentences, margins = [], []
    for metric in comparison.experiment.metrics:
        stands = _standings(comparison, mine, rivals, metric)
        expected = [bits for bits in stands if _first_in_paper(comparison, metric, bits)]
        cases += len(expected)
        agreed += sum(stands[bits].place == 1 for bits in expected)
        margins += [stand.ours / stand.rival for stand in stands.values() if stand.rival]
        if stands:
            places = join(_places(stands, comparison))
            sentences.append(f"{heading(metric)}: {method_name(mine.run.method)} is {places}.")
    if comparison.experiment.kind == "auc" and margins:
        percent = f"{100 * float(np.mean(margins)) - 100:+.1f}".replace("-", "−")
        sentences.append(f"On average it is {percent} % from the best of the others.")
    sentences += _field(comparison, settings, [mine, *rivals])
    sentences += _outsiders(comparison, settings, mine)
    return Verdict(settings, agreed, cases, "columns", tuple(sentences))


@dataclass(frozen=True)
class _Standing:
    """Where the paper's method stands in one column, and the best of its rivals there."""

    place: int
    ours: float
    rival: float
    leader: str


def _standings(
    comparison: Comparison, mine: Entry, rivals: Sequence[Entry], metric: str
) -> dict[int, _Standing]:
    found = {}
    for bits in comparison.experiment.bits:
        ours = mine.mean(metric, bits)
        means = [(entry.mean(metric, bits), entry.run.method) for entry in rivals]
        theirs = [(mean, method) for mean, method in means if mean is not None]
        if ours is not None and theirs:
            best, leader = max(theirs, key=lambda pair: pair[0])
            place = 1 + sum(mean > ours for mean, _ in theirs)
            found[bits] = _Standing(place, ours, best, method_name(leader))
    return found


def _places(stands: dict[int, _Standing], comparison: Comparison) -> list[str]:
    """Say at which lengths the method is first, second and so on, and behind whom by how much."""
    alike: dict[tuple[int, str], list[int]] = {}
    for bits, stand in stands.items():
        alike.setdefault((stand.place, stand.leader if stand.place > 1 else ""), []).append(bits)
    parts = []
    for (place, leader), lengths in sorted(alike.items()):
        text = f"{_ordinal(place)} {_lengths(lengths, comparison)}"
        if place > 1:
            gaps = [stands[bits].rival - stands[bits].ours for bits in lengths]
            ends = dict.fromkeys(brief(gap) for gap in (min(gaps), max(gaps)))
            text += f" ({leader} leads by {' to '.join(ends)})"
        parts.append(text)
    return parts


def _first_in_paper(comparison: Comparison, metric: str, bits: int) -> bool:
    """Whether the paper's own numbers have its method first; so it says where it prints none."""
    methods = papers_methods(comparison.experiment.paper)
    values = [comparison.experiment.published(method, metric, bits) for method in methods]
    own = values[-1]
    return own is None or own >= max(value for value in values if value is not None)


def _field(comparison: Comparison, settings: str, contenders: Sequence[Entry]) -> list[str]:
    """Say which of the paper's methods are not in the contest."""
    there = {entry.run.method for entry in contenders}
    methods = papers_methods(comparison.experiment.paper)
    absent = [method_name(method) for method in methods if method not in there]
    return [f"No rows with {settings} settings yet: {join(absent)}."] if absent else []


def _outsiders(comparison: Comparison, settings: str, mine: Entry) -> list[str]:
    """Name the methods and variants that are not the paper's and still ahead of its method."""
    contenders = comparison.contenders(settings)
    ahead = []
    for entry in comparison.entries(settings):
        if entry in contenders or entry.run.method == mine.run.method:
            continue
        both = _both(entry, mine, comparison.columns)
        wins = sum(theirs > ours for theirs, ours in both)
        changed = f" with {' '.join(entry.run.changed)}" if entry.run.changes else ""
        text = f"{method_name(entry.run.method)}{changed} in {wins} of {len(both)} columns"
        ahead += [(wins, text)] if wins else []
    parts = [text for _, text in sorted(ahead, key=lambda pair: -pair[0])]
    if len(parts) > NAMED_AT_ONCE:
        parts[NAMED_AT_ONCE:] = [f"{len(parts) - NAMED_AT_ONCE} more in fewer"]
    name = method_name(mine.run.method)
    return [f"Not a line of the paper, and ahead of {name}: {join(parts)}."] if parts else []


def _judge_curve(comparison: Comparison, settings: str) -> Verdict | None:
    """Judge at how many looks on the way the paper's method leads the paper's methods."""
    mine, rivals = _rivals(comparison, settings)
    if mine is None or not rivals:
        return None
    led = looks = 0
    early = ""
    for bits, line in mine.lines.items():
        x, ours = _curve(mine, bits)
        theirs = {
            entry.run.method: np.interp(x, *_curve(entry, bits))
            for entry in rivals
            if bits in entry.lines
        }
        if not theirs:
            continue
        best = np.max(list(theirs.values()), axis=0)
        led, looks = led + int((ours >= best).sum()), looks + len(x)
        if not early and len(x) > 1:
            second = max(theirs, key=lambda method: float(theirs[method][1]))
            early = (
                f"Early on, at {x[1]:,.0f} instances and {bits} bits, it has a "
                f"{heading(line.rows[0]['curve_metric'])} of {brief(ours[1])}, the best other "
                f"({method_name(second)}) {brief(theirs[second][1])}."
            )
    name = method_name(mine.run.method)
    leads = f"{name} leads the paper's methods at {led} of {looks} looks on the way."
    sentences = [leads, early, *_field(comparison, settings, [mine, *rivals])]
    return Verdict(settings, led, looks, "looks", tuple(filter(None, sentences)), NEARLY_ALL)


def _curve(entry: Entry, bits: int) -> tuple[np.ndarray, np.ndarray]:
    rows = entry.lines[bits].rows
    metric = rows[0]["curve_metric"]
    x = np.array([at["instances"] for at in rows[0]["curve"]], float)
    return x, np.mean([[at[metric] for at in row["curve"]] for row in rows], axis=0)


def _judge_ablation(comparison: Comparison, settings: str) -> Verdict | None:
    """Judge where a part taken out makes the method worse, by more than the seeds' deviation."""
    entries = sorted(comparison.entries(settings), key=lambda entry: len(entry.run.changes))
    whole, *parts = entries
    shared = whole.run.changed
    if not parts or not all(set(shared) < set(part.run.changed) for part in parts):
        return None
    losses = [  # clear ones: by more than the deviation
        ours - theirs > max(entry.lines[bits].std(metric) or 0.0 for entry in (part, whole))
        for metric, bits in comparison.columns
        for part in parts
        for theirs, ours in _both(part, whole, [(metric, bits)])
    ]
    sentences = []
    for metric in comparison.experiment.metrics:
        changes = []
        for part in parts:
            both = _both(part, whole, [(metric, bits) for bits in whole.lines])
            if both:
                change = float(np.mean([theirs - ours for theirs, ours in both]))
                taken = [each for each in part.run.changed if each not in shared]
                changes.append(f"{', '.join(taken)} {signed(change)}")
        if changes:
            sentences.append(f"{heading(metric)}, mean change over the lengths: {join(changes)}.")
    return Verdict(settings, sum(losses), len(losses), "comparisons", tuple(sentences))


def _both(a: Entry, b: Entry, columns: Iterable[tuple[str, int]]) -> list[tuple[float, float]]:
    """Return the means of two entries in the columns in which both were measured."""
    return [
        (one, other)
        for column in columns
        if (one := a.mean(*column)) is not None and (other := b.mean(*column)) is not None
    ]


def closeness(comparison: Comparison) -> list[str]:
    """Say how near the paper's numbers ours are, and where they are not; empty if none compare."""
    cells = [
        (difference, entry, metric, bits)
        for entry in comparison.entries()
        for metric, bits in comparison.columns
        if (difference := comparison.difference(entry, metric, bits)) is not None
    ]
    if not cells:
        return []
    sizes = np.abs([round(cell[0], 3) for cell in cells])  # as they are shown
    _, entry, metric, bits = cells[int(sizes.argmax())]
    ours, paper = entry.mean(metric, bits), comparison.paper(entry.run, metric, bits)
    return [
        f"{(sizes <= NEAR).sum()} of {len(cells)} cells are within {brief(NEAR)} of the paper's "
        f"and {(sizes <= NOT_FAR).sum()} within {brief(NOT_FAR)}; the median difference is "
        f"{brief(float(np.median(sizes)))}.",
        f"Farthest: {method_name(entry.run.method)}, {heading(metric)} at {bits} bits, "
        f"{brief(ours)} against the paper's {brief(paper)}.",
    ]


def lead_sentence(comparison: Comparison) -> str:
    """Tell in one sentence what was reproduced, and how close it is."""
    experiment = comparison.experiment
    metric, own = experiment.metrics[0], own_method(experiment)
    name = method_name(own)
    if not comparison.why_apart:
        for entry in comparison.entries():
            means = {bits: entry.mean(metric, bits) for bits in experiment.bits}
            both = [(means[k], comparison.paper(entry.run, metric, k)) for k in means]
            values = [pair for pair in both if None not in pair]
            if entry.run.method == own and values:
                ours, paper = np.mean(np.array(values, float), axis=0)
                return (
                    f"{comparison.data}: {name}'s mean {heading(metric)} over "
                    f"{_count(len(values))} lengths is {brief(ours)}, the paper's {brief(paper)}."
                )
    for verdict in verdicts(comparison):
        apart = comparison.why_apart.removeprefix(f"{comparison.data} ")
        apart = f" ({apart})" if apart else ""
        return (
            f"{comparison.data}{apart}: what the paper says of {name} {verdict.outcome} with "
            f"{verdict.settings} settings."
        )
    return ""


def protocol_sentence(comparison: Comparison, lines: Sequence[Line] = ()) -> str:
    """Say what was asked, searched and learned, and how often, in some lines or in all."""
    lines = lines or list(comparison.lines)
    row = lines[0].rows[0]
    counts = sorted({len(line.rows) for line in lines})
    seeds = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    parts = (
        f"{row['queries']:,} queries ({row['queries_per_class']} of each class), "
        f"{describe_items(line.rows[0] for line in lines)} searched, a stream of "
        f"{row['stream']:,} instances seen once, "
        f"{seeds} {'seed' if counts == [1] else 'seeds'}"
    )
    if row["split"] == "unseen":
        parts += "; a quarter of the classes is never learned, and only these are asked for"
    return f"On {comparison.data}: {parts}."


def missing_sentence(comparison: Comparison) -> str:
    """Name the runs of the experiment that have no rows; empty if all have."""
    parts = []
    for settings in dict.fromkeys(run.settings for run in comparison.missing):
        labels = [run.label for run in comparison.missing if run.settings == settings]
        if settings not in comparison.settings:
            parts.append(f"all with {settings} settings")
        else:
            parts.append(f"{'; '.join(labels)} with {settings} settings")
    return f"No rows yet: {', and '.join(parts)}." if parts else ""


def _lengths(bits: Sequence[int], comparison: Comparison) -> str:
    if len(bits) == len(comparison.experiment.bits) > 1:
        return f"at all {_count(len(bits))} lengths"
    return f"at {join([str(b) for b in bits])} bits"


def _count(number: int) -> str:
    return NUMBERS[number] if number < len(NUMBERS) else str(number)


def _ordinal(place: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(place, f"{place}th")


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


def describe_curve(lines: Sequence[Line]) -> str:
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


def describe_precision(lines: Sequence[Line]) -> str:
    """Tell what the first results are worth: with each of a few methods, or best and least."""
    found = sorted(
        ((mean, line.label) for line in lines if (mean := line.mean("precision@100")) is not None),
        reverse=True,
    )
    if not found:
        return "How many of the first R results are similar to the query."
    named = found if len(found) <= 3 else [found[0], found[-1]]
    shares = join([f"{100 * mean:.0f} with {label}" for mean, label in named])
    return f"The first results: of 100 that are looked at, {shares} are similar to the query."


def describe_distances(lines: Sequence[Line]) -> str:
    """Tell how far learning, with the best method, moves similar and dissimilar pairs apart."""
    near, far = _mean_pair_distances(lines[0], "before")
    start = (
        f"Random projections leave similar pairs {near:.1f} and dissimilar pairs {far:.1f} bits "
        "apart on average (dashed)"
    )
    learned = [line for line in lines if line.method != "lsh"]
    if not learned:
        return f"{start}; the less the two overlap, the better the search."
    best = max(learned, key=lambda line: line.mean("map") or 0.0)
    near, far = _mean_pair_distances(best, "after")
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


def _mean_pair_distances(line: Line, when: str) -> tuple[float, float]:
    def mean(kind: str) -> float:
        counts = np.sum([row["distances"][when][kind] for row in line.rows], axis=0)
        return float(np.arange(len(counts)) @ counts / max(1, counts.sum()))

    return mean("similar"), mean("dissimilar")
