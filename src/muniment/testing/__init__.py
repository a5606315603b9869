"""Helpers for tests of Muniment and of what is built on it: a temporary database, a clock to set, principals of every role."""

from muniment.testing.clock import FakeClock
from muniment.testing.database import TestServer
from muniment.testing.people import People

__all__ = ["FakeClock", "People", "TestServer"]
