"""Experiments: the papers' protocol, result rows, tables, figures and one page that shows them.

>>> from streamhash.lab import run_cell
>>> row = run_cell("lsh", "digits", n_bits=16, seed=0)
>>> row["queries"], row["database"], row["instances"]
(300, 1497, 1497)
"""

from streamhash.lab.experiment import Experiment, experiment_names, read_experiment
from streamhash.lab.plan import Plan, find_method, make_hasher, plan_cell
from streamhash.lab.report.contents import Contents, sort_rows
from streamhash.lab.report.markdown import comparison_markdown, report_markdown
from streamhash.lab.report.table import markdown_table, rich_table
from streamhash.lab.report.write import have_figures, write_contents, write_report
from streamhash.lab.rows import (
    ROWS_FILE,
    Row,
    append_row,
    latest,
    read_folder,
    read_rows,
    row_key,
    to_json,
)
from streamhash.lab.runner import run_cell, run_plan
from streamhash.lab.summary import summarise
from streamhash.lab.tuning import Search
from streamhash.lab.workers import run_plans

__all__ = [
    "ROWS_FILE",
    "Contents",
    "Experiment",
    "Plan",
    "Row",
    "Search",
    "append_row",
    "comparison_markdown",
    "experiment_names",
    "find_method",
    "have_figures",
    "latest",
    "make_hasher",
    "markdown_table",
    "plan_cell",
    "read_experiment",
    "read_folder",
    "read_rows",
    "report_markdown",
    "rich_table",
    "row_key",
    "run_cell",
    "run_plan",
    "run_plans",
    "sort_rows",
    "summarise",
    "to_json",
    "write_contents",
    "write_report",
]
