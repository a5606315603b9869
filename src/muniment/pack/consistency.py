"""What the sections of a pack must not say of one another.

Works on the plain document and passes over whatever has the wrong shape, so that a pack with a typo in one
section is still told what is wrong between the others.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast, get_args

from muniment.pack.fields import BUILTIN_LABELS, WRITE_CLASSES, Detector
from muniment.pack.memory_layer import PromotionThresholds
from muniment.pack.wording import MOST_TOLD, KeyPath, nearest, one_of, shown
from muniment.pack.write_classes import CLASS_RISK

Finding: TypeAlias = tuple[KeyPath, str]

_DETECTORS: tuple[str, ...] = get_args(Detector)


def inconsistencies(document: Any) -> Iterator[Finding]:
    """Every place where one part of the document does not fit another, and what was expected there."""
    pack = _mapping(document)
    yield from _repeated_names(("classifications",), pack.get("classifications"))
    yield from _undeclared_labels(pack)
    yield from _identity(_mapping(pack.get("identity")))
    yield from _renames(_at(pack, "ontology", "predicates"))
    yield from _dropped(_at(pack, "ontology"))
    layer = _mapping(pack.get("memory_layer"))
    yield from _classes(layer)
    yield from _routing(_at(layer, "memory_policy").get("tier_routing"))
    yield from _weights(_at(layer, "recall_policy", "weights"))
    yield from _budgets(_list(layer.get("budgets")))
    yield from _extractors(layer, _at(pack, "identity").get("namespaces"))
    yield from _flags(_list(layer.get("flag_for_review")))
    yield from _redaction(_list(_at(pack, "policy_layer", "guardrails").get("redaction_rules")))


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _at(value: Any, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        value = _mapping(value).get(key)
    return _mapping(value)


def _words(place: KeyPath, value: Any) -> Iterator[tuple[KeyPath, str]]:
    for index, item in enumerate(_list(value)):
        if isinstance(item, str):
            yield (*place, index), item


def _word(place: KeyPath, holder: Any, key: str) -> Iterator[tuple[KeyPath, str]]:
    word = _mapping(holder).get(key)
    if isinstance(word, str):
        yield (*place, key), word


def _repeated_names(place: KeyPath, value: Any) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, item in enumerate(_list(value)):
        for where, name in _word((*place, index), item, "name"):
            if name in seen:
                yield where, f"{shown(name)} is declared twice; expected each name once"
            seen.add(name)


def _undeclared_labels(pack: Mapping[str, Any]) -> Iterator[Finding]:
    labels = _declared_labels(pack)
    if labels is None:
        return
    for place, label in _label_references(pack):
        if label not in labels:
            yield (
                place,
                f"{shown(label)} is not declared{nearest(label, labels)}; expected one of {one_of(labels)}",
            )


def _declared_labels(pack: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The labels, or None when the section is too broken to say."""
    if "classifications" not in pack:
        return tuple(BUILTIN_LABELS)
    names = [_mapping(item).get("name") for item in _list(pack["classifications"])]
    if not names or len(names) > MOST_TOLD or not all(isinstance(name, str) for name in names):
        return None
    return tuple(dict.fromkeys(cast("list[str]", names)))


def _label_references(pack: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    for role, rule in _mapping(pack.get("roles")).items():
        yield from _words(("roles", role, "classifications_allowed"), _mapping(rule).get("classifications_allowed"))
    for name, attribute in _at(pack, "identity", "classified_attributes").items():
        yield from _word(("identity", "classified_attributes", name), attribute, "label")
    for name, predicate in _at(pack, "ontology", "predicates").items():
        yield from _word(("ontology", "predicates", name), predicate, "label")
    for name, policy in _at(pack, "memory_layer", "classes").items():
        yield from _words(
            ("memory_layer", "classes", name, "classifications_allowed"),
            _mapping(policy).get("classifications_allowed"),
        )
    for e, extractor in enumerate(_list(_at(pack, "memory_layer").get("extractors"))):
        for f, field in enumerate(_list(_mapping(extractor).get("fields"))):
            yield from _word(("memory_layer", "extractors", e, "fields", f), field, "classification")
    model = _at(pack, "memory_layer", "extraction", "model")
    yield from _words(
        ("memory_layer", "extraction", "model", "classifications_allowed"), model.get("classifications_allowed")
    )
    for f, flag in enumerate(_list(_at(pack, "memory_layer").get("flag_for_review"))):
        yield from _word(("memory_layer", "flag_for_review", f), flag, "label")
    for r, rule in enumerate(_list(_at(pack, "policy_layer", "guardrails").get("redaction_rules"))):
        yield from _word(("policy_layer", "guardrails", "redaction_rules", r), rule, "classification")


def _identity(identity: Mapping[str, Any]) -> Iterator[Finding]:
    namespaces = dict.fromkeys(name for _, name in _words((), identity.get("namespaces")))
    aliases = _mapping(identity.get("aliases"))
    for alias, target in aliases.items():
        place = ("identity", "aliases", alias)
        if not isinstance(target, str):
            continue
        if alias in namespaces:
            yield place, f"{shown(alias)} is a namespace itself; expected a name that is not"
        if target in aliases:
            yield place, f"{shown(target)} is an alias itself; expected the namespace it stands for"
        elif namespaces and target not in namespaces:
            yield place, f"{shown(target)} is not declared; expected one of {one_of(tuple(namespaces))}"
    for name, attribute in _mapping(identity.get("classified_attributes")).items():
        place = ("identity", "classified_attributes", name)
        given = {key for key in ("label", "mask", "keep_last") if _mapping(attribute).get(key) is not None}
        if isinstance(attribute, dict) and not given:
            yield place, "expected a label, a mask or keep_last"
        if {"mask", "keep_last"} <= given:
            yield place, "has mask and keep_last; expected only one of them"


def _flags(rules: list[Any]) -> Iterator[Finding]:
    for place, rule in enumerate(rules):
        if isinstance(rule, dict) and all(_mapping(rule).get(key) is None for key in ("predicate", "pattern")):
            yield ("memory_layer", "flag_for_review", place), "expected a predicate, a pattern, or both"


def _renames(predicates: Mapping[str, Any]) -> Iterator[Finding]:
    taken: dict[str, str] = {}
    for name, predicate in predicates.items():
        place = ("ontology", "predicates", name, "renamed_from")
        for where, old in _words(place, _mapping(predicate).get("renamed_from")):
            if old in predicates:
                yield where, f"{shown(old)} is still declared; expected a name that is no longer in use"
            elif taken.setdefault(old, name) != name:
                yield (
                    where,
                    f"{shown(old)} was renamed to {shown(taken[old])} already; expected one successor",
                )


def _dropped(ontology: Mapping[str, Any]) -> Iterator[Finding]:
    predicates = _mapping(ontology.get("predicates"))
    renamed = {old for one in predicates.values() for _, old in _words((), _mapping(one).get("renamed_from"))}
    for where, name in _words(("ontology", "dropped"), ontology.get("dropped")):
        if name in predicates:
            yield where, f"{shown(name)} is still declared; expected a name that is no longer in use"
        elif name in renamed:
            yield where, f"{shown(name)} was renamed; expected one or the other"


def _classes(layer: Mapping[str, Any]) -> Iterator[Finding]:
    thresholds = _mapping(layer.get("promotion_thresholds"))
    defaults = PromotionThresholds()
    cap = thresholds.get("uncalibrated_cap", defaults.uncalibrated_cap)
    usual = thresholds.get("auto_confidence", defaults.auto_confidence)
    for name, written in _mapping(layer.get("classes")).items():
        policy = _mapping(written)
        place = ("memory_layer", "classes", name)
        auto = policy.get("approval", "human") == "auto"
        promotion = policy.get("auto_promotion")
        if auto and policy.get("risk", _usual_risk(name)) == "high":
            yield (*place, "approval"), "is auto while the risk is high; expected human, or risk low"
        if auto and promotion is None:
            yield (
                (*place, "approval"),
                "is auto without auto_promotion; expected it too ({} takes the default threshold)",
            )
        if promotion is not None and policy.get("approval", "human") == "human":
            yield (
                (*place, "auto_promotion"),
                "is set while approval is human; expected approval auto, or null",
            )
        if isinstance(promotion, dict):
            threshold = _mapping(promotion).get("threshold", usual)
            if _is_number(threshold) and _is_number(cap) and threshold <= cap:
                yield (
                    (*place, "auto_promotion", "threshold"),
                    f"expected more than promotion_thresholds.uncalibrated_cap ({cap:g}), got {threshold:g}: "
                    "a source without history must not promote itself",
                )


def _usual_risk(name: str) -> str:
    return next((risk for known, risk in CLASS_RISK.items() if known == name), "low")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _routing(value: Any) -> Iterator[Finding]:
    rules = _list(value)
    place = ("memory_layer", "memory_policy", "tier_routing")
    catch_all = [_matches_everything(rule) for rule in rules]
    if rules and not catch_all[-1] and isinstance(rules[-1], dict):
        yield (
            (*place, len(rules) - 1),
            "is the last rule; expected one that matches everything (a tier without when)",
        )
    if True in catch_all[:-1]:
        first = catch_all.index(True)
        yield (*place, first), "matches everything, so no later rule is ever reached; expected it last"


def _matches_everything(rule: Any) -> bool:
    if not isinstance(rule, dict):
        return False
    when = _mapping(rule).get("when", {})
    return isinstance(when, dict) and all(value is None for value in _mapping(when).values())


def _weights(weights: Mapping[str, Any]) -> Iterator[Finding]:
    names = ("vector", "words", "priority", "recency", "confidence", "intent", "entity")
    if all(_is_number(weights.get(name)) and weights[name] == 0 for name in names):
        yield ("memory_layer", "recall_policy", "weights"), "are all 0; expected at least one above"


def _budgets(budgets: list[Any]) -> Iterator[Finding]:
    seen: set[tuple[str | None, str | None]] = set()
    for index, written in enumerate(budgets):
        budget = _mapping(written)
        place = ("memory_layer", "budgets", index)
        if isinstance(written, dict) and budget.get("records") is None and budget.get("bytes") is None:
            yield place, "expected records, bytes or both"
        tier, write_class = budget.get("tier"), budget.get("write_class")
        if not isinstance(tier, str | None) or not isinstance(write_class, str | None):
            continue
        if (tier, write_class) in seen:
            yield place, "counts what a budget above counts; expected one per tier and write_class"
        seen.add((tier, write_class))


def _extractors(layer: Mapping[str, Any], namespaces: Any) -> Iterator[Finding]:
    place = ("memory_layer", "extractors")
    yield from _repeated_names(place, layer.get("extractors"))
    allowed = {name for _, name in _words((), layer.get("write_classes_allowed", list(WRITE_CLASSES)))}
    declared = {name for _, name in _words((), namespaces)}
    for e, extractor in enumerate(_list(layer.get("extractors"))):
        for f, field in enumerate(_list(_mapping(extractor).get("fields"))):
            for where, name in _word((*place, e, "fields", f), field, "namespace"):
                if declared and name not in declared:
                    yield where, f"{shown(name)} is not declared in identity.namespaces"
            for where, name in _word((*place, e, "fields", f), field, "write_class"):
                # An evidence_link passes any allow-list (CAN-10).
                if name in WRITE_CLASSES and name not in allowed and name != "evidence_link":
                    yield (
                        where,
                        f"{shown(name)} is not in write_classes_allowed; its candidates would all be refused",
                    )
            yield from _field_map((*place, e, "fields", f), _mapping(field))
    names = {name for item in _list(layer.get("extractors")) for _, name in _word((), item, "name")}
    for where, name in _words(("memory_layer", "extraction", "plugins"), _at(layer, "extraction").get("plugins")):
        if name in names:
            yield where, f"{shown(name)} is the name of an extractor above; expected another"


# What a fact of a class must have, and what it must not.
_SHAPES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "statement": (("text",), ("entity", "predicate", "value")),
    "evidence_link": (("evidence",), ("value", "text")),
}
_TYPED: tuple[tuple[str, ...], tuple[str, ...]] = (("predicate", "value"), ())
_TESTS = ("exists", "equals", "one_of", "at_least", "at_most")


def _field_map(place: KeyPath, field: Mapping[str, Any]) -> Iterator[Finding]:
    name = field.get("write_class")
    if isinstance(name, str) and name in WRITE_CLASSES:
        needed, unwanted = _SHAPES.get(name, _TYPED)
        for key in needed:
            if field.get(key) in (None, []):
                yield place, f"expected {key} for a fact of class {name}"
        for key in unwanted:
            if field.get(key) is not None:
                yield (*place, key), f"must be left out of a fact of class {name}"
    if field.get("namespace") is not None and field.get("entity") is None:
        yield (*place, "namespace"), "is set without entity; expected both, or neither for the capture's subject"
    if field.get("each") is None:
        for key in ("entity", "predicate", "value", "confidence_path"):
            for where, path in _word(place, field, key):
                if path.startswith("$$"):
                    yield where, "begins with $$ without each; expected $"
    # Items within items, each searched to its depth, would take more than linear time.
    if ".." in str(field.get("each")):
        for key in ("entity", "predicate", "value", "confidence_path"):
            for where, path in _word(place, field, key):
                if ".." in path and not path.startswith("$$"):
                    yield where, "has .. where each has it too; expected it in one of them"
    for index, condition in enumerate(_list(field.get("when"))):
        if isinstance(condition, dict) and all(_mapping(cast("Any", condition)).get(test) is None for test in _TESTS):
            yield (*place, "when", index), f"expected one of {one_of(_TESTS)}"


def _redaction(rules: list[Any]) -> Iterator[Finding]:
    place = ("policy_layer", "guardrails", "redaction_rules")
    names: set[str] = set()
    detectors: set[str] = set()
    for index, written in enumerate(rules):
        if not isinstance(written, dict):
            continue
        rule = _mapping(cast("Any", written))
        given = {key for key in ("detector", "pattern", "mask", "keep_last") if rule.get(key) is not None}
        if len(given & {"detector", "pattern"}) != 1:
            yield (*place, index), "expected either a detector or a pattern"
        if {"mask", "keep_last"} <= given:
            yield (*place, index), "has mask and keep_last; expected only one of them"
        if "pattern" in given and not given & {"mask", "keep_last"}:
            yield (*place, index), "expected a mask such as [ORDER], or keep_last"
        if rule.get("model") is not None and rule.get("detector") not in ("person", "location"):
            yield (*place, index, "model"), "is set without need; expected it only with detector person or location"
        for where, name in _word((*place, index), rule, "name"):
            if name in _DETECTORS and rule.get("detector") != name:
                yield where, f"{shown(name)} is the name of a built-in rule; expected another"
            elif name in names and name not in _DETECTORS:
                yield where, f"{shown(name)} is declared twice; expected each name once"
            names.add(name)
        for where, detector in _word((*place, index), rule, "detector"):
            if detector in detectors:
                yield where, f"{shown(detector)} has a rule above; expected one rule per detector"
            detectors.add(detector)
