"""A pack as a key of a cache."""

from dataclasses import dataclass

from muniment.pack.schema import Pack


@dataclass(frozen=True, eq=False)
class PackKey:
    """A pack by its identity: packs do not change, and hashing one would cost more than what is kept for it."""

    pack: Pack

    def __hash__(self) -> int:
        return id(self.pack)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackKey) and other.pack is self.pack
