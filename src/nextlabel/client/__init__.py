"""The service from a program: ``Client``, and ``AsyncClient`` for asyncio."""

from nextlabel.client.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
