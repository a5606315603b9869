"""The extractor of a pack's field maps: turns the JSON result of a tool into facts by JSONPath."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, cast

from muniment.candidates.extractors.extractor import MOST_FACTS, Answers, Extracted, fact_of, refs_of
from muniment.errors import ExtractorFailed
from muniment.model.capture import Capture
from muniment.pack import ExtractorMap, FieldCondition, FieldMap
from muniment.pack.json_paths import WHOLE, matches, template_parts

# Bounds on the items and references that are read.
_MOST_ITEMS = 4096
_MOST_REFS = 64


class MapExtractor:
    """One `extractors` entry of the pack."""

    def __init__(self, field_map: ExtractorMap) -> None:
        self._map = field_map
        self.name = f"{field_map.name}@{field_map.version}"

    def reads(self, capture: Capture) -> bool:
        """Say whether the capture is of its kind and origin and holds JSON, as payload or as text."""
        match = self._map.match
        if match.kind not in (None, capture.kind) or match.origin not in (None, capture.origin):
            return False
        content = capture.content
        if content is None:
            return False
        return content.payload is not None or (content.text or "").lstrip()[:1] in ("{", "[")

    async def extract(self, capture: Capture, answers: Answers) -> Sequence[Extracted]:
        """Return the facts in the order of the pack's fields, then of the result; missing or wrong items give none.

        Raises `ExtractorFailed` if the result is no JSON object or list.
        """
        document = _document(capture)
        found = (fact for field in self._map.fields for fact in _facts(field, document, capture))
        return list(islice(found, MOST_FACTS))


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


class _Item:
    """An item of the result; paths begin at it, or at the whole result."""

    def __init__(self, value: Any, result: "_Result") -> None:
        self.value = value
        self.result = result

    def find(self, path: str, most: int = 1) -> list[Any]:
        return self.result.find(path, most) if path.startswith(WHOLE) else matches(path, self.value, most=most)

    def first(self, path: str | None) -> Any:
        found = self.find(path) if path is not None else []
        return found[0] if found else None


class _Result:
    """The whole result; what a path finds in it is cached for all items."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self._known: dict[tuple[str, int], list[Any]] = {}

    def find(self, path: str, most: int) -> list[Any]:
        if (path, most) not in self._known:
            self._known[path, most] = matches(path, self.document, most=most)
        return self._known[path, most]


def _facts(field: FieldMap, document: Any, capture: Capture) -> Iterator[Extracted]:
    result = _Result(document)
    items = [document] if field.each is None else matches(field.each, document, most=_MOST_ITEMS)
    for value in items:
        item = _Item(value, result)
        if all(_holds(condition, item) for condition in field.when):
            fact = _fact(field, item, capture)
            if fact is not None:
                yield fact


def _fact(field: FieldMap, item: _Item, capture: Capture) -> Extracted | None:
    said: dict[str, Any] = {"write_class": field.write_class, "confidence": _confidence(field, item)}
    text = _filled(field.text, item) if field.text is not None else None
    if field.text is not None and text is None:
        return None
    refs = refs_of(*(ref for template in field.evidence for ref in _refs(template, item)))[:_MOST_REFS]
    if field.write_class == "statement":
        fact = fact_of(**said, text=text)
    elif field.write_class == "evidence_link":
        fact = fact_of(**said, entity=_entity(field, item, capture)) if refs else None
    else:
        predicate = field.predicate
        if predicate is not None and predicate.startswith("$"):
            predicate = item.first(predicate)
        entity, value = _entity(field, item, capture), item.first(field.value)
        fact = fact_of(**said, entity=entity, predicate=predicate, value=value, text=text)
    if fact is None:
        return None
    return Extracted(
        fact,
        evidence_refs=refs,
        classification=field.classification,
        own_words=(field.predicate or "").startswith("$"),
    )


def _entity(field: FieldMap, item: _Item, capture: Capture) -> str | None:
    if field.entity is None:
        return capture.subject
    found = item.first(field.entity)
    if field.namespace is None:
        return found if isinstance(found, str) else None
    return f"{field.namespace}:{found}" if isinstance(found, str | int) and not isinstance(found, bool) else None


def _confidence(field: FieldMap, item: _Item) -> float:
    found = item.first(field.confidence_path)
    is_share = isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found <= 1
    return float(found) if is_share else field.confidence


def _holds(condition: FieldCondition, item: _Item) -> bool:
    found = item.first(condition.path)
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


def _refs(template: str, item: _Item) -> Iterator[str]:
    if not template.startswith("$"):
        filled = _filled(template, item)
        if filled is not None:
            yield filled
        return
    for found in item.find(template, _MOST_REFS):
        if (text := _scalar_text(found)) is not None:
            yield text


def _filled(template: str, item: _Item) -> str | None:
    """Fill a template with what its paths find; None if one finds no scalar."""
    if template.startswith("$"):
        return _scalar_text(item.first(template))
    parts: list[str] = []
    for literal, path in template_parts(template):
        parts.append(literal)
        if path is not None:
            text = _scalar_text(item.first(path))
            if text is None:
                return None
            parts.append(text)
    return "".join(parts)


def _scalar_text(found: Any) -> str | None:
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found) if isinstance(found, str | int | float) else None
