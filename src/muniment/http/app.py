"""The app: the routes, the middleware around them, and what they share."""

import logging
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.routing import Route

from muniment import __version__
from muniment.console.app import add_console
from muniment.errors import StorageUnavailable
from muniment.extras import is_installed
from muniment.fabric import AsyncFabric
from muniment.http import oauth, problems
from muniment.http import openapi as documentation
from muniment.http.caller import run_of
from muniment.http.credentials import Credentials
from muniment.http.event_stream import Streams
from muniment.http.middleware import RequestMiddleware
from muniment.http.oidc import TokenVerifier
from muniment.http.routes import declared, special
from muniment.http.routes.router import PROBLEM_RESPONSES
from muniment.http.server_metrics import CONTENT_TYPE, ServerMetrics
from muniment.http.settings import ServerSettings
from muniment.model.fields import Artifact

if TYPE_CHECKING:
    from muniment.mcp.over_http import McpOverHttp

log = logging.getLogger("muniment.http")

PARTS = (special, declared)


class Health(Artifact):
    """How the server is."""

    status: str


class _App(FastAPI):
    """FastAPI's app, with the roles of each route in its OpenAPI document."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = documentation.openapi(self, PARTS)
        return self.openapi_schema


def create_app(
    fabric: AsyncFabric, settings: ServerSettings | None = None, *, metrics: ServerMetrics | None = None
) -> FastAPI:
    """Create the app on an open fabric. Everything under `/v1` and `/mcp` requires a credential."""
    settings = settings or ServerSettings()
    metrics = metrics or ServerMetrics()
    metrics.follow_index(fabric.opened.context.scopes)
    metrics.follow_replica(fabric.opened.context.storage.replica)
    assistants = _assistants(fabric, settings)
    lifespan = assistants.running if assistants is not None else None
    app = _with_routes(metrics, redirect_slashes=False, lifespan=lifespan)
    tokens = TokenVerifier(settings.oidc, fabric.access.now) if settings.oidc is not None else None
    credentials = Credentials(fabric, tokens, processes=settings.processes)
    app.state.fabric = fabric
    streams = app.state.streams = Streams(metrics, settings.streams)
    app.include_router(documentation.router)
    if assistants is not None:
        from muniment.mcp import PATH
        from muniment.mcp.over_http import METHODS

        app.router.routes.append(Route(PATH, assistants, methods=METHODS, include_in_schema=False))
        if settings.oidc is not None:
            app.router.routes += oauth.metadata_routes(settings.oidc.issuer)
    add_console(app, credentials, fabric.access.secret("console"), problems.on_error, sign_in=settings.sign_in)
    app.add_middleware(RequestMiddleware, credentials=credentials, settings=settings, metrics=metrics, streams=streams)
    return app


def openapi_document() -> dict[str, Any]:
    """The OpenAPI document that the server answers at `/openapi.json`, made without a server and a database."""
    return _with_routes(ServerMetrics()).openapi()


def _with_routes(metrics: ServerMetrics, **options: Any) -> _App:
    """An app with every route of the document."""
    app = _App(
        title="Muniment",
        version=__version__,
        description=documentation.OVERVIEW,
        # Ours is generated in a thread and kept as bytes.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        **options,
    )
    # Directly and not by way of routers in each other: each level would compare the path with all routes again.
    app.router.routes += [route for part in PARTS for route in part.router.routes]
    app.include_router(_operations(metrics))
    return app


def _assistants(fabric: AsyncFabric, settings: ServerSettings) -> "McpOverHttp | None":
    """Return what answers at `/mcp`; None without the packages of `muniment[mcp]`."""
    if not is_installed("mcp"):
        log.info("/mcp is not served: pip install 'muniment[mcp]'")
        return None
    from muniment.mcp.over_http import McpOverHttp

    return McpOverHttp(fabric, run_of=run_of, body_limit=settings.body_limit)


def _operations(server_metrics: ServerMetrics) -> APIRouter:
    """The routes for operators: they require no credential and show nothing of any tenant."""
    router = APIRouter(tags=["health"])

    @router.get("/healthz")
    async def healthz() -> Health:
        """Whether the process answers at all."""
        return Health(status="ok")

    @router.get("/readyz", responses={503: PROBLEM_RESPONSES["5XX"]})
    async def readyz(request: Request) -> Health:
        """Whether it can work: the database answers, and the server is not about to stop."""
        streams: Streams = request.app.state.streams
        if streams.stopping:
            raise StorageUnavailable("the server is about to stop")
        await request.app.state.fabric.access.ready()
        return Health(status="ready")

    @router.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics() -> Response:
        """The metrics of the server, as Prometheus reads them."""
        return Response(server_metrics.text(), media_type=CONTENT_TYPE)

    return router
