"""The framings of a question: patterns over its words, and the one form that stands for each.

`{one}` is whoever asks, `{modal}` a verb such as `can`, `{best}` praise that a question loses nothing without.
"""

PARTS: dict[str, str] = {
    "one": r"(?:i|we|you|one|someone|somebody|anyone|anybody|people|a person|a man|a guy|u)",
    "modal": r"(?:can|could|should|shall|would|will|may|might|do|does|did|must)",
    "be": r"(?:is|are|was|were|would be|will be|could be|can be|should be|might be|may be|has been|have been)",
    "the": r"(?:the|some|some of the|some of|a|an|any|any of the|few|a few|one of the|your|the most|a list of|the list of)",
    "best": (
        r"(?:best|good|great|better|easy|easiest|simple|simplest|possible|effective|most effective|efficient|"
        r"most efficient|right|correct|proper|ideal|different|various|main|top|really|very|common|most common|useful)"
    ),
    "way": (
        r"(?:way|ways|method|methods|steps|step|tips|tip|tricks|trick|technique|techniques|approach|approaches|"
        r"procedure|process|strategy|strategies|solution|solutions|tips and tricks|thing|things)"
    ),
    "please": r"(?:please|kindly|possibly|actually|really|exactly|ever|best|easily|effectively|quickly|properly)",
}
# Tried in this order at the start of every sentence of a question until none fits.
OPENINGS: tuple[tuple[str, str], ...] = (
    # Words before the question itself.
    (r"(?:so|well|and|but|also|hi|hello|hey|ok|okay|please|seriously|really|honestly|basically) ,? ?", ""),
    (r"(?:according to you|in your opinion|in your view|in general|generally|for you|as of now|overall) ,? ?", ""),
    (r"(?:can|could|would|will|does|do) {one} (?:{please} )?(?:tell|explain|describe|say)(?: to)?(?: me| us)?(?: about)? (?=what|how|why|who|when|where|which|if|whether)", ""),
    (r"(?:can|could|would|will) {one} (?:{please} )?(?:tell|explain|describe|suggest|recommend|give|list|name|provide|share)(?: to)?(?: me| us)? (?:about )?(?:{the} )*(?:{best} )*", "what "),
    (r"(?:do|does|did) {one} (?:really |actually |honestly )?(?:know|have an idea|have any idea|understand|remember)(?: about)? (?=what|how|why|who|when|where|which|if|whether)", ""),
    (r"(?:do|did|would) you (?:really |actually |honestly )?(?:think|believe|feel|agree|consider|say|suppose)(?: that| like)? (?!in |of |about )", ""),
    (r"(?:is it true|is it a fact|is it right|is it correct|is it really true) (?:that|to say that) ", ""),
    (r"i (?:want|would like|need|'d like) to know (?=what|how|why|who|when|where|which)", ""),
    (r"what (?:do|would|did) {one} (?:think|believe|consider|feel|say|suggest|recommend|prefer)(?: that)?(?: to be)? (?:{be} )(?:{the} )*", "what "),
    # Opinions and feelings.
    (r"what (?:do|does|did) {one} (?:think|feel|say) (?:of|about) ", "think_of "),
    (r"what (?:is|are|'s) (?:your|the|people's)?(?: )?(?:opinion|opinions|view|views|thoughts|thought|take|review|reviews|idea|feelings) (?:on|about|of|regarding|towards) ", "think_of "),
    (r"how (?:do|does|did) {one} (?:feel|think) about ", "think_of "),
    (r"(?:what is it like|what 's it like|what does it feel like|how does it feel|how is it|what was it like|what does it feel|how does it feel like|how is it like|how would it feel|what would it be like|what did it feel like)(?: to be| being| to have| having| to get| to)? ", "what_like "),
    # How something is done.
    (r"(?:what|which) (?:{be} )?(?:{the} )*(?:{best} |and )*{way} (?:that |through which |by which |in which |on how )?(?:{one} (?:{modal} )?|to |of |for |on |)(?:go about |use to )?(?=(?:\w))", "how "),
    (r"(?:what|which) (?:{modal} |do |did )?{one} (?:{please} )?(?:do|have to do|need to do|must do|try|take)(?: in order| so as)? (?:to|for|so that i can) ", "how "),
    (r"(?:is|are) there (?:{the} |{best} )*{way} (?:to |of |for |that |{one} |{modal} |me to )*", "how "),
    (r"how (?:{modal} |to )?(?:{one} |to |{please} )*(?:go about |start to |begin to |be able to |manage to )?", "how "),
    # Causes, places, kinds.
    (r"(?:what (?:{be} )?(?:{the} )*(?:{best} )*(?:reason|reasons)(?: why| behind| for| that)?|for what reason|how come|what makes) ", "why "),
    (r"why (?:is it that |is it |exactly |{modal} |is |are |was |were )?(?:(?:so many |many |most |some |a lot of )?(?:people|we|you|i) )?(?:still |really |always )?", "why "),
    (r"what (?:would |will |could )?(?:happens|happen) (?:if|when) ", "what_if "),
    (r"what if ", "what_if "),
    (r"(?:from )?where (?:{modal} )?(?:{one} )?(?:find|get|buy|see|look for)(?: out)? (?:{the} )*(?:{best} )*", "where "),
    (r"(?:is|was|would) it (?:be )?(?:possible|feasible) (?:to|for {one} to|that) ", "can "),
    (r"(?:can|could) (?:{one} )?(?:{please} )*", "can "),
    (r"(?:what|which)(?: one| ones)?(?: {be}| 's)?(?: {the}| {best})*(?: (?:example|examples|types|kinds|sorts|type|kind) of)? ", "what "),
)
# Tried at the end of a question.
ENDINGS: tuple[str, ...] = (
    r" (?:and )?(?:why|how|why so|if so why|if so how|why or why not|if yes why|if yes how|if yes then how|and how)",
    r" (?:in the world|in life|in your life|of all time|in your opinion|according to you|out there|these days|nowadays|"
    r"right now|today|at the moment|in general|on earth|in history|till date|so far|for me|for you|and why)",
)
