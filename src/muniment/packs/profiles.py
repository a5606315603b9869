"""Describes the built-in profiles: thresholds, caps and proven sources by class, and what waits for whom (PAC-8)."""

from collections.abc import Iterator

from muniment.model.fields import WriteClass
from muniment.model.profile import Profile, ProfileClass, Waiting
from muniment.pack import PROFILES, Pack, format_duration, profile_pack
from muniment.pack.fields import WRITE_CLASSES

_SUMMARIES = {
    "strict": "Nothing is promoted without a person.",
    "assisted": "A company's assistant: stated preferences and facts of a session at once; the rest waits for people.",
    "personal": "One user's own assistant: what the user says at once; what is sensitive waits.",
}
_SECOND_PERSON = "a named reviewer who neither said, wrote nor edited it"


def profiles() -> list[Profile]:
    """Describe every profile, the strictest first."""
    return [describe(name, profile_pack(name)) for name in PROFILES]


def describe(name: str, pack: Pack) -> Profile:
    """Describe the profile of that name by what its pack says."""
    layer = pack.memory_layer
    return Profile(
        name=name,
        pack=pack.ref,
        summary=_SUMMARIES[name],
        cap=layer.promotion_thresholds.uncalibrated_cap,
        classes=tuple(_class(write_class, pack) for write_class in WRITE_CLASSES),
        waiting=tuple(_waiting(pack)),
        own_updates=layer.contradiction.own_updates,
        sample_share=layer.audit.sample_share,
        undo_term=format_duration(layer.undo.term),
    )


def _class(write_class: WriteClass, pack: Pack) -> ProfileClass:
    layer = pack.memory_layer
    automatic = pack.policy_for(write_class).auto_promotion
    sources = [one for one in layer.proven_sources if write_class in one.classes]
    return ProfileClass(
        write_class=write_class,
        threshold=automatic.threshold if automatic is not None else None,
        working=layer.promotion_thresholds.working if automatic is not None else None,
        proven_sources=tuple(f"{one.vouched or one.credential} ({', '.join(one.extractors)})" for one in sources),
    )


def _waiting(pack: Pack) -> Iterator[Waiting]:
    automatic = [name for name in WRITE_CLASSES if pack.policy_for(name).auto_promotion is not None]
    others = [name for name in WRITE_CLASSES if name not in automatic]
    own = pack.memory_layer.contradiction.own_updates
    confirms = pack.memory_layer.subject.confirms
    themselves = "the person themselves, for facts about them and their own runs alone, or "
    person = f"{themselves if confirms else ''}{_SECOND_PERSON}"
    reviewer = f"{themselves if confirms else ''}a reviewer"
    yield Waiting(what="sensitive", waits_for=f"the subject's consent, then {person}")
    yield Waiting(what="durable, or a correction", waits_for=_SECOND_PERSON)
    if automatic:
        instead = "; a user's newer fact about themselves replaces their own older one where rules find it"
        yield Waiting(what="contradicting", waits_for=f"{reviewer}{instead if own else ''}")
        yield Waiting(what="low in trust", waits_for="a reviewer")
        yield Waiting(what="below its threshold, or of a source nobody has judged", waits_for=reviewer)
    yield Waiting(what=f"class {', '.join(others)}", waits_for="a reviewer")
