"""Pairs of opposites: each line sets the words before the bar against the words after it."""

LINES = """
open opened | closed shut
allow permit authorise enable | forbid prohibit ban disallow deny block disable prevent
allowed permitted authorised eligible | forbidden prohibited banned disallowed denied ineligible barred
before | after
earlier | later
like love enjoy adore | dislike hate loathe detest
accept approve | reject refuse decline deny
increase rise grow raise gain expand | decrease fall drop shrink reduce lower decline lose
active | inactive dormant
enabled on | disabled off
hot warm | cold cool chilly freezing icy
old elderly aged older | young youthful younger new
old | modern
big large huge enormous giant gigantic massive great | small little tiny miniature minuscule
tall high | short low
long | short brief
happy glad joyful cheerful delighted pleased content | sad unhappy miserable gloomy upset depressed angry
fast quick rapid swift | slow
near close nearby | far distant
near | far_from
inside indoors indoor in_house | outside outdoors outdoor
up upward upstairs uphill | down downward downstairs downhill
above over | below beneath under underneath
left | right
right correct true accurate | wrong incorrect false inaccurate
front | back rear
top | bottom
first | last
start begin commence open | end finish stop conclude cease
enter arrive | leave exit depart
come | go
buy purchase | sell
buying | selling
push | pull
give | take receive
send | receive
lend | borrow
win | lose
pass | fail
succeed | fail
success | failure
love | hate
rich wealthy | poor
cheap inexpensive affordable | expensive costly
free | paid busy occupied
full | empty
heavy | light
light bright | dark dim
hard difficult | easy simple
hard | soft
strong | weak
wet damp soaked | dry
clean | dirty filthy
safe secure | dangerous unsafe risky
quiet silent | loud noisy
wide broad | narrow
thick | thin
deep | shallow
sharp | blunt dull
smooth | rough
public | private
internal | external
domestic | foreign international
national | international
permanent | temporary
mandatory required compulsory obligatory | optional voluntary
include | exclude
included | excluded
always | never rarely seldom
often frequently regularly | rarely seldom never
everyone everybody all | nobody none
everything | nothing
same identical | different other distinct
same | other
similar | different
minimum least | maximum most
more | less fewer
many | few
majority | minority
married | single divorced unmarried
alive living | dead
born | died
asleep sleep sleeping | awake
sleep | run walk swim dance eat cook play read jump work talk sing drive stand race fight ski climb
sit | run walk swim jump dance stand race ski
guilty | innocent
male masculine | female feminine
day daytime | night nighttime
morning | evening night afternoon
sunny | rainy cloudy
north northern | south southern
east eastern | west western
positive | negative
agree | disagree
connect | disconnect
connected | disconnected
attach | detach remove
add | remove delete subtract
create | destroy delete
build | demolish destroy
remember | forget
find | lose
appear | disappear vanish
trust | distrust
friend | enemy
ally | enemy
hero | villain
teacher | student
doctor | patient
employer | employee
parent | child
winner | loser
import | export
upload | download
deposit | withdraw
credit | debit
profit | loss
asset | liability
income | expense
subscribe | unsubscribe cancel
subscribed | unsubscribed
online | offline
available | unavailable
valid | invalid expired
refundable | nonrefundable non-refundable final
taxable | tax-free exempt
vegetarian vegan | carnivore
hire employ | fire dismiss
lock locked | unlock unlocked
load | unload
pack | unpack
wrap | unwrap
dressed clothed | naked nude undressed
straight | curly crooked
ancient | modern
beautiful pretty attractive handsome | ugly
brave | cowardly afraid
generous | stingy
polite | rude
kind nice | mean cruel unkind
smart clever intelligent | stupid dumb
lazy | hardworking diligent industrious
calm relaxed | nervous anxious tense agitated
awake | asleep unconscious
healthy well | sick ill unhealthy
fat overweight | thin skinny slim
tight | loose
crowded packed | empty deserted
alone | together
raw | cooked
fresh | stale rotten
sweet | bitter sour
front | behind
in_front_of | behind
forward | backward backwards
clockwise | counterclockwise
ahead | behind
victory | defeat
war | peace
question | answer
ask | answer
laugh smile | cry frown weep
laughing smiling | crying frowning weeping
attack | defend
arrive | depart
departure | arrival
ascend climb | descend
ceiling | floor
sunrise | sunset
summer | winter
sun | moon
land | sea
upper | lower
senior | junior
major | minor
maximum | minimum
full-time | part-time
fulltime | parttime
manual | automatic
automatically | manually
hourly | daily weekly monthly yearly annually
daily | weekly monthly yearly annually quarterly
weekly | monthly yearly annually quarterly biweekly
monthly | yearly annually quarterly
quarterly | yearly annually
completed finished done | pending unfinished incomplete ongoing
confirmed | cancelled unconfirmed
approved | rejected pending
resolved | unresolved pending
urgent | routine
aware | unaware ignorant
visible | invisible hidden
known | unknown
famous | unknown obscure
familiar | strange unfamiliar
possible | impossible
legal | illegal
loyal | disloyal
satisfied | dissatisfied unhappy
interested | uninterested bored
likes | dislikes
tighten | loosen
whisper | shout yell scream
quietly silently | loudly noisily
quickly fast | slowly
carefully | carelessly
happily | sadly
employed | unemployed retired
tenant | landlord
predecessor | successor
ancestor | descendant
absent | present
lost | found
seated sitting | standing
stationary still parked | moving
frozen | melted
fiction | nonfiction
optimistic | pessimistic
introvert | extrovert
introverted | extroverted outgoing
blonde blond | brunette
bald | long-haired
barefoot | shod
""".strip().splitlines()
