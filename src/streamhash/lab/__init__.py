"""Experiments: the papers' protocol, result rows, tables, figures and one page that shows them.

What the command line does, these do: :func:`bench`, :func:`reproduce`, :func:`tune` and
:func:`write_report`. Names are loaded when they are first used.

>>> from streamhash.lab import bench
>>> (row,) = bench("lsh", "digits", n_bits=16)
>>> row["queries"], row["database"], row["instances"]
(300, 1497, 1497)
"""

import importlib
from typing import Any

# Where each public name lives; a test holds ``__init__.pyi`` to it.
_PUBLIC = {
    "comparison": ("Comparison", "compare", "reproduce"),
    "experiment": ("Experiment", "experiment_names", "read_experiment"),
    "report.figures": ("have_figures",),
    "report.tables": ("rich_table",),
    "report.write": ("Report", "comparison_markdown", "markdown_table", "write_report"),
    "rows": ("ROWS_FILE", "Line", "Row", "append_row", "latest", "read_folder", "read_rows"),
    "run": ("Plan", "Progress", "bench", "plan_cell", "run_cell", "run_cells"),
    "tuning": ("tune", "tuned_settings"),
}
_MODULE_OF = {
    **{name: module for module, names in _PUBLIC.items() for name in names},
    **dict.fromkeys(("row_key", "strict_json", "summarise", "to_json"), "rows"),
    **dict.fromkeys(("find_method", "find_methods", "make_hasher", "run_plan"), "run"),
}

__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'streamhash.lab' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"streamhash.lab.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
