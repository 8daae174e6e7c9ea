"""``streamhash methods``: what there is to choose from."""

from typing import TYPE_CHECKING

from streamhash.cli._options import Json

if TYPE_CHECKING:
    from streamhash.base import OnlineHasher

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
                    "page": _page(name),
                    "parameters": method().get_params(deep=False),
                }
                for name, method in METHODS.items()
            ]
        )
        return
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("method", "paper", "year", "labels", "page"):
        table.add_column(heading, no_wrap=True)
    for name, method in METHODS.items():
        paper = method.reference.removesuffix(f" {method.year}")
        table.add_row(name, paper, str(method.year), _labels(method), _page(name))
    results().print(table)


def _labels(method: "type[OnlineHasher]") -> str:
    if not method.needs_labels:
        return "none"
    return "one or several" if method.multi_label else "one"


def _page(name: str) -> str:
    return f"docs/methods/{name}.md"
