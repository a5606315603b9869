"""OpenTelemetry spans of requests, verbs and SQL: names, counts and ids, never content.

Without its packages (`muniment[otel]`), or without an SDK that is set up, a span costs next to nothing.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

try:
    from opentelemetry import propagate, trace
except ImportError:
    propagate = trace = None

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanKind

Attribute = str | int | float | bool
_P = ParamSpec("_P")
_T = TypeVar("_T")

_CARRIED = ("traceparent", "tracestate")
_tracer = trace.get_tracer("muniment") if trace is not None else None


class SpanAttributes:
    """Sets attributes of a span, if there is one."""

    __slots__ = ("_span",)

    def __init__(self, span: "Span | None") -> None:
        self._span = span

    def set(self, **attributes: Attribute | None) -> None:
        """Set these attributes, those that are None left out."""
        if self._span is not None and self._span.is_recording():
            for name, value in attributes.items():
                if value is not None:
                    self._span.set_attribute(f"muniment.{name}", value)


class _NoSpan(SpanAttributes):
    """The span of a process that does not trace; one for all blocks."""

    __slots__ = ()

    def __enter__(self) -> SpanAttributes:
        return self

    def __exit__(self, *_: object) -> None: ...


_NO_SPAN = _NoSpan(None)


def span(name: str, **attributes: Attribute | None) -> AbstractContextManager[SpanAttributes]:
    """Open a span around a block; an error sets its status to the name of the error's class."""
    if _is_off():
        return _NO_SPAN
    assert trace is not None
    return _traced(name, trace.SpanKind.INTERNAL, None, attributes)


def request_span(method: str, headers: Mapping[bytes, bytes]) -> AbstractContextManager[SpanAttributes]:
    """Open the span of a request, in the trace that its headers name."""
    if _is_off():
        return _NO_SPAN
    assert trace is not None
    return _traced(f"HTTP {method}", trace.SpanKind.SERVER, headers, {})


def _is_off() -> bool:
    return trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def with_span(name: str) -> Callable[[Callable[_P, Awaitable[_T]]], Callable[_P, Coroutine[Any, Any, _T]]]:
    """Wrap every call of a coroutine function in a span of that name."""

    def wrap(function: Callable[_P, Awaitable[_T]]) -> Callable[_P, Coroutine[Any, Any, _T]]:
        @wraps(function)
        async def called(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            with span(name):
                return await function(*args, **kwargs)

        return called

    return wrap


@contextmanager
def _traced(
    name: str, kind: "SpanKind", headers: Mapping[bytes, bytes] | None, attributes: Mapping[str, Attribute | None]
) -> Generator[SpanAttributes]:
    assert trace is not None and propagate is not None and _tracer is not None
    context = propagate.extract(_carrier(headers)) if headers is not None else None
    with _tracer.start_as_current_span(
        name, context, kind, record_exception=False, set_status_on_exception=False
    ) as opened:
        try:
            found = SpanAttributes(opened)
            found.set(**attributes)
            yield found
        except BaseException as error:
            opened.set_status(trace.Status(trace.StatusCode.ERROR, type(error).__name__))
            raise


def _carrier(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    return {name: value.decode("latin-1") for name in _CARRIED if (value := headers.get(name.encode())) is not None}
