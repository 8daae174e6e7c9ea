"""The public names of ``streamhash.live``, loaded when they are first used."""

from .arrow import (
    Batch as Batch,
)
from .backup import (
    Backup as Backup,
    backup as backup,
    backups as backups,
    restore as restore,
)
from .collection import (
    Collection as Collection,
    History as History,
    Item as Item,
    Judgement as Judgement,
    SearchResult as SearchResult,
)
from .load import (
    Loaded as Loaded,
    add_from as add_from,
    feedback_from as feedback_from,
    label_from as label_from,
    metadata_from as metadata_from,
)
from .search import SearchOptions as SearchOptions
from .verify import (
    Damage as Damage,
    Verified as Verified,
    verify as verify,
)
from .view import (
    Answer as Answer,
    Listing as Listing,
)
from .writes import (
    Addition as Addition,
    Deletion as Deletion,
    Description as Description,
    Labelling as Labelling,
    Update as Update,
    Write as Write,
    Written as Written,
)

__all__: list[str]
