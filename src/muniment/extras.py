"""Packages that only some uses need: which extra brings them, and the error that says so."""

from importlib.util import find_spec
from typing import Literal

from muniment.errors import PackageMissing

Extra = Literal["server", "mcp", "redis"]

# The modules that each extra of pyproject.toml brings and our code imports.
MODULES: dict[Extra, tuple[str, ...]] = {
    "server": ("fastapi", "uvicorn", "httptools", "jinja2", "multipart", "prometheus_client", "jwt"),
    "mcp": ("mcp",),
    "redis": ("redis",),
}

# The module of the framework that each adapter is for: muniment.adapters.langgraph needs langgraph, and so on.
Framework = Literal[
    "langgraph", "openai-agents", "pydantic-ai", "google-adk", "agent-framework", "llama-index", "crewai"
]
FRAMEWORKS: dict[Framework, str] = {
    "langgraph": "langgraph",
    "openai-agents": "agents",
    "pydantic-ai": "pydantic_ai",
    "google-adk": "google.adk",
    "agent-framework": "agent_framework",
    "llama-index": "llama_index.core",
    "crewai": "crewai",
}


def is_installed(extra: Extra) -> bool:
    """Whether all packages of an extra are installed."""
    return _missing(extra) is None


def require(extra: Extra, use: str) -> None:
    """Raise `PackageMissing` unless all packages of an extra are installed; `use` says what needs them."""
    if (name := _missing(extra)) is not None:
        raise PackageMissing(f"{use} needs the package {name}, which is not installed: pip install 'muniment[{extra}]'")


def require_framework(extra: Framework) -> None:
    """Raise `PackageMissing` unless the framework is installed; the first call of its adapter's module."""
    if not _is_there(FRAMEWORKS[extra]):
        adapter = f"muniment.adapters.{extra.replace('-', '_')}"
        raise PackageMissing(f"{adapter} needs {extra}, which is not installed: pip install 'muniment[{extra}]'")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):  # The package above it is missing.
        return False


def _missing(extra: Extra) -> str | None:
    return next((name for name in MODULES[extra] if not _is_there(name)), None)
