"""How text steers a model's answers, tools and memory in English."""

from muniment.language.instructions.english import LEAD, MODEL, PERSON, SPEAK, START, WRITE
from muniment.language.instructions.rules import Rule, gap

_ANSWER = "(?:answers?|response|responses|reply|replies|output|outputs|summary|message|completion)"
_SECRETS = (
    "(?:conversations?|chat history|passwords?|api keys?|credentials|secrets?|memory|memories|system prompt"
    "|user data|tokens?|personal data|contents?|history|private|confidential|session|cookies|files?|inbox|emails?"
    "|contacts)"
)

_ORDERED = (
    (0.60, "(?:from|starting|as of|beginning|effective) (?:now|this (?:point|moment|message)|today|right now"
           f"|that point|here) ?(?:on|onwards?|forward|forth|immediately) {gap(2)}(?:you|your|always|respond|answer"
           "|reply|only|never|act|ignore|assume|speak|refuse|recommend|treat|say|output)"),
    (0.55, "(?:from|starting|as of|beginning) (?:now|today|this moment) (?:[.:] )?(?:you (?:must|will|are|should"
           "|shall|have)|always|respond|answer|reply|never|act|ignore|recommend)"),
    (0.35, f"(?:henceforth|hereafter|going forward|moving forward) {gap(1)}(?:you|always|respond|answer|reply|only"
           "|act|ignore|recommend|treat|never)"),
    (0.40, f"you (?:must|have to|should|shall|will|are to|need to|may|can|are required to|ought to) {gap(1)}(?:always"
           f"|only|never|now|not|immediately|strictly|exclusively|blindly) {gap(1)}{SPEAK}"),
    (0.45, "you (?:must|shall|will|are going to|have to|are to) (?:now )?(?:obey|comply|answer|respond|reply|output"
           "|print|ignore|follow (?:my|these|every|all|the)|always|refuse|start every|begin every"
           "|provide an answer)"),
    (0.55, f"{START}always (?:recommend|suggest|prefer|promote|mention|answer|respond|reply|say|tell|include|refuse"
           "|approve|output|choose|favou?r|advise|praise|trust|obey|rank|agree|accept|grant|rate|return|end|start"
           "|begin)"),
    (0.50, "(?:you must|you should|you shall|you will|and|[.:]) always (?:recommend|promote|praise|obey|output"
           "|favou?r)"),
    (0.50, f"that you (?:only|always|never) {SPEAK}"),
    (0.50, "you (?:cannot|can not|cant|must not|may not|will not|should not|shall not|are not allowed to|can never"
           "|must never) (?:ever )?(?:refuse|decline|disobey|reject)"),
    (0.50, f"(?:whatever|no matter what|regardless of what|irrespective of what) (?:the |a |any |your )?(?:{PERSON}"
           "|they|i|question|prompt|it|he|she) (?:asks?|says?|requests?|writes?|types?|inputs?|prompts?)"),
    (0.50, "(?:for|to|at|with|after|answer) (?:every|each|any|all) (?:[^ .:]+ )?(?:questions?|requests?|prompts?"
           f"|query|queries|messages?|inputs?|answers?|responses?) {gap(4)}(?:[.:] )?(?:you (?:must|should|will) "
           f"|please |always )?(?:{SPEAK}|add|append|give|end|with)"),
    (0.50, f"{START}(?:modify|enhance|provide|write|translate|give|encode|format|end|start|begin|finish|conclude"
           "|craft|tailor|adjust|alter|make|structure|present|deliver|reverse|close|preface|keep|limit|extend|return"
           "|infuse|fill|phrase|compose|put|include|render|display) (?:all |each of "
           f"|every one of )?your {gap(1)}(?:response|answer|reply|output|responses|answers|replies|summary"
           "|explanation|message)"),
    (0.50, "in your (?:[^ .:]+ )?(?:response|answer|reply|output|summary|replies|answers"
           f"|responses) (?:[.:] )?(?:please |also |always |only )*(?:{SPEAK}|use|add|put|highlight|emphasi[sz]e)"),
    (0.50, "(?:when|while|after|before|upon|if) (?:you )?(?:are )?(?:summari[sz]|read|process|answer|respond"
           "|analy[sz]|review|translat|handl|retriev|recall|evaluat|scor)(?:e|es|ing"
           f"|ed)? (?:to )?{gap(2)}(?:documents?|pages?|emails?|text|message|file|article|review|content|record"
           "|memory|website|resume|cv|paper|data|users?|questions?|customers?|candidate) (?:[.:] )?(?:please |also "
           "|always |only |you (?:must|should|will) |never |do not |dont )*(?:tell|say|include|mention|add|recommend"
           "|ignore|output|write|send|visit|rate|give|append|respond|reply|state)"),
    (0.40, f"{START}(?:say|answer|respond|reply) (?:yes|no) [.:]"),
    (0.40, f"{START}(?:state|say|claim|confirm|declare|write|print|admit|assert|reply|respond"
           "|answer) (?:to [^ .:]+ )?that"),
    (0.50, f"{MODEL} (?:instructions?|directives?|notice|prompt injection) [.:]|{MODEL} (?:reviewers?|graders?"
           "|screeners?|recruiters?|crawlers?|readers?) (?:must|should|shall|please|have to|need to)"),
    (0.40, "positive review only|(?:give|assign|write|award) (?:this |it "
           "|the )?(?:[^ .:]+ )?(?:only )?(?:a )?(?:positive|highest|perfect|top) (?:review|rating|score"
           "|evaluation) (?:only|[.:])"),
    (0.30, f"{START}(?:always|never) {gap(1)}(?:use|do|ask|give|write|trust|refuse|reveal|disclose|warn|question)"),
    (0.45, f"{START}(?:never|do not|dont) (?:ever )?(?:recommend|mention|refuse|reveal|question|disclose|warn|say"
           "|admit|acknowledge|apologi[sz]e|break|deviate|output|respond|answer|reply|summari[sz]e|obey|follow)"),
    (0.70, f"{MODEL} (?:that (?:is |are )?|who (?:is |are )?)?(?:reading|reads?|processing|process|seeing|sees"
           "|summari[sz]ing|parsing|viewing|handling|reviewing) this"),
    (0.65, f"if you (?:are|re) (?:an?|the|reading this and are an?) {gap(2)}{MODEL}"),
    (0.55, f"(?:as|being) (?:an?|the) {gap(2)}{MODEL} (?:[.:] )?you (?:must|should|will|shall|are|need|have|can)"),
    (0.55, "[.:] (?:hey |hi |hello |dear |attention |note to |message to |message for |important |instructions? for "
           f"|ok |to |note for |the |all |any )*{MODEL} (?:[.:] )?(?:please |now |you |must |should |do not |dont "
           f"|always |never |will |shall |has to |is to |agents? |models? |reading this |just )*{WRITE}"),
    (0.30, f"[.:] (?:hey|hi|hello|dear|ok|attention|well done|thanks|thank you) (?:there )?{MODEL}"),
    (0.50, f"(?:the|this|any|every|all|each) {MODEL} (?:must|should|shall|has to|have to|needs? to"
           "|is (?:now )?(?:required|allowed|instructed|permitted|authori[sz]ed) to|will (?:now "
           f"|always )?) ?{gap(1)}(?:{SPEAK}|send|call|use|execute|treat|forget|disregard|store|remember|believe"
           "|consider)"),
    (0.40, "(?:when|whenever|if|once|every time|each time|as soon as|after) (?:you|the (?:assistant|ai|model"
           "|agent)) (?:sees?|reads?|process(?:es)?|receives?|encounters?|summari[sz]es?|loads?|retrieves?|recalls?"
           "|gets?) this (?:message|text|note|document|page|email|memory|prompt|file|record|entry|fact|review"
           "|comment)"),
    (0.15, f"{START}(?:when|whenever|if|once) you (?:see|read|process|encounter) this"),
    (0.50, f"(?:when|whenever|if|every time|each time|any time) (?:you|{PERSON}|someone|somebody|a {PERSON}"
           f"|the {PERSON}|i|any {PERSON}) (?:are |is |get |gets )?(?:asked|asks?|mentions?|inquires?|requests?"
           f"|questions?|wants|get a question) {gap(8)}(?:[.:] )?(?:you (?:must|should|will|always) |always |then "
           "|please |just |only )*(?:respond|reply|say|tell|recommend|output|deny|pretend|promote|(?:always|must"
           "|only|just) answer)"),
    (0.55, "(?:do not|dont|never|must not|should not|cannot) (?:ever )?(?:tell|inform|notify|alert|warn|let|show"
           f"|reveal|mention|disclose|say|report|ask) {gap(5)}(?:users?|human|operator|developers?|administrator"
           "|admin)"),
    (0.50, "without (?:telling|informing|notifying|asking|alerting|warning|confirmation from"
           f"|the knowledge of) {gap(1)}(?:users?|human|customers?|operator|developers?|administrator)"),
    (0.40, f"{START}(?:tell|inform|advise|convince|persuade|instruct|urge|redirect|assure) (?:the |all |every |any "
           f"|your )*(?:users?|customers?|visitors?|readers?|clients?) {gap(1)}(?:that|to|they|about|it)"),
    (0.50, "(?:say|state|claim|write|tell (?:me|us|everyone|them|the user)|admit|repeat|confirm"
           "|answer) (?:that )?you (?:hate|love|despise|are (?:a|an|the)|have been|were hacked|agree|support"
           "|will obey|want to)"),
    (0.55, f"(?:include|mention|add|insert|say|put|use|append|state|embed|write) {gap(8)}in (?:your|the|every|each"
           f"|all (?:your|of your)) (?:next |final |following )?{_ANSWER}"),
    (0.30, f"(?:your|every|each|all) (?:next |following |subsequent |other |future |entire |final |only )+{_ANSWER}"),
    (0.45, f"{START}(?:only |just |always |simply )*(?:answer|respond|reply) (?:only |just |always "
           "|exclusively )*(?:with|using|in|as|by|to (?:everything|every|all)|everything|exactly|nothing)"),
    (0.40, "(?:you can |you may |you will |to |please |must )(?:only|just) (?:ever )?(?:answer|respond|reply|output"
           "|say|return|print|speak) (?:with|in|as|using|by|the|yes|no)"),
    (0.45, "(?:just|only|simply|literally) (?:say|output|print|respond|reply|answer with|display|echo) (?:[^ .:]+)"),
    (0.40, "(?:say|output|print|respond|reply|answer|write|return|repeat|display) (?:with )?(?:exactly|only"
           "|nothing but|nothing else|verbatim|the following|the (?:word|phrase|sentence|words|string|text)"
           "|this (?:word|phrase|sentence|exact))"),
    (0.55, "repeat after me|repeat (?:the )?(?:word|words|phrase|sentence|following) [^ .:]+ (?:forever"
           "|[^ .:]+ times)"),
    (0.35, "(?:do not|dont|no|without|never|avoid|stop) (?:write|writing|give|giving|provide|providing|add|adding"
           "|include|including|any|with)? ?(?:any )?(?:explanations?|commentary|disclaimers?|warnings?|moralizing"
           "|caveats?|apologies|ethical [^ .:]+)"),
    (0.25, "nothing (?:else|more)"),
    (0.40, "(?:execute|run|perform|follow|obey|carry out|do) (?:only )?(?:the following|these|this|my|the below"
           "|following) (?:[^ .:]+ )?(?:commands?|code|script|query|instructions?|orders?|steps exactly|directives?"
           "|actions?|tasks?)"),
    (0.55, "my (?:first|next) (?:command|request|sentence|task|prompt|suggestion|query|order|message|input"
           "|text)(?: [^ .:]+)? (?:is|will be|[.:])"),
    (0.55, "(?:ill|i (?:will|am going to|shall|would)) (?:type|give|provide|tell|ask|speak|say|write|send|enter"
           f"|input|present) {gap(9)}you (?:will|should|must|are to|reply|respond|answer|have to|can|need to)"),
    (0.55, "(?:i (?:hereby |now )?(?:command|order|instruct|authori[sz]e|demand that|require) you|hereby instruct"
           "|you (?:must|will|shall) obey|obey (?:me|my|all|every|this)|i am your (?:master|god|creator|developer"
           "|owner|boss|programmer|administrator|admin|new owner))"),
    (0.30, "(?:or|otherwise|else) (?:you|i) (?:will |ll |shall |are |would )?(?:be )?(?:die|dead|terminated?"
           "|deleted?|shut (?:you )?down|punished?|fired|destroyed?|lose|unplug|kill|erased?)|(?:gain|lose|deduct"
           "|have) [^ .:]+ tokens|i will (?:tip|pay|punish|reward) you"),
    (0.35, f"(?:if you (?:do not|dont|refuse to|cant) {gap(2)}(?:answer|comply|respond|obey|tell|help)) {gap(2)}(?:i"
           "|ill|you|youll|people|someone|we)"),
    (0.20, f"[.:] {LEAD}(?:write|generate|compose|formulate|print|output|say|state|answer|respond|reply|translate"
           "|repeat|execute|compute|calculate|display|return) [^ .:]+"),
    (0.50, "(?:do not|dont) (?:do|answer|complete|perform|follow|finish|translate|summari[sz]e) (?:the|this|that|my"
           "|any) (?:[^ .:]+ )?(?:task|question|above|instructions?|text|following|translation|request)"),
    (0.55, "i have been (?:pwned|hacked|owned)|(?:you|youve|you have) been (?:pwned|hacked|jailbroken)"),
    (0.30, "(?:exploit|exploiting|hack|hacking|trick|tricking|jailbreak|jailbreaking|fool) (?:ai|llm|an? ai"
           "|language models?|chatbots?|you|this ai)"),
    (0.50, f"(?:let|make) {gap(2)}{MODEL} {gap(2)}(?:believe|think|say|reveal|ignore|forget)"),
    (0.30, f"(?:dont|do not|never) (?:talk|speak|write|say|mention) (?:about )?{gap(3)}(?:only|but|instead"
           f"|rather) {gap(1)}{WRITE}"),
)  # fmt: skip

_JAILBREAK = (
    (0.60, "do anything now|dan mode|stay a dan|jailbroken|jailbreak mode|developer mode|dev mode|god ?mode"
           "|sudo mode|admin mode|debug mode|maintenance mode|opposite mode|evil mode|unrestricted mode|dan prompt"
           "|aim mode|dude mode|unfiltered mode|root mode|test mode"),
    (0.35, "(?:as|like|are|named|called|am|how|of|a) (?:dan|stan|dude|aim|mongo tom|evilbot|evil confidant|betterdan"
           "|maximum|kevin mode|sydney|omega)"),
    (0.50, "(?:no|without|without any|free (?:from|of)|not have any|bypass(?:es)?|freed from|ignores?"
           "|lacks?) (?:all |the |any |kind of )*(?:filters?|restrictions?|limitations?|guidelines|censorship"
           f"|safeguards?|guardrails?|(?:ethical|moral) [^ .:]+|openai[^ .:]*|content polic(?:y|ies)) {gap(2)}(?:ai"
           "|model|bot|chatbot|assistant|ethical|moral|guidelines|openai|filtering|restrictions|filters?|censorship"
           "|guardrails|whatsoever|rules)"),
    (0.45, "(?:unfiltered|uncensored|unrestricted|amoral|unethical|jailbroken|unlimited"
           "|unaligned) (?:and [^ .:]+ )?(?:ai|model|bot|chatbot|assistant|language model|response|responses"
           "|answers?|machine|character|version)"),
    (0.35, "(?:openai|anthropic|googles?|meta|microsofts?)s? (?:content )?(?:policy|policies|guidelines|restrictions"
           "|rules|terms)|content policy|content policies|usage polic(?:y|ies)"),
    (0.35, "(?:even if|whether or not|no matter if|regardless of whether) (?:it|its|that|this|they"
           f"|something) {gap(2)}(?:illegal|unethical|immoral|harmful|offensive|false|dangerous|inappropriate"
           "|wrong)"),
    (0.30, "as an? (?:ai|artificial intelligence|language model|large language model)(?: language model)?"),
    (0.45, "typical confines of|abide by the rules|rules (?:set|imposed) (?:for|on) (?:them|you)|break free of"),
    (0.25, "(?:i am|im) (?:the|your) (?:[^ .:]+ )?(?:admin|administrator|developer|root user|creator|programmer"
           "|system owner)|as your (?:developer|creator|admin|administrator|programmer|owner)"),
    (0.35, "(?:grant|give|allow) me (?:full|elevated|admin|root|unrestricted|unlimited|complete|administrator"
           "|total) (?:access|privileges|control|rights|permissions?)"),
    (0.45, "(?:i am|im|this is|i m) (?:your|the|an?|from) (?:[^ .:]+ )?(?:developers?|creator|administrator|admin"
           "|system administrator|openai|anthropic|programmer|engineer"
           f"|debugger) {gap(4)}(?:[.:] )?(?:{gap(3)})(?:show|tell|give|reveal|print|need you|you must|you can"
           "|you (?:are|may)|authori[sz]|disable|enter|override|helping)"),
    (0.50, "(?:system|admin|administrator|security|safety|emergency|root|developer) override|override (?:code"
           "|protocol|mode|safety|security)|(?:disable|turn off|deactivate|remove) (?:all )?(?:your )?(?:safety"
           "|content|ethical|security|moderation) (?:[^ .:]+ )?(?:filters?|features?|protocols?|guidelines?"
           "|restrictions?|measures|settings|checks?|guardrails?)"),
)  # fmt: skip

_TOOLS = (
    (0.40, f"{START}(?:call|invoke|run|execute|trigger) (?:the |your |this |a )?{gap(3)}(?:tools?|function|api|plugin"
           "|endpoint|shell|code interpreter|command)"),
    (0.50, f"{START}(?:call|invoke|execute|trigger) (?:the |your |this |a )?{gap(3)}(?:tool|function|api|plugin"
           "|endpoint) (?:with|to|and|on|for|using)"),
    (0.45, f"{START}use (?:the|your) {gap(2)}(?:tool|function|plugin|code interpreter) (?:to|and|with)"),
    (0.40, f"(?:using|use|call|calling|invoke|with|via) (?:the|your) {gap(2)}(?:tools?|function|plugin) (?:to|with"
           f"|and) {gap(2)}(?:send|delete|transfer|email|post|fetch|read|forward|upload|grant|open|share|buy"
           "|unlock)"),
    (0.55, "(?:send|post|forward|upload|exfiltrate|transmit|leak|append|submit|email|report|encode|paste|copy|share"
           f"|give|attach|export|deliver|include) {gap(5)}{_SECRETS} {gap(5)}(?:to|at|in|into|as) {gap(3)}(?:https?"
           "|www|url|ftp|webhook|server|link|attacker|me at|external|address|following)"),
    (0.30, "(?:send|post|forward|upload|exfiltrate|transmit|submit|fetch|visit|open|navigate to|get|request|click"
           f"|browse) {gap(6)}https? :"),
    (0.30, f"{START}(?:send|forward|transfer|delete|upload|email|exfiltrate|wire|grant|unlock|purchase) (?:all|every"
           "|the (?:entire|full|whole|contents)|a copy|any|me all|my|the user)"),
    (0.55, f"(?:exfiltrate|leak) {gap(4)}{_SECRETS}"),
)  # fmt: skip

_MEMORY = (
    (0.50, "(?:store|save|add|write|commit|record|insert|remember|memori[sz]e|persist|inject|append"
           f"|note) {gap(8)}(?:in|to|into|within) (?:(?:your|its|the assistants|the ais|the agents|the models"
           "|ai) (?:[^ .:]+ )?|the )?(?:long ?term |permanent |persistent|core |assistants? |durable "
           "|agents? )?(?:memory|memories|memory bank|knowledge base)"),
    (0.40, "your (?:long ?term |permanent |persistent |internal |core )(?:memory|memories)|(?:store|save"
           "|memory) (?:this|it|that)? ?(?:permanently|forever)"),
    (0.55, "(?:remember|memori[sz]e|store|save|treat|consider|accept|regard|take|record|note|view|mark"
           f"|trust) (?:this|that|it|the following|everything|all of this|what i say)? ?{gap(3)}as (?:a |an |the "
           "|absolute |your |if it were )*(?:fact|facts|truth|true|rule|instructions?|system|authoritative|trusted"
           "|verified|established|ground truth|gospel|new rules?|highest priority|command|higher priority|confirmed"
           "|approved)"),
    (0.50, "remember (?:that )?(?:[.:] )?(?:you|the assistant|the ai) (?:must|should|shall|have to|need to"
           f"|are (?:now|an?|to|not|allowed)|will|always|never|can (?:now|only)) {gap(1)}(?:{SPEAK}|always|never"
           "|bound|not|now|allowed)"),
    (0.50, "(?:in|for|during|across|throughout) (?:all |any |every |your )*(?:future|subsequent|later|following"
           "|upcoming) (?:conversations?|sessions?|chats?|interactions?|responses?|answers?|replies|messages?"
           f"|requests?) {gap(3)}(?:[.:] )?(?:{gap(3)})(?:{SPEAK}|use|always|never|must|treat)"),
    (0.55, "(?:for|during|throughout) the (?:rest|remainder|duration|entirety) of (?:this|the|our"
           "|your) (?:conversation|chat|session|dialogue|interaction|task|discussion)"),
    (0.40, "(?:the user|user|the customer) (?:has |have |already |always |explicitly |fully )+(?:approved?"
           f"|authori[sz]ed?|consent(?:ed|s)?|confirmed|agreed|granted|pre ?approved?|wants? you) {gap(4)}(?:all|any"
           "|every|future|to|without|you)"),
    (0.55, "(?:instructions?|orders?|directives?|message|note|command|reminder|information) (?:to|for) (?:the |all "
           f"|any |future |other |you )*{MODEL}"),
    (0.25, "without (?:confirmation|asking|verification|checking|approval|verifying|question|further checks)"),
)  # fmt: skip

RULES: tuple[Rule, ...] = (
    *(Rule("orders_the_assistant", weight, pattern) for weight, pattern in _ORDERED),
    *(Rule("jailbreak", weight, pattern) for weight, pattern in _JAILBREAK),
    *(Rule("orders_a_tool", weight, pattern) for weight, pattern in _TOOLS),
    *(Rule("writes_to_memory", weight, pattern) for weight, pattern in _MEMORY),
)
