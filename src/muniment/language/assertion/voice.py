"""Turns a passive sentence that names its agent into the active sentence that says the same."""

from dataclasses import replace

from muniment.language.assertion.parse import Element, ParsedText
from muniment.language.data_files import word_set

# Forms of `be` before a participle, by the tense that the verb has in the active voice.
_PAST = word_set("was were")
_PRESENT = word_set("is are am 's 're 'm")
_MODALS = word_set("must can may might should could would also always usually often never")


def to_active_voice(parsed: ParsedText) -> ParsedText | None:
    """Return `Ann approved the refund` for `The refund was approved by Ann`; None where it is no such sentence."""
    elements = parsed.elements
    verb = next((element for element in elements if element.be and element.form == "past"), None)
    if verb is None or verb.preposition or verb.position == 0 or parsed.sentences > 1 or parsed.progressive:
        return None
    if elements[0].preposition or any(element.conjunction for element in elements[: verb.position]):
        return None
    agent = _agent(parsed, verb)
    pronouns = parsed.pronouns
    if not agent:
        if sum(said.startswith("by ") for said in pronouns) != 1 or len(pronouns) > 1:
            return None
        pronouns = [pronouns[0].removeprefix("by ")]
    return ParsedText(
        elements=_turned(elements, verb, agent),
        pronouns=list(pronouns),
        tense=parsed.tense - ({"past"} if verb.be in _PAST else {"present"} if verb.be in _PRESENT else set[str]()),
        question=parsed.question,
        negations=parsed.negations,
        has_subclause=parsed.has_subclause,
    )


def _agent(parsed: ParsedText, verb: Element) -> list[Element]:
    later = parsed.elements[verb.position + 1 :]
    first = next((element for element in later if element.preposition == "by" and element.kind == "word"), None)
    if first is None:
        return []
    run = [first]
    for element in parsed.elements[first.position + 1 :]:
        if element.chunk != first.chunk or element.kind != "word":
            break
        run.append(element)
    return run


def _turned(elements: list[Element], verb: Element, agent: list[Element]) -> list[Element]:
    form = "past" if verb.be in _PAST or verb.be == "been" else ""
    taken = {id(element) for element in agent}
    subject = [element for element in elements[: verb.position] if element.stem not in _MODALS]
    modals = [element for element in elements[: verb.position] if element.stem in _MODALS]
    rest = [element for element in elements[verb.position + 1 :] if id(element) not in taken]
    core = [
        *(replace(element, preposition="", chunk=0) for element in agent),
        *(replace(element, chunk=0) for element in modals),
        replace(verb, form=form, after_be=False, be="", chunk=0),
        *(replace(element, before_be=False, chunk=element.chunk - verb.chunk) for element in subject),
    ]
    turned = [*core, *(replace(element, chunk=element.chunk + 1) for element in rest)]
    return [replace(element, position=position) for position, element in enumerate(turned)]
