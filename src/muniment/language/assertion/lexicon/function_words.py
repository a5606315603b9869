"""Words that carry grammar rather than content, by what they do to an assertion."""

from muniment.language.assertion.lexicon import words

# Dropped before two texts are compared.
DROPPED = words("""
    truly however moreover furthermore meanwhile therefore thus hence additionally certainly clearly obviously used_to
    a an the this that these those some any such own there it its itself be am is are was were been being
    do does did have has had having of and to 's so then than as also too just very really quite rather
    actually simply basically indeed please even still already yet now currently presently today's which who
    whom whose where while whilst that's himself herself themselves myself yourself ourselves one's
    certain particular respective 'd 'm 're 've 'll well etc
""")
PREPOSITIONS = words("""
    in on at to from for of by with about into onto upon over through across along around via per during within
    toward towards against among between as like than off
""")
# Prepositions that may stand for one another without a change of sense.
PREPOSITION_KIN: dict[str, int] = {
    word: number
    for number, group in enumerate(
        (
            "in at on into onto upon inside during within",
            "to toward towards",
            "by via through",
            "about regarding concerning",
            "for",
        )
    )
    for word in group.split()
}
# Of the first group, what stands inside and what stands on top of a thing; `at` may be either.
INSIDE = words("in into inside")
ON_TOP = words("on onto upon")
# Prepositions that may stand for one another after a verb.
AFTER_VERBS: dict[str, frozenset[str]] = {
    "work": words("at for"),
    "pay": words("by with via in"),
    "talk": words("to with"),
    "speak": words("to with"),
    "meet": words("with"),
    "pleas": words("with by"),
    "happy": words("with about"),
    "contact": words("by via at through"),
    "ask": words("for about"),
    "interest": words("in by"),
    "know": words("as"),
}
PRONOUNS: dict[str, str] = {
    "i": "i", "me": "i", "my": "i", "mine": "i", "we": "we", "us": "we", "our": "we", "ours": "we",
    "you": "you", "your": "you", "yours": "you", "he": "he", "him": "he", "his": "he",
    "she": "she", "her": "she", "hers": "she", "they": "they", "them": "they", "their": "they", "theirs": "they",
}  # fmt: skip
NEGATORS = words("""
    not never no nobody nothing none neither cannot without nowhere hardly scarcely barely lack lacks lacking
    no_longer nor
""")
# Verbs that negate what follows them: before `to`, and before a form in -ing.
NEGATING_BEFORE_TO = words("fail fails failed failing refuse refuses refused refusing")
NEGATING_BEFORE_ING = words("stop stops stopped cease ceased ceases quit quits avoid avoids avoided")
# After a negator these words make the pair no negation of the statement.
NOT_NEGATED_BY = words("only just merely simply necessarily less fewer more later sooner")
# Words that make a statement weaker, conditional or somebody's opinion.
HEDGES = words("""
    may might could would should can must if unless except only until till when whenever although though because
    want wants wanted hope hopes plan plans planned planning try tries tried trying attempt attempts attempting
    think thinks thought believe believes seem seems appear appears probably perhaps maybe almost nearly
    possibly likely about-to whether sometimes often usually always generally normally typically mostly all
    every each most few ever expect expects expected intend intends claim claims said says say allegedly pretend
    pretends prepare prepares preparing ready suppose supposed consider considers considering
""")
QUESTION_WORDS = words("what why who whom whose when where which how")
BE = words("be am is are was were been being 's 're 'm")
PAST_AUXILIARIES = words("was were had did")
PRESENT_AUXILIARIES = words("is are am has have do does 's 're 'm 've")
FUTURE = words("will shall 'll wo")
FORMER = words("formerly previously once earlier originally former ex")
# Who a rule is for: words around them limit a statement rather than make it.
AUDIENCES = words("""
    customer client user member employee partner account subscriber consumer business company student tenant
    patient guest visitor contractor supplier vendor merchant seller buyer reseller enterprise startup retailer
    order product item shipment parcel team department region country market resident citizen child adult senior
    applicant agent admin manager
""")
# Verbs that take many objects at once: another object is another fact, not a contradiction.
MULTI_VALUED = words("""
    like love enjoy hate dislike speak have own know use buy purchase order visit play support offer sell accept
    include contain need want ship deliver serve read watch eat drink provide learn teach study write make cover
    see meet handle collect follow attend recommend understand send receive give take interest appreciate export
    import operate run help call email contact work produce manufacture mention discuss cook wear hear download
    upload integrate connect share add request ask say tell report find build create develop host
""")
# Verbs and nouns that hold one value at a time: another value contradicts.
FUNCTIONAL = words("""
    prefer live reside locate base situate bear marry founded belong name call assign capital status plan tier
    colour color price address birthday owner language headquarters ceo author currency timezone deadline
    password username position title rank nationality citizenship religion spouse husband wife birthplace
    headquarter continent chairperson director president chancellor minister leader head mayor founder creator
    developer manufacturer producer size weight height age version level grade budget limit default contact
    channel manager supervisor reports report employ citizen sport original official set schedule move relocate
    switch change choose select elect appoint favourite favorite main primary origin genre performer composer
    broadcaster network country city state type category due educate die affiliate priority severity role phone
    mail email id number code
""")
# Attributes of which a thing has one: whatever stands for their value, another value contradicts.
ATTRIBUTES = words("""
    position status plan tier colour color price address birthday name owner language headquarters author
    currency timezone deadline password username title rank nationality citizenship religion spouse type
    category priority severity role version format theme size capital
""")
# What is merely possible leaves room for more of its kind.
POSSIBLE = words("possible available accepted accept supported support allowed permitted offered")
# What happens or holds on some days of every week.
RECURRING = words("open closed available work deliver ship run operate train visit staffed")
# Nouns that a number after them identifies rather than counts.
IDENTIFIED = words("""
    order invoice ticket case room flight account customer number no nr section version step phase chapter page
    bus gate table platform line item article rule form level release build batch unit suite floor apartment
    train channel task issue bug contract policy sku model type volume episode season part grade route highway
    apollo windows iphone category id
""")
# Words that two askings of the same question may differ in.
LIGHT_IN_QUESTIONS = words("""
    can could should would may might must do ever good best great better most much many people someone anyone
    somebody anybody thing way method tip idea advice suggestion recommendation possible really exactly actually
    become know tell explain describe find want different various nowadays recently currently properly correctly
    easily quickly effectively simple easy effective efficient proper step specifically generally usually
    typically certain personal overall general basic main all every each any
    top finest truly brief briefly common popular usual suggest recommend individual use have face
    fact real actual true exact necessarily available likely problem
""")
# Words that single out what follows them: a phrase behind one cannot change places with another.
FOCUS = words("""
    only even except especially mainly mostly exclusively solely particularly not_quite almost nearly merely one_of
    respectively first last
""")
# What opens a sentence within the sentence: a phrase may belong to either.
SUBORDINATORS = words("""
    that which who whom whose when whenever where while whilst if unless because although though whether but so
    said says say told tell tells claims claimed thinks thought believes believed knows knew reported
    reports announced announces added stated states confirmed confirms explained hopes hoped asked asks agreed agrees
    promised promises decided decides plans planned heard saw sees
""")
# Adverbs of time that stand at either end of a sentence.
TIME_ADVERBS = words("""
    daily weekly monthly yearly annually quarterly today tomorrow yesterday tonight weekdays weekends always usually
    often sometimes normally generally recently soon
""")
# Nouns of which `a cup of tea` is not a tea cup.
CONTAINERS = words("""
    cup glass bottle box bag piece pack pair group set list number kind sort type part half most bit slice bowl can
    jar crate pile bunch lot amount share percent percentage member majority rest end top bottom
""")
# Of these, kinds of which another one on the other side asks something else: can I, must I; all swans, most swans.
LIGHT_KINDS = (
    words("become know tell explain describe find want suggest recommend use have face"),
    words("can could should would may might must"),
    words("all every each most many much any"),
)
# What shows that a noun follows.
DETERMINERS = words("""
    the a an this that these those each every any some no my your his her its our their another such
""")
# What takes two things in either order.
SYMMETRIC = words("alike differ different difference same similar compare comparison between versus vs together both")
# First parts of a compound that change the word they are joined to.
JOINED_PARTS = words("""
    non anti pre post self semi sub super inter multi over under counter cross all half mid pro quasi ultra extra
    infra intra trans vice
""")
