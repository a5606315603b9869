"""Strips the framing of a question: polite or roundabout openings and endings become one fixed form.

In the patterns `{one}` is whoever asks, `{modal}` a verb such as `can`, `{best}` praise that adds nothing.
"""

import re
from collections.abc import Sequence

from muniment.language.assertion.tokens import Token

# An opening may have another before it.
_MOST_OPENINGS = 4
_WITH_AGENT = frozenset(("how ", "can ", "why ", "where "))
_PERSONS = frozenset(("i", "we", "you"))

_PARTS: dict[str, str] = {
    "one": r"(?:i|we|you|one|someone|somebody|anyone|anybody|people|a person|a man|a guy|u)",
    "modal": r"(?:can|could|should|shall|would|will|may|might|do|does|did|must)",
    "be": r"(?:is|are|was|were|would be|will be|could be|can be|should be|might be|may be|has been|have been)",
    "the": (
        r"(?:the|some|some of the|some of|a|an|any|any of the|few|a few|one of the|your|the most|a list of|"
        r"the list of)"
    ),
    "best": (
        r"(?:best|good|great|better|easy|easiest|simple|simplest|possible|effective|most effective|efficient|"
        r"most efficient|right|correct|proper|ideal|different|various|main|top|really|very|common|most common|"
        r"useful)(?! and | or )"
    ),
    "way": (
        r"(?:way|ways|method|methods|steps|step|tips|tip|tricks|trick|technique|techniques|approach|approaches|"
        r"procedure|process|strategy|strategies|solution|solutions|tips and tricks|thing|things)"
    ),
    "asking": r"(?:what|how|why|who|when|where|which|if|whether) ",
    "please": r"(?:please|kindly|possibly|actually|really|exactly|ever|best|easily|effectively|quickly|properly)",
}
# First words, pattern, replacement: tried in this order at the start of every sentence until none matches.
_OPENINGS: tuple[tuple[str, str, str], ...] = (
    # Words before the question itself.
    (
        "so well and but also hi hello hey ok okay please seriously really honestly basically generally overall",
        r"\w+ ,? ?",
        "",
    ),
    ("according in as for", r"(?:according to you|in your opinion|in your view|in general|for you|as of now) ,? ?", ""),
    (
        "can could would will does do",
        r"\w+ {one} (?:{please} )?(?:tell|explain|describe|say)(?: to)?(?: me| us)?(?: about)? (?={asking})",
        "",
    ),
    (
        "can could would will",
        r"\w+ {one} (?:{please} )?(?:tell|explain|describe|suggest|recommend|give|list|name|provide|share)(?: to)?"
        r"(?: me| us)? (?:about )?(?:{the} ){0,4}(?:{best} ){0,4}",
        "what ",
    ),
    (
        "do does did",
        r"\w+ {one} (?:really |actually |honestly )?(?:know|have an idea|have any idea|understand|remember)(?: about)? "
        r"(?={asking})",
        "",
    ),
    (
        "do did would",
        r"\w+ you (?:really |actually |honestly )?(?:think|believe|feel|agree|consider|say|suppose)(?: that| like)? "
        r"(?!in |of |about )",
        "",
    ),
    ("is", r"is it (?:really )?(?:true|a fact|right|correct) (?:that|to say that) ", ""),
    ("i", r"i (?:want|would like|need|'d like) to know (?={asking})", ""),
    (
        "what",
        r"what (?:do|would|did) {one} (?:think|believe|consider|feel|say|suggest|recommend|prefer)(?: that)?"
        r"(?: to be)? {be} (?:{the} ){0,4}",
        "what ",
    ),
    # Opinions and feelings.
    ("what", r"what (?:do|does|did) {one} (?:think|feel|say) (?:of|about) ", "think_of "),
    (
        "what",
        r"what (?:is|are|'s) (?:your|the) (?:opinion|opinions|view|views|thoughts|thought|take|review|reviews|idea|"
        r"feelings) (?:on|about|of|regarding|towards) ",
        "think_of ",
    ),
    ("how", r"how (?:do|does|did) {one} (?:feel|think) about ", "think_of "),
    (
        "what how",
        r"(?:what (?:is|was|would) it (?:be )?like|(?:what|how) (?:does|did|would) it feel(?: like)?|"
        r"how is it(?: like)?)"
        r"(?: to be| being| to have| having| to get| to)? ",
        "what_like ",
    ),
    # How something is done.
    (
        "what which",
        r"\w+ (?:{be} )?(?:{the} ){0,4}(?:{best} |and ){0,4}{way} (?:that |through which |by which |in which |on how )?"
        r"(?:{one} (?:{modal} )?|to |of |for |on |)(?:go about |use to )?",
        "how ",
    ),
    (
        "what which",
        r"\w+ (?:{modal} )?{one} (?:{please} )?(?:do|have to do|need to do|must do|try|take)(?: in order| so as)? "
        r"(?:to|for|so that i can) ",
        "how ",
    ),
    ("is are", r"\w+ there (?:{the} |{best} ){0,4}{way} (?:to |of |for |that |{one} |{modal} |me to ){0,4}", "how "),
    # Times, causes, prices, places, kinds.
    ("what when", r"(?:what|when) {be} (?:{the} ){0,4}(?:{best} ){0,4}time (?:to|for) ", "when "),
    ("at what", r"(?:at )?what time (?:{modal} |is |are |was |were )?", "when "),
    ("how", r"how much (?:does|do|did|would|will) (?=.* cost\b)", "what "),
    ("who", r"who (?:is|are|was|were) (?:the |your ){0,4}(?:best|greatest|top) ", "what best "),
    (
        "what for how",
        r"(?:what (?:{be} )?(?:{the} ){0,4}(?:{best} ){0,4}reasons?(?: why| behind| for| that)?|for what reason|"
        r"how come|what (?:{modal} )?(?:makes|make|cause|causes|caused)|"
        r"what {be} (?:{the} ){0,4}(?:{best} ){0,4}causes? (?:of|for|behind)) ",
        "why ",
    ),
    (
        "how",
        r"how (?:{modal} |to )?(?:{one} |to |{please} ){0,4}"
        r"(?:go about |start to |begin to |be able to |manage to )?",
        "how ",
    ),
    (
        "why",
        r"why (?:is it that |is it |exactly |{modal} |is |are |was |were )?"
        r"(?:(?:so many |many |most |some |a lot of )?(?:people|we|you|i) )?(?:still |really |always )?",
        "why ",
    ),
    ("what", r"what (?:(?:would |will |could )?(?:happens|happen) (?:if|when)|if) ", "what_if "),
    (
        "where from",
        r"(?:from )?where (?:{modal} )?(?:{one} )?(?:find|get|buy|see|look for)(?: out)? (?:{the} ){0,4}"
        r"(?:{best} ){0,4}",
        "where ",
    ),
    ("is was would", r"\w+ it (?:be )?(?:possible|feasible) (?:to|for {one} to|that) ", "can "),
    ("can could", r"\w+ (?:{one} )?(?:{please} ){0,4}", "can "),
    (
        "what which",
        r"\w+(?: one| ones)?(?: {be}| 's)?(?: {the}| {best}){0,4}"
        r"(?: (?:example|examples|types|kinds|sorts|type|kind) of)? ",
        "what ",
    ),
)
# Tried at the end of a question.
_ENDINGS: tuple[str, ...] = (
    r" (?:and )?(?:why|how|why so|if so why|if so how|why or why not|if yes why|if yes how|if yes then how|and how)",
    r" (?:in the world|in life|in your life|of all time|in your opinion|according to you|out there|these days|nowadays|"
    r"right now|today|at the moment|in general|on earth|in history|till date|so far|for me|for you|and why)",
)


def _pattern(text: str) -> re.Pattern[str]:
    for name, choices in _PARTS.items():
        text = text.replace("{" + name + "}", choices)
    return re.compile(text)


def _by_first_word() -> dict[str, list[tuple[re.Pattern[str], str]]]:
    patterns: dict[str, list[tuple[re.Pattern[str], str]]] = {}
    for firsts, text, replacement in _OPENINGS:
        pattern = _pattern(text)
        for first in firsts.split():
            patterns.setdefault(first, []).append((pattern, replacement))
    return patterns


_OPENINGS_BY_FIRST_WORD = _by_first_word()
_ENDING_PATTERNS = [_pattern(text + r" ?[?.!]*$") for text in _ENDINGS]


def strip_framing(tokens: Sequence[Token]) -> list[Token]:
    """Replace each framing in the tokens of a question by the word that stands for it."""
    kept: list[Token] = []
    for sentence in _split_sentences(tokens):
        kept += _replace_opening(sentence)
    return _cut_ending(kept)


def _split_sentences(tokens: Sequence[Token]) -> list[list[Token]]:
    sentences: list[list[Token]] = [[]]
    for token in tokens:
        sentences[-1].append(token)
        if token.kind == "stop" and token.lower[0] in ".!?":
            sentences.append([])
    return sentences


def _replace_opening(sentence: list[Token]) -> list[Token]:
    for _ in range(_MOST_OPENINGS):
        text = " ".join([token.lower for token in sentence])
        for pattern, replacement in _OPENINGS_BY_FIRST_WORD.get(sentence[0].lower if sentence else "", ()):
            match = pattern.match(text)
            if match is None or match.end() >= len(text) or not match[0].endswith(" "):
                continue
            used = match[0].count(" ")
            words = [Token("word", word, False, True) for word in replacement.split()]
            if replacement in _WITH_AGENT:
                # `How can I help you` and `how can you help me` ask two things.
                words += [token for token in sentence[:used] if token.lower in _PERSONS]
            if [token.lower for token in sentence[:used]] == [word.lower for word in words]:
                return sentence
            sentence = [*words, *sentence[used:]]
            break
        else:
            return sentence
    return sentence


def _cut_ending(tokens: list[Token]) -> list[Token]:
    text = " ".join(token.lower for token in tokens)
    for pattern in _ENDING_PATTERNS:
        match = pattern.search(text)
        if match is not None and match.start() > 0:
            kept = text[: match.start()].count(" ") + 1
            stop = [token for token in tokens[-1:] if token.kind == "stop"]
            tokens, text = [*tokens[:kept], *stop], text[: match.start()]
    return tokens
