"""The sentence frames in which people say what they like and dislike, each with the side it takes."""

from muniment.language.patterns import Pattern, caseless, either

# Adverbs and auxiliaries between the speaker and the verb.
ADVERBS = (
    "(?:"
    + either("""
    really absolutely usually generally typically normally often always strongly strictly truly just still also
    definitely personally actually honestly mostly much vastly greatly deeply particularly especially simply kind_of
    sort_of tend_to tends_to mainly now currently do quite rather totally completely genuinely certainly highly
    try_to tries_to have_to has_to need_to needs_to must exclusively only never no_longer have_always 've_always
    've_never have_never increasingly firmly intensely extremely probably seriously literally very so a_bit
    somewhat only_ever ever like_to would_prefer_to prefer_to choose_to want_to entirely
    """)
    + " )*"
)

# Verbs of habit: they say that the speaker has a habit, and nothing about its object.
HABITS = either("""
    use eat drink buy wear read watch listen_to drive consume consider fly stay travel shop choose play work_with
    take accept follow cook order support book feed date pay_with smoke own order_from buy_from stay_at stay_in ride
    shop_at eat_at dine_at wear_anything touch visit attend go_to go_for
""")
HABITS_THIRD = either("""
    uses eats drinks buys wears reads watches listens_to drives consumes considers flies stays travels shops
    chooses plays takes accepts follows cooks orders supports books feeds rides visits attends
""")
LIKING = either("like love adore enjoy prefer favor favour appreciate cherish fancy admire relish")
LIKING_THIRD = either("likes loves adores enjoys prefers favors favours appreciates cherishes fancies admires relishes")
DISLIKING = either("dislike hate detest despise loathe abhor avoid resent")
DISLIKING_THIRD = either("dislikes hates detests despises loathes abhors avoids resents")

GOOD = either("""
    soothing relaxing calming engaging fascinating enjoyable intriguing appealing refreshing inspiring comfortable
    helpful useful delightful rewarding exciting interesting charming motivating energizing comforting wonderful
    amazing great beautiful satisfying therapeutic fun invaluable essential
""")
BAD = either("""
    unsettling boring dull tedious annoying distracting confusing uncomfortable stressful overwhelming restrictive
    ineffective frustrating unpleasant disturbing disgusting cruel depressing exhausting tiring irritating
    intimidating demotivating hard difficult challenging impersonal unappealing distasteful unsafe unhealthy cluttered
    jarring gimmicky awful terrible horrible ugly off-putting inconvenient uninteresting unbearable offensive
""")
FEELS_BAD = either("""
    uncomfortable nauseous sick anxious sad dizzy nervous sluggish uneasy ill queasy itchy tired sleepy angry drowsy
    bloated stressed miserable claustrophobic seasick carsick
""")
FEELS_GOOD = either("happy calm relaxed good great alive energized peaceful smile comfortable")

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
_IS_NOT = r"(?:isn't|aren't|is not|are not)"
_TOP = r"(?:number one|top|main|first|biggest|highest|absolute)"
_VERY = r"(?:very |really |so |extremely |a lot )"

_Frames = tuple[tuple[bool, bool, Pattern], ...]


def _frames(groups: dict[tuple[bool, bool], tuple[str, ...]]) -> _Frames:
    """Compile frames by whether they are a liking, and whether they state it outright or imply it by a habit."""
    return tuple(
        (likes, outright, caseless(source)) for (likes, outright), sources in groups.items() for source in sources
    )


# The object of the liking or dislike follows the match.
FRAMES = _frames(
    {
        (True, True): (
            rf"{_I} {ADVERBS}(?:{LIKING}|{LIKING_THIRD}) ",
            r"\bI(?:'d| would) (?:really |much |still )?(?:prefer|rather) ",
            rf"\bI(?:{_BE}) {ADVERBS}(?:{_FAN}|{_DRAWN}) ",
            rf"{_I}(?:'ve got| have| has) (?:an?|some) {_ADJECTIVES}{_FONDNESS} for ",
        ),
        (False, True): (
            rf"{_I} {ADVERBS}(?:{DISLIKING}|{DISLIKING_THIRD}) ",
            rf"{_I} {ADVERBS}(?:steer|stay|keep|shy)s? (?:clear of|away from) ",
            rf"{_I} {ADVERBS}(?:refuse|decline)s? to (?:{HABITS} )?",
            rf"{_I} {ADVERBS}{_CANNOT} {ADVERBS}{_ENDURE} ",
            rf"{_I} {ADVERBS}{_NOT} {ADVERBS}(?:{LIKING}|care for|think much of) ",
            rf"\bI(?:{_BE}) not {ADVERBS}(?:{_FAN}|{_INTO}|much of an?) ",
            rf"\bI(?:{_BE}) {ADVERBS}{_REPELLED} ",
            rf"{_I}(?:'ve got| have| has) (?:an?|some) {_ADJECTIVES}{_AVERSION} {_TOWARDS} ",
            rf"{_I}(?:'ve got| have| has) {ADVERBS}(?:no|little|zero|not much) {_CARE} {either('in for to')} ",
            rf"{_I} {ADVERBS}loses? (?:interest|patience) (?:in|with) ",
        ),
        (True, False): (
            rf"{_I} (?:{ADVERBS})(?:will |can |could )?(?:only|exclusively|solely|strictly)"
            rf" {ADVERBS}(?:{HABITS}|{HABITS_THIRD}|want(?:s)?(?: to {HABITS})?) ",
            rf"\bI(?:{_BE}) only interested in ",
            rf"{_I} {ADVERBS}(?:sticks? (?:to|with)|opts? for|goes? for|relys? on|swears? by) ",
            rf"{_I} (?:usually|tend to|always|typically|generally|mostly|often|normally) {HABITS} (?:only )?",
        ),
        (False, False): (
            rf"{_I} (?:{ADVERBS})?(?:never(?: ever)?|won't|will not) {ADVERBS}(?:{HABITS}|{HABITS_THIRD}) ",
            rf"{_I} {ADVERBS}{_NOT} {ADVERBS}{HABITS} ",
        ),
    }
)
# The speaker continues with "and" or "but"; after "someone who follows" the verb is in the third person.
_ON = r"(?:\b(?:and|but|so)|,)(?: (?:can|will|must|would|do))?"
CONTINUED = _frames(
    {
        (True, True): (rf"{_ON} {ADVERBS}(?:prefer|enjoy|favou?r) ",),
        (False, True): (
            rf"{_ON} {ADVERBS}(?:avoid|dislike|detest|despise|hate|refuse to(?: {HABITS})?) ",
            rf"{_ON} {ADVERBS}{_NOT} {ADVERBS}(?:{LIKING}|{HABITS}) ",
        ),
        (True, False): (
            rf"{_ON} {ADVERBS}(?:stick to|opt for|go for|rely on) ",
            rf"{_ON} (?:will |can )?(?:only|exclusively) {ADVERBS}(?:{HABITS}|{HABITS_THIRD}) ",
        ),
        (False, False): (rf"{_ON} (?:never|won't|will not|cannot|can't) {ADVERBS}(?:{HABITS}|{HABITS_THIRD}) ",),
    }
)
CONTINUED_THIRD = _frames(
    {
        (True, True): (rf"{_ON} {ADVERBS}(?:prefers|enjoys|favou?rs) ",),
        (False, True): (
            rf"{_ON} {ADVERBS}(?:avoids|dislikes|detests|despises|hates|refuses to(?: {HABITS})?) ",
            rf"{_ON} {ADVERBS}(?:doesn't|does not) {ADVERBS}(?:{LIKING}|{HABITS}) ",
        ),
    }
)
SPEAKER = caseless(r"(?:^|[,;:] |\b(?:and|but|so|since|because|that|as|while|though) )(I(?:'m|'ve|'d|'ll)?) ")
SOMEONE = caseless(r"\bas someone who ")
ENDED = tuple(
    caseless(pattern)
    for pattern in (
        rf"\bI(?:'ve| have)? (?:just |recently |finally |now )?(?:stopped|quit) (?:{ADVERBS})(?:[a-z]+ing) ",
        r"\bI(?:'ve| have)? (?:just |recently |finally |now )?(?:gone off|given up(?:"
        r" on)?|gave up(?: on)?|cut out|lost interest in"
        r"|lost my taste for|grown tired of|grown out of|grew out of|had enough of|moved away from) ",
    )
)
BEGUN = tuple(
    caseless(pattern)
    for pattern in (
        rf"\bI(?:'ve| have)? (?:just |recently |finally |now |really )?(?:started|begun"
        rf"|began|come|grown|learned|learnt|got|gotten)"
        rf" (?:to |into )?(?:really )?(?:{LIKING}|liking|loving|enjoying|preferring|appreciating|into) ",
    )
)
USED_TO = caseless(
    rf"\bI used to (?:really )?(?:{LIKING}|{HABITS}) ([^,.]{{2,120}}?),? but (?:not"
    rf" any ?more|no longer|not now|I don't any ?more"
    r"|I no longer do|that changed|that's changed|now I (?:don't|hate|can't|avoid))"
)
FINDS = tuple(
    (
        likes,
        caseless(
            rf"{_I} {ADVERBS}finds? ([^,;]{{2,100}}?) (?:to be )?((?:{ADVERBS})(?:too [a-z-]+|less [a-z-]+|{words}))\b"
        ),
    )
    for likes, words in ((False, BAD), (True, GOOD))
)
HARD = caseless(
    rf"{_I} {ADVERBS}(?:finds?|found) it {ADVERBS}(?:too )?{BAD} to (?:(?:stay|get|be|feel|keep) )?"
    r"(?:engaged (?:with|by|in)|interested in|enjoy|like|into|connect with|relate to|excited about|motivated by) "
)
_BEFORE_OBJECT = r"^(?:.{0,80}?(?:[,;:] |\b(?:because|since|as|and|but|though|that|where|so) ))??"
# The object comes first, then what it is to the speaker.
THINGS: tuple[tuple[bool, Pattern], ...] = tuple(
    (likes, caseless(rf"{_BEFORE_OBJECT}([^,;:]{{2,100}}?)(?:,? which)? {source}\b"))
    for likes, source in (
        (False, rf"(?:make|makes|made) me (?:feel )?{ADVERBS}{FEELS_BAD}"),
        (True, rf"(?:make|makes) me (?:feel )?{ADVERBS}{FEELS_GOOD}"),
        (False, rf"{_NOT} {ADVERBS}(?:(?:appeal to|interest|work for|sit well with|agree with) me|do it for me)"),
        (False, rf"{_IS_NOT} (?:really |quite )?(?:for me|my (?:thing|cup of tea|style|favou?rite|jam))"),
        (False, r"(?:is|are) (?:an? )?(?:strict |absolute |definite |hard )?(?:no-go|deal-?breaker|turn-?off) for me"),
        (False, r"(?:bore|bores|annoy|annoys|disgust|disgusts|scare|scares|irritate|irritates) me"),
        (True, rf"(?:is|are) (?:my|a) {_TOP} (?:priority|must)(?: for me)?"),
        (True, rf"(?:is|are|matter|matters) {_VERY}?(?:important|crucial|essential)? ?(?:to|for) me"),
        (True, r"(?:is|are) (?:really |totally |so )?my (?:thing|jam|cup of tea|go-to)"),
    )
)
HEADING = caseless(
    rf"^([A-Za-z][A-Za-z ]{{0,40}}) I ({LIKING}|{DISLIKING}|don't like|do not like"
    rf"|can't stand)(?: to [a-z]+(?: to| in| at)?)?: (.+)$"
)
