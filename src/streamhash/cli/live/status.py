"""``streamhash live status``: how a collection does, on a page."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from streamhash.cli._options import Json
from streamhash.cli.live._options import Address

__all__ = ["run"]

BARS = "▁▂▃▄▅▆▇█"  # no item has the bit … all have it
ROW = 64  # bits in a line of the strip

Facts = dict[str, Any]
Lines = Iterator[tuple[str, str]]  # what, and its value


def run(collection: Address, as_json: Json = False) -> None:
    """Print how a collection does.

    Items, models, quality, whether a refresh is worth it, and the balance of the bits.
    """
    from rich.table import Table

    from streamhash.cli._console import print_json, results
    from streamhash.lab.rows import strict_json
    from streamhash.live import Collection

    with Collection.open(collection, read_only=True) as items:
        facts = items.status()
    if as_json:
        print_json(strict_json(facts))
        return
    page = Table.grid(padding=(0, 3))
    for heading, lines in (
        ("Items", _items(facts)),
        ("Models", _models(facts)),
        ("Quality", _quality(facts)),
        ("Refresh", _refresh(facts)),
        ("Codes", _codes(facts)),
    ):
        for i, (what, value) in enumerate(lines):
            page.add_row(f"[bold]{heading}[/]" if i == 0 else "", what, value)
        page.add_row()
    results().print(page, end="")


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
        yield "serving", "none yet: nothing can be searched before the first batch is learned"
    elif serving["learned"] is None:
        yield "serving", f"model {serving['model']}, the one the collection was made with"
    else:
        yield (
            "serving",
            f"model {serving['model']}, as learned from {serving['learned']:,} items, since "
            f"{_date(serving['since'])}; it makes all codes",
        )


def _quality(facts: Facts) -> Lines:
    quality = facts["quality"]
    if quality["precision"] is None:
        yield "precision", "not known yet: it is measured on labelled items as they come"
    else:
        yield (
            "precision",
            f"{quality['precision']:.2f} of the neighbours found for a new item had its label "
            f"({quality['answers']:,} asked so far, the last ones count most)",
        )
    last = quality["last_drift"]
    yield (
        "drift",
        "none found"
        if last is None
        else f"found {quality['drifts']} times, the last one {_date(last['time'])} after "
        f"{last['labelled']:,} labelled items",
    )


def _refresh(facts: Facts) -> Lines:
    refresh = facts["refresh"]
    yield "by itself", _policy(refresh["policy"])
    gain, seconds = refresh["gain"], refresh["cost_seconds"]
    cost = f"about {seconds:.1f} s to encode {refresh['cost_items']:,} items"
    if not facts["serving"]["model"]:
        yield "worth it now?", "no: nothing has been learned yet"
    elif refresh["interrupted"]:
        yield "worth it now?", "yes: one was interrupted; streamhash live refresh goes on with it"
    elif gain is None:
        yield "worth it now?", "not known: there is no sample of labelled items yet"
    elif gain == 0:
        yield "worth it now?", "no: nothing was learned since that would change a code"
    elif gain < 0:
        yield "worth it now?", f"no: the learner's codes are no better (gain {gain:+.3f} bits)"
    else:
        worth = refresh["worth"]
        verdict = "yes" if refresh["due"] else "not yet" if worth is not None else "perhaps"
        missed = "" if worth is None else f", {worth:.0%} of its price missed so far"
        yield "worth it now?", f"{verdict}: gain {gain:+.3f} bits a query{missed}; cost {cost}"
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
    ones = facts["codes"]["ones"]
    if ones is not None:
        yield "items with bit", "▁ none, ▄▅ half (the best), █ all"
        for start in range(0, len(ones), ROW):
            yield (
                f"  {start} to {min(start + ROW, len(ones)) - 1}",
                _strip(ones[start : start + ROW]),
            )
    flips = facts["codes"]["flips"]
    if flips is not None:
        yield "changed", f"{sum(flips) / len(flips):.1%} of all bits, at the last refresh"


def _strip(shares: list[float]) -> str:
    """Draw shares from 0 to 1 as little bars.

    >>> _strip([0, 0.5, 1])
    '▁▅█'
    """
    return "".join(BARS[min(int(share * (len(BARS) - 1) + 0.5), len(BARS) - 1)] for share in shares)


def _date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"
