"""The word lists of the judge, read once from the text files of this folder; each file describes its own lists."""

from muniment.language.data_files import read_sections, word_set


def _read(file: str) -> dict[str, list[str]]:
    return read_sections(__name__, f"{file}.txt")


def _words(lines: list[str]) -> frozenset[str]:
    return word_set(" ".join(lines))


def _numbers(lines: list[str]) -> dict[str, int]:
    pairs = (item.rpartition(":") for item in " ".join(lines).split())
    return {word: int(number) for word, _, number in pairs}


def _numbered(lines: list[str], first: int) -> dict[str, int]:
    return {name: number for number, line in enumerate(lines, first) for name in line.split()}


def _mapping(lines: list[str]) -> dict[str, str]:
    pairs = (line.partition("=") for line in lines)
    return {left.strip(): right.strip() for left, _, right in pairs}


_function_words = _read("function_words")
WORD_LISTS = {name: _words(lines) for name, lines in _function_words.items()}
DROPPED = WORD_LISTS["dropped"]
PREPOSITIONS = WORD_LISTS["prepositions"]
PREPOSITION_GROUPS = _numbered(_function_words["preposition_groups"], 0)
INSIDE = WORD_LISTS["inside"]
ON_TOP = WORD_LISTS["on_top"]
PREPOSITIONS_AFTER_VERB = {
    verb: word_set(prepositions)
    for verb, _, prepositions in (line.partition(":") for line in _function_words["prepositions_after_verb"])
}
PRONOUNS = {
    form: person
    for person, _, forms in (line.partition(":") for line in _function_words["pronouns"])
    for form in forms.split()
}
NEGATORS = WORD_LISTS["negators"]
NEGATING_BEFORE_TO = WORD_LISTS["negating_before_to"]
NEGATING_BEFORE_ING = WORD_LISTS["negating_before_ing"]
NOT_NEGATED_BY = WORD_LISTS["not_negated_by"]
HEDGES = WORD_LISTS["hedges"]
QUESTION_WORDS = WORD_LISTS["question_words"]
BE = WORD_LISTS["be"]
PAST_AUXILIARIES = WORD_LISTS["past_auxiliaries"]
PRESENT_AUXILIARIES = WORD_LISTS["present_auxiliaries"]
FUTURE = WORD_LISTS["future"]
FORMER = WORD_LISTS["former"]
FOCUS = WORD_LISTS["focus"]
SUBORDINATORS = WORD_LISTS["subordinators"]
DETERMINERS = WORD_LISTS["determiners"]
COMPOUND_PREFIXES = WORD_LISTS["compound_prefixes"]
LIGHT_KINDS = [line.split() for line in _function_words["light_kinds"]]

_inflections = _read("inflections")
INFLECTIONS: dict[str, str] = {}
for _entry in " ".join(_inflections["inflections"]).split():
    _base, _, _forms = _entry.partition(":")
    for _form in _forms.split(","):
        INFLECTIONS.setdefault(_form, _base)
UNINFLECTED = _words(_inflections["uninflected"])
PAST = _words(_inflections["past"])
PARTICIPLES = _words(_inflections["participles"])
UNCHANGED = _words(_inflections["unchanged"])

_number_words = _read("numbers")
CARDINALS = _numbers(_number_words["cardinals"])
ORDINALS = _numbers(_number_words["ordinals"])
SCALES = _numbers(_number_words["scales"])
# Of each unit its dimension and the factor to the dimension's own unit.
UNITS = {
    name: (dimension, float(factor))
    for dimension, factor, *names in (line.split() for line in _number_words["units"])
    for name in names
}
CURRENCY_SIGNS = _words(_number_words["currency_signs"])
MONTHS = _numbered(_number_words["months"], 1)
WEEKDAYS = _numbered(_number_words["weekdays"], 0)
AMBIGUOUS_DATES = _words(_number_words["ambiguous_dates"])

_phrases = _read("phrases")
REWRITES = _mapping(_phrases["rewrites"])
CONTRACTIONS = _mapping(_phrases["contractions"])
CONTRACTED_ENDINGS = _mapping(_phrases["contracted_endings"])

_synonyms = _read("synonyms")
SYNONYMS = [line.split() for line in _synonyms["synonyms"]]
COMPATIBLE = [pair.split("/") for pair in _words(_synonyms["compatible"])]
ANTONYMS = [tuple(part.split() for part in line.split("|")) for line in _read("antonyms")["antonyms"]]

_classes = _read("classes")
# Of each class its name, its hypernyms, and its members; a member is the list of its names.
CLASSES = [
    (name, hypernyms.split(), [member.split("=") for member in members.split()])
    for name, hypernyms, members in (line.split(";") for line in _classes["classes"])
]
PEOPLE = {
    word: features for features, words in (line.split(";") for line in _classes["people"]) for word in words.split()
}
