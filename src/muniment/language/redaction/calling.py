"""Words around a number that tell whether somebody can be called there."""

import re
from enum import Enum


class Said(Enum):
    """What the words before a number say of it."""

    NOTHING = 0
    OF_ELSE = 1
    PERHAPS = 2
    OF_A_TELEPHONE = 3


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_WORD = re.compile(r"[^\W\d_]+")
_LABEL = re.compile(r"(?:desk|office|home|work|main|direct|switchboard)(?: (?:line|number))? ?[:.]\s*\(?$")

_TELEPHONE = _words(
    """
    telephone telephones phone phones tel mobile mobiles cell cells cellphone cellphones cellular fax sms gsm
    whatsapp landline hotline pager voicemail msisdn handy handynummer mobil mobilnummer rufnummer durchwahl telefon
    telefonnummer téléphone telephonique tél portable teléfono telefono móvil movil celular cellulare telefone
    telemóvel telemovel telefonszám telefoon telefoonnummer numéro handset
    """
)
_CALLING = _words(
    """
    call calls called calling ring rings dial dials dialled reach reached text texts texted texting message messages
    messaging contact anrufen ruf rufen appeler appelez llamar llame llamen chiamare chiami ligar ligue bellen
    """
)
_ELSE = _words(
    """
    order orders invoice invoices ticket tickets case cases account accounts ref refs reference references id ids
    sku skus tracking zip postcode postcodes postal iban card cards ssn social nhs tax vat isbn issn ean serial
    model version part parcel booking reservation policy claim contract customer member passport licence license
    address street adresse price cost amount total between page pages bestellung bestellnummer rechnung commande
    facture pedido factura kundennummer plz cpf bsn tfn sin aadhaar pin code pesel steuer
    """
)
_WHOM = frozenset(("me", "us", "him", "her", "them", "you"))
_WHERE = frozenset(("to", "on", "at"))
_WHOSE = frozenset(("my", "your", "his", "her", "our", "their"))
_WHICH = frozenset(("new", "old", "own", "private", "personal", "current", "direct"))


def said_of(lead: str) -> Said:
    """What the nearest telling word of a lead says of the number behind it."""
    lead = lead.lower()
    if _LABEL.search(lead):
        return Said.PERHAPS
    words = _WORD.findall(lead)
    for place in range(len(words) - 1, -1, -1):
        word = words[place]
        if word in _TELEPHONE:
            return Said.OF_A_TELEPHONE
        if word in _ELSE:
            return Said.OF_ELSE
        if word in _CALLING:
            follows = words[place + 1] if place + 1 < len(words) else ""
            at = follows in _WHOM or (word.startswith("messag") and follows in _WHERE)
            return Said.OF_A_TELEPHONE if at else Said.PERHAPS
        if word in ("number", "numbers") and place and _is_whose(words, place - 1):
            return Said.OF_A_TELEPHONE
    return Said.NOTHING


def _is_whose(words: list[str], place: int) -> bool:
    return words[place] in _WHOSE or (words[place] in _WHICH and place > 0 and words[place - 1] in _WHOSE)
