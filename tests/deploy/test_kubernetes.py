"""The manifests fit together: commands and settings that exist, selectors that select, and the fewest rights."""

import re
from typing import Any

import pytest
import yaml

from muniment import __version__
from muniment.http.server import GRACE
from tests.docs.test_deploy import DEPLOY, SETTINGS, understood

FOLDER = DEPLOY / "kubernetes"
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text("utf-8"))
OBJECTS: list[dict[str, Any]] = [
    one for name in KUSTOMIZATION["resources"] for one in yaml.safe_load_all((FOLDER / name).read_text("utf-8"))
]
WORKLOADS = [one for one in OBJECTS if one["kind"] in ("Deployment", "Job")]


def name_of(one: dict[str, Any]) -> str:
    return f"{one['kind']} {one['metadata']['name']}"


def found(kind: str, name: str) -> dict[str, Any]:
    (one,) = [one for one in OBJECTS if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return one


def pod(one: dict[str, Any]) -> dict[str, Any]:
    return one["spec"]["template"]["spec"]


def containers(one: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod(one).get("initContainers", ()), *pod(one)["containers"]]


def selected(labels: dict[str, str]) -> set[str]:
    """The workloads whose pods have those labels."""
    return {
        one["metadata"]["name"] for one in WORKLOADS if labels.items() <= one["spec"]["template"]["metadata"]["labels"].items()
    }  # fmt: skip


def test_every_file_is_applied_and_the_image_is_of_this_version() -> None:
    files = {file.name for file in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(KUSTOMIZATION["resources"]) == files
    (image,) = KUSTOMIZATION["images"]
    assert image["name"] == "muniment" and image["newTag"] == __version__


def test_the_objects_of_an_installation_are_there() -> None:
    assert {name_of(one) for one in OBJECTS if one["kind"] != "NetworkPolicy"} == {
        "Namespace muniment", "ConfigMap muniment-settings", "PersistentVolumeClaim muniment-archives", "Job muniment-migrate",
        "Deployment muniment-server", "Service muniment", "PodDisruptionBudget muniment-server",
        "Deployment muniment-worker", "PodDisruptionBudget muniment-worker",
        "Deployment redis", "Service redis", "Ingress muniment",
    }  # fmt: skip


@pytest.mark.parametrize("one", WORKLOADS, ids=name_of)
def test_a_pod_has_the_fewest_rights(one: dict[str, Any]) -> None:
    spec = pod(one)
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True and spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for each in containers(one):
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }, each["name"]  # fmt: skip
        assert each["resources"]["requests"].keys() == {"cpu", "memory"} and "memory" in each["resources"]["limits"]


@pytest.mark.parametrize("one", WORKLOADS, ids=name_of)
def test_what_is_mounted_is_a_volume_of_the_pod(one: dict[str, Any]) -> None:
    volumes = {volume["name"] for volume in pod(one).get("volumes", ())}
    mounted = {mount["name"] for each in containers(one) for mount in each.get("volumeMounts", ())}
    assert mounted == volumes
    if one["kind"] == "Deployment":
        assert one["spec"]["selector"]["matchLabels"].items() <= one["spec"]["template"]["metadata"]["labels"].items()


def test_commands_and_settings_exist() -> None:
    ours = [each for one in WORKLOADS for each in pod(one)["containers"] if each["image"] == "muniment"]
    assert len(ours) == 3
    for each in ours:
        understood(each["args"])
        assert each["envFrom"] == [{"configMapRef": {"name": "muniment-settings"}}]
    data = found("ConfigMap", "muniment-settings")["data"]
    said = {*data, *(pair["name"] for each in ours for pair in each.get("env", ()))}
    assert {name for name in said if name.startswith("MUNIMENT_")} <= set(SETTINGS)
    assert said - set(SETTINGS) == {"PGPASSFILE"}


def test_secrets_reach_only_who_needs_them_as_files_that_nobody_else_can_read() -> None:
    data = found("ConfigMap", "muniment-settings")["data"]
    for name, secrets in {
        "muniment-migrate": {"master.key", "pgpass"},
        "muniment-server": {"master.key"},
        "muniment-worker": {"master.key", "pgpass"},
    }.items():
        (one,) = [one for one in WORKLOADS if one["metadata"]["name"] == name]
        (copies,) = pod(one)["initContainers"]
        program, mode, target, *files = copies["command"]
        assert (program, mode, target) == ("install", "--mode=400", "--target-directory=/run/muniment")
        assert {file.rpartition("/")[2] for file in files} == secrets
        (own,) = [volume for volume in pod(one)["volumes"] if volume["name"] == "own"]
        assert own["emptyDir"]["medium"] == "Memory"
        (main,) = pod(one)["containers"]
        given = {pair["name"]: pair["value"] for pair in main.get("env", ())}
        assert ("PGPASSFILE" in given) is ("pgpass" in secrets)
        # The secrets as they are mounted, which belong to root, are seen by the first container alone.
        assert not {"key", "owner"} & {mount["name"] for mount in main["volumeMounts"]}
    assert data["MUNIMENT_MASTER_KEY_FILE"] == "/run/muniment/master.key"
    assert not [one for one in OBJECTS if one["kind"] == "Secret"]


def test_a_server_is_probed_and_has_time_to_stop() -> None:
    spec = pod(found("Deployment", "muniment-server"))
    (server,) = spec["containers"]
    paths = {probe: server[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert paths == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    pause = int(server["lifecycle"]["preStop"]["exec"]["command"][1])
    assert GRACE + pause < spec["terminationGracePeriodSeconds"]
    assert server["ports"][0]["containerPort"] == int(server["args"][server["args"].index("--port") + 1])
    assert int(server["env"][0]["value"]) == int(server["resources"]["requests"]["cpu"])


def test_servers_are_replaced_one_by_one_and_never_all_away() -> None:
    spec = found("Deployment", "muniment-server")["spec"]
    assert spec["replicas"] >= 2 and spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    for name in ("muniment-server", "muniment-worker"):
        budget = found("PodDisruptionBudget", name)["spec"]
        assert selected(budget["selector"]["matchLabels"]) == {name}


def test_services_reach_their_pods_and_the_ingress_shows_nothing_that_is_for_the_inside() -> None:
    assert selected(found("Service", "muniment")["spec"]["selector"]) == {"muniment-server"}
    assert selected(found("Service", "redis")["spec"]["selector"]) == {"redis"}
    (rule,) = found("Ingress", "muniment")["spec"]["rules"]
    paths = {one["path"] for one in rule["http"]["paths"]}
    assert paths == {"/v1", "/console", "/mcp", "/docs", "/openapi.json"}
    assert {one["backend"]["service"]["name"] for one in rule["http"]["paths"]} == {"muniment"}


def test_everything_that_no_policy_allows_is_refused() -> None:
    policies = {one["metadata"]["name"]: one["spec"] for one in OBJECTS if one["kind"] == "NetworkPolicy"}
    assert policies["nothing-else"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    reached = {
        name: selected(spec["podSelector"]["matchLabels"]) for name, spec in policies.items() if name != "nothing-else"
    }
    assert reached == {
        "names-and-database": {"muniment-migrate", "muniment-server", "muniment-worker"},
        "server": {"muniment-server"}, "worker": {"muniment-worker"}, "redis": {"redis"},
    }  # fmt: skip
    inbound = {name for name, spec in policies.items() if spec.get("ingress")}
    assert inbound == {"server", "redis"}, "nobody calls a worker or a migration"


def test_addresses_are_examples_until_somebody_says_theirs() -> None:
    text = "".join(file.read_text("utf-8") for file in FOLDER.glob("*.yaml"))
    hosts = set(re.findall(r"[\w-]+(?:\.[\w-]+)*\.(?:com|net|org|io)\b", text))
    assert {host for host in hosts if not host.endswith(".k8s.io") and not host.endswith("kubernetes.io")} == {
        "registry.example.com", "postgres.example.com", "memory.example.com", "prometheus.io",
    }  # fmt: skip
