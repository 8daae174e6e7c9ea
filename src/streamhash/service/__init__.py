"""A collection behind HTTP, for programs and for people; the client needs nothing but NumPy."""

from streamhash.service.client import Client

__all__ = ["Client"]
