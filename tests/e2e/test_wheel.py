"""The wheel, installed with one extra at a time: each role's commands find what they import."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Final

import pytest

from chainkit_client.accounts import page
from chainkit_client.mls import program as mls_program
from chainkit_client.mls.program import pinned_digests
from chainkit_jobs.spark.environment import packages_behind
from localnet.accounts import COUNCIL
from localnet.commands import Background, CommandFailed, Settings, run, run_json
from localnet.network import start_gateway, start_service, wait_for_entry
from localnet.private_file import write_private
from support.audit.identities import key_of
from support.chains.chain import Deployment, dev_address, redeployed
from support.project import ROOT
from support.seeds import only_in_soak

PASSWORD = "wheel"
PACKAGES = ("src", "indexer", "node", "gateway", "client", "jobs", "backups")
COMMANDS: Final = {
    "none": ("key", "registry", "council", "contracts", "doctor"),
    "council": ("council",),
    "client": ("client",),
    "gateway": ("gateway",),
    "backups": ("backups",),
    "indexer": ("index",),
    "node": ("node",),
    "audit": ("audit",),
    "contracts": ("registry", "contracts"),
}
"""The commands of the role that an extra is for."""

HEAVY: Final = ("audit", "contracts")
EXTRAS = [pytest.param(each, marks=only_in_soak if each in HEAVY else ()) for each in COMMANDS]
HELP_OF_ALL: Final = """
import sys
import click
from chainkit.cli.main import chainkit

def show(*path):
    chainkit.main([*path, "--help"], "chainkit", standalone_mode=False)
    command = chainkit
    for name in path:
        command = command.get_command(click.Context(command), name)
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            show(*path, name)

for name in sys.argv[1:]:
    show(name)
"""


def build(folder: Path, out: Path, kind: str = "wheel") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


def uv(*arguments: str | Path) -> None:
    # Set-up downloaded all of it: no test waits for a network.
    command = ["uv", *map(str, arguments), "--offline", "--quiet"]
    downloads = {"UV_CACHE_DIR": f"{ROOT}/.cache/downloads/uv"} | os.environ
    subprocess.run(command, cwd=ROOT, env=downloads, check=True, timeout=300)


# ------------------------------------------------------------------ building it


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    done = build(ROOT, out)
    assert done.returncode == 0, done.stderr
    [built] = out.glob("*.whl")
    return built


@pytest.mark.parametrize("room", [mls_program.FOLDER, page.FOLDER], ids=lambda each: each.name)
def test_wheel__for_applications_without_npm__contains_what_npm_brings(
    wheel: Path, room: Path
) -> None:
    pinned = pinned_digests(room / "bundle.sha256")
    inside = f"chainkit_client/{room.name}/bundle"
    with zipfile.ZipFile(wheel) as archive:
        shipped = {
            name: hashlib.sha256(archive.read(f"{inside}/{name}")).hexdigest() for name in pinned
        }

    assert shipped == pinned


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The project before set-up: without the bundle, which git ignores."""
    folder = tmp_path / "clone"
    for name in PACKAGES:
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("bundle", "__pycache__")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.mark.parametrize("content", [None, b"another engine"], ids=["missing", "another"])
def test_build__without_the_pinned_engine__is_refused_in_one_sentence(
    clone: Path, tmp_path: Path, content: bytes | None
) -> None:
    bundle = clone / "client/chainkit_client/mls/bundle"
    if content is not None:
        bundle.mkdir()
        (bundle / "engine.mjs").write_bytes(content)

    done = build(clone, tmp_path / "out")

    assert done.returncode == 1
    assert re.fullmatch(
        r"client/\S+/engine\.mjs: expected SHA-256 .*`make mls-engine`.*\n", done.stderr
    )
    assert list((tmp_path / "out").glob("*")) == []


def test_build__at_set_up_and_of_the_image__needs_no_engine(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editable = build(clone, tmp_path / "editable", "wheel:editable")
    dockerfile = (ROOT / "operations/Dockerfile").read_text()
    [(name, value)] = re.findall(r"^RUN (\w+)=(\w+) pip wheel", dockerfile, re.MULTILINE)
    monkeypatch.setenv(name, value)
    image = build(clone, tmp_path / "image")

    assert (editable.returncode, image.returncode) == (0, 0), editable.stderr + image.stderr


# ------------------------------------------------------------------ installing it


@dataclass(frozen=True)
class Installed:
    """A virtual environment that has the wheel, and what one extra brings."""

    extra: str
    programs: Path


@pytest.fixture(scope="module")
def outside(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Processes that start from here on import nothing of this folder; the deployer did."""
    with pytest.MonkeyPatch.context() as patched:
        for name in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE"):
            patched.delenv(name, raising=False)
        # All environments have one path: what Python compiled for one serves the next as well.
        patched.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("compiled")))
        yield


@pytest.fixture(scope="module", params=EXTRAS)
def installed(
    request: pytest.FixtureRequest,
    wheel: Path,
    outside: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installed]:
    extra: str = request.param
    folder = tmp_path_factory.getbasetemp() / "installed"
    locked = tmp_path_factory.mktemp("locked") / f"{extra}.txt"
    locked.write_text(locked_for(wheel, extra))
    uv("venv", "--clear", "--python", sys.executable, folder)
    # As set-up installs: uv's cache has no more than such an installation asks for.
    uv("pip", "sync", "--python", folder, "--require-hashes", locked)
    # Without the cache, which would keep each wheel that a test ever built.
    uv("pip", "install", "--python", folder, "--no-deps", "--no-cache", wheel)
    yield Installed(extra, folder / "bin")
    shutil.rmtree(folder)


def locked_for(wheel: Path, extra: str) -> str:
    """Return the part of the lock file that the wheel needs with an extra."""
    with zipfile.ZipFile(wheel) as archive:
        [metadata] = [
            each for each in zipfile.Path(archive).iterdir() if each.name.endswith(".dist-info")
        ]
        needed = packages_behind(PathDistribution(metadata), {extra})
    entries = re.split(r"^(?=\w)", (ROOT / "requirements/dev.txt").read_text(), flags=re.MULTILINE)
    return "".join(each for each in entries if each.partition("==")[0] in needed)


def test_installed__each_command_of_the_role__prints_its_help(installed: Installed) -> None:
    names = COMMANDS[installed.extra]

    done = subprocess.run(
        [installed.programs / "python", "-c", HELP_OF_ALL, *names],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    shown = re.findall(r"^Usage: chainkit (\S+)", done.stdout, re.MULTILINE)
    assert set(shown) == set(names)
    assert len(shown) > len(names)


@pytest.fixture(scope="module")
def settings(
    local_deployment: Deployment, outside: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Settings]:
    """A chain whose registry lists one node, which nobody runs."""
    folder = tmp_path_factory.mktemp("chain")
    write_private(folder / "password", PASSWORD + "\n")
    with redeployed(local_deployment, folder) as chain:
        chain.add_node(dev_address(COUNCIL), key_of(100).public_key, "http://127.0.0.1:1")
        yield Settings(chain.url, chain.record_path, folder / "password")


def verify_contracts(settings: Settings, folder: Path) -> None:
    run(settings, "contracts", "verify")


def gather_reports(settings: Settings, folder: Path) -> None:
    # The code says that no node answered.
    page = run_json(settings, "council", "gather", folder / "evidence", expected=(2,))
    assert "UNAVAILABLE" in str(page["nodes"])


def start_the_engine(settings: Settings, folder: Path) -> None:
    looked = run_json(settings, "client", "doctor", "--home", folder, expected=(1,))
    assert {each["name"]: each["works"] for each in looked}["MLS engine"]


def run_a_gateway(settings: Settings, folder: Path) -> None:
    with ExitStack() as stack:
        start_gateway(stack, settings, folder, PASSWORD)


def run_a_storage_service(settings: Settings, folder: Path) -> None:
    place = ("--folder", folder / "files", "--http", "127.0.0.1:0", "--log-format", "json")
    service = Background(settings, folder / "log", "backups", "serve", *place)
    with ExitStack() as stack:
        start_service(stack, service, "backups_listening")


def run_an_indexer(settings: Settings, folder: Path) -> None:
    run_follower(settings, folder, "listening", "index", "run", "--listen", "127.0.0.1:0")


def run_a_node(settings: Settings, folder: Path) -> None:
    run_follower(settings, folder, "node_listening", "node", "run", "--grpc", "127.0.0.1:0")


def run_follower(settings: Settings, folder: Path, event: str, *words: str) -> None:
    run(settings, "key", "new", "--keystore", folder / "key")
    place = ("--keystore", folder / "key", "--database", folder / "node.db")
    follower = Background(settings, folder / "log", *words, *place, "--log-format", "json")
    with ExitStack() as stack:
        stack.callback(follower.stop)
        follower.start()
        wait_for_entry(follower, lambda entry: entry.get("event") == event)


def export_the_chain(settings: Settings, folder: Path) -> None:
    run(settings, "audit", "export-chain", "--out", folder / "chain")
    assert (folder / "chain/manifest.json").exists()


def ask_ape_for_an_account(settings: Settings, folder: Path) -> None:
    with pytest.raises(CommandFailed, match="expected one that `ape accounts list --all` names"):
        run(settings, *("contracts", "pause", "GroupMessages", "--broadcast", "--account", "none"))


WORK: Final[dict[str, Callable[[Settings, Path], None]]] = {
    "none": verify_contracts,
    "council": gather_reports,
    "client": start_the_engine,
    "gateway": run_a_gateway,
    "backups": run_a_storage_service,
    "indexer": run_an_indexer,
    "node": run_a_node,
    "audit": export_the_chain,
    "contracts": ask_ape_for_an_account,
}


def test_installed__a_command_of_the_role__does_its_work(
    installed: Installed, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localnet.commands.CHAINKIT", str(installed.programs / "chainkit"))
    monkeypatch.setenv("APE_DATA_FOLDER", str(tmp_path / "ape"))

    WORK[installed.extra](settings, tmp_path)
