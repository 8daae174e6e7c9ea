"""What type checkers and editors see of ``streamhash``; a test holds it to ``__init__.py``."""

from streamhash.base import NotStartedError as NotStartedError
from streamhash.base import OnlineHasher as OnlineHasher
from streamhash.base import load as load
from streamhash.codes import pack as pack
from streamhash.codes import unpack as unpack
from streamhash.errors import ConflictError as ConflictError
from streamhash.errors import FileError as FileError
from streamhash.errors import GoneError as GoneError
from streamhash.errors import InputError as InputError
from streamhash.errors import InUseError as InUseError
from streamhash.errors import MissingDataError as MissingDataError
from streamhash.errors import MissingPartError as MissingPartError
from streamhash.errors import NotFoundError as NotFoundError
from streamhash.errors import ReadOnlyError as ReadOnlyError
from streamhash.errors import ServiceError as ServiceError
from streamhash.errors import StreamhashError as StreamhashError
from streamhash.errors import UnreachableError as UnreachableError
from streamhash.features import AnchorMap as AnchorMap
from streamhash.features import CenterScale as CenterScale
from streamhash.features import StreamPipeline as StreamPipeline
from streamhash.hashers import BSODH as BSODH
from streamhash.hashers import FROSH as FROSH
from streamhash.hashers import HCOH as HCOH
from streamhash.hashers import HMOH as HMOH
from streamhash.hashers import ITQ as ITQ
from streamhash.hashers import LSH as LSH
from streamhash.hashers import OKH as OKH
from streamhash.hashers import OSH as OSH
from streamhash.hashers import PCAH as PCAH
from streamhash.hashers import SDOH as SDOH
from streamhash.hashers import AdaptHash as AdaptHash
from streamhash.hashers import MIHash as MIHash
from streamhash.hashers import SketchHash as SketchHash
from streamhash.live import Collection as Collection
from streamhash.metrics import Retrieval as Retrieval
from streamhash.metrics import area_under_curve as area_under_curve
from streamhash.metrics import evaluate as evaluate
from streamhash.metrics import mean_average_precision as mean_average_precision
from streamhash.metrics import precision_at_ranks as precision_at_ranks
from streamhash.metrics import precision_within_radius as precision_within_radius
from streamhash.refresh import SnapshotHasher as SnapshotHasher
from streamhash.search import HammingIndex as HammingIndex
from streamhash.service import Client as Client
from streamhash.threads import get_threads as get_threads
from streamhash.threads import set_threads as set_threads

__version__: str
__all__: list[str]
