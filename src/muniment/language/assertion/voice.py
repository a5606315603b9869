"""A passive sentence with its agent turned into the active one that says the same."""

from dataclasses import replace

from muniment.language.assertion.lexicon import words
from muniment.language.assertion.reading import Element, Reading

# What the form of `be` before a participle makes of the verb in the active voice, and of the tense of the text.
_PAST = words("was were")
_PRESENT = words("is are am 's 're 'm")
_MODALS = words("must can may might should could would also always usually often never")


def active(reading: Reading) -> Reading | None:
    """`Ann approved the refund` for `The refund was approved by Ann`; None where it is no such sentence."""
    elements = reading.elements
    verb = next((element for element in elements if element.be and element.form == "past"), None)
    if verb is None or verb.preposition or verb.place == 0 or reading.sentences > 1 or reading.progressive:
        return None
    if elements[0].preposition or any(element.joined for element in elements[: verb.place]):
        return None
    agent = _agent(reading, verb)
    pronouns = reading.pronouns
    if not agent:
        if sum(said.startswith("by ") for said in pronouns) != 1 or len(pronouns) > 1:
            return None
        pronouns = [pronouns[0].removeprefix("by ")]
    return Reading(
        elements=_turned(elements, verb, agent),
        pronouns=list(pronouns),
        tense=reading.tense - ({"past"} if verb.be in _PAST else {"present"} if verb.be in _PRESENT else set[str]()),
        question=reading.question,
        negations=reading.negations,
        embedded=reading.embedded,
    )


def _agent(reading: Reading, verb: Element) -> list[Element]:
    later = reading.elements[verb.place + 1 :]
    first = next((element for element in later if element.preposition == "by" and element.kind == "word"), None)
    if first is None:
        return []
    run = [first]
    for element in reading.elements[first.place + 1 :]:
        if element.chunk != first.chunk or element.kind != "word":
            break
        run.append(element)
    return run


def _turned(elements: list[Element], verb: Element, agent: list[Element]) -> list[Element]:
    form = "past" if verb.be in _PAST or verb.be == "been" else ""
    taken = {id(element) for element in agent}
    subject = [element for element in elements[: verb.place] if element.stem not in _MODALS]
    modals = [element for element in elements[: verb.place] if element.stem in _MODALS]
    rest = [element for element in elements[verb.place + 1 :] if id(element) not in taken]
    core = [
        *(replace(element, preposition="", chunk=0) for element in agent),
        *(replace(element, chunk=0) for element in modals),
        replace(verb, form=form, after_be=False, be="", chunk=0),
        *(replace(element, before_be=False, chunk=element.chunk - verb.chunk) for element in subject),
    ]
    turned = [*core, *(replace(element, chunk=element.chunk + 1) for element in rest)]
    return [replace(element, place=place) for place, element in enumerate(turned)]
