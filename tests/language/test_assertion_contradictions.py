"""The built-in judge on contradiction: what excludes the other, what merely differs, and what can hold together."""

import pytest

from muniment.language.assertion import Judgement, comparison, judge
from muniment.language.assertion.vocabulary import ANTONYMS, synonym_key

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


@pytest.mark.rule("CTR-2", "REV-7")
def test_texts_that_share_hardly_a_word_are_distinguished_without_reading_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def unread(text: str) -> None:
        raise AssertionError(text)

    monkeypatch.setattr(comparison, "parse", unread)
    found = judge("The customer wants weekly reports by email.", "Two licences expire at the end of the summer season.")
    assert found == Judgement("different", ("other_content",))
    with pytest.raises(AssertionError):
        judge("The customer wants weekly reports.", "The customer wants monthly reports.")


def test_no_word_stands_for_its_own_opposite() -> None:
    words = [
        word for word in ANTONYMS if any(synonym_key(word) == synonym_key(opposite) for opposite in ANTONYMS[word])
    ]
    assert words == []
