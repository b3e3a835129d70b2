"""A proposal is checked again between a person's word and its sending, and afterwards."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from eth_account.typed_transactions import TypedTransaction
from hexbytes import HexBytes

from chainkit.chain.sending import Sending
from chainkit.cli.change.signers import SignerOptions
from chainkit.contracts.state import IMPLEMENTATION_SLOT
from chainkit.council.proposal import Proposal, sign_proposal
from chainkit.council.proposal.execution import (
    code_afterwards,
    execute,
    prepare,
    sign_execution,
)
from chainkit.council.signing import KeySigner
from chainkit.errors import ConfigurationError, RefusedRequest, TransactionFailed
from localnet.accounts import COUNCIL
from support.chains.chain import LocalChain, dev_address, dev_secret
from support.command_line import Outcome, run
from support.council.offline import in_one_line
from support.council.proposal_commands import (
    PAUSE,
    paused_by_two,
    proposal_path,
    propose,
    status,
    with_node,
)
from support.council.proposal_commands import execute as execute_command
from support.council.scene import PAYER, REASON, CouncilScene, plain_scene
from support.council.trail import executed
from support.endpoints.fault_proxy import Fault, FaultProxy
from support.endpoints.faults import result_changed

ELSEWHERE = "c0de" * 10
"""Where the same code stands once more: whoever upgrades a proxy could put any other there."""


def other_code(scene: CouncilScene) -> None:
    """Let GroupMessages run code at another address."""
    proxy = scene.record.group_messages
    assert proxy.implementation is not None
    code = scene.endpoint.code(proxy.implementation.address, scene.endpoint.head().reference)
    scene.chain.anvil.request("anvil_setCode", f"0x{ELSEWHERE}", "0x" + code.hex())
    place = ("0x" + proxy.address.hex(), f"0x{IMPLEMENTATION_SLOT:064x}")
    scene.chain.anvil.request("anvil_setStorageAt", *place, "0x" + ELSEWHERE.rjust(64, "0"))
    scene.chain.mine()


def much_later(scene: CouncilScene) -> None:
    scene.chain.anvil.request("evm_increaseTime", 8 * 86_400)
    scene.chain.mine()


def another_executed(scene: CouncilScene) -> None:
    call = scene.call("setHttpAddressUpdatesOpen", True)
    executed(scene, scene.signed(scene.draft(call), [1, 2]))


def is_paused(scene: CouncilScene) -> bool:
    answer = scene.state().ask("GroupMessages", scene.record.group_messages.address, "paused")
    return bool(answer)


def broadcast(scene: CouncilScene, *options: object) -> Outcome:
    return execute_command(scene, "--broadcast", *scene.keystore(PAYER), *options)


def count(scene: CouncilScene) -> int:
    """How many transactions the payer has sent."""
    return scene.endpoint.transaction_count(dev_address(PAYER), scene.endpoint.head().reference)


@pytest.mark.parametrize(
    ("meanwhile", "words"),
    [
        (other_code, "code of GroupMessages was"),
        (much_later, "it has expired"),
        (another_executed, "nonce 0 is used already"),
    ],
)
@pytest.mark.parametrize("prompt", [(SignerOptions, "open"), (KeySigner, "sign_transaction")])
def test_execute__chain_goes_on_while_the_payer_is_asked__is_refused(
    scene: CouncilScene,
    monkeypatch: pytest.MonkeyPatch,
    prompt: tuple[type, str],
    meanwhile: Callable[[CouncilScene], None],
    words: str,
) -> None:
    paused_by_two(scene)
    answered = getattr(*prompt)

    def slow(*arguments: Any) -> Any:
        meanwhile(scene)
        monkeypatch.setattr(*prompt, answered)
        return answered(*arguments)

    monkeypatch.setattr(*prompt, slow)
    before = count(scene)

    outcome = broadcast(scene)

    assert outcome.code == 2, outcome.out
    assert words in outcome.err
    assert "sending" not in outcome.out
    assert count(scene) - before == (meanwhile is another_executed)
    assert not is_paused(scene)


def test_execute__storage_changes_otherwise_than_shown__is_refused(
    scene: CouncilScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused_by_two(scene)
    simulate, shown = "chainkit.cli.council.execution.simulated", iter([("a: 1 -> 2",)])
    monkeypatch.setattr(simulate, lambda *_: next(shown, ("a: 1 -> 3",)))

    outcome = broadcast(scene)

    assert outcome.code == 2
    assert "expected as shown: a: 1 -> 2, got a: 1 -> 3" in outcome.err
    assert not is_paused(scene)


def prepared(scene: CouncilScene, proposal: Proposal) -> Any:
    return prepare(proposal, scene.standing(proposal), dev_address(PAYER))


def test_execute__proxy_runs_other_code_once_it_is_mined__is_no_success(
    scene: CouncilScene,
) -> None:
    proposal = scene.signed(scene.draft(scene.call("pause", contract="GroupMessages")), [0, 1])
    execution = prepared(scene, proposal)
    signed = sign_execution(execution, scene.sending, KeySigner("key", dev_secret(PAYER)))
    other_code(scene)

    with pytest.raises(TransactionFailed, match="code of GroupMessages: expected 0x"):
        execute(execution, scene.sending, signed)

    # The other code answers that it is paused: that proves nothing.
    assert is_paused(scene)


def test_code_afterwards__proxy_that_is_upgraded__is_the_new_one(scene: CouncilScene) -> None:
    pause = scene.draft(scene.call("pause", contract="GroupMessages"))
    runs = pause.grounds.runs["GroupMessages"]
    new = dev_address(9)
    upgrade = scene.call("upgradeToAndCall", new, b"", contract="IdentityUpdates")
    both = Proposal((*pause.calls, upgrade), pause.grounds, pause.transaction, None)

    assert code_afterwards(pause) == {"GroupMessages": runs}
    assert code_afterwards(both) == {"GroupMessages": runs, "IdentityUpdates": new}


# ------------------------------------------------------------------ what it may cost


def tip(wei: int) -> Fault:
    return Fault(
        "tip",
        result_changed(lambda *_: hex(wei)),
        methods=frozenset({"eth_maxPriorityFeePerGas"}),
    )


def test_execute__endpoint_asks_for_all_the_payer_has__is_refused(scene: CouncilScene) -> None:
    paused_by_two(scene)
    before = count(scene)

    with FaultProxy(scene.chain.url) as proxy:
        proxy.arm(tip(10**15))
        options = ("--broadcast", *scene.keystore(PAYER), "--rpc", proxy.url, *scene.files)
        outcome = run("council", "execute", proposal_path(scene), *options)

    assert outcome.code == 2, outcome.out
    assert "tip that the endpoint asks for: expected at most 100,000,000,000 wei" in outcome.err
    assert count(scene) == before


def test_execute__dearer_than_the_limit__is_refused_until_it_is_raised(scene: CouncilScene) -> None:
    paused_by_two(scene)
    before = count(scene)

    refused = broadcast(scene, "--max-cost", "0.000000000000000001")
    assert refused.code == 2
    assert "expected at most 0.000000000000000001 ether (1 wei)" in refused.err
    assert count(scene) == before
    done = broadcast(scene, "--max-cost", "0.2")

    assert done.code == 0, done.err
    costs = next(line for line in done.out.splitlines() if line.startswith("costs "))
    assert "at most 0." in costs and costs.endswith(" wei)")
    assert done.out.index(costs) < done.out.index("sending ")


def test_execute__for_a_script__tells_the_cost_on_standard_error(scene: CouncilScene) -> None:
    paused_by_two(scene)

    outcome = broadcast(scene, "--json")

    assert outcome.content["sent"]
    assert "costs           at most 0." in outcome.err


@pytest.mark.parametrize("text", ["-1", "1e3", "0,1", "1 ether"])
def test_execute__limit_that_is_no_decimal_number__is_refused(
    scene: CouncilScene, text: str
) -> None:
    outcome = broadcast(scene, "--max-cost", text)

    assert outcome.code == 2
    assert "--max-cost" in outcome.err and "a decimal number such as 0.1" in outcome.err


def test_registry__dearer_than_the_limit__is_refused(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    with_node(local_chain)
    scene = plain_scene(local_chain, tmp_path)
    files = ("--deployment", local_chain.record_path, *scene.rpc)
    options = ("--broadcast", *scene.keystore(COUNCIL), *files)

    refused = run("registry", "disable", 100, *options, "--max-cost", "0.000001")
    done = run("registry", "disable", 100, *options)

    assert refused.code == 2
    assert "cost of the transaction: expected at most 0.000001 ether" in refused.err
    assert done.code == 0, done.err
    assert done.out.index("costs           at most 0.") < done.out.index("sending ")


def test_propose__plain_accounts_transaction_is_dearer_than_the_limit__is_refused(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    with_node(local_chain)
    scene = plain_scene(local_chain, tmp_path)
    own = ("--propose", proposal_path(scene), "--reason", REASON, *scene.files, *scene.rpc)
    limit = ("--max-cost", "0.000001")

    drafts = [propose(scene, PAUSE, *limit), run("registry", "disable", 100, *own, *limit)]

    for refused in drafts:
        assert refused.code == 2
        assert "cost of the transaction" in refused.err
    assert not proposal_path(scene).exists()
    assert propose(scene, PAUSE).code == 0


def test_execute__plain_account_that_signed_for_more_than_the_limit__is_refused(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    with_node(local_chain)
    scene = plain_scene(local_chain, tmp_path)
    signer = KeySigner("key", dev_secret(COUNCIL))
    proposal = sign_proposal(
        scene.draft(scene.call("updateHealth", 100, False)), scene.council, signer
    )
    execution = prepared(scene, proposal)
    raw = sign_execution(execution, scene.sending, None).raw
    fields = TypedTransaction.from_bytes(HexBytes(raw)).as_dict()
    cost = fields["gas"] * fields["maxFeePerGas"]

    assert sign_execution(execution, Sending(scene.endpoint, cost), None).raw == raw
    with pytest.raises(ConfigurationError, match="cost of the transaction"):
        sign_execution(execution, Sending(scene.endpoint, cost - 1), None)


# ------------------------------------------------------------------ past


def test_status__executed__says_by_which_transaction_and_simulates_nothing(
    scene: CouncilScene,
) -> None:
    paused_by_two(scene)
    sent = broadcast(scene, "--json").content["transaction_hash"]

    block = scene.endpoint.head().reference
    outcome, content = status(scene), status(scene, "--json").content

    assert outcome.code == 1, outcome.err
    assert in_one_line(outcome.out) == f"executed in block {block} by transaction {sent}"
    assert len(content["standing"]["obstacles"]) == 1
    assert content["storage"] == []
    assert "this proposal was executed" in content["standing"]["obstacles"][0]


def test_status__nonce_used_by_another_and_still_a_change__says_so_and_exits_1(
    scene: CouncilScene,
) -> None:
    paused_by_two(scene)
    another_executed(scene)

    outcome = status(scene)

    assert outcome.code == 1, outcome.err
    assert "storage" not in outcome.out
    assert "nonce 0 is used already: another transaction" in in_one_line(outcome.out)


def test_contracts__both_logs_and_a_safe_among_the_senders__points_to_a_proposal(
    scene: CouncilScene,
) -> None:
    record = ("--deployment", scene.chain.record_path)

    told = run("contracts", "pause", "all", *scene.rpc, *record)

    assert told.code == 0, told.err
    assert told.out.endswith("add --propose FILE to draft one proposal of all calls\n")


def test_sign__tip_that_no_chain_takes__is_refused_before_anything_is_signed(
    scene: CouncilScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = scene.signed(scene.draft(scene.call("pause", contract="GroupMessages")), [0, 1])
    execution = prepared(scene, proposal)
    signed: list[Any] = []
    monkeypatch.setattr(KeySigner, "sign_transaction", lambda _, fields: signed.append(fields))

    with FaultProxy(scene.chain.url) as proxy:
        proxy.arm(tip(10**12))
        endpoint = type(scene.endpoint).connect(proxy.url)
        with pytest.raises(RefusedRequest, match="tip that the endpoint asks for"):
            sign_execution(execution, Sending(endpoint), KeySigner("key", dev_secret(PAYER)))

    assert not signed
