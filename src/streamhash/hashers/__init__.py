"""The methods: one file each, named after the method; ``published.toml`` holds their settings."""

import tomllib
from importlib.resources import files
from typing import Any

from streamhash.base import OnlineHasher
from streamhash.hashers.adapthash import AdaptHash as AdaptHash
from streamhash.hashers.athoh import ATHOH as ATHOH
from streamhash.hashers.bsodh import BSODH as BSODH
from streamhash.hashers.foh import FOH as FOH
from streamhash.hashers.frosh import FROSH as FROSH
from streamhash.hashers.hcoh import HCOH as HCOH
from streamhash.hashers.hmoh import HMOH as HMOH
from streamhash.hashers.itq import ITQ as ITQ
from streamhash.hashers.lemon import LEMON as LEMON
from streamhash.hashers.lsh import LSH as LSH
from streamhash.hashers.mihash import MIHash as MIHash
from streamhash.hashers.ohweu import OHWEU as OHWEU
from streamhash.hashers.okh import OKH as OKH
from streamhash.hashers.osh import OSH as OSH
from streamhash.hashers.pcah import PCAH as PCAH
from streamhash.hashers.ridgehash import RidgeHash as RidgeHash
from streamhash.hashers.sdoh import SDOH as SDOH
from streamhash.hashers.sdohhc import SDOHHC as SDOHHC
from streamhash.hashers.sketchhash import SketchHash as SketchHash

# By the names that the command line uses, in the order of their listing: those that learn from
# labels, those that learn from features alone, and the floor.
LISTED = (
    SDOH,
    BSODH,
    HMOH,
    HCOH,
    MIHash,
    OSH,
    AdaptHash,
    OKH,
    SDOHHC,
    FOH,
    LEMON,
    ATHOH,
    OHWEU,
    RidgeHash,
    FROSH,
    SketchHash,
    ITQ,
    PCAH,
    LSH,
)
METHODS: dict[str, type[OnlineHasher]] = {method.__name__.lower(): method for method in LISTED}


def _published(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return settings by data set, from a table with shared values and one table a data set."""
    shared = {name: value for name, value in values.items() if not isinstance(value, dict)}
    return {
        data: {k: None if v == "none" else v for k, v in {**shared, **own}.items()}
        for data, own in values.items()
        if isinstance(own, dict)
    }


_SETTINGS = tomllib.loads(files(__name__).joinpath("published.toml").read_text(encoding="utf-8"))
for _name, _values in _SETTINGS.items():
    METHODS[_name].settings = _published(_values)
