"""The page that ``streamhash live status`` prints."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

BARS = "▁▂▃▄▅▆▇█"  # no item has the bit … all have it
BITS_A_LINE = 64
SHOWN_FIELDS = 20

Facts = dict[str, Any]


def status_lines(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """Put what ``Collection.status`` returns into words: heading, what, and its value.

    Only the first line of each part has a heading.
    """
    yield "Items", "stored", f"{facts['items']:,}"
    each = ", several an item" if facts["labels"] == "several" else ""
    yield "", "with a label", f"{facts['labelled']:,}, of {facts['classes']} classes{each}"
    if facts["features"] is not None:
        yield "", "vectors", f"{facts['features']:,} numbers each, as {facts['vectors']}"
    if facts["fields"]:
        named = [f"{name} ({kind})" for name, kind in [*facts["fields"].items()][:SHOWN_FIELDS]]
        more = len(facts["fields"]) - len(named)
        yield "", "fields", ", ".join(named) + (f" and {more} more" if more else "")
    if facts["disk_bytes"] is not None:
        yield "", "on disk", f"{facts['disk_bytes'] / 1e6:,.1f} MB"

    learner, refresh, codes = facts["learner"], facts["refresh"], facts["codes"]
    learned = f"{learner['method']}, has learned from {learner['learned']:,} items"
    waiting = f"; {learner['waiting']:,} wait for a full batch" if learner["waiting"] else ""
    leaving = f"; {learner['leaving']:,} are to be forgotten" if learner["leaving"] else ""
    yield "Models", "learner", learned + waiting + leaving
    judged = facts["feedback"]
    if judged["stored"]:
        waits = f"; {judged['waiting']:,} wait" if judged["waiting"] else ""
        kinds = f"{judged['stored']:,}, {judged['good']:,} of them good"
        yield "", "judged answers", f"{kinds}; {judged['learned']:,} learned{waits}"
    if learner["clipped"] or learner["left_out"]:
        left = f"; {learner['left_out']:,} items were not learned" if learner["left_out"] else ""
        yield "", "extreme", f"{learner['clipped']:,} values were replaced before learning{left}"
    yield "", "serving", _serving(facts["serving"])
    yield "Quality", "precision", _precision(facts["quality"])
    yield "", "probabilities", _probabilities(facts["quality"]["reliability"])
    yield "", "drift", _drift(facts["quality"])
    yield "Refresh", "by itself", _policy(refresh["policy"])
    yield "", "worth it now?", _verdict(refresh, serves=bool(facts["serving"]["model"]))
    if refresh["error"] is not None:
        yield "", "failed", refresh["error"]

    yield "Codes", "length", f"{facts['bits']} bits"
    if codes["ones"] is not None:
        yield "", "items with bit", "▁ none, ▄▅ half (the best), █ all"
        for start in range(0, len(codes["ones"]), BITS_A_LINE):
            line = codes["ones"][start : start + BITS_A_LINE]
            yield "", f"  {start} to {start + len(line) - 1}", _bars(line)
    if codes["flips"] is not None:
        share = sum(codes["flips"]) / len(codes["flips"])
        yield "", "changed", f"{share:.1%} of all bits, at the last refresh"


def _serving(serving: Facts) -> str:
    if not serving["model"]:
        return "none yet: nothing can be searched before the first batch is learned"
    if serving["learned"] is None:
        return f"model {serving['model']}, the one the collection was made with"
    older = serving["reverted_to"]
    again = "" if older is None else f", model {older} again"
    since = f"as learned from {serving['learned']:,} items, since {_date(serving['since'])}"
    return f"model {serving['model']}{again}, {since}; it makes all codes"


def _precision(quality: Facts) -> str:
    if quality["precision"] is None:
        return "not known yet: it is measured on labelled items as they come"
    share = f"{quality['precision']:.2f} of the neighbours found for a new item had its label"
    return f"{share} ({quality['answers']:,} asked so far, the last ones count most)"


def _probabilities(reliability: Facts) -> str:
    error = reliability["neighbours"]["error"]
    if error is None:
        return "not compared yet with what comes true"
    return f"{error:.3f} from what came true, on average over the neighbours found for new items"


def _drift(quality: Facts) -> str:
    last = quality["last_drift"]
    if last is None:
        return "none found"
    when = f"{_date(last['time'])} after {last['labelled']:,} labelled items"
    return f"found {quality['drifts']} times, the last one {when}"


def _policy(policy: str) -> str:
    if policy == "manual":
        return "never: streamhash live refresh does it"
    if policy.startswith("auto="):
        share = float(policy.removeprefix("auto="))
        return f"when precision gains by it; at most {share:.0%} of the time"
    if policy.startswith("gain="):
        price = policy.removeprefix("gain=")
        return f"when queries have missed {price} bits for every item that it would encode"
    return f"after every {int(policy):,} learned items"


def _verdict(refresh: Facts, *, serves: bool) -> str:
    gain, worth = refresh["gain"], refresh["worth"]
    if not serves:
        return "no: nothing has been learned yet"
    if refresh["interrupted"]:
        return "yes: one was interrupted; streamhash live refresh goes on with it"
    if refresh["policy"].startswith("auto="):
        return _by_precision(refresh)
    if gain is None:
        return "not known: no labelled items have come since to measure it on"
    if gain == 0:
        return "no: nothing was learned since that would change a code"
    if gain < 0:
        return f"no: the learner's codes are no better (gain {gain:+.3f} bits)"
    verdict = "yes" if refresh["due"] else "not yet" if worth is not None else "perhaps"
    missed = "" if worth is None else f", {worth:.0%} of its price missed so far"
    cost = f"about {refresh['cost_seconds']:.1f} s to encode {refresh['cost_items']:,} items"
    return f"{verdict}: gain {gain:+.3f} bits a query{missed}; cost {cost}"


def _by_precision(refresh: Facts) -> str:
    gain = refresh["precision_gain"]
    cost = f"about {refresh['cost_seconds']:.1f} s to encode {refresh['cost_items']:,} items"
    gained = "" if gain is None else f"precision {gain:+.3f} ± {refresh['precision_error']:.3f}; "
    if refresh["due"]:
        return f"yes: {gained}cost {cost}"
    return f"not yet: {refresh['reason']}; {gained}cost {cost}"


def _bars(shares: list[float]) -> str:
    """Draw shares from 0 to 1 as little bars.

    >>> _bars([0, 0.5, 1])
    '▁▅█'
    """
    return "".join(BARS[int(share * (len(BARS) - 1) + 0.5)] for share in shares)


def _date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"
