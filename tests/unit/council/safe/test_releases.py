import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from chainkit.contracts.interface import shipped_interface
from chainkit.council.safe import identify, known_contracts, known_versions
from chainkit.signatures import keccak256
from localnet.deployment import PROJECT
from tools import write_safe_releases

DEPLOYMENTS = PROJECT / "node_modules/@safe-global/safe-deployments/dist/assets"
KNOWN = known_contracts()


def published() -> Iterator[tuple[tuple[str, str], Any]]:
    """The entries of Safe's own register of deployments, by name and version."""
    for version in known_versions():
        for path in sorted((DEPLOYMENTS / f"v{version}").glob("*.json")):
            content = json.loads(path.read_text())
            yield (content["contractName"], version), content["deployments"]["canonical"]


def code_of(name: str, version: str) -> bytes:
    content = write_safe_releases.artifact(version, name)
    assert content is not None
    return bytes.fromhex(content["deployedBytecode"][2:])


def test_releases__each_published_contract_that_is_known__is_where_it_was_published() -> None:
    compared = [(KNOWN[key], canonical) for key, canonical in published() if key in KNOWN]

    for known, canonical in compared:
        assert known.address == bytes.fromhex(canonical["address"][2:])
        assert known.code_hash == bytes.fromhex(canonical["codeHash"][2:])
    # No register lists proxies, and that of 1.4.1 no token callback handler.
    missing = set(KNOWN) - {(known.name, known.version) for known, _ in compared}
    assert missing == {
        ("SafeProxy", "1.4.1"),
        ("SafeProxy", "1.5.0"),
        ("TokenCallbackHandler", "1.4.1"),
    }


def test_releases__every_one__has_what_an_account_is_made_of() -> None:
    assert known_versions() == ("1.4.1", "1.5.0")
    for version in known_versions():
        for name in ("Safe", "SafeL2", "SafeProxy", "SafeProxyFactory", "MultiSendCallOnly"):
            assert (name, version) in KNOWN


def test_releases__code_hashes__are_all_distinct() -> None:
    assert len({known.code_hash for known in KNOWN.values()}) == len(KNOWN)


@pytest.mark.parametrize(("name", "version"), KNOWN, ids=lambda part: str(part))
def test_identify__code_of_the_npm_package__is_known_by_name(name: str, version: str) -> None:
    code = code_of(name, version)

    assert identify(code) is KNOWN[name, version]
    assert str(KNOWN[name, version]) == f"{name} {version}"


@pytest.mark.parametrize("place", [0, 60, -1], ids=["first", "inside", "metadata"])
def test_identify__one_byte_changed__is_unknown(place: int) -> None:
    code = bytearray(code_of("SafeProxy", "1.4.1"))
    code[place] ^= 1

    assert identify(bytes(code)) is None


def test_identify__no_code_or_other_code__is_unknown() -> None:
    assert identify(b"") is None
    assert identify(code_of("SafeL2", "1.5.0")[:-1]) is None
    assert KNOWN["SafeL2", "1.5.0"].code_hash != keccak256(b"")


def test_interface__selectors__are_those_of_the_published_signatures() -> None:
    uint_words = ",".join(["uint256"] * 3)
    body = f"address,uint256,bytes,uint8,{uint_words},address,address"
    signatures = {
        "execTransaction": f"execTransaction({body},bytes)",
        "getTransactionHash": f"getTransactionHash({body},uint256)",
        "getModulesPaginated": "getModulesPaginated(address,uint256)",
        "getOwners": "getOwners()",
    }
    for name, signature in signatures.items():
        assert shipped_interface("Safe").selector(name) == keccak256(signature.encode())[:4]
    multi_send = shipped_interface("MultiSendCallOnly").selector("multiSend")
    assert multi_send == keccak256(b"multiSend(bytes)")[:4]


def test_shipped_files__as_packaged__are_small_and_what_the_npm_packages_make() -> None:
    assert write_safe_releases.drifting_files() == []
    size = sum(len(text) for text in write_safe_releases.generated_files().values())
    assert size < 20_000
    assert files("chainkit.council.safe").joinpath("releases.json").is_file()


def test_check__file_that_drifted__is_named_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "council" / "safe").mkdir(parents=True)
    (tmp_path / "contracts" / "abi").mkdir(parents=True)
    monkeypatch.setattr(write_safe_releases, "PACKAGE", tmp_path)

    written = CliRunner().invoke(write_safe_releases.main, [])
    assert (written.exit_code, written.output) == (0, "3 files, 3 written anew\n")
    path = tmp_path / "council" / "safe" / "releases.json"
    path.write_text(path.read_text().replace("0xd7d408eb", "0xd7d408ec"))
    tampered = path.read_text()

    checked = CliRunner().invoke(write_safe_releases.main, ["--check"])

    assert checked.exit_code == 1
    assert "safe/releases.json differ" in checked.output
    assert path.read_text() == tampered
    assert CliRunner().invoke(write_safe_releases.main, []).output.endswith("1 written anew\n")
    assert CliRunner().invoke(write_safe_releases.main, ["--check"]).exit_code == 0


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("getChainId", "Safe: an entry is missing in the newest release"),  # 1.4.1 alone has it
        ("checkSignatures", "Safe 1.5.0: an entry is overloaded"),
    ],
)
def test_interface__entry_that_is_not_one_for_all__is_refused(
    monkeypatch: pytest.MonkeyPatch, entry: str, words: str
) -> None:
    wanted = (*write_safe_releases.INTERFACES["Safe"], entry)
    monkeypatch.setitem(write_safe_releases.INTERFACES, "Safe", wanted)

    result = CliRunner().invoke(write_safe_releases.main, ["--check"])

    assert result.exit_code == 1
    assert words in result.output


def test_interface__older_release_that_differs__is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found = write_safe_releases.artifact

    def changed(version: str, name: str) -> Any:
        content = found(version, name)
        text = json.dumps(content)
        return json.loads(text.replace('"safeTxGas"', '"gas"') if version == "1.4.1" else text)

    monkeypatch.setattr(write_safe_releases, "artifact", changed)

    result = CliRunner().invoke(write_safe_releases.main, ["--check"])

    assert result.exit_code == 1
    assert "Safe: not the same in all releases" in result.output
