"""A line to a node that a test can cut, or make silent."""

import contextlib
import selectors
import socket
import threading
from collections.abc import Generator


class Proxy:
    """Passes connections on to a server: at once, not at all (`cut`), or with nothing said any more (`silence`)."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._lines: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self._speaks = threading.Event()
        self._speaks.set()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.restore()

    def cut(self) -> None:
        """End every connection, and refuse new ones, as when the node's process is killed."""
        listener, self._listener = self._listener, None
        if listener is not None:
            # Also wakes the thread that accepts.
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for line in list(self._lines):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def silence(self) -> None:
        """Pass nothing on, on open connections and new ones, as when the node's machine is gone."""
        self._speaks.clear()

    def restore(self) -> None:
        """Pass everything on again."""
        self._speaks.set()
        if self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", self.port), backlog=200)
            threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        """End it for good."""
        self._speaks.set()
        self.cut()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(near,), daemon=True).start()

    def _pass_on(self, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError):
            self._speaks.wait()
            with socket.create_connection(self._target) as far, selectors.DefaultSelector() as ready:
                self._lines |= {near, far}
                try:
                    ready.register(near, selectors.EVENT_READ, far)
                    ready.register(far, selectors.EVENT_READ, near)
                    while True:
                        for key, _ in ready.select():
                            self._speaks.wait()
                            assert isinstance(key.fileobj, socket.socket)
                            data = key.fileobj.recv(65536)
                            if not data:
                                return
                            key.data.sendall(data)
                finally:
                    self._lines -= {near, far}


@contextlib.contextmanager
def proxy(target: tuple[str, int]) -> Generator[Proxy]:
    """A proxy to that server, closed at the end."""
    opened = Proxy(target)
    try:
        yield opened
    finally:
        opened.close()
