"""Rules as RE2, so that no message takes more than linear time, and the words that several rules share."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, cast

import re2

_re2 = cast("Any", re2)


class Rule:
    """A pattern that is compiled when it is first used: most programs never read a message."""

    def __init__(self, pattern: str, *, cased: bool) -> None:
        self._pattern = pattern
        self._cased = cased

    @cached_property
    def _compiled(self) -> Any:
        options = _re2.Options()
        options.log_errors = False
        options.case_sensitive = self._cased
        return _re2.compile(self._pattern, options)

    def search(self, text: str) -> Any:
        """The first match, or None."""
        return self._compiled.search(text)

    def finditer(self, text: str) -> Iterator[Any]:
        """Every match, none within another."""
        return self._compiled.finditer(text)

    def sub(self, by: str | Callable[[Any], str], text: str) -> str:
        """The text with every match replaced."""
        return self._compiled.sub(by, text)


def rule(pattern: str, *, cased: bool = False) -> Rule:
    """A pattern for letters of either case, unless told otherwise. Spaces stand for themselves."""
    return Rule(pattern, cased=cased)


def word_set(words: str) -> frozenset[str]:
    """The words, parted by space."""
    return frozenset(words.split())


def either(words: str) -> str:
    """A group of alternatives, the longest first, out of words parted by space; `_` stands for a space within one."""
    parts = sorted(words.split(), key=len, reverse=True)
    return "(?:" + "|".join(part.replace("_", " ") for part in parts) + ")"


# Between the speaker and the verb.
ADVERBS = (
    "(?:"
    + either(
        """
    really absolutely usually generally typically normally often always strongly strictly truly just still also
    definitely personally actually honestly mostly much vastly greatly deeply particularly especially simply kind_of
    sort_of tend_to tends_to mainly now currently do quite rather totally completely genuinely certainly highly
    try_to tries_to have_to has_to need_to needs_to must exclusively only never no_longer have_always 've_always
    've_never have_never increasingly firmly intensely extremely probably seriously literally very so a_bit
    somewhat only_ever ever like_to would_prefer_to prefer_to choose_to want_to entirely
    """
    )
    + " )*"
)

# What one does with things one likes or not; it says that one has a habit, and nothing of what the habit is about.
HABITS = either(
    """
    use eat drink buy wear read watch listen_to drive consume consider fly stay travel shop choose play work_with
    take accept follow cook order support book feed date pay_with smoke own order_from buy_from stay_at stay_in ride
    shop_at eat_at dine_at wear_anything touch visit attend go_to go_for
    """
)
HABITS_TOLD = either(
    """
    uses eats drinks buys wears reads watches listens_to drives consumes considers flies stays travels shops
    chooses plays takes accepts follows cooks orders supports books feeds rides visits attends
    """
)
LIKING = either("like love adore enjoy prefer favor favour appreciate cherish fancy admire relish")
LIKING_TOLD = either("likes loves adores enjoys prefers favors favours appreciates cherishes fancies admires relishes")
DISLIKING = either("dislike hate detest despise loathe abhor avoid resent")
DISLIKING_TOLD = either("dislikes hates detests despises loathes abhors avoids resents")

GOOD = either(
    """
    soothing relaxing calming engaging fascinating enjoyable intriguing appealing refreshing inspiring comfortable
    helpful useful delightful rewarding exciting interesting charming motivating energizing comforting wonderful
    amazing great beautiful satisfying therapeutic fun invaluable essential
    """
)
BAD = either(
    """
    unsettling boring dull tedious annoying distracting confusing uncomfortable stressful overwhelming restrictive
    ineffective frustrating unpleasant disturbing disgusting cruel depressing exhausting tiring irritating
    intimidating demotivating hard difficult challenging impersonal unappealing distasteful unsafe unhealthy cluttered
    jarring gimmicky awful terrible horrible ugly off-putting inconvenient uninteresting unbearable offensive
    """
)
FEELS_BAD = either(
    """
    uncomfortable nauseous sick anxious sad dizzy nervous sluggish uneasy ill queasy itchy tired sleepy angry drowsy
    bloated stressed miserable claustrophobic seasick carsick
    """
)
FEELS_GOOD = either("happy calm relaxed good great alive energized peaceful smile comfortable")
