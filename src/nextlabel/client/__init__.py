"""The service from a program: ``Client``."""

from nextlabel.client.client import Client

__all__ = ["Client"]
