"""What a plain install leaves out: what works without it, and what the others say is missing."""

import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import get_args

import pytest

from muniment.errors import PackageMissing
from muniment.extras import MODULES, Extra, is_installed, require

ROOT = Path(__file__).parents[2]
# Everything that only an extra brings.
LEFT_OUT = (
    *(name for names in MODULES.values() for name in names),
    *("opentelemetry", "onnxruntime", "muniment_models", "numkong", "uvloop", "starlette"),
)
WITHOUT = f"import sys; sys.modules.update(dict.fromkeys({LEFT_OUT!r}))"


def run_without_extras(program: str, *arguments: str, home: Path) -> "subprocess.CompletedProcess[str]":
    """Run a program in a process in which no extra is installed."""
    return subprocess.run(
        [sys.executable, "-c", f"{WITHOUT}\n{program}", *arguments],
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_first_example_runs_on_a_plain_install(tmp_path: Path) -> None:
    example = (ROOT / "examples" / "memory.py").read_text("utf-8")
    done = run_without_extras(example, home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "my sister Ana is getting married in June" in done.stdout


@pytest.mark.parametrize(
    ("command", "extra"), [(["serve", "--port", "0"], "server"), (["mcp", "--user", "joanna"], "mcp")]
)
def test_a_command_whose_packages_are_missing_says_how_to_install_them(
    command: list[str], extra: str, tmp_path: Path
) -> None:
    program = "from muniment.cli import main; sys.exit(main(sys.argv[1:]))"
    done = run_without_extras(program, *command, "--home", "home", home=tmp_path)
    assert done.returncode != 0
    assert f"pip install 'muniment[{extra}]'" in done.stderr.replace("\n", " ")
    assert not (tmp_path / "home" / "data").exists()


def test_a_server_without_the_packages_of_mcp_answers_errors(tmp_path: Path) -> None:
    program = "import sys; sys.modules.update(mcp=None, mcp_types=None); import muniment.http.app; print('served')"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "served\n"), done.stderr


def test_a_session_store_in_redis_needs_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    from muniment.sessions.store import session_store

    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(PackageMissing, match=r"pip install 'muniment\[redis\]'"):
        session_store("redis://127.0.0.1:1")


def test_what_is_installed_is_not_missed() -> None:
    for extra in get_args(Extra):
        assert is_installed(extra)
        require(extra, "this test")


def test_each_module_comes_with_the_extra_that_is_named_for_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    distributions = packages_distributions()
    plain = {_name(one) for one in project["dependencies"]}
    for extra, modules in MODULES.items():
        brought = {_name(one) for one in project["optional-dependencies"][extra]}
        for module in modules:
            named = {one.lower().replace("_", "-") for one in distributions[module]}
            assert named & brought, f"{extra} does not bring {module}"
            assert not named & plain, f"{module} comes with every install"


def _name(requirement: str) -> str:
    return requirement.split(";")[0].split("[")[0].split(">")[0].split("<")[0].strip().lower()
