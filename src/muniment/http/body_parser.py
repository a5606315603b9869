"""Parses JSON bodies: lengths are checked before validation, and long bodies are parsed in a thread."""

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
    """Parses and validates the bodies of one route."""

    def __init__(self, route: APIRoute) -> None:
        field = route.body_field
        self._kind: Any = None
        self._adapter: TypeAdapter[Any] | None = None
        if field is not None:
            self._kind = field.field_info.annotation
            self._adapter = TypeAdapter(cast("Any", Annotated)[self._kind, field.field_info])

    def parse(self, content: bytes) -> Any:
        """Parse JSON and check its lengths; raises `TooLarge`, `InvalidInput`, and `JSONDecodeError`."""
        value = json.loads(content)
        self._check(value)
        return value

    def parse_in_thread(self, content: bytes) -> Any:
        """Parse and validate in a thread; raises as `parse`.

        The hook is Python code, so that other threads get a turn at every object of the text.
        """
        value = json.loads(content, object_hook=lambda found: found)
        self._check(value)
        if self._adapter is None:
            return value
        try:
            return self._adapter.validate_python(value)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            raise problems.invalid([{**one, "loc": ("body", *one["loc"])} for one in errors]) from None

    def _check(self, value: Any) -> None:
        if self._kind is None:
            return
        try:
            check_lengths(self._kind, value)
        except InvalidInput as error:
            # A key that the caller wrote is not repeated.
            error.field = error.field or "body"
            raise


class BoundedRequest(Request):
    """A request whose body is parsed by `Body`."""

    def __init__(self, request: Request, body: Body) -> None:
        super().__init__(request.scope, request.receive, request._send)
        self._parser = body
        # The body, if it was read already.
        vars(self).update({name: value for name, value in vars(request).items() if name == "_body"})

    async def json(self) -> Any:
        """The parsed body; a long one is also validated, in a thread."""
        content = await self.body()
        if len(content) <= SMALL:
            return self._parser.parse(content)
        return await in_thread(self._parser.parse_in_thread, content)
