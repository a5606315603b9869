"""Reads what the speaker is: name, home, work, family; diet and allergies; favourites."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from muniment.language.data_files import word_set
from muniment.language.messages.clauses import complement_of, is_own_statement, is_within_question, question_follows
from muniment.language.messages.sentences import Sentence
from muniment.language.messages.statement import LIKELY, SURE, Statement
from muniment.language.messages.third_person import as_sentence, in_third_person, turn_pronouns
from muniment.language.messages.topics import either_of, topic_of
from muniment.language.patterns import Pattern, caseless, either

_ADVERBS = r"(?:now |currently |actually |still |recently |just |also |both )*"
_NAMES = r"([A-Z][A-Za-z'-]+(?: (?:[A-Z][A-Za-z'.-]*|de|van|von|la|del|al|bin)){0,4})"
_ATTRIBUTES = either("""
    job occupation profession job_title title address home_address email email_address phone_number number time_zone
    timezone native_language first_language mother_tongue pronouns nationality employer company city hometown home_town
    shoe_size size birthday date_of_birth age height weight budget blood_type major username handle
""")
_DIETS = either("""
    vegan vegetarian pescatarian lactose_intolerant lactose-intolerant gluten_intolerant gluten-free
    gluten_free diabetic celiac coeliac keto kosher halal teetotal dairy-free
""")
_RELATIVES = either("""
    kid kids child children son sons daughter daughters brother brothers sister sisters sibling siblings dog dogs cat
    cats grandchild grandchildren
""")
_NUMBERS = either("a an one two three four five six seven eight nine ten [0-9]{1,2}")
_OCCUPATION = caseless(
    r"(?:er|or|ist|ian|eer|yst|ant|man|woman|nurse|student|chef|cook|mom|mum|dad|mother"
    r"|father|parent|teacher|coach|pilot"
    r"|judge|clerk|artist|architect|freelancer|entrepreneur|retiree|veteran|immigrant"
    r"|professor|vet|medic|scientist|resident"
    r"|assistant|intern|nanny|barista|native|citizen|introvert|extrovert|vegan|vegetarian|widow|widower)s?$"
)
_NO_OCCUPATION = caseless(
    r"\b(?:fan|lover|bit|lot|little|person|sucker|fan|believer|member|user|mess|firm"
    r"|beginner|winner|loser|keeper|sort|kind|matter"
    r"|killer|number|former|better|newcomer|stranger|supporter|follower|reader|viewer"
    r"|owner|buyer|her|player|other|disaster)\b"
)

_EMPTY = word_set("it that this there here them him her you a the an to so what and but is are was has can will")
_ARTICLES = word_set("a an the")
_AFTER_OCCUPATION = word_set("at for in of with from on by who that working living")
_CLAUSE_AFTER_ALLERGY = caseless(r",? (?:and|so) (?:avoid|must|can't|cannot|have|need|don't|prefer|never|only|try)\b")
_ENDED = caseless(r"\b(?:not|no longer|don't)\b")
_NO_MORE = caseless(r"^,? (?:anymore|any more|any longer)")
_NO_ATTRIBUTE = caseless(r"\b(?:which|that|who|it|there|but|and)$")
_ONE_OF = caseless(r"\b(?:one|some|two|many) of $")
_NO_KIND = caseless(r"\b(?:memory|memories|part|parts|moment|moments|thing|things|bit)\b")
_NEW = caseless(r"\b(?:new|now)\b")

# Takes a match and the sentence.
_Reader = Callable[[Any, str], Statement | None]


def profile_of(sentence: Sentence) -> list[Statement]:
    """Return the profile facts that the sentence states as the speaker's own, in order."""
    found: list[Statement] = []
    text = sentence.text
    for pattern, read in _RULES:
        for match in pattern.finditer(text):
            before = text[: match.start()]
            if not is_own_statement(before):
                continue
            if sentence.is_question and (is_within_question(before) or not question_follows(text[match.end() :])):
                continue
            one = read(match, text)
            if one is not None and not any(other.position <= match.start() < other.end for other in found):
                found.append(replace(one, position=match.start(), end=match.end()))
    return found


def _complement(match: Any, text: str) -> tuple[str, bool]:
    complement = complement_of(text, match.end(), len(text))
    return complement.object, complement.ended


def _is_long(about: str, longest: int) -> bool:
    return not about or len(about.split()) > longest


def _says_now(phrase: str) -> bool:
    return "no longer" in phrase or " now " in f" {phrase} "


def _clause(*, update: bool = False, longest: int = 12) -> _Reader:
    """Return a reader that keeps the clause as it is, in the third person."""

    def read(match: Any, text: str) -> Statement | None:
        about, ended = _complement(match, text)
        if _is_long(about, longest) or about.split()[0].lower() in _EMPTY:
            return None
        phrase = match.group().strip()
        clause = in_third_person(f"{phrase} {about}{' any more' if ended else ''}")
        return Statement(clause, SURE, update or ended or _says_now(phrase))

    return read


def _name(match: Any, text: str) -> Statement:
    return Statement(as_sentence(f"The user's name is {match.group(1)}"), SURE)


def _name_to_use(match: Any, text: str) -> Statement:
    name = match.group(1)
    return Statement(as_sentence(f"The user wants to be called {name}"), SURE, predicate="name_to_use", value=name)


def _name_not_to_use(match: Any, text: str) -> Statement | None:
    name = match.group(1)
    topic = topic_of(name)
    clause = as_sentence(f"The user does not want to be called {name}")
    return Statement(clause, SURE, predicate=f"name_to_use_{topic}", value=False) if topic else None


def _occupation(match: Any, text: str) -> Statement | None:
    about, ended = _complement(match, text)
    words = about.split()
    end = next((index for index, word in enumerate(words) if word.lower() in _AFTER_OCCUPATION), len(words))
    occupation = " ".join(words[:end])
    if _is_long(occupation, 5) or _NO_OCCUPATION.search(occupation) or not _OCCUPATION.search(occupation):
        return None
    phrase = match.group().strip()
    clause = in_third_person(f"{phrase} {' '.join(words[:12])}{' any more' if ended else ''}")
    return Statement(clause, LIKELY, ended or "not" in phrase.split() or _says_now(phrase))


def _attribute(match: Any, text: str) -> Statement | None:
    about, _ = _complement(match, text)
    if _is_long(about, 12) or about.split()[0].lower() in _EMPTY - _ARTICLES:
        return None
    if about.split()[0].lower().endswith("ing") or _NO_ATTRIBUTE.search(match.group(1)):
        return None
    update = not word_set("new now changed").isdisjoint(match.group().lower().split())
    return Statement(as_sentence(f"The user's {match.group(1).lower()} is {turn_pronouns(about)}"), SURE, update)


def _changed(match: Any, text: str) -> Statement | None:
    about, _ = _complement(match, text)
    if _is_long(about, 12):
        return None
    attribute, old = match.group(1).lower(), match.group(2)
    before = f" (before: {turn_pronouns(old)})" if old else ""
    return Statement(as_sentence(f"The user's {attribute} is now {turn_pronouns(about)}{before}"), SURE, True)


def _switched(match: Any, text: str) -> Statement | None:
    about, _ = _complement(match, text)
    old = match.group(1)
    if _is_long(about, 10):
        return None
    clause = in_third_person(f"I switched from {old} to {about}" if old else f"I switched to {about}")
    predicate = either_of(topic_of(about), topic_of(old or ""))
    return Statement(clause, SURE, True, predicate=predicate, value=turn_pronouns(about) if predicate else None)


def _diet(match: Any, text: str) -> Statement:
    diet = match.group(1).strip().lower()
    if _ENDED.search(match.group()) or _NO_MORE.search(text[match.end() : match.end() + 12]):
        clause = as_sentence(f"The user no longer keeps to a {diet} diet")
        return Statement(clause, SURE, True, predicate=f"likes_{topic_of(diet)}_diet", value=False)
    reason = complement_of(text, match.end(), len(text)).reason
    follows = match.group().lower().endswith("diet")
    clause = in_third_person(f"I follow a {diet} diet{reason}" if follows else f"I am {diet}{reason}")
    return Statement(clause, SURE, predicate="diet", value=diet)


def _allergy(match: Any, text: str) -> Statement | None:
    allergen = match.group(1) if match.groups() and match.group(1) else _complement(match, text)[0]
    next_clause = _CLAUSE_AFTER_ALLERGY.search(allergen)
    allergen = allergen[: next_clause.start()] if next_clause else allergen
    topic = topic_of(allergen)
    if topic is None or len(allergen.split()) > 8:
        return None
    ended = bool(_ENDED.search(match.group()))
    clause = as_sentence(f"The user is {'not ' if ended else ''}allergic to {turn_pronouns(allergen)}")
    return Statement(clause, SURE, ended, predicate=f"allergic_to_{topic}", value=not ended)


def _favourite(match: Any, text: str) -> Statement | None:
    about, _ = _complement(match, text)
    kind = topic_of(match.group(1))
    if (
        kind is None
        or _NO_KIND.search(match.group(1))
        or _is_long(about, 15)
        or about.split()[0].lower() in _EMPTY - _ARTICLES
    ):
        return None
    favourite = turn_pronouns(about)
    if _ONE_OF.search(text[: match.start()]):
        clause = as_sentence(f"One of the user's favourite {match.group(1).lower()} is {favourite}")
        return Statement(clause, SURE, predicate=f"likes_{topic_of(about)}", value=True)
    verb = "are" if " are" in match.group().lower() else "is"
    clause = as_sentence(f"The user's favourite {match.group(1).lower()} {verb} {favourite}")
    update = bool(_NEW.search(match.group()))
    return Statement(clause, SURE, update, predicate=f"favourite_{kind}", value=favourite)


def _is_favourite(match: Any, text: str) -> Statement | None:
    about, kind = match.group(1), topic_of(match.group(2))
    if kind is None or about.lower() in _EMPTY:
        return None
    favourite = turn_pronouns(about)
    clause = as_sentence(f"The user's favourite {match.group(2).lower()} is {favourite}")
    return Statement(clause, SURE, predicate=f"favourite_{kind}", value=favourite)


_RULES: tuple[tuple[Pattern, _Reader], ...] = (
    (
        Pattern(rf"\b(?:[Mm]y (?:full |first |last )?name is|[Mm]y name's|I'm called|I am called) {_NAMES}"),
        _name,
    ),
    (
        Pattern(rf"\b(?:[Cc]all me|I go by|I prefer to be called|I'd like to be called|address me as) {_NAMES}"),
        _name_to_use,
    ),
    (Pattern(rf"\b(?:[Dd]on't|[Dd]o not|[Pp]lease don't|[Ss]top) call(?:ing)? me {_NAMES}"), _name_not_to_use),
    (
        caseless(
            rf"\bI(?:'ve| have)? {_ADVERBS}(?:no longer |don't |been )?(?:live|lived|living|reside)"
            r" (?:in|at|near|with) "
        ),
        _clause(),
    ),
    (caseless(rf"\bI(?:'m| am) {_ADVERBS}(?:based|located|living|residing) (?:in|at|near|out of) "), _clause()),
    (
        caseless(rf"\b(?:I|we)(?:'ve| have)? {_ADVERBS}(?:moved|relocated) (?:from [A-Za-z ]{{2,40}}? )?to "),
        _clause(update=True),
    ),
    (
        caseless(rf"\b(?:I|we)(?:'m|'re| am| are) {_ADVERBS}(?:moving|relocating) (?:from [A-Za-z ]{{2,40}}? )?to "),
        _clause(update=True),
    ),
    (caseless(rf"\bI {_ADVERBS}(?:no longer |don't )?work (?:at|for|as an?|as the|in|from) "), _clause()),
    (caseless(rf"\bI(?:'m| am) {_ADVERBS}(?:originally )?from "), _clause(longest=6)),
    (caseless(rf"\bI(?:'m| am) {_ADVERBS}(?:not |no longer )?(?:an?|the) "), _occupation),
    (
        caseless(r"\bI(?:'m| am) ([0-9]{1,3}) years old\b"),
        lambda match, text: Statement(as_sentence(f"The user is {match.group(1)} years old"), SURE),
    ),
    (caseless(r"\bI was born (?:on|in|at) "), _clause(longest=6)),
    (caseless(rf"\bI {_ADVERBS}speak (?:fluent |some |a little )?"), _clause(longest=6)),
    (
        caseless(
            rf"\bI(?:'m| am) {_ADVERBS}(?:married|divorced|engaged|widowed|retired|unemployed|pregnant|self-employed)\b"
        ),
        lambda match, text: Statement(in_third_person(match.group()), SURE, " now " in f" {match.group()} "),
    ),
    (
        caseless(rf"\bI(?:'ve got| have) ((?:{_NUMBERS}) (?:[a-z-]+ ){{0,2}}{_RELATIVES})\b"),
        lambda match, text: Statement(in_third_person(f"I have {match.group(1)}"), LIKELY),
    ),
    (caseless(rf"\bmy (?:new )?({_ATTRIBUTES})(?: is| are|'s)(?: now| actually)? "), _attribute),
    (caseless(r"\bmy new ([a-z]+(?: [a-z]+)?) (?:is|are|will be) "), _attribute),
    (caseless(r"\bmy ([a-z]+(?: [a-z]+)?) (?:is|are) now "), _attribute),
    (
        caseless(
            r"\b(?:I|we)(?:'ve| have)? (?:just |recently |now )?(?:changed|updated|switched)"
            r" (?:my|our) ([a-z]+(?: [a-z]+)?)(?: from ([A-Za-z0-9@. -]{1,60}?))? to "
        ),
        _changed,
    ),
    (
        caseless(
            r"\b(?:I|we)(?:'ve| have)? (?:just |recently |now |finally )?switched (?:from"
            r" ([A-Za-z0-9' -]{1,60}?) )?(?:over )?to "
        ),
        _switched,
    ),
    (
        caseless(
            r"\b(?:I|someone who|me to) (?:[a-z']+ ){0,3}?(?:follows?|keeps? to|eats?|maintains?|stick to) an? "
            r"((?:[a-z-]+,? ){1,5})diet\b"
        ),
        _diet,
    ),
    (caseless(r"\bI(?:'m| am) (?:currently |now )?on an? ((?:[a-z-]+,? ){1,4})diet\b"), _diet),
    (caseless(rf"\bI(?:'m| am) (?:currently |now |a |strictly |not |no longer )*({_DIETS})\b"), _diet),
    (caseless(rf"\b[Aa]s a ({_DIETS})\b"), _diet),
    (caseless(r"\bI(?:'m| am) (?:[a-z]+ly |not |no longer |also )*allergic to "), _allergy),
    (caseless(r"\bI(?:'ve got| have| suffer from) (?:an?|my|some) (?:[a-z]+ )?allergy to "), _allergy),
    (
        caseless(
            r"\b(?:I(?:'ve got| have| suffer from)|due to|because of) (?:an?|my) (?:severe"
            r" |serious |mild |bad |strong |life-threatening )?([a-z]+(?: [a-z]+)?) allergy\b"
        ),
        _allergy,
    ),
    (
        caseless(
            r"\bmy (?:all-time |absolute |current |new |personal )*favou?rite ([a-z]+(?: [a-z]+){0,3}?)"
            r" (?:is|are|has always been|has to be|would be)(?: now)? "
        ),
        _favourite,
    ),
    (
        caseless(
            r"(?:^|[,;] )([A-Z][A-Za-z' -]{1,50}?) (?:is|are|has been|has always been) (?:definitely"
            r" |still |now )?my (?:all-time |absolute )?favou?rite ([a-z]+(?: [a-z]+){0,2})"
        ),
        _is_favourite,
    ),
)
