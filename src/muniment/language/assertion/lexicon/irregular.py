"""Irregular forms of nouns and verbs, and words that only look inflected."""

from muniment.language.assertion.lexicon import words

FORMS: dict[str, str] = {}
_INFLECTIONS = """
man:men woman:women child:children person:people,persons foot:feet tooth:teeth mouse:mice goose:geese
wife:wives knife:knives half:halves shelf:shelves wolf:wolves thief:thieves datum:data criterion:criteria
ox:oxen calf:calves loaf:loaves scarf:scarves tie:ties,tied,tying policeman:policemen
policewoman:policewomen fireman:firemen fisherman:fishermen businessman:businessmen
businesswoman:businesswomen salesman:salesmen gentleman:gentlemen go:goes,went,gone,going come:came,coming
run:ran,running sit:sat,sitting stand:stood lie:lay,lain,lying,lies,laying take:took,taken,taking
give:gave,given,giving get:got,gotten,getting make:made,making see:saw,seen say:said,says know:knew,known
think:thought buy:bought sell:sold tell:told find:found keep:kept leave:left,leaving,leaves hold:held
bring:brought begin:began,begun,beginning write:wrote,written,writing eat:ate,eaten drink:drank,drunk
drive:drove,driven,driving ride:rode,ridden,riding speak:spoke,spoken break:broke,broken,breaking
choose:chose,chosen,choosing wear:wore,worn swim:swam,swum,swimming sing:sang,sung throw:threw,thrown
fly:flew,flown,flies,flying grow:grew,grown draw:drew,drawn fall:fell,fallen feel:felt meet:met,meeting
pay:paid send:sent spend:spent build:built lose:lost,losing win:won,winning teach:taught catch:caught
fight:fought sleep:slept,asleep sweep:swept lead:led read:read feed:fed shoot:shot hit:hitting cut:cutting
put:putting set:setting let:letting hear:heard understand:understood become:became,becoming
forget:forgot,forgotten rise:rose,risen,rising shake:shook,shaken steal:stole,stolen freeze:froze,frozen
wake:woke,woken bite:bit,bitten hide:hid,hidden blow:blew,blown show:shown bear:born,bore hang:hung
stick:stuck swing:swung strike:struck dig:dug mean:meant deal:dealt lend:lent bend:bent light:lit
ring:rang,rung spring:sprang sink:sank,sunk shut:shutting bet:betting use:using,used,uses have:having
be:being do:doing,done die:died,dying,dies cost:costing prefer:preferred,preferring
close:closed,closing,closes base:based,basing bus:buses,busses gas:gases focus:focused,focusing
travel:travelling,travelled cancel:cancelled,cancelling label:labelled hop:hopped,hopping
ship:shipped,shipping agree:agreed,agreeing free:freed see:seeing flee:fled dye:dyeing shoe:shoes toe:toes
hoe:hoes canoe:canoes potato:potatoes tomato:tomatoes hero:heroes echo:echoes volcano:volcanoes movie:movies
cookie:cookies zombie:zombies photo:photos piano:pianos selfie:selfies calorie:calories pie:pies lens:lenses
bias:biases status:statuses address:addresses write-off:write-offs marry:married,marries,marrying
carry:carried study:studied worry:worried try:tried,tries cry:cried,cries dry:dried,dries fry:fried,fries
image:images age:aged,aging,ages owe:owed,owing,owes bake:baking whole:wholly
"""
for _line in _INFLECTIONS.split():
    _base, _, _forms = _line.partition(":")
    for _form in _forms.split(","):
        if _form and _form not in FORMS:
            FORMS[_form] = _base

# Never cut: the ending belongs to the word.
WHOLE = words("""
    during evening morning ceiling building wedding nothing something anything everything king ring thing string
    spring wing sing bring sling swing cling sting duckling sibling darling inning hundred bed red need seed
    speed feed weed deed indeed embed shed sled breed bleed creed greed steed exceed proceed succeed kindred
    sacred naked news lens always perhaps species series physics mathematics politics economics athletics athens
    paris texas gas bus james charles thomas jesus christmas canvas atlas bias alias chess class glass grass
    boss cross dress press status virus campus bonus focus minus plus versus census corpus is was has his this
    thus us yes tennis basis crisis analysis emphasis thesis oasis iris pelvis across process access express
    address business wireless unless less princess actress waitress mattress fitness illness witness happiness
    jeans pants shorts trousers glasses sunglasses scissors pajamas goggles headquarters means outskirts
    philippines netherlands bahamas clothes hers ours yours theirs united diabetes rabies red-handed ped moped
    biped outstanding interesting boring exciting fascinating unwilling willing missing existing
""")
# Past forms that are not made with -ed.
PAST = words("""
    was were had did went came ran sat stood took gave got made saw said knew thought bought sold told found
    kept left held brought began wrote ate drank drove rode spoke broke chose wore swam sang threw flew grew
    drew fell felt met paid sent spent built lost won taught caught fought slept led fed shot heard understood
    became forgot rose shook stole froze woke bit hid blew hung stuck swung struck dug meant dealt lent bent lit
    rang sank fled
""")
# Participles that differ from the past tense.
PARTICIPLES = words("""
    given taken written chosen driven shown seen known eaten drawn grown thrown stolen broken spoken forgotten sworn
    done gone begun drunk ridden risen shaken frozen woken bitten hidden blown sung sunk worn torn born flown fallen
    gotten proven beaten forbidden mistaken withdrawn overseen undertaken rewritten overdrawn
""")
# Verbs whose past tense looks like the present: `put` beside `puts` may be either.
UNCHANGED = words("put cut let hit shut hurt quit split spread read bet burst cast thrust")
