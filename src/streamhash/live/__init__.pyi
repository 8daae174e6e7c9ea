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
    Added as Added,
    Addition as Addition,
    Collection as Collection,
    History as History,
    Item as Item,
    Judgement as Judgement,
    SearchResult as SearchResult,
    check_vectors as check_vectors,
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

__all__: list[str]
