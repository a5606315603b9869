"""The two parts of a data set: `held`, on which bars are read and nothing is trained, and `open`."""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Literal, TypeVar, cast

from muniment.evaluation.records import invalid_record

Part = Literal["held", "open"]
# Records that are asked about, or told, as a whole go by the id of that whole.
_IDS = ("question_id", "episode_id")
_TEXTS = ("a", "b", "text")
_HELD = "0123"

AnyRecord = TypeVar("AnyRecord", bound=Mapping[str, Any])


def select_part(records: Iterable[AnyRecord], part: Part | None) -> list[AnyRecord]:
    """Return the records of a part, all of them without one.

    A record is held if the SHA-256 of its texts, joined by a line break, begins with 0 to 3; of a question's id in
    LongMemEval, of an episode's in GateMem.
    """
    return [record for record in records if part is None or part_of_record(record) == part]


def part_of_record(record: Mapping[str, Any]) -> Part:
    """Return the part that a record belongs to; raises `InvalidInput` for one without a text."""
    ids = [record[name] for name in _IDS if isinstance(record.get(name), str)]
    texts = ids[:1] or [record[name] for name in _TEXTS if isinstance(record.get(name), str)] or list(_strings(record))
    if not texts:
        raise invalid_record(record, "text", "expected a text")
    digest = sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
    return "held" if digest[0] in _HELD else "open"


def _strings(value: Any) -> Iterator[str]:
    """Yield the texts of a record without a text of its own, in their order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, Any]", value).values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _strings(item)
