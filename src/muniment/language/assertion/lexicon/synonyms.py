"""Words that may stand for one another: each line is one group, phrases joined with an underscore."""

from muniment.language.assertion.lexicon import words

LINES = """
small little tiny
big large huge
man gentleman guy male
woman lady female
boy lad
kid child
baby infant
person human individual someone somebody
mother mom mum mommy mummy
father dad daddy
couch sofa
car automobile auto
bike bicycle
motorbike motorcycle
photo photograph picture
movie film
shop store
street road
near nearby close_to next_to beside by_the_side_of
talk speak chat converse
start begin commence
end finish conclude
purchase buy
client customer
refund reimbursement reimburse
e-mail email mail
phone telephone
mobile cellphone cell smartphone
happy glad pleased delighted joyful
sad unhappy miserable
fast quick rapid
smart clever intelligent
ill sick
rich wealthy
nobody no_one
leap jump hop
slice cut chop dice
sleep nap snooze
stroll walk
jog run
shout yell scream
build construct
allow permit
forbid prohibit ban
require need
help assist aid
answer reply respond
choose select pick
fix repair mend
obtain receive
show display
reside live
staff employee worker
firm company enterprise
attorney lawyer
physician doctor
cop policeman police_officer
holiday vacation
flat apartment
lift elevator
petrol gasoline gas
parcel package
invoice bill
yearly annual annually per_year each_year every_year
monthly per_month each_month every_month
weekly per_week each_week every_week
daily per_day each_day every_day
cost price
client customer
usa us u.s. united_states america u.s.a.
uk united_kingdom britain great_britain u.k.
eu european_union
tv television
colour color
favourite favorite
grey gray
centre center
organise organize
cancel call_off
approximately about roughly around circa approx
must have_to need_to has_to required_to
many lots_of a_lot_of lot numerous plenty_of
also as_well
improve enhance
lose shed
earn make_money
best ideal
way method
reason cause
important significant
large big
begin start
difference distinction
quickly fast rapidly
beautiful pretty
job occupation
test exam examination
error mistake
ship boat
rug carpet
stone rock
forest woods wood
sea ocean
infant baby
garbage trash rubbish
sidewalk pavement
hurt injure wound
kill slay
murder homicide
fall drop decline decrease
increase rise
profit earnings
percent per_cent
currently at_the_moment right_now
despite in_spite_of
statement announcement
declare announce
employ hire
quit resign
deadline due_date
closed shut
ruin destroy
discount rebate
delivery shipping
deliver ship
gift present
website site webpage
blog weblog
increase raise
hate dislike detest loathe
love adore
reach achieve attain accomplish
achievement accomplishment
purpose aim goal objective
improve upgrade
change alter modify
seem appear
resemble look_like
firm corporation
advantage benefit upside
disadvantage drawback downside
difference differ
obtain gain acquire
inform notify
verify confirm
confirmation confirm
cancel cancellation
register registration
reserve reservation booking
prepare preparation
install installation
recommend recommendation
suggest suggestion
pay payment
approve approval authorise authorize
arrive arrival
depart departure
introduce introduction introductory
explain explanation clarify
decide decision
renew renewal
remove removal delete erase
require requirement
invest investment
develop development
treat treatment
define definition
advert advertisement ads
cv resume curriculum_vitae
institute institution
teenager teen adolescent
person folk
student pupil
teacher instructor tutor
boss supervisor
colleague coworker co-worker
supplier vendor
buyer purchaser
goods merchandise
postpone delay defer
quickly swiftly
slowly gradually
frequently often
rarely seldom
entirely completely totally fully wholly
mainly mostly primarily chiefly
nearly almost
perhaps maybe possibly
probably likely
immediately instantly
cheap inexpensive
expensive costly
difficult hard tough
easy simple
essential crucial vital
necessary needed
correct right accurate
incorrect wrong
terrible awful horrible
wonderful fantastic amazing awesome
nice pleasant
odd weird strange
scary frightening
funny humorous
famous well-known renowned
safe secure
dangerous hazardous
whole entire
enough sufficient
previous prior
upcoming forthcoming
main primary principal
usual normal
exact precise
quiet silent
angry mad furious
afraid scared frightened
stupid dumb
brave courageous
lucky fortunate
fat overweight
thin skinny slim
disease illness sickness
medicine medication
cure heal
gun firearm
pistol handgun
fight battle
enemy foe
crime offence offense
thief robber
steal rob
dead deceased
marry wed
garden yard
path trail
garbage waste
salary wage
fee charge
meeting appointment
conversation discussion
comment remark
question query inquiry enquiry
inquire enquire
advise counsel
tip hint
teach instruct
ability capability
idea concept notion
opinion viewpoint
understand comprehend grasp
remember recall
notice observe
seek search
find discover
hide conceal
keep retain
throw toss
carry transport
pull drag
push shove
climb ascend
leave depart
travel journey trip
wait await
stay remain
stop halt cease
continue proceed
happen occur
protect defend guard
attack assault
damage harm
destroy demolish
produce manufacture
gather collect
join connect link
connection link
combine merge unite
reduce lower lessen
expand enlarge extend
replace substitute
exchange swap
use utilise utilize
attempt try
beat defeat
supply provide
own possess
contain include
consist comprise
assess evaluate
calculate compute
compare comparison
solve resolve
problem issue trouble difficulty
obstacle barrier
chance opportunity possibility
risk danger hazard
effect impact influence affect
result outcome consequence
example instance
characteristic trait feature
amount quantity
area region zone
machine device gadget
computer pc
singer vocalist
author writer
trousers pants
sweater jumper pullover
glasses spectacles
jewellery jewelry
tasty delicious
flavour flavor taste
neighbour neighbor
behaviour behavior
honour honor
labour labor
metre meter
programme program
catalogue catalog
licence license
realise realize
recognise recognize
analyse analyze analysis
apologise apologize
optimise optimize
customise customize
truck lorry
line queue
schedule timetable
mobile mobile_phone cell_phone
postcode zip
surname last_name family_name
forename first_name given_name
contact reach_out_to
complain complaint
subscribe subscription
inspect inspection
stop discontinue
""".strip().splitlines()

# Words of which neither excludes the other although a list below may hold both.
COMPATIBLE = words("""
soccer/football stand/lean lie/sleep jump/run hop/run run/race walk/hike field/park field/grass street/city
street/market road/city beach/ocean beach/sea ocean/water lake/water river/water pool/water mountain/forest
hill/mountain house/kitchen office/building home/house restaurant/kitchen bar/restaurant cafe/restaurant shop/mall
shop/street street/road town/city jacket/coat shirt/tshirt jeans/pants hat/cap hat/helmet dress/skirt shoes/boots
coffee/espresso beer/ale cream/white gold/yellow silver/gray silver/grey navy/blue tan/brown beige/tan scarlet/red
crimson/red turquoise/blue maroon/red blond/yellow puppy/dog kitten/cat bird/parrot horse/pony truck/car
truck/pickup bus/vehicle boat/ship boat/canoe canoe/kayak ship/canoe student/child student/girl student/boy
athlete/player musician/guitarist singer/musician artist/painter worker/builder guitar/electric_guitar
piano/keyboard violin/fiddle drum/percussion metal/steel metal/iron metal/aluminium metal/silver metal/gold
metal/copper wood/oak stone/marble stone/granite fabric/cotton fabric/silk leather/suede glass/crystal brick/stone
stone/concrete sand/stone wood/paper visa/credit_card mastercard/credit_card amex/credit_card visa/card
credit_card/card debit_card/card phone/call sms/phone sms/text sms/message text/phone text/message mail/post
chat/message email/message letter/mail england/uk scotland/uk wales/uk england/britain holland/netherlands
dutch/flemish asian/chinese asian/japanese asian/korean british/english british/scottish british/welsh uk/britain
european/german arab/egyptian bird/pigeon bird/eagle bird/owl bird/penguin bird/duck bird/goose bird/chicken
bird/turkey doctor/surgeon doctor/dentist dancer/ballerina hat/beanie hat/sombrero hat/hood sit/ride ride/fly
ride/run ride/drive desk/table costume/dress motorcycle/bike bike/scooter field/playground park/playground
house/home costume/suit dress/gown bench/seat floor/ground bed/floor place/school bear/panda whale/dolphin
mother/woman cook/chef rice/food sandwich/burger burger/hamburger chicken/meat beef/meat steak/beef pork/meat
ham/pork bacon/pork fruit/apple
""")
