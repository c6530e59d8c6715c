"""The service from a program: ``Client``, and ``AsyncClient`` for asyncio."""

from nextlabel.client.async_client import AsyncClient
from nextlabel.client.client import Client

__all__ = ["AsyncClient", "Client"]
