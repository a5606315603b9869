"""Helpers for tests of Muniment and of programs that use it: a temporary database, a clock to set, principals."""

from muniment.testing.clock import FakeClock
from muniment.testing.database import TestServer
from muniment.testing.people import People

__all__ = ["FakeClock", "People", "TestServer"]
