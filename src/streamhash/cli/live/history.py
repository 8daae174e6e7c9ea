"""``streamhash live history``: what has happened to a collection."""

from datetime import datetime

from streamhash.cli._options import Json
from streamhash.cli.live._options import Address

__all__ = ["run"]


def run(collection: Address, as_json: Json = False) -> None:
    """Print refreshes and alarms of drift.

    The oldest first; with --json also the curve of quality over time.
    """
    from rich import box
    from rich.table import Table

    from streamhash.cli._console import print_json, results
    from streamhash.lab.rows import strict_json
    from streamhash.live import Collection

    with Collection.open(collection, read_only=True) as items:
        happened = items.history()
    if as_json:
        print_json(strict_json(happened._asdict()))
        return
    events = [
        (
            event["time"],
            f"model {event['model']} serves",
            event["labelled"],
            "" if event["gain"] is None else f"{event['gain']:+.3f} bits",
            "" if event["flips"] is None else f"{event['flips']:.1%}",
            f"{event['seconds']:.2f} s",
        )
        for event in happened.refreshes
    ]
    events += [
        (event["time"], "drift found", event["labelled"], "", "", "") for event in happened.drifts
    ]
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("when", "what", "labelled items", "gain", "bits changed", "took"):
        table.add_column(heading, justify="left" if heading in ("when", "what") else "right")
    for when, what, labelled, *rest in sorted(events):
        date = datetime.fromtimestamp(when).astimezone()
        table.add_row(f"{date:%Y-%m-%d %H:%M:%S}", what, f"{labelled:,}", *rest)
    results().print(table)
