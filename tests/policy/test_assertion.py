"""The built-in judge: what contradicts, what says the same, and what it leaves alone."""

from time import perf_counter

import pytest

from muniment.policy.assertion import Judgement, decision, judge
from muniment.policy.assertion.vocabulary import OPPOSITES, key

CONTRADICTING = {
    "polarity": [
        ("The customer prefers email.", "The customer does not prefer email."),
        ("The customer no longer prefers email.", "The customer prefers email."),
        ("Anna never works on site.", "Anna works on site."),
        ("Nobody is riding a bike.", "A woman is riding a bike."),
        ("The room has a view without a balcony.", "The room has a view with a balcony."),
        ("The device can't be returned.", "The device can be returned."),
        ("There is no man cutting wood.", "A man is cutting wood."),
        ("The supplier refuses to ship on weekends.", "The supplier ships on weekends."),
        ("Not all customers pay in advance.", "All customers pay in advance."),
        ("The client doesn't want calls.", "The customer wants calls."),
        ("A young woman is singing into a microphone.", "The woman is not singing."),
    ],
    "quantity": [
        ("Returns are accepted within 30 days.", "Returns are accepted within 14 days."),
        ("The contract runs for three years.", "The contract runs for 24 months."),
        ("The parcel weighs 1 kg.", "The parcel weighs 1500 g."),
        ("The fee is $30.", "The fee is 45 dollars."),
        ("The discount is 10%.", "The discount is fifteen percent."),
        ("Two men are sitting on a bench.", "Five men are sitting on a bench."),
        ("She finished in first place.", "She finished in 3rd place."),
        ("The team has one manager.", "The team has two managers."),
        ("The limit is 1,000 calls.", "The limit is 1500 calls."),
        ("Delivery takes 3 to 5 days.", "Delivery takes 7-9 days."),
        ("The fee is at most 20 euros.", "The fee is at least 30 euros."),
        ("The temperature is -5 degrees.", "The temperature is 5 degrees."),
        ("The notice period is 90 days.", "The notice period is two months."),
    ],
    "date": [
        ("The contract ends on 5 March 2026.", "The contract ends on 2026-04-05."),
        ("The meeting is on Monday.", "The meeting is on Tuesday."),
        ("The office opens at 9 am.", "The office opens at 10:30."),
        ("The warranty expires in 2026.", "The warranty expires in 2027."),
        ("Her birthday is in May.", "Her birthday is in June."),
        ("The audit starts on 24.12.2026.", "The audit starts on 26.12.2026."),
    ],
    "named_value": [
        ("The account manager is Tim Cook.", "The account manager is Steve Jobs."),
        ("The tracking code is AB-123.", "The tracking code is AB-124."),
        ("The contact address is a@example.com.", "The contact address is b@example.com."),
        ("The service was founded by Anna Berg.", "The service was founded by Carl Holm."),
        ("The current version is v1.2.3.", "The current version is v1.3.0."),
        ("The language is C.", "The language is C++."),
        ("She plays the position of wide receiver.", "She plays the position of cornerback."),
    ],
    "antonym": [
        ("The shop is open.", "The shop is closed."),
        ("Smoking is allowed on the terrace.", "Smoking is forbidden on the terrace."),
        ("The customer likes phone calls.", "The customer dislikes phone calls."),
        ("The offer was accepted.", "The offer was rejected."),
        ("The account is active.", "The account is inactive."),
        ("Payment is due before delivery.", "Payment is due after delivery."),
        ("The customer is happy with the service.", "The customer is unhappy with the service."),
        ("Shipping is included.", "Shipping is excluded."),
        ("The hotel is near the station.", "The hotel is far from the station."),
    ],
    "exclusive_alternative": [
        ("The customer prefers email.", "The customer prefers phone."),
        ("Plan is Pro", "Plan is Basic"),
        ("Plan: Pro", "Plan: Basic"),
        ("Anna lives in Berlin.", "Anna lives in Munich."),
        ("A man is in China.", "A man is in Vietnam."),
        ("A woman is drinking beer.", "A woman is drinking tea."),
        ("The logo is red.", "The logo is blue."),
        ("A man is singing.", "A woman is singing."),
        ("The family is in the living room.", "The family is in the kitchen."),
        ("The table is made of wood.", "The table is made of glass."),
        ("Invoices are sent in euros.", "Invoices are sent in dollars."),
    ],
}

SAME = [
    ("The customer prefers email.", "The client prefers e-mail"),
    ("Returns are accepted within two weeks.", "Returns are accepted within 14 days."),
    ("The limit is 1,000 calls.", "The limit is 1000 calls."),
    ("The parcel weighs 1 kg.", "The parcel weighs 1000 g."),
    ("The contract ends on 5 March 2026.", "The contract ends on 2026-03-05."),
    ("The contract ends on March 5th, 2026.", "The contract ends on 5 March 2026."),
    ("The office opens at 3 pm.", "The office opens at 15:00."),
    ("It starts at noon.", "It starts at 12:00."),
    ("The fee is $30.", "The fee is 30 dollars."),
    ("The discount is 10%.", "The discount is ten percent."),
    ("The contract runs for two years.", "The contract runs for 24 months."),
    ("In Germany, returns are free.", "Returns are free in Germany."),
    ("The couch is red.", "The sofa is red."),
    ("The customer doesn't want calls.", "The customer does not want calls."),
    ("He can't come.", "He cannot come."),
    ("THE SHOP IS OPEN", "the shop is open."),
    ("A man is walking near the street.", "A man walks close to the road."),
    ("No one likes the new form.", "Nobody likes the new form."),
    ("How do I reset my password?", "How can I reset my password?"),
]

# What was seen to differ, where the judge must say so.
DIFFERENT = [
    (
        "scope_differs",
        "Returns are accepted within 30 days in Germany.",
        "Returns are accepted within 30 days in France.",
    ),
    ("scope_differs", "Shipping is free for business customers.", "Shipping is free for private customers."),
    ("scope_differs", "Support is free for customers.", "Support is free for partners."),
    ("scope_differs", "Ships to Germany", "Ships to France"),
    ("scope_differs", "VAT in Germany is 19%.", "VAT in France is 20%."),
    ("scope_differs", "In 2023 revenue was 5 million.", "In 2024 revenue was 6 million."),
    ("scope_differs", "German customers get 30 days.", "French customers get 30 days."),
    ("scope_differs", "Returns are accepted.", "Returns are not accepted if the seal is broken."),
    ("tense", "Anna used to live in Berlin.", "Anna lives in Berlin."),
    ("tense", "Anna lived in Berlin.", "Anna lives in Berlin."),
    ("tense", "Anna lived in Berlin.", "Anna lives in Munich."),
    ("tense", "Anna used to live in Berlin.", "Anna lives in Munich."),
    ("tense", "The shop will be open.", "The shop is open."),
    ("quantity", "The team has managers.", "The team has two managers."),
    ("quantity", "The fee is about 30 euros.", "The fee is 30 euros."),
    ("quantity", "The fee is at least 20 euros.", "The fee is 30 euros."),
    ("date", "The contract ends in March 2026.", "The contract ends on 5 March 2026."),
    ("named_value", "Order 4711 was shipped.", "Order 4712 was shipped."),
    ("named_value", "Anna met Bob Miller.", "Anna met Carl Holm."),
    ("polarity", "A woman is singing.", "A woman is not singing into a microphone."),
    ("polarity", "The customer might be happy.", "The customer is not happy."),
    ("exclusive_alternative", "The customer likes tea.", "The customer likes coffee."),
    ("exclusive_alternative", "Anna speaks German.", "Anna speaks French."),
    ("exclusive_alternative", "The customer does not prefer email.", "The customer does not prefer phone."),
    ("other_content", "Anna likes tea.", "Bob likes tea."),
    ("other_content", "A dog is barking.", "An animal is barking."),
    ("other_content", "The shop is open.", "Is the shop open?"),
    ("other_content", "The shop is open.", "The shop is open?"),
    ("other_content", "The customer likes tea in the morning.", "The customer likes tea."),
    ("other_content", "I like tea.", "He likes tea."),
]

BUSINESS = [
    ("different", "The office in Berlin opens at 9.", "The office in Munich opens at 10."),
    ("different", "The Berlin office opens at 9.", "The Munich office opens at 10."),
    ("different", "The premium plan costs 30 euros.", "The basic plan costs 10 euros."),
    ("different", "Support is available on Monday.", "Support is available on Tuesday."),
    ("different", "Delivery to Germany takes 3 days.", "Delivery to France takes 5 days."),
    ("different", "Product A costs 5 euros.", "Product B costs 6 euros."),
    ("different", "The customer prefers email for invoices.", "The customer prefers phone."),
    ("different", "Payment is possible by credit card.", "Payment is possible by PayPal."),
    ("different", "Invoice 1001 is paid.", "Invoice 1002 is unpaid."),
    ("different", "The red button starts the engine.", "The green button stops the engine."),
    ("different", "The meeting with Acme is on Monday.", "The meeting with Globex is on Tuesday."),
    ("different", "Customer cus_77 prefers email.", "Customer cus_78 prefers phone."),
    ("different", "Refunds go to the original card.", "Refunds go to the bank account."),
    ("contradicts", "Passwords need at least 8 characters.", "Passwords need at least 12 characters."),
    ("contradicts", "Orders above 50 euros ship free.", "Orders above 80 euros ship free."),
    ("contradicts", "Invoices are sent by email.", "Invoices are sent by post."),
    ("contradicts", "Anna is 30 years old.", "Anna is 31 years old."),
    ("contradicts", "The customer is based in Munich.", "The customer is based in Hamburg."),
    ("contradicts", "The customer's name is Anna.", "The customer's name is Bob."),
    ("contradicts", "The default currency is EUR.", "The default currency is USD."),
    ("contradicts", "Contact person: Anna Berg", "Contact person: Carl Holm"),
    ("contradicts", "The customer wants weekly reports.", "The customer wants monthly reports."),
    ("contradicts", "The SLA is 4 hours.", "The SLA is 8 hours."),
    ("contradicts", "The account was closed on 3 May 2025.", "The account was closed on 4 May 2025."),
]

NEVER_THE_SAME = [
    ("Anna owes Bob 5 euros.", "Bob owes Anna 5 euros."),
    ("Anna moved from Berlin to Paris.", "Anna moved from Paris to Berlin."),
    ("The dog chased the cat.", "The dog was chased by the cat."),
    ("He likes her.", "She likes him."),
    ("The parcel was sent to him.", "The parcel was sent from him."),
    ("The man with the dog and the woman with the cat.", "The man with the cat and the woman with the dog."),
    ("Anna was invited.", "Anna invited."),
    ("Anna has a dog.", "Anna is a dog."),
    ("A surgeon is doing a replacement.", "A surgeon is a replacement."),
    ("Pay by email or phone.", "Pay by email and phone."),
    ("All orders are free.", "Some orders are free."),
    ("Customers may return goods.", "Customers must return goods."),
    ("Only managers can approve.", "Managers can approve."),
    ("Williams likes tea.", "William likes tea."),
    ("The contact is Bill Stone.", "The contact is Invoice Stone."),
    ("x > 5", "x < 5"),
    ("The fee is 1.5 euros.", "The fee is 1,5 euros."),
    ("It is not only cheap.", "It is only cheap."),
]

SAME_WITH_A_PHRASE_MOVED = [
    (
        "The customer wants deliveries before noon on weekdays.",
        "On weekdays the customer wants deliveries before noon.",
    ),
    (
        "The customer wants deliveries before noon on weekdays.",
        "The customer wants deliveries on weekdays before noon.",
    ),
    ("In Germany the shop is closed on Sundays.", "The shop is closed on Sundays in Germany."),
    ("The meeting starts at 3 pm on Monday.", "On Monday the meeting begins at 15:00."),
    ("The firm bought 20 licences in May.", "In May the company purchased 20 licences."),
    ("Yesterday Anna called the client.", "Anna called the customer yesterday."),
    ("Anna moved from Berlin to Paris in May.", "In May Anna moved to Paris from Berlin."),
    ("The report is sent monthly to Anna.", "The report is sent to Anna monthly."),
    ("Prior to the audit, Anna calls the client.", "Anna calls the customer before the audit."),
    ("Tea and coffee are free.", "Coffee and tea are free."),
    ("The customer accepts email or phone.", "The customer accepts phone or email."),
    ("The price of the plan is 30 euros.", "The plan's price is 30 euros."),
    ("The owner of the account is Anna.", "The account owner is Anna."),
]

SAME_IN_OTHER_SMALL_WORDS = [
    ("Please send invoices by e-mail.", "Send invoices by email."),
    ("The customer would like calls.", "The customer wants calls."),
    ("The customer wishes to receive invoices.", "The customer would like to receive invoices."),
    ("I'd like tea.", "I would like tea."),
    ("The client has to pay within 30 days.", "The customer must pay within 30 days."),
    ("The client needs to pay in advance.", "The client is required to pay in advance."),
    ("Anna is able to sign.", "Anna can sign."),
    ("The supplier is unable to deliver.", "The supplier can't deliver."),
    ("The client has a preference for email.", "The customer prefers email."),
    ("Anna works at Acme.", "Anna works for Acme."),
    ("The customer turned down the offer.", "The customer rejected the offer."),
    ("The customer called off the order.", "The customer cancelled the order."),
    ("She purchased a big automobile.", "She bought a large car."),
    ("The long-term plan is ready.", "The long term plan is ready."),
]

SAME_IN_THE_OTHER_VOICE = [
    ("Ann approved the refund.", "The refund was approved by Ann."),
    ("Ann approves refunds.", "Refunds are approved by Ann."),
    ("She approved the refund.", "The refund was approved by her."),
    ("Acme must pay the invoice.", "The invoice has to be paid by Acme."),
    ("Anna Berg approved the discount on 5 March 2026.", "The discount was approved by Anna Berg on 2026-03-05."),
    ("On 5 March 2026 Anna Berg approved the discount.", "The discount was approved on 5 March 2026 by Anna Berg."),
]

SAME_QUESTIONS = [
    ("What is the best way to cancel an order?", "How can I cancel an order?"),
    ("How do I best cancel an order?", "What are some good ways to cancel my order?"),
    ("Could you please tell me how to reset the password?", "How do I reset my password?"),
    ("What are the pros and cons of the plan?", "What are the disadvantages and advantages of the plan?"),
    ("Why is the parcel late?", "What is the reason the parcel is late?"),
    ("What do you think about the new plan?", "What is your opinion on the new plan?"),
    ("Is it possible to pay by card?", "Can I pay by card?"),
    ("How much does the plan cost?", "What is the price of the plan?"),
    ("What time does the shop open?", "When does the shop open?"),
]

NEVER_THE_SAME_BY = {
    "who did what to whom": [
        ("Anna approved the refund for Bob.", "Bob approved the refund for Anna."),
        ("The refund was approved by Ann for Bob.", "Bob approved the refund for Ann."),
        ("Anna beat Bob.", "Anna was beaten by Bob."),
        ("The committee elected Anna.", "The committee was elected by Anna."),
        ("Bob can be helped by Anna.", "Bob can help Anna."),
        ("Anna called Bob and Carl left.", "Anna called Carl and Bob left."),
        ("Anna called Bob and Carl is ill.", "Anna called Carl and Bob is ill."),
        ("Anna and Bob pay Carl.", "Anna pays Bob and Carl."),
        ("A customer of Anna called Bob.", "Anna called a customer of Bob."),
        ("A customer of Anna called.", "Anna called a customer."),
        ("The manager of Anna is Bob.", "The manager of Bob is Anna."),
        ("Anna is Bob's manager.", "Bob is Anna's manager."),
        ("Anna prefers tea to coffee.", "Anna prefers coffee to tea."),
        ("I know that Will reports to Anna.", "I know that Anna reports to Will."),
        ("Who knows that Will reports to Anna?", "Who knows that Anna reports to Will?"),
        ("The head of the IT team is Anna.", "The head of the team is Anna."),
        ("Anna Berg and Carl Holm met.", "Anna Holm and Carl Berg met."),
        ("The supplier delivers to Berlin from Paris.", "The supplier delivers to Paris from Berlin."),
        ("Before Anna left Bob called.", "Bob left before Anna called."),
    ],
    "what a phrase belongs to": [
        ("On Monday Anna said that Bob left.", "Anna said that Bob left on Monday."),
        ("On Monday Anna promised to call Bob.", "Anna promised to call Bob on Monday."),
        ("Anna works in Berlin. Bob works.", "Anna works. Bob works in Berlin."),
        ("Anna works in Berlin and Bob sleeps.", "Anna works and Bob sleeps in Berlin."),
        ("The customer in Berlin wants deliveries.", "The customer wants deliveries in Berlin."),
        ("In Berlin Anna works for Bob in Paris.", "In Paris Anna works for Bob in Berlin."),
        ("The shop delivers only on Mondays in May.", "The shop delivers only in May on Mondays."),
        ("Ann only approves refunds on Monday.", "Ann approves refunds only on Monday."),
        ("The plan costs 5 euros in Rome and 6 euros in Bonn.", "The plan costs 5 euros in Bonn and 6 euros in Rome."),
        ("The man from Berlin met the woman from Paris.", "The man from Paris met the woman from Berlin."),
        ("The cat is in the box.", "The cat is on the box."),
        ("A cup of coffee", "A coffee cup"),
    ],
    "scope": [
        ("The customer wants deliveries before noon on weekdays.", "The customer wants deliveries before noon."),
        ("On weekdays the customer wants deliveries.", "The customer wants deliveries on weekends."),
        ("Usually the customer pays on time.", "The customer pays on time."),
        ("The customer always pays on time.", "The customer usually pays on time."),
        ("The customer pays daily.", "The customer pays weekly."),
        ("He said Anna left.", "Anna left."),
    ],
    "tense": [
        ("Anna had to pay.", "Anna has to pay."),
        ("The client needs to pay.", "The client needed to pay."),
        ("Anna was able to sign.", "Anna is able to sign."),
        ("Anna was able to sign.", "Anna can sign."),
        ("Anna lived in Berlin.", "Anna has lived in Berlin."),
        ("He was running.", "He runs."),
        ("Anna put the parcel away.", "Anna puts the parcel away."),
        ("Anna paid the invoice.", "The invoice will be paid by Anna."),
        ("Ann approves the refund.", "The refund was approved by Ann."),
        ("The customer wants calls.", "The customer wanted calls."),
    ],
    "what is wished, must be or can be": [
        ("I'd like tea.", "I like tea."),
        ("The customer would like calls.", "The customer likes calls."),
        ("The client must pay.", "The client can pay."),
        ("Anna might like tea.", "Anna likes tea."),
        ("Anna works for Acme.", "Anna works with Acme."),
    ],
    "what is asked": [
        ("How do I convert PDF to Word?", "How do I convert Word to PDF?"),
        ("Can I pay by card?", "Must I pay by card?"),
        ("Can I call you?", "Can you call me?"),
        ("How can I help you?", "How can you help me?"),
        ("Do all customers pay?", "Do most customers pay?"),
        ("How do I get to Berlin?", "How do I get from Berlin?"),
        ("Why did Anna leave Bob?", "Why did Bob leave Anna?"),
        ("Who thinks of Anna?", "Who does Anna think of?"),
        ("Who called Anna?", "When was Anna called?"),
        ("What is good and bad about the plan?", "What is bad about the plan?"),
        ("What does the symbol ¥ mean?", "What does the symbol mean?"),
        ("What are the advantages of the plan?", "What are the disadvantages of the plan?"),
        ("What is the price of the Pro plan?", "What is the price of the Basic plan?"),
        ("How do I use Vine?", "How do I use Vine on a phone?"),
    ],
}

NOT_CONTRADICTING = [
    ("The shop is not open.", "The shop is closed."),
    ("Paris has two million inhabitants.", "Rome has two million inhabitants."),
    ("Two boys are playing.", "Three people are playing."),
    ("Is the shop open?", "Is the shop closed?"),
    ("A father is cooking.", "A man is cooking."),
    ("A puppy is asleep.", "A dog is asleep."),
    ("The shop is not open on Monday.", "The shop is not open on Tuesday."),
    ("Thomas Kyd was born in London.", "Thomas Arne was born in London."),
    ("The capital of France is beautiful.", "The capital of Italy is beautiful."),
    ("Anna bought a red car.", "Anna bought a blue car."),
]


@pytest.mark.rule("CTR-2")
@pytest.mark.parametrize(
    ("reason", "one", "other"), [(reason, *pair) for reason, pairs in CONTRADICTING.items() for pair in pairs]
)
def test_an_assertion_that_excludes_the_other_contradicts_it(reason: str, one: str, other: str) -> None:
    assert judge(one, other) == Judgement("contradicts", (reason,))
    assert judge(other, one) == judge(one, other)


@pytest.mark.rule("REV-7")
@pytest.mark.parametrize(("one", "other"), SAME)
def test_a_rewording_says_the_same(one: str, other: str) -> None:
    assert judge(one, other).verdict == "same"
    assert judge(other, one).verdict == "same"


@pytest.mark.rule("REV-7")
@pytest.mark.parametrize(("one", "other"), SAME_WITH_A_PHRASE_MOVED)
def test_a_phrase_moved_as_a_whole_changes_nothing(one: str, other: str) -> None:
    assert judge(one, other) == judge(other, one) == Judgement("same", ("rewording",))


@pytest.mark.rule("REV-7")
@pytest.mark.parametrize(("one", "other"), SAME_IN_OTHER_SMALL_WORDS)
def test_words_of_one_meaning_stand_for_one_another(one: str, other: str) -> None:
    assert judge(one, other) == judge(other, one) == Judgement("same", ("rewording",))


@pytest.mark.rule("REV-7")
@pytest.mark.parametrize(("one", "other"), SAME_IN_THE_OTHER_VOICE)
def test_the_passive_with_its_agent_says_what_the_active_says(one: str, other: str) -> None:
    assert judge(one, other) == judge(other, one) == Judgement("same", ("rewording",))


@pytest.mark.rule("REV-7")
@pytest.mark.parametrize(("one", "other"), SAME_QUESTIONS)
def test_a_question_is_the_same_in_another_framing(one: str, other: str) -> None:
    assert judge(one, other) == judge(other, one) == Judgement("same", ("rewording",))


@pytest.mark.rule("REV-7")
@pytest.mark.parametrize(("one", "other"), [pair for pairs in NEVER_THE_SAME_BY.values() for pair in pairs])
def test_another_role_scope_tense_or_question_is_never_the_same(one: str, other: str) -> None:
    assert judge(one, other).verdict != "same"
    assert judge(one, other) == judge(other, one)


@pytest.mark.rule("CTR-2", "REV-7")
@pytest.mark.parametrize(("reason", "one", "other"), DIFFERENT)
def test_what_merely_differs_neither_contradicts_nor_repeats(reason: str, one: str, other: str) -> None:
    found = judge(one, other)
    assert found.verdict == "different"
    assert reason in found.reasons


@pytest.mark.rule("CTR-2")
@pytest.mark.parametrize(("verdict", "one", "other"), BUSINESS)
def test_facts_of_a_business_contradict_only_about_the_same_thing(verdict: str, one: str, other: str) -> None:
    assert judge(one, other).verdict == verdict


@pytest.mark.rule("REV-7")
@pytest.mark.parametrize(("one", "other"), NEVER_THE_SAME)
def test_the_same_words_in_other_roles_are_not_the_same(one: str, other: str) -> None:
    assert judge(one, other).verdict != "same"


@pytest.mark.rule("CTR-2")
@pytest.mark.parametrize(("one", "other"), NOT_CONTRADICTING)
def test_what_can_hold_together_does_not_contradict(one: str, other: str) -> None:
    assert judge(one, other).verdict != "contradicts"


@pytest.mark.rule("CTR-2")
def test_longer_texts_contradict_one_another_where_their_openings_do() -> None:
    before = "The customer likes golf. It is calm, and friends play it too."
    after = "The customer dislikes golf. After the injury every round became a burden."
    assert judge(before, after).verdict == "contradicts"
    assert judge("Anna is a nurse. She lives in Rome.", "Bob is a pilot. She lives in Paris.").verdict == "different"


@pytest.mark.rule("REV-7")
def test_very_long_texts_are_the_same_only_word_for_word() -> None:
    text = "The parcel was left with a neighbour on the second floor. " * 560
    assert judge(text, text.upper()).verdict == "same"
    assert judge(text, text + "The parcel was left on the third floor.").verdict == "different"
    # The openings are short enough to be read.
    assert judge(text, text.replace("second", "third", 1)).verdict == "contradicts"


@pytest.mark.parametrize(
    "text", ["", "   ", "!?", "the of and", "\ud83d", "\x00", "🚀" * 50, "a." * 4000, "a-" * 4000, "9" * 5000]
)
def test_odd_texts_are_judged_like_any_other(text: str) -> None:
    assert judge(text, text).verdict == "same"
    assert judge(text, "The shop is open.").verdict == "different"


@pytest.mark.rule("CTR-2", "REV-7")
def test_texts_that_share_hardly_a_word_are_told_apart_without_reading_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def unread(text: str) -> None:
        raise AssertionError(text)

    monkeypatch.setattr(decision, "read", unread)
    found = judge("The customer wants weekly reports by email.", "Two licences expire at the end of the summer season.")
    assert found == Judgement("different", ("other_content",))
    with pytest.raises(AssertionError):
        judge("The customer wants weekly reports.", "The customer wants monthly reports.")


def test_no_word_stands_for_its_own_opposite() -> None:
    words = [word for word in OPPOSITES if any(key(word) == key(opposite) for opposite in OPPOSITES[word])]
    assert words == []


@pytest.mark.parametrize(
    "again", ["some of the ", "what is the best way to ", "can you tell me ", "how do i to ", "and tea ", "on Monday "]
)
def test_a_question_of_repeated_framing_is_judged_in_time(again: str) -> None:
    text = f"What {again * 150}?"
    started = perf_counter()
    assert judge(text, text.replace("?", "now?")).verdict in ("same", "different")
    assert perf_counter() - started < 2
