"""The public names of ``streamhash``: what its ``__init__.py`` loads when they are first used."""

from .base import (
    NotStartedError as NotStartedError,
    OnlineHasher as OnlineHasher,
    load as load,
)
from .codes import (
    pack as pack,
    unpack as unpack,
)
from .errors import (
    ConflictError as ConflictError,
    ExtremeRowsError as ExtremeRowsError,
    FileError as FileError,
    GoneError as GoneError,
    InputError as InputError,
    InUseError as InUseError,
    MissingDataError as MissingDataError,
    MissingPartError as MissingPartError,
    NotFoundError as NotFoundError,
    ReadOnlyError as ReadOnlyError,
    ServiceError as ServiceError,
    StreamhashError as StreamhashError,
    UnreachableError as UnreachableError,
)
from .extremes import OrdinaryRange as OrdinaryRange
from .features import (
    AnchorMap as AnchorMap,
    CenterScale as CenterScale,
    StreamPipeline as StreamPipeline,
)
from .hashers import (
    ATHOH as ATHOH,
    BSODH as BSODH,
    FOH as FOH,
    FROSH as FROSH,
    HCOH as HCOH,
    HMOH as HMOH,
    ITQ as ITQ,
    LEMON as LEMON,
    LSH as LSH,
    OHWEU as OHWEU,
    OKH as OKH,
    OSH as OSH,
    PCAH as PCAH,
    SDOH as SDOH,
    SDOHHC as SDOHHC,
    AdaptHash as AdaptHash,
    MIHash as MIHash,
    RidgeHash as RidgeHash,
    SketchHash as SketchHash,
)
from .live import Collection as Collection
from .memory import ClassMemory as ClassMemory
from .metrics import (
    Retrieval as Retrieval,
    area_under_curve as area_under_curve,
    evaluate as evaluate,
    mean_average_precision as mean_average_precision,
    precision_at_ranks as precision_at_ranks,
    precision_within_radius as precision_within_radius,
)
from .random_features import RandomFeatures as RandomFeatures
from .refresh import SnapshotHasher as SnapshotHasher
from .search import HammingIndex as HammingIndex
from .service import Client as Client
from .threads import (
    get_threads as get_threads,
    set_threads as set_threads,
)

__version__: str
__all__: list[str]
