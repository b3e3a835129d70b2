import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from chainkit.council.safe import known_contracts, known_versions
from localnet.deployment import PROJECT
from support.chains.chain import LocalChain, dev_address, dev_secret
from support.command_line import run
from support.council.fake_registry import node_key
from support.council.proposal_commands import PAUSE
from support.council.scene import OWNER_NUMBERS, CouncilScene, safe_scene

DISABLE = "- NodeRegistry.updateHealth: {tokenId: 100, isHealthy: false}\n"


def exported(scene: CouncilScene, calls: str) -> tuple[dict[str, Any], str]:
    """Return the batch file of a fresh proposal, and the proposal's SafeTx hash."""
    calls_path, proposal, batch = (scene.folder / name for name in ("c.yaml", "p.json", "b.json"))
    calls_path.write_text(calls)
    arguments = ("--reason", "by Safe's own tools", *scene.rpc, *scene.files)
    assert run("council", "propose", calls_path, proposal, *arguments).code == 0
    outcome = run("council", "export", proposal, batch, *scene.files)
    assert outcome.code == 0, outcome.err
    return json.loads(batch.read_text()), json.loads(proposal.read_text())["hashes"]["safe_tx"]


def executed(scene: CouncilScene, batch: dict[str, Any], owners: Sequence[int]) -> dict[str, str]:
    assert scene.council.safe is not None
    version = scene.council.safe.release
    known = known_contracts()
    names = ("SafeL2", "SafeProxyFactory", "MultiSendCallOnly", "CompatibilityFallbackHandler")
    addresses = {name: known[name, version].address or b"" for name in names}
    keys = {
        "safeSingletonAddress": "SafeL2",
        "safeProxyFactoryAddress": "SafeProxyFactory",
        "multiSendCallOnlyAddress": "MultiSendCallOnly",
        "multiSendAddress": "MultiSendCallOnly",
        "fallbackHandlerAddress": "CompatibilityFallbackHandler",
    }
    given = {
        "url": scene.chain.url,
        "safe": scene.council.address,
        "batch": batch,
        "keys": ["0x" + dev_secret(OWNER_NUMBERS[owner]).hex() for owner in owners],
        "contracts": {key: to_checksum_address(addresses[name]) for key, name in keys.items()},
    }
    node = shutil.which("node")
    assert node is not None
    script = PROJECT / "tests" / "support" / "council" / "execute_batch.mjs"
    done = subprocess.run(
        [node, str(script)], input=json.dumps(given), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    content: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return content


@pytest.mark.parametrize("calls", [DISABLE, DISABLE + PAUSE], ids=["one call", "two calls"])
@pytest.mark.parametrize("version", known_versions())
def test_batch__executed_by_safes_own_kit__does_the_same_under_the_same_hash(
    version: str, calls: str, local_chain: LocalChain, tmp_path: Path
) -> None:
    local_chain.add_node(dev_address(9), node_key(1).public_key, "https://node.example")
    with safe_scene(local_chain, tmp_path, version) as scene:
        batch, expected = exported(scene, calls)

        found = executed(scene, batch, [0, 1])

        assert found["hash"] == expected
        head = scene.endpoint.head().reference
        assert not scene.registry().node(100, head).node.is_enabled
        paused = scene.state().ask("GroupMessages", scene.record.group_messages.address, "paused")
        assert paused == (calls != DISABLE)
