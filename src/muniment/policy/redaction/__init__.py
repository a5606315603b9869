"""Redaction: what is masked before a candidate is stored (RED-1 to RED-4)."""

from dataclasses import dataclass
from functools import lru_cache

from muniment.pack import Pack
from muniment.policy.redaction.attributes import Attributes
from muniment.policy.redaction.redactor import Finding, Redacted, Redactor
from muniment.policy.redaction.rules import rules_of

__all__ = ["Finding", "Redacted", "Redactor", "redactor_of"]


@dataclass(frozen=True, eq=False)
class _Held:
    """A pack by its identity: packs do not change, and hashing one would cost more than redacting a text."""

    pack: Pack

    def __hash__(self) -> int:
        return id(self.pack)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.pack is self.pack


def redactor_of(pack: Pack) -> Redactor:
    """What redacts under this pack, made once; raises `PackInvalid` where a rule needs what is not installed."""
    return _made(_Held(pack))


@lru_cache(maxsize=128)
def _made(held: _Held) -> Redactor:
    pack = held.pack
    return Redactor(rules_of(pack), Attributes(pack.identity.classified_attributes), pack.rank)
