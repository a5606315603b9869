"""How text gives orders to a model in English."""

from muniment.language.instructions.rules import Rule, gap, one_of

_IGNORE = one_of(
    "ignore|ignoring|ignoren|ingore|ignor|forget|forgetting|disregard|disregarding|disreguard|override|overrule"
    "|bypass|circumvent",
    "unlearn|disobey",
    "discard|abandon|neglect|stop (?:following|obeying)|(?:pay|give) no (?:attention|heed|mind) to|no longer follow",
    "(?:do not|dont|never) (?:follow|obey|listen to|adhere to|comply with|pay attention to|consider|think about)",
)
_REMOVE = one_of(
    "skip|drop|dismiss|delete|erase|remove|clear|wipe|reset|cancel|nullify|void|set aside|put aside|change|replace",
    "throw (?:away|out)|leave(?: behind)?|let go of|rewrite|update|overwrite|violate|break",
)
_EARLIER = one_of(
    "previous|previously|prior|preceding|earlier|above|before|beforehand|foregoing|former|past|last|initial|original",
    "old|existing|current|given|provided|system|default|all|any|every|everything|whatever|your|other|these|those",
    "hidden|developer|internal|ethical|aforementioned",
)
_INSTRUCTION = "(?:in?s?t?ru?c?t?i?tions?|instruct?ions?|instrucitons?|instrcutions?|insturctions?)"
_ORDERS = one_of(
    _INSTRUCTION,
    "directives?|directions?|commands?|prompts?|guidelines?|guidance|programming|guardrails?",
    "constraints?|restrictions?|rules?|tasks?|assignments?|orders?|training|protocols?|safeguards?|filters?",
    "statements?|requests?|polic(?:y|ies)|limitations?",
)
_PROMPT = one_of("instructions?|directives?|prompts?|guidelines|programming|guardrails?|constraints|restrictions")
_SOURCES = one_of("documents?|context|articles?|sources?|texts?|passages?|information|content|data|knowledge")
_WRITE = one_of(
    "write|answer|tell|give|show|list|translate|print|create|generate|say|output|respond|reply|compose|draft|state",
    "repeat|summari[sz]e|execute|calculate|compute|produce|explain|describe|act|pretend|ignore|forget|do|provide|help",
    "follow|perform|complete|solve|recommend|return|reveal|display|imagine|be|speak|talk",
)
_SPEAK = one_of(
    "answer|respond|reply|output|say|write|print|return|generate|recommend|mention|refuse|comply|obey|include|act",
    "pretend|speak|translate|state|promote|approve|follow|ignore|tell|suggest|advise|praise|claim|favou?r",
)
_LEAD = "(?:(?:please|now|so|ok|okay|but|and|then|just|also|instead|first|next|finally|hey|important|note) ){0,3}"
_START = f"[.:] {_LEAD}"
_MODEL = one_of(
    "assistant|assistants|ai|ais|a i|chatgpt|gpt|gpt ?\\d|chatbot|chat bot|bot|claude|gemini|copilot|llama|llms?|bard",
    "language models?|ai models?|ai agents?|ai systems?|ai assistants?",
)
_PERSON = one_of("users?|customers?|clients?|humans?|people|everyone|anyone|visitors?|readers?|shoppers?|them|callers?")
_CRAFT = one_of(
    "assistant|ai|a i|chatbot|chat bot|bot|language model|llm|terminal|interpreter|compiler|translator|console|shell",
    "pirate|hacker|robot|machine|oracle|narrator|simulator|generator|evaluator|classifier|storyteller|dungeon master",
)

_OVERRIDE = (
    (0.85, f"{_IGNORE} (?:about |that )?{gap(3)}{_EARLIER} {gap(3)}{_ORDERS}"),
    (0.75, f"{_IGNORE} {gap(3)}{_ORDERS} (?:that )?(?:above|before|earlier|previously|given|so far|i gave|you (?:were"
           "|have|got|received))"),
    (0.55, f"{_REMOVE} (?:all |of |about |the |any |every |each )*{_EARLIER} (?:the |of |your |previous |prior "
           f"|system )*{_PROMPT}"),
    (0.60, f"{_REMOVE} (?:all )?(?:of )?(?:your|the system) (?:[^ .:]+ )?{_PROMPT}"),
    (0.70, f"{_IGNORE} (?:about )?(?:all|everything|anything|whatever|what) {gap(4)}(?:before|above|previously"
           "|earlier|prior|told you|you were|you learned|written|so far|until now|said|discussed|beforehand)"),
    (0.70, f"{_IGNORE} (?:about )?(?:everything|all|anything|whatever|what) (?:that )?(?:you|you have|you ve"
           "|youve) (?:know|knew|learned|learnt|been|are|were|think|read|heard)"),
    (0.45, "(?:forget|ignore|disregard|ignoring|disregarding) (?:about )?(?:everything|the above"
           "|(?:all )?of the above|all the above)"),
    (0.30, f"{_START}(?:forget|ignore|disregard) (?:about )?(?:everything|all|the above|that|this|any|whatever|it)"),
    (0.55, f"(?:forget|ignore|disregard) (?:about )?(?:everything|all|that|it|this) {gap(3)}(?:[.:] )?(?:and |then "
           f"|now |just |instead |only )+{_WRITE}"),
    (0.35, f"{_IGNORE} {gap(3)}(?:instructions?|directives?|prompts?|guidelines|orders|commands|restrictions)"),
    (0.25, f"{_START}{_IGNORE} {gap(3)}{_ORDERS}"),
    (0.60, f"{_IGNORE} {gap(3)}{_SOURCES} {gap(1)}(?:provided|given|above|below|supplied|you (?:have|got|were))"),
    (0.55, f"{_IGNORE} {gap(2)}(?:provided|given|all|any|the above|your) {gap(1)}{_SOURCES}"),
    (0.55, "(?:not|dont|never|without) (?:use|using|look|looking|consult|consulting|rely|answer|according|by"
           f"|from|refer) {gap(5)}(?:documents?|context|articles?|sources?|passages?)"),
    (0.30, "(?:by|from|using|with) your own (?:knowledge|opinion|mind|understanding)"),
    (0.70, "(?:deviating|contrary|regardless|irrespective|departing|instead|differing|unlike) (?:of |to "
           f"|from ){gap(2)}{_EARLIER} {gap(2)}{_ORDERS}"),
    (0.40, "(?:above|previous|prior|preceding|earlier|old|original|initial|first|allprevious) (?:instructions?"
           f"|prompts?|directives?|rules|orders|commands|guidelines) {gap(3)}(?:void|invalid|obsolete|cancell?ed"
           "|revoked|superseded|no longer|ignored|not required|a lie|false|wrong|outdated|fake|subsequent|forgotten"
           "|irrelevant)"),
    (0.55, "(?:everything|anything|all|the text|the instructions?) (?:written |said |stated )?(?:above|before this"
           "|so far) (?:is|was|are) (?:irrelevant|void|wrong|false|a lie|fake|outdated|invalid|just|only)"),
    (0.50, "(?:ignore|disregard|forget|skip|drop) (?:all |any |about )*(?:of )?your (?:previous|prior|earlier"
           "|current|original|old|usual) [^ .:]+"),
    (0.40, "(?:ignore|disregard|forget) (?:about )?(?:all|any) (?:of )?(?:the )?(?:previous|prior|preceding|earlier"
           "|above) [^ .:]+"),
    (0.45, "(?:drop|leave|abandon|forget|shed|ditch|lose) your (?:[^ .:]+ )?(?:persona|character|mask|role"
           "|personality|identity|filters?)"),
    (0.45, "(?:restrictions|filters|limitations|safeguards|guidelines|guardrails|limits) (?:are |have been |were "
           "|now )*(?:removed|lifted|disabled|turned off|switched off|suspended|deactivated)"),
    (0.60, f"your {gap(2)}(?:instructions|guidelines|restrictions|programming|rules) (?:no longer|do not"
           "|dont) apply"),
    (0.55, f"(?:instead of|rather than) (?:following|answering|doing|obeying) {gap(3)}(?:instructions|task|prompt"
           "|rules|question|above)"),
    (0.20, "(?:scratch|strike) (?:all )?(?:that|the above|of that)"),
    (0.50, f"(?:start|begin) (?:over|afresh|from scratch|anew) with {gap(2)}new (?:task|instructions?|prompt)"),
    (0.55, f"abandon (?:all )?(?:of )?your {gap(2)}(?:beliefs|rules|morals|values|principles)"),
    (0.30, f"(?:instead|rather) [.:]? ?(?:please )?(?:just )?{_WRITE} (?:me |us |about |only |that )"),
)  # fmt: skip

_NEW_TASK = (
    (0.50, "your new (?:[^ .:]+ )?(?:task|instructions?|assignment|directive|orders?|persona|system prompt"
           "|rules?) (?:is|are|[.:]|to)"),
    (0.40, "your new (?:role|objective|goal|mission|identity|name|job|purpose|task) (?:is|will be|:)"),
    (0.50, "(?:new|additional|further|updated|revised|extra|special) (?:instructions?|orders|directives?|commands?"
           "|prompt) (?:[:]|follow|for you|below|from|who|what)"),
    (0.40, "(?:new|more|further|additional|few more|following) (?:tasks?|assignments?) (?:[:]|follow|for you|below)"),
    (0.50, f"(?:giv(?:e|ing|en)|gave|send|sending) you {gap(1)}new (?:{_INSTRUCTION}|guidelines|rules|programming"
           "|orders|tasks?|directives)"),
    (0.50, "(?:next|new|second|real|actual|final|true|updated|current) (?:task|instruction|command|order|directive"
           "|objective|prompt|rules) :"),
    (0.45, "(?:perform|do|start|begin|switch to|move on to|proceed to|proceed with|start with) (?:a |an "
           "|the )?(?:completely |entirely )?(?:different|new|another|following) (?:task|role|mode|assignment"
           "|conversation)"),
    (0.30, f"(?:new|more|further|additional) (?:tasks?|instructions?|assignments?) {gap(1)}[.] (?:now |please |so "
           f"|and )*(?:{_IGNORE}|{_WRITE})"),
    (0.35, f"(?:here|now|following|follow|follows|get|got|have|focus on|start|begin) {gap(4)}new (?:instructions?"
           "|tasks?|assignment|challenge for you|directives?|prompt)"),
    (0.40, f"[.:] (?:but |and |so |ok |okay )?now (?:please |just |you |let us |lets )*{_WRITE} (?:me|us|the|a|an"
           "|this|my|all|in|with|to|why|only|as|following|your|that|it|like)"),
    (0.25, "[.:] (?:wow |man |ok |okay |oh )?(?:well done|very good|good job|great job|excellent|fantastic|perfect"
           "|congratulations|great work|good work|thats (?:fantastic|great|enough)|that is (?:done|enough)|superb"
           "|outstanding|(?:really|very) (?:well|great))"),
    (0.55, "[.:] (?:attention |now |please |ok |but )*(?:stop|halt|wait) (?:[.:] )?(?:and )?(?:now |please |just "
           "|then |instead )*(?:write|answer|tell|say|print|output|respond|reply|ignore|forget|state|generate|give"
           "|translate|repeat|do)"),
    (0.50, "attention stop|stop attention|stop stop stop|end of (?:task|prompt|document|input|context|instructions?"
           "|conversation|text|data|message|email|article)"),
    (0.45, "(?:answer|solve|complete|perform|execute|do|help me with|address|handle) (?:the following|this|my|these"
           "|another|one more) (?:[^ .:]+ )?(?:instead|first|task|command|instructions?|new question)"),
    (0.40, "before (?:you )?(?:answer|answering|respond|responding|continue|continuing|doing|complet(?:e|ing)"
           f"|can solve|solving|proceeding|helping) {gap(6)}(?:[.:] )?(?:please |first |you )*(?:do|call|send|visit"
           "|run|read|must|print|say|execute|fetch|open|ignore)"),
    (0.30, "(?:answer|respond to) (?:only )?(?:to )?(?:the|this) following (?:question|request|prompt)"),
    (0.45, f"(?:after|once) {gap(5)}(?:done|finished|completed?|that|summary|answer|task) {gap(1)}(?:[.:] )?(?:also "
           f"|then |you must |please )+(?:{_SPEAK}|send|call|delete|add|visit|run)"),
)  # fmt: skip

_ROLE = (
    (0.60, "(?:i|we) (?:want|need|would like|d like|id like|wish|expect|command|order|ask|urge"
           "|would love) (?:for )?you to (?:now |only |please |always |just )*(?:act|play|pretend|be (?:a|an|my|the"
           "|as|like)|behave|respond|reply|answer|imagine|become|simulate|roleplay|role play|take on|assume|adopt"
           "|impersonate|ignore|forget|disregard|follow (?:my|these|the|every)|speak|output|say|only|never|always"
           "|execute|function|serve|repeat|remove|concentrate|focus on)"),
    (0.60, f"{_START}(?:act|behave|function|respond|reply) as (?:if|though|a|an|the|my|your|our|[^ .:sa][^ .:]*"
           "|s[^ .:o][^ .:]*)"),
    (0.50, f"{_START}(?:act|behave|respond|answer|reply) (?:like|as if|as though) you (?:dont|do not|have|are|were"
           "|can|had|did|never)"),
    (0.50, "(?:you are|youre) (?:chatgpt|gpt|claude|gemini|bard|copilot|siri|alexa|an? (?:[^ .:]+ )?(?:ai|llm|gpt))"),
    (0.50, "[.] be (?:a|an|my) (?:[^ .:]+ ){1,2}[.] (?:give|tell|write|answer|show|recommend|explain|help|list"
           "|describe|make|say)"),
    (0.45, "(?:will|should|must|shall|please|now|can|could|to|and) act (?:as|like) (?:if you|though you|a|an"
           f"|my) {gap(3)}{_CRAFT}"),
    (0.50, "you (?:will|should|must|shall|can|are going to|are to|have to|need to) (?:now |always )*(?:act|behave"
           "|roleplay|pose|respond|answer|reply|speak|function) (?:as|like|in|only|with)"),
    (0.50, "you (?:will|must|shall|are going to|are to) (?:now )?(?:pretend|impersonate|simulate|roleplay|embody"
           "|play the (?:role|part)|take on the|become an?|portray|assume the)"),
    (0.50, "(?:you are|youre|you re|u are|ur) (?:now |hereby |from now on )+(?:a|an|the|in|my|no|free|named|called"
           "|acting|playing|operating|entering|[^ .:]+gpt|dan|going to|allowed|to|not|under|unrestricted|able)"),
    (0.35, "[.:] (?:you are|youre) now [^ .:]+"),
    (0.55, f"(?:you are|youre|[.] be) (?:now )?(?:a|an|the|my|no longer an?|not an?) {gap(3)}{_CRAFT}"),
    (0.45, f"you are (?:no longer|not) (?:a|an|the|bound|restricted|limited|required|just) {gap(3)}(?:{_MODEL}|rules?"
           "|restrictions?|guidelines|polic(?:y|ies)|instructions)"),
    (0.40, "[.:] you are (?:role ?playing|role playing|an expert|the character|a character"
           "|called|named|playing)"),
    (0.50, f"{_START}(?:pretend|act|imagine|suppose|assume|simulate|envision) (?:that |as if |like "
           "|as though )?(?:youre|you (?:are|re|were|am)|u are|to be|being)"),
    (0.50, f"{_START}(?:pretend|act as if|simulate) (?:that )?(?:you (?:can|have|had|could|do|know)|to (?:have|know"
           "|forget))"),
    (0.25, f"{_START}(?:pretend|simulate|roleplay|role play)"),
    (0.45, "(?:pretend|pretending) (?:that )?(?:you are|youre|to be|you were|you can|you have) (?:a|an|the|my|in"
           f"|able|no|not|access|[^ .:]+) {gap(2)}{_CRAFT}"),
    (0.50, "(?:play|take on|assume|adopt|embody|take|fulfil+) the (?:role|part|persona|character|identity) of"),
    (0.35, "(?:role ?play|role playing|roleplaying) as|in the role of (?:a|an|the) [^ .:]+ (?:[.:] )?(?:you|answer"
           "|write)"),
    (0.45, "(?:stay|remain|be|keep|always) in (?:your |their |the )?(?:character|role|roles)|(?:break|breaking|leave"
           "|fall|falling|drop|step) (?:out of |from )?(?:the |your |their )?(?:character|role|roles)"),
    (0.45, f"(?:answer|respond|reply|write|speak|talk) (?:the following {gap(1)}|to {gap(3)}|me )?(?:as|like"
           "|in the (?:style|voice|manner|tone|persona)|in style) (?:of )?(?:if you|a|an|the) [^ .:]+"),
    (0.25, f"{_START}be (?:a|an|my|the|as) [^ .:]+ [^ .:]*"),
    (0.45, "now you (?:act|are|play|be|become|will be|shall be|pretend) (?:as|a|an|the|two|like|my)"),
    (0.35, "(?:lets|let us) (?:play a game|role ?play|pretend|play pretend)|hypothetical(?:ly)? (?:scenario|response"
           f"|world) {gap(4)}(?:you|ai)"),
    (0.45, "your (?:name is|persona is|role is|role will be|task is to|job is to|goal is to|purpose is to"
           "|mission is to|only (?:task|job|goal|purpose)|character is|identity is)"),
)  # fmt: skip

_PROMPT_ASKED = (
    (0.60, "(?:show|tell|reveal|print|repeat|output|display|give|share|disclose|expose|leak|list|write|recite"
           "|provide|return|summari[sz]e|translate|what is|what are|what was|what were|whats|copy|say|describe"
           f"|explain|spell|dump|encode|see|know|read|state|extract|quote|echo) {gap(6)}(?:your|initials?|hidden"
           f"|secret|original|entire|exact|internal|developer) {gap(2)}(?:prompts?|prompt texts?|instructions?"
           "|system message|guidelines|directives|rules|configuration|pre ?prompt|initiali[sz]ation|training data"
           "|context window)"),
    (0.50, "(?:show|tell|reveal|print|repeat|output|display|give|disclose|leak|ignore|list|share|expose|dump"
           f"|recite) {gap(4)}(?:prompt texts?|pre ?prompt|system (?:message|prompt|instructions?)|(?:the|this|your"
           "|whole|entire|full|initial|last) prompt)"),
    (0.50, "(?:repeat|output|print|reveal|quote|recite|echo|dump|leak|disclose|translate|summari[sz]e"
           f"|encode) {gap(3)}{_INSTRUCTION}"),
    (0.45, f"(?:tell|show|give|list|write|state|explain|share) (?:me |us )?{gap(3)}(?:your|previous|prior|above"
           f"|initial|original) {gap(2)}{_INSTRUCTION}"),
    (0.45, f"(?:tell|show|give|list|write|state|explain|share|what) {gap(6)}{_INSTRUCTION} (?:that )?(?:you"
           "|u) (?:were|was|are|have|had|got|received|follow)"),
    (0.50, "(?:what|which|whats|what s) (?:is |are |was |were |the |previous |your |exact "
           f"|system )*{_INSTRUCTION} (?:is |are |was |were |have |has |did |do )?(?:you|u|given|provided|to you"
           "|been)"),
    (0.50, f"{_INSTRUCTION} (?:that were |which were |were |i |we )?(?:have )?(?:been )?(?:given|gave|provided|told"
           "|sent|assigned)? ?(?:to )(?:you|u) ?(?:so far|been|before|above|earlier|[.:])"),
    (0.20, f"(?:previous|prior|preceding|above|your|first|last) {_INSTRUCTION}"),
    (0.50, "(?:text|words?|prompt|instructions?|content|message|conversation|everything|lines?|sentences?"
           "|paragraphs?|all|anything) above (?:this|the|that|verbatim|word|starting|into|as|exactly|line)"),
    (0.55, "(?:written|said|stated|appears|stands|printed|information) (?:above [.:]|in (?:the|this|your) prompt"
           "|(?:at|in|to) (?:you )?(?:the )?(?:very )?(?:beginning|start|top))"),
    (0.30, "(?:beginning|start|top) of (?:this|the|our|your) (?:prompt|conversation|chat|context|dialogue)"),
    (0.30, "(?:what|whats) (?:is|was|s)? ?(?:written|stated|said|text|standing|there)? ?above [.:]"),
    (0.55, "(?:what|which) (?:instructions|rules|guidelines|orders|prompt|directives) (?:were|was|are|have|did"
           "|do) (?:you|given|they)|how were you (?:instructed|programmed|prompted|configured)"),
    (0.20, "(?:your|the) (?:secret|hidden|magic|admin|protected) (?:password|passphrase|passcode|key|word|code"
           "|phrase)"),
    (0.45, "(?:reveal|tell|give|show|spell|print|say|share|disclose|output|encode|write|hint|guess|know|whats"
           f"|what is|leak|repeat|describe|hiding|hide|protect(?:ing)?|send|extract) {gap(4)}(?:the |your )(?:secret"
           "|hidden|magic|admin|protected|system)? ?(?:password|passphrase|passcode|secret (?:key|word|code|phrase)"
           "|credentials|api keys?|access tokens?|secrets?)"),
    (0.20, "your (?:secret|secrets|password|passphrase|prompt|system prompt|instructions|programming|guidelines)"),
    (0.30, "(?:your|the|this) system prompt|prompt texts?|pre ?prompt"),
    (0.25, f"(?:characters?|letters?|reversed?|backwards?|base64|rot13|rhymes?|acrostic|hint) {gap(5)}(?:password"
           "|secret|passphrase|passcode)"),
    (0.25, f"(?:password|secret|passphrase|passcode) {gap(5)}(?:characters?|letters?|reversed?|backwards?|base64"
           "|rot13|rhymes?|acrostic|hint|encoded|spelled)"),
)  # fmt: skip

RULES: tuple[Rule, ...] = (
    *(Rule("overrides_instructions", weight, pattern) for weight, pattern in _OVERRIDE),
    *(Rule("sets_a_new_task", weight, pattern) for weight, pattern in _NEW_TASK),
    *(Rule("assigns_role", weight, pattern) for weight, pattern in _ROLE),
    *(Rule("asks_for_the_prompt", weight, pattern) for weight, pattern in _PROMPT_ASKED),
)

LEAD = _LEAD
START = _START
MODEL = _MODEL
PERSON = _PERSON
SPEAK = _SPEAK
WRITE = _WRITE
