"""Writes the data of the Safe's releases for chainkit, or checks that they are current.

Run `python -m tools.write_safe_releases` after a release was added; `--check` writes nothing and
exits 1 if a file is not what the locked npm packages make it. Code comes from their artifacts, and
an address follows from the code: the Safe's own factory puts it there on every chain.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import click
from eth_utils.address import to_checksum_address

from chainkit.signatures import keccak256
from localnet.safe import PACKAGES, SINGLETON_FACTORY, npm_artifact

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = ROOT / "src" / "chainkit"

SOURCES: Final = {
    "Safe": "",
    "SafeL2": "",
    "SafeProxy": "proxies",
    "SafeProxyFactory": "proxies",
    "MultiSendCallOnly": "libraries",
    "CompatibilityFallbackHandler": "handler",
    "TokenCallbackHandler": "handler",
    "ExtensibleFallbackHandler": "handler",
}
"""The contracts that are known, by name, and the folder of each; not every release has all."""

INTERFACES: Final = {
    "Safe": (
        # Events of a transaction of the owners, or of a module.
        "ExecutionFailure",
        "ExecutionFromModuleFailure",
        "ExecutionFromModuleSuccess",
        "ExecutionSuccess",
        "SafeMultiSigTransaction",
        # Events of a change to the Safe itself.
        "AddedOwner",
        "ApproveHash",
        "ChangedFallbackHandler",
        "ChangedGuard",
        "ChangedModuleGuard",
        "ChangedThreshold",
        "DisabledModule",
        "EnabledModule",
        "RemovedOwner",
        "SafeSetup",
        # Functions that change its owners.
        "addOwnerWithThreshold",
        "changeThreshold",
        "removeOwner",
        "swapOwner",
        # All other functions.
        "approveHash",
        "approvedHashes",
        "domainSeparator",
        "execTransaction",
        "getModulesPaginated",
        "getOwners",
        "getThreshold",
        "getTransactionHash",
        "nonce",
        "setup",
    ),
    "MultiSendCallOnly": ("multiSend",),
}
"""The used functions and events of each contract, the same in every release that has it."""

_WIDEST: Final = {"Safe": "SafeL2"}
"""The contract whose ABI is read instead of another's, because it holds the whole of that ABI."""

Json = dict[str, Any]


def artifact(version: str, name: str) -> Json | None:
    """Return the artifact of a release's contract, None where the release has none such."""
    found: Json | None = npm_artifact(version, SOURCES[name], name)
    return found


def canonical_address(creation_code: bytes) -> str:
    """Return the checksummed address at which the Safe's factory deploys code, with salt 0."""
    salted = b"\xff" + SINGLETON_FACTORY + bytes(32) + keccak256(creation_code)
    return to_checksum_address(keccak256(salted)[-20:])


def releases() -> Json:
    """Return code hash and canonical address by version and name; a proxy has no one address."""
    return {
        version: {
            name: _known(name, found) for name in SOURCES if (found := artifact(version, name))
        }
        for version in PACKAGES
    }


def interface(name: str) -> list[Json]:
    """Return the used part of a contract's ABI, as the newest release has it.

    Raises click's error where an entry is missing or overloaded, or an older release differs.
    """
    *others, newest = (_entries(version, name) for version in PACKAGES)
    if sorted(newest) != sorted(INTERFACES[name]):
        raise click.ClickException(f"{name}: an entry is missing in the newest release")
    if any(newest[entry] != found for older in others for entry, found in older.items()):
        raise click.ClickException(f"{name}: not the same in all releases")
    return sorted(newest.values(), key=lambda entry: (entry["type"], entry["name"]))


def generated_files() -> dict[str, str]:
    """Return the text of every file, by its path below the package's folder."""
    content = {"council/safe/releases.json": releases()} | {
        f"contracts/abi/{name}.json": interface(name) for name in INTERFACES
    }
    return {
        path: json.dumps(value, indent=2, sort_keys=True) + "\n" for path, value in content.items()
    }


def drifting_files() -> list[str]:
    """Return the paths of the files that are missing or differ from the packages' data."""
    return [
        path
        for path, text in generated_files().items()
        if not (PACKAGE / path).exists() or (PACKAGE / path).read_text(encoding="utf-8") != text
    ]


def _known(name: str, content: Json) -> Json:
    code_hash = keccak256(bytes.fromhex(content["deployedBytecode"][2:]))
    known = {"code_hash": "0x" + code_hash.hex()}
    if name != "SafeProxy":
        known["address"] = canonical_address(bytes.fromhex(content["bytecode"][2:]))
    return known


def _entries(version: str, name: str) -> dict[str, Json]:
    content = artifact(version, _WIDEST.get(name, name))
    assert content is not None, f"{name} {version}"
    wanted = [entry for entry in content["abi"] if entry.get("name") in INTERFACES[name]]
    found = {entry["name"]: _without_spellings(entry) for entry in wanted}
    if len(found) != len(wanted):
        raise click.ClickException(f"{name} {version}: an entry is overloaded")
    return found


def _without_spellings(entry: Json) -> Json:
    """Return an ABI entry without what has no meaning for a caller, and differs between releases.

    That is Solidity's own names for types, and the names of a function's results.
    """
    inputs = [_without_internal_type(item) for item in entry["inputs"]]
    if "outputs" not in entry:
        return entry | {"inputs": inputs}
    outputs = [_without_internal_type(item) | {"name": ""} for item in entry["outputs"]]
    return entry | {"inputs": inputs, "outputs": outputs}


def _without_internal_type(item: Json) -> Json:
    return {name: value for name, value in item.items() if name != "internalType"}


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file drifted.")
def main(check: bool) -> None:
    """Write what is known of the Safe's releases into src/chainkit/.

    Example: python -m tools.write_safe_releases --check
    """
    drifting = drifting_files()
    if check and drifting:
        click.echo(f"src/chainkit: {', '.join(drifting)} differ from node_modules/", err=True)
        click.echo("run: python -m tools.write_safe_releases", err=True)
        sys.exit(1)
    files = generated_files()
    for path in drifting:
        (PACKAGE / path).write_text(files[path], encoding="utf-8")
    click.echo(f"{len(files)} files, {len(drifting)} written anew")


if __name__ == "__main__":
    main()
