"""Checks between the sections of a pack.

They work on the plain document and skip whatever has the wrong shape, so that a typo in one section does not hide
what is wrong between the others.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast, get_args

from muniment.pack.fields import BUILTIN_LABELS, WRITE_CLASSES, Detector
from muniment.pack.memory_layer import PromotionThresholds, RecallWeights
from muniment.pack.wording import MOST_SHOWN, KeyPath, did_you_mean, one_of, shorten
from muniment.pack.write_classes import CLASS_RISK

Finding: TypeAlias = tuple[KeyPath, str]

_DETECTORS: tuple[str, ...] = get_args(Detector)
_MASKED_TWICE = "has mask and keep_last; expected only one of them"
_REPEATED = "is declared twice; expected each name once"
_STILL_DECLARED = "is still declared; expected a name that is no longer in use"


def inconsistencies(document: Any) -> Iterator[Finding]:
    """Yield the path of every part of the document that does not fit another, and what was expected there."""
    for check in (
        *(_repeated_names, _undeclared_labels, _identity, _ontology, _classes, _routing, _weights, _budgets),
        *(_extractors, _field_maps, _flags, _redaction, _redaction_exceptions, _proven_sources),
    ):
        yield from check(document)


def _find(document: Any, pattern: str) -> list[tuple[KeyPath, Any]]:
    """Path and value of all that a dotted pattern matches: `*` is every key of a mapping, `#` every item of a list."""
    found: list[tuple[KeyPath, Any]] = [((), document)]
    for key in pattern.split("."):
        found = [((*path, at), inner) for path, value in found for at, inner in _children(value, key)]
    return found


def _children(value: Any, key: str) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, list):
        return enumerate(cast("list[Any]", value)) if key == "#" else ()
    if not isinstance(value, dict):
        return ()
    mapping = cast("dict[str, Any]", value)
    if key == "*":
        return mapping.items()
    return ((key, mapping[key]),) if key in mapping else ()


def _strings(document: Any, pattern: str) -> Iterator[tuple[KeyPath, str]]:
    return ((path, found) for path, found in _find(document, pattern) if isinstance(found, str))


def _mappings(document: Any, pattern: str) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    for path, found in _find(document, pattern):
        if isinstance(found, dict):
            yield path, cast("dict[str, Any]", found)


def _mapping(document: Any, pattern: str) -> dict[str, Any]:
    return next((found for _, found in _mappings(document, pattern)), dict[str, Any]())


def _set_keys(mapping: Mapping[str, Any], *keys: str) -> set[str]:
    return {key for key in keys if mapping.get(key) is not None}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _repeated_names(document: Any) -> Iterator[Finding]:
    for pattern in ("classifications.#.name", "memory_layer.extractors.#.name"):
        seen: set[str] = set()
        for path, name in _strings(document, pattern):
            if name in seen:
                yield path, f"{shorten(name)} {_REPEATED}"
            seen.add(name)


_LABELS = (
    "roles.*.classifications_allowed.#",
    "identity.classified_attributes.*.label",
    "ontology.predicates.*.label",
    "memory_layer.classes.*.classifications_allowed.#",
    "memory_layer.extractors.#.fields.#.classification",
    "memory_layer.extraction.model.classifications_allowed.#",
    "memory_layer.flag_for_review.#.label",
    "policy_layer.guardrails.redaction_rules.#.classification",
)


def _undeclared_labels(document: Any) -> Iterator[Finding]:
    known = _declared_labels(document)
    # A section too broken to tell is reported by itself.
    for pattern in _LABELS if known else ():
        for path, label in _strings(document, pattern):
            if label not in known:
                yield (
                    path,
                    f"{shorten(label)} is not declared{did_you_mean(label, known)}; expected one of {one_of(known)}",
                )


def _declared_labels(document: Any) -> tuple[str, ...]:
    if not _find(document, "classifications"):
        return tuple(BUILTIN_LABELS)
    count = len(_find(document, "classifications.#"))
    names = [name for _, name in _strings(document, "classifications.#.name")]
    return tuple(dict.fromkeys(names)) if len(names) == count <= MOST_SHOWN else ()


def _identity(document: Any) -> Iterator[Finding]:
    namespaces = dict.fromkeys(name for _, name in _strings(document, "identity.namespaces.#"))
    aliases = _mapping(document, "identity.aliases")
    for path, target in _strings(document, "identity.aliases.*"):
        if path[-1] in namespaces:
            yield path, f"{shorten(str(path[-1]))} is a namespace itself; expected a name that is not"
        if target in aliases:
            yield path, f"{shorten(target)} is an alias itself; expected the namespace that it names"
        elif namespaces and target not in namespaces:
            yield path, f"{shorten(target)} is not declared; expected one of {one_of(tuple(namespaces))}"
    for path, attribute in _mappings(document, "identity.classified_attributes.*"):
        keys = _set_keys(attribute, "label", "mask", "keep_last")
        if not keys:
            yield path, "expected a label, a mask or keep_last"
        if {"mask", "keep_last"} <= keys:
            yield path, _MASKED_TWICE


def _ontology(document: Any) -> Iterator[Finding]:
    predicates = _mapping(document, "ontology.predicates")
    successors: dict[str, str | int] = {}
    for path, old in _strings(document, "ontology.predicates.*.renamed_from.#"):
        first = successors.setdefault(old, path[2])
        if old in predicates:
            yield path, f"{shorten(old)} {_STILL_DECLARED}"
        elif first != path[2]:
            yield path, f"{shorten(old)} was renamed to {shorten(str(first))} already; expected one successor"
    for path, name in _strings(document, "ontology.dropped.#"):
        if name in predicates:
            yield path, f"{shorten(name)} {_STILL_DECLARED}"
        elif name in successors:
            yield path, f"{shorten(name)} was renamed; expected one or the other"


def _classes(document: Any) -> Iterator[Finding]:
    thresholds = _mapping(document, "memory_layer.promotion_thresholds")
    defaults = PromotionThresholds()
    cap = thresholds.get("uncalibrated_cap", defaults.uncalibrated_cap)
    usual = thresholds.get("auto_confidence", defaults.auto_confidence)
    for path, policy in _mappings(document, "memory_layer.classes.*"):
        usual_risk = cast("dict[Any, str]", CLASS_RISK).get(path[-1], "low")
        approval = policy.get("approval", "human")
        promotion = policy.get("auto_promotion")
        if approval == "auto" and policy.get("risk", usual_risk) == "high":
            yield (*path, "approval"), "is auto while the risk is high; expected human, or risk low"
        if approval == "auto" and promotion is None:
            expected = "is auto without auto_promotion; expected it too ({} takes the default threshold)"
            yield (*path, "approval"), expected
        if approval == "human" and promotion is not None:
            yield (*path, "auto_promotion"), "is set while approval is human; expected approval auto, or null"
        threshold = _mapping(policy, "auto_promotion").get("threshold", usual)
        if isinstance(promotion, dict) and _is_number(threshold) and _is_number(cap) and threshold <= cap:
            expected = f"expected more than promotion_thresholds.uncalibrated_cap ({cap:g}), got {threshold:g}"
            reason = "a source without history must not promote itself"
            yield (*path, "auto_promotion", "threshold"), f"{expected}: {reason}"


def _routing(document: Any) -> Iterator[Finding]:
    rules = _find(document, "memory_layer.memory_policy.tier_routing.#")
    catch_all = [_matches_everything(rule) for _, rule in rules]
    if rules and not catch_all[-1] and isinstance(rules[-1][1], dict):
        yield rules[-1][0], "is the last rule; expected one that matches everything (a tier without when)"
    if True in catch_all[:-1]:
        first = rules[catch_all.index(True)][0]
        yield first, "matches everything, so no later rule is ever reached; expected it last"


def _matches_everything(rule: Any) -> bool:
    when = cast("dict[str, Any]", rule).get("when", {}) if isinstance(rule, dict) else None
    return isinstance(when, dict) and all(value is None for value in cast("dict[str, Any]", when).values())


def _weights(document: Any) -> Iterator[Finding]:
    weights = _mapping(document, "memory_layer.recall_policy.weights")
    if all(_is_number(weights.get(name)) and weights[name] == 0 for name in RecallWeights.model_fields):
        yield ("memory_layer", "recall_policy", "weights"), "are all 0; expected at least one above"


def _budgets(document: Any) -> Iterator[Finding]:
    seen: set[tuple[str | None, str | None]] = set()
    for path, budget in _mappings(document, "memory_layer.budgets.#"):
        if not _set_keys(budget, "records", "bytes"):
            yield path, "expected records, bytes or both"
        tier, write_class = budget.get("tier"), budget.get("write_class")
        if isinstance(tier, str | None) and isinstance(write_class, str | None):
            if (tier, write_class) in seen:
                yield path, "counts what a budget above counts; expected one per tier and write_class"
            seen.add((tier, write_class))


def _extractors(document: Any) -> Iterator[Finding]:
    namespaces = {name for _, name in _strings(document, "identity.namespaces.#")}
    users = {name for _, name in _strings(document, "identity.user_namespace")} or {"user"}
    known = namespaces | users | set(_mapping(document, "identity.aliases"))
    for path, name in _strings(document, "memory_layer.extractors.#.fields.#.namespace"):
        if namespaces and name not in known:
            yield path, f"{shorten(name)} is not declared in identity.namespaces"
    # An evidence_link passes any allow-list (CAN-10).
    allowed = {"evidence_link", *(name for _, name in _strings(document, "memory_layer.write_classes_allowed.#"))}
    if _find(document, "memory_layer.write_classes_allowed"):
        for path, name in _strings(document, "memory_layer.extractors.#.fields.#.write_class"):
            if name in WRITE_CLASSES and name not in allowed:
                yield path, f"{shorten(name)} is not in write_classes_allowed; its candidates would all be refused"
    names = {name for _, name in _strings(document, "memory_layer.extractors.#.name")}
    for path, name in _strings(document, "memory_layer.extraction.plugins.#"):
        if name in names:
            yield path, f"{shorten(name)} is the name of an extractor above; expected another"


# The fields that a fact of a class must have, and those that it must not have.
_SHAPES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "statement": (("text",), ("entity", "predicate", "value")),
    "evidence_link": (("evidence",), ("value", "text")),
}
_TYPED: tuple[tuple[str, ...], tuple[str, ...]] = (("predicate", "value"), ())
_PATH_FIELDS = ("entity", "predicate", "value", "confidence_path")
_TESTS = ("exists", "equals", "one_of", "at_least", "at_most")


def _field_maps(document: Any) -> Iterator[Finding]:
    for path, fields in _mappings(document, "memory_layer.extractors.#.fields.#"):
        name = fields.get("write_class")
        if isinstance(name, str) and name in WRITE_CLASSES:
            required, forbidden = _SHAPES.get(name, _TYPED)
            for key in required:
                if fields.get(key) in (None, []):
                    yield path, f"expected {key} for a fact of class {name}"
            for key in sorted(_set_keys(fields, *forbidden)):
                yield (*path, key), f"must be left out of a fact of class {name}"
        if fields.get("namespace") is not None and fields.get("entity") is None:
            yield (*path, "namespace"), "is set without entity; expected both, or neither for the capture's subject"
        each = fields.get("each")
        for key in _PATH_FIELDS:
            json_path = fields.get(key)
            if not isinstance(json_path, str):
                continue
            if each is None and json_path.startswith("$$"):
                yield (*path, key), "begins with $$ without each; expected $"
            # Items within items, each searched to its depth, would take more than linear time.
            if ".." in str(each) and ".." in json_path and not json_path.startswith("$$"):
                yield (*path, key), "has .. where each has it too; expected it in one of them"
    for path, condition in _mappings(document, "memory_layer.extractors.#.fields.#.when.#"):
        if not _set_keys(condition, *_TESTS):
            yield path, f"expected one of {one_of(_TESTS)}"


def _flags(document: Any) -> Iterator[Finding]:
    for path, rule in _mappings(document, "memory_layer.flag_for_review.#"):
        if not _set_keys(rule, "predicate", "pattern"):
            yield path, "expected a predicate, a pattern, or both"


def _redaction(document: Any) -> Iterator[Finding]:
    names: set[str] = set()
    detectors: set[str] = set()
    for path, rule in _mappings(document, "policy_layer.guardrails.redaction_rules.#"):
        keys = _set_keys(rule, "detector", "pattern", "mask", "keep_last", "model")
        if len(keys & {"detector", "pattern"}) != 1:
            yield path, "expected either a detector or a pattern"
        if {"mask", "keep_last"} <= keys:
            yield path, _MASKED_TWICE
        if "pattern" in keys and not keys & {"mask", "keep_last"}:
            yield path, "expected a mask such as [ORDER], or keep_last"
        name, detector = rule.get("name"), rule.get("detector")
        if "model" in keys and detector not in ("person", "location"):
            yield (*path, "model"), "is set without need; expected it only with detector person or location"
        if isinstance(name, str):
            if name in _DETECTORS and detector != name:
                yield (*path, "name"), f"{shorten(name)} is the name of a built-in rule; expected another"
            elif name in names and name not in _DETECTORS:
                yield (*path, "name"), f"{shorten(name)} {_REPEATED}"
            names.add(name)
        if isinstance(detector, str):
            if detector in detectors:
                yield (*path, "detector"), f"{shorten(detector)} has a rule above; expected one rule per detector"
            detectors.add(detector)


def _redaction_exceptions(document: Any) -> Iterator[Finding]:
    """An exception of a detector that is off says that its values are found, which they are not."""
    off: dict[str, str] = {"url": "is off until a rule names it"}
    for _, rule in _mappings(document, "policy_layer.guardrails.redaction_rules.#"):
        detector = rule.get("detector")
        if isinstance(detector, str):
            off.pop(detector, None)
            if rule.get("enabled") is False:
                off[detector] = "is turned off"
    for path, values in _find(document, "policy_layer.guardrails.redaction_exceptions.*"):
        if isinstance(values, list) and values and path[-1] in off:
            yield path, f"has exceptions, but the detector {off[str(path[-1])]}; expected it on, or no exceptions"


def _proven_sources(document: Any) -> Iterator[Finding]:
    """A source is named in one way, and each extractor and class of it once."""
    seen: set[tuple[Any, ...]] = set()
    for path, source in _mappings(document, "memory_layer.proven_sources.#"):
        if len(_set_keys(source, "vouched", "credential")) != 1:
            yield path, "expected either vouched or credential"
        extractors, classes = source.get("extractors"), source.get("classes", list(WRITE_CLASSES))
        if not isinstance(extractors, list) or not isinstance(classes, list):
            continue
        for name in cast("list[Any]", extractors):
            for write_class in cast("list[Any]", classes):
                named = (source.get("vouched"), source.get("credential"), str(name), str(write_class))
                if named in seen:
                    yield path, f"names {shorten(str(name))} and {write_class} of a source above; expected each once"
                    break
                seen.add(named)
