"""Memory for content: kept out of core dumps, of swap and of forked processes, and overwritten before it is freed."""

import re
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from muniment.database.content_memory import content_array, content_rows
from muniment.recall.scope_block import Block, join_blocks, read_block
from tests.recall.blocks import sent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have other marks")


def marks(array: np.ndarray[Any, Any]) -> set[str]:
    """How the kernel has marked the memory of an array."""
    address = array.__array_interface__["data"][0]
    here = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if (found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)) is not None:
            here = int(found[1], 16) <= address < int(found[2], 16)
        elif here and line.startswith("VmFlags:"):
            return set(line.split()[1:])
    raise AssertionError("the array is in no mapping")


def pages(array: Any) -> Any:
    """What owns the memory of an array."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.base.obj


@pytest.mark.rule("ERA-1")
def test_content_is_in_no_core_dump_and_in_no_forked_process() -> None:
    assert {"dd", "wf"} <= marks(content_array((10, 256), np.float16))


@pytest.mark.rule("ERA-1")
def test_content_is_locked_against_swapping_where_the_limit_allows() -> None:
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    small = content_array((8,), np.int64)
    assert ("lo" in marks(small)) == (limit == resource.RLIM_INFINITY or limit >= 1 << 16)
    soft, hard = limit, resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, hard))
    try:
        assert not content_array((8,), np.int64).any(), "beyond the limit it is used all the same"
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (soft, hard))


@pytest.mark.rule("ERA-1")
def test_content_is_overwritten_before_its_memory_is_freed() -> None:
    array = content_array((1000,), np.int64)
    array[:] = 7
    pages(array).__del__()
    assert not array.any()


@pytest.mark.rule("ERA-1")
def test_vectors_and_words_of_a_block_are_in_memory_for_content_also_after_changes() -> None:
    block = read_block(sent(["mem_1", "mem_2", "mem_3"]), 4)
    joined = join_blocks([block, read_block(sent(["mem_4"]), 4)])
    joined.remove(["mem_2"])
    for one in (block, joined):
        _assert_content(one)
    found = joined.words.find([20, 40])
    assert (found.terms.tolist(), found.places.tolist()) == ([1], [3])


def _assert_content(block: Block) -> None:
    assert "dd" in marks(block.vectors)
    assert "dd" in marks(block.words.terms)


def test_rows_are_copied_in_the_order_asked_for() -> None:
    array = np.arange(12, dtype=np.float16).reshape(4, 3)
    assert content_rows(array, np.array([2, 0])).tolist() == [[6, 7, 8], [0, 1, 2]]
    assert content_rows(array, np.array([], dtype=np.intp)).shape == (0, 3)
