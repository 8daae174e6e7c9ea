"""The public names of ``streamhash.lab.datasets``, loaded when they are first used."""

from .cards import (
    Card as Card,
    available as available,
    cache_folder as cache_folder,
    is_named as is_named,
)
from .sets import (
    DataSet as DataSet,
    Request as Request,
    Split as Split,
    centre_unit as centre_unit,
    fetch as fetch,
    load_data as load_data,
    mean_row as mean_row,
    pieces as pieces,
    queries_of_class as queries_of_class,
    split as split,
    split_by_time as split_by_time,
    split_unseen as split_unseen,
    unit_rows as unit_rows,
)
from .streams import (
    LongTailStream as LongTailStream,
    PlacesLikeStream as PlacesLikeStream,
    SyntheticStream as SyntheticStream,
)

__all__: list[str]
