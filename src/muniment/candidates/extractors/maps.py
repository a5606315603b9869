"""Field maps of the pack: from a tool's JSON result to facts, by JSONPath."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, cast

from jsonpath import JSONPathError

from muniment.candidates.extractors.extractor import MOST_FACTS, Answers, Extracted, fact_of, refs_of
from muniment.errors import ExtractorFailed
from muniment.model.capture import Capture
from muniment.pack import ExtractorMap, FieldCondition, FieldMap
from muniment.pack.json_paths import WHOLE, matches, template_parts

# An item gives one fact at most, and may be passed over; past these nobody reads on.
_MOST_ITEMS = 4096
_MOST_REFS = 64


class MapExtractor:
    """One `extractors` entry of the pack."""

    def __init__(self, written: ExtractorMap) -> None:
        self._map = written
        self._name = f"{written.name}@{written.version}"

    @property
    def name(self) -> str:
        """Name and version, as the pack has them."""
        return self._name

    def reads(self, capture: Capture) -> bool:
        """Captures of its kind and origin that hold JSON, as payload or as text."""
        match = self._map.match
        if match.kind not in (None, capture.kind) or match.origin not in (None, capture.origin):
            return False
        content = capture.content
        return content is not None and (content.payload is not None or _looks_like_json(content.text))

    async def extract(self, capture: Capture, answers: Answers) -> Sequence[Extracted]:
        """The facts in the order of the pack's fields, then of the result; what is missing or wrong gives none.

        Raises `ExtractorFailed` where the whole result is no JSON object or list.
        """
        document = _document(capture)
        found = (fact for field in self._map.fields for fact in _facts(field, document, capture))
        return list(islice(found, MOST_FACTS))


def _looks_like_json(text: str | None) -> bool:
    return text is not None and text.lstrip()[:1] in ("{", "[")


def _document(capture: Capture) -> Any:
    content = capture.content
    found: Any = content.payload if content is not None else None
    if found is None and content is not None and content.text is not None:
        try:
            found = json.loads(content.text)
        except (ValueError, RecursionError):
            raise ExtractorFailed("the result is not JSON") from None
    if not isinstance(found, dict | list):
        raise ExtractorFailed("the result is no JSON object or list")
    return cast("Any", found)


class _Place:
    """Where the paths of a field begin: an item of the result, and the result itself."""

    def __init__(self, item: Any, top: "_Top") -> None:
        self.item = item
        self.top = top

    def find(self, path: str, most: int = 1) -> list[Any]:
        return self.top.find(path, most) if path.startswith(WHOLE) else _found(path, self.item, most)

    def first(self, path: str | None) -> Any:
        found = self.find(path) if path is not None else []
        return found[0] if found else None


class _Top:
    """The whole result; what was looked up in it is not looked up again for every item."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self._known: dict[tuple[str, int], list[Any]] = {}

    def find(self, path: str, most: int) -> list[Any]:
        if (path, most) not in self._known:
            self._known[path, most] = _found(path, self.document, most)
        return self._known[path, most]


def _found(path: str, document: Any, most: int) -> list[Any]:
    try:
        return matches(path, document, most=most)
    except JSONPathError:
        # Such as a filter that compares what cannot be compared.
        return []


def _facts(field: FieldMap, document: Any, capture: Capture) -> Iterator[Extracted]:
    top = _Top(document)
    items = [document] if field.each is None else _found(field.each, document, _MOST_ITEMS)
    for item in items:
        place = _Place(item, top)
        if all(_holds(condition, place) for condition in field.when):
            fact = _fact(field, place, capture)
            if fact is not None:
                yield fact


def _fact(field: FieldMap, place: _Place, capture: Capture) -> Extracted | None:
    said: dict[str, Any] = {"write_class": field.write_class, "confidence": _confidence(field, place)}
    text = _filled(field.text, place) if field.text is not None else None
    if field.text is not None and text is None:
        return None
    refs = refs_of(*(ref for template in field.evidence for ref in _refs(template, place)))[:_MOST_REFS]
    if field.write_class == "statement":
        fact = fact_of(**said, text=text)
    elif field.write_class == "evidence_link":
        fact = fact_of(**said, entity=_entity(field, place, capture)) if refs else None
    else:
        predicate = field.predicate
        if predicate is not None and predicate.startswith("$"):
            predicate = place.first(predicate)
        entity, value = _entity(field, place, capture), place.first(field.value)
        fact = fact_of(**said, entity=entity, predicate=predicate, value=value, text=text)
    if fact is None:
        return None
    return Extracted(
        fact,
        evidence_refs=refs,
        classification=field.classification,
        own_words=(field.predicate or "").startswith("$"),
    )


def _entity(field: FieldMap, place: _Place, capture: Capture) -> str | None:
    if field.entity is None:
        return capture.subject
    found = place.first(field.entity)
    if field.namespace is None:
        return found if isinstance(found, str) else None
    return f"{field.namespace}:{found}" if isinstance(found, str | int) and not isinstance(found, bool) else None


def _confidence(field: FieldMap, place: _Place) -> float:
    found = place.first(field.confidence_path)
    is_share = isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found <= 1
    return float(found) if is_share else field.confidence


def _holds(condition: FieldCondition, place: _Place) -> bool:
    found = place.first(condition.path)
    if condition.exists is not None and condition.exists != (found is not None):
        return False
    if condition.equals is not None and not _same(found, condition.equals):
        return False
    if condition.one_of is not None and not any(_same(found, one) for one in condition.one_of):
        return False
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    if condition.at_least is not None and not (is_number and found >= condition.at_least):
        return False
    return condition.at_most is None or (is_number and found <= condition.at_most)


def _same(found: Any, expected: Any) -> bool:
    # In JSON, 1 is 1.0 but true is not 1.
    return isinstance(found, bool) == isinstance(expected, bool) and found == expected


def _refs(template: str, place: _Place) -> Iterator[str]:
    if not template.startswith("$"):
        filled = _filled(template, place)
        if filled is not None:
            yield filled
        return
    for found in place.find(template, _MOST_REFS):
        if (shown := _shown(found)) is not None:
            yield shown


def _filled(template: str, place: _Place) -> str | None:
    """The template with what its paths find; None where one finds nothing that can be written."""
    if template.startswith("$"):
        return _shown(place.first(template))
    parts: list[str] = []
    for text, path in template_parts(template):
        parts.append(text)
        if path is not None:
            shown = _shown(place.first(path))
            if shown is None:
                return None
            parts.append(shown)
    return "".join(parts)


def _shown(found: Any) -> str | None:
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found) if isinstance(found, str | int | float) else None
