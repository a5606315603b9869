"""The training data of the judge of pairs: the same seed gives the same pairs, and their labels are right."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from training.decontaminate import Evaluation, runs, without
from training.inputs import held
from training.pairs import data, public, talk, templates
from training.pairs.names import Names
from training.pairs.subjects import Subject, Subjects, filled, fits
from training.pairs.templates import CONTRADICTS, ENTAILS, NEITHER, Drawn, Kind, Maker
from training.pairs.values import Values, clock, days, hours, money, months, words

NAMES = Names(
    ["Anna", "Jules", "Zofia", "Marek", "Ines"],
    ["Weber", "Moreau", "Kowalska", "Santos", "Lindqvist"],
    ["Nordwind GmbH", "Moreau et Fils", "Kowal S.A.", "Lindqvist AB"],
)


def maker(seed: int = 1) -> Maker:
    return Maker(NAMES, seed)


def drawn(relation: Callable[[Maker], Drawn], count: int = 200) -> list[tuple[str, str, str]]:
    make = maker()
    return [pair for pair in (relation(make) for _ in range(count)) if pair]


def test_the_same_seed_gives_the_same_pairs_and_another_seed_others() -> None:
    first = list(maker(3).pairs(300))
    assert first == list(maker(3).pairs(300))
    assert first != list(maker(4).pairs(300))


def test_pairs_are_different_and_every_relation_and_label_occurs() -> None:
    rows = list(maker().pairs(4000))
    assert len({(row["a"], row["b"]) for row in rows}) == len(rows)
    assert {row["set"] for row in rows} == {f"made_{relation.__name__}" for relation, _ in templates.RELATIONS}
    labels = Counter(row["label"] for row in rows)
    assert set(labels) == {"contradicts", "entails", "neither", "not_contradiction"}
    assert min(labels["contradicts"], labels["entails"], labels["neither"]) > 500
    assert all(row["a"].strip() and row["b"].strip() and row["weight"] > 0 for row in rows)


def test_no_slot_of_a_pattern_stays_unfilled() -> None:
    make = maker()
    for kind in make.kinds:
        for group in ("says", "denies", "past", "plans", "asks"):
            for pattern in getattr(kind, group):
                for form in ("I", "Anna Weber"):
                    text = filled(pattern, form, "X")
                    assert not re.search(r"[{}|]", text), (kind.name, text)


def test_every_kind_has_at_least_seven_wordings_and_eight_with_denials() -> None:
    for kind in templates.read_kinds():
        assert len(kind.says) >= (5 if kind.state else 7), kind.name
        assert len(kind.says) + len(kind.denies) >= 8, kind.name
        assert len(set(kind.says)) == len(kind.says), kind.name
        assert kind.denies, kind.name


def test_every_kind_takes_values_and_subjects_that_exist() -> None:
    make = maker()
    for kind in make.kinds:
        first = make.subject(kind)
        if kind.subject != "policy":
            assert make.subjects.other(kind.subject, first, make.rng).forms[0] != first.forms[0]
        if not kind.state:
            value = make.value(kind)
            assert not make.other(kind, value).related(value)
        assert all(group in make.groups for group in kind.qualifiers), kind.name


def test_a_pattern_takes_the_form_of_its_subject() -> None:
    pattern = "{s} {live|lives} in {v} with {their} dog"
    assert filled(pattern, "I", "Lyon") == "I live in Lyon with my dog"
    assert filled(pattern, "Anna", "Lyon") == "Anna lives in Lyon with their dog"
    assert filled("{s's} age is {v}", "I", "40") == "my age is 40"
    assert filled("shoe size of {o}: {v}", "I", "40") == "my shoe size: 40"
    assert not fits("the boss of {o} is {v}", "I")
    assert fits("the boss of {o} is {v}", "Anna")


def test_units_and_number_words_of_one_value_are_the_same() -> None:
    assert {"14 days", "fourteen days", "two weeks", "2 weeks", "a fortnight"} == set(days(14).written)
    assert {"12 months", "one year", "a year"} <= set(months(12).written)
    assert {"48 hours", "two days"} <= set(hours(48).written)
    assert {"$1,500", "1,500 dollars", "USD 1,500"} <= set(money(1500, 0).written)
    assert {"6:30 pm", "18:30", "half past six in the evening"} <= set(clock(18 * 60 + 30).written)
    assert words(342_021) == "three hundred and forty-two thousand twenty-one"


def test_a_second_value_never_implies_the_first() -> None:
    make = maker()
    values = Values(NAMES)
    for _ in range(300):
        one = values.draw("city", make.rng)
        other = values.other("city", one, make.rng)
        assert one.broader
        assert other.key not in one.line()
        assert one.key not in other.line()


def test_an_amount_is_compared_in_one_currency_and_a_date_with_its_year() -> None:
    make = maker()
    values = Values(NAMES)
    for _ in range(200):
        price = values.draw("money", make.rng)
        assert values.other("money", price, make.rng).key[-3:] == price.key[-3:]
        date = values.draw("date", make.rng)
        assert ("(" in values.other("date", date, make.rng).key) == ("(" in date.key)


def test_different_subjects_are_never_the_same_person() -> None:
    make = maker()
    subjects = Subjects(NAMES)
    for _ in range(500):
        one = subjects.draw("person", make.rng)
        other = subjects.other("person", one, make.rng)
        assert not {form.lower() for form in one.forms} & {form.lower() for form in other.forms}
    close = {subjects.other("person", Subject(("Anna Weber",)), make.rng).forms[0] for _ in range(300)}
    assert any(name.startswith("Anna ") for name in close)
    assert any(name.endswith(" Weber") for name in close)


def of_kind(make: Maker, name: str) -> None:
    make.kinds = [kind for kind in make.kinds if kind.name == name]


def test_two_return_windows_contradict_and_two_wordings_of_one_do_not() -> None:
    make = maker()
    of_kind(make, "return_window")
    for _ in range(100):
        pair = templates.different_value(make)
        assert pair
        assert pair[2] == CONTRADICTS
        assert pair[0] != pair[1]
        same = templates.other_words(make)
        assert same is None or same[2] == ENTAILS


def test_a_pair_about_two_customers_is_neither() -> None:
    make = maker()
    of_kind(make, "plan_tier")
    for _ in range(100):
        pair = templates.different_subject(make)
        assert pair
        assert pair[2] == NEITHER
        named = [{company for company in NAMES.companies if company in text} for text in pair[:2]]
        assert len(named[0]) == len(named[1]) == 1
        assert named[0] != named[1]


def test_a_pair_under_two_qualifiers_is_neither() -> None:
    make = maker()
    of_kind(make, "support_response")
    for _ in range(100):
        pair = templates.different_qualifier(make)
        assert pair
        assert pair[2] == NEITHER
        known = [text for group in make.groups.values() for text in group] + [f"at {name}" for name in NAMES.companies]
        found = [{text for text in known if text in sentence} for sentence in pair[:2]]
        assert found[0]
        assert found[1]
        assert found[0] != found[1]


def test_two_languages_can_be_spoken_at_once_and_two_native_ones_cannot() -> None:
    kinds = {kind.name: kind for kind in templates.read_kinds()}
    assert not kinds["speaks"].single()
    assert kinds["mother_tongue"].single()
    make = maker()
    of_kind(make, "speaks")
    assert {pair[2] for pair in (templates.several_hold(make) for _ in range(50)) if pair} == {NEITHER}


def test_a_broader_place_follows_from_a_place_and_not_the_other_way_round() -> None:
    make = maker()
    of_kind(make, "born_in")
    countries = {value.broader.key for value in Values(NAMES)._lists["city"] if value.broader}
    seen: set[str] = set()
    for _ in range(100):
        pair = templates.more_specific(make)
        assert pair
        first, second, label = pair
        broad = [any(country in text for country in countries) for text in (first, second)]
        assert broad == ([False, True] if label == ENTAILS else [True, False])
        seen.add(label)
    assert seen == {ENTAILS, NEITHER}


def test_a_former_value_contradicts_what_replaced_it() -> None:
    make = maker()
    of_kind(make, "retention")
    labels = Counter(pair[2] for pair in (templates.changed(make) for _ in range(200)) if pair)
    assert labels[CONTRADICTS] > 50
    assert labels[ENTAILS] > 20


def test_the_denial_of_another_value_is_never_one_that_denies_all() -> None:
    for first, second, label in drawn(templates.denied_other, 400):
        assert label == "not_contradiction"
        assert "no children" not in first + second
        assert "not deliver within" not in first + second


def test_kinds_that_clash_are_not_taken_for_two_attributes() -> None:
    kinds = {kind.name: kind for kind in templates.read_kinds()}
    assert not kinds["diet"].apart(kinds["eats_meat"])
    assert not kinds["project_state"].apart(kinds["deadline"])
    assert not kinds["deadline"].apart(kinds["project_state"])
    assert kinds["lives_in"].apart(kinds["born_in"])
    assert not Kind("x", (), ()).apart(Kind("x", (), ()))


ROWS = [
    {"a": f"The cat number {n} sleeps.", "b": f"No cat number {n} is asleep.", "label": label, "set": name}
    for n, (label, name) in enumerate(
        [("contradiction", "snli"), ("neutral", "snli"), ("entailment", "cad_nli"), ("contradiction", "sick")] * 30
    )
]


def test_public_pairs_hold_no_row_that_is_held_back_and_no_set_that_may_not_be_trained_on() -> None:
    sets = public.EVALUATION_SETS
    rows = list(public.chosen(ROWS, sets, seed=1))
    texts = {frozenset((row["a"], row["b"])) for row in rows}
    back = [row for row in ROWS if held((row["a"], row["b"]))]
    assert 0 < len(back) < len(ROWS)
    assert not texts & {frozenset((row["a"], row["b"])) for row in back}
    assert not texts & {frozenset((row["a"], row["b"])) for row in ROWS if row["set"] == "sick"}
    kept = [row for row in ROWS if row["set"] in sets and row not in back]
    assert texts == {frozenset((row["a"], row["b"])) for row in kept}


def test_contradictions_are_given_in_both_orders_and_of_others_only_what_is_known() -> None:
    rows = list(public.chosen(ROWS, public.EVALUATION_SETS, seed=1))
    labels = {(row["a"], row["b"]): row["label"] for row in rows}
    for (a, b), label in labels.items():
        if label == "contradicts":
            assert labels[b, a] == "contradicts"
        elif (b, a) in labels:
            assert {label, labels[b, a]} in ({"entails", "not_contradiction"}, {"neither", "not_contradiction"})
    assert "not_contradiction" in labels.values()


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        ("A man plays a red guitar on the stage.", "Nobody is making music tonight.", True),
        ("Nobody is making music tonight", "a man plays a red guitar on the stage", True),
        ("A man plays a red guitar on the stages!", "Nobody is making music tonight.", True),
        ("A man plays a red guitar on the stage.", "The weather is good in the north of Spain.", False),
        ("A woman repairs the roof of a small house.", "Nobody is making music tonight.", False),
    ],
)
def test_a_pair_near_an_evaluation_pair_is_found_in_either_order(a: str, b: str, found: bool) -> None:
    pairs = [("A man plays a red guitar on the stage.", "Nobody is making music tonight.")]
    seen = Evaluation(["I moved to the coast in the spring of last year."], pairs)
    assert seen.has_pair(a, b) is found


def test_a_text_near_an_evaluation_text_is_left_out_and_counted() -> None:
    seen = Evaluation(["I moved to the coast in the spring of last year.", "ok"], [("one text", "another text")])
    rows = [
        {"text": "i moved to the coast in the spring of last year", "set": "one"},
        {"text": "I moved to the coasts in the spring of last year.", "set": "one"},
        {"text": "I moved to the mountains when I was a child.", "set": "two"},
        {"text": "another text", "set": "two"},
    ]
    dropped: Counter[str] = Counter()
    kept = list(without(rows, lambda row: seen.has_text(row["text"]), dropped))
    assert kept == rows[2:]
    assert dropped == {"one": 2}


def test_the_index_finds_what_a_comparison_with_every_text_finds() -> None:
    texts = [row["a"] for row in maker(5).pairs(400)]
    seen = Evaluation(texts[:200], [], alike=0.6)
    for text in texts[200:]:
        by_hand = any(seen._similar(runs(text), seen._runs[number]) for number in seen._texts)
        assert seen.has_text(text) is by_hand


def test_near_sentences_of_one_talk_do_not_contradict() -> None:
    texts = [
        "I bought a new bike for the summer trip.",
        "The summer trip with the bike starts in June.",
        "My sister paints houses for a living.",
        "Can you recommend a good book about history?",
    ]
    rows = talk.near_pairs(texts)
    assert {(row["a"], row["b"]) for row in rows} == {(texts[0], texts[1])}
    assert {row["label"] for row in rows} == {"not_contradiction"}


def test_pairs_of_two_talks_come_from_two_talks() -> None:
    texts = [(0, "I bought a new bike for the summer trip."), (0, "The summer trip with the new bike starts in June.")]
    texts += [(1, "We plan a summer trip by train."), (1, "My sister paints houses for a living.")]
    texts += [(2, f"{word} cats sleep under roof {word}.") for word in ("Nine", "Ten", "Forty", "Eighty")]
    group = {text: number for number, text in texts}
    rows = talk.apart_pairs(texts)
    assert rows
    assert all(group[row["a"]] != group[row["b"]] for row in rows)
    assert {row["label"] for row in rows} == {"neither"}


def test_the_file_has_the_same_bytes_for_the_same_rows(tmp_path: Path) -> None:
    rows = list(maker().pairs(50))
    data.write(tmp_path / "one.jsonl.gz", rows)
    data.write(tmp_path / "two.jsonl.gz", rows)
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()
    lines = gzip.decompress((tmp_path / "one.jsonl.gz").read_bytes()).decode().split("\n")
    assert [json.loads(line) for line in lines if line] == rows
    assert "made_denied" in data.report(rows, Counter({"snli": 3}))
