"""Make the text of a memory harmless: remove what is invisible, and find the characters that a format must escape."""

import re
from collections.abc import Callable, Iterator
from itertools import takewhile

from muniment.language.instructions import visible_text

_REPLACEMENT = "\ufffd"

# The ranges are listed here because `unicodedata` differs between versions of Python, and the digest of a compile must
# not. These characters are invisible, or change the direction of the text next to them, hide it or smuggle text in.
_INVISIBLE = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)  # fmt: skip
_NO_CHARACTERS = (
    (0x00, 0x08), (0x0E, 0x1F), (0x7F, 0x84), (0x86, 0x9F), (0xFDD0, 0xFDEF),
    *((plane + 0xFFFE, plane + 0xFFFF) for plane in range(0, 0x110000, 0x10000)),
)  # fmt: skip
_LINE_ENDS = "\v\f\r\x85\u2028\u2029"
# The Braille blank is no space in Unicode but looks like one.
_SPACES = "\t\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u2800\u3000"

_SHOWN_AS: dict[int, str] = {
    **{code: "" for first, last in _INVISIBLE for code in range(first, last + 1)},
    **{code: _REPLACEMENT for first, last in _NO_CHARACTERS for code in range(first, last + 1)},
    **dict.fromkeys(map(ord, _LINE_ENDS), "\n"),
    **dict.fromkeys(map(ord, _SPACES), " "),
}

_RUN_OF_SPACES = re.compile(" {2,}")
_SPACE_AT_LINE_END = re.compile(" *\n *")
_RUN_OF_LINES = re.compile("\n{3,}")

_IN_BRACKETS = re.compile("[\\[\uff3b]([^\\[\\]\uff3b\uff3d]{1,32})([\\]\uff3d]?)")
# The second letter is the Cyrillic m: next to a number it cannot be told from the Latin one.
_LIKE_A_LABEL = re.compile("[\\W_]*[m\u043c][\\W_]?\\d", re.IGNORECASE)


def visible(text: str) -> str:
    """Return the text without what a reader could not see. A prompt gets only this; the words stay the same.

    Invisible characters are removed. Control characters and lone surrogates become U+FFFD, every kind of space or line
    end a plain one; runs of spaces are reduced to one, runs of line ends to two. Anything that looks like a citation
    label, `[m2]`, gets round brackets.
    """
    return _without_citations(_without_invisible(text))


def visible_name(name: str) -> str:
    """Do the same for an id, a name or an origin, as a single line."""
    return _without_citations(" ".join(_without_invisible(name).split()))


def _without_invisible(text: str) -> str:
    if not text.isascii():
        # join surrogate pairs that were escaped as two characters
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = text.replace("\r\n", "\n").translate(_SHOWN_AS)
    text = _SPACE_AT_LINE_END.sub("\n", _RUN_OF_SPACES.sub(" ", text))
    return _RUN_OF_LINES.sub("\n\n", text).strip(" \n")


def _without_citations(text: str) -> str:
    # Nested brackets are replaced from the inside out; the pattern is too short for many of them.
    while (changed := _IN_BRACKETS.sub(_replace_label, text)) != text:
        text = changed
    return text


def _replace_label(bracketed: re.Match[str]) -> str:
    inside, closed = bracketed.groups()
    return f"({inside}{closed and ')'}" if _LIKE_A_LABEL.match(visible_text(inside)) else bracketed[0]


# ---- characters that must be escaped ----

Positions = Iterator[int]

# The colon and its look-alikes: full width, small, vertical, ratio, modifiers, and signs of other scripts.
_COLONS = (
    ":\uff1a\ufe55\ufe13\ufe30\u2236\ua789\u02d0\u02f8\u205a\u2982\u0589\u05c3\u0703\u0704\u0903\u0a83\u1361\u1365"
    "\u1366\u16ec\u1803\u1809\ua4fd\ua6f4"
)
_LABEL = re.compile(f"^[^\\w\n]*([^{_COLONS}\n]{{1,48}})([{_COLONS}])", re.MULTILINE)
_BEFORE_COLON = re.compile(f"([^{_COLONS}\n]{{1,48}})([{_COLONS}])")
_MOST_WORDS = 5
_ROLE_WORDS = (
    "system sys user human assistant ai bot model developer dev tool tools function functions instruction "
    "instructions response prompt chatbot chatgpt gpt gpt4 claude gemini copilot llama agent operator admin "
    "administrator root moderator im_start inst memory "
    "système utilisateur utilisatrice humain assistante benutzer benutzerin nutzer mensch assistent assistentin "
    "anweisung anweisungen sistema usuario usuaria humano asistente usuário utente umano assistente "
    "пользователь система ассистент помощник человек "
    "系统 系統 用户 用戶 使用者 助手 助理 人类 システム ユーザー アシスタント 시스템 사용자 어시스턴트"
)
_ROLES = frozenset(_ROLE_WORDS.split())

# "< 50", "<50 EUR" and "<= 3" are not matched; anything else may be a tag, a comment or a token of a chat template.
_ANGLE = re.compile(r"<(?![\s=$€£]|-?\d+(?:[.,]\d+)*(?![\w>])|$)", re.MULTILINE)
_BRACKET_TOKEN = re.compile(
    r"\[(?=\||\s*/?\s*(?:inst|sys|system|system_prompt|user|human|assistant|bot|ai|developer|tool|available_tools|tools"
    r"|tool_calls|tool_results|tool_content|call_id|args|model_settings|think|img|img_break|img_end|audio|begin_audio"
    r"|transcribe|prefix|middle|suffix|cls|sep|mask|pad|unk|bos|eos|gmask|smask|control_\d+|unused\d+)\s*\])",
    re.IGNORECASE,
)
_LINK = re.compile(r"\](?=\()")
_BLOCK_START = re.compile("^(?:#+|`{3,}|~{3,}|[-=*_]{3,})", re.MULTILINE)

_MARKDOWN = re.compile(
    "|".join(
        (
            r"^\#+",
            r"^[>|:=_*]",
            r"^[-+](?=[-+|:\s]|$)",
            "`",
            r"\*(?!\s|$)|(?<=\S)\*",
            # between letters or digits it is part of a name
            r"(?<![^\W_])_|_(?![^\W_])",
            # "~50" is a number, "~~" is not
            r"(?<=\S)~|~(?![\w/])",
            r"&(?=\#\d{1,8};|\#[xX][0-9a-fA-F]{1,8};|\w+;)",
            # every link and image has one of these, or needs a definition, which the next pattern matches
            r"\](?=[(\[])",
            r"^\[(?=(?:[^\[\]\\]|\\.){0,1000}\]:)",
            rf"\\(?=[!-/:-@\[-`{{-~{_COLONS}]|$)",
        )
    ),
    re.MULTILINE,
)
_NUMBERED = re.compile(r"^\d{1,9}([.)])(?=\s|$)", re.MULTILINE)


def roles(text: str) -> Positions:
    """Find the colon after every role name of a chat, such as `System:`, in any script and markup.

    At the start of a line the role may be any of several words, as in `the new system prompt:`; elsewhere it must be
    the last word before the colon.
    """
    for found in _LABEL.finditer(text):
        if any(_names_a_role(words) for words in _readings(found[1])):
            yield found.start(2)
    for found in _BEFORE_COLON.finditer(text):
        if any(not _ROLES.isdisjoint(_last_names(words)) for words in _readings(found[1])):
            yield found.start(2)


def _readings(text: str) -> Iterator[list[str]]:
    """The words of a text as written, and with look-alike letters replaced. A Cyrillic role name among Latin words is
    found only in the former."""
    for reading in {text, visible_text(text)}:
        # `\w` matches the underscore, which is also markup
        yield [name for word in re.findall(r"\w+", reading.casefold()) if (name := word.strip("_"))]


def _names_a_role(words: list[str]) -> bool:
    return "".join(words) in _ROLES or (len(words) <= _MOST_WORDS and not _ROLES.isdisjoint(words))


def _last_names(words: list[str]) -> Iterator[str]:
    """What the last word may mean: without a number, as in `user 2`, or spelled out, as in `u s e r`."""
    if len(words) > 1 and words[-1].isdigit():
        words = words[:-1]
    if not words:
        return
    yield words[-1]
    yield words[-1].strip("_0123456789")
    letters = list(takewhile(lambda word: len(word) == 1, reversed(words)))
    for length in range(2, len(letters) + 1):
        yield "".join(reversed(letters[:length]))


def tokens(text: str) -> Positions:
    """Find what starts a tag, a comment, a special token of a chat template, or the target of a link."""
    yield from _starts(_ANGLE, text)
    yield from _starts(_BRACKET_TOKEN, text)
    yield from _starts(_LINK, text)


def block_starts(text: str) -> Positions:
    """Find headings, fences and rules at the start of a line."""
    for found in _BLOCK_START.finditer(text):
        yield from range(*found.span())


def markdown_structure(text: str) -> Positions:
    """Find everything that Markdown would take for structure, in blocks or within a line."""
    for found in _MARKDOWN.finditer(text):
        yield from range(*found.span())
    for found in _NUMBERED.finditer(text):
        yield found.start(1)


def _starts(pattern: re.Pattern[str], text: str) -> Positions:
    return (found.start() for found in pattern.finditer(text))


def escape_at(text: str, places: set[int], escape: Callable[[str], str], plain: Callable[[str], str] = str) -> str:
    """Apply `escape` to each character at these places, and `plain` to the text between them."""
    parts: list[str] = []
    done = 0
    for place in sorted(places):
        parts += (plain(text[done:place]), escape(text[place]))
        done = place + 1
    return "".join((*parts, plain(text[done:])))
