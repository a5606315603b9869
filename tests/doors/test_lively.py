"""The lively tenant that `make run` shows: told once, with something of everything, and a key for each role."""

from pathlib import Path

import pytest

from muniment import Fabric
from muniment.cli import lively
from muniment.cli.lively import telling
from muniment.cli.lively.shop import ANTON, BORIS, PETRA, bot


def test_a_server_with_a_demo_has_a_story_told_once_and_fresh_keys(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "DAYS", 6)
    with Fabric.open(home=home) as fabric:
        assert not lively.is_told(fabric)
        lively.tell(home, None, lambda _words, _day: None)
        assert lively.is_told(fabric)
        queue = fabric.queue.list(BORIS, limit=100)
        assert len(queue) >= 15
        assert {"preference", "statement", "correction"} <= {one.write_class for one in queue}
        assert any("low_trust" in one.human_reasons for one in queue)
        assert fabric.contradictions.list(BORIS)
        assert {one.state for one in fabric.consent.list(PETRA)} >= {"active", "revoked"}
        assert fabric.recall(bot(6, "cus_1001")).all_records
        assert fabric.verify(ANTON).ok
        first, again = lively.keys_of(fabric), lively.keys_of(fabric)
        assert [who.id for who, _, _ in again] == ["boris", "clara", "petra", "anton", "ada", "olga", "support_bot"]
        assert {token for _, _, token in first}.isdisjoint(token for _, _, token in again)
        usable = [one for one in fabric.keys.list(lively.KEYS[4][0], limit=100) if one.state == "active"]
        assert len(usable) == len(again)
