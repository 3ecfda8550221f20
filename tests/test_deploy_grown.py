"""What runs several Parlours fits what is in this repository and in itself, and gives them no more than they need."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.settings import Settings
from core.tools.sandbox.box import Limits
from webui.server import LAST

ROOT = Path(__file__).resolve().parent.parent
GROWN, KUBERNETES = ROOT / "deploy" / "grown", ROOT / "deploy" / "kubernetes"
SIGNS = "set it in .env"


def compose() -> dict[str, Any]:
    return yaml.safe_load((GROWN / "compose.yaml").read_text("utf-8"))


def manifest(name: str) -> dict[str, Any]:
    return yaml.safe_load((KUBERNETES / name).read_text("utf-8"))


def parlours() -> list[dict[str, Any]]:
    return [service for name, service in compose()["services"].items() if name.startswith("parlour")]


def filled(value: str) -> str:
    """A value with a word in place of each variable of `.env`."""
    return re.sub(r"\$\{(\w+)(?::\?[^}]*)?\}", "secretword", value)


def test_both_parlours_of_the_compose_file_are_alike_but_for_their_folder_and_have_no_more_rights_than_one() -> None:
    one, two = parlours()
    assert one.pop("volumes") != two.pop("volumes")
    assert one == two
    assert (one["read_only"], one["cap_drop"], one["tmpfs"]) == (True, ["ALL"], ["/tmp"])
    assert one["security_opt"] == ["no-new-privileges:true"]
    with_ports = [name for name, service in compose()["services"].items() if "ports" in service]
    assert with_ports == ["caddy"], "everything else is reached from inside alone"
    (network,) = compose()["networks"]["inside"]["ipam"]["config"]
    assert one["environment"]["PARLOUR_TRUSTED_PROXIES"] == network["subnet"]
    assert int(one["stop_grace_period"].removesuffix("s")) > float(one["environment"]["PARLOUR_DRAIN_SECONDS"])


def test_every_service_waits_for_one_that_is_there_and_finds_what_it_names() -> None:
    told = compose()
    services, volumes = told["services"], told["volumes"]
    for name, service in services.items():
        assert set(service.get("depends_on", ())) <= services.keys(), name
        for mounted in service.get("volumes", ()):
            place = mounted.split(":")[0]
            assert place in volumes or (GROWN / place).is_file(), mounted
        for config in service.get("configs", ()):
            assert config["source"] in told["configs"]
    told_hosts = re.findall(r"(?:@|//)([a-z]+):\d+", str(services["parlour-1"]["environment"]))
    assert sorted(told_hosts) == ["postgres", "store", "valkey"]
    assert services.keys() >= set(told_hosts)
    named = re.findall(r"PARLOUR_AT:([^}]+)", (GROWN / "Caddyfile").read_text("utf-8"))[0].split()
    assert [one.split(":")[0] for one in named] == ["parlour-1", "parlour-2"]
    healthy = {
        name for name, wanted in services["parlour-1"]["depends_on"].items() if wanted["condition"] == "service_healthy"
    }
    assert all("healthcheck" in services[name] for name in healthy)


def test_what_the_compose_file_asks_for_stands_in_the_example() -> None:
    text = (GROWN / "compose.yaml").read_text("utf-8")
    asked = set(re.findall(r"\$\{(\w+)", text))
    assert asked <= set(re.findall(r"^(\w+)=", (GROWN / ".env.example").read_text("utf-8"), re.MULTILINE))
    assert all(SIGNS in one for one in re.findall(r"\$\{\w+:\?([^}]*)\}", text))


def test_the_image_brings_the_packages_that_are_tested() -> None:
    locked = dict(
        line.split(" ;")[0].split("==", 1) for line in (ROOT / "requirements-dev.lock").read_text("utf-8").splitlines()
    )
    asked = parlours()[0]["build"]["args"]["MORE_PACKAGES"].split()
    assert {re.sub(r"\[.*?\]", "", one.split("==")[0]): one.split("==")[1] for one in asked} == {
        name: locked[name] for name in ("obstore", "pgvector", "psycopg", "redis")
    }
    assert "ARG MORE_PACKAGES" in (ROOT / "Dockerfile").read_text("utf-8")


def test_settings_take_what_both_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        str(field.validation_alias or "") + f" PARLOUR_{name.upper()}" for name, field in Settings.model_fields.items()
    }
    secret, config = manifest("secret.example.yaml")["stringData"], manifest("config.yaml")["data"]
    for given in (parlours()[0]["environment"], {**secret, **config}):
        with monkeypatch.context() as environment:
            for name, value in given.items():
                assert any(name in one for one in known) or name.startswith("AWS_"), name
                environment.setenv(name, filled(value) or "a secret of sixteen letters")
            settings = Settings.load(home=tmp_path, host="0.0.0.0")
            assert settings.drain_seconds == 30
            assert settings.redis_address.startswith("redis://")
            assert str(settings.database_in(tmp_path)).startswith("postgresql://")
            assert settings.store == ("parlour", "files")
            assert not settings.has_local_owner


def test_the_store_of_the_compose_file_knows_the_key_that_parlours_show() -> None:
    (one,) = json.loads(filled(compose()["configs"]["store"]["content"]))["identities"]
    environment = parlours()[0]["environment"]
    assert one["credentials"] == [
        {"accessKey": environment["AWS_ACCESS_KEY_ID"], "secretKey": filled(environment["AWS_SECRET_ACCESS_KEY"])}
    ]


def test_the_page_on_several_machines_shows_the_configuration_as_it_is() -> None:
    shown = re.findall(
        r"^```caddy\n(.*?)^```$", (ROOT / "docs" / "scale.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    text = (GROWN / "Caddyfile").read_text("utf-8")
    assert shown == ["".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))]


def test_a_worker_is_like_the_parlours_but_for_its_role_its_folder_and_that_it_is_asked_for() -> None:
    worker, one = compose()["services"]["worker"], parlours()[0]
    assert (worker.pop("profiles"), worker["environment"].pop("PARLOUR_ROLE")) == (["workers"], "worker")
    assert worker.pop("volumes") != one.pop("volumes")
    assert worker == one
    assert re.search(r"^PARLOUR_ROLE=all$", (GROWN / ".env.example").read_text("utf-8"), re.MULTILINE)


def test_a_sandbox_of_the_compose_file_has_one_secret_reaches_nothing_and_is_asked_for() -> None:
    told = compose()
    sandbox, one = told["services"]["sandbox"], parlours()[0]
    assert sandbox["profiles"] == ["sandboxes"]
    assert sandbox["environment"].keys() == {"PARLOUR_ROLE", "PARLOUR_SANDBOX_SECRET"}
    assert not sandbox.keys() & {"env_file", "volumes", "depends_on", "ports"}
    assert sandbox["networks"] == ["sandboxes"]
    assert told["networks"]["sandboxes"] == {"internal": True}
    reach = [name for name, service in told["services"].items() if "sandboxes" in service["networks"]]
    assert reach == ["parlour-1", "parlour-2", "worker", "sandbox"]
    for name in ("image", "build", "read_only", "cap_drop", "security_opt"):
        assert sandbox[name] == one[name], name
    assert int(sandbox["stop_grace_period"].removesuffix("s")) > LAST
    settings = Settings.load(role="sandbox", sandbox_secret="of sixteen letters")
    assert settings.sandbox_kernels * Limits().processes <= sandbox["pids_limit"]
    shown = (GROWN / ".env.example").read_text("utf-8")
    assert re.findall(r"^(PARLOUR_SANDBOX\w*)=$", shown, re.MULTILINE) == ["PARLOUR_SANDBOX", "PARLOUR_SANDBOX_SECRET"]
    (address,) = re.findall(r"http://sandbox:\d+", shown)
    assert Settings.load(sandbox=address, sandbox_secret="of sixteen letters").sandbox == (address,)
    assert f"PARLOUR_PORT={address.rpartition(':')[2]}" in (ROOT / "Dockerfile").read_text("utf-8")


# Kubernetes


def test_the_kustomization_names_every_manifest_and_the_secret_has_an_example() -> None:
    named = set(manifest("kustomization.yaml")["resources"])
    there = {path.name for path in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}
    assert named - there == {"secret.yaml"}
    assert there - named == {"secret.example.yaml"}
    (image,) = manifest("kustomization.yaml")["images"]
    assert image["name"] == container()["image"]


def container() -> dict[str, Any]:
    (one,) = manifest("deployment.yaml")["spec"]["template"]["spec"]["containers"]
    return one


def test_everything_selects_the_pods_of_the_deployment() -> None:
    spec = manifest("deployment.yaml")["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels
    assert manifest("service.yaml")["spec"]["selector"] == labels
    assert manifest("disruption.yaml")["spec"]["selector"]["matchLabels"] == labels
    (spread,) = spec["template"]["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"]["matchLabels"] == labels
    scaled = manifest("scaling.yaml")["spec"]["scaleTargetRef"]
    about = manifest("deployment.yaml")
    assert (scaled["apiVersion"], scaled["kind"], scaled["name"]) == (
        about["apiVersion"],
        about["kind"],
        about["metadata"]["name"],
    )
    assert "replicas" not in spec, "each apply would undo what scaling.yaml decided"
    assert manifest("scaling.yaml")["spec"]["minReplicas"] > manifest("disruption.yaml")["spec"]["maxUnavailable"]


def test_the_workers_are_like_the_parlours_but_for_their_role_and_no_request_finds_its_way_there() -> None:
    told, workers = manifest("deployment.yaml"), manifest("workers/deployment.yaml")
    labels = workers["spec"]["template"]["metadata"]["labels"]
    assert workers["spec"]["selector"]["matchLabels"] == labels
    assert manifest("service.yaml")["spec"]["selector"] != labels
    pod, own = told["spec"]["template"]["spec"], workers["spec"]["template"]["spec"]
    own["topologySpreadConstraints"] = pod["topologySpreadConstraints"]
    assert own["containers"][0].pop("env") == [{"name": "PARLOUR_ROLE", "value": "worker"}]
    (image,) = manifest("kustomization.yaml")["images"]
    assert own["containers"][0].pop("image") == f"{image['newName']}:{image['newTag']}"
    pod["containers"][0].pop("image")
    assert own == pod


def test_a_sandbox_on_kubernetes_has_one_secret_and_is_reached_by_the_parlours_alone() -> None:
    sandboxes, service = manifest("sandbox/statefulset.yaml"), manifest("sandbox/service.yaml")
    spec = sandboxes["spec"]
    pod = spec["template"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels == service["spec"]["selector"]
    assert pod["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"] == labels
    assert (service["spec"]["clusterIP"], service["metadata"]["name"]) == ("None", spec["serviceName"])
    (own,), told = pod["containers"], container()
    assert {one["name"] for one in own["env"]} == {"PARLOUR_ROLE", "PARLOUR_SANDBOX_SECRET"}
    assert "envFrom" not in own
    (secret,) = [one["valueFrom"]["secretKeyRef"] for one in own["env"] if "valueFrom" in one]
    example = manifest("secret.example.yaml")
    assert (secret["name"], secret["key"] in example["stringData"]) == (example["metadata"]["name"], True)
    for name in ("securityContext", "ports", "readinessProbe", "livenessProbe"):
        assert own[name] == told[name], name
    parlour = manifest("deployment.yaml")["spec"]["template"]["spec"]
    for name in ("securityContext", "automountServiceAccountToken", "enableServiceLinks"):
        assert pod[name] == parlour[name], name
    assert pod["terminationGracePeriodSeconds"] > LAST
    (image,) = manifest("kustomization.yaml")["images"]
    assert own["image"] == f"{image['newName']}:{image['newTag']}"
    text = (KUBERNETES / "config.yaml").read_text("utf-8")
    addresses = re.findall(r"http://(parlour-sandbox-\d)\.([a-z-]+):(\d+)", text)
    (port,) = service["spec"]["ports"]
    (inside,) = told["ports"]
    name = sandboxes["metadata"]["name"]
    assert addresses == [
        (f"{name}-{n}", spec["serviceName"], str(inside["containerPort"])) for n in range(spec["replicas"])
    ]
    assert (port["port"], port["targetPort"]) == (inside["containerPort"], inside["name"])


def test_no_packet_of_a_sandbox_on_kubernetes_leaves_it_but_its_answers() -> None:
    policy = manifest("sandbox/network.yaml")["spec"]
    labels = manifest("sandbox/statefulset.yaml")["spec"]["template"]["metadata"]["labels"]
    assert (policy["podSelector"]["matchLabels"], policy["egress"]) == (labels, [])
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    ((rule,),) = [one["from"] for one in policy["ingress"]]
    (wanted,) = rule["podSelector"]["matchExpressions"]
    files = ("deployment.yaml", "workers/deployment.yaml")
    known = [manifest(one)["spec"]["template"]["metadata"]["labels"][wanted["key"]] for one in files]
    assert (wanted["operator"], wanted["values"]) == ("In", known)


def test_a_request_finds_its_way_from_the_ingress_to_the_port_of_the_image() -> None:
    (rule,) = manifest("ingress.yaml")["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    service = manifest("service.yaml")
    (port,) = service["spec"]["ports"]
    assert path["backend"]["service"] == {"name": service["metadata"]["name"], "port": {"name": port["name"]}}
    (inside,) = container()["ports"]
    assert port["targetPort"] == inside["name"]
    assert f"PARLOUR_PORT={inside['containerPort']}" in (ROOT / "Dockerfile").read_text("utf-8")
    (tls,) = manifest("ingress.yaml")["spec"]["tls"]
    assert tls["hosts"] == [rule["host"]] == [manifest("config.yaml")["data"]["PARLOUR_ALLOWED_HOSTS"]]
    notes = manifest("ingress.yaml")["metadata"]["annotations"]
    assert all(isinstance(value, str) for value in notes.values())
    assert notes["nginx.ingress.kubernetes.io/affinity"] == "cookie"


def test_no_pod_takes_the_address_of_the_service_for_its_port() -> None:
    pods = [manifest(one)["spec"]["template"]["spec"] for one in ("deployment.yaml", "workers/deployment.yaml")]
    assert [pod["enableServiceLinks"] for pod in pods] == [False, False]


def test_a_pod_has_no_rights_and_writes_nowhere_but_where_the_image_does() -> None:
    pod = manifest("deployment.yaml")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert f"--uid {pod['securityContext']['runAsUser']} parlour" in (ROOT / "Dockerfile").read_text("utf-8")
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not pod["automountServiceAccountToken"]
    assert {one["mountPath"] for one in container()["volumeMounts"]} == {"/data", "/tmp"}
    assert {one["name"] for one in container()["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
    names = {next(iter(one.values()))["name"] for one in container()["envFrom"]}
    assert names == {manifest(name)["metadata"]["name"] for name in ("config.yaml", "secret.example.yaml")}


def test_probes_ask_what_is_answered_and_a_pod_has_the_time_to_drain() -> None:
    probes = {name: one["httpGet"]["path"] for name, one in container().items() if name.endswith("Probe")}
    assert probes == {"startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"}
    pod = manifest("deployment.yaml")["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > float(manifest("config.yaml")["data"]["PARLOUR_DRAIN_SECONDS"]) + 5
    noticed = container()["readinessProbe"]
    assert noticed["periodSeconds"] * noticed["failureThreshold"] <= 5, "a Parlour waits five seconds for that"


def test_no_secret_stands_among_the_settings() -> None:
    hidden = {
        f"PARLOUR_{name.upper()}" for name, field in Settings.model_fields.items() if "Secret" in str(field.annotation)
    }
    assert not hidden & manifest("config.yaml")["data"].keys()
