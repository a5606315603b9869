"""Words for people by what they say of sex and age: two exclude one another where a letter disagrees.

First letter: m, f or `-` (unsaid); second: c (child), a (grown), t (in between), o (old) or `-`.
"""

PEOPLE: dict[str, str] = {}
for _features, _words in (
    ("m-", "man gentleman guy businessman groom king policeman fireman cowboy monk priest"),
    ("f-", "woman lady businesswoman bride queen policewoman nun actress waitress ballerina"),
    ("mc", "boy lad"),
    ("fc", "girl"),
    ("m-", "male brother son father dad husband uncle nephew grandfather grandpa boyfriend he him prince actor waiter"),
    ("f-", "female sister daughter mother mom mum wife aunt niece grandmother grandma girlfriend she her princess"),
    ("-c", "child kid baby toddler infant newborn"),
    ("-a", "adult"),
    ("-t", "teenager teen"),
    ("--", "person people human individual someone somebody crowd group couple friend family"),
):
    for _word in _words.split():
        PEOPLE[_word] = _features
