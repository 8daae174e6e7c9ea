"""A collection behind HTTP, for programs and for people; the client needs nothing but NumPy."""

import importlib
from typing import TYPE_CHECKING, Any

from streamhash.service.client import Client

if TYPE_CHECKING:
    from streamhash.service.app import create_app
    from streamhash.service.guard import Limits, Tokens
    from streamhash.service.server import serve

__all__ = ["Client", "Limits", "Tokens", "create_app", "serve"]

_MODULE_OF = {"Limits": "guard", "Tokens": "guard", "create_app": "app", "serve": "server"}


def __getattr__(name: str) -> Any:
    """Load what needs FastAPI and the rest when it is first used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from streamhash.optional import import_optional

    for package in ("fastapi", "prometheus_client", "uvicorn"):
        import_optional(package, extra="serve", place="the service")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
