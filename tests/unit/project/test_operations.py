from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import promql_parser
import pytest
import yaml
from eth_keyfile import keyfile
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

import chainkit.errors
from chainkit.chain import Endpoint, EndpointPool, EndpointState
from chainkit.chain.heads import HeadWatcher
from chainkit.cli.main import chainkit as root_command
from chainkit.errors import (
    AccessRefused,
    ChainkitError,
    InconsistentAnswer,
    RateLimited,
    ReorgTooDeep,
    Unconfirmed,
)
from chainkit_indexer.log_lines import configure_logging, log_event
from chainkit_indexer.monitoring.health import Health
from chainkit_indexer.monitoring.limits import ReadyLimits
from chainkit_indexer.monitoring.metrics import Metrics
from chainkit_indexer.monitoring.narration import event_of_error, narrate_start
from support.indexer.loop_results import advanced, idle, logging_restored, rolled_back
from support.project import DOCS, ROOT

OPERATIONS = ROOT / "operations"
RUNBOOK = DOCS / "runbook"
GUIDES = (DOCS / "operator.md", OPERATIONS / "README.md", *sorted(RUNBOOK.glob("*.md")))
SECTIONS = ["What it means", "What users see", "First look", "Repair", "When to call somebody"]
SCRAPED = {"job", "instance"}
"""Labels that Prometheus adds to what it scrapes."""


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


COMPOSE = load(OPERATIONS / "compose.yaml")
ALARMS = [
    rule
    for group in load(OPERATIONS / "prometheus" / "rules.yml")["groups"]
    for rule in group["rules"]
]
DASHBOARD = json.loads((OPERATIONS / "grafana" / "dashboard.json").read_text())
DOCKERFILE = (OPERATIONS / "Dockerfile").read_text()


@pytest.fixture(scope="module")
def scrape() -> dict[str, Metric]:
    """What a real /metrics holds once everything has happened; sample name to its family."""
    metrics = Metrics(health := Health(ReadyLimits()))
    for result in (advanced(5), idle(5), rolled_back(2)):
        metrics.succeeded(result, 0.1)
        health.succeeded(result, 0.1)
    endpoint = Endpoint.connect("http://node")
    pool = EndpointPool([endpoint])
    for error in (
        RateLimited("node", "a", "b"),
        InconsistentAnswer("logs", "a", "b"),
        Unconfirmed("blocks", "a", "b"),
    ):
        pool.failed(endpoint, error)
        metrics.failed(error)
    metrics.stopped(ReorgTooDeep("chain", "a", "b"))
    with HeadWatcher(None, poll_seconds=1) as heads:
        metrics.watch(pool, heads, lambda: {"http://node": False})
        text = metrics.text().decode()
    return {
        sample.name: family
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def selectors(expression: str) -> list[Any]:
    found: list[Any] = []
    promql_parser.walk(
        promql_parser.parse(expression),
        lambda node: found.append(node) is None,
    )
    return [node for node in found if isinstance(node, promql_parser.VectorSelector)]


def dashboard_expressions() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"]
    for annotation in DASHBOARD["annotations"]["list"]:
        yield annotation["expr"]


@pytest.mark.parametrize(
    "expression", [*(alarm["expr"] for alarm in ALARMS), *dashboard_expressions()]
)
def test_expression__alarm_or_panel__uses_what_a_scrape_holds(
    expression: str, scrape: dict[str, Metric]
) -> None:
    found = selectors(expression)

    assert found
    for selector in found:
        if selector.name == "up":
            assert [m.value for m in selector.matchers.matchers] == ["chainkit-indexer"]
            continue
        family = scrape[selector.name]
        samples = [sample for sample in family.samples if sample.name == selector.name]
        for matcher in selector.matchers.matchers:
            if matcher.name in SCRAPED:
                continue
            values = {sample.labels[matcher.name] for sample in samples}
            assert matcher.value in values, f"{selector.name}: {matcher.name} of {values}"


def kinds_of_errors() -> set[str]:
    classes = [value for value in vars(chainkit.errors).values() if isinstance(value, type)]
    names = [each.__name__ for each in classes if issubclass(each, ChainkitError)]
    return {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in names}


def test_runbook__kinds_of_errors_that_it_names__exist() -> None:
    page = (RUNBOOK / "indexer-stopped.md").read_text()
    named = {
        name
        for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }

    assert len(named) >= 6
    assert named <= kinds_of_errors()


def test_state__named_by_an_alarm__exists() -> None:
    named = {
        matcher.value
        for alarm in ALARMS
        for selector in selectors(alarm["expr"])
        for matcher in selector.matchers.matchers
        if selector.name == "chainkit_indexer_endpoint_state" and matcher.name == "state"
    }

    assert named == {EndpointState.AVAILABLE, EndpointState.QUARANTINED, EndpointState.REFUSED}


def page_of(alarm: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", alarm).lower() + ".md"


@pytest.mark.parametrize("alarm", ALARMS, ids=lambda alarm: alarm["alert"])
def test_alarm__each__has_severity_summary_and_its_page(alarm: dict[str, Any]) -> None:
    assert alarm["labels"]["severity"] in ("critical", "warning")
    assert alarm["annotations"]["summary"].endswith(".")
    assert alarm["annotations"]["runbook_url"] == f"docs/runbook/{page_of(alarm['alert'])}"
    page = (RUNBOOK / page_of(alarm["alert"])).read_text()
    assert page.startswith(f"# {alarm['alert']}\n\nSeverity: {alarm['labels']['severity']}.\n")
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == SECTIONS
    assert len(page.splitlines()) <= 60, "one page"


@pytest.mark.parametrize("alarm", ALARMS, ids=lambda alarm: alarm["alert"])
def test_alarm__that_looks_back_at_a_process_that_ended__says_how_long_it_rings(
    alarm: dict[str, Any],
) -> None:
    windows = re.findall(r"max_over_time\(.*\[(\d+)m\]\)", alarm["expr"])

    page = (RUNBOOK / page_of(alarm["alert"])).read_text()
    assert all(f"{minutes} minutes" in page for minutes in windows)


@pytest.mark.parametrize("moment", ["while it runs", "at the start", "at the start, by all"])
def test_runbook__look_for_a_refusal_in_the_log__finds_it(
    moment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint = Endpoint.connect("http://node")
    pool = EndpointPool([endpoint])
    pool.failed(endpoint, refused := AccessRefused("node", "HTTP 200", "HTTP 403"))
    with logging_restored():
        configure_logging("json")
        if moment == "at the start":
            narrate_start(pool.statistics())
        else:
            log_event(event_of_error(refused, is_fatal=moment == "at the start, by all"))

    page = (RUNBOOK / "endpoint-refused.md").read_text()
    (pattern,) = re.findall("grep -iE '(.*?)'", page)
    assert re.search(pattern, capsys.readouterr().err, re.IGNORECASE)


def test_rules__their_own_test__has_each_alarm_silent_and_ringing() -> None:
    tests = load(OPERATIONS / "prometheus" / "rules_test.yml")["tests"]
    moments = [moment for test in tests for moment in test["alert_rule_test"]]

    for rings in (False, True):
        tested = {each["alertname"] for each in moments if bool(each.get("exp_alerts")) is rings}
        assert tested == {alarm["alert"] for alarm in ALARMS}
    names = {selector.name for alarm in ALARMS for selector in selectors(alarm["expr"])}
    given = {each["series"].partition("{")[0] for test in tests for each in test["input_series"]}
    assert given == names


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool, of Debian's prometheus")
def test_rules__their_own_test__holds_for_promtool() -> None:
    rules = OPERATIONS / "prometheus" / "rules_test.yml"

    done = subprocess.run(
        ["promtool", "test", "rules", rules], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_runbook__each_page__has_its_alarm() -> None:
    pages = {path.name for path in RUNBOOK.iterdir()}

    assert pages == {page_of(alarm["alert"]) for alarm in ALARMS}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_guide__links__lead_somewhere(guide: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", guide.read_text()):
        assert (guide.parent / target).exists(), target


def commands_in(text: str) -> list[list[str]]:
    blocks = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    lines += re.findall(r"`(chainkit [^`]+)`", text)
    found = []
    for line in lines:
        match = re.search(
            r"^(?:\$ )?(?:ExecStart=)?(?:\S*/bin/)?chainkit (?P<rest>.*)"
            r"|docker compose run --rm indexer (?P<other>.*)",
            line,
        )
        if match and "…" not in line:
            found.append(shlex.split(match["rest"] or match["other"], comments=True))
    return found


def parse(words: list[str]) -> click.Command:
    """Find the command and let click's own parser judge the options."""
    command: click.Command = root_command
    context = click.Context(command, info_name="chainkit")
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, words
        command, words = found, words[1:]
        context = click.Context(command, parent=context)
    command.make_parser(context).parse_args(list(words))
    return command


def test_guides__each_command__is_one_that_the_parser_takes() -> None:
    commands = [command for guide in GUIDES for command in commands_in(guide.read_text())]

    assert len(commands) >= 25
    for words in commands:
        parse(words)


def test_guides__packages_that_they_install__come_from_a_clone() -> None:
    installed = [
        word
        for guide in GUIDES
        for block in re.findall(r"^```\n(.*?)^```", guide.read_text(), re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
        if (command := line.partition("pip install ")[2])
        for word in shlex.split(command, comments=True)
        if not word.startswith("-")
    ]

    assert installed
    assert [word for word in installed if not word.startswith(".[")] == []


def test_guide__memory_of_the_start__has_room_for_what_scrypt_takes() -> None:
    guide = (DOCS / "operator.md").read_text()
    told = re.findall(r"scrypt decrypts the keystore \| (\d+) MB|takes (\d+) MB of it", guide)
    (start, _), (_, scrypt) = told

    # What `chainkit key new` writes: RFC 7914 has the 128 bytes.
    taken = 128 * keyfile.SCRYPT_R * keyfile.get_default_work_factor_for_kdf("scrypt")
    assert int(scrypt) == round(taken / 1e6) < int(start)


def test_image__default_command_and_composes__are_what_run_takes() -> None:
    default = json.loads(re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)[0])

    for words in (default, COMPOSE["services"]["indexer"]["command"]):
        command = parse([str(word) for word in words])
        assert command.name == "run"
        assert "--listen" in words


def test_compose__environment_of_the_indexer__is_what_run_reads() -> None:
    known = {
        parameter.envvar
        for parameter in parse(["index", "run"]).params
        if isinstance(parameter, click.Option)
    }
    indexer = COMPOSE["services"]["indexer"]
    entrypoint = (OPERATIONS / "entrypoint.sh").read_text()
    from_files = set(re.findall(r"^for name in (.*); do$", entrypoint, re.MULTILINE)[0].split())

    for name, value in indexer["environment"].items():
        if name.endswith("_FILE") and name.removesuffix("_FILE") in from_files:
            assert value.removeprefix("/run/secrets/") in indexer["secrets"]
        else:
            assert name in known, name
    assert from_files - {"PGPASSWORD"} <= known
    required = {"CHAINKIT_DEPLOYMENT", "CHAINKIT_KEYSTORE", "CHAINKIT_DATABASE"}
    assert required <= indexer["environment"].keys()


def test_compose__each_service__restarts_and_what_holds_state_has_a_volume() -> None:
    services = COMPOSE["services"]

    for service in services.values():
        assert service["restart"] == "unless-stopped"
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:")
    for name in ("indexer", "database", "prometheus"):
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

    assert stage.startswith("python:3.11-slim\n")
    assert project["requires-python"] == ">=3.11"
    assert "chainkit[indexer]" in stage and "indexer" in project["optional-dependencies"]
    assert stage.index("USER chainkit") < stage.index("ENTRYPOINT")
    assert not re.search("PASSWORD|SECRET|KEYSTORE|TOKEN|^ARG", DOCKERFILE, re.MULTILINE)


def test_port__listened_on__is_probed_exposed_published_and_scraped() -> None:
    scraping = load(OPERATIONS / "prometheus" / "prometheus.yml")
    (job,) = scraping["scrape_configs"]

    assert job["job_name"] == "chainkit-indexer"
    assert job["static_configs"] == [{"targets": ["indexer:9464"]}]
    assert COMPOSE["services"]["indexer"]["ports"] == ["127.0.0.1:9464:9464"]
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
        for panel in DASHBOARD["panels"]
        for target in panel.get("targets", [])
    }
    assert used == {source["uid"]}
    identifiers = [panel["id"] for panel in DASHBOARD["panels"]]
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
