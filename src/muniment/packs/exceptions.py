"""An exception of the redaction as a change of a pack: a value of the company's own that is left unmasked (RED-5)."""

import re
from collections.abc import Container, Iterator
from typing import Any, Literal

import yaml

from muniment.errors import Conflict, InvalidInput, PackInvalid
from muniment.pack import Pack, load_pack

ExceptionKind = Literal["email", "phone", "iban", "ip", "url"]

# Changes of one version that may wait for an admin.
MOST_PROPOSED = 50
_PROPOSED = re.compile(r"(.*[-.]exception\.)(\d+)")


def proposed_versions(version: str) -> Iterator[str]:
    """Yield the versions that proposed changes of a version take, the first first.

    They come before the next release by their order, such as 1.4.3-exception.1 of 1.4.2, and take no version that an
    admin would give to a pack.
    """
    proposed = _PROPOSED.fullmatch(version)
    if proposed is not None:
        begin, last = proposed[1], int(proposed[2])
    elif "-" in version:
        begin, last = f"{version}.exception.", 0
    else:
        number, _, patch = version.rpartition(".")
        begin, last = f"{number}.{int(patch) + 1}-exception.", 0
    yield from (f"{begin}{last + more}" for more in range(1, MOST_PROPOSED + 1))


def free_version(pack: Pack, taken: Container[str]) -> str:
    """Return the first version that no proposed change has taken; raises `Conflict` where too many wait."""
    found = (one for one in proposed_versions(pack.meta.version) if f"{pack.meta.id}@{one}" not in taken)
    if (version := next(found, None)) is None:
        raise Conflict(f"{MOST_PROPOSED} changes of {pack.ref} are proposed already: an admin decides on them first")
    return version


def with_exception(pack: Pack, kind: ExceptionKind, value: str, version: str) -> tuple[Pack, str]:
    """Return a pack with one more exception under another version, and its text.

    Raises `InvalidInput` for a value that is none of that kind, `Conflict` for one that the pack excepts already.
    """
    document = pack.document()
    exceptions: dict[str, Any] = document["policy_layer"]["guardrails"]["redaction_exceptions"]
    there = exceptions.get(kind, ())
    if value in there:
        raise Conflict("is an exception of the pack in force already", field="value")
    exceptions[kind] = [*there, value]
    document["pack_meta"]["version"] = version
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    try:
        return load_pack(text), text
    except PackInvalid as error:
        raise InvalidInput(f"is refused: {error.problems[0].message}", field="value") from None


def is_same_change(one: Pack, other: Pack) -> bool:
    """Whether two changes of a pack differ in their version alone."""
    return one.document() | {"pack_meta": None} == other.document() | {"pack_meta": None}
