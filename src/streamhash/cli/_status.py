"""The page that ``streamhash live status`` prints."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

__all__ = ["status_lines"]

BARS = "▁▂▃▄▅▆▇█"  # no item has the bit … all have it
BITS_A_LINE = 64

Facts = dict[str, Any]
Lines = Iterator[tuple[str, str]]  # what, and its value


def status_lines(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """Put what ``Collection.status`` returns into words: heading, what, and its value."""
    for heading, part in (
        ("Items", _items),
        ("Models", _models),
        ("Quality", _quality),
        ("Refresh", _refresh),
        ("Codes", _codes),
    ):
        for what, value in part(facts):
            yield heading, what, value
            heading = ""
        yield "", "", ""


def _items(facts: Facts) -> Lines:
    yield "stored", f"{facts['items']:,}"
    yield "with a label", f"{facts['labelled']:,}, of {facts['classes']} classes"
    if facts["features"] is not None:
        yield "vectors", f"{facts['features']:,} numbers each, as {facts['vectors']}"
    if facts["disk_bytes"] is not None:
        yield "on disk", f"{facts['disk_bytes'] / 1e6:,.1f} MB"


def _models(facts: Facts) -> Lines:
    learner, serving = facts["learner"], facts["serving"]
    waiting = f"; {learner['waiting']:,} wait for a full batch" if learner["waiting"] else ""
    yield "learner", f"{learner['method']}, has learned from {learner['learned']:,} items{waiting}"
    if not serving["model"]:
        says = "none yet: nothing can be searched before the first batch is learned"
    elif serving["learned"] is None:
        says = f"model {serving['model']}, the one the collection was made with"
    else:
        says = (
            f"model {serving['model']}, as learned from {serving['learned']:,} items, since "
            f"{_date(serving['since'])}; it makes all codes"
        )
    yield "serving", says


def _quality(facts: Facts) -> Lines:
    quality = facts["quality"]
    says = "not known yet: it is measured on labelled items as they come"
    if quality["precision"] is not None:
        says = (
            f"{quality['precision']:.2f} of the neighbours found for a new item had its label "
            f"({quality['answers']:,} asked so far, the last ones count most)"
        )
    yield "precision", says
    last, says = quality["last_drift"], "none found"
    if last is not None:
        says = (
            f"found {quality['drifts']} times, the last one {_date(last['time'])} after "
            f"{last['labelled']:,} labelled items"
        )
    yield "drift", says


def _refresh(facts: Facts) -> Lines:
    refresh = facts["refresh"]
    yield "by itself", _policy(refresh["policy"])
    gain, worth = refresh["gain"], refresh["worth"]
    if not facts["serving"]["model"]:
        says = "no: nothing has been learned yet"
    elif refresh["interrupted"]:
        says = "yes: one was interrupted; streamhash live refresh goes on with it"
    elif gain is None:
        says = "not known: there is no sample of labelled items yet"
    elif gain == 0:
        says = "no: nothing was learned since that would change a code"
    elif gain < 0:
        says = f"no: the learner's codes are no better (gain {gain:+.3f} bits)"
    else:
        verdict = "yes" if refresh["due"] else "not yet" if worth is not None else "perhaps"
        missed = "" if worth is None else f", {worth:.0%} of its price missed so far"
        says = (
            f"{verdict}: gain {gain:+.3f} bits a query{missed}; cost about "
            f"{refresh['cost_seconds']:.1f} s to encode {refresh['cost_items']:,} items"
        )
    yield "worth it now?", says
    if refresh["error"] is not None:
        yield "failed", refresh["error"]


def _policy(policy: str) -> str:
    if policy == "manual":
        return "never: streamhash live refresh does it"
    if policy.startswith("gain="):
        price = policy.removeprefix("gain=")
        return f"when queries have missed {price} bits for every item that it would encode"
    return f"after every {int(policy):,} learned items"


def _codes(facts: Facts) -> Lines:
    yield "length", f"{facts['bits']} bits"
    ones, flips = facts["codes"]["ones"], facts["codes"]["flips"]
    if ones is not None:
        yield "items with bit", "▁ none, ▄▅ half (the best), █ all"
        for start in range(0, len(ones), BITS_A_LINE):
            line = ones[start : start + BITS_A_LINE]
            yield f"  {start} to {start + len(line) - 1}", _strip(line)
    if flips is not None:
        yield "changed", f"{sum(flips) / len(flips):.1%} of all bits, at the last refresh"


def _strip(shares: list[float]) -> str:
    """Draw shares from 0 to 1 as little bars.

    >>> _strip([0, 0.5, 1])
    '▁▅█'
    """
    return "".join(BARS[int(share * (len(BARS) - 1) + 0.5)] for share in shares)


def _date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"
