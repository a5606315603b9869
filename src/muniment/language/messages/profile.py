"""What the speaker is: name, home, work, family; diet and allergies; favourites."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from muniment.language.messages.clauses import asks_before, is_answered, is_own_word, remainder
from muniment.language.messages.rules import Rule, either, rule, word_set
from muniment.language.messages.sentences import Sentence
from muniment.language.messages.topics import topic
from muniment.language.messages.wording import sentence as as_sentence
from muniment.language.messages.wording import third, told

PLAIN, SURE = 0.60, 0.70


@dataclass(frozen=True)
class Profile:
    """A fact about the speaker; without a predicate it is a plain statement."""

    about: str
    text: str
    confidence: float
    update: bool
    place: int
    end: int = 0
    predicate: str | None = None
    value: Any = None


_NOW = r"(?:now |currently |actually |still |recently |just |also |both )*"
_NAMES = r"([A-Z][A-Za-z'-]+(?: (?:[A-Z][A-Za-z'.-]*|de|van|von|la|del|al|bin)){0,4})"
_ATTRIBUTES = either(
    """
    job occupation profession job_title title address home_address email email_address phone_number number time_zone
    timezone native_language first_language mother_tongue pronouns nationality employer company city hometown home_town
    shoe_size size birthday date_of_birth age height weight budget blood_type major username handle
    """
)
_DIETS = either(
    """
    vegan vegetarian pescatarian lactose_intolerant lactose-intolerant gluten_intolerant gluten-free
    gluten_free diabetic celiac coeliac keto kosher halal teetotal dairy-free
    """
)
_RELATIVES = either(
    """
    kid kids child children son sons daughter daughters brother brothers sister sisters sibling siblings dog dogs cat
    cats grandchild grandchildren
    """
)
_NUMBERS = either("a an one two three four five six seven eight nine ten [0-9]{1,2}")
_OCCUPATION = rule(
    r"(?:er|or|ist|ian|eer|yst|ant|man|woman|nurse|student|chef|cook|mom|mum|dad|mother"
    r"|father|parent|teacher|coach|pilot"
    r"|judge|clerk|artist|architect|freelancer|entrepreneur|retiree|veteran|immigrant"
    r"|professor|vet|medic|scientist|resident"
    r"|assistant|intern|nanny|barista|native|citizen|introvert|extrovert|vegan|vegetarian|widow|widower)s?$"
)
_NO_OCCUPATION = rule(
    r"\b(?:fan|lover|bit|lot|little|person|sucker|fan|believer|member|user|mess|firm"
    r"|beginner|winner|loser|keeper|sort|kind|matter"
    r"|killer|number|former|better|newcomer|stranger|supporter|follower|reader|viewer"
    r"|owner|buyer|her|player|other|disaster)\b"
)

_Reader = Callable[[Any, str, int], Profile | None]


def profile_of(sentence: Sentence) -> list[Profile]:
    """Every fact of this kind that the sentence states as the speaker's own, in its order."""
    found: list[Profile] = []
    text = sentence.text
    for pattern, read in _RULES:
        for match in pattern.finditer(text):
            before = text[: match.start()]
            if not is_own_word(before):
                continue
            if sentence.asks and (asks_before(before) or not is_answered(text[match.end() :])):
                continue
            one = read(match, text, match.start())
            if one is not None and not any(other.place <= one.place < other.end for other in found):
                found.append(replace(one, end=max(match.end(), one.end)))
    return found


def _rest(match: Any, text: str) -> tuple[str, bool]:
    rest = remainder(text, match.end(), len(text))
    return rest.object, rest.no_more


def _clause(*, update: bool = False, longest: int = 12) -> _Reader:
    """The clause as it is, told of the user, as a plain statement."""

    def read(match: Any, text: str, place: int) -> Profile | None:
        about, no_more = _rest(match, text)
        if not about or len(about.split()) > longest or about.split()[0].lower() in _EMPTY:
            return None
        phrase = match.group().strip()
        # "we" moves with the speaker.
        again = update or no_more or "no longer" in phrase or " now " in f" {phrase} "
        told_as = told(f"{phrase} {about}{' any more' if no_more else ''}")
        return Profile(about, told_as, SURE, again, place)

    return read


_EMPTY = word_set(
    """
    it that this there here them him her you a the an to so what and but is are was has can will
    """
)


def _name(match: Any, text: str, place: int) -> Profile:
    return Profile(match.group(1), as_sentence(f"The user's name is {match.group(1)}"), SURE, False, place)


def _name_to_use(match: Any, text: str, place: int) -> Profile:
    name = match.group(1)
    words = as_sentence(f"The user wants to be called {name}")
    return Profile(name, words, SURE, False, place, predicate="name_to_use", value=name)


def _not_this_name(match: Any, text: str, place: int) -> Profile | None:
    name = match.group(1)
    about = topic(name)
    words = as_sentence(f"The user does not want to be called {name}")
    return Profile(name, words, SURE, False, place, predicate=f"name_to_use_{about}", value=False) if about else None


def _occupation(match: Any, text: str, place: int) -> Profile | None:
    about, no_more = _rest(match, text)
    words = about.split()
    head = " ".join(words[: next((n for n, word in enumerate(words) if word.lower() in _AFTER_HEAD), len(words))])
    if not head or len(head.split()) > 5 or _NO_OCCUPATION.search(head) or not _OCCUPATION.search(head):
        return None
    phrase = match.group().strip()
    words_told = told(f"{phrase} {' '.join(words[:12])}{' any more' if no_more else ''}")
    update = no_more or "not" in phrase.split() or "no longer" in phrase or " now " in f" {phrase} "
    return Profile(about, words_told, PLAIN, update, place)


_AFTER_HEAD = word_set(
    """
    at for in of with from on by who that working living
    """
)


def _attribute(match: Any, text: str, place: int) -> Profile | None:
    about, _ = _rest(match, text)
    if not about or len(about.split()) > 12 or about.split()[0].lower() in _EMPTY - {"a", "the", "an"}:
        return None
    if about.split()[0].lower().endswith("ing") or _NO_ATTRIBUTE.search(match.group(1)):
        return None
    what = match.group(1).lower()
    update = any(word in match.group().lower().split() for word in ("new", "now", "changed"))
    return Profile(about, as_sentence(f"The user's {what} is {third(about)}"), SURE, update, place)


def _changed(match: Any, text: str, place: int) -> Profile | None:
    about, _ = _rest(match, text)
    if not about or len(about.split()) > 12:
        return None
    what, old = match.group(1).lower(), match.group(2)
    tail = f" (before: {third(old)})" if old else ""
    return Profile(about, as_sentence(f"The user's {what} is now {third(about)}{tail}"), SURE, True, place)


def _switched(match: Any, text: str, place: int) -> Profile | None:
    about, _ = _rest(match, text)
    old = match.group(1)
    if not about or len(about.split()) > 10:
        return None
    words = told(f"I switched from {old} to {about}" if old else f"I switched to {about}")
    sides = sorted(side for side in (topic(about), topic(old or "")) if side)
    if len(sides) == 2 and sides[0] != sides[1]:
        return Profile(
            about, words, SURE, True, place, predicate=f"prefers_{sides[0][:58]}_or_{sides[1][:58]}", value=third(about)
        )
    return Profile(about, words, SURE, True, place)


def _diet(match: Any, text: str, place: int) -> Profile:
    diet = match.group(1).strip().lower()
    ended = bool(_ENDED.search(match.group())) or bool(_NO_MORE.search(text[match.end() : match.end() + 12]))
    if ended:
        return Profile(
            diet,
            as_sentence(f"The user no longer keeps to a {diet} diet"),
            SURE,
            True,
            place,
            predicate=f"likes_{topic(diet)}_diet",
            value=False,
        )
    reason = remainder(text, match.end(), len(text)).reason
    follows = match.group().lower().endswith("diet")
    words = told(f"I follow a {diet} diet{reason}" if follows else f"I am {diet}{reason}")
    return Profile(diet, words, SURE, False, place, predicate="diet", value=diet)


_GOES_ON = rule(r",? (?:and|so) (?:avoid|must|can't|cannot|have|need|don't|prefer|never|only|try)\b")
_ENDED = rule(r"\b(?:not|no longer|don't)\b")
_NO_MORE = rule(r"^,? (?:anymore|any more|any longer)")


def _allergy(match: Any, text: str, place: int) -> Profile | None:
    to = match.group(1) if match.groups() and match.group(1) else _rest(match, text)[0]
    gone_on = _GOES_ON.search(to)
    to = to[: gone_on.start()] if gone_on else to
    about = topic(to)
    if about is None or len(to.split()) > 8:
        return None
    ended = bool(_ENDED.search(match.group()))
    words = f"The user is {'not ' if ended else ''}allergic to {third(to)}"
    return Profile(to, as_sentence(words), SURE, ended, place, predicate=f"allergic_to_{about}", value=not ended)


def _favourite(match: Any, text: str, place: int) -> Profile | None:
    about, _ = _rest(match, text)
    kind = topic(match.group(1))
    if (
        not about
        or kind is None
        or _NO_KIND.search(match.group(1))
        or len(about.split()) > 15
        or about.split()[0].lower() in _EMPTY - {"a", "the", "an"}
    ):
        return None
    if _ONE_OF.search(text[:place]):
        words = as_sentence(f"One of the user's favourite {match.group(1).lower()} is {third(about)}")
        return Profile(about, words, SURE, False, place, predicate=f"likes_{topic(about)}", value=True)
    update = bool(_NEW.search(match.group()))
    verb = "are" if " are" in match.group().lower() else "is"
    words = as_sentence(f"The user's favourite {match.group(1).lower()} {verb} {third(about)}")
    return Profile(about, words, SURE, update, place, predicate=f"favourite_{kind}", value=third(about))


def _is_favourite(match: Any, text: str, place: int) -> Profile | None:
    about, kind = match.group(1), topic(match.group(2))
    if kind is None or about.lower() in _EMPTY:
        return None
    words = as_sentence(f"The user's favourite {match.group(2).lower()} is {third(about)}")
    return Profile(about, words, SURE, False, place, predicate=f"favourite_{kind}", value=third(about))


_NO_ATTRIBUTE = rule(r"\b(?:which|that|who|it|there|but|and)$")
_ONE_OF = rule(r"\b(?:one|some|two|many) of $")
_NO_KIND = rule(r"\b(?:memory|memories|part|parts|moment|moments|thing|things|bit)\b")
_NEW = rule(r"\b(?:new|now)\b")

_RULES: tuple[tuple[Rule, _Reader], ...] = (
    (
        rule(rf"\b(?:[Mm]y (?:full |first |last )?name is|[Mm]y name's|I'm called|I am called) {_NAMES}", cased=True),
        _name,
    ),
    (
        rule(
            rf"\b(?:[Cc]all me|I go by|I prefer to be called|I'd like to be called|address me as) {_NAMES}", cased=True
        ),
        _name_to_use,
    ),
    (rule(rf"\b(?:[Dd]on't|[Dd]o not|[Pp]lease don't|[Ss]top) call(?:ing)? me {_NAMES}", cased=True), _not_this_name),
    (
        rule(rf"\bI(?:'ve| have)? {_NOW}(?:no longer |don't |been )?(?:live|lived|living|reside) (?:in|at|near|with) "),
        _clause(),
    ),
    (rule(rf"\bI(?:'m| am) {_NOW}(?:based|located|living|residing) (?:in|at|near|out of) "), _clause()),
    (
        rule(rf"\b(?:I|we)(?:'ve| have)? {_NOW}(?:moved|relocated) (?:from [A-Za-z ]{{2,40}}? )?to "),
        _clause(update=True),
    ),
    (
        rule(rf"\b(?:I|we)(?:'m|'re| am| are) {_NOW}(?:moving|relocating) (?:from [A-Za-z ]{{2,40}}? )?to "),
        _clause(update=True),
    ),
    (rule(rf"\bI {_NOW}(?:no longer |don't )?work (?:at|for|as an?|as the|in|from) "), _clause()),
    (rule(rf"\bI(?:'m| am) {_NOW}(?:originally )?from "), _clause(longest=6)),
    (rule(rf"\bI(?:'m| am) {_NOW}(?:not |no longer )?(?:an?|the) "), _occupation),
    (
        rule(r"\bI(?:'m| am) ([0-9]{1,3}) years old\b"),
        lambda match, text, place: Profile(
            match.group(1), as_sentence(f"The user is {match.group(1)} years old"), SURE, False, place
        ),
    ),
    (rule(r"\bI was born (?:on|in|at) "), _clause(longest=6)),
    (rule(rf"\bI {_NOW}speak (?:fluent |some |a little )?"), _clause(longest=6)),
    (
        rule(rf"\bI(?:'m| am) {_NOW}(?:married|divorced|engaged|widowed|retired|unemployed|pregnant|self-employed)\b"),
        lambda match, text, place: Profile(
            match.group(), told(match.group()), SURE, " now " in f" {match.group()} ", place
        ),
    ),
    (
        rule(rf"\bI(?:'ve got| have) ((?:{_NUMBERS}) (?:[a-z-]+ ){{0,2}}{_RELATIVES})\b"),
        lambda match, text, place: Profile(match.group(1), told(f"I have {match.group(1)}"), PLAIN, False, place),
    ),
    (rule(rf"\bmy (?:new )?({_ATTRIBUTES})(?: is| are|'s)(?: now| actually)? "), _attribute),
    (rule(r"\bmy new ([a-z]+(?: [a-z]+)?) (?:is|are|will be) "), _attribute),
    (rule(r"\bmy ([a-z]+(?: [a-z]+)?) (?:is|are) now "), lambda match, text, place: _attribute(match, text, place)),
    (
        rule(
            r"\b(?:I|we)(?:'ve| have)? (?:just |recently |now )?(?:changed|updated|switched)"
            r" (?:my|our) ([a-z]+(?: [a-z]+)?)(?: from ([A-Za-z0-9@. -]{1,60}?))? to "
        ),
        _changed,
    ),
    (
        rule(
            r"\b(?:I|we)(?:'ve| have)? (?:just |recently |now |finally )?switched (?:from"
            r" ([A-Za-z0-9' -]{1,60}?) )?(?:over )?to "
        ),
        _switched,
    ),
    (
        rule(
            r"\b(?:I|someone who|me to) (?:[a-z']+ ){0,3}?(?:follows?|keeps? to|eats?|maintains?|stick to) an? "
            r"((?:[a-z-]+,? ){1,5})diet\b"
        ),
        _diet,
    ),
    (rule(r"\bI(?:'m| am) (?:currently |now )?on an? ((?:[a-z-]+,? ){1,4})diet\b"), _diet),
    (rule(rf"\bI(?:'m| am) (?:currently |now |a |strictly |not |no longer )*({_DIETS})\b"), _diet),
    (rule(rf"\b[Aa]s a ({_DIETS})\b"), _diet),
    (rule(r"\bI(?:'m| am) (?:[a-z]+ly |not |no longer |also )*allergic to "), _allergy),
    (rule(r"\bI(?:'ve got| have| suffer from) (?:an?|my|some) (?:[a-z]+ )?allergy to "), _allergy),
    (
        rule(
            r"\b(?:I(?:'ve got| have| suffer from)|due to|because of) (?:an?|my) (?:severe"
            r" |serious |mild |bad |strong |life-threatening )?([a-z]+(?: [a-z]+)?) allergy\b"
        ),
        _allergy,
    ),
    (
        rule(
            r"\bmy (?:all-time |absolute |current |new |personal )*favou?rite ([a-z]+(?: [a-z]+){0,3}?)"
            r" (?:is|are|has always been|has to be|would be)(?: now)? "
        ),
        _favourite,
    ),
    (
        rule(
            r"(?:^|[,;] )([A-Z][A-Za-z' -]{1,50}?) (?:is|are|has been|has always been) (?:definitely"
            r" |still |now )?my (?:all-time |absolute )?favou?rite ([a-z]+(?: [a-z]+){0,2})"
        ),
        _is_favourite,
    ),
)
