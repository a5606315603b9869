"""Which rules a pack loosens, compared with the pack it would replace; then a second person activates it (PAC-5)."""

from collections.abc import Iterator
from datetime import timedelta
from typing import get_args

from muniment.model.fields import WriteClass
from muniment.pack import Pack, RedactionRule
from muniment.pack.memory_layer import JudgePolicy

_CLASSES: tuple[WriteClass, ...] = get_args(WriteClass)


def loosened(before: Pack, after: Pack) -> tuple[str, ...]:
    """The path of every rule that the new pack loosens, with its value before and after.

    A rule is loosened if a threshold or a floor is lowered, a source is trusted more or declared proven, a class starts
    to be promoted or its contradictions resolved without a person, end users start to confirm or erase by themselves,
    less evidence or consent is required, a label is no longer sensitive or ranks below one it was above, a role may see
    more, a redaction rule masks less or excepts a further value, an alias joins two names of subjects or no longer
    does, or a horizon is shortened.
    Further write classes, namespaces, predicates and roles, the confidence of statements, and how much a recall
    returns and how it ranks do not count.
    """
    return tuple(found for rule in _RULES for found in rule(before, after))


def needs_second_person(before: Pack, after: Pack) -> bool:
    """Whether an admin who did not register the new pack has to activate it."""
    return "four_eyes" in (before.meta.activation, after.meta.activation) or bool(loosened(before, after))


def _lower(path: str, before: float, after: float) -> Iterator[str]:
    if after < before:
        yield f"{path}: {before:g} to {after:g}"


def _higher(path: str, before: float, after: float) -> Iterator[str]:
    if after > before:
        yield f"{path}: {before:g} to {after:g}"


def _higher_score(path: str, before: float | None, after: float | None) -> Iterator[str]:
    """None is the score that was measured with a reader: whether that is higher is not known here, so it counts."""
    if before != after and (before is None or after is None or after > before):
        was, now = ("as measured" if one is None else f"{one:g}" for one in (before, after))
        yield f"{path}: {was} to {now}"


def _thresholds(before: Pack, after: Pack) -> Iterator[str]:
    was, now = before.memory_layer, after.memory_layer
    old, new = was.promotion_thresholds, now.promotion_thresholds
    for name in ("confidence_floor", "auto_confidence", "calibrate_from"):
        yield from _lower(f"promotion_thresholds.{name}", getattr(old, name), getattr(new, name))
    yield from _higher("promotion_thresholds.uncalibrated_cap", old.uncalibrated_cap, new.uncalibrated_cap)
    yield from _lower("recall_policy.confidence", was.recall_policy.confidence, now.recall_policy.confidence)
    path = "audit"
    for name in ("floor", "sample_share"):
        yield from _lower(f"{path}.{name}", getattr(was.audit, name), getattr(now.audit, name))
    yield from _higher(f"{path}.min_samples", was.audit.min_samples, now.audit.min_samples)
    for embedder in ("", *sorted({*was.contradiction.embedders, *now.contradiction.embedders})):
        path = f"contradiction.embedders.{embedder}" if embedder else "contradiction"
        one, other = was.contradiction.thresholds_for(embedder), now.contradiction.thresholds_for(embedder)
        yield from _higher(f"{path}.similarity", one.similarity, other.similarity)
    one, other = was.contradiction.judge, now.contradiction.judge
    yield from _higher("contradiction.judge.similarity", one.similarity, other.similarity)
    yield from _lower("contradiction.judge.pairs", one.pairs, other.pairs)
    yield from _higher_score("contradiction.judge.contradicts", one.contradicts, other.contradicts)
    if one.by != other.by or (other.by == "model" and one.model != other.model):
        yield f"contradiction.judge.by: {_judge(one)} to {_judge(other)}"
    if other.trusted and not one.trusted:
        yield "contradiction.judge.trusted: false to true"


def _sources(before: Pack, after: Pack) -> Iterator[str]:
    """A proven source promotes on its own word; without the agent its facts are judged by other agents' verdicts."""
    was, now = before.memory_layer, after.memory_layer
    known = _proven(before)
    more = sorted({one[:2] for one in _proven(after) - known})
    for source, extractor in more:
        yield f"proven_sources: also {source} by {extractor}"
    old, new = was.promotion_thresholds, now.promotion_thresholds
    if left := [part for part in old.calibrate_by if part not in new.calibrate_by]:
        yield f"promotion_thresholds.calibrate_by: without {', '.join(left)}"
    if new.working is not None and (old.working is None or new.working < old.working):
        shown = "none" if old.working is None else f"{old.working:g}"
        yield f"promotion_thresholds.working: {shown} to {new.working:g}"
    if now.contradiction.own_updates and not was.contradiction.own_updates:
        yield "contradiction.own_updates: false to true"


def _proven(pack: Pack) -> set[tuple[str, str, str]]:
    """Each source that a pack declares proven, with an extractor and a class."""
    return {
        (source.vouched or f"credential {source.credential}", extractor, write_class)
        for source in pack.memory_layer.proven_sources
        for extractor in source.extractors
        for write_class in source.classes
    }


def _judge(policy: JudgePolicy) -> str:
    return f"model {policy.model}" if policy.by == "model" else policy.by


def _trust(before: Pack, after: Pack) -> Iterator[str]:
    was, now = before.memory_layer.trust, after.memory_layer.trust
    yield from _lower("trust.floor", was.floor, now.floor)
    yield from _lower("trust.instruction_penalty", was.instruction_penalty, now.instruction_penalty)
    yield from _higher_score("trust.guard", was.guard, now.guard)
    for name in type(was.sources).model_fields:
        yield from _higher(f"trust.sources.{name}", getattr(was.sources, name), getattr(now.sources, name))
    for name in sorted({*was.tools, *now.tools}):
        yield from _higher(
            f"trust.tools.{name}", was.tools.get(name, was.sources.tool), now.tools.get(name, now.sources.tool)
        )
    old, new = before.memory_layer.imports, after.memory_layer.imports
    yield from _higher("imports.trust", old.trust, new.trust)
    for name in sorted({*old.systems, *new.systems}):
        path = f"imports.systems.{name}"
        yield from _higher(path, old.systems.get(name, old.trust), new.systems.get(name, new.trust))


def _classes(before: Pack, after: Pack) -> Iterator[str]:
    for name in _CLASSES:
        was, now = before.policy_for(name), after.policy_for(name)
        path = f"classes.{name}"
        yield from _lower(f"{path}.evidence_required", was.evidence_required, now.evidence_required)
        more = sorted(set(now.consent_purposes) - set(was.consent_purposes))
        if more and "*" not in was.consent_purposes:
            yield f"{path}.consent_purposes: also {', '.join(more)}"
        if was.risk == "high" and now.risk == "low":
            yield f"{path}.risk: high to low"
        labels = after.labels if now.classifications_allowed is None else now.classifications_allowed
        if was.classifications_allowed is not None and not set(labels) <= set(was.classifications_allowed):
            yield f"{path}.classifications_allowed: widened"
        if was.approval == "human" and now.approval == "auto":
            yield f"{path}.approval: human to auto"
        if was.auto_promotion is not None and now.auto_promotion is not None:
            yield from _lower(
                f"{path}.auto_promotion.threshold", was.auto_promotion.threshold, now.auto_promotion.threshold
            )
        if was.auto_resolve is None and now.auto_resolve is not None:
            yield f"{path}.auto_resolve: none to margin {now.auto_resolve.margin:g}"
        if was.auto_resolve is not None and now.auto_resolve is not None:
            yield from _lower(f"{path}.auto_resolve.margin", was.auto_resolve.margin, now.auto_resolve.margin)
            if was.auto_resolve.fresher_evidence and not now.auto_resolve.fresher_evidence:
                yield f"{path}.auto_resolve.fresher_evidence: true to false"


def _labels(before: Pack, after: Pack) -> Iterator[str]:
    for label in before.classifications:
        if label.sensitive and not (after.has_label(label.name) and after.is_sensitive(label.name)):
            end = "true to false" if after.has_label(label.name) else "the label is left out"
            yield f"classifications.{label.name}.sensitive: {end}"
        lower = [one.name for one in before.classifications if before.rank(one.name) < before.rank(label.name)]
        for other in lower:
            # What a detector finds raises a label, and only a higher one: the order decides what is raised at all.
            if after.has_label(label.name) and after.has_label(other) and after.rank(label.name) < after.rank(other):
                yield f"classifications.{label.name}: no longer above {other}"


def _ontology(before: Pack, after: Pack) -> Iterator[str]:
    for name, predicate in sorted(before.ontology.predicates.items()):
        now = after.ontology.predicates.get(name)
        label = now.label if now is not None else None
        if predicate.label is not None and (label is None or not after.at_least(label, predicate.label)):
            yield f"ontology.predicates.{name}.label: {predicate.label} to {label or 'none'}"


def _identity(before: Pack, after: Pack) -> Iterator[str]:
    """An alias lets a consent under one name count for facts under another; without it they are two subjects again."""
    was, now = before.identity.aliases, after.identity.aliases
    for alias in sorted({*was, *now}):
        if was.get(alias) != now.get(alias):
            yield f"identity.aliases.{alias}: {was.get(alias) or 'none'} to {now.get(alias) or 'none'}"


def _memory_policy(before: Pack, after: Pack) -> Iterator[str]:
    was, now = before.memory_layer, after.memory_layer
    if was.memory_policy.tier_routing != now.memory_policy.tier_routing:
        # The durable tier takes a second person: where facts go decides whether one is asked.
        yield "memory_policy.tier_routing: changed"
    ways = ("block", "hold", "mark_both")
    if ways.index(now.contradiction.unresolved) > ways.index(was.contradiction.unresolved):
        yield f"contradiction.unresolved: {was.contradiction.unresolved} to {now.contradiction.unresolved}"
    if now.subject.confirms and not was.subject.confirms:
        yield "subject.confirms: false to true"
    if now.subject.erasure == "at_once" and was.subject.erasure == "officer":
        yield "subject.erasure: officer to at_once"
    kept = [rule.model_dump() for rule in now.flag_for_review]
    for place, rule in enumerate(was.flag_for_review):
        if rule.model_dump() not in kept:
            yield f"flag_for_review.{place}: left out or changed"


def _roles(before: Pack, after: Pack) -> Iterator[str]:
    for role in sorted(before.roles):
        more = [
            label
            for label in after.labels_for(role)
            if before.has_label(label) and label not in before.labels_for(role)
        ]
        if more:
            yield f"roles.{role}.classifications_allowed: also {', '.join(more)}"


def _redaction(before: Pack, after: Pack) -> Iterator[str]:
    kept = {rule.detector or rule.name: rule for rule in after.policy_layer.guardrails.redaction_rules}
    for rule in before.policy_layer.guardrails.redaction_rules:
        if rule.enabled and (why := _masks_less(rule, kept.get(rule.detector or rule.name), after)) is not None:
            yield f"guardrails.redaction_rules.{rule.name}: {why}"
    was, now = before.policy_layer.guardrails.tagger, after.policy_layer.guardrails.tagger
    yield from _higher_score("guardrails.tagger", was, now)
    known = {rule.detector or rule.name for rule in before.policy_layer.guardrails.redaction_rules}
    for name, rule in kept.items():
        # It runs before the built-in detectors: what it leaves readable, they do not find any more.
        if name not in known and rule.enabled and (rule.keep_last is not None or rule.classification is None):
            yield f"guardrails.redaction_rules.{rule.name}: added, and masks only in part or raises no label"
    masked = after.identity.classified_attributes
    for name, attribute in sorted(before.identity.classified_attributes.items()):
        if masked.get(name) != attribute:
            yield f"identity.classified_attributes.{name}: {'changed' if name in masked else 'left out'}"


def _exceptions(before: Pack, after: Pack) -> Iterator[str]:
    """What is excepted can be read and raises no label, so a second person looks at further values.

    They are counted, not named: activations and events hold no content.
    """
    was = before.policy_layer.guardrails.redaction_exceptions
    now = after.policy_layer.guardrails.redaction_exceptions
    for detector in type(now).model_fields:
        known: tuple[str, ...] = getattr(was, detector)
        more = [one for one in getattr(now, detector) if one not in known and f"*@{one.partition('@')[2]}" not in known]
        if more:
            yield f"guardrails.redaction_exceptions.{detector}: {len(more)} more"


def _masks_less(rule: RedactionRule, now: RedactionRule | None, after: Pack) -> str | None:
    if now is None:
        return "left out"
    if not now.enabled:
        return "turned off"
    if (now.detector, now.pattern, now.model) != (rule.detector, rule.pattern, rule.model):
        return "looks for something else"
    if (now.keep_last or 0) > (rule.keep_last or 0):
        return f"keeps {now.keep_last} characters"
    label = rule.classification
    if label is not None and (now.classification is None or not after.at_least(now.classification, label)):
        return f"raises to {now.classification or 'nothing'} instead of {label}"
    return None


def _shorter(path: str, before: timedelta | None, after: timedelta | None) -> Iterator[str]:
    """None is no end."""
    if after is not None and (before is None or after < before):
        yield f"{path}: {_days(before)} to {_days(after)}"


def _days(term: timedelta | None) -> str:
    if term is None:
        return "no end"
    days = term.total_seconds() / 86400
    return f"{days:g} day{'' if days == 1 else 's'}"


def _horizons(before: Pack, after: Pack) -> Iterator[str]:
    was, now = before.memory_layer.retention, after.memory_layer.retention
    yield from _shorter("retention.replay_horizon", was.replay_horizon, now.replay_horizon)
    for kind in was.captures:
        yield from _shorter(f"retention.captures.{kind}", was.captures[kind], now.captures[kind])
    yield from _shorter("retention.archives", was.archives, now.archives)
    yield from _shorter("undo.term", before.memory_layer.undo.term, after.memory_layer.undo.term)
    yield from _shorter(
        "rejections.remember", before.memory_layer.rejections.remember, after.memory_layer.rejections.remember
    )


_RULES = (
    *(
        _thresholds,
        _sources,
        _trust,
        _classes,
        _labels,
        _identity,
        _ontology,
        _memory_policy,
        _roles,
        _redaction,
        _exceptions,
    ),
    _horizons,
)
