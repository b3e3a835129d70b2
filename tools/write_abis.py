"""Writes the contracts' ABIs and artifacts into the Python package, or checks that they are there.

Run `python tools/write_abis.py` after a contract or a compiler setting changed; `--check` writes
nothing and exits 1 if a file in `abi/` or `artifact/` of `src/chainkit/contracts/` differs from the
compiled contracts. `--release 1.2.0` also notes the upgradeable contracts as that release, so that
`chainkit contracts upgrade` will know them on a chain.

The compiler's input is Ape's own, so the code equals the code that Ape would deploy.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click
import solcx
from ape import Project, compilers
from ethpm_types import ContractType

from chainkit.contracts.artifacts import CONTRACTS, RELEASES_FILE, interface_lines
from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.signatures import keccak256

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "chainkit" / "contracts"
ABI_NAMES = ("GroupMessages", "IdentityUpdates", "NodeRegistry", "OriginatorSequence")

Json = dict[str, Any]
Files = dict[str, str]
"""Texts by path below the package's folder."""

_OUTPUT = ["abi", "storageLayout", "evm.bytecode.object", "evm.deployedBytecode"]
_NAMESPACE = re.compile(r"@custom:storage-location\s+(erc7201:\S+)")
_LAYOUTS = "layouts.sol"
_NUMBERED = re.compile(r"(t_(?:struct|contract|enum|userDefinedValueType)\([^()]*\))\d+")
_TYPE_FIELDS = ("type", "key", "value", "base")


class Compilation:
    """All contracts, compiled from source with Ape's settings.

    Ape's own cache is left alone: it does not notice when a file that a contract imports changed.
    """

    def __init__(self, root: Path = ROOT) -> None:
        project = Project(root)
        paths = list(project.sources.paths)
        solidity = compilers.get_compiler("solidity")
        ((version, self._input),) = solidity.get_standard_input_json(paths, project=project).items()
        self._version = str(version).partition("+")[0]
        output = self._compile(self._input, {"*": {"*": _OUTPUT, "": ["ast"]}})
        self._asts = {path: source["ast"] for path, source in output["sources"].items()}
        self._variables = {
            str(node["id"]): node["name"]
            for ast in self._asts.values()
            for node in _nodes(ast)
            if node["nodeType"] == "VariableDeclaration"
        }
        self.contracts: dict[str, Json] = {
            name: contract
            for path, contracts in output["contracts"].items()
            if path.startswith("contracts/")
            for name, contract in contracts.items()
        }

    def abi(self, name: str) -> Json:
        """Return a contract's ABI in Ape's form."""
        contract = ContractType.model_validate({"abi": self.contracts[name]["abi"]})
        found: Json = contract.model_dump(mode="json", by_alias=True, exclude_none=True)["abi"]
        return found

    def artifact(self, name: str) -> Json:
        """Return what `chainkit.contracts.artifacts` reads of a contract."""
        code = self.contracts[name]["evm"]
        references = code["deployedBytecode"]["immutableReferences"]
        content = {
            "creation_code": "0x" + code["bytecode"]["object"],
            "runtime_code": "0x" + code["deployedBytecode"]["object"],
            "immutables": {
                self._variables[id_]: sorted(place["start"] for place in places)
                for id_, places in references.items()
            },
        }
        content["layouts"] = {space: _layout(raw) for space, raw in self._layouts(name).items()}
        return content | ({"storage": self.storage(name)} if name in SEQUENCED_LOGS else {})

    def release(self, name: str, version: str) -> Json:
        """Return what `chainkit.contracts.artifacts` reads of an upgradeable contract's release."""
        content = self.artifact(name)
        code = bytes.fromhex(content["runtime_code"][2:])
        return {
            "version": version,
            "code_size": len(code),
            "masked_code_hash": "0x" + keccak256(code).hex(),
            "immutables": content["immutables"],
            "interface": interface_lines(self.contracts[name]["abi"]),
            "storage": content["storage"],
        }

    def storage(self, name: str) -> Json:
        """Return a contract's storage by namespace, with the storage of its bases (ERC-7201)."""
        return {space: _members(raw) for space, raw in self._layouts(name).items()}

    def _layouts(self, name: str) -> Json:
        """Return the compiler's own layout of each namespace of a contract and its bases."""
        own = self.contracts[name]["storageLayout"]
        layouts = self._namespaces()
        found = {
            namespace: layouts[namespace]
            for base in self._bases(name)
            for namespace in _structs(base)
        }
        return found | ({"": own} if own["storage"] else {})

    def _bases(self, name: str) -> Iterator[Json]:
        contracts = {
            node["id"]: node
            for ast in self._asts.values()
            for node in ast["nodes"]
            if node["nodeType"] == "ContractDefinition"
        }
        (own,) = (
            node
            for ast in self._asts.values()
            for node in ast["nodes"]
            if node.get("name") == name and ast["absolutePath"].startswith("contracts/")
        )
        return (contracts[id_] for id_ in own["linearizedBaseContracts"])

    @cache  # noqa: B019 -- one compilation lives as long as the program
    def _namespaces(self) -> Json:
        """Return the layout of every namespace.

        solc lays out variables only, and a namespace's struct is the type of none: so a contract
        that has one of each is compiled.
        """
        structs: dict[str, str] = {}
        imports: list[tuple[str, str]] = []
        for path, ast in self._asts.items():
            for contract in ast["nodes"]:
                if contract["nodeType"] == "ContractDefinition":
                    found = _structs(contract)
                    structs |= found
                    imports += [(contract["name"], path)] if found else []
        source = "pragma solidity *;\n"
        source += "".join(f'import {{{name}}} from "{path}";\n' for name, path in imports)
        for index, struct in enumerate(structs.values()):
            source += f"contract Layout{index} {{ {struct} members; }}\n"
        content = self._input | {
            "sources": self._input["sources"] | {_LAYOUTS: {"content": source}}
        }
        output = self._compile(content, {_LAYOUTS: {"*": ["storageLayout"]}})
        layouts = output["contracts"][_LAYOUTS]
        return {
            namespace: _within(layouts[f"Layout{index}"]["storageLayout"])
            for index, namespace in enumerate(structs)
        }

    def _compile(self, content: Json, selection: Json) -> Json:
        settings = content["settings"] | {"outputSelection": selection}
        found: Json = solcx.compile_standard(
            content | {"settings": settings}, solc_version=self._version
        )
        return found


def _nodes(tree: Any) -> Iterator[Json]:
    """Yield every node of an AST."""
    if isinstance(tree, dict):
        if "nodeType" in tree:
            yield tree
        for value in tree.values():
            yield from _nodes(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _nodes(value)


def _structs(contract: Json) -> dict[str, str]:
    """Return the structs of a contract that are namespaces: namespace to qualified name."""
    found = {}
    for node in contract["nodes"]:
        if node["nodeType"] == "StructDefinition":
            documentation = node.get("documentation") or {"text": ""}
            if location := _NAMESPACE.search(documentation["text"]):
                found[location[1]] = node["canonicalName"]
    return found


def _within(layout: Json) -> Json:
    """Return the layout of the one struct that a contract consists of."""
    (variable,) = layout["storage"]
    members = layout["types"][variable["type"]]["members"]
    return {"storage": members, "types": layout["types"]}


def _layout(raw: Json) -> Json:
    """Return a layout for `contracts.storage_layout`, the same for the same contract.

    The compiler numbers structs, contracts and enums anew with each set of files.
    """
    types = {_type_name(name): _named_types(content) for name, content in raw["types"].items()}
    if len(types) < len(raw["types"]):
        raise ValueError(f"two types of one name among {sorted(raw['types'])}")
    return {"storage": [_named_types(variable) for variable in raw["storage"]], "types": types}


def _named_types(content: Json) -> Json:
    """Return a variable or a type with its types by name, without the compiler's numbers."""
    kept = {key: value for key, value in content.items() if key not in ("astId", "contract")}
    named = {key: _type_name(kept[key]) for key in _TYPE_FIELDS if key in kept}
    members = [_named_types(member) for member in kept.get("members", [])]
    return kept | named | ({"members": members} if members else {})


def _type_name(type_: str) -> str:
    return _NUMBERED.sub(r"\1", type_)


def _members(layout: Json) -> list[Json]:
    types = layout["types"]
    return [
        {
            "label": member["label"],
            "slot": int(member["slot"]),
            "offset": member["offset"],
            "size": int(types[member["type"]]["numberOfBytes"]),
            "type": _type_words(member["type"], types, ()),
        }
        for member in layout["storage"]
    ]


def _type_words(type_: str, types: Json, outer: tuple[str, ...]) -> str:
    """Describe a type so that a change within shows too: solc's own label leaves out members."""
    content = types[type_]
    if type_ in outer:
        return str(content["label"])
    inside = (*outer, type_)
    if content["encoding"] == "mapping":
        key, value = (_type_words(content[part], types, inside) for part in ("key", "value"))
        return f"mapping({key} => {value})"
    if "members" in content:
        members = (
            f"{_type_words(member['type'], types, inside)} {member['label']};"
            for member in content["members"]
        )
        return f"{content['label']} {{{' '.join(members)}}}"
    if "base" in content:
        length = re.search(r"\[\d*\]$", content["label"])
        return _type_words(content["base"], types, inside) + (length[0] if length else "[]")
    return str(content["label"])


def generated_files(compilation: Compilation, past_releases: Json) -> Files:
    """Return the text of every file that is generated from the contracts.

    A proxy's ABI is its implementation's, which the proxy's callers use.
    """
    abis = {f"abi/{name}.json": compilation.abi(name) for name in ABI_NAMES}
    artifacts = {f"artifact/{name}.json": compilation.artifact(name) for name in CONTRACTS}
    content = abis | artifacts | {f"artifact/{RELEASES_FILE}": past_releases}
    return {
        path: json.dumps(value, indent=2, sort_keys=True) + "\n" for path, value in content.items()
    }


def read_releases(package: Path = PACKAGE) -> Json:
    """Return the releases noted so far, by contract name; they never change."""
    text = _read(package / "artifact" / RELEASES_FILE)
    found: Json = json.loads(text) if text else {name: [] for name in SEQUENCED_LOGS}
    return found


def with_release(past_releases: Json, compilation: Compilation, version: str) -> Json:
    """Return the releases with today's contracts added. Raises click's error if it is there."""
    if any(noted["version"] == version for noted in past_releases[SEQUENCED_LOGS[0]]):
        raise click.ClickException(f"release {version} is noted already, and releases never change")
    return {
        name: [*noted, compilation.release(name, version)] for name, noted in past_releases.items()
    }


def drifting_files(files: Mapping[str, str], package: Path = PACKAGE) -> list[str]:
    """Return the paths of the files that are missing or differ from what was compiled."""
    return [path for path, text in files.items() if _read(package / path) != text]


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def write(files: Mapping[str, str], package: Path = PACKAGE) -> None:
    """Write the files below the package's folder."""
    for path, text in files.items():
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).write_text(text, encoding="utf-8")


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file drifted.")
@click.option("--release", metavar="VERSION", help="Also note today's contracts as a release.")
def main(check: bool, release: str | None) -> None:
    """Write the contracts' ABIs and artifacts into src/chainkit/.

    Example: python tools/write_abis.py --check
    """
    if check and release:
        raise click.UsageError("--release writes, --check does not")
    compilation, past_releases = Compilation(), read_releases()
    if release:
        past_releases = with_release(past_releases, compilation, release)
    files = generated_files(compilation, past_releases)
    drifting = drifting_files(files)
    if check and drifting:
        click.echo(f"src/chainkit: {', '.join(drifting)} differ from contracts/", err=True)
        click.echo("run: python tools/write_abis.py", err=True)
        sys.exit(1)
    if not check:
        write(files)
    click.echo(f"{len(files)} files, {0 if check else len(drifting)} written anew")


if __name__ == "__main__":
    main()
