"""Redaction: what is masked before a candidate is stored (RED-1 to RED-4)."""

import re
from collections.abc import Iterable
from functools import lru_cache

from muniment.language.redaction.attributes import Attributes
from muniment.language.redaction.redactor import Finding, Redacted, Redactor
from muniment.language.redaction.rules import rules_of
from muniment.pack import Pack
from muniment.pack.pack_key import PackKey

__all__ = ["Finding", "Redacted", "Redactor", "holds_personal_data", "redactor_of"]

# Without one of these nothing is looked for: the sign of an address, however it is written, or as many digits as the
# shortest number has.
_MAY_HOLD = re.compile(r"@|%40|&#|&commat|\\[ux]|[\[({] ?at|\d(?:\D{0,3}\d){6}|[A-Za-z]{2}\d{2}", re.IGNORECASE)


def redactor_of(pack: Pack) -> Redactor:
    """What redacts under this pack, made once; raises `PackInvalid` where a rule needs what is not installed."""
    return _made(PackKey(pack))


def holds_personal_data(pack: Pack, texts: Iterable[str]) -> bool:
    """Whether a rule finds something sensitive in one of them: for what stands in the open and cannot be masked."""
    for text in texts:
        if _MAY_HOLD.search(text):
            label = redactor_of(pack).text(text).label
            if label is not None and pack.is_sensitive(label):
                return True
    return False


@lru_cache(maxsize=128)
def _made(held: PackKey) -> Redactor:
    pack = held.pack
    return Redactor(rules_of(pack), Attributes(pack.identity.classified_attributes), pack.rank)
