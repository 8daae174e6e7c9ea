"""The public names of ``streamhash.lab``, loaded when they are first used."""

from .comparison import (
    Comparison as Comparison,
)
from .comparison import (
    compare as compare,
)
from .comparison import (
    reproduce as reproduce,
)
from .experiment import (
    Experiment as Experiment,
)
from .experiment import (
    experiment_names as experiment_names,
)
from .experiment import (
    read_experiment as read_experiment,
)
from .report.figures import have_figures as have_figures
from .report.tables import rich_table as rich_table
from .report.write import (
    Report as Report,
)
from .report.write import (
    comparison_markdown as comparison_markdown,
)
from .report.write import (
    markdown_table as markdown_table,
)
from .report.write import (
    write_report as write_report,
)
from .rows import (
    ROWS_FILE as ROWS_FILE,
)
from .rows import (
    Line as Line,
)
from .rows import (
    Row as Row,
)
from .rows import (
    append_row as append_row,
)
from .rows import (
    latest as latest,
)
from .rows import (
    read_folder as read_folder,
)
from .rows import (
    read_rows as read_rows,
)
from .rows import (
    row_key as row_key,
)
from .rows import (
    strict_json as strict_json,
)
from .rows import (
    summarise as summarise,
)
from .rows import (
    to_json as to_json,
)
from .run import (
    Plan as Plan,
)
from .run import (
    Progress as Progress,
)
from .run import (
    bench as bench,
)
from .run import (
    find_method as find_method,
)
from .run import (
    find_methods as find_methods,
)
from .run import (
    make_hasher as make_hasher,
)
from .run import (
    plan_cell as plan_cell,
)
from .run import (
    run_cell as run_cell,
)
from .run import (
    run_cells as run_cells,
)
from .run import (
    run_plan as run_plan,
)
from .tuning import (
    tune as tune,
)
from .tuning import (
    tuned_settings as tuned_settings,
)

__all__: list[str]
