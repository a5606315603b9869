"""Words that may stand for one another: each line is one group, phrases joined with an underscore."""

from muniment.policy.assertion.lexicon import words

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
near nearby close_to next_to beside by_the_side_of close
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
