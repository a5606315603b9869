"""Which reads a standby may answer: written by hand, so that none is added by a slip (SCL-4, TIR-5)."""

import inspect
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.context import FabricContext
from muniment.database.replica import SEALED_COLUMNS
from muniment.model.context import Principal
from muniment.standby_reads import reading
from muniment.verbs.declaration import verb
from muniment.verbs.registry import verbs
from tests.faults.replicas import READS
from tests.security.catalogue import NOT_CONTENT, Connection, content_columns

# Each needs nothing sealed from the standby: numbers, ids and digests. Of `metrics` and `verify`, what opens content or
# takes a key reads the primary. Whatever else is added here must be shown to open nothing, in tests/faults/test_replica.py.
ON_STANDBY = {"metrics", "events", "verify", "recalls.list", "archives", "refusals.list", "refusals.counts"}
# Keyed hashes: from none of them can anything be read, and no key is wrapped in one.
HASHES = {
    *(("api_keys", "digest"), ("idempotency_keys", "digest")),
    *(("candidates", "fingerprint"), ("requests", "fingerprint"), ("requests", "key")),
}
SOURCE = Path(muniment.__file__).parent


@pytest.mark.rule("SCL-4", "TIR-5")
def test_only_these_verbs_read_a_standby_and_each_is_tried_on_one() -> None:
    assert {name for name, one in verbs().items() if one.standby} == ON_STANDBY == READS.keys()


@pytest.mark.rule("SCL-4", "TIR-5")
def test_recall_and_everything_that_a_run_asks_or_that_writes_cannot_be_declared_for_a_standby() -> None:
    for name in ("recall", "compile", "get", "explain", "replay", "memories.list", "captures.get", "me.list", "export"):
        assert not verbs()[name].standby, name

    async def handler(context: FabricContext, reader: Principal) -> None: ...

    async def of_run(context: FabricContext, run: muniment.RunContext) -> None: ...

    with pytest.raises(ValueError, match="a standby answers neither"):
        verb("of_run", right="recall", effect="read", http=None, standby=True)(of_run)
    with pytest.raises(ValueError, match="a standby answers neither"):
        verb("writing", right="audit", effect="write", http=None, standby=True)(handler)
    assert not {"of_run", "writing"} & verbs().keys()


@pytest.mark.rule("SCL-4")
def test_there_is_one_way_to_a_standby_and_only_the_verbs_declared_for_it_take_it() -> None:
    opens = [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if "on_standby(" in path.read_text()]
    assert sorted(opens) == ["database/storage.py", "standby_reads.py", "verbs/declaration.py"]
    assert {name for name, one in verbs().items() if _reads_where_it_may(one.handler)} == ON_STANDBY


def _reads_where_it_may(handler: Any) -> bool:
    """Whether it opens its transactions with `standby_reads.reading`."""
    own = inspect.unwrap(handler)
    return own.__globals__.get("reading") is reading and "reading" in own.__code__.co_names


@pytest.mark.rule("SCL-4", "TIR-5")
def test_every_column_with_content_or_a_key_is_refused_on_a_standby_by_its_name(owner: Connection) -> None:
    columns = content_columns(owner)
    assert {name for _, name in columns - NOT_CONTENT.keys() - HASHES} == SEALED_COLUMNS
    assert columns >= HASHES, "an exception for a column that is no more"
