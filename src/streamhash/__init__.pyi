"""The public names of ``streamhash``: what its ``__init__.py`` loads when they are first used."""

from .base import (
    NotStartedError as NotStartedError,
)
from .base import (
    OnlineHasher as OnlineHasher,
)
from .base import (
    load as load,
)
from .codes import (
    pack as pack,
)
from .codes import (
    unpack as unpack,
)
from .errors import (
    ConflictError as ConflictError,
)
from .errors import (
    FileError as FileError,
)
from .errors import (
    GoneError as GoneError,
)
from .errors import (
    InputError as InputError,
)
from .errors import (
    InUseError as InUseError,
)
from .errors import (
    MissingDataError as MissingDataError,
)
from .errors import (
    MissingPartError as MissingPartError,
)
from .errors import (
    NotFoundError as NotFoundError,
)
from .errors import (
    ReadOnlyError as ReadOnlyError,
)
from .errors import (
    ServiceError as ServiceError,
)
from .errors import (
    StreamhashError as StreamhashError,
)
from .errors import (
    UnreachableError as UnreachableError,
)
from .features import (
    AnchorMap as AnchorMap,
)
from .features import (
    CenterScale as CenterScale,
)
from .features import (
    StreamPipeline as StreamPipeline,
)
from .hashers import (
    BSODH as BSODH,
)
from .hashers import (
    FROSH as FROSH,
)
from .hashers import (
    HCOH as HCOH,
)
from .hashers import (
    HMOH as HMOH,
)
from .hashers import (
    ITQ as ITQ,
)
from .hashers import (
    LSH as LSH,
)
from .hashers import (
    OKH as OKH,
)
from .hashers import (
    OSH as OSH,
)
from .hashers import (
    PCAH as PCAH,
)
from .hashers import (
    SDOH as SDOH,
)
from .hashers import (
    AdaptHash as AdaptHash,
)
from .hashers import (
    MIHash as MIHash,
)
from .hashers import (
    SketchHash as SketchHash,
)
from .live import Collection as Collection
from .metrics import (
    Retrieval as Retrieval,
)
from .metrics import (
    area_under_curve as area_under_curve,
)
from .metrics import (
    evaluate as evaluate,
)
from .metrics import (
    mean_average_precision as mean_average_precision,
)
from .metrics import (
    precision_at_ranks as precision_at_ranks,
)
from .metrics import (
    precision_within_radius as precision_within_radius,
)
from .refresh import SnapshotHasher as SnapshotHasher
from .search import HammingIndex as HammingIndex
from .service import Client as Client
from .threads import (
    get_threads as get_threads,
)
from .threads import (
    set_threads as set_threads,
)

__version__: str
__all__: list[str]
