"""The council's commands about proposals, as its members run them at a desk."""

from __future__ import annotations

import json
from pathlib import Path

from support.chains.chain import LocalChain, dev_address
from support.command_line import Outcome, run
from support.council.desk import REASON, Desk
from support.council.fake_registry import node_key

CALLS = "- NodeRegistry.updateHealth: {tokenId: 100, isHealthy: false}\n"


def with_node(chain: LocalChain) -> None:
    chain.add_node(dev_address(9), node_key(1).public_key, "https://node.example")


def propose(desk: Desk, calls: str = CALLS, *options: object) -> Outcome:
    path = desk.folder / "calls.yaml"
    path.write_text(calls)
    arguments = ("--reason", REASON, *desk.rpc, *desk.files, *options)
    return run("council", "propose", path, proposal_path(desk), *arguments)


def proposal_path(desk: Desk) -> Path:
    return desk.folder / "proposal.json"


def hash_of(path: Path) -> str:
    hashes = json.loads(path.read_text())["hashes"]
    return hashes.get("safe_tx") or hashes["transaction"]


def sign(desk: Desk, owner: int, path: Path | None = None) -> Outcome:
    path = path or proposal_path(desk)
    typed = hash_of(path)[2:18] + "\n"
    return run(
        "council",
        "sign",
        "--digits-from-pipe",
        path,
        *desk.files,
        *desk.owner_keystore(owner),
        typed=typed,
    )


def execute(desk: Desk, *options: object) -> Outcome:
    arguments = (*desk.rpc, *desk.files, *options)
    return run("council", "execute", proposal_path(desk), *arguments)


def status_on_chain(desk: Desk) -> str:
    arguments = (*desk.rpc, "--deployment", desk.chain.record_path, "--json")
    return str(run("registry", "show", 100, *arguments).content["status"])
