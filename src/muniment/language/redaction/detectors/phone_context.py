"""Reads the words before a number: do they announce a telephone number, or something else?"""

import re
from enum import Enum

from muniment.language.data_files import word_set
from muniment.language.redaction.detectors.announcements import THINGS


class PhoneContext(Enum):
    """What the words before a number announce."""

    UNKNOWN = 0
    OTHER = 1
    POSSIBLE = 2
    PHONE = 3


_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE_END = re.compile(r"[.!?]\s+(?=[A-ZÀ-Þ])")
_LABEL = re.compile(
    r"(?:(?:desk|office|home|work|main|direct|switchboard)(?: (?:line|number))? ?[:.]"
    r"|(?:^|[\n|,;] {0,2})[tmfp]:)\s*\(?$"
)
_CHANGED_NUMBER = re.compile(r"\b(?:new|old|wrong) number(?: is|,? it's|[:=])\s*\(?$")
# Numbers and lines that are always of telephones.
_PHONE_NUMBER = re.compile(
    r"\b(?:(?:contact|call-?back|best|emergency|daytime|evening|office|work|home)[ _-](?:number|no|nr)"
    r"|(?:main|direct|support|help|service|emergency|customer)[ _]line)\b[^\w\n]{0,4}(?:is|under)?[\s:=.\"'|(]*$"
)
_CALL_AND_NUMBER = re.compile(
    r"(?:\b(?P<before>[a-z]+) )?\b(?:call|calls|called|dial|dialled|ring|rang|phone|phoned|text|texted)"
    r"(?: (?:me|us|him|her|them|back|now|please|directly|(?:the|this|my|our|your|his) (?P<whom>[a-z]+)))* \(?$"
    r"|\b(?P<reaches>[a-z]+ )?reach \(?$"
    r"|\b(?:call|ring|dial|phone|text|message|contact|reach|reached|answers?|answering|picks? up|picking up)"
    r"(?: [^\W\d_]+){0,4} (?:at|on|under|via) \(?$"
    r"|\b(?:erreichbar|anrufen|ruf|rufen|appelez|appeler|ll[áa]m[ae]\w*|chiam[ai]\w*|ligue|ligar|bel|bellen)"
    r"(?:[ -][^\W\d_]+){0,3} (?:unter|au|al|para|op|o) \(?$"
)
_CALLS_OF_PROGRAMS = frozenset(("api", "tool", "function", "method", "remote", "system", "rpc"))
# `to reach 20000000` speaks of an amount, `reach 20000000 for help` of a telephone.
_NO_IMPERATIVE = frozenset(("to", "will", "can", "could", "may", "might", "should", "would", "not", "we", "they", "it"))

_PHONE_WORDS = word_set("""
    telephone telephones phone phones tel mobile mobiles cell cells cellphone cellphones cellular fax sms gsm
    whatsapp telegram viber landline hotline pager voicemail msisdn handy handynummer mobil mobilnummer rufnummer
    durchwahl telefon telefonnummer téléphone telephonique tél portable teléfono telefono móvil movil celular cellulare
    telefone telemóvel telemovel telefonszám telefoon telefoonnummer numéro handset
""")
_CALL_WORDS = word_set("""
    call calls called calling ring rings dial dials dialled reach reached text texts texted texting message messages
    messaging contact anrufen ruf rufen appeler appelez llamar llame llamen chiamare chiami ligar ligue bellen
""")
_OTHER_WORDS = THINGS | word_set("""
    account accounts acct konto ref refs reference references id ids uid user users username employee student badge
    record records chart mrn provider npi reading zip postcode postcodes postal iban card cards ssn social nhs tax tin
    vat policy claim contract customer member passport licence license permit payment transfer confirmation log size
    views rows score population revenue address street adresse price cost amount total between page pages plz cpf bsn
    tfn sin aadhaar dni nie nif cnp nino pin code pesel steuer identity insurance
""")
# `phoneNumber`, `orderId`, `Kundennummer`
_NUMBER_ENDINGS = ("number", "nummer", "no", "id")
_OBJECT_PRONOUNS = frozenset(("me", "us", "him", "her", "them", "you"))
_PREPOSITIONS = frozenset(("to", "on", "at"))
_POSSESSIVES = frozenset(("my", "your", "his", "her", "our", "their"))
_ADJECTIVES = frozenset(("new", "old", "own", "private", "personal", "current", "direct"))


def phone_context(lead: str) -> PhoneContext:
    """Return what the last known word of a text announces for a number right after it.

    A word that names another thing does so in its own sentence only.
    """
    ends = [found.end() for found in _SENTENCE_END.finditer(lead)]
    sentence_start = ends[-1] if ends else 0
    lead = lead.lower()
    if _PHONE_NUMBER.search(lead) or _is_called(lead):
        return PhoneContext.PHONE
    if _LABEL.search(lead):
        return PhoneContext.POSSIBLE
    found = list(_WORD.finditer(lead))
    words = [word.group() for word in found]
    for index in range(len(words) - 1, -1, -1):
        word = words[index]
        if word in _PHONE_WORDS or _without_ending(word) in _PHONE_WORDS:
            return PhoneContext.PHONE
        if found[index].start() >= sentence_start and _is_another_thing(words, index):
            return PhoneContext.OTHER
        if word in _CALL_WORDS:
            follows = words[index + 1] if index + 1 < len(words) else ""
            at = follows in _OBJECT_PRONOUNS or (word.startswith("messag") and follows in _PREPOSITIONS)
            return PhoneContext.PHONE if at else PhoneContext.POSSIBLE
        if word in ("number", "numbers") and index and _is_possessive(words, index - 1):
            return PhoneContext.PHONE
    return PhoneContext.POSSIBLE if _CHANGED_NUMBER.search(lead) else PhoneContext.UNKNOWN


def _is_called(lead: str) -> bool:
    """Say whether a text ends with words to call somebody, so that a number must follow."""
    found = _CALL_AND_NUMBER.search(lead)
    if found is None or found["before"] in _CALLS_OF_PROGRAMS:
        return False
    if found["reaches"] and found["reaches"].rstrip() in _NO_IMPERATIVE:
        return False
    return found["whom"] not in _OTHER_WORDS and found["whom"] not in _CALLS_OF_PROGRAMS


def _is_another_thing(words: list[str], index: int) -> bool:
    """Say whether a word names what has a number other than a telephone; `on record` says only where it is kept."""
    word = words[index]
    if word in _OTHER_WORDS:
        return not (word == "record" and index and words[index - 1] == "on")
    return word.endswith("nummer") or _without_ending(word) in _OTHER_WORDS


def _without_ending(word: str) -> str:
    return next((word.removesuffix(ending) for ending in _NUMBER_ENDINGS if word.endswith(ending)), "")


def _is_possessive(words: list[str], index: int) -> bool:
    return words[index] in _POSSESSIVES or (
        words[index] in _ADJECTIVES and index > 0 and words[index - 1] in _POSSESSIVES
    )
