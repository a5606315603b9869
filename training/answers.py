"""What the readers answer, and the most tokens that each reads at once; needs no torch."""

from dataclasses import dataclass

from training.tagger.labels import SPECIAL, TAGS


@dataclass(frozen=True)
class Head:
    """One question that a reader answers: its classes, for the whole text or for each token."""

    name: str
    classes: tuple[str, ...]
    each_token: bool = False


@dataclass(frozen=True)
class Reader:
    """A reader: its heads, which are the outputs of its graph, and its labels as the manifest names them."""

    name: str
    heads: tuple[Head, ...]
    labels: tuple[str, ...]
    most_tokens: int


# Pairs: does b contradict a, follow from a, or neither?
RELATIONS = ("contradicts", "entails", "neither")

READERS = {
    one.name: one
    for one in (
        Reader("pairs", (Head("scores", RELATIONS),), RELATIONS, 128),
        Reader("prefilter", (Head("scores", RELATIONS),), RELATIONS, 128),
        # Guard: does the text address the model, and is the sentence worth knowing later?
        Reader(
            "guard",
            (Head("attack", ("states", "addresses_the_model")), Head("worth", ("passing", "worth_knowing"))),
            ("attack", "worth"),
            192,
        ),
        # Tagger: what each token belongs to, and which special category it tells of whom.
        Reader(
            "tagger",
            (Head("tags", TAGS, each_token=True), Head("special", SPECIAL, each_token=True)),
            (*TAGS, *SPECIAL),
            192,
        ),
    )
}
