"""The public names of ``streamhash.lab``, loaded when they are first used."""

from .comparison import (
    Comparison as Comparison,
    compare as compare,
    reproduce as reproduce,
)
from .experiment import (
    Experiment as Experiment,
    experiment_names as experiment_names,
    read_experiment as read_experiment,
)
from .leaderboard import (
    Leaderboard as Leaderboard,
    Ranking as Ranking,
    add_method as add_method,
    read_leaderboard as read_leaderboard,
)
from .orders import ORDERS as ORDERS
from .report.figures import have_figures as have_figures
from .report.leaderboard import write_leaderboard as write_leaderboard
from .report.tables import rich_table as rich_table
from .report.write import (
    Report as Report,
    comparison_markdown as comparison_markdown,
    markdown_table as markdown_table,
    write_report as write_report,
)
from .rows import (
    ROWS_FILE as ROWS_FILE,
    Line as Line,
    Row as Row,
    append_row as append_row,
    latest as latest,
    read_folder as read_folder,
    read_rows as read_rows,
    row_key as row_key,
    strict_json as strict_json,
    summarise as summarise,
    to_json as to_json,
)
from .run import (
    Plan as Plan,
    Progress as Progress,
    bench as bench,
    find_method as find_method,
    find_methods as find_methods,
    make_hasher as make_hasher,
    plan_cell as plan_cell,
    run_cell as run_cell,
    run_cells as run_cells,
    run_plan as run_plan,
)
from .runbooks import (
    Judge as Judge,
    Runbook as Runbook,
    Searched as Searched,
    Step as Step,
    Task as Task,
    file_task as file_task,
    make_runbook as make_runbook,
    make_task as make_task,
    read_runbook as read_runbook,
    run_runbook as run_runbook,
    summarise_run as summarise_run,
)
from .tuning import (
    file_settings as file_settings,
    is_tuned as is_tuned,
    read_settings as read_settings,
    tune as tune,
    tuned_settings as tuned_settings,
)

__all__: list[str]
