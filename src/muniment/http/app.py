"""The app: the routes, the door before them, and what they share."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.security import HTTPBearer
from starlette.routing import Route

from muniment import __version__
from muniment.console.app import add_console
from muniment.errors import StorageUnavailable
from muniment.fabric import AsyncFabric
from muniment.http import openapi as documentation
from muniment.http import problems
from muniment.http.caller import run_of
from muniment.http.credentials import Credentials
from muniment.http.event_stream import Streams
from muniment.http.middleware import Door
from muniment.http.oidc import Tokens
from muniment.http.routes import declared, special
from muniment.http.server_metrics import CONTENT_TYPE, ServerMetrics
from muniment.http.settings import ServerSettings
from muniment.mcp import over_http
from muniment.model.fields import Artifact

PARTS = (special, declared)
_PROBLEM: Mapping[int | str, dict[str, Any]] = {
    status: {"description": said, "content": {problems.CONTENT_TYPE: {"schema": problems.Problem.model_json_schema()}}}
    for status, said in (("4XX", "the request is refused"), ("5XX", "the server cannot answer it now"))
}


class Health(Artifact):
    """How the server is."""

    status: str


class _App(FastAPI):
    """FastAPI's, whose document says of each route whom it is for."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = documentation.openapi(self, PARTS)
        return self.openapi_schema


def create_app(
    fabric: AsyncFabric, settings: ServerSettings | None = None, *, meters: ServerMetrics | None = None
) -> FastAPI:
    """The app on an open fabric. Nothing under `/v1`, nor `/mcp`, answers without a credential of its own."""
    told = settings or ServerSettings()
    counted = meters or ServerMetrics()
    assistants = over_http.McpOverHttp(fabric, run_of=run_of, body_limit=told.body_limit)
    app = _App(
        title="Muniment",
        version=__version__,
        description=documentation.OVERVIEW,
        # Ours is made in a thread, and kept as it is sent.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=assistants.running,
    )
    tokens = Tokens(told.oidc, fabric.access.now) if told.oidc is not None else None
    credentials = Credentials(fabric, tokens)
    app.state.fabric = fabric
    app.state.streams = Streams(counted, told.streams)
    app.include_router(_v1())
    app.include_router(_beside(counted))
    app.include_router(documentation.router)
    app.router.routes.append(Route(over_http.PATH, assistants, methods=over_http.METHODS, include_in_schema=False))
    add_console(app, credentials, fabric.access.secret("console"), problems.on_error, sign_in=told.sign_in)
    app.add_middleware(Door, credentials=credentials, settings=told, meters=counted)
    return app


def _v1() -> APIRouter:
    bearer = HTTPBearer(auto_error=False, description="An API key (`muniment key create`) or a token of the issuer's.")
    router = APIRouter(
        prefix="/v1",
        dependencies=[Depends(bearer)],
        responses=dict(_PROBLEM),
    )
    for part in PARTS:
        router.include_router(part.router)
    return router


def _beside(meters: ServerMetrics) -> APIRouter:
    """What is not `/v1`: for whoever runs it, and without a credential; nothing of any tenant."""
    router = APIRouter(tags=["health"])

    @router.get("/healthz")
    async def healthz() -> Health:
        """Whether the process answers at all."""
        return Health(status="ok")

    @router.get("/readyz", responses={503: _PROBLEM["5XX"]})
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
        """What this process does, as Prometheus reads it."""
        return Response(meters.text(), media_type=CONTENT_TYPE)

    return router
