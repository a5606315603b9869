"""Where traces go: to the collector that OpenTelemetry's own variables name, or nowhere."""

import os
from collections.abc import Mapping

from muniment.errors import InvalidInput

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def set_up(version: str, environment: Mapping[str, str] | None = None) -> bool:
    """Send spans where OTEL_EXPORTER_OTLP_ENDPOINT says; whether it says so. Raises `InvalidInput` without the SDK."""
    given = os.environ if environment is None else environment
    if not any(given.get(name) for name in _ENDPOINTS) or given.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise InvalidInput("traces need their SDK: pip install 'muniment[otel]'", field=_ENDPOINTS[0]) from None
    service = given.get("OTEL_SERVICE_NAME") or "muniment"
    provider = TracerProvider(resource=Resource.create({"service.name": service, "service.version": version}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return True
