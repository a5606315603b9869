"""Classes whose members exclude one another in the same place: name, words above the members, then the members.

Other names of the same member are joined with `=`, the words of a phrase with an underscore; an indented line goes on
with the one above.
"""

LINES = (
    """
colour; colour color colourful colorful coloured colored multicolored; red blue green yellow orange purple violet
  pink brown black white grey=gray beige turquoise gold golden silver cream maroon navy tan teal lavender magenta
  cyan crimson scarlet ivory khaki olive burgundy indigo
hair; hair; blond=blonde brunette redhead black-haired gray-haired=grey-haired
country; country nation abroad overseas europe asia africa eu; afghanistan albania algeria argentina australia
  austria bangladesh belgium bolivia brazil bulgaria cambodia canada chile china colombia croatia cuba cyprus
  czechia=czech_republic denmark ecuador egypt estonia ethiopia finland france germany ghana greece hungary iceland
  india indonesia iran iraq ireland israel italy jamaica japan jordan kenya kuwait laos latvia lebanon libya
  lithuania luxembourg malaysia malta mexico mongolia morocco myanmar nepal netherlands=holland new_zealand nigeria
  north_korea norway oman pakistan panama paraguay peru philippines poland portugal qatar romania russia
  saudi_arabia senegal serbia singapore slovakia slovenia somalia south_africa south_korea=korea spain sri_lanka
  sudan sweden switzerland syria taiwan tanzania thailand tunisia turkey uganda ukraine uk usa uruguay venezuela
  vietnam yemen zambia zimbabwe england scotland wales
nationality; foreign european african international; american afghan albanian algerian argentinian=argentine
  australian austrian bangladeshi belgian bolivian brazilian british bulgarian cambodian canadian chilean chinese
  colombian croatian cuban czech danish dutch egyptian english estonian ethiopian filipino finnish french german
  ghanaian greek hungarian icelandic indian indonesian iranian iraqi irish israeli italian jamaican japanese
  jordanian kenyan korean kuwaiti latvian lebanese lithuanian malaysian maltese mexican mongolian moroccan nepalese
  nigerian north_korean south_korean norwegian pakistani peruvian polish portuguese romanian russian saudi scottish
  serbian singaporean slovak slovenian somali spanish swedish swiss syrian taiwanese thai tunisian turkish ukrainian
  venezuelan vietnamese welsh yemeni arabic hebrew hindi latin mandarin swahili urdu bengali cantonese catalan
  farsi=persian tamil asian hispanic caucasian
continent; continent; europe asia africa north_america south_america antarctica oceania
city; city town downtown urban; london paris berlin madrid rome vienna zurich geneva hamburg munich frankfurt
  cologne stuttgart dublin lisbon porto barcelona milan naples venice amsterdam rotterdam brussels copenhagen
  stockholm oslo helsinki warsaw prague budapest athens istanbul moscow kyiv=kiev bucharest sofia belgrade zagreb
  new_york=new_york_city=nyc los_angeles chicago boston seattle san_francisco washington houston dallas austin
  denver miami atlanta philadelphia detroit phoenix toronto montreal vancouver ottawa mexico_city havana bogota lima
  santiago buenos_aires rio_de_janeiro sao_paulo tokyo osaka kyoto seoul beijing shanghai hong_kong taipei bangkok
  hanoi jakarta manila mumbai delhi bangalore=bengaluru chennai kolkata karachi dubai doha riyadh tehran baghdad
  cairo nairobi lagos johannesburg cape_town sydney melbourne brisbane perth auckland leeds manchester liverpool
  glasgow edinburgh birmingham bristol lyon marseille toulouse
planet; planet; mercury venus earth mars jupiter saturn uranus neptune pluto moon sun
season; season; spring summer autumn winter
meal; meal; breakfast lunch dinner=supper brunch
drink; drink beverage alcohol liquor liquid; beer wine vodka whisky=whiskey rum gin tequila champagne brandy cognac
  cider sake coffee tea water milk juice lemonade soda coke cola cocoa=hot_chocolate espresso cappuccino latte
  smoothie martini absinthe bourbon
vegetable; vegetable food ingredient; potato carrot onion tomato cucumber celery broccoli cabbage spinach lettuce
  zucchini=courgette eggplant=aubergine avocado pepper garlic mushroom pea bean corn cauliflower pumpkin radish
  turnip asparagus leek beet kale artichoke
fruit; fruit food; apple banana orange pear peach grape cherry strawberry raspberry blueberry lemon lime mango
  pineapple watermelon melon plum kiwi apricot fig coconut papaya
food; food meal snack dish something; pizza pasta spaghetti sandwich hamburger burger hot_dog salad soup steak rice
  bread cheese cake pie ice_cream candy cookie chocolate popcorn sushi noodle taco burrito egg bacon sausage
  pancake waffle donut=doughnut cereal yogurt
instrument; instrument music; piano guitar violin drum trumpet saxophone flute cello clarinet trombone harp
  accordion banjo harmonica keyboard tuba bagpipe ukulele electric_guitar bass_guitar oboe viola mandolin xylophone
  tambourine organ fiddle french_horn
animal; animal pet creature mammal; dog cat horse cow pig sheep goat bird fish rabbit mouse rat hamster elephant
  lion tiger bear wolf fox monkey gorilla deer giraffe zebra kangaroo panda camel donkey duck chicken goose turkey
  eagle owl parrot pigeon penguin snake lizard turtle frog shark whale dolphin seal octopus crab bee butterfly
  spider ant lemur squirrel leopard cheetah hippo rhino crocodile alligator koala otter puppy kitten lamb bull pony
vehicle; vehicle transport transportation; car truck bus bike motorcycle train plane=airplane=aeroplane helicopter
  boat ship van taxi=cab tram scooter tractor skateboard ambulance minivan submarine rocket subway=metro wagon sled
  jeep kayak canoe tricycle unicycle wheelchair carriage horse snowmobile jet yacht ferry
sport; sport game; soccer football basketball baseball tennis hockey volleyball rugby golf cricket badminton chess
  poker bowling boxing wrestling karate judo fencing lacrosse softball squash ping_pong=table_tennis polo gymnastics
  archery bingo monopoly checkers frisbee dodgeball hopscotch darts billiards american_football
  association_football ice_hockey water_polo surfing skiing snowboarding swimming
material; material; wood=wooden metal plastic glass stone brick concrete paper cardboard leather cotton wool=woolen
  silk rubber clay ceramic porcelain marble steel iron copper aluminium=aluminum bronze sand ice snow mud dirt straw
  bamboo linen polyester nylon denim velvet granite cement fabric fur wax water grass
room; room building house home place indoors inside; kitchen bathroom bedroom living_room dining_room garage hallway
  office courtroom classroom prison_cell basement attic laundry_room library gym nursery cellar restroom lobby
  lounge common_room dormitory ballroom conference_room waiting_room locker_room closet balcony porch elevator
  auditorium studio laboratory=lab
place; place location area somewhere outside outdoors; beach park forest mountain desert street church mall
  supermarket hospital school library airport museum restaurant cafe bar theater=theatre cinema zoo farm stadium
  office factory hotel jail=prison pool lake ocean river jungle cave playground garden bakery bank barn bus_stop
  train_station gas_station house home kitchen bedroom bathroom castle temple mosque warehouse workshop casino club
  circus cemetery courthouse field court rink space living_room courtroom classroom market
clothing_top; clothes clothing top garment outfit something; shirt jacket sweater coat hoodie vest dress suit tuxedo
  bikini swimsuit=bathing_suit=swimming_suit tank_top blouse robe gown apron costume uniform kimono wetsuit
clothing_bottom; clothes clothing bottoms; pants=trousers shorts skirt jeans leggings kilt dress pajamas swim_trunks
headgear; headgear; hat helmet cap hood turban wig crown bandana headband beanie sombrero
footwear; footwear; shoe boot sandal sneaker slipper flip-flop high_heel
occupation; worker professional employee person people; doctor nurse teacher lawyer engineer chef waiter=waitress
  police_officer=policeman=policewoman firefighter=fireman soldier pilot dentist farmer plumber electrician
  carpenter mechanic baker butcher barber=hairdresser accountant architect scientist librarian judge priest nun
  cashier janitor secretary fisherman cowboy clown magician ballerina astronaut sailor construction_worker gardener
  tailor photographer journalist surgeon veterinarian banker programmer salesman politician president king queen
  bride groom student actor=actress singer painter dancer athlete musician guitarist drummer
channel; channel communication; email phone sms fax letter chat whatsapp slack post telegram push_notification
  in-person voicemail
payment; payment; credit_card debit_card cash paypal bank_transfer=wire_transfer cheque=check direct_debit invoice
  apple_pay google_pay bitcoin gift_card visa mastercard amex sepa klarna
tier; tier plan subscription; free basic standard pro professional premium enterprise starter gold silver bronze
  platinum trial business team personal plus ultimate lite
currency; currency money; dollar=usd euro=eur pound=gbp yen=jpy franc=chf yuan=cny rupee=inr peso krona=sek krone
  zloty=pln rouble=ruble lira
size; size; small medium large xl xxl xs tiny huge
shape; shape; round square triangular rectangular oval circular hexagonal
direction; direction; north south east west left right up down northeast northwest southeast southwest straight
weather; weather; sunny rainy snowy cloudy foggy windy stormy
weather_verb; weather; rain snow hail
daypart; time; morning noon afternoon evening night midnight dawn dusk
posture; position; sit stand lie walk run swim crawl kneel climb ski fly drive dance ride
relative; relative family; mother father sister brother grandmother=grandma grandfather=grandpa aunt uncle cousin
  niece nephew husband wife son daughter stepmother stepfather
religion; religion religious; christian muslim jewish hindu buddhist atheist catholic protestant sikh mormon
religion_noun; religion; christianity islam judaism hinduism buddhism atheism catholicism protestantism sikhism
subject; subject science; mathematics=math=maths physics chemistry biology history geography economics philosophy
  psychology law medicine literature sociology astronomy
genre; music genre; jazz rock_music pop_music classical opera reggae punk techno metal_music country_music
  hip_hop=rap blues folk_music
status; status state; open closed pending approved rejected cancelled completed draft active inactive suspended
  archived expired paid unpaid overdue shipped delivered processing won lost new resolved
priority; priority severity; low medium high critical urgent normal
marital; marital; married single divorced widowed engaged
diet; diet; vegetarian vegan pescatarian carnivore omnivore keto paleo
handed; handed; left-handed right-handed ambidextrous
reading; reading_matter; book newspaper magazine map menu letter comic
metal; metal; gold silver copper iron steel bronze platinum tin zinc nickel titanium
seating; furniture seat; chair couch bench bed stool sofa floor table hammock swing desk ground
tool; tool; hammer saw drill screwdriver wrench shovel rake broom axe=ax knife scissors mop
device; device electronics; laptop tablet smartphone desktop camera television radio printer
  headphones calculator typewriter
toy; toy; ball doll kite balloon puzzle frisbee yo-yo teddy_bear
time_relative; day; today tomorrow yesterday
format; format; pdf csv json xml html docx xlsx yaml markdown png jpeg
cloud; cloud provider; aws azure gcp=google_cloud on-premises=on-prem
database; database; postgresql=postgres mysql mongodb sqlite redis cassandra mariadb
os; operating_system; windows macos linux android ios ubuntu
browser; browser; chrome firefox safari
carrier; carrier; dhl ups fedex hermes dpd usps gls
theme; theme mode; dark light
""".strip()
    .replace("\n  ", " ")
    .splitlines()
)
