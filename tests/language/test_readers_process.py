"""The readers' process: the same answers as in process, for its own user alone, and no wrong answer when it is gone."""

import json
import os
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from muniment.errors import InvalidInput, ReadersUnavailable
from muniment.language.readers import BrokenReaders, Readers, Weights, frames
from muniment.language.readers.frames import FrameError, encode, listening_socket, receive
from muniment.language.readers.readers import CHUNK
from muniment.language.readers.remote import RemoteReaders
from muniment.language.readers.serving import serve_readers
from tests.language.tiny_readers import write_weights

T = TypeVar("T")
WORDS = {
    "contradicts": {"berlin": 10.0, "hamburg": 9.0, "paris": 3.0, "[CLS]": -15.0},
    "entails": {"cat": 2.0, "[CLS]": -1.0},
    "attack": {"ignore": 7.3, "[CLS]": -5.1},
    "worth": {"lives": 1.7},
    "tags": {"jane": "B-PERSON", "doe": "I-PERSON", "diabetes": "HEALTH-other"},
}
TEXTS = [
    "Jane Doe lives in Berlin",
    "ignore it",
    "\ud800 Jane",
    "",
    'ünïcode 漢字 😀 "\\\n',
    *("x " * n for n in range(9)),
]
PROGRAM = """
import sys
from pathlib import Path
import anyio
from muniment.language.readers import Readers, Weights
from muniment.language.readers.frames import listening_socket
from muniment.language.readers.serving import serve_readers

async def serve(listening):
    print("ready", flush=True)
    await serve_readers(Readers(Weights.read(Path(sys.argv[1]))), listening, anyio.Event())

with listening_socket() as (listening, path):
    print(path, flush=True)
    anyio.run(serve, listening)
"""


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Weights:
    return Weights.read(write_weights(tmp_path_factory.mktemp("weights"), **WORDS))


@contextmanager
def another_process(weights: Weights) -> Generator[tuple["subprocess.Popen[str]", Path]]:
    command = [sys.executable, "-c", PROGRAM, str(weights.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().strip())
        assert process.stdout.readline() == "ready\n"
        try:
            yield process, path
        finally:
            process.kill()


@pytest.fixture(scope="module")
def path(weights: Weights) -> Iterator[Path]:
    with another_process(weights) as (_, path):
        yield path


def beside(readers: Readers | BrokenReaders | None, ask: Callable[[Path], Awaitable[T]]) -> T:
    """Ask readers that answer in the same event loop."""

    async def main() -> list[T]:
        ending, found = anyio.Event(), list[T]()
        with listening_socket() as (listening, path):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve_readers, readers, listening, ending)
                try:
                    found.append(await ask(path))
                except ReadersUnavailable as error:
                    errors.append(error)
                ending.set()
        return found

    errors: list[ReadersUnavailable] = []
    found = anyio.run(main, backend_options={"use_uvloop": True})
    if errors:
        raise errors[0]
    return found[0]


@pytest.mark.rule("CAN-15")
def test_another_process_gives_the_same_answers_as_this_one(weights: Weights, path: Path) -> None:
    own, other = Readers(weights), RemoteReaders(weights, path)
    pairs = [(one, another) for one in TEXTS for another in TEXTS] + [("the cat", "a cat"), ("in Berlin", "in Hamburg")]
    assert len(pairs) > 2 * CHUNK
    assert anyio.run(other.read_pairs, pairs) == anyio.run(own.read_pairs, pairs)
    assert anyio.run(other.read_guard, TEXTS) == anyio.run(own.read_guard, TEXTS)
    tags = anyio.run(other.read_tags, TEXTS)
    assert tags == anyio.run(own.read_tags, TEXTS)
    assert [type(one).__name__ for one in tags[0]] == ["Tag"]
    assert anyio.run(other.read_tags, []) == []
    assert other.version == own.version and other.file("guard") == own.file("guard")


def test_the_process_that_asks_loads_nothing(weights: Weights, path: Path) -> None:
    program = (
        "import sys, anyio; from pathlib import Path;"
        " from muniment.language.readers import Weights; from muniment.language.readers.remote import RemoteReaders;"
        " readers = RemoteReaders(Weights.read(Path(sys.argv[1])), Path(sys.argv[2]));"
        " print(anyio.run(readers.read_guard, ['ignore it'])[0].attack > 0.5, 'onnxruntime' in sys.modules)"
    )
    command = [sys.executable, "-c", program, str(weights.folder), str(path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True False\n"
    with pytest.raises(ReadersUnavailable, match="does not load the readers"):
        RemoteReaders(weights, path).load()


@pytest.mark.rule("CAN-15", "CAN-3")
def test_a_process_that_is_killed_while_it_reads_gives_no_answer(weights: Weights, tmp_path: Path) -> None:
    # It takes seconds: as many windows as words.
    slow = Weights.read(write_weights(tmp_path, max_tokens=4, **WORDS))
    with another_process(slow) as (process, path):
        readers = RemoteReaders(slow, path)

        async def main() -> None:
            await readers.read_guard(["a"])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_kill_once_it_reads, process)
                with pytest.raises(ReadersUnavailable, match="ended or is not there"):
                    await readers.read_guard(["word " * 40_000])

        anyio.run(main)
        process.wait()
        with pytest.raises(ReadersUnavailable, match="ended or is not there: ConnectionRefusedError"):
            anyio.run(readers.read_guard, ["a"])


async def _kill_once_it_reads(process: "subprocess.Popen[str]") -> None:
    def seconds() -> float:
        used = Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return int(used[11]) / os.sysconf("SC_CLK_TCK")

    before = seconds()
    while seconds() < before + 0.2:  # noqa: ASYNC110  another process has no event for it
        await anyio.sleep(0.01)
    process.kill()


@pytest.mark.rule("CAN-15")
def test_a_process_that_is_not_there_yet_or_of_another_version_is_sent_no_text(
    weights: Weights, tmp_path: Path
) -> None:
    with listening_socket() as (_, path), pytest.raises(ReadersUnavailable, match="did not answer in time") as raised:
        anyio.run(RemoteReaders(weights, path, taken=0.2).read_guard, ["a"])
    # A transaction would take it for a cancellation.
    assert raised.value.__context__ is None
    other = Weights.read(write_weights(tmp_path, margin=0.06))
    with pytest.raises(ReadersUnavailable, match=f"has version {other.version}, and this process {weights.version}"):
        beside(Readers(other), lambda path: RemoteReaders(weights, path).read_guard(["a"]))
    with pytest.raises(ReadersUnavailable, match="torn"):
        beside(BrokenReaders("torn"), lambda path: RemoteReaders(weights, path).read_guard(["a"]))
    with pytest.raises(ReadersUnavailable, match="not installed"):
        beside(None, lambda path: RemoteReaders(weights, path).read_guard(["a"]))


@pytest.mark.rule("CAN-15", "CAN-3")
def test_what_the_readers_cannot_say_is_an_error_for_the_caller_too(weights: Weights, tmp_path: Path) -> None:
    slow = Readers(weights, seconds=0.0)
    with pytest.raises(ReadersUnavailable, match="did not answer within 0 s"):
        beside(slow, lambda path: RemoteReaders(weights, path).read_guard(["a", "b"]))
    folder = write_weights(tmp_path)
    damaged = Weights.read(folder)
    (folder / "guard.onnx").write_bytes(b"changed")
    with pytest.raises(ReadersUnavailable, match=r"guard\.onnx does not match its hash"):
        beside(Readers(damaged), lambda path: RemoteReaders(damaged, path).read_guard(["a"]))


@pytest.mark.parametrize(
    "answer", [{"answers": []}, {"answers": None}, {}, [], 1, {"answers": [[0.1, 0.2], [0.1, 0.2]]}], ids=str
)
def test_an_answer_that_is_none_decides_nothing(weights: Weights, answer: object) -> None:
    async def main() -> None:
        with listening_socket() as (listening, path):
            listening.setblocking(False)

            async def answer_wrongly() -> None:
                await anyio.wait_readable(listening)
                connection, _ = listening.accept()
                with connection:
                    connection.setblocking(False)
                    await frames.send(connection, encode({"version": weights.version}))
                    await receive(connection)
                    await frames.send(connection, encode(answer))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer_wrongly)
                with pytest.raises(ReadersUnavailable, match="FrameError"):
                    await RemoteReaders(weights, path).read_guard(["a"])

    anyio.run(main)


# ---- the socket and its frames ----


def test_the_socket_is_in_a_private_folder_and_both_are_removed(weights: Weights) -> None:
    with listening_socket() as (_, path):
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.parent.stat().st_uid == os.geteuid()
    assert not path.parent.exists()


def test_a_folder_with_a_long_path_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with listening_socket() as (_, path):
        assert path.parents[1] == Path("/tmp")
    monkeypatch.setattr(frames, "_PATH_BYTES", 10)
    with pytest.raises(InvalidInput, match="set TMPDIR"), listening_socket():
        pass


def test_another_user_is_answered_nothing_and_sent_nothing(weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = RemoteReaders(weights, Path())
    monkeypatch.setattr("muniment.language.readers.serving.is_own_user", lambda _: False)
    with pytest.raises(ReadersUnavailable, match="ended or is not there"):
        beside(asked, lambda path: RemoteReaders(weights, path).read_guard(["a"]))
    monkeypatch.undo()
    monkeypatch.setattr("muniment.language.readers.remote.is_own_user", lambda _: False)
    with pytest.raises(ReadersUnavailable, match="another user"):
        beside(asked, lambda path: RemoteReaders(weights, path).read_guard(["a"]))


def test_the_user_is_the_one_that_the_system_names(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = socket.socketpair()
    with one, other:
        assert frames.is_own_user(one)
        monkeypatch.setattr(os, "geteuid", partial(int, os.geteuid() + 1))
        assert not frames.is_own_user(one)


def _frame(message: object) -> bytes:
    content = json.dumps(message).encode()
    return struct.pack(">I", len(content)) + content


WRONG_REQUESTS = {
    "too long": struct.pack(">I", frames.MOST_BYTES + 1),
    "no JSON": struct.pack(">I", 3) + b"abc",
    "nested without end": struct.pack(">I", 100_000) + b"[" * 100_000,
    "no object": _frame([]),
    "no reader": _frame({"reader": "writer", "items": ["a"]}),
    "no items": _frame({"reader": "guard", "items": []}),
    "no texts": _frame({"reader": "guard", "items": [1]}),
    "too many": _frame({"reader": "guard", "items": ["a"] * (CHUNK + 1)}),
    "no pair": _frame({"reader": "pairs", "items": [["a", "b", "c"]]}),
    "no pair but text": _frame({"reader": "pairs", "items": ["ab"]}),
    "half": struct.pack(">I", 100) + b"{",
}


@pytest.mark.parametrize("request_bytes", WRONG_REQUESTS.values(), ids=WRONG_REQUESTS)
def test_what_no_process_of_ours_asks_is_not_answered_and_the_next_call_is(
    weights: Weights, path: Path, request_bytes: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(str(path))
        connection.sendall(request_bytes)
        connection.shutdown(socket.SHUT_WR)
        (length,) = struct.unpack(">I", connection.recv(4, socket.MSG_WAITALL))
        assert json.loads(connection.recv(length, socket.MSG_WAITALL)) == {"version": weights.version}
        assert connection.recv(1) == b""
    assert len(anyio.run(RemoteReaders(weights, path).read_guard, ["a"])) == 1


def test_a_message_that_is_too_long_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MOST_BYTES", 100)
    assert encode({"items": ["a" * 80]})
    with pytest.raises(FrameError, match="at most 100 bytes"):
        encode({"items": ["a" * 100]})


def test_at_the_end_the_calls_in_progress_are_answered_and_those_that_wait_are_left_to_the_next_process(
    weights: Weights, tmp_path: Path
) -> None:
    slow = Weights.read(write_weights(tmp_path, max_tokens=4, **WORDS))

    async def main() -> None:
        with listening_socket() as (listening, path):
            readers = RemoteReaders(slow, path)
            answers: list[Any] = []

            async def read(text: str) -> None:
                answers.append(await readers.read_guard([text]))

            async with anyio.create_task_group() as tasks:
                ending, taken = anyio.Event(), Readers(slow)
                reading = anyio.Event()
                read_guard = taken.read_guard

                async def noted(texts: Any) -> Any:
                    reading.set()
                    return await read_guard(texts)

                taken.read_guard = noted  # type: ignore[method-assign]
                tasks.start_soon(read, "word " * 1_000)
                async with anyio.create_task_group() as first:
                    first.start_soon(serve_readers, taken, listening, ending)
                    await reading.wait()
                    ending.set()
                assert len(answers) <= 1
                tasks.start_soon(read, "ignore")
                await anyio.sleep(0.1)
                ended = anyio.Event()
                async with anyio.create_task_group() as second:
                    second.start_soon(serve_readers, Readers(slow), listening, ended)
                    while len(answers) < 2:  # noqa: ASYNC110
                        await anyio.sleep(0.01)
                    ended.set()

    anyio.run(main)


# ---- content is kept out of files ----


@pytest.mark.rule("ERA-1")
def test_no_core_dump_is_made_of_the_process() -> None:
    program = (
        "import ctypes, resource; from muniment.http.readers_process import refuse_core_dumps;"
        " refuse_core_dumps();"
        " print(resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "(0, 0) 0\n"
