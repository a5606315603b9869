"""The same verbs over HTTP: `Client` (blocking) and `AsyncClient`, against `muniment serve`."""

from muniment.client.generated import AsyncClient
from muniment.client.sync import Client

__all__ = ["AsyncClient", "Client"]
