"""The methods: one file each, named after the method."""

from streamhash.base import OnlineHasher
from streamhash.hashers.adapthash import AdaptHash
from streamhash.hashers.bsodh import BSODH
from streamhash.hashers.frosh import FROSH
from streamhash.hashers.hcoh import HCOH
from streamhash.hashers.hmoh import HMOH
from streamhash.hashers.itq import ITQ
from streamhash.hashers.lsh import LSH
from streamhash.hashers.mihash import MIHash
from streamhash.hashers.okh import OKH
from streamhash.hashers.osh import OSH
from streamhash.hashers.pcah import PCAH
from streamhash.hashers.sdoh import SDOH
from streamhash.hashers.sketchhash import SketchHash

__all__ = [
    "BSODH",
    "FROSH",
    "HCOH",
    "HMOH",
    "ITQ",
    "LSH",
    "METHODS",
    "OKH",
    "OSH",
    "PCAH",
    "SDOH",
    "AdaptHash",
    "MIHash",
    "SketchHash",
]

# By the names that the command line uses, in the order of their listing: those that learn from
# labels, those that learn from features alone, and the floor.
METHODS: dict[str, type[OnlineHasher]] = {
    "sdoh": SDOH,
    "bsodh": BSODH,
    "hmoh": HMOH,
    "hcoh": HCOH,
    "mihash": MIHash,
    "osh": OSH,
    "adapthash": AdaptHash,
    "okh": OKH,
    "frosh": FROSH,
    "sketchhash": SketchHash,
    "itq": ITQ,
    "pcah": PCAH,
    "lsh": LSH,
}
