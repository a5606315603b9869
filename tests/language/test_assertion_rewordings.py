"""The built-in judge on repetition: what says the same in other words, and what never does however alike it looks."""

from time import process_time

import pytest

from muniment.language.assertion import Judgement, judge

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


@pytest.mark.rule("REV-7")
@pytest.mark.parametrize(("one", "other"), NEVER_THE_SAME)
def test_the_same_words_in_other_roles_are_not_the_same(one: str, other: str) -> None:
    assert judge(one, other).verdict != "same"


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


@pytest.mark.parametrize(
    "again", ["some of the ", "what is the best way to ", "can you tell me ", "how do i to ", "and tea ", "on Monday "]
)
def test_a_question_of_repeated_framing_is_judged_in_time(again: str) -> None:
    text = f"What {again * 150}?"
    started = process_time()
    assert judge(text, text.replace("?", "now?")).verdict in ("same", "different")
    assert process_time() - started < 2
