"""The tables of the small world, against the real judge, embedder and detectors."""

from itertools import combinations, product

import pytest

from muniment.language.assertion import judge, relate
from muniment.language.embedding import builtin_embedder
from muniment.language.redaction import redactor_of
from tests.scenarios.world import ABOUT, ENTITIES, MAIL, MASKED, PACKS, PREDICATES, SENTENCES, VALUES

PACK = PACKS["mark_both"]
KEYED = [
    f"{entity} {predicate}: {MASKED.get(value, value)}"
    for entity, predicate, value in product(ENTITIES, PREDICATES, (*VALUES, MAIL))
]


def judged(one: str, other: str) -> str:
    embedder = builtin_embedder()
    first, second = embedder.embed([one, other])
    thresholds = PACK.memory_layer.contradiction.thresholds_for(embedder.name)
    return relate(one, other, float(first @ second), thresholds, judge).verdict


@pytest.mark.rule("CTR-2", "REV-7")
@pytest.mark.parametrize(("one", "other"), list(combinations(ABOUT, 2)))
def test_two_sentences_relate_as_the_table_says(one: str, other: str) -> None:
    (topic, said), (other_topic, other_said) = ABOUT[one], ABOUT[other]
    expected = "different" if topic != other_topic else "same" if said == other_said else "contradicts"
    assert judged(one, other) == judged(other, one) == expected


@pytest.mark.rule("CTR-2", "REV-6")
def test_a_fact_on_a_key_reads_like_no_sentence_and_like_no_other_fact() -> None:
    assert {judged(fact, sentence) for fact, sentence in product(KEYED, ABOUT)} == {"different"}
    assert "same" not in {judged(one, other) for one, other in combinations(KEYED, 2)}


@pytest.mark.rule("RED-1", "CAN-4")
@pytest.mark.parametrize("said", [*SENTENCES, *VALUES, MAIL])
def test_only_what_holds_an_address_is_masked_and_becomes_pii(said: str) -> None:
    redacted = redactor_of(PACK).text(said)
    assert (redacted.content, redacted.label) == (MASKED.get(said, said), "PII" if said in MASKED else None)
