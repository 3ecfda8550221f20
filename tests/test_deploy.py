"""What runs Parlour on a server fits what is in this repository, and gives it no more rights than it needs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from core.settings import Settings

PACKAGES = {"everything": "requirements.lock", "service": "requirements-service.lock"}
ROOT = Path(__file__).resolve().parent.parent
OTHERS = {"PARLOUR_DOMAIN", "PARLOUR_PACKAGES"}  # of the compose file alone


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def compose() -> dict[str, Any]:
    return yaml.safe_load(text("compose.yaml"))


def test_the_image_is_made_of_what_is_here_and_runs_as_nobody_in_particular() -> None:
    lines = text("Dockerfile").splitlines()
    stages = [line for line in lines if line.startswith("FROM ")]
    assert len(stages) == 2
    copied = [
        word.replace("${PACKAGES}", packages)
        for line in lines
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
        for packages in PACKAGES.values()
    ]
    sent = {line.removeprefix("!") for line in text(".dockerignore").splitlines() if line.startswith("!")}
    assert set(copied) <= sent
    assert all((ROOT / one).exists() for one in copied)
    last = lines[lines.index(stages[1]) :]
    assert "USER parlour" in last
    assert last.index("USER parlour") < next(at for at, line in enumerate(last) if line.startswith("CMD"))
    assert any(line.startswith("HEALTHCHECK") for line in last)
    assert any("org.opencontainers.image.licenses" in line for line in lines)


def test_the_compose_file_keeps_the_root_closed_and_trusts_its_own_network_alone() -> None:
    told = compose()
    parlour, caddy = told["services"]["parlour"], told["services"]["caddy"]
    assert (parlour["read_only"], parlour["cap_drop"], parlour["tmpfs"]) == (True, ["ALL"], ["/tmp"])
    assert parlour["security_opt"] == ["no-new-privileges:true"]
    assert "ports" not in parlour, "it is reached through the proxy alone"
    (network,) = told["networks"]["inside"]["ipam"]["config"]
    assert parlour["environment"]["PARLOUR_TRUSTED_PROXIES"] == network["subnet"]
    mounted = [one.split(":")[0] for one in caddy["volumes"] if one.startswith("./")]
    assert all((ROOT / one).is_file() for one in mounted)
    assert "{$PARLOUR_DOMAIN}" in text("deploy/Caddyfile")


def test_every_variable_that_is_set_for_a_server_exists(tmp_path: Path) -> None:
    named = re.findall(
        r"PARLOUR_\w+",
        text("Dockerfile") + text("compose.yaml") + text(".env.example") + text("deploy/parlour.service"),
    )
    known = {f"PARLOUR_{name.upper()}" for name in Settings.model_fields}
    assert set(named) - known == OTHERS
    settings = Settings.load(
        home=tmp_path,
        host="0.0.0.0",
        allowed_hosts="chat.example.org",
        trusted_proxies=compose()["services"]["parlour"]["environment"]["PARLOUR_TRUSTED_PROXIES"],
    )
    assert (settings.has_local_owner, settings.allowed_hosts) == (False, ("chat.example.org",))
