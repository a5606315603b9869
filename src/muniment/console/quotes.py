"""Quotes: a proposal and its source with the words marked that it came from, and those that address the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from muniment.console.spans import pretty, span_in_payload, span_in_text
from muniment.language.instructions import addressing_spans
from muniment.model.trail import Evidence

# Words that address the model are looked for in so many characters from the beginning of a text.
MOST_READ = 20_000
Span = tuple[int, int]
Shown = Markup | str


@dataclass(frozen=True)
class Quotes:
    """The texts of a proposal's page; `marks_words` says whether words that address the model are marked in any."""

    statement: Shown
    value: Shown | None
    references: dict[str, Shown]
    text: Shown | None
    payload: Shown | None
    fact: Shown | None
    marks_words: bool


def quotes_of(found: Evidence) -> Quotes:
    """Mark the words of a proposal, its references and its source."""
    candidate = found.proposal.candidate
    quoting = _Quoting()
    content = found.capture.content if found.capture is not None else None
    said = content.text if content is not None else None
    fact = content.fact.model_dump(mode="json", exclude_none=True) if content is not None and content.fact else None
    shown = {"payload": content.payload if content is not None else None, "fact": fact}
    stored = {name: pretty(value) for name, value in shown.items() if value is not None}
    quoted = {name: quoting.quote(text, span_in_payload(text, candidate)) for name, text in stored.items()}
    return Quotes(
        statement=quoting.quote(candidate.text, None, found.suspicious),
        value=quoting.quote(pretty(candidate.value)) if candidate.value is not None else None,
        references={one: quoting.quote(one) for one in candidate.evidence_refs},
        text=quoting.quote(said, span_in_text(said, candidate)) if said else None,
        payload=quoted.get("payload"),
        fact=quoted.get("fact"),
        marks_words=quoting.marks_words,
    )


class _Quoting:
    """Quotes texts, and remembers whether one has words that address the model."""

    def __init__(self) -> None:
        self.marks_words = False

    def quote(self, text: str, source: Span | None = None, suspicious: Sequence[Span] | None = None) -> Shown:
        """Return a text with marks; `suspicious` is looked for where it is not given."""
        found = addressing_spans(text[:MOST_READ]) if suspicious is None else suspicious
        self.marks_words = self.marks_words or bool(found)
        return marked(text, found, source)


def marked(text: str, suspicious: Sequence[Span], source: Span | None = None) -> Shown:
    """Return a text with the words marked that address the model, and beside them the span that a fact came from."""
    if not suspicious and source is None:
        return text
    edges = sorted({0, len(text), *(source or ()), *(edge for span in suspicious for edge in span)})
    pieces: list[Markup] = []
    for begin, end in pairwise(edges):
        if any(span[0] <= begin < span[1] for span in suspicious):
            pieces.append(Markup('<mark class="suspicious">{}</mark>').format(text[begin:end]))
        elif source is not None and source[0] <= begin < source[1]:
            pieces.append(Markup("<mark>{}</mark>").format(text[begin:end]))
        else:
            pieces.append(escape(text[begin:end]))
    return Markup("").join(pieces)
