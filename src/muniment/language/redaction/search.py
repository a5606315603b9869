"""Searches one text for what is to be masked and what the pack excepts."""

from collections.abc import Iterator, Mapping, Sequence

from muniment.language.redaction.exceptions import Exceptions
from muniment.language.redaction.masks import MaskFinder, TakenSpans, merged, replaced
from muniment.language.redaction.normalised import FILLER, Span, normalise
from muniment.language.redaction.tags import TagFinding
from muniment.language.redaction.tally import NO_VALUES, NOTHING, Matcher, Round, Rule, Spans

# What is found within an excepted value is a part of it, but a password is a secret whatever its words.
_NEVER_EXCEPTED = "api_key"
# One search more is usual where something is excepted.
_MOST_SEARCHES = 12


class Search:
    """Searches texts under the masks and exceptions of one pack."""

    def __init__(self, by_detector: Mapping[str, Rule], masks: MaskFinder, exceptions: Exceptions) -> None:
        self._by_detector = by_detector
        self._masks = masks
        self._exceptions = exceptions

    def find(
        self,
        text: str,
        context: str,
        rules: Sequence[Rule],
        repeated: Matcher = NO_VALUES,
        tagged: Sequence[TagFinding] = (),
        standing: Sequence[tuple[int, int, Rule]] = (),
        *,
        excepting: bool = True,
    ) -> Round:
        """Return what a round finds: the spans to mask overlap neither each other nor a mask.

        `context` is read before the text and not searched. `repeated` finds values that were masked elsewhere. `tagged`
        is what the tagger found, and `standing` what is known to be excepted where the rules do not search again.
        Without `excepting` nothing is excepted.
        """
        if not text:
            return NOTHING
        offset = len(context) + 2 if context else 0
        whole = f"{context}: {text}" if context else text
        masks = self._masks.find(whole)
        blanked = _blank(whole, masks)
        findings = list(_findings(blanked, rules, repeated))
        findings += [
            (one.start + offset, one.end + offset, self._by_detector[one.detector])
            for one in tagged
            if one.detector in self._by_detector
        ]
        findings += [(start + offset, end + offset, rule) for start, end, rule in standing]
        if not findings:
            return NOTHING
        excepted: Spans = []
        if excepting and self._exceptions:
            for _ in range(_MOST_SEARCHES):
                findings, found = self._without_excepted(findings, blanked, offset)
                excepted += found
                if findings or not found:
                    break
                # What stands hides nothing beside it: the rest is searched as if it were masked.
                masks = merged([*masks, *((start, end) for start, end, _ in found)])
                blanked = _blank(whole, masks)
                findings = list(_findings(blanked, rules, repeated))
        taken = TakenSpans(len(whole), masks)
        spans: Spans = []
        for start, end, rule in findings:
            for low, high in taken.free(max(start, offset), end):
                if (low, high) == (start, end) or any(map(str.isalnum, whole[low:high])):
                    spans.append((low - offset, high - offset, rule))
                    taken.take(low, high)
        spans.sort(key=lambda one: one[0])
        return Round(spans, [(start - offset, end - offset, rule) for start, end, rule in excepted])

    def _without_excepted(self, findings: Spans, text: str, offset: int) -> tuple[Spans, Spans]:
        """Set aside what the pack excepts, and what detectors find within a value that it names (RED-5).

        What reaches beyond an excepted value, and what a pattern of the pack finds, is masked with it. In the address
        of a domain whatever else is found is masked.
        """
        exempt = [(one, self._exceptions.match(one[2].detector, text, one[0], one[1])) for one in findings]
        values = TakenSpans(len(text), ((one[0], one[1]) for one, why in exempt if why == "value" and one[0] >= offset))
        excepted: dict[Span, Rule] = {}
        rest: Spans = []
        for one, why in exempt:
            start, end, rule = one
            if why is not None and start >= offset:
                excepted.setdefault((start, end), rule)
            elif rule.detector in (None, _NEVER_EXCEPTED) or values.free(start, end):
                rest.append(one)
        return rest, [(start, end, rule) for (start, end), rule in sorted(excepted.items())]


def _findings(text: str, rules: Sequence[Rule], repeated: Matcher) -> Iterator[tuple[int, int, Rule]]:
    normalised = normalise(text)
    for rule in rules:
        # The longest first, as it covers shorter ones of the same rule.
        for start, end in sorted(rule.find(text, normalised), key=lambda span: (span[0] - span[1], span[0])):
            yield start, end, rule
    if repeated:
        for start, end, rule in repeated.find(normalised.text):
            yield *normalised.span(start, end), rule


def _blank(text: str, spans: Sequence[Span]) -> str:
    return replaced(text, ((start, end, FILLER * (end - start)) for start, end in spans))
