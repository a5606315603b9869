"""Public rows become training rows: never a row that is held back, never talk that may hold personal data."""

import gzip
import json
import os
import subprocess
import sys
from datetime import date, datetime, timedelta, tzinfo
from importlib import import_module
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from training.inputs import held
from training.tagger.data import write
from training.tagger.public import marked_sentences, plain_talk, refilled, turns
from training.tagger.rows import Mark, Marked, Row
from training.tagger.values import Values

from tests.training.tagger.made_up_pools import small_pools


def _record(text: str, *spans: tuple[str, str]) -> dict[str, Any]:
    found = [
        {"start": text.index(value), "end": text.index(value) + len(value), "type": kind, "value": value}
        for value, kind in spans
    ]
    return {"text": text, "spans": found, "set": "made_up"}


def _texts(wanted: bool, count: int) -> list[str]:
    return [text for text in (f"I am Ann Lee, number {n}" for n in range(200)) if held([text]) is wanted][:count]


def test_no_row_that_is_held_back_is_used() -> None:
    kept, left_out = _texts(False, 20), _texts(True, 20)
    rows = list(marked_sentences([_record(text, ("Ann Lee", "PERSON")) for text in (*left_out, *kept)]))
    assert [row.marked.text for row in rows] == kept
    made = list(refilled(rows, Values(small_pools(), Random(1)), Random(1), 2))
    assert len(made) == 40
    assert not {row.marked.text for row in (*rows, *made)} & set(left_out)


def test_types_of_the_data_become_labels_and_what_it_leaves_unmarked_is_not_known() -> None:
    text = next(text for text in (f"Mr. Lee, {n}, 10115, 105-41-0502, a.de" for n in range(99)) if not held([text]))
    record = _record(text, ("Mr.", "TITLE"), ("10115", "ZIP_CODE"), ("105-41-0502", "SSN"), ("a.de", "DOMAIN_NAME"))
    (row,) = marked_sentences([record])
    assert [mark.label for mark in row.marked.spans] == ["ADDRESS", "ID", "ONLINE"]
    assert "PERSON" in row.known
    assert not {"ORGANIZATION", "ACCOUNT", "DATE_OF_BIRTH", "HEALTH"} & set(row.known)


def test_other_values_stand_where_the_old_ones_stood() -> None:
    row = Row(Marked("ann lives at 1 a road, ok", (Mark(0, 3, "PERSON"), Mark(13, 21, "ADDRESS"))), "made_up")
    for made in refilled([row], Values(small_pools(), Random(2)), Random(2), 30):
        name, street = made.marked.spans
        text = made.marked.text
        assert text == f"{text[: name.end]} lives at {text[street.start : street.end]}, ok"
        assert text == text.lower() or "İ" in text
        assert made.set == "made_up_refilled"


@pytest.mark.parametrize(
    "sentence",
    [
        "Ann told me that it would rain again.",
        "it is all about what Ann said to me.",
        "it would take me all of 7 days.",
        "it is what the doctor told me.",
        "it is all on a@b.de for me.",
    ],
)
def test_talk_that_may_hold_personal_data_is_left_out(sentence: str) -> None:
    usual = ["so it is that it would rain, it is all fine with me", "what it is I'm not sure but I think it is fine"]
    rows = plain_talk([*usual, "It is what it is and that is all.", sentence], Random(1), 10)
    assert "It is what it is and that is all." in {row.marked.text for row in rows}
    assert sentence not in {row.marked.text for row in rows}
    assert not any(row.marked.spans or row.marked.special for row in rows)


def test_talk_that_is_held_back_is_not_read() -> None:
    names = [f"q{n}" for n in range(30)]
    questions = [
        {"question_id": name, "haystack_sessions": [[{"role": "user", "content": f"from {name}"}]]} for name in names
    ]
    episodes = [{"episode_id": name, "turns": [{"text": f"said in {name}"}]} for name in names]
    free = [name for name in names if not held([name])]
    assert 0 < len(free) < 30
    assert list(turns(questions, episodes)) == [f"from {n}" for n in free] + [f"said in {n}" for n in free]


def test_the_file_is_the_same_every_time_and_counts_its_labels(tmp_path: Path) -> None:
    rows = [Row(Marked("Ann is ill", (Mark(0, 3, "PERSON"),), (Mark(7, 10, "HEALTH", "other"),)), "made_up")] * 2
    counts = write(rows, tmp_path / "one.gz")
    write(rows, tmp_path / "two.gz")
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()
    assert counts == {"set made_up": 2, "PERSON": 2, "HEALTH": 2}
    first = json.loads(gzip.decompress((tmp_path / "one.gz").read_bytes()).splitlines()[0])
    assert first["spans"] == [[0, 3, "PERSON"]]
    assert (first["special"], first["about"]) == ([[7, 10, "HEALTH"]], ["other"])


def test_pools_of_faker_are_seeded_and_hold_what_the_values_need() -> None:
    pytest.importorskip("faker")
    from training.tagger.pools import faker_pools

    pools = faker_pools(1, size=3)
    assert pools == faker_pools(1, size=3)
    assert pools != faker_pools(2, size=3)
    assert pools.regions[0].locale == "en_US"
    for region in pools.regions:
        assert region.first and region.last and region.companies and region.phones and region.ibans
        assert not region.has_addresses or (region.houses and region.postcodes and region.cities)


def test_pools_of_faker_do_not_depend_on_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faker")
    from training.tagger.pools import _OWN_IDS, faker_pools

    class NoClock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "NoClock":
            raise AssertionError("asked for the time")

    class NoDay(date):
        @classmethod
        def today(cls) -> "NoDay":
            raise AssertionError("asked for the day")

    monkeypatch.setattr("faker.providers.date_time.datetime", NoClock)
    for locale in sorted(_OWN_IDS - {"fr_CA"}):
        module = import_module(f"faker.providers.ssn.{locale}")
        if getattr(module, "datetime", None) is import_module("datetime"):
            monkeypatch.setattr(module, "datetime", SimpleNamespace(datetime=NoClock, date=NoDay, timedelta=timedelta))
    assert faker_pools(1, size=3).regions


def test_pools_of_faker_do_not_depend_on_the_order_of_sets() -> None:
    pytest.importorskip("faker")
    program = "from training.tagger.pools import faker_pools; print(faker_pools(1, size=30))"
    printed = [
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
