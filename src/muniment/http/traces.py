"""Sends traces to the collector that OpenTelemetry's own variables name."""

import os
from collections.abc import Mapping

from muniment.errors import InvalidInput

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def set_up(version: str, environment: Mapping[str, str] | None = None) -> bool:
    """Send spans to OTEL_EXPORTER_OTLP_ENDPOINT; whether it is set. Raises `InvalidInput` without the SDK."""
    env = os.environ if environment is None else environment
    if not any(env.get(name) for name in _ENDPOINTS) or env.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise InvalidInput("traces need their SDK: pip install 'muniment[otel]'", field=_ENDPOINTS[0]) from None
    service = env.get("OTEL_SERVICE_NAME") or "muniment"
    about = {"service.name": service, "service.version": version, "process.pid": os.getpid()}
    provider = TracerProvider(resource=Resource.create(about))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return True
