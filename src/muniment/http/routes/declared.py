"""The routes that follow from the declarations of the verbs."""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from inspect import Parameter, Signature
from typing import Annotated, Any, get_args, get_origin

from fastapi import Depends, Header, Response

from muniment.errors import InvalidInput
from muniment.http.bodies import After, AfterNumber, Limit, Page, body_of, given_fields, in_query, page, run_asked
from muniment.http.caller import Asking, IdempotencyKey, May, RunHeader
from muniment.http.routes.router import v1_router
from muniment.model.context import Asker
from muniment.model.proposal import Proposal
from muniment.verbs.declaration import Declaration
from muniment.verbs.registry import verbs

_REQUIRED = Parameter.empty
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=64,
        description="The `ETag` that was read: if it is another by now, nothing is done (412).",
    ),
]

router = v1_router()


def add_routes() -> None:
    """Add a route for every verb that is served; a fixed part of a path goes before one that is an id."""
    served = [verb for verb in verbs().values() if verb.method is not None and not verb.custom_route]
    for verb in sorted(served, key=lambda one: [part.startswith("{") for part in one.path.split("/")]):
        router.add_api_route(
            verb.path,
            _endpoint(verb),
            methods=[str(verb.method)],
            status_code=verb.status,
            response_model=_sent(verb),
            description=verb.doc,
            name=verb.name,
            tags=[verb.path.split("/")[1]],
        )


def _endpoint(verb: Declaration[Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    body = body_of(verb) if verb.method == "POST" else None

    async def endpoint(**request: Any) -> Any:
        asking: Asking = request.pop("asking")
        response: Response = request.pop("response")
        fields = _fields(request, verb)
        caller = asking.tenant_id if verb.caller == "tenant" else await _asker(asking, request, fields, verb)
        group: Any = getattr(asking.fabric, verb.group) if verb.group else asking.fabric
        return _answer(verb, await getattr(group, verb.verb)(caller, **fields), fields, response)

    # FastAPI reads the parameters of a route from here; the type of functions does not declare it.
    endpoint.__signature__ = Signature(list(_parameters(verb, body)))  # pyright: ignore[reportFunctionMemberAccess]  FastAPI reads it
    return endpoint


def _parameters(verb: Declaration[Any], body: Any) -> Iterable[Parameter]:
    """What the route takes: who asks, parts of the path, the query or the body, and headers."""

    def one(name: str, kind: Any, default: Any = _REQUIRED) -> Parameter:
        return Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)

    yield one("asking", Annotated[Asking, Depends(May(verb))])
    yield one("response", Response)
    fields = dict(verb.input.model_fields) if verb.input is not None else {}
    for name in verb.path_fields:
        kind = fields.pop(name).annotation
        # The verb itself refuses what is no id.
        yield one(name, kind)
    if verb.page_key is not None:
        after = fields.pop("after")
        fields.pop("limit")
        yield one("limit", Limit, verb.page_limit)
        yield one("after", AfterNumber if int in get_args(get_args(after.annotation)[0]) else After, None)
    if verb.method == "GET" or verb.caller == "tenant":
        for name, field in fields.items():
            yield one(name, in_query(field), _REQUIRED if field.is_required() else field.default)
    elif body is not None:
        needed = any(field.is_required() for field in body.model_fields.values())
        yield one("body", body, _REQUIRED) if needed else one("body", body | None, None)
    if verb.method == "GET" and verb.caller == "asker":
        yield one("run", RunHeader, None)
    if verb.versioned:
        yield one("match", IfMatch, None)
    if verb.takes_key:
        yield one("key", IdempotencyKey, None)


def _fields(request: dict[str, Any], verb: Declaration[Any]) -> dict[str, Any]:
    """The arguments of the verb: what path, query and body say, with what headers say."""
    body = request.get("body")
    fields = given_fields(body, "run") if body is not None else {}
    fields |= {name: value for name, value in request.items() if name not in ("body", "run", "match", "key")}
    if verb.versioned:
        fields = _versioned(fields, request["match"])
    return keyed(fields, request["key"]) if verb.takes_key else fields


async def _asker(asking: Asking, request: dict[str, Any], fields: dict[str, Any], verb: Declaration[Any]) -> Asker:
    """Who asks: the holder of the credential, or its run. A run that is asked about becomes a field."""
    if verb.method == "GET":
        return await asking.asker_by_header(request["run"]) if verb.caller == "asker" else asking.principal
    run: Any = getattr(request.get("body"), "run", None)
    if verb.caller == "run":
        return await asking.run(run)
    if verb.input is None or "run" not in verb.input.model_fields:
        return await asking.asker(run) if verb.caller == "asker" else asking.principal
    if verb.caller == "asker" and asking.principal.kind == "agent":
        if run is None:
            raise InvalidInput("is required", field="run")
        if run.agent_id not in (None, asking.principal.id):
            raise InvalidInput("is another agent than the credential's", field="run.agent_id")
        return await asking.run(run)
    if run is not None:
        fields["run"] = run_asked(run, asking.tenant_id)
    return asking.principal


def _answer(verb: Declaration[Any], result: Any, fields: dict[str, Any], response: Response) -> Any:
    if isinstance(result, Proposal):
        response.headers["ETag"] = f'"{result.version}"'
    if verb.page_key is not None:
        found: list[Any] = [verb.shown_as.of(one) if verb.shown_as is not None else one for one in result]
        return page(found, fields["limit"], verb.page_key)
    return verb.shown_as.of(result) if verb.shown_as is not None else result


def _sent(verb: Declaration[Any]) -> Any:
    """The type of the answer."""
    if verb.page_key is not None:
        return Page[verb.shown_as or get_args(verb.result)[0]]
    if verb.shown_as is not None:
        return verb.shown_as
    if get_origin(verb.result) is Sequence:
        return list[get_args(verb.result)[0]]
    return None if verb.result is type(None) else verb.result


def keyed(fields: dict[str, Any], key: str | None) -> dict[str, Any]:
    """The fields with the idempotency key of the header; raises `InvalidInput` where the two differ."""
    own = fields.get("idempotency_key")
    if key is None or own == key:
        return fields
    if own is not None:
        raise InvalidInput("is another key than the header's", field="idempotency_key")
    return fields | {"idempotency_key": key}


def _versioned(fields: dict[str, Any], match: str | None) -> dict[str, Any]:
    """The fields with the version that the header names; raises `InvalidInput` where the two differ."""
    if match is None or match == "*":
        return fields
    number = match.removeprefix("W/").strip('"')
    if not number.isascii() or not number.isdigit():
        raise InvalidInput("expected the ETag of a proposal", field="If-Match")
    if fields.get("version", int(number)) != int(number):
        raise InvalidInput("is another version than If-Match names", field="version")
    return fields | {"version": int(number)}


add_routes()
