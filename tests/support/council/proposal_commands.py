"""The commands about proposals, as the members of a council run them."""

from __future__ import annotations

import json
from pathlib import Path

from support.chains.chain import LocalChain, dev_address
from support.command_line import Outcome, run
from support.council.fake_registry import node_key
from support.council.scene import REASON, CouncilScene

CALLS = "- NodeRegistry.updateHealth: {tokenId: 100, isHealthy: false}\n"
PAUSE = "- GroupMessages.pause: {}\n"


def with_node(chain: LocalChain) -> None:
    chain.add_node(dev_address(9), node_key(1).public_key, "https://node.example")


def propose(scene: CouncilScene, calls: str = CALLS, *options: object) -> Outcome:
    path = scene.folder / "calls.yaml"
    path.write_text(calls)
    arguments = ("--reason", REASON, *scene.rpc, *scene.files, *options)
    return run("council", "propose", path, proposal_path(scene), *arguments)


def proposal_path(scene: CouncilScene) -> Path:
    return scene.folder / "proposal.json"


def hash_of(path: Path) -> str:
    hashes = json.loads(path.read_text())["hashes"]
    return hashes.get("safe_tx") or hashes["transaction"]


def sign(scene: CouncilScene, owner: int, path: Path | None = None) -> Outcome:
    path = path or proposal_path(scene)
    typed = hash_of(path)[2:18] + "\n"
    return run(
        "council",
        "sign",
        "--digits-from-pipe",
        path,
        *scene.files,
        *scene.owner_keystore(owner),
        typed=typed,
    )


def execute(scene: CouncilScene, *options: object) -> Outcome:
    arguments = (*scene.rpc, *scene.files, *options)
    return run("council", "execute", proposal_path(scene), *arguments)


def status(scene: CouncilScene, *options: object) -> Outcome:
    return run("council", "status", proposal_path(scene), *scene.rpc, *scene.files, *options)


def paused_by_two(scene: CouncilScene) -> None:
    """Leave a proposal with enough signatures, which pauses GroupMessages."""
    assert propose(scene, PAUSE).code == 0
    assert (sign(scene, 0).code, sign(scene, 1).code) == (0, 0)


def status_on_chain(scene: CouncilScene) -> str:
    arguments = (*scene.rpc, "--deployment", scene.chain.record_path, "--json")
    return str(run("registry", "show", 100, *arguments).content["status"])
