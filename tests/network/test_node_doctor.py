"""``chainkit doctor --role node``: the machine, and what a node is given, well and broken."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chainkit.service.certificate import CertificateFiles
from chainkit_node.cli import machine
from localnet.anvil import Anvil
from localnet.commands import Settings
from support.command_line import run
from support.network.certificates import make_pair, write_pair


@pytest.fixture(autouse=True)
def kept_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose clock NTP keeps, with room on its disk and for files."""
    monkeypatch.setattr(machine, "kernel_state", lambda: 0)
    monkeypatch.setattr(machine, "open_files", lambda: (1024, 20_000))
    free = SimpleNamespace(total=1000 * 10**9, used=0, free=900 * 10**9)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: free)


def looked(*options: object) -> dict[str, tuple[bool, str]]:
    """Return what the command finds beside packages, by name."""
    done = run("doctor", "--role", "node", "--json", *options)
    found = [each for each in done.content if each["detail"] != "installed"]
    assert done.code == (0 if all(each["present"] for each in found) else 1)
    return {
        each["name"]: (each["present"], each["detail"]) for each in found if each["role"] == "node"
    }


def missing(name: str, *options: object) -> str:
    is_present, detail = looked(*options)[name]
    assert not is_present
    return detail


def head_time(chain: Anvil) -> int:
    return int(chain.request("eth_getBlockByNumber", "latest", False)["timestamp"], 16)


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    return CertificateFiles(tmp_path / "certificate.pem", tmp_path / "key.pem")


def tls(files: CertificateFiles) -> tuple[object, ...]:
    return "--tls-certificate", files.certificate, "--tls-key", files.key


def test_doctor__node_that_is_given_all__finds_all_well(
    settings: Settings,
    chain: Anvil,
    files: CertificateFiles,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_pair((files.certificate, files.key), make_pair())
    monkeypatch.setattr(machine, "now", lambda: head_time(chain) + 2.0)
    given = ("--rpc", settings.rpc_url, "--deployment", settings.record_path)

    found = looked(*given, "--database", tmp_path / "node.db", *tls(files))

    assert list(found) == ["libpython", "open files", "disk", "certificate", "endpoint 1", "clock"]
    assert all(is_present for is_present, _ in found.values()), found
    assert found["disk"][1] == f"900.0 of 1000.0 GB free for {tmp_path}"
    assert found["certificate"][1].endswith("days until it ends; of localhost")
    assert found["endpoint 1"][1].endswith(" old, the deployment's contracts are there")
    assert found["clock"][1] == f"2 s after the newest block at {settings.rpc_url}"


@pytest.mark.parametrize(
    ("seconds", "said"), [(600, "got one 600 s ahead"), (-600, "got one 600 s behind")]
)
def test_doctor__clock_that_the_chain_contradicts__is_a_fault(
    settings: Settings, chain: Anvil, monkeypatch: pytest.MonkeyPatch, seconds: int, said: str
) -> None:
    monkeypatch.setattr(machine, "now", lambda: head_time(chain) + float(seconds))

    assert said in missing("clock", "--rpc", settings.rpc_url)


def test_doctor__clock_that_nothing_keeps__is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "kernel_state", lambda: 5)

    assert (
        missing("clock") == "clock: expected one that NTP keeps right, got one that nothing keeps"
    )


def test_doctor__kernel_that_knows_no_clock__is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "kernel_state", lambda: None)

    assert looked()["clock"] == (True, "not compared: give --rpc")


def test_doctor__endpoint_that_does_not_answer__is_a_fault_without_its_key() -> None:
    said = missing("endpoint 1", "--rpc", "http://127.0.0.1:9/SECRET")

    assert "got connection refused" in said
    assert "SECRET" not in said


def test_doctor__endpoint_of_another_chain__is_a_fault(settings: Settings, tmp_path: Path) -> None:
    record = tmp_path / "deployment.json"
    text = settings.record_path.read_text()
    record.write_text(text.replace('"chain_id": 31337', '"chain_id": 1'))
    assert record.read_text() != text

    said = missing("endpoint 1", "--rpc", settings.rpc_url, "--deployment", record)

    assert said == f"chain id at {settings.rpc_url}: expected 1, got 31337"


def test_doctor__few_open_files__is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "open_files", lambda: (1024, 4096))

    assert "expected at least 10200, for 10000 connections, got 4096" in missing("open files")


def test_doctor__disk_that_is_nearly_full__is_a_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    free = SimpleNamespace(total=100 * 10**9, used=0, free=9 * 10**9)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: free)

    said = missing("disk", "--database", f"sqlite:///{tmp_path}/node.db")

    assert said == f"disk of {tmp_path}: expected 10% free, got 9.0 of 100.0 GB"


def test_doctor__folder_of_the_record_that_is_missing__is_a_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.undo()

    said = missing("disk", "--sequence-record", tmp_path / "none" / "record")

    assert said == f"{tmp_path}/none: expected a folder, got No such file or directory"


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (-1, "expected one that is valid now, got certificate has expired"),
        (13.5, "expected 14 days until it ends, got 13.5"),
    ],
)
def test_doctor__certificate_at_its_end__is_a_fault(
    files: CertificateFiles, days: float, said: str
) -> None:
    write_pair((files.certificate, files.key), make_pair(days))

    assert said in missing("certificate", *tls(files))


def test_doctor__certificate_that_no_server_can_use__is_a_fault(files: CertificateFiles) -> None:
    assert "No such file" in missing("certificate", *tls(files))
    (certificate, _), (_, key) = make_pair(), make_pair()
    write_pair((files.certificate, files.key), (certificate, key))
    assert "expected a PEM certificate and its key" in missing("certificate", *tls(files))
    alone: dict[str, Any] = looked("--tls-certificate", files.certificate)
    assert alone["certificate"] == (
        False,
        "--tls-key: expected certificate and key together, got one of them",
    )
