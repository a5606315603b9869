"""Reads the words before a number: do they announce a telephone number, or something else?"""

import re
from enum import Enum

from muniment.language.data_files import word_set


class PhoneContext(Enum):
    """What the words before a number announce."""

    UNKNOWN = 0
    OTHER = 1
    POSSIBLE = 2
    PHONE = 3


_WORD = re.compile(r"[^\W\d_]+")
_LABEL = re.compile(r"(?:desk|office|home|work|main|direct|switchboard)(?: (?:line|number))? ?[:.]\s*\(?$")

_PHONE_WORDS = word_set("""
    telephone telephones phone phones tel mobile mobiles cell cells cellphone cellphones cellular fax sms gsm
    whatsapp landline hotline pager voicemail msisdn handy handynummer mobil mobilnummer rufnummer durchwahl telefon
    telefonnummer téléphone telephonique tél portable teléfono telefono móvil movil celular cellulare telefone
    telemóvel telemovel telefonszám telefoon telefoonnummer numéro handset
""")
_CALL_WORDS = word_set("""
    call calls called calling ring rings dial dials dialled reach reached text texts texted texting message messages
    messaging contact anrufen ruf rufen appeler appelez llamar llame llamen chiamare chiami ligar ligue bellen
""")
_OTHER_WORDS = word_set("""
    order orders invoice invoices ticket tickets case cases account accounts ref refs reference references id ids
    sku skus tracking zip postcode postcodes postal iban card cards ssn social nhs tax vat isbn issn ean serial
    model version part parcel booking reservation policy claim contract customer member passport licence license
    address street adresse price cost amount total between page pages bestellung bestellnummer rechnung commande
    facture pedido factura kundennummer plz cpf bsn tfn sin aadhaar pin code pesel steuer
""")
_OBJECT_PRONOUNS = frozenset(("me", "us", "him", "her", "them", "you"))
_PREPOSITIONS = frozenset(("to", "on", "at"))
_POSSESSIVES = frozenset(("my", "your", "his", "her", "our", "their"))
_ADJECTIVES = frozenset(("new", "old", "own", "private", "personal", "current", "direct"))


def phone_context(lead: str) -> PhoneContext:
    """Return what the last known word of a text announces for a number right after it."""
    lead = lead.lower()
    if _LABEL.search(lead):
        return PhoneContext.POSSIBLE
    words = _WORD.findall(lead)
    for index in range(len(words) - 1, -1, -1):
        word = words[index]
        if word in _PHONE_WORDS:
            return PhoneContext.PHONE
        if word in _OTHER_WORDS:
            return PhoneContext.OTHER
        if word in _CALL_WORDS:
            follows = words[index + 1] if index + 1 < len(words) else ""
            at = follows in _OBJECT_PRONOUNS or (word.startswith("messag") and follows in _PREPOSITIONS)
            return PhoneContext.PHONE if at else PhoneContext.POSSIBLE
        if word in ("number", "numbers") and index and _is_possessive(words, index - 1):
            return PhoneContext.PHONE
    return PhoneContext.UNKNOWN


def _is_possessive(words: list[str], index: int) -> bool:
    return words[index] in _POSSESSIVES or (
        words[index] in _ADJECTIVES and index > 0 and words[index - 1] in _POSSESSIVES
    )
