"""``streamhash methods``: what there is to choose from."""

from streamhash.cli._options import Json

__all__ = ["run"]


def run(as_json: Json = False) -> None:
    """List the methods."""
    from rich import box
    from rich.table import Table

    from streamhash.cli._console import print_json, results
    from streamhash.hashers import METHODS

    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "class": method.__name__,
                    "reference": method.reference,
                    "year": method.year,
                    "needs_labels": method.needs_labels,
                    "multi_label": method.multi_label,
                    "published_for": list(method.settings),
                    "parameters": method().get_params(deep=False),
                }
                for name, method in METHODS.items()
            ]
        )
        return
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("method", "from", "learns from labels", "several labels", "published for"):
        table.add_column(heading)
    for name, method in METHODS.items():
        answers = (_yes(method.needs_labels), _yes(method.multi_label))
        table.add_row(name, method.reference, *answers, ", ".join(method.settings) or "–")
    results().print(table)


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"
