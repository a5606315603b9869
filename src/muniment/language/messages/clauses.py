"""Where a clause begins and ends, and whether what it says is the speaker's own word."""

from dataclasses import dataclass

from muniment.language.messages.rules import rule

# Ends what a verb is about.
_END = rule(
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
_STOP = rule(
    r", (?:so|but|do|does|did|can|could|would|will|should|is|are|what|how|which|where"
    r"|any|please|I|we|and|though|which)\b"
    r"|,? (?:but|so|which) |,? and (?:I|so|we|prefer|much)\b| - |;|\(| \.\.\. ?|: |$"
)
_REASON = rule(r"^,? (because|since|due to|as) ")
# A clause of its own before the speaker comes in.
_OPENING = rule(r"(?:[,;:(] ?| - | \.\.\. |\b(?:because|since|but|though|although|so|and|that) )$")
_ASKING = rule(
    r"(?:^|[,:] |- |\b(?:and|so|but|or) )(?:do|does|did|can|could|would|will|should"
    r"|shall|is|are|isn't|aren't|what|what's|how"
    r"|which|where|why|who|when|any|have|has|might|may|got|know|mind)\b"
)
_CONDITION = rule(
    r"\b(?:if|whether|unless|suppose|supposing|imagine|wish|as if|as though|in case|pretend|assuming|assume|once|until"
    r"|till|say)\s*(?:that )?$"
)
_INVERTED = rule(
    r"\b(?:do|does|did|would|should|could|can|will|shall|might|may|am|why|what|which|who|where|when|whenever|how|nor"
    r"|neither)(?:n't| not)? $"
)
_TOLD_WHY = rule(r"\b(?:(?:of|me|like) how|(?:that's|that is|which is|reason|reasons) why) $")
_DENIED = rule(
    r"\b(?:not that|don't think|do not think|didn't say|never said|wouldn't say|can't say|cannot say|not because|doubt"
    r"|doesn't mean|not saying|not like|not sure|isn't true|not true|as though|no way|it's not)\b[^,]{0,40}$"
)
_REPORTED = rule(
    r"\b(?:said|says|say|saying|told|tells|tell|thinks|think|thought|claims|claimed"
    r"|believes|assumes|assumed|heard|swears"
    r"|insists|insisted|convinced|jokes|joked|suggested|suggests|asked|asks|wrote|writes|according|quote|lyrics|song"
    r"|character|narrator)\b[^.]{0,40}$"
)
_OWN_REPORT = rule(
    r"\bI(?:'ve|'d)? (?:(?:already|just|also|do|must|have|would|can|should|honestly"
    r"|really) )*(?:said|say|told you|tell you"
    r"|think|thought|believe|guess|suppose|feel like|feel|swear|mentioned|explained"
    r"|know|admit|confess|realized|realised"
    r"|noticed|found|remember)\b[^,]{0,24}$"
    r"|\b(?:tell|told) (?:you|them|the team) (?:that )?$|\bplease (?:remember|note|know) (?:that )?$"
)
_HEDGED = rule(r"\b(?:I (?:think|guess|suppose|believe)|maybe|perhaps|probably|kind of|sort of|might)\b")
_LAST_WORDS = 160
_TURNS = rule(r",? (?:but|though|although|however,|whereas) |, (?:so|and|as|since|because) |; | - ")
_TRAILING = rule(
    r"(?:,? (?:anymore|any more|any longer|now|these days|nowadays|lately|in general|at all|too|as well|though|either"
    r"|right now|most of the time|so far|whatsoever|please|thanks|to be honest|honestly|instead|anyway|of course"
    r"|if possible|haha|lol|for now|personally))+$"
)
_NO_MORE = rule(r"\b(?:anymore|any more|any longer|no longer)\b")


@dataclass(frozen=True)
class Remainder:
    """What stands after a verb: what it is about, why, and where it ends."""

    object: str
    reason: str
    end: int
    no_more: bool


def remainder(text: str, start: int, limit: int) -> Remainder:
    """What the verb that ends at `start` is about, before `limit`."""
    after = text[start:limit]
    cut = _END.search(after).start()
    about = after[:cut]
    why = ""
    opened = _REASON.search(after[cut:])
    if opened:
        body = after[cut + opened.end() :]
        why = body[: _STOP.search(body).start()]
        if limit < len(text) and start + cut + opened.end() + len(why) >= limit:
            # Another verb of the speaker's is the reason; it speaks for itself.
            why = ""
        elif why:
            word = opened.group(1).lower()
            why = f" {'because' if word in ('since', 'as') else word} {why.strip()}"
    bare = _TRAILING.sub("", about).strip(" ,;:-")
    return Remainder(bare, why, start + cut, bool(_NO_MORE.search(about)))


def is_own_word(before: str) -> bool:
    """Whether what comes after these words of the sentence is said as a fact, by the speaker."""
    near = before[-_LAST_WORDS:]
    turned = list(_TURNS.finditer(near))
    if turned:
        # Whatever was reported or supposed before, here the speaker turns to themselves.
        near = near[turned[-1].end() :]
    if _CONDITION.search(near) or _DENIED.search(near):
        return False
    if _INVERTED.search(near) and not _TOLD_WHY.search(near):
        return False
    return not _REPORTED.search(near) or bool(_OWN_REPORT.search(near))


def is_answered(after: str) -> bool:
    """Whether the question of the sentence begins only after these words, so that what came before is no question."""
    return bool(_ASKING.search(after))


def asks_before(before: str) -> bool:
    """Whether the words before belong to a question that goes on."""
    return bool(_ASKING.search(before)) and not _OPENING.search(before)


def is_hedged(words: str) -> bool:
    """Whether the speaker leaves it open."""
    return bool(_HEDGED.search(words))
