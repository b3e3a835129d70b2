import json
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode

from chainkit.signatures import keccak256
from localnet.accounts import COUNCIL
from localnet.anvil import Anvil
from support.chains.chain import LocalChain, dev_address
from support.command_line import run
from support.council.fake_registry import node_key
from support.council.proposal_commands import (
    CALLS,
    execute,
    hash_of,
    proposal_path,
    propose,
    sign,
    status_on_chain,
    with_node,
)
from support.council.scene import (
    OWNER_NUMBERS,
    PAYER,
    REASON,
    CouncilScene,
    plain_scene,
    send_as_safe,
)
from support.endpoints.fault_proxy import Fault, FaultProxy
from support.endpoints.faults import error


def test_whole_round__two_of_three_owners__disables_the_node(scene: CouncilScene) -> None:
    drafted = propose(scene)
    assert drafted.code == 0, drafted.err
    assert "node 100 status: enabled -> disabled" in drafted.out
    assert "NodeRegistry nodes[100].isHealthy: true -> false" in drafted.out.replace(
        "_nodes", "nodes"
    )
    assert run("council", "status", proposal_path(scene), *scene.rpc, *scene.files).code == 1
    assert sign(scene, 0).code == 0
    assert sign(scene, 2).code == 0

    status = run("council", "status", proposal_path(scene), *scene.rpc, *scene.files)
    dry = execute(scene)
    assert status.code == 0, status.out + status.err
    assert "2 of 2 needed" in status.out
    assert dry.code == 0
    assert "nothing was sent" in dry.out
    assert status_on_chain(scene) == "enabled"
    done = execute(scene, "--broadcast", *scene.keystore(PAYER))
    again = execute(scene, "--broadcast", *scene.keystore(PAYER))

    assert done.code == 0, done.err
    assert "read back as proposed" in done.out
    assert status_on_chain(scene) == "disabled"
    assert again.code == 2
    assert "nonce 0 is used already" in again.err


def test_whole_round__plain_account__signs_the_transaction_itself(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    with_node(local_chain)
    scene = plain_scene(local_chain, tmp_path)
    assert propose(scene).code == 0
    typed = hash_of(proposal_path(scene))[2:18]
    keystore = scene.keystore(COUNCIL)

    signed = run(
        "council",
        "sign",
        "--digits-from-pipe",
        proposal_path(scene),
        *scene.files,
        *keystore,
        typed=typed,
    )
    done = execute(scene, "--broadcast", "--json")

    assert signed.code == 0, signed.err
    assert done.code == 0, done.err
    assert done.content["sent"]
    assert status_on_chain(scene) == "disabled"


def test_verify__proposals_file__is_rebuilt_offline_and_checked_with_an_endpoint(
    scene: CouncilScene,
) -> None:
    propose(scene)
    path = proposal_path(scene)

    offline = run("council", "verify", path, *scene.files)
    online = run("council", "verify", path, *scene.files, *scene.rpc)
    path.write_text(path.read_text().replace('"isHealthy": false', '"isHealthy": true'))
    tampered = run("council", "verify", path, *scene.files)

    assert (offline.code, online.code, tampered.code) == (0, 1, 2)
    assert "SafeTx hash" in offline.out
    assert "2 more signatures needed" in online.out
    assert "calls.0.arguments.isHealthy" in tampered.err


def test_execute__endpoint_of_another_chain__is_refused(
    scene: CouncilScene, tmp_path: Path
) -> None:
    propose(scene)
    sign(scene, 0)
    sign(scene, 1)

    with Anvil("--chain-id", "77") as other:
        arguments = ("--rpc", other.url, *scene.files, "--broadcast", *scene.keystore(PAYER))
        outcome = run("council", "execute", proposal_path(scene), *arguments)

    assert outcome.code == 2
    assert "31337" in outcome.err and "77" in outcome.err


def test_execute__dead_endpoint__says_which(scene: CouncilScene) -> None:
    propose(scene)

    dead = ("--rpc", "http://127.0.0.1:9", *scene.files)
    outcome = run("council", "status", proposal_path(scene), *dead)

    assert outcome.code == 2
    assert "127.0.0.1:9" in outcome.err


NO_TRACING = Fault(
    "no tracing", error(-32601, "the method does not exist"), methods=frozenset({"debug_traceCall"})
)


@pytest.mark.parametrize("command", ["propose", "status", "execute"])
def test_simulation__endpoint_without_tracing__says_so_and_demands_an_option(
    command: str, scene: CouncilScene
) -> None:
    calls, path = scene.folder / "calls.yaml", proposal_path(scene)
    if command == "propose":
        calls.write_text(CALLS)
        arguments: tuple[object, ...] = (command, calls, path, "--reason", REASON)
    else:
        propose(scene)
        sign(scene, 0)
        sign(scene, 1)
        arguments = (command, path)

    with FaultProxy(scene.chain.url) as proxy:
        proxy.arm(NO_TRACING)
        rpc = ("--rpc", proxy.url, *scene.files)
        refused = run("council", *arguments, *rpc)
        done = run("council", *arguments, *rpc, "--no-tracing")

    assert refused.code == 2
    assert "debug_traceCall" in refused.err and "--no-tracing" in refused.err
    assert done.code == 0, done.err
    assert "the endpoint cannot tell what changes" in " ".join(done.out.split())


def test_propose__registry_command__drafts_the_same_call(scene: CouncilScene) -> None:
    path = proposal_path(scene)
    arguments = ("--propose", path, "--reason", REASON, *scene.rpc, *scene.files)

    outcome = run("registry", "disable", 100, *arguments)

    assert outcome.code == 0, outcome.err
    (call,) = json.loads(path.read_text())["calls"]
    assert (call["function"], call["arguments"]["tokenId"]) == ("updateHealth", "100")


def test_propose__contracts_command_for_both_logs__is_one_proposal(scene: CouncilScene) -> None:
    path = proposal_path(scene)
    arguments = ("--propose", path, "--reason", REASON, *scene.rpc, *scene.files)

    outcome = run("contracts", "pause", "all", *arguments)

    assert outcome.code == 0, outcome.err
    calls = json.loads(path.read_text())["calls"]
    assert [call["contract"] for call in calls] == ["GroupMessages", "IdentityUpdates"]


@pytest.mark.parametrize("missing", ["--reason", "--council"])
def test_propose__without_what_a_proposal_needs__says_what(
    scene: CouncilScene, missing: str
) -> None:
    given = {"--reason": REASON, "--council": scene.folder / "council.json"}
    del given[missing]
    options = [item for pair in given.items() for item in pair]
    arguments = ("--deployment", scene.chain.record_path, *scene.rpc, *options)

    outcome = run("registry", "disable", 100, "--propose", proposal_path(scene), *arguments)

    assert outcome.code == 2
    assert f"missing {missing}" in outcome.err
    assert not proposal_path(scene).exists()


def test_show__strangers_text_in_an_argument__cannot_rewrite_the_screen(
    scene: CouncilScene,
) -> None:
    key = "0x" + node_key(2).public_key.hex()
    url = "https://node.example/\\e[2K"
    arguments = f'{{to: "{dev_address(2)}", signingKeyPub: "{key}", httpAddress: "{url}"}}'

    outcome = propose(scene, f"- NodeRegistry.addNode: {arguments}\n")

    assert outcome.code == 2
    assert "\x1b" not in outcome.err + outcome.out


def test_show__every_line__fits_100_columns_without_colour(scene: CouncilScene) -> None:
    key = "0x" + node_key(2).public_key.hex()
    url = "https://" + "x" * 150 + ".example"
    arguments = f"{{to: '{dev_address(2)}', signingKeyPub: '{key}', httpAddress: '{url}'}}"
    assert propose(scene, f"- NodeRegistry.addNode: {arguments}\n").code == 0
    sign(scene, 0)

    for command in (["show"], ["status", *scene.rpc]):
        outcome = run("council", command[0], proposal_path(scene), *command[1:], *scene.files)
        assert max(map(len, outcome.out.splitlines())) <= 100
        assert "\x1b" not in outcome.out


def test_status__as_json__tells_what_is_in_the_way(scene: CouncilScene) -> None:
    propose(scene)

    arguments = (*scene.rpc, *scene.files, "--json")
    content: dict[str, Any] = run("council", "status", proposal_path(scene), *arguments).content

    assert content["standing"]["executable"] is False
    assert content["standing"]["obstacles"] == ["2 more signatures needed"]
    assert any("isHealthy" in line for line in content["storage"])


def test_status__module_enabled_past_the_owners__is_a_caution(scene: CouncilScene) -> None:
    propose(scene)
    enable = keccak256(b"enableModule(address)")[:4] + encode(["address"], [dev_address(2)])
    send_as_safe(scene, scene.council.account, enable)

    outcome = run("council", "status", proposal_path(scene), *scene.rpc, *scene.files)

    assert f"module {dev_address(2)} acts without any owner" in " ".join(outcome.out.split())


def test_propose__module_enabled__is_a_caution_there_too(scene: CouncilScene) -> None:
    enable = keccak256(b"enableModule(address)")[:4] + encode(["address"], [dev_address(2)])
    send_as_safe(scene, scene.council.account, enable)
    words = f"module {dev_address(2)} acts without any owner"

    shown = propose(scene)
    proposal_path(scene).unlink()
    for_a_script = propose(scene, CALLS, "--json")

    assert words in " ".join(shown.out.split())
    assert words in " ".join(for_a_script.err.split())
    assert for_a_script.content == {"proposal": str(proposal_path(scene))}


def test_init__safe__writes_its_owners(scene: CouncilScene, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    arguments = (scene.council.address, "--council", path, *scene.rpc)

    outcome = run("council", "init", *arguments, "--deployment", scene.chain.record_path)

    assert outcome.code == 0, outcome.err
    assert "2 of 3 owners" in outcome.out
    content = json.loads(path.read_text())
    assert sorted(content["names"].values()) == sorted(dev_address(n) for n in OWNER_NUMBERS[:3])


def test_init__contract_that_is_no_safe__is_refused(scene: CouncilScene, tmp_path: Path) -> None:
    registry = "0x" + scene.record.node_registry.address.hex()
    arguments = (registry, "--council", tmp_path / "mine.json", *scene.rpc)

    outcome = run("council", "init", *arguments, "--deployment", scene.chain.record_path)

    assert outcome.code == 2
    assert "a Safe 1.4.1 or 1.5.0" in outcome.err
    assert not (tmp_path / "mine.json").exists()
