"""Masks personal data before anything is stored (RED-1 to RED-5).

`redactor_of(pack)` returns the `Redactor` of a pack. It takes a text, a JSON value or a candidate and returns it with
every finding masked. The kinds of personal data are in detectors/.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from muniment.language.redaction.attributes import Attributes
from muniment.language.redaction.exceptions import Exceptions
from muniment.language.redaction.redactor import Finding, Redacted, Redactor
from muniment.language.redaction.rules import rules_of
from muniment.pack import Pack
from muniment.pack.pack_key import PackKey

__all__ = ["Finding", "Redacted", "Redactor", "holds_personal_data", "is_masked", "redactor_of"]

# A text without a match is not searched: it has no `@`, however escaped, and fewer digits than the shortest number.
_MAY_HOLD = re.compile(r"@|%40|&#|&commat|\\[ux]|[\[({] ?at|\d(?:\D{0,3}\d){6}|[A-Za-z]{2}\d{2}", re.IGNORECASE)


def redactor_of(pack: Pack) -> Redactor:
    """Return the redactor of a pack, made once; raises `PackInvalid` where a rule needs a package that is missing."""
    return _cached_redactor(PackKey(pack))


def holds_personal_data(pack: Pack, texts: Iterable[str]) -> bool:
    """Say whether a rule of the pack finds sensitive data in a text that is kept in the open, such as an id (ERA-7).

    The pack's exceptions do not count: what is kept in the open holds no such value, whosever it is.
    """
    for text in texts:
        if _MAY_HOLD.search(text):
            label = redactor_of(pack).open_text(text).label
            if label is not None and pack.is_sensitive(label):
                return True
    return False


def is_masked(pack: Pack, value: Any) -> bool:
    """Say whether a value is what the pack's masks left of one; of what type it was cannot be seen any more."""
    return isinstance(value, str) and redactor_of(pack).is_masked(value)


@lru_cache(maxsize=128)
def _cached_redactor(key: PackKey) -> Redactor:
    pack = key.pack
    exceptions = Exceptions(pack.policy_layer.guardrails.redaction_exceptions)
    return Redactor(rules_of(pack), Attributes(pack.identity.classified_attributes), pack.rank, exceptions)
