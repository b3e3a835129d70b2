"""The containers that operate an indexer or a node."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

from chainkit_node.settings import StrangerLimits
from support.operations import DASHBOARD, OPERATIONS, load, parse
from support.project import ROOT

COMPOSE = load(OPERATIONS / "compose.yaml")
FOLLOWERS = ("indexer", "node")
PANELS = json.loads(DASHBOARD.read_text())
DOCKERFILE = (OPERATIONS / "Dockerfile").read_text()


def test_image__default_command_and_composes__are_what_run_takes() -> None:
    default = json.loads(re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)[0])

    assert default[:2] == ["index", "run"]
    for words in (default, *(COMPOSE["services"][name]["command"] for name in FOLLOWERS)):
        command = parse([str(word) for word in words])
        assert command.name == "run"
        assert "--listen" in words


@pytest.mark.parametrize("name", FOLLOWERS)
def test_compose__environment_of_a_follower__is_what_its_run_reads(name: str) -> None:
    service = COMPOSE["services"][name]
    known = {
        parameter.envvar
        for parameter in parse(service["command"][:2]).params
        if isinstance(parameter, click.Option)
    }
    entrypoint = (OPERATIONS / "entrypoint.sh").read_text()
    from_files = set(re.findall(r"^for name in (.*); do$", entrypoint, re.MULTILINE)[0].split())

    for variable, value in service["environment"].items():
        if value.startswith("/run/secrets/"):
            assert value.removeprefix("/run/secrets/") in service["secrets"]
        if variable.removesuffix("_FILE") not in from_files:
            assert variable in known, variable
    assert from_files - {"PGPASSWORD", "CHAINKIT_WALLET_RPC"} <= known
    assert ("CHAINKIT_WALLET_RPC" in known) is (name == "node")
    required = {"CHAINKIT_DEPLOYMENT", "CHAINKIT_KEYSTORE", "CHAINKIT_DATABASE"}
    assert required <= service["environment"].keys()


def test_compose__node__serves_everybody_by_tls_in_the_indexers_place() -> None:
    node, indexer = (COMPOSE["services"][name] for name in ("node", "indexer"))

    assert node["profiles"] == ["node"]
    assert node["command"][node["command"].index("--grpc") + 1] == "0.0.0.0:5051"
    assert "--plain-text" not in node["command"]
    assert {"CHAINKIT_TLS_CERTIFICATE", "CHAINKIT_TLS_KEY"} <= node["environment"].keys()
    assert "EXPOSE 9464 5050 5051 5052" in DOCKERFILE
    assert node["networks"]["default"]["aliases"] == ["indexer"]
    assert node["ulimits"]["nofile"] > StrangerLimits().connections
    for field in ("build", "image", "read_only", "cap_drop", "security_opt", "restart"):
        assert node[field] == indexer[field]
    assert node["environment"].items() >= indexer["environment"].items()


def test_guide__of_containers__prunes_beside_the_node() -> None:
    guide = (OPERATIONS / "README.md").read_text()
    [words] = re.findall(r"docker compose run --rm node (node prune.*)$", guide, re.MULTILINE)
    known = {each.envvar for each in parse(words.split()).params}

    assert "CHAINKIT_DATABASE" in known & COMPOSE["services"]["node"]["environment"].keys()


def test_compose__gateway__has_its_own_key_and_keeps_its_journal() -> None:
    gateway, indexer = (COMPOSE["services"][name] for name in ("gateway", "indexer"))
    command = parse(gateway["command"])
    known = {each.envvar for each in command.params if isinstance(each, click.Option)}

    assert command.name == "run" and gateway["profiles"] == ["gateway"]
    assert set(gateway["environment"]) - {"CHAINKIT_RPC_FILE"} <= known
    for value in (*gateway["environment"].values(), "/run/secrets/gateway_tokens"):
        if value.startswith("/run/secrets/"):
            assert value.removeprefix("/run/secrets/") in gateway["secrets"]
    assert not set(gateway["secrets"]) & {"keystore", "keystore_password", "database_password"}
    assert gateway["environment"]["CHAINKIT_GATEWAY_JOURNAL"].startswith("/data/")
    assert "gateway:/data" in gateway["volumes"]
    for field in ("build", "image", "read_only", "cap_drop", "security_opt", "restart"):
        assert gateway[field] == indexer[field]


def test_compose__storage_service__keeps_its_files_and_has_no_key_but_for_grants() -> None:
    backups, indexer = (COMPOSE["services"][name] for name in ("backups", "indexer"))
    command = parse(backups["command"])
    known = {each.envvar for each in command.params if isinstance(each, click.Option)}

    assert command.name == "serve" and backups["profiles"] == ["backups"]
    assert set(backups["environment"]) <= known
    assert backups["secrets"] == ["grant_key"]
    assert "--grant-key=/run/secrets/grant_key" in backups["command"]
    assert backups["environment"]["CHAINKIT_BACKUPS_FOLDER"].startswith("/data/")
    assert "backups:/data" in backups["volumes"]
    assert backups["ports"] == ["127.0.0.1:5052:5052", "127.0.0.1:9466:9464"]
    for field in ("build", "image", "read_only", "cap_drop", "security_opt", "restart"):
        assert backups[field] == indexer[field]


def test_compose__each_service__restarts_and_what_holds_state_has_a_volume() -> None:
    services = COMPOSE["services"]

    for service in services.values():
        assert service["restart"] == "unless-stopped"
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:") or port == "5051:5051"
    for name in (*FOLLOWERS, "gateway", "backups", "database", "prometheus"):
        assert "stop_grace_period" in services[name]
    mounted = {
        volume.split(":")[0]
        for service in services.values()
        for volume in service.get("volumes", [])
    }
    assert {name for name in mounted if not name.startswith(".")} == COMPOSE["volumes"].keys()
    ignored = (OPERATIONS / ".gitignore").read_text().split()
    for path in (name for name in mounted if name.startswith("./")):
        assert path[2:] in ignored or (OPERATIONS / path).exists(), path


PINNED = re.compile(r"[a-z/]+:v?\d+(\.\d+)+[\w-]*@sha256:[0-9a-f]{64}")


def test_images__of_others__are_named_by_digest() -> None:
    bases = set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE))
    taken = {each["image"] for each in COMPOSE["services"].values() if "build" not in each}

    assert len(bases) == 1 and len(taken) == 3
    for image in bases | taken:
        assert PINNED.fullmatch(image), image


def test_compose__each_service__has_a_limit_of_memory() -> None:
    for name, service in COMPOSE["services"].items():
        assert re.fullmatch(r"\d+[mg]", service["mem_limit"]), name


def test_compose__secrets__are_files_that_git_ignores() -> None:
    used = {
        secret for service in COMPOSE["services"].values() for secret in service.get("secrets", [])
    }

    assert used == COMPOSE["secrets"].keys()
    for secret in COMPOSE["secrets"].values():
        assert secret["file"].startswith("./secrets/")
    assert "secrets/" in (OPERATIONS / ".gitignore").read_text().split()


def test_image__what_it_copies__exists_and_reaches_the_builder() -> None:
    copies = re.findall(r"^COPY (?:--chmod=\d+ )?(.+) \S+$", DOCKERFILE, re.MULTILINE)
    sources = [name for line in copies for name in line.split()]
    allowed = re.findall(
        r"^!(.+)$", (OPERATIONS / "Dockerfile.dockerignore").read_text(), re.MULTILINE
    )

    assert set(sources) == set(allowed)
    for name in sources:
        assert (ROOT / name).exists(), name
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]["wheel"]["packages"]
    assert {package.split("/")[0] for package in packages} <= set(sources)


def test_image__final_stage__is_slim_without_root_and_without_secrets() -> None:
    stage = DOCKERFILE.split("\nFROM ")[-1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert re.match(r"python:3\.11\.\d+-slim@", stage)
    assert project["requires-python"] == ">=3.11"
    [extras] = re.findall(r"chainkit\[(.*?)\]", stage)
    assert {"backups", "gateway", "indexer", "node", "s3"} == set(extras.split(","))
    assert set(extras.split(",")) <= project["optional-dependencies"].keys()
    assert stage.index("USER chainkit") < stage.index("ENTRYPOINT")
    assert not re.search("PASSWORD|SECRET|KEYSTORE|TOKEN|^ARG", DOCKERFILE, re.MULTILINE)


def test_image__sequence_record__is_in_the_folder_that_compose_keeps() -> None:
    [record] = re.findall(r"^ENV CHAINKIT_SEQUENCE_RECORD=(\S+)$", DOCKERFILE, re.MULTILINE)
    node = COMPOSE["services"]["node"]
    known = {
        each.envvar for each in parse(node["command"]).params if isinstance(each, click.Option)
    }

    assert "CHAINKIT_SEQUENCE_RECORD" in known
    assert str(Path(record).parent) == re.findall(r"^VOLUME (\S+)$", DOCKERFILE, re.MULTILINE)[0]
    assert f"node:{Path(record).parent}" in node["volumes"]


def test_port__listened_on__is_probed_exposed_published_and_scraped() -> None:
    scraping = load(OPERATIONS / "prometheus" / "prometheus.yml")
    job, gateway_job, backups_job = scraping["scrape_configs"]

    assert gateway_job["static_configs"] == [{"targets": ["gateway:9464"]}]
    assert backups_job["static_configs"] == [{"targets": ["backups:9464"]}]
    assert job["job_name"] == "chainkit-indexer"
    assert job["static_configs"] == [{"targets": ["indexer:9464"]}]
    assert COMPOSE["services"]["indexer"]["ports"] == ["127.0.0.1:9464:9464"]
    assert COMPOSE["services"]["node"]["ports"] == ["5051:5051", "127.0.0.1:9464:9464"]
    assert "EXPOSE 9464" in DOCKERFILE
    assert "http://127.0.0.1:9464/healthz" in DOCKERFILE
    for name in scraping["rule_files"]:
        assert (OPERATIONS / "prometheus" / name).exists()


def test_grafana__provisioned__finds_its_source_and_its_dashboard() -> None:
    provisioning = OPERATIONS / "grafana" / "provisioning"
    (source,) = load(provisioning / "datasources" / "prometheus.yaml")["datasources"]
    (provider,) = load(provisioning / "dashboards" / "chainkit.yaml")["providers"]
    grafana = COMPOSE["services"]["grafana"]

    targets = [volume.split(":")[1] for volume in grafana["volumes"]]
    assert f"{provider['options']['path']}/dashboard.json" in targets
    assert grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] in targets
    used = {
        target["datasource"]["uid"]
        for panel in PANELS["panels"]
        for target in panel.get("targets", [])
    }
    assert used == {source["uid"]}
    identifiers = [panel["id"] for panel in PANELS["panels"]]
    assert len(set(identifiers)) == len(identifiers)


def run_entrypoint(folder: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    program = folder / "chainkit"
    program.write_text(
        "#!/bin/sh\n"
        'printf "%s\\n" "$*" "${CHAINKIT_RPC-unset}" "${PGPASSWORD-unset}" '
        '"${PGPASSWORD_FILE-unset}"\n'
    )
    program.chmod(0o755)
    output = subprocess.run(
        [OPERATIONS / "entrypoint.sh", *arguments],
        env={"PATH": f"{folder}:{os.environ['PATH']}", **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = ("arguments", "CHAINKIT_RPC", "PGPASSWORD", "PGPASSWORD_FILE")
    return dict(zip(names, output.splitlines(), strict=True))


def test_entrypoint__mounted_secret__becomes_the_variable_and_no_argument(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("p $(touch x) 'q'\"; rm\n")

    seen = run_entrypoint(tmp_path, "index", "run", PGPASSWORD_FILE=str(secret))

    assert seen == {
        "arguments": "index run",
        "CHAINKIT_RPC": "unset",
        "PGPASSWORD": "p $(touch x) 'q'\"; rm",
        "PGPASSWORD_FILE": "unset",
    }


def test_entrypoint__secret_that_is_missing__ends_before_the_program(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run_entrypoint(tmp_path, CHAINKIT_RPC_FILE=str(tmp_path / "none"))
