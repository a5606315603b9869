"""How two texts stand to one another once their similarity is known: what the pipeline asks."""

from typing import get_args

from muniment.language.assertion.decision import judge as builtin_judge
from muniment.language.assertion.decision import plain
from muniment.language.assertion.judgement import Judge, Judgement, Relation
from muniment.language.instructions import as_seen
from muniment.pack.memory_layer import Thresholds


def relate(a: str, b: str, similarity: float, thresholds: Thresholds, judge: Judge = builtin_judge) -> Judgement:
    """The judge's verdict where the texts are similar enough for it, else `different` with the judge's reasons.

    Both are read as they are seen. The same words are the same whatever the embedder makes of them.
    """
    a, b = as_seen(a), as_seen(b)
    if plain(a) == plain(b):
        return Judgement("same", ("same_words",))
    if similarity < min(thresholds.similarity, thresholds.duplicate_similarity):
        return Judgement("different", ("other_content",))
    found = judge(a, b)
    if found.verdict not in get_args(Relation):
        raise ValueError(f"a judge says one of {', '.join(get_args(Relation))}")
    needed = {"same": thresholds.duplicate_similarity, "contradicts": thresholds.similarity}.get(found.verdict, 0.0)
    return found if similarity >= needed else Judgement("different", found.reasons)
