"""Vectors in the form the database reads and sends them, so that neither side spells out numbers."""

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format


class HalfVector(bytes):
    """A `halfvec` as its bytes."""


class _AsItIs(Dumper):
    format = Format.BINARY
    # Not said: the database takes it for what stands there, a `halfvec`, whatever number that type has in it.
    oid = 0

    def dump(self, obj: HalfVector) -> bytes:
        return obj


psycopg.adapters.register_dumper(HalfVector, _AsItIs)
