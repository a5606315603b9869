"""The fabric: the parts put together, behind the verbs of the specification."""

from muniment.fabric.core import AsyncFabric

__all__ = ["AsyncFabric"]
