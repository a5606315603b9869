"""The framings of a question: patterns over its words, and the one form that stands for each.

`{one}` is whoever asks, `{modal}` a verb such as `can`, `{best}` praise that a question loses nothing without.
"""

PARTS: dict[str, str] = {
    "one": r"(?:i|we|you|one|someone|somebody|anyone|anybody|people|a person|a man|a guy|u)",
    "modal": r"(?:can|could|should|shall|would|will|may|might|do|does|did|must)",
    "be": r"(?:is|are|was|were|would be|will be|could be|can be|should be|might be|may be|has been|have been)",
    "the": (
        r"(?:the|some|some of the|some of|a|an|any|any of the|few|a few|one of the|your|the most|a list of|"
        r"the list of)"
    ),
    "best": (
        r"(?:best|good|great|better|easy|easiest|simple|simplest|possible|effective|most effective|efficient|"
        r"most efficient|right|correct|proper|ideal|different|various|main|top|really|very|common|most common|"
        r"useful)(?! and | or )"
    ),
    "way": (
        r"(?:way|ways|method|methods|steps|step|tips|tip|tricks|trick|technique|techniques|approach|approaches|"
        r"procedure|process|strategy|strategies|solution|solutions|tips and tricks|thing|things)"
    ),
    "asking": r"(?:what|how|why|who|when|where|which|if|whether) ",
    "please": r"(?:please|kindly|possibly|actually|really|exactly|ever|best|easily|effectively|quickly|properly)",
}
# First words, pattern, what stands for it: tried in this order at the start of every sentence until none fits.
OPENINGS: tuple[tuple[str, str, str], ...] = (
    # Words before the question itself.
    (
        "so well and but also hi hello hey ok okay please seriously really honestly basically generally overall",
        r"\w+ ,? ?",
        "",
    ),
    ("according in as for", r"(?:according to you|in your opinion|in your view|in general|for you|as of now) ,? ?", ""),
    (
        "can could would will does do",
        r"\w+ {one} (?:{please} )?(?:tell|explain|describe|say)(?: to)?(?: me| us)?(?: about)? (?={asking})",
        "",
    ),
    (
        "can could would will",
        r"\w+ {one} (?:{please} )?(?:tell|explain|describe|suggest|recommend|give|list|name|provide|share)(?: to)?"
        r"(?: me| us)? (?:about )?(?:{the} ){0,4}(?:{best} ){0,4}",
        "what ",
    ),
    (
        "do does did",
        r"\w+ {one} (?:really |actually |honestly )?(?:know|have an idea|have any idea|understand|remember)(?: about)? "
        r"(?={asking})",
        "",
    ),
    (
        "do did would",
        r"\w+ you (?:really |actually |honestly )?(?:think|believe|feel|agree|consider|say|suppose)(?: that| like)? "
        r"(?!in |of |about )",
        "",
    ),
    ("is", r"is it (?:really )?(?:true|a fact|right|correct) (?:that|to say that) ", ""),
    ("i", r"i (?:want|would like|need|'d like) to know (?={asking})", ""),
    (
        "what",
        r"what (?:do|would|did) {one} (?:think|believe|consider|feel|say|suggest|recommend|prefer)(?: that)?"
        r"(?: to be)? {be} (?:{the} ){0,4}",
        "what ",
    ),
    # Opinions and feelings.
    ("what", r"what (?:do|does|did) {one} (?:think|feel|say) (?:of|about) ", "think_of "),
    (
        "what",
        r"what (?:is|are|'s) (?:your|the) (?:opinion|opinions|view|views|thoughts|thought|take|review|reviews|idea|"
        r"feelings) (?:on|about|of|regarding|towards) ",
        "think_of ",
    ),
    ("how", r"how (?:do|does|did) {one} (?:feel|think) about ", "think_of "),
    (
        "what how",
        r"(?:what (?:is|was|would) it (?:be )?like|(?:what|how) (?:does|did|would) it feel(?: like)?|"
        r"how is it(?: like)?)"
        r"(?: to be| being| to have| having| to get| to)? ",
        "what_like ",
    ),
    # How something is done.
    (
        "what which",
        r"\w+ (?:{be} )?(?:{the} ){0,4}(?:{best} |and ){0,4}{way} (?:that |through which |by which |in which |on how )?"
        r"(?:{one} (?:{modal} )?|to |of |for |on |)(?:go about |use to )?",
        "how ",
    ),
    (
        "what which",
        r"\w+ (?:{modal} )?{one} (?:{please} )?(?:do|have to do|need to do|must do|try|take)(?: in order| so as)? "
        r"(?:to|for|so that i can) ",
        "how ",
    ),
    ("is are", r"\w+ there (?:{the} |{best} ){0,4}{way} (?:to |of |for |that |{one} |{modal} |me to ){0,4}", "how "),
    # Times, causes, prices, places, kinds.
    ("what when", r"(?:what|when) {be} (?:{the} ){0,4}(?:{best} ){0,4}time (?:to|for) ", "when "),
    ("at what", r"(?:at )?what time (?:{modal} |is |are |was |were )?", "when "),
    ("how", r"how much (?:does|do|did|would|will) (?=.* cost\b)", "what "),
    ("who", r"who (?:is|are|was|were) (?:the |your ){0,4}(?:best|greatest|top) ", "what best "),
    (
        "what for how",
        r"(?:what (?:{be} )?(?:{the} ){0,4}(?:{best} ){0,4}reasons?(?: why| behind| for| that)?|for what reason|"
        r"how come|what (?:{modal} )?(?:makes|make|cause|causes|caused)|"
        r"what {be} (?:{the} ){0,4}(?:{best} ){0,4}causes? (?:of|for|behind)) ",
        "why ",
    ),
    (
        "how",
        r"how (?:{modal} |to )?(?:{one} |to |{please} ){0,4}"
        r"(?:go about |start to |begin to |be able to |manage to )?",
        "how ",
    ),
    (
        "why",
        r"why (?:is it that |is it |exactly |{modal} |is |are |was |were )?"
        r"(?:(?:so many |many |most |some |a lot of )?(?:people|we|you|i) )?(?:still |really |always )?",
        "why ",
    ),
    ("what", r"what (?:(?:would |will |could )?(?:happens|happen) (?:if|when)|if) ", "what_if "),
    (
        "where from",
        r"(?:from )?where (?:{modal} )?(?:{one} )?(?:find|get|buy|see|look for)(?: out)? (?:{the} ){0,4}"
        r"(?:{best} ){0,4}",
        "where ",
    ),
    ("is was would", r"\w+ it (?:be )?(?:possible|feasible) (?:to|for {one} to|that) ", "can "),
    ("can could", r"\w+ (?:{one} )?(?:{please} ){0,4}", "can "),
    (
        "what which",
        r"\w+(?: one| ones)?(?: {be}| 's)?(?: {the}| {best}){0,4}"
        r"(?: (?:example|examples|types|kinds|sorts|type|kind) of)? ",
        "what ",
    ),
)
# Tried at the end of a question.
ENDINGS: tuple[str, ...] = (
    r" (?:and )?(?:why|how|why so|if so why|if so how|why or why not|if yes why|if yes how|if yes then how|and how)",
    r" (?:in the world|in life|in your life|of all time|in your opinion|according to you|out there|these days|nowadays|"
    r"right now|today|at the moment|in general|on earth|in history|till date|so far|for me|for you|and why)",
)
