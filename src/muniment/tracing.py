"""Traces: spans of OpenTelemetry through capture, gates, SQL and recall; names, counts and ids, never content.

Without its SDK, or before one is set up, a span costs next to nothing.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from opentelemetry import propagate, trace
from opentelemetry.trace import ProxyTracerProvider, Span, SpanKind, Status, StatusCode

Attribute = str | int | float | bool
_P = ParamSpec("_P")
_T = TypeVar("_T")

_tracer = trace.get_tracer("muniment")


class Spanned:
    """A span that may be none."""

    __slots__ = ("_span",)

    def __init__(self, span: Span | None) -> None:
        self._span = span

    def set(self, **attributes: Attribute | None) -> None:
        """Note what it came to."""
        if self._span is not None and self._span.is_recording():
            for name, value in attributes.items():
                if value is not None:
                    self._span.set_attribute(f"muniment.{name}", value)


_NONE = Spanned(None)


@contextmanager
def span(name: str, **attributes: Attribute | None) -> Generator[Spanned]:
    """Everything inside happens within a span of that name; an error marks it by its kind, not by its words."""
    if isinstance(trace.get_tracer_provider(), ProxyTracerProvider):
        yield _NONE
        return
    with _opened(name, None, SpanKind.INTERNAL) as spanned:
        spanned.set(**attributes)
        yield spanned


def spanned(name: str) -> Callable[[Callable[_P, Awaitable[_T]]], Callable[_P, Coroutine[Any, Any, _T]]]:
    """Let every call of a coroutine function be a span of that name."""

    def wrap(function: Callable[_P, Awaitable[_T]]) -> Callable[_P, Coroutine[Any, Any, _T]]:
        @wraps(function)
        async def called(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            with span(name):
                return await function(*args, **kwargs)

        return called

    return wrap


@contextmanager
def arriving(method: str, headers: Mapping[bytes, bytes]) -> Generator[Spanned]:
    """A request's span, within the trace that its caller tells of."""
    if isinstance(trace.get_tracer_provider(), ProxyTracerProvider):
        yield _NONE
        return
    carrier = {name: value.decode("latin-1") for name in _CARRIED if (value := headers.get(name.encode())) is not None}
    with _opened(f"HTTP {method}", carrier, SpanKind.SERVER) as spanned:
        yield spanned


_CARRIED = ("traceparent", "tracestate")


@contextmanager
def _opened(name: str, carrier: Mapping[str, str] | None, kind: SpanKind) -> Generator[Spanned]:
    context = propagate.extract(carrier) if carrier is not None else None
    with _tracer.start_as_current_span(
        name, context, kind, record_exception=False, set_status_on_exception=False
    ) as opened:
        try:
            yield Spanned(opened)
        except BaseException as error:
            opened.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise
