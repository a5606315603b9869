"""A proxy on the loopback that passes everything on, and can keep an answer to itself."""

import socket
from contextlib import suppress
from threading import Event, Thread
from typing import Self
from urllib.parse import urlsplit


class Proxy:
    """Passes connections on to a server. `swallow` answers, and it cuts the connection instead of giving them."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._to = (place.hostname or "127.0.0.1", place.port or 80)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._ended = Event()
        self.swallow = 0
        self.swallowed = 0
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._listening.close()

    def _accept(self) -> None:
        while not self._ended.is_set():
            with suppress(OSError):
                local, _ = self._listening.accept()
                remote = socket.create_connection(self._to)
                Thread(target=self._pass_on, args=(local, remote, False), daemon=True).start()
                Thread(target=self._pass_on, args=(remote, local, True), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                if answers and self.swallow:
                    # The server has done it: what it says of it does not arrive.
                    self.swallow -= 1
                    self.swallowed += 1
                    break
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
