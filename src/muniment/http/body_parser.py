"""Bodies of JSON made into values: their lengths are compared before they are validated, and long ones in a thread."""

import json
from typing import Annotated, Any, cast

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError

from muniment.errors import InvalidInput
from muniment.http import problems
from muniment.http.bounds import SMALL
from muniment.loops import in_thread
from muniment.model.bounds import check_lengths


class Body:
    """What the body of a route is to be."""

    def __init__(self, route: APIRoute) -> None:
        field = route.body_field
        self._kind: Any = None
        self._made: TypeAdapter[Any] | None = None
        if field is not None:
            self._kind = field.field_info.annotation
            self._made = TypeAdapter(cast("Any", Annotated)[self._kind, field.field_info])

    def parsed(self, content: bytes) -> Any:
        """The values of a text of JSON; raises `TooLarge`, `InvalidInput`, and `JSONDecodeError` where it is none."""
        value = json.loads(content)
        self._check(value)
        return value

    def made(self, content: bytes) -> Any:
        """What the route takes; raises as `parsed`. For threads: others get their turn at every object of the text."""
        value = json.loads(content, object_hook=_as_it_is)
        self._check(value)
        if self._made is None:
            return value
        try:
            return self._made.validate_python(value)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            raise problems.invalid([{**one, "loc": ("body", *one["loc"])} for one in errors]) from None

    def _check(self, value: Any) -> None:
        if self._kind is None:
            return
        try:
            check_lengths(self._kind, value)
        except InvalidInput as error:
            # A key that the caller wrote is not told back.
            error.field = error.field or "body"
            raise


def _as_it_is(found: dict[str, Any]) -> dict[str, Any]:
    return found


class BoundedRequest(Request):
    """A request whose body is parsed within bounds."""

    def __init__(self, request: Request, body: Body) -> None:
        super().__init__(request.scope, request.receive, request._send)
        self._shape = body
        # What was read of it already.
        vars(self).update({name: value for name, value in vars(request).items() if name == "_body"})

    async def json(self) -> Any:
        """The body's values; of a long one what the route takes, made in a thread."""
        content = await self.body()
        if len(content) <= SMALL:
            return self._shape.parsed(content)
        return await in_thread(self._shape.made, content)
