"""What of a message is worth knowing later, and which of its other sentences may stand beside a fact (CAN-11).

Both need the readers of the tenant's language version, where it has any, and are decided before a candidate is made of
a sentence: what is not worth knowing leaves no candidate, no refusal and no trace.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from muniment.candidates.rules import Draft, Found
from muniment.language.instructions import suspicion
from muniment.language.messages.worth import RULES_FLOOR, Worth, kept_by_guard
from muniment.language.readers import Readers
from muniment.language.readers.guard import WORTH
from muniment.language.readers.readers import GUARD, TAGGER
from muniment.language.redaction import redactor_of
from muniment.language.redaction.tags import TaggedTexts
from muniment.language.special import find_special
from muniment.pack import Pack

# Characters of the other sentences of a message that are kept beside a fact.
_MOST_CONTEXT = 600
# Detectors that mask nothing until a rule of the pack names them.
_OFF_BY_DEFAULT = frozenset({"person", "location", "address", "url"})


async def worth_knowing(
    found: Mapping[str, Sequence[Found]], readers: Readers | None, pack: Pack
) -> dict[str, list[Found]]:
    """Return what was read in each capture without the sentences below the pack's floor.

    The trained guard judges where the tenant has readers, the rules otherwise. A score within the margin of the guard's
    threshold is kept for a person to look at (CAN-15). Where the pack names no floor, the best sentence of a message of
    which no other is kept needs less. Raises `ReadersUnavailable`.
    """
    floor = pack.memory_layer.worth_floor
    if readers is None:
        least = RULES_FLOOR if floor is None else floor
        return {
            capture_id: [one for one in some if (read := one[1].worth) is None or read[1] >= least]
            for capture_id, some in found.items()
        }
    file = readers.file(GUARD)
    threshold = file.thresholds.get(WORTH, RULES_FLOOR) if floor is None else floor
    texts = list(dict.fromkeys(one.worth[0] for some in found.values() for _, one in some if one.worth is not None))
    scores = dict(zip(texts, await readers.read_guard(texts), strict=True)) if texts else {}

    def judged(some: Sequence[Found]) -> list[Found]:
        worth = [None if (read := one.worth) is None else Worth(read[1], scores[read[0]].worth) for _, one in some]
        kept = kept_by_guard(worth, threshold, file.margin, best=floor is None)
        return [
            (name, replace(one, near_threshold=how == "asked") if one.worth is not None else one)
            for (name, one), how in zip(some, kept, strict=True)
            if how != "left"
        ]

    return {capture_id: judged(some) for capture_id, some in found.items()}


async def with_context(drafts: Sequence[Draft], readers: Readers | None, pack: Pack) -> list[Draft]:
    """Give each draft the other sentences of its message that may count when memories are ranked.

    None that says something of a special category, holds personal data or addresses the model: what a gate would stop
    does not come in beside another fact (CAN-13, CAN-16).
    """
    texts = list(dict.fromkeys(text for draft in drafts for text in draft.beside))
    if not texts:
        return list(drafts)
    harmless = await _harmless(texts, readers, pack)
    return [
        replace(draft, candidate=draft.candidate.model_copy(update={"context": kept}))
        if (kept := " ".join(text for text in draft.beside if text in harmless)[:_MOST_CONTEXT])
        else draft
        for draft in drafts
    ]


async def _harmless(texts: Iterable[str], readers: Readers | None, pack: Pack) -> frozenset[str]:
    redactor = redactor_of(pack)
    kept = [
        text
        for text in texts
        if not find_special(text) and not redactor.text(text).counts and not suspicion(text).addresses_the_model
    ]
    if readers is None or not kept:
        return frozenset(kept)
    found = dict(zip(kept, await readers.read_tags(kept), strict=True))
    tagged = TaggedTexts(readers.file(TAGGER), found, pack.policy_layer.guardrails.tagger)
    named = {rule.detector for rule in pack.policy_layer.guardrails.redaction_rules if rule.enabled}
    off = _OFF_BY_DEFAULT - named
    return frozenset(
        text for text in kept if not tagged.special(text) and all(one.detector in off for one in tagged.findings(text))
    )
