"""The frames in which people say what they like and what not, each with the side it takes."""

from muniment.language.messages.rules import (
    ADVERBS,
    BAD,
    DISLIKING,
    DISLIKING_TOLD,
    FEELS_BAD,
    FEELS_GOOD,
    GOOD,
    HABITS,
    HABITS_TOLD,
    LIKING,
    LIKING_TOLD,
    Rule,
    either,
    rule,
)

_I = r"\b(?:I|as someone who|I'm someone who|I am someone who|I'm a person who)"
_BE = r"(?:'m| am)"
_ADJECTIVES = r"(?:[a-z-]+ ){0,3}"
_AVERSION = either(
    "aversion dislike distaste hatred bias phobia fear objection intolerance disdain"
    " disinterest prejudice hate loathing"
)
_FONDNESS = either("preference fondness soft_spot passion weakness love liking appreciation penchant affinity taste")
_TOWARDS = either("to for of against towards toward with")
_FAN = r"(?:a |the )?(?:(?:big|huge|great|massive|real|lifelong|die-hard) )?(?:fan|lover|admirer) of"
_INTO = either("into keen_on fond_of big_on crazy_about comfortable_with interested_in excited_about much_for")
_DRAWN = either(
    "into keen_on fond_of partial_to crazy_about obsessed_with passionate_about drawn_to captivated_by fascinated_by"
    " big_on addicted_to hooked_on only_interested_in"
)
_REPELLED = either(
    "afraid_of scared_of terrified_of uncomfortable_with averse_to opposed_to sensitive_to put_off_by sick_of tired_of"
    " done_with against bored_by bored_of wary_of"
)
_ENDURE = either("stand bear tolerate handle stomach abide eat drink consume have_any")
_CARE = either("interest desire patience appetite tolerance use time")
_NOT = r"(?:don't|do not|doesn't|does not)"
_CANNOT = r"(?:can't|cannot|can not|couldn't)"

# Each with the side it takes, and whether it says so outright; what it is about follows the match.
FRAMES: tuple[tuple[bool, bool, Rule], ...] = tuple(
    (likes, said, rule(pattern))
    for likes, said, pattern in (
        (True, True, rf"{_I} {ADVERBS}(?:{LIKING}|{LIKING_TOLD}) "),
        (True, True, r"\bI(?:'d| would) (?:really |much |still )?(?:prefer|rather) "),
        (False, True, rf"{_I} {ADVERBS}(?:{DISLIKING}|{DISLIKING_TOLD}) "),
        (False, True, rf"{_I} {ADVERBS}(?:steer|stay|keep|shy)s? (?:clear of|away from) "),
        (False, True, rf"{_I} {ADVERBS}(?:refuse|decline)s? to (?:{HABITS} )?"),
        (
            False,
            True,
            rf"{_I} {ADVERBS}{_CANNOT} {ADVERBS}{_ENDURE} ",
        ),
        (False, True, rf"{_I} {ADVERBS}{_NOT} {ADVERBS}(?:{LIKING}|care for|think much of) "),
        (False, True, rf"\bI(?:{_BE}) not {ADVERBS}(?:{_FAN}|{_INTO}|much of an?) "),
        (True, True, rf"\bI(?:{_BE}) {ADVERBS}(?:{_FAN}|{_DRAWN}) "),
        (False, True, rf"\bI(?:{_BE}) {ADVERBS}{_REPELLED} "),
        (False, True, rf"{_I}(?:'ve got| have| has) (?:an?|some) {_ADJECTIVES}{_AVERSION} {_TOWARDS} "),
        (
            False,
            True,
            rf"{_I}(?:'ve got| have| has) {ADVERBS}(?:no|little|zero|not much) {_CARE}"
            rf" {either('in for to')} ",
        ),
        (True, True, rf"{_I}(?:'ve got| have| has) (?:an?|some) {_ADJECTIVES}{_FONDNESS} for "),
        (
            True,
            False,
            rf"{_I} (?:{ADVERBS})(?:will |can |could )?(?:only|exclusively|solely|strictly)"
            rf" {ADVERBS}(?:{HABITS}|{HABITS_TOLD}|want(?:s)?(?: to {HABITS})?) ",
        ),
        (True, False, rf"\bI(?:{_BE}) only interested in "),
        (True, False, rf"{_I} {ADVERBS}(?:sticks? (?:to|with)|opts? for|goes? for|relys? on|swears? by) "),
        (False, True, rf"{_I} {ADVERBS}loses? (?:interest|patience) (?:in|with) "),
        (
            True,
            False,
            rf"{_I} (?:usually|tend to|always|typically|generally|mostly|often|normally) {HABITS} (?:only )?",
        ),
        (False, False, rf"{_I} (?:{ADVERBS})?(?:never(?: ever)?|won't|will not) {ADVERBS}(?:{HABITS}|{HABITS_TOLD}) "),
        (False, False, rf"{_I} {ADVERBS}{_NOT} {ADVERBS}{HABITS} "),
    )
)
# The speaker goes on with "and" or "but"; whoever "follows" goes on with "avoids".
_ON = r"(?:\b(?:and|but|so)|,)(?: (?:can|will|must|would|do))?"
TOLD_ON: tuple[tuple[bool, bool, Rule], ...] = (
    (True, True, rule(rf"{_ON} {ADVERBS}(?:prefers|enjoys|favou?rs) ")),
    (False, True, rule(rf"{_ON} {ADVERBS}(?:avoids|dislikes|detests|despises|hates|refuses to(?: {HABITS})?) ")),
    (False, True, rule(rf"{_ON} {ADVERBS}(?:doesn't|does not) {ADVERBS}(?:{LIKING}|{HABITS}) ")),
)
SPEAKS = rule(r"(?:^|[,;:] |\b(?:and|but|so|since|because|that|as|while|though) )(I(?:'m|'ve|'d|'ll)?) ")
SOMEONE = rule(r"\bas someone who ")
CONTINUED: tuple[tuple[bool, bool, Rule], ...] = tuple(
    (likes, said, rule(pattern))
    for likes, said, pattern in (
        (True, True, rf"{_ON} {ADVERBS}(?:prefer|enjoy|favou?r) "),
        (
            False,
            True,
            rf"{_ON} {ADVERBS}(?:avoid|dislike|detest|despise|hate|refuse to(?: {HABITS})?) ",
        ),
        (False, True, rf"{_ON} {ADVERBS}{_NOT} {ADVERBS}(?:{LIKING}|{HABITS}) "),
        (True, False, rf"{_ON} {ADVERBS}(?:stick to|opt for|go for|rely on) "),
        (True, False, rf"{_ON} (?:will |can )?(?:only|exclusively) {ADVERBS}(?:{HABITS}|{HABITS_TOLD}) "),
        (
            False,
            False,
            rf"{_ON} (?:never|won't|will not|cannot|can't) {ADVERBS}(?:{HABITS}|{HABITS_TOLD}) ",
        ),
    )
)
ENDED = tuple(
    rule(pattern)
    for pattern in (
        rf"\bI(?:'ve| have)? (?:just |recently |finally |now )?(?:stopped|quit) (?:{ADVERBS})(?:[a-z]+ing) ",
        r"\bI(?:'ve| have)? (?:just |recently |finally |now )?(?:gone off|given up(?:"
        r" on)?|gave up(?: on)?|cut out|lost interest in"
        r"|lost my taste for|grown tired of|grown out of|grew out of|had enough of|moved away from) ",
    )
)
BEGUN = tuple(
    rule(pattern)
    for pattern in (
        rf"\bI(?:'ve| have)? (?:just |recently |finally |now |really )?(?:started|begun"
        rf"|began|come|grown|learned|learnt|got|gotten)"
        rf" (?:to |into )?(?:really )?(?:{LIKING}|liking|loving|enjoying|preferring|appreciating|into) ",
    )
)
USED_TO = rule(
    rf"\bI used to (?:really )?(?:{LIKING}|{HABITS}) ([^,.]{{2,120}}?),? but (?:not"
    rf" any ?more|no longer|not now|I don't any ?more"
    r"|I no longer do|that changed|that's changed|now I (?:don't|hate|can't|avoid))"
)
FINDS = tuple(
    (
        likes,
        rule(
            rf"{_I} {ADVERBS}finds? ([^,;]{{2,100}}?) (?:to be )?((?:{ADVERBS})(?:too [a-z-]+|less [a-z-]+|{words}))\b"
        ),
    )
    for likes, words in ((False, BAD), (True, GOOD))
)
HARD = rule(
    rf"{_I} {ADVERBS}(?:finds?|found) it {ADVERBS}(?:too )?{BAD} to (?:(?:stay|get|be|feel|keep) )?"
    r"(?:engaged (?:with|by|in)|interested in|enjoy|like|into|connect with|relate to|excited about|motivated by) "
)
# The thing comes first, and then what it is to the speaker.
THINGS: tuple[tuple[bool, Rule], ...] = tuple(
    (
        likes,
        rule(
            rf"^(?:.{{0,80}}?(?:[,;:] |\b(?:because|since|as|and|but|though|that|where|so)"
            rf" ))??([^,;:]{{2,100}}?)(?:,? which)? {pattern}\b"
        ),
    )
    for likes, pattern in (
        (False, rf"(?:make|makes|made) me (?:feel )?{ADVERBS}{FEELS_BAD}"),
        (True, rf"(?:make|makes) me (?:feel )?{ADVERBS}{FEELS_GOOD}"),
        (
            False,
            rf"{_NOT} {ADVERBS}(?:appeal to me|interest me|work for me|sit well with me|agree with me|do it for me)",
        ),
        (
            False,
            r"(?:isn't|aren't|is not|are not) (?:really |quite )?(?:for me|my (?:thing|cup"
            r" of tea|style|favou?rite|jam))",
        ),
        (False, r"(?:is|are) (?:an? )?(?:strict |absolute |definite |hard )?(?:no-go|deal-?breaker|turn-?off) for me"),
        (False, r"(?:bore|bores|annoy|annoys|disgust|disgusts|scare|scares|irritate|irritates) me"),
        (
            True,
            r"(?:is|are) (?:my|a) (?:number one|top|main|first|biggest|highest|absolute) (?:priority|must)(?: for me)?",
        ),
        (
            True,
            r"(?:is|are|matter|matters) (?:very |really |so |extremely |a lot )?(?:important"
            r"|crucial|essential)? ?(?:to|for) me",
        ),
        (True, r"(?:is|are) (?:really |totally |so )?my (?:thing|jam|cup of tea|go-to)"),
    )
)
HEADING = rule(
    rf"^([A-Za-z][A-Za-z ]{{0,40}}) I ({LIKING}|{DISLIKING}|don't like|do not like"
    rf"|can't stand)(?: to [a-z]+(?: to| in| at)?)?: (.+)$"
)
