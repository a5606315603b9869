"""Which words of a text are its writer's own: what they paste, quote or pass on is somebody else's (CAN-11, ISO-8).

Somebody else's are fenced and quoted lines, the content of elements of markup, the turns of others in a talk, mails and
letters, and whatever a line introduces that ends in a colon: "he wrote:", "summarise this:", "here is the mail:". Where
nothing says how far such words go, they go to the end of the text: a fact that is lost can be said again.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from muniment.language.data_files import word_set
from muniment.language.messages.sentences import sentences_of
from muniment.language.patterns import PatternFile
from muniment.language.special.tokens import RELATIONS

_PATTERNS = PatternFile(__package__ or "", "patterns/quotations.txt")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_QUOTED_LINE = re.compile(r"\s*[>|\uff1e\u2502\u203a]")
_ELEMENT = re.compile(r"<(/?)([A-Za-z][\w:.-]{0,40})(?:\s[^<>]{0,200})?>")
# Elements that only say how a text looks, or have no content.
_LOOKS = word_set("a abbr b big br code div em font h1 h2 h3 h4 hr i img li mark ol p s small span strong sub sup u ul")
_QUOTING = word_set("blockquote q cite quote")
# Marks of chat templates: `<|im_start|>assistant`, `<|user|>`.
_MARK = re.compile(r"<\|(?:im_start|start_header_id)\|>\s*(\w+)\s*(?:<\|end_header_id\|>)?|<\|(\w+)\|>")
_ENDS_TURN = word_set("im_end eot_id end endoftext end_of_text begin_of_text")
_TIME = r"(?:[\[(]?\d[\d/.,: -]{2,24}(?:[AaPp]\.?[Mm]\.?)?\s?[\])]?\s{0,3}[-\u2013]?\s{0,3})?"
_STAMP = re.compile(rf"\A{_TIME}")
_LABEL = re.compile(
    rf"\s{{0,8}}[#*_-]{{0,4}}\s?{_TIME}[*_]{{0,3}}"
    r"([^\W\d_][\w .'&/-]{0,40}?|@[\w.-]{1,40})[*_]{0,3}\s{0,2}(?:\([^()]{0,40}\)|\[[^\[\]]{0,40}\])?\s{0,2}[*_]{0,3}"
    r"[:\uff1a\ufe55\ua789][*_]{0,3}(?=\s|$|[\"'\u2018\u201c\u201e\u00ab])\s*"
)
_BRACKETED = re.compile(r"\s{0,8}\[([^\W\d_][\w -]{0,30})\]\s*[:\uff1a]?\s*")
# Of a role only: `assistant:That is nice.`
_TIGHT = re.compile(r"\s{0,8}([A-Za-z]{2,20})[:\uff1a](?=\S)")
_COLON = re.compile(r"[:\uff1a\ufe55\ua789](?=\s|$|[\"'\u2018\u201c\u201e\u00ab])")
_CLAUSE = re.compile(r"[.!?;]['\")\]]*\s+|[;\n\[(]")
_CLAUSE_REACH = 240
_LONGEST_NAME = 4
_OPENS_QUOTE = re.compile(r"\s*[\"\u201c\u201e\u00ab]")
# A quotation; the sign of an inch stands behind a number.
_QUOTATION = re.compile(
    r'(?<![0-9])"[^"]{1,8000}"|[\u201c\u201e][^\u201c\u201d\u201e]{1,8000}[\u201c\u201d]|\u00ab[^\u00ab\u00bb]{1,8000}\u00bb'
)
_SENTENCES = re.compile(r"[.!?]['\")\]]*\s+\S|\n")
_SENTENCE_END = re.compile(r"[.!?]+(?=\s|$)|(?=\n)")
_LAST_SIGNS = ".!?\u2026"
_FEWEST_QUOTED = 3
# A line that stands for what is left out, so that the line before it is seen to introduce that and nothing else.
_LEFT_OUT = "\0"


class OwnText(NamedTuple):
    """The words of a text that are its writer's own, and whether that is the whole text."""

    text: str
    is_whole: bool


class Labels(NamedTuple):
    """What the labels of a talk mean, such as `assistant:`: those of the writer, and those of somebody else."""

    is_own: Callable[[str], bool]
    is_other: Callable[[str], bool]
    # Whether a name may be that of the writer.
    may_be_own: Callable[[str], bool]


def own_text(text: str, labels: Labels) -> OwnText:
    """Return the words of a text that are its writer's own."""
    unmarked = _without_elements(_MARK.sub(_as_label, text), labels)
    lines = _without_letters(list(_plain_lines(unmarked)), labels)
    own = _without_passages("\n".join(_own_lines(lines, labels)))
    given = "\n".join(text.splitlines())
    quotes = any(_PATTERNS["first_person"].search(one.group()) for one in _QUOTATION.finditer(own))
    return OwnText(own, own == given and not quotes)


def _as_label(mark: re.Match[str]) -> str:
    role = mark[1] or mark[2]
    return "" if role in _ENDS_TURN else f"\n{role}: "


# ---- markup, code and quoted lines ----


def _without_elements(text: str, labels: Labels) -> str:
    """Return a text without the content of elements that are not the writer's: `<blockquote>`, `<assistant>`."""
    if "<" not in text:
        return text
    kept: list[str] = []
    closes: dict[str, int] = {}
    left, low = 0, text.lower()
    for tag in _ELEMENT.finditer(text):
        name = tag[2].lower()
        if tag.start() < left or name in _LOOKS:
            continue
        closing = f"</{name}>"
        if name not in closes:
            closes[name] = low.rfind(closing)
        end = low.find(closing, tag.end()) if not tag[1] and closes[name] > tag.start() else -1
        if labels.is_own(name):
            kept.append(text[left : tag.start()])
            left = tag.end()
        elif not tag[1] and (end >= 0 or name in _QUOTING or labels.is_other(name)):
            kept.append(f"{text[left : tag.start()]}\n{_LEFT_OUT}\n")
            left = end + len(closing) if end >= 0 else len(text)
    return "".join(kept) + text[left:] if kept else text


def _plain_lines(text: str) -> Iterator[str]:
    """Yield the lines that are neither code nor quoted."""
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if found and (not fence or found[1].startswith(fence)):
            fence = "" if fence else found[1]
            yield _LEFT_OUT
        elif not fence:
            yield _LEFT_OUT if _QUOTED_LINE.match(line) else line


# ---- letters ----


def _without_letters(lines: Sequence[str], labels: Labels) -> list[str]:
    """Return the lines without letters: from a greeting that names somebody to an end that is signed by another."""
    kept = list(lines)
    greeted = -1
    for place, line in enumerate(lines):
        if greeted < 0 and _PATTERNS["greeting"].search(line):
            greeted = place
        elif greeted >= 0 and _PATTERNS["ending"].search(line):
            following = lines[place + 1].strip() if place + 1 < len(lines) else ""
            signed = line.replace(",", " ").split()[-1]
            last = place
            if line.rstrip().endswith(",") or (following and len(following.split()) <= _LONGEST_NAME):
                signed, last = following, place + 1
            if signed and not labels.may_be_own(signed):
                kept[greeted : last + 1] = [_LEFT_OUT] * (last + 1 - greeted)
            greeted = -1
    return kept


# ---- lines ----


def _own_lines(lines: Sequence[str], labels: Labels) -> Iterator[str]:
    """Yield what is the writer's own of each line: no turns of others, no mails, nothing that a line introduces."""
    named = [_label_of(line, labels) for line in lines]
    is_talk = _is_talk([name for name, _ in named if name is not None], labels)
    is_own = True
    skips = False
    for place, (line, (name, start)) in enumerate(zip(lines, named, strict=True)):
        if _begins_mail(lines, place):
            return
        if line == _LEFT_OUT:
            continue
        if is_talk and name is not None and (labels.is_own(name) or labels.is_other(name) or _is_name(name)):
            is_own, skips = labels.is_own(name), False
            line = line[start:]
        if not line.strip():
            skips = False
        if not is_own or skips:
            continue
        own, introduces = _before_introduction(line)
        yield own
        if introduces == "rest" and not _is_apart(lines, place):
            return
        skips = introduces == "paragraph"


def _label_of(line: str, labels: Labels) -> tuple[str | None, int]:
    """Return the label of a line and where its words begin; None without one."""
    if (found := _BRACKETED.match(line)) and (labels.is_own(found[1]) or labels.is_other(found[1])):
        return found[1], found.end()
    if (found := _TIGHT.match(line)) and (labels.is_own(found[1]) or labels.is_other(found[1])):
        return found[1], found.end()
    found = _LABEL.match(line)
    return (found[1].strip(), found.end()) if found else (None, 0)


def _is_talk(names: Sequence[str], labels: Labels) -> bool:
    """Say whether labels are those of a talk: of roles, or of two people, of whom either may be the writer."""
    known = any(labels.is_own(name) or labels.is_other(name) for name in names)
    return known or len({name for name in names if _is_name(name)}) > 1


def _is_name(label: str) -> bool:
    """Say whether a label may name who speaks: words with capital letters, none that opens an own remark."""
    words = label.split()
    if not 0 < len(words) <= _LONGEST_NAME or _PATTERNS["lead"].search(label) or _PATTERNS["own"].search(label):
        return False
    return label.startswith("@") or all(word[0].isupper() or word[0].isdigit() for word in words)


def _begins_mail(lines: Sequence[str], place: int) -> bool:
    """Say whether a mail begins at a line: a divider, "On ... wrote:", or its headers."""
    line = lines[place]
    if any(_PATTERNS[name].search(line) for name in ("divider", "attribution", "headed")):
        return True
    following = lines[place + 1] if place + 1 < len(lines) else ""
    return bool(_PATTERNS["header"].search(line)) and any(
        _PATTERNS[name].search(following) for name in ("headed", "header")
    )


def _is_apart(lines: Sequence[str], place: int) -> bool:
    """Say whether what a line introduces is set apart from the rest: as code, quoted lines or a quotation."""
    following = next((line for line in lines[place + 1 :] if line.strip()), "")
    return following == _LEFT_OUT or bool(_OPENS_QUOTE.match(following))


def _before_introduction(line: str) -> tuple[str, str]:
    """Return what stands before the words that a line introduces as somebody else's, and how far those go.

    `rest`: the line ends with the colon. `paragraph`: they follow it. Empty where nothing is introduced.
    """
    start = 0
    for colon in _COLON.finditer(line):
        before = line[max(0, colon.start() - _CLAUSE_REACH) : colon.start()]
        ends = [found.end() for found in _CLAUSE.finditer(before)]
        begin = max(start, colon.start() - len(before) + (ends[-1] if ends else 0))
        clause = _STAMP.sub("", line[begin : colon.start()].strip(" *_#-\t\"'"))
        after = line[colon.end() :].strip()
        if _introduces(clause, after):
            return line[:begin].rstrip(), "paragraph" if after else "rest"
        start = colon.end()
    return line, ""


def _introduces(clause: str, after: str) -> bool:
    """Say whether what follows these words and a colon is somebody else's."""
    if not clause or _PATTERNS["lead"].search(clause):
        return False
    if _PATTERNS["handled"].search(clause) or _PATTERNS["reported"].search(clause):
        return True
    is_text, points = bool(_PATTERNS["text"].search(clause)), bool(_PATTERNS["points"].search(clause))
    if _PATTERNS["received"].search(clause) and (is_text or points):
        return True
    own, said = list(_PATTERNS["own_speech"].finditer(clause)), list(_PATTERNS["speech"].finditer(clause))
    if said:
        return not own or own[-1].end() < said[-1].end()
    in_first_person = not after or bool(_PATTERNS["first_person"].search(after))
    if not in_first_person:
        return False
    if after and (_is_name(clause) or _is_person(clause)):
        return True
    if _PATTERNS["own"].search(_without_people(clause)):
        return False
    return is_text or (points and not _PATTERNS["asks"].search(clause))


def _is_person(clause: str) -> bool:
    """Say whether a clause is only the name of a relative or an acquaintance: "my sister", "mum"."""
    words = clause.lower().split()
    return len(words) <= _LONGEST_NAME and words[-1] in RELATIONS


def _without_people(clause: str) -> str:
    """Return a clause without "my sister" and the like: what is hers is not the writer's."""
    words = clause.split()
    kept = [
        word
        for place, word in enumerate(words)
        if not any(_is_relation(one) for one in words[place + 1 : place + 3]) or word.lower() in ("i", "about")
    ]
    return " ".join(kept)


def _is_relation(word: str) -> bool:
    bare = word.lower().strip(",.")
    return bare.removesuffix("'s").removesuffix("\u2019s") in RELATIONS or bare.endswith(("'s", "\u2019s"))


# ---- quotations ----


def _without_passages(text: str) -> str:
    """Return a text without quotations of whole sentences, and without the sentences that they begin or end in."""
    if not _OPENS_QUOTE.search(text) and '"' not in text and "\u201c" not in text and "\u201e" not in text:
        return text
    kept: list[str] = []
    left = 0
    for quote in _QUOTATION.finditer(text):
        if quote.start() < left:
            continue
        inner = quote.group()[1:-1].strip()
        ends = inner[-1:] in _LAST_SIGNS or text[quote.end() : quote.end() + 1] in tuple(_LAST_SIGNS)
        before = [found.end() - 1 for found in _SENTENCES.finditer(text, left, quote.start() + 1)]
        begin = max(left, before[-1] if before else left)
        alone = not text[begin : quote.start()].strip() and _ends_line_or_sentence(text, quote.end(), ends=ends)
        several = len({one.start for one in sentences_of(inner)}) > 1
        if not several and not (alone and len(inner.split()) >= _FEWEST_QUOTED):
            continue
        end = quote.end()
        if not ends:
            rest = _SENTENCE_END.search(text, end)
            end = rest.end() if rest is not None else len(text)
        kept.append(text[left:begin])
        left = end
    return "".join(kept) + text[left:]


def _ends_line_or_sentence(text: str, place: int, *, ends: bool) -> bool:
    following = text[place:].lstrip(_LAST_SIGNS)
    return not following.strip() or following.startswith("\n") or (ends and following[:1].isspace())
