"""Finds where a clause ends, and whether it states something as the speaker's own view."""

from dataclasses import dataclass

from muniment.language.patterns import caseless

# Ends the object of a verb.
_OBJECT_END = caseless(
    r"(?:,? (?:because|since (?:I|I'm|I've|they|they're|it|it's|he|she|we|the|my|that"
    r"|this|there|most|you|some)|due to|but|though|although|while|whereas|however"
    r"|unless|if|so (?:I|that|please|can|could|do"
    r"|what|any|it|my|we|if|is|are|maybe|let|the|how)|as (?:I|I'm|they|they're|it|it's|he|she|we|that|this|most|there)"
    r"|and (?:I|I'm|I've|I'd|my|we|it|it's|they|he|she|am|have|do|don't|was|that's|this|so|then|now|by the way|would"
    r"|will|could|can you|please|was|were|been)"
    r"|or (?:do|should|is|are|can)|when (?:I|it|they|you|we|the))\b)"
    r"|, (?:do|does|did|can|could|would|will|should|is|are|isn't|aren't|don't|what"
    r"|what's|how|which|where|why|who|when|any"
    r"|please|so|then|right|thanks|thank|just|I|I'm|I've|I'd|we|it|it's|they|that|this|there|he|she|you|let|have|and"
    r" (?:do|can|could|would|is|are|what|how|any)|maybe|perhaps|hopefully|though)\b"
    r"| - |: |;|\(| \.\.\. ?|$"
)
# Ends a reason.
_REASON_END = caseless(
    r", (?:so|but|do|does|did|can|could|would|will|should|is|are|what|how|which|where"
    r"|any|please|I|we|and|though|which)\b"
    r"|,? (?:but|so|which) |,? and (?:I|so|we|prefer|much)\b| - |;|\(| \.\.\. ?|: |$"
)
_REASON = caseless(r"^,? (because|since|due to|as) ")
# A finished clause before the speaker's own.
_OPENING = caseless(r"(?:[,;:(] ?| - | \.\.\. |\b(?:because|since|but|though|although|so|and|that) )$")
_ASKING = caseless(
    r"(?:^|[,:] |- |\b(?:and|so|but|or) )(?:do|does|did|can|could|would|will|should"
    r"|shall|is|are|isn't|aren't|what|what's|how"
    r"|which|where|why|who|when|any|have|has|might|may|got|know|mind)\b"
)
_CONDITION = caseless(
    r"\b(?:if|whether|unless|suppose|supposing|imagine|wish|as if|as though|in case|pretend|assuming|assume|once|until"
    r"|till|say)\s*(?:that )?$"
)
_INVERTED = caseless(
    r"\b(?:do|does|did|would|should|could|can|will|shall|might|may|am|why|what|which|who|where|when|whenever|how|nor"
    r"|neither)(?:n't| not)? $"
)
_REASON_CLAUSE = caseless(r"\b(?:(?:of|me|like) how|(?:that's|that is|which is|reason|reasons) why) $")
_DENIED = caseless(
    r"\b(?:not that|don't think|do not think|didn't say|never said|wouldn't say|can't say|cannot say|not because|doubt"
    r"|doesn't mean|not saying|not like|not sure|isn't true|not true|as though|no way|it's not)\b[^,]{0,40}$"
)
_REPORTED = caseless(
    r"\b(?:said|says|say|saying|told|tells|tell|thinks|think|thought|claims|claimed"
    r"|believes|assumes|assumed|heard|swears"
    r"|insists|insisted|convinced|jokes|joked|suggested|suggests|asked|asks|wrote|writes|according|quote|lyrics|song"
    r"|character|narrator)\b[^.]{0,40}$"
)
_OWN_VIEW = caseless(
    r"\bI(?:'ve|'d)? (?:(?:already|just|also|do|must|have|would|can|should|honestly"
    r"|really) )*(?:said|say|told you|tell you"
    r"|think|thought|believe|guess|suppose|feel like|feel|swear|mentioned|explained"
    r"|know|admit|confess|realized|realised"
    r"|noticed|found|remember)\b[^,]{0,24}$"
    r"|\b(?:tell|told) (?:you|them|the team) (?:that )?$|\bplease (?:remember|note|know) (?:that )?$"
)
_HEDGED = caseless(r"\b(?:I (?:think|guess|suppose|believe)|maybe|perhaps|probably|kind of|sort of|might)\b")
_LAST_WORDS = 160
_TURNS = caseless(r",? (?:but|though|although|however,|whereas) |, (?:so|and|as|since|because) |; | - ")
_TRAILING = caseless(
    r"(?:,? (?:anymore|any more|any longer|now|these days|nowadays|lately|in general|at all|too|as well|though|either"
    r"|right now|most of the time|so far|whatsoever|please|thanks|to be honest|honestly|instead|anyway|of course"
    r"|if possible|haha|lol|for now|personally))+$"
)
_NO_MORE = caseless(r"\b(?:anymore|any more|any longer|no longer)\b")


@dataclass(frozen=True)
class Complement:
    """What follows a verb: its object, the reason given, where the object ends, and whether it is no longer so."""

    object: str
    reason: str
    end: int
    ended: bool


def complement_of(text: str, start: int, limit: int) -> Complement:
    """Return the complement of the verb that ends at `start`; it ends before `limit`."""
    after = text[start:limit]
    cut = _OBJECT_END.search(after).start()
    about = after[:cut]
    why = ""
    opened = _REASON.search(after[cut:])
    if opened:
        body = after[cut + opened.end() :]
        why = body[: _REASON_END.search(body).start()]
        if limit < len(text) and start + cut + opened.end() + len(why) >= limit:
            # The reason is another verb of the speaker's, which is read by itself.
            why = ""
        elif why:
            word = opened.group(1).lower()
            why = f" {'because' if word in ('since', 'as') else word} {why.strip()}"
    bare = _TRAILING.sub("", about).strip(" ,;:-")
    return Complement(bare, why, start + cut, bool(_NO_MORE.search(about)))


def is_own_statement(before: str) -> bool:
    """Say whether what follows these words of a sentence is stated as a fact by the speaker."""
    near = before[-_LAST_WORDS:]
    turned = list(_TURNS.finditer(near))
    if turned:
        # Behind such a turn the speaker speaks for themselves again, whatever was reported or supposed before.
        near = near[turned[-1].end() :]
    if _CONDITION.search(near) or _DENIED.search(near):
        return False
    if _INVERTED.search(near) and not _REASON_CLAUSE.search(near):
        return False
    return not _REPORTED.search(near) or bool(_OWN_VIEW.search(near))


def question_follows(after: str) -> bool:
    """Say whether a question begins within these words, so that what comes before them is none."""
    return bool(_ASKING.search(after))


def is_within_question(before: str) -> bool:
    """Say whether these words begin a question that continues after them."""
    return bool(_ASKING.search(before)) and not _OPENING.search(before)


def is_hedged(words: str) -> bool:
    """Say whether the speaker leaves it open."""
    return bool(_HEDGED.search(words))
