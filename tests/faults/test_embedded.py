"""The embedded server: where it runs, who stops it, and what is left after a kill."""

import contextlib
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import psycopg
import pytest

import muniment.errors
from muniment.errors import StorageUnavailable
from muniment.storage import embedded, unprivileged

SOURCE = Path(muniment.errors.__file__).parent.parent
AS_ROOT = os.geteuid() == 0

# leases, says where, and gives back at the end of its input
CLIENT = """
import sys
from pathlib import Path
from muniment.storage import embedded
with embedded.acquire(Path(sys.argv[1])) as lease:
    print(lease.conninfo, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a short path, unlike tmp_path, so that sockets fit in; servers below it are ended."""
    folder = Path(tempfile.mkdtemp(prefix="mun-")).resolve()
    yield folder
    for lock in folder.rglob("server.lock"):
        embedded.stop(lock.parent)
    shutil.rmtree(folder)


@pytest.fixture
def new_home(place: Path) -> Path:
    return place / "home"


@pytest.fixture(scope="module")
def initialised() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mun-") as folder:
        with embedded.acquire(Path(folder, "home")) as lease:
            pass
        yield lease.home


@pytest.fixture
def home(initialised: Path) -> Iterator[Path]:
    """A home that was started before; the tests share it, for making one is what takes most of their time."""
    yield initialised
    embedded.stop(initialised)


def environment() -> dict[str, str]:
    paths = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def client(home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CLIENT, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def conninfo_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        pytest.fail(process.communicate()[1])
    return line


def leave(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def eventually(condition: Callable[[], object], seconds: float = 20.0) -> None:
    give_up_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up_at, "it never came"
        time.sleep(0.005)


def copy(home: Path, target: Path) -> Path:
    subprocess.run(["cp", "-pR", home, target], check=True)
    return target


def value(conninfo: str, query: str) -> object:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
        return row[0] if row else None


def change(conninfo: str, query: str) -> None:
    with psycopg.connect(conninfo) as connection:
        connection.execute(query.encode())


def postmaster(home: Path) -> int:
    return int((home / "data" / "postmaster.pid").read_text().split("\n")[0])


def family(parent: int) -> dict[int, str]:
    """The server's processes by pid, itself first, each with its command line."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    found = {int(pid): args for pid, ppid, args in rows if parent in (int(pid), int(ppid))}
    return {parent: found[parent]} | found


def modes_above(folder: Path) -> dict[Path, int]:
    return {above: stat.S_IMODE(above.stat().st_mode) for above in folder.parents}


# ---- starting and stopping ----


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
    clients = [client(new_home) for _ in range(4)]
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


@contextlib.contextmanager
def paused_checkpointer(home: Path) -> Generator[None]:
    pid = next(pid for pid, args in family(postmaster(home)).items() if "checkpointer" in args)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def open_files(pid: int) -> list[Path]:
    if sys.platform != "linux":
        pytest.skip("needs /proc")
    with contextlib.suppress(FileNotFoundError):
        return [entry.readlink() for entry in Path(f"/proc/{pid}/fd").iterdir()]
    return []


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
from muniment.storage import embedded
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
from muniment.storage import embedded, unprivileged
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
    told = run_as_nobody(program, place_of_nobody / "home")
    assert told.split() == [str(pwd.getpwnam("nobody").pw_uid), "True", "False"]
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
    told = run_as_nobody(program, place / "of-root", place / "of-root" / "below", place / "new").splitlines()
    assert told == [
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


def test_a_path_that_cannot_be_a_home_is_named_in_the_error(place: Path) -> None:
    (place / "file").write_text("")
    for path in (place / "file", place / "file" / "below"):
        with pytest.raises(StorageUnavailable, match=f"cannot keep a database in {path}: "):
            embedded.acquire(path)
    (place / "open").mkdir()
    (place / "open").chmod(0o755)
    (place / "open" / "something").touch()
    with pytest.raises(StorageUnavailable, match=f"{place}/open is open to others: mode 755, expected 700"):
        embedded.acquire(place / "open")
    if not AS_ROOT:
        (place / "read-only").mkdir(mode=0o500)
        with pytest.raises(StorageUnavailable, match=f"{place}/read-only: permission denied"):
            embedded.acquire(place / "read-only")


def test_data_of_another_version_is_refused(new_home: Path) -> None:
    (new_home / "data").mkdir(parents=True)
    new_home.chmod(0o700)
    (new_home / "data" / "PG_VERSION").write_text("17\n")
    with pytest.raises(StorageUnavailable, match="version 17, expected 18"):
        embedded.acquire(new_home)
    (new_home / "data" / "PG_VERSION").rename(new_home / "data" / "letters")
    with pytest.raises(StorageUnavailable, match="version unknown, expected 18"):
        embedded.acquire(new_home)
    assert (new_home / "data" / "letters").exists()


def test_a_server_that_cannot_start_says_why(home: Path) -> None:
    settings = home / "data" / "postgresql.auto.conf"
    before = settings.read_text()
    settings.write_text("shared_buffers = plenty\n")
    with pytest.raises(StorageUnavailable, match=r"did not start in .*shared_buffers"):
        embedded.acquire(home)
    settings.write_text(before)
    embedded.acquire(home).release()


# ---- kill ----


def test_what_was_committed_is_there_after_everything_was_killed(home: Path) -> None:
    killed = client(home)
    conninfo = conninfo_of(killed)
    change(conninfo, "CREATE TABLE kept AS SELECT 42 AS answer")
    kill(killed)
    for pid in family(postmaster(home)):
        os.kill(pid, signal.SIGKILL)
    with embedded.acquire(home) as lease:
        assert value(lease.conninfo, "SELECT answer FROM kept") == 42


def test_a_server_whose_client_was_killed_is_used_again_and_stopped_by_the_next(home: Path) -> None:
    killed = client(home)
    conninfo_of(killed)
    pid = postmaster(home)
    kill(killed)
    with embedded.acquire(home):
        assert postmaster(home) == pid
    assert not embedded.is_running(home)


def test_a_killed_postmaster_is_replaced_once_its_orphans_are_gone(home: Path) -> None:
    with embedded.acquire(home) as first:
        change(first.conninfo, "CREATE TABLE survivor ()")
        old = family(postmaster(home))
        with paused_checkpointer(home):  # an orphan that does not notice yet
            os.kill(postmaster(home), signal.SIGKILL)
            comer = client(home)
            eventually(lambda: home / "start.lock" in open_files(comer.pid))
            assert not embedded.is_running(home)
        conninfo = conninfo_of(comer)
        assert value(conninfo, "SELECT to_regclass('survivor')::text") == "survivor"
        assert postmaster(home) not in old
        leave(comer)


def test_a_stale_pid_file_is_seen_through_though_the_pid_is_a_live_server(place: Path, home: Path) -> None:
    killed = copy(home, place / "killed")
    with embedded.acquire(home) as other:
        # the pid of the killed server is by now that of another one, which runs as the same user
        shutil.copy(home / "data" / "postmaster.pid", killed / "data")
        shutil.copy(home / ".s.PGSQL.5432.lock", killed)
        assert not embedded.is_running(killed)
        with embedded.acquire(killed) as lease:
            assert value(lease.conninfo, "SHOW data_directory") == str(killed / "data")
        assert value(other.conninfo, "SHOW data_directory") == str(home / "data")


def test_a_server_that_somebody_else_started_on_the_data_is_not_disturbed(home: Path) -> None:
    with embedded.acquire(home):
        # as if started by hand: it runs, but does not hold our lock
        (home / "server.lock").rename(home / "server.lock.aside")
        with pytest.raises(StorageUnavailable, match=f"in use by a server that others started, pid {postmaster(home)}"):
            embedded.acquire(home)
        (home / "server.lock.aside").rename(home / "server.lock")
        assert embedded.is_running(home)


def test_a_kill_in_the_middle_of_the_first_start_does_not_block_the_next(new_home: Path) -> None:
    killed = client(new_home)
    eventually((new_home / "data.new" / "PG_VERSION").exists)
    kill(killed)
    assert not (new_home / "data").exists()
    with embedded.acquire(new_home) as lease:
        assert value(lease.conninfo, "SELECT 1") == 1
    assert not (new_home / "data.new").exists()


def test_content_never_reaches_the_log(home: Path) -> None:
    with embedded.acquire(home) as lease:
        change(lease.conninfo, "CREATE TABLE notes (text text PRIMARY KEY)")
        with psycopg.connect(lease.conninfo, autocommit=True) as connection:
            for _ in range(2):
                with contextlib.suppress(psycopg.errors.UniqueViolation):
                    connection.execute("INSERT INTO notes VALUES (%s)", ["geheim"])
            with pytest.raises(psycopg.errors.InvalidTextRepresentation):
                connection.execute("SELECT 'geheim'::int")
            # a crashing backend has its statement told in the log, as a detail
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 'geheim', pg_terminate_backend(pg_backend_pid())")
        crash(lease.conninfo)
        # The server may answer once more before it notices that one of its processes was killed.
        log = home / "server.log"
        eventually(lambda: "was terminated by signal 9" in log.read_text())
        eventually(lambda: "database system is ready" in log.read_text().partition("was terminated by signal 9")[2])
        assert "geheim" not in log.read_text()


def crash(conninfo: str) -> None:
    """Kill a backend in the middle of a statement and wait until the server has recovered."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        pid = connection.info.backend_pid
        running = threading.Thread(target=run_until_cut, args=(connection,))
        running.start()
        eventually(lambda: value(conninfo, f"SELECT state FROM pg_stat_activity WHERE pid = {pid}") == "active")
        os.kill(pid, signal.SIGKILL)
        running.join()

    def is_up() -> bool:
        try:
            return value(conninfo, "SELECT 1") == 1
        except psycopg.OperationalError:
            return False

    eventually(is_up)


def run_until_cut(connection: psycopg.Connection) -> None:
    with contextlib.suppress(psycopg.OperationalError):
        connection.execute("SELECT 'geheim', pg_sleep(600)")


def test_a_long_log_is_put_aside(home: Path) -> None:
    with (home / "server.log").open("a") as log:
        log.write("x" * 5_000_000)
    with embedded.acquire(home):
        assert (home / "server.log").stat().st_size < 10_000
        assert (home / "server.log.1").stat().st_size > 5_000_000
