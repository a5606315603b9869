"""The embedded server: where it runs, who stops it, and what is left after a kill."""

import os
import pwd
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from muniment.database import embedded, unprivileged
from muniment.errors import StorageUnavailable
from tests.faults.servers import (
    AS_ROOT,
    CLIENT,
    client,
    conninfo_of,
    copy,
    environment,
    eventually,
    leave,
    modes_above,
    open_files,
    paused_checkpointer,
    postmaster,
    value,
)


def test_a_server_starts_in_a_missing_folder_and_goes_with_its_last_lease(new_home: Path) -> None:
    above = modes_above(new_home)
    assert above[new_home.parent] == 0o700
    lease = embedded.acquire(new_home)
    assert lease.home == lease.socket_dir == new_home
    assert stat.S_IMODE(new_home.stat().st_mode) == 0o700
    assert value(lease.conninfo, "SELECT current_setting('server_version_num')::int / 10000") == 18
    assert value(lease.conninfo, "SHOW server_encoding") == "UTF8"
    assert value(lease.conninfo, "SELECT datcollate FROM pg_database WHERE datname = current_database()") == "C"
    assert value(lease.conninfo, "SHOW listen_addresses") == ""
    assert embedded.is_running(new_home)
    pid = postmaster(new_home)
    assert os.getsid(pid) != os.getsid(0)  # Ctrl-C in our terminal does not reach it

    lease.release()
    lease.release()
    assert not embedded.is_running(new_home)
    assert not Path(f"/proc/{pid}").exists()
    assert modes_above(new_home) == above  # nothing was opened for it


def test_a_server_that_starts_while_a_block_runs_goes_on_with_the_lease_of_the_block(new_home: Path) -> None:
    with embedded.starting(new_home):
        eventually(lambda: embedded.is_running(new_home))
        lease = embedded.acquire(new_home)
        pid = postmaster(new_home)
    assert postmaster(new_home) == pid
    lease.release()
    assert not embedded.is_running(new_home)


def test_a_server_that_starts_while_a_block_fails_is_stopped_again(new_home: Path) -> None:
    with pytest.raises(KeyError), embedded.starting(new_home):
        raise KeyError("not found")
    assert not embedded.is_running(new_home)


def test_a_server_that_cannot_start_while_a_block_runs_is_reported_by_the_lease_of_the_block(new_home: Path) -> None:
    new_home.write_text("no folder")
    with pytest.raises(StorageUnavailable, match="cannot keep a database"), embedded.starting(new_home):
        embedded.acquire(new_home)


def test_processes_share_one_server_which_outlives_the_one_that_started_it(home: Path) -> None:
    first = client(home)
    conninfo_of(first)
    pid = postmaster(home)
    second = client(home)
    conninfo = conninfo_of(second)

    leave(first)
    assert value(conninfo, "SELECT 1") == 1
    assert postmaster(home) == pid
    leave(second)
    assert not embedded.is_running(home)


def test_many_processes_that_meet_in_an_empty_folder_start_one_server(new_home: Path) -> None:
    clients = [client(new_home) for _ in range(3)]
    started = {value(conninfo_of(each), "SELECT pg_postmaster_start_time()") for each in clients}
    assert len(started) == 1
    for each in clients:
        assert embedded.is_running(new_home)
        leave(each)
    assert not embedded.is_running(new_home)


def test_who_comes_while_the_last_one_stops_the_server_gets_a_running_one(home: Path) -> None:
    last = embedded.acquire(home)
    pid = postmaster(home)
    log = (home / "server.log").read_text()
    leaving = threading.Thread(target=last.release)
    with paused_checkpointer(home):  # the shutdown cannot end
        leaving.start()
        eventually(lambda: "received fast shutdown request" in (home / "server.log").read_text()[len(log) :])
        comer = client(home)
        eventually(lambda: home / "lease.lock" in open_files(comer.pid))
        assert leaving.is_alive()
    assert value(conninfo_of(comer), "SELECT 1") == 1
    assert postmaster(home) != pid
    leaving.join()
    leave(comer)


def test_a_process_that_forgets_its_lease_leaves_no_server(home: Path) -> None:
    forgetful = CLIENT.replace("with embedded", "lease = embedded").replace(" as lease:", "").replace("\n    ", "\n")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", forgetful, str(home)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "host=" in done.stdout
    assert not embedded.is_running(home)


def test_a_forked_child_does_not_give_back_the_lease_of_its_parent(home: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from muniment.database import embedded
lease = embedded.acquire(Path(sys.argv[1]))
if os.fork() == 0:
    sys.exit()
os.wait()
print(embedded.is_running(lease.home))
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(home)],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_server_told_to_stay_runs_without_leases_until_it_is_stopped(home: Path) -> None:
    embedded.keep_running(home)
    pid = postmaster(home)
    with embedded.acquire(home):
        assert postmaster(home) == pid
    assert embedded.is_running(home)

    assert embedded.stop(home)
    assert not embedded.is_running(home)
    embedded.acquire(home).release()
    assert not embedded.is_running(home)  # the wish to stay was forgotten with the stop
    assert not embedded.stop(home)


def test_asking_about_a_folder_that_is_no_home_changes_nothing(place: Path) -> None:
    assert not embedded.is_running(place)
    assert not embedded.stop(place)
    assert not embedded.is_running(place / "missing")
    assert list(place.iterdir()) == []


# ---- where it can live ----


@pytest.mark.parametrize("name", ["mit Leerzeichen, $HOME", "'Anführung\" ÄÖÜ \\"])
def test_a_home_may_have_any_name(place: Path, name: str) -> None:
    with embedded.acquire(place / name) as lease:
        assert value(lease.conninfo, "SHOW data_directory") == str(place / name / "data")
        assert stat.S_IMODE(lease.socket_dir.stat().st_mode) == 0o700
    if lease.socket_dir != lease.home:
        lease.socket_dir.rmdir()


def test_a_home_is_found_through_a_link(place: Path, home: Path) -> None:
    (place / "link").symlink_to(home.parent)
    with embedded.acquire(home) as lease, embedded.acquire(place / "link" / home.name) as other:
        assert (lease.home, lease.conninfo) == (other.home, other.conninfo)


def test_a_path_too_long_for_a_socket_gets_a_private_socket_folder(
    place: Path, initialised: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = copy(initialised, place / ("long" * 30))
    runtime = place / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    with embedded.acquire(home) as lease:
        assert lease.socket_dir.parent == runtime
        assert stat.S_IMODE(lease.socket_dir.stat().st_mode) == 0o700
        assert value(lease.conninfo, "SELECT 1") == 1
        # another process finds the socket, whatever its own environment says
        monkeypatch.delenv("XDG_RUNTIME_DIR")
        with embedded.acquire(home) as other:
            assert other.socket_dir == lease.socket_dir

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    lease.socket_dir.chmod(0o755)
    with pytest.raises(StorageUnavailable, match=str(lease.socket_dir)):
        embedded.acquire(home)
    lease.socket_dir.rmdir()
    (runtime / "elsewhere").mkdir(mode=0o700)
    lease.socket_dir.symlink_to(runtime / "elsewhere")
    with pytest.raises(StorageUnavailable, match=str(lease.socket_dir)):
        embedded.acquire(home)


def test_variables_meant_for_another_server_do_not_matter(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = {"PGHOSTADDR": "127.0.0.1", "PGPORT": "1", "PGOPTIONS": "-c nonsense=1", "PGDATA": "/nowhere"}
    for name, setting in (others | {"PGGSSENCMODE": "require", "PGCHANNELBINDING": "require"}).items():
        monkeypatch.setenv(name, setting)
    with embedded.acquire(home) as lease:
        assert value(lease.conninfo, "SELECT 1") == 1


# ---- ordinary users and root ----

IMPORTS = """
import ctypes, sys
from pathlib import Path
from muniment.errors import StorageUnavailable
from muniment.database import embedded, unprivileged
"""

# what the launcher lets a child keep in order to read the interpreter, it lays down before it begins
LAY_DOWN = """
kept = (unprivileged._Sets * 2)(unprivileged._Sets(0, 2, 2))
ctypes.CDLL(None).capset(ctypes.byref(unprivileged._Header(0x20080522, 0)), ctypes.byref(kept))
"""


def run_as_nobody(program: str, *arguments: Path) -> str:
    """Run a program as an ordinary user, from root, though that user may not even reach the interpreter."""
    account = pwd.getpwnam("nobody")
    launcher = [
        sys.executable,
        "-I",
        "-S",
        unprivileged.__file__,
        str(account.pw_uid),
        str(account.pw_gid),
        "--",
    ]
    done = subprocess.run(
        [
            *launcher,
            sys.executable,
            "-B",
            "-W",
            "error",
            "-c",
            IMPORTS + LAY_DOWN + program,
            *map(str, arguments),
        ],
        capture_output=True,
        text=True,
        cwd="/",
        env=environment(),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def place_of_nobody(place: Path) -> Path:
    if not AS_ROOT or sys.platform != "linux":
        pytest.skip("takes root on Linux to run as two users; the other tests run as an ordinary one")
    place.chmod(0o755)
    folder = place / "nobody"
    folder.mkdir(mode=0o700)
    os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
    return folder


def test_an_ordinary_user_runs_the_server_under_its_own_name(place_of_nobody: Path) -> None:
    before = modes_above(place_of_nobody / "home")
    program = """
with embedded.acquire(Path(sys.argv[1])) as lease:
    print(Path(lease.home, "data", "postmaster.pid").stat().st_uid, embedded.is_running(lease.home))
print(embedded.is_running(lease.home))
"""
    result = run_as_nobody(program, place_of_nobody / "home")
    assert result.split() == [str(pwd.getpwnam("nobody").pw_uid), "True", "False"]
    assert modes_above(place_of_nobody / "home") == before


def test_a_home_of_another_user_is_refused_by_name(place: Path, place_of_nobody: Path) -> None:
    (place / "of-root").mkdir(mode=0o700)
    program = """
for path in sys.argv[1:]:
    try:
        embedded.acquire(Path(path))
    except StorageUnavailable as error:
        print(error)
"""
    result = run_as_nobody(program, place / "of-root", place / "of-root" / "below", place / "new").splitlines()
    assert result == [
        f"the folder {place}/of-root belongs to user root: run as that user, or choose a folder of nobody",
        f"cannot keep a database in {place}/of-root/below: permission denied",
        f"cannot keep a database in {place}/new: permission denied",
    ]
    with pytest.raises(StorageUnavailable, match="belongs to user nobody"):
        embedded.acquire(place_of_nobody)


@pytest.mark.skipif(not AS_ROOT or sys.platform != "linux", reason="about root on Linux")
def test_root_runs_the_server_as_an_ordinary_user_with_one_capability(home: Path) -> None:
    with embedded.acquire(home):
        status = Path(f"/proc/{postmaster(home)}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines())
        owner = (home / "data").stat().st_uid
        assert owner != 0
        assert fields["Uid"].split() == [str(owner)] * 4
        assert fields["Groups"].strip() == ""
        assert {int(fields[name], 16) for name in ("CapEff", "CapPrm", "CapAmb")} == {0b10}
        assert fields["NoNewPrivs"] == "1"
    os.chown(home / "data", 0, 0)
    try:
        with pytest.raises(StorageUnavailable, match="belongs to root"):
            embedded.acquire(home)
    finally:
        os.chown(home / "data", owner, -1)


@pytest.mark.skipif(not AS_ROOT or sys.platform != "linux", reason="about root on Linux")
def test_root_without_that_capability_is_told_to_be_an_ordinary_user(new_home: Path) -> None:
    program = """
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)
try:
    embedded.acquire(Path(sys.argv[1]))
except StorageUnavailable as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS + program, str(new_home)],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    assert "run Muniment as an ordinary user" in done.stdout


# ---- what cannot be used ----
