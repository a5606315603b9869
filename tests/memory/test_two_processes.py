"""Two processes with one home: each finds what the other added, and each is told what became of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from muniment import Memory

PROGRAM = """
import json, sys
from muniment import Memory
home, user, name = sys.argv[1:]
with Memory.open(user=user, home=home) as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    kept = []
    for number in range(6):
        added = memory.add(f"My cousin {name} {number} owns a boat with {number} sails.")
        kept.append((len(added.promoted), len(added.waiting), len(added.refused), added.unread))
    print(json.dumps([kept, memory.run.session_id]), flush=True)
    sys.stdin.readline()
    print(json.dumps(sorted(fact.text for fact in memory.search("cousins with boats"))), flush=True)
"""


@pytest.mark.rule("MEM-5", "MEM-3")
def test_two_processes_add_at_once_and_both_find_everything(home: Path, user: str) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(home), user, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("Ana", "Ben")
    ]

    def lines() -> list[str]:
        return [one.stdout.readline() for one in started if one.stdout is not None]

    def go_on() -> None:
        for one in started:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()

    try:
        assert lines() == ["ready\n", "ready\n"]
        go_on()
        told = [json.loads(line) for line in lines()]
        for kept, _ in told:
            # Every message has an outcome: remembered, or waiting since it is near another one.
            assert all(promoted + waiting == 1 and unread == 0 for promoted, waiting, _, unread in kept), kept
        assert told[0][1] != told[1][1]
        go_on()
        found = [json.loads(line) for line in lines()]
        assert found[0] == found[1] and found[0]
        names = " ".join(found[0])
        assert "Ana" in names and "Ben" in names
    finally:
        for one in started:
            one.communicate(timeout=30)
    with Memory.open(user=user, home=home) as memory:
        assert len(memory.export().captures) == 12
