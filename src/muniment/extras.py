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


def is_installed(extra: Extra) -> bool:
    """Whether all packages of an extra are installed."""
    return _missing(extra) is None


def require(extra: Extra, use: str) -> None:
    """Raise `PackageMissing` unless all packages of an extra are installed; `use` says what needs them."""
    if (name := _missing(extra)) is not None:
        raise PackageMissing(f"{use} needs the package {name}, which is not installed: pip install 'muniment[{extra}]'")


def _missing(extra: Extra) -> str | None:
    return next((name for name in MODULES[extra] if find_spec(name) is None), None)
