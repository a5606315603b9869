"""One of several processes of a server, started by the supervisor."""

from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any

from muniment.http.logs import Form
from muniment.http.place import Place
from muniment.settings import OpenOptions
from muniment.supervisor import Link

if TYPE_CHECKING:
    from muniment.language.readers import BrokenReaders, Readers


@dataclass(frozen=True)
class ServerProcess:
    """What all processes of a server are started with: how they open the fabric, and where they serve it."""

    url: str | None
    options: OpenOptions
    place: Place
    processes: int
    log: Form | None
    # Where the server's readers' process listens, if it has one.
    readers: Path | None = None

    def run(self, number: int, link: Link, folder: Path, listening: socket) -> None:
        """Serve in this process until the supervisor or a signal ends it; `folder` is that of the metrics."""
        # Not by the supervisor, which has to pickle this and needs none of it.
        import anyio

        from muniment import __version__, loops
        from muniment.http import logs, traces

        logs.set_up(self.log, process=number)
        traces.set_up(__version__)
        anyio.run(self._serve, link, folder, listening, backend_options=loops.OPTIONS)

    async def _serve(self, link: Link, folder: Path, listening: socket) -> None:
        from muniment.fabric import AsyncFabric
        from muniment.http.server import serve
        from muniment.http.server_metrics import ServerMetrics
        from muniment.http.settings import ServerSettings

        def on_ready(_url: str) -> None:
            link.send("ready")

        settings = ServerSettings.gather().part(self.processes)
        options: dict[str, Any] = {**self.options, "processes": self.processes, "readers": self._readers()}
        async with AsyncFabric.open(self.url, **options) as fabric:
            await serve(
                fabric,
                self.place,
                settings,
                worker=False,
                listening=listening,
                on_ready=on_ready,
                metrics=ServerMetrics(folder),
                link=link,
            )

    def _readers(self) -> "Readers | BrokenReaders | None":
        """The readers that this process asks: it loads none itself."""
        from muniment.language.readers import BrokenReaders, Readers
        from muniment.language.readers.remote import RemoteReaders
        from muniment.settings import installed_readers

        found = installed_readers()
        if not isinstance(found, Readers):
            return found
        if self.readers is None:
            return BrokenReaders("the package muniment-models was installed while the server ran: start it again")
        return RemoteReaders(found.weights, self.readers)
