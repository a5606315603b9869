"""The declaration of a verb: its name, input, result, right and HTTP route, written once beside its handler.

`muniment.verbs.generate` writes the Python APIs from the declarations, and `muniment.http.routes` serves them.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Generic, Literal, TypeVar, cast, get_type_hints

from muniment.access.roles import Right as Right
from muniment.context import FabricContext, retry_on_pack_change
from muniment.errors import InvalidInput
from muniment.model.context import Asker, Principal, RunContext
from muniment.model.fields import Artifact, build
from muniment.model.inputs import check_tenant
from muniment.standby_reads import call_on_standby

T = TypeVar("T")
Method = Literal["GET", "POST", "DELETE"]
# Who calls: a principal; a principal or a run (`asker`); a run; no one, only a tenant's id is given; no one.
Caller = Literal["principal", "asker", "run", "tenant", "nobody"]
# What a call does. `read`: it changes nothing, or nothing that matters if it is repeated. `write`: it writes once, in
# one transaction. `pass`: it processes what is due, in several transactions, and may be repeated without harm.
Effect = Literal["read", "write", "pass"]
# What a page holds over HTTP when the request does not say.
HTTP_PAGE = 50


@dataclass(frozen=True)
class Options:
    """What a declaration says about a verb.

    - `right`: the right that the caller needs, a key of `ALLOWED` in access/roles.py. `run_right` is a run's,
      `also_right` is needed too. Over HTTP callers with `other_right` are admitted as well; `right_for` then chooses
      which of the two is checked.
    - `http`: method and path, such as `"POST /queue/{proposal_id}/approve"`; None where it is not served. With
      `custom_route` its route is written by hand. `shown_as` is the type that is sent instead of the result.
    - `positional`: the fields that Python callers may pass by position; by default those of the path.
    - `keywords`: the fields that become `**fields`, typed by the `TypedDict` of that name.
    - `unchecked`: the input type of a handler that takes the fields as they were passed, and checks them itself.
    - `page_key`: for a list, the attribute of an entry that `after` names.
    - `cli`: the command that takes the fields of the input as they are, such as `"webhook list"`.
    - `retry`: repeat the call when another pack is put in force meanwhile. `slow`: a client waits minutes for it.
    - `standby`: a standby may answer what it reads with `standby_reads.reading`. Only for a verb that needs nothing
      sealed from there, and never for what a run sees (SCL-4).
    """

    name: str
    _: KW_ONLY
    right: Right | None
    http: str | None
    effect: Effect | None = None
    status: int = 200
    retry: bool = False
    positional: tuple[str, ...] | None = None
    keywords: type[Artifact] | None = None
    unchecked: type[Artifact] | None = None
    page_key: str | None = None
    page_limit: int = HTTP_PAGE
    run_right: Right | None = None
    also_right: Right | None = None
    other_right: Right | None = None
    right_for: Callable[[Asker, Any], Right] | None = None
    shown_as: Any = None
    slow: bool = False
    custom_route: bool = False
    cli: str | None = None
    standby: bool = False

    @property
    def method(self) -> Method | None:
        """Return the HTTP method of its route; None if it has no route."""
        return cast("Method", self.http.partition(" ")[0]) if self.http is not None else None

    @property
    def path(self) -> str:
        """The path of its route."""
        return (self.http or "").partition(" ")[2]

    @property
    def path_fields(self) -> tuple[str, ...]:
        """The fields that the path of its route holds."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))


@dataclass(frozen=True, kw_only=True)
class Declaration(Options, Generic[T]):
    """A verb. Calling it checks the input, authorises the caller and runs the handler."""

    effect: Effect = "read"
    positional: tuple[str, ...] = ()
    handler: Callable[..., Awaitable[T]]
    caller: Caller
    input: type[Artifact] | None
    result: Any
    on_progress: Any
    takes_principal: bool

    @property
    def group(self) -> str:
        """The group it belongs to, such as `queue`; empty for a verb of the fabric itself."""
        return self.name.rpartition(".")[0]

    @property
    def verb(self) -> str:
        """Its name within the group, which is the name of the method."""
        return self.name.rpartition(".")[2]

    @property
    def doc(self) -> str:
        """What it does, as its handler says."""
        return inspect.cleandoc(self.handler.__doc__ or "")

    @property
    def versioned(self) -> bool:
        """Whether it acts on the version of something that the caller read (`If-Match`)."""
        return self.input is not None and "version" in self.input.model_fields

    @property
    def takes_key(self) -> bool:
        """Whether an idempotency key is part of its input."""
        return self.input is not None and "idempotency_key" in self.input.model_fields

    async def __call__(
        self, context: FabricContext, caller: Any = None, /, *, on_progress: Any = None, **fields: Any
    ) -> T:
        """Authorise the caller, check the input, run the handler; raises `RoleMissing`, `InvalidInput`."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        if self.on_progress is not None:
            kwargs["on_progress"] = on_progress
        elif on_progress is not None:
            fields["on_progress"] = on_progress  # Refused like any other unknown field.
        if self.caller == "run" and not isinstance(caller, RunContext):
            raise InvalidInput(f"{self.name} takes a RunContext", field="run")
        if self.caller == "tenant":
            args.append(check_tenant(caller, "tenant_id"))
        has_caller = self.caller in ("principal", "asker", "run")
        # If the right depends on the input, the input is checked first.
        principal = await self._authorise(context, caller, None) if has_caller and self.right_for is None else None
        request: Any = fields if self.unchecked is not None or self.input is None else build(self.input, fields)
        if has_caller and principal is None:
            principal = await self._authorise(context, caller, request)
        if has_caller:
            args.append(principal if self.caller == "principal" else caller)
        if self.takes_principal:
            kwargs["principal"] = principal
        if self.input is not None:
            args.append(request)
        if self.standby:
            return await call_on_standby(context, partial(self.handler, context, *args, **kwargs))
        return await self.handler(context, *args, **kwargs)

    async def _authorise(self, context: FabricContext, asker: Asker, request: Any) -> Principal:
        right = self.right
        if self.right_for is not None and isinstance(asker, Principal | RunContext):
            right = self.right_for(asker, request)
        elif self.run_right is not None and isinstance(asker, RunContext):
            right = self.run_right
        assert right is not None, "a verb with a caller must declare a right"
        principal = await context.authorise(asker, right)
        if self.also_right is not None:
            await context.authorise(asker, self.also_right)
        return principal


_DECLARED: dict[str, Declaration[Any]] = {}


@dataclass(frozen=True)
class verb(Options):  # noqa: N801  it is used as a decorator
    """Declare a verb on its handler, `async def handler(context, caller, request)`.

    The annotation of the second parameter says who calls: `Principal`, `Asker`, `RunContext`, or `str` for a tenant's
    id. That of the third is the input type; with `unchecked`, its fields come as a mapping that the handler checks.
    Keyword parameters: `principal` is the authorised principal where the second is an `Asker`, `on_progress` a
    callback.
    """

    def __call__(self, handler: Callable[..., Awaitable[T]]) -> Declaration[T]:
        """Make the declaration, and list it in `declared`."""
        hints = get_type_hints(handler, include_extras=True)
        result = hints.pop("return")
        on_progress = hints.pop("on_progress", None)
        takes_principal = "principal" in inspect.getfullargspec(handler).kwonlyargs
        if takes_principal:
            hints.pop("principal")
        parameters = list(hints.values())[1:]
        caller = _caller(parameters)
        if caller != "nobody":
            parameters.pop(0)
        effect = self.effect or ("read" if self.method == "GET" else "write")
        options: dict[str, Any] = vars(self) | {
            "effect": effect,
            "positional": self.path_fields if self.positional is None else self.positional,
            "slow": self.slow or effect == "pass",
        }
        declaration = Declaration(
            handler=retry_on_pack_change(handler) if self.retry else handler,
            caller=caller,
            input=self.unchecked or (parameters[0] if parameters else None),
            result=result,
            on_progress=on_progress,
            takes_principal=takes_principal,
            **options,
        )
        if self.name in _DECLARED:
            raise ValueError(f"the verb {self.name} is declared twice")
        if self.standby and (effect != "read" or caller != "principal"):
            raise ValueError(f"the verb {self.name} writes, or is for runs: a standby answers neither")
        if declaration.right is not None and declaration.caller == "nobody":
            raise ValueError(f"the verb {self.name} needs a right, and its handler takes no caller to check it for")
        _DECLARED[self.name] = declaration
        return declaration


def _caller(parameters: list[Any]) -> Caller:
    first = parameters[0] if parameters else None
    if first is Principal:
        return "principal"
    if first == Asker:
        return "asker"
    if first is RunContext:
        return "run"
    return "tenant" if first is str else "nobody"


def declared() -> Mapping[str, Declaration[Any]]:
    """The verbs that were declared so far, by name."""
    return _DECLARED
