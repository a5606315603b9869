"""make lint-deploy: has every file of deploy/ checked by the linters of its format.

Those of the extra `release` are always there. promtool, systemd-analyze and kubectl are used if they are on the path;
what they would check is reported as not run otherwise.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from promql_parser import parse

DEPLOY = Path(__file__).parent
KUBERNETES = DEPLOY / "kubernetes"
MONITORING = DEPLOY / "monitoring"
# The oldest and the newest version of Kubernetes that the manifests are checked for.
VERSIONS = ("1.30", "1.37")
# The most that `systemd-analyze security` may find wrong, of 100.
EXPOSURE = 25


def main() -> int:
    """Run every linter; return how many found something."""
    checks: list[tuple[str, Sequence[str | Path]]] = [
        ("yamllint", ["--strict", "--config-file", DEPLOY / "yamllint.yaml", DEPLOY]),
        ("hadolint", [DEPLOY / "Dockerfile"]),
        ("check-jsonschema", ["--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml"]),
        ("compose-lint", ["check", "--fail-on", "high", DEPLOY / "compose.yaml"]),
        ("caddy", ["validate", "--adapter", "caddyfile", "--config", DEPLOY / "Caddyfile"]),
        ("caddy", ["fmt", "--diff", DEPLOY / "Caddyfile"]),
        ("promtool", ["check", "rules", MONITORING / "alerts.yaml"]),
        ("promtool", ["test", "rules", MONITORING / "alerts_test.yaml"]),
        ("promtool", ["check", "config", MONITORING / "prometheus.yaml"]),
    ]
    with tempfile.TemporaryDirectory(prefix="muniment-lint-") as name:
        folder = Path(name)
        checks += _manifests(folder)
        checks += _units(folder)
        failed = sum(not _passes(program, arguments) for program, arguments in checks)
    failed += not _queries_parse()
    print("deploy: nothing to complain about" if not failed else f"deploy: {failed} checks failed")
    return failed


def _passes(program: str, arguments: Sequence[str | Path]) -> bool:
    """Run a linter; what it writes is shown if it fails."""
    place = shutil.which(program, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    said = f"{program} {' '.join(_short(argument) for argument in arguments)}"
    if place is None:
        print(f"not run: {said} ({program} is not installed)")
        return True
    done = subprocess.run([place, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=DEPLOY.parent)
    written = done.stdout + done.stderr
    # Of a key that it does not know systemd only warns.
    passed = done.returncode == 0 and not ("verify" in arguments and written)
    print(f"{'ok' if passed else 'FAILED'}: {said}")
    if not passed:
        print(written)
    return passed


def _manifests(folder: Path) -> Iterator[tuple[str, Sequence[str | Path]]]:
    """Kubernetes: each file, and what kustomize makes of all of them."""
    files = [file for file in sorted(KUBERNETES.glob("*.yaml")) if file.name != "kustomization.yaml"]
    if (kubectl := shutil.which("kubectl")) is not None:
        rendered = folder / "kustomized.yaml"
        done = subprocess.run([kubectl, "kustomize", str(KUBERNETES)], capture_output=True, text=True, check=False)
        rendered.write_text(done.stdout or f"broken: {json.dumps(done.stderr)}\n", "utf-8")
        files = [*files, rendered]
    else:
        print("not run: kubectl kustomize (kubectl is not installed)")
    for version in VERSIONS:
        yield "kubernetes-validate", ["--strict", "--quiet", "--kubernetes-version", version, *files]


def _units(folder: Path) -> Iterator[tuple[str, Sequence[str | Path]]]:
    """The units of systemd, with a program that is on this machine in place of the one that they name."""
    copies: list[Path] = []
    for unit in sorted(DEPLOY.glob("*.service")):
        copy = folder / unit.name
        copy.write_text(unit.read_text("utf-8").replace("/opt/muniment/bin/muniment", "/bin/true"), "utf-8")
        copies.append(copy)
        yield "systemd-analyze", ["security", "--offline=true", "--no-pager", f"--threshold={EXPOSURE}", copy]
    yield "systemd-analyze", ["verify", "--man=no", *copies]


def _queries_parse() -> bool:
    """Every query of the dashboard is PromQL; those of the alerts are promtool's, where it is installed."""
    dashboard = json.loads((MONITORING / "dashboard.json").read_text("utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    passed = True
    for query in queries:
        try:
            parse(query.replace("$__rate_interval", "5m").replace("$__range", "1h"))
        except ValueError as error:
            print(f"FAILED: {query}: {error}")
            passed = False
    print(f"{'ok' if passed else 'FAILED'}: {len(queries)} queries of dashboard.json")
    return passed


def _short(argument: str | Path) -> str:
    return argument.name if isinstance(argument, Path) else argument


if __name__ == "__main__":
    sys.exit(min(main(), 1))
