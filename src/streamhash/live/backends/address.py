"""The address of a home in Milvus, as people write it and collections keep it."""

import os
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from streamhash.errors import InputError

__all__ = ["MilvusAddress"]

FORM = "milvus://host:port/name?index=BIN_FLAT"
INDEXES = ("BIN_FLAT", "BIN_IVF_FLAT")
LEVELS = ("Strong", "Bounded", "Eventually")


@dataclass(frozen=True)
class MilvusAddress:
    """A server, the name of a collection there, and how it is to be searched.

    >>> address = MilvusAddress.parse("milvus://localhost:19530/photos?index=BIN_IVF_FLAT&nlist=256")
    >>> address.name, address.index, address.nlist, address.uri
    ('photos', 'BIN_IVF_FLAT', 256, 'http://localhost:19530')
    """

    host: str
    port: int
    name: str
    index: str = "BIN_FLAT"  # exact; BIN_IVF_FLAT looks into nprobe of nlist cells only
    nlist: int = 1024
    nprobe: int = 16
    consistency: str = "Strong"  # every search sees every change; the others are faster, and late
    timeout: float = 10.0  # seconds that a call may take
    tls: bool = False
    token_env: str | None = None  # the variable of the environment that holds the token
    database: str = ""

    @classmethod
    def parse(cls, text: str, *, place: str = "serving") -> "MilvusAddress":
        """Read an address."""
        try:
            parts = urlsplit(text)
            if parts.scheme != "milvus" or not parts.hostname:
                raise ValueError("it does not name a server")
            if "@" in parts.netloc:
                raise ValueError(
                    "it would keep a secret; name the variable that holds the token: "
                    "?token_env=MILVUS_TOKEN"
                )
            name = parts.path.strip("/")
            if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,200}", name):
                raise ValueError(f"the name {name!r} is not of letters, digits and underscores")
            chosen = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
            return cls(parts.hostname, parts.port or 19530, name, **_options(chosen))
        except ValueError as error:
            raise InputError(
                f"{place}: {text!r} is not an address of Milvus ({error}); write {FORM}."
            ) from error

    @property
    def uri(self) -> str:
        """The server, as pymilvus has it."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"milvus://{self.host}:{self.port}/{self.name}"

    @property
    def is_exact(self) -> bool:
        """Whether every code is looked at."""
        return self.index == "BIN_FLAT"

    def credentials(self) -> dict[str, Any]:
        """What the environment holds of secrets."""
        if self.token_env is None:
            return {}
        token = os.environ.get(self.token_env)
        if token is None:
            raise InputError(
                f"{self}: the environment has no variable {self.token_env}; set it to the token of "
                'Milvus, "user:password", or pass serving_options={"token": …}.'
            )
        return {"token": token}


def _options(chosen: dict[str, str]) -> dict[str, Any]:
    """Check and convert what stands after the question mark."""
    found: dict[str, Any] = {}
    for name, text in chosen.items():
        if name in ("nlist", "nprobe"):
            found[name] = int(text)
            if not 1 <= found[name] <= 65536:
                raise ValueError(f"{name}={text} is not from 1 to 65536")
        elif name == "timeout":
            found[name] = float(text)
            if not found[name] > 0:
                raise ValueError(f"timeout={text} is not above 0 seconds")
        elif name == "tls":
            if text not in ("0", "1"):
                raise ValueError(f"tls={text} is neither 0 nor 1")
            found[name] = text == "1"
        elif name in ("index", "consistency"):
            choices = INDEXES if name == "index" else LEVELS
            if text not in choices:
                raise ValueError(f"{name}={text} is none of {', '.join(choices)}")
            found[name] = text
        elif name in ("token_env", "database"):
            found[name] = text
        else:
            raise ValueError(f"there is no option {name}")
    return found
