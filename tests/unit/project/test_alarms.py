"""Alarms, panels and runbook: each names what a scrape has, and each alarm has its page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

import chainkit.errors
from chainkit.chain import Endpoint, EndpointPool, EndpointState
from chainkit.chain.heads import HeadWatcher
from chainkit.errors import (
    AccessRefused,
    ChainkitError,
    InconsistentAnswer,
    RateLimited,
    ReorgTooDeep,
    Unconfirmed,
)
from chainkit.service.log_lines import configure_logging, log_event
from chainkit.service.node_token import TokenFault
from chainkit_backups.admission import Admission
from chainkit_backups.monitoring import BackupsMonitor
from chainkit_backups.store import Store
from chainkit_backups.types import Kind, Limits
from chainkit_gateway.monitoring import GatewayMonitor
from chainkit_indexer.monitoring.health import Health
from chainkit_indexer.monitoring.limits import ReadyLimits
from chainkit_indexer.monitoring.metrics import Metrics
from chainkit_indexer.monitoring.narration import event_of_error, narrate_start
from chainkit_node.cli.machine import LEAST_FREE
from chainkit_node.peers.directory import RegistryState
from chainkit_node.replicating.intake import Taken
from chainkit_node.replicating.repairer import Repair
from chainkit_node.serving.metrics import NodeMetrics
from support.indexer.loop_results import advanced, idle, logging_restored, rolled_back
from support.operations import DASHBOARD, OPERATIONS, RUNBOOK, load
from support.project import ROOT

SECTIONS = ["Meaning", "Effect on users", "First look", "Repair", "When to call somebody"]
SCRAPED = {"job", "instance"}
"""Labels that Prometheus adds to what it scrapes."""

OF_SERVICES = ("chainkit_node_", "chainkit_gateway_", "chainkit_backups_")
PROMETHEUS = load(OPERATIONS / "prometheus" / "prometheus.yml")

ALARMS = [
    rule
    for group in load(OPERATIONS / "prometheus" / "rules.yml")["groups"]
    for rule in group["rules"]
]
PANELS = json.loads(DASHBOARD.read_text())


@pytest.fixture(scope="module")
def scrape(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Metric]:
    """A real /metrics once everything has happened; sample name to its family."""
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
        metrics.watch(pool, heads, lambda: {"http://node": False}, int)
        metrics.watch_disk(ROOT)
        text = (metrics.text() + node_numbers()).decode()
    text += GatewayMonitor(int, int).paths["/metrics"]().body.decode()
    text += storage_numbers(tmp_path_factory.mktemp("backups"))
    return {
        sample.name: family
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def node_numbers() -> bytes:
    """The node's part of a scrape."""
    metrics = NodeMetrics()
    metrics.refused("QueryEnvelopes", "INVALID_ARGUMENT")
    metrics.sent("QueryEnvelopes", 1)
    metrics.reports.holds({})
    metrics.knows_registry(lambda: RegistryState.ENABLED)
    metrics.refused_token(TokenFault.WRONG_AUDIENCE)
    taken = Taken(1, 0, 0, 0, 1)
    metrics.replicated(200, taken)
    metrics.repaired(Repair(200, 200, taken))
    metrics.knows_certificate(lambda: 1.0)
    return metrics.text()


def storage_numbers(folder: Path) -> str:
    """A storage service's part of a scrape."""
    store = Store.open(folder, float)
    try:
        limits = dict.fromkeys(Kind, Limits(1, 1, 1))
        monitor = BackupsMonitor(store, Admission(limits, (), float))
        return monitor.paths["/metrics"]().body.decode()
    finally:
        store.close()


def selectors(expression: str) -> list[Any]:
    found: list[Any] = []
    promql_parser.walk(
        promql_parser.parse(expression),
        lambda node: found.append(node) is None,
    )
    return [node for node in found if isinstance(node, promql_parser.VectorSelector)]


def dashboard_expressions() -> Iterator[str]:
    for panel in PANELS["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"]
    for annotation in PANELS["annotations"]["list"]:
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
            [job] = [m.value for m in selector.matchers.matchers]
            assert job in {each["job_name"] for each in PROMETHEUS["scrape_configs"]}
            continue
        family = scrape[selector.name]
        samples = [sample for sample in family.samples if sample.name == selector.name]
        for matcher in selector.matchers.matchers:
            if matcher.name in SCRAPED:
                continue
            values = {sample.labels[matcher.name] for sample in samples}
            # The pattern of an alternation names each of its values.
            assert set(matcher.value.split("|")) <= values, (
                f"{selector.name}: {matcher.name} of {values}"
            )


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


def test_alarm__of_a_node_or_another_service__has_its_number_in_a_panel() -> None:
    def names(expression: str) -> set[str]:
        return {selector.name for selector in selectors(expression)}

    shown = set().union(*map(names, dashboard_expressions()))
    watched = {
        name
        for alarm in ALARMS
        for name in names(alarm["expr"])
        if name.startswith((*OF_SERVICES, "chainkit_indexer_disk"))
    }

    assert len(watched) > 10
    assert watched <= shown


def test_dashboard__its_variable__has_a_process_that_only_reads() -> None:
    [variable] = PANELS["templating"]["list"]

    [pattern] = re.findall('__name__=~"(.*)"', variable["query"]["query"])
    assert re.fullmatch(pattern, "chainkit_node_ready")
    assert re.fullmatch(pattern, "chainkit_indexer_ready")


def test_alarm__of_the_disk__rings_where_doctor_finds_a_fault() -> None:
    [alarm] = [each for each in ALARMS if each["alert"] == "DiskNearlyFull"]

    assert f"_disk_bytes < {LEAST_FREE}\n" in alarm["expr"].replace(" or", "\n or")


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
