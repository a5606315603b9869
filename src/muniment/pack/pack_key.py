"""A pack as the key of a cache."""

from dataclasses import dataclass

from muniment.pack.schema import Pack


@dataclass(frozen=True, eq=False)
class PackKey:
    """Compares packs by identity: they do not change, and hashing one costs more than what is cached for it."""

    pack: Pack

    def __hash__(self) -> int:
        return id(self.pack)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackKey) and other.pack is self.pack
