"""The fixtures of the tests of items."""

from tests.items.stores import personal, plain

__all__ = ["personal", "plain"]
