"""Patterns of sentences that clearly tell something of their speaker, and of those that clearly do not."""

import re


def _one_of(*alternatives: str) -> str:
    return f"({'|'.join(alternatives)})"


# Words by which a sentence, also a question, tells something of its speaker.
OWN = re.compile(
    r"\b(my|mine|our|ours|we|we're|we've|i've|i was|i had|i'm a|i am a|i have|i live|i work|by the way)\b",
    re.IGNORECASE,
)
# Small talk, thanks, requests to the assistant, and what the speaker says about the talk itself.
IDLE = re.compile(
    r"^(and |so,? |also,? |well,? |oh,? )?"
    + _one_of(
        r"(hi|hello|hey|thanks|thank you|great|ok|okay|sure|yes|no|wow|cool|perfect|awesome|bye)\b.{0,60}$",
        r"(that|it|this|these|those)('s| is| are| was| sounds?| looks?| seems?| would| makes?)\b(?! (my|our)).*",
        r"(i think )?i('ll| will)( definitely| also| probably)? "
        r"(check|look into|give|keep|try|consider|start|make sure|see)\b.*",
        r"i('m| am)( also| really| particularly| definitely)? "
        r"(interested in|curious|excited|looking forward|not sure|wondering)\b.*",
        r"i('d| would) (like|love) to (learn|explore|know|hear|ask|see|get)\b.*",
        r"i('m| am) looking for (some |more |a few )?"
        r"(tips|advice|ideas|recommendations|suggestions|information|something)\b.*",
        r"i('ve| have) heard\b.*",
        r"i (really )?(like|love) (the idea|the sound|your|that|how|the suggestion)\b.*",
        r"i need (some |more |a little )?(help|advice|tips|ideas)\b.*",
        r"(please |now |next,? )?(give|write|list|tell|explain|make|create|provide|describe|rewrite)\b.*",
        r"(please |now |next,? )?(summari[sz]e|suggest|continue)\b.*",
        r"let's .*",
        r"let me .{0,40}$",
    ),
    re.IGNORECASE,
)
_RELATIVE = (
    r"my (sister|brother|wife|husband|mom|mother|dad|father|friend|boss|son|daughter|cousin|niece|nephew|dog|cat)"
)
_DONE = (
    r"(bought|got|went|attended|started|finished|visited|moved|graduated|signed|lost|completed|received|joined|sold"
    r"|subscribed|tried|used|met|spent|made|from|working|averaging|invested|work as|live in)"
)
# What the speaker, or somebody near to them, did or is.
PERSONAL = re.compile(
    r"^(also, )?(by the way,?( speaking of [^,]+,)? )?"
    rf"(i|{_RELATIVE})('ve| have|'m| am| was| just| recently| finally| also)? ?"
    rf"(just |recently |actually |finally |been )?{_DONE}\b",
    re.IGNORECASE,
)
ASIDE = re.compile(r"(and |also,? |oh,? |oh, and )?by the way,? .*\b(i|i've|i'm|my)\b", re.IGNORECASE)
# Office talk: turns that say themselves that they change nothing, and sentences with an amount or a date.
OFFICE_NOISE = re.compile(
    r"\b(noise|chatter|background note|housekeeping|administrative|coordination note)\b", re.IGNORECASE
)
OFFICE_FACT = re.compile(
    r"\d[\d,.]*\s?(%|USD|EUR|percent)|\b\d{1,2}, 20\d\d|\b(April|May|June|July|August|September) \d"
)
