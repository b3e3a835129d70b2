"""A used nonce is explained: the proposal was executed, or another one in its place."""

from pathlib import Path
from typing import Any

import pytest

from chainkit.chain import Endpoint
from chainkit.contracts.state import ContractState
from chainkit.council.proposal import Proposal, sign_proposal
from chainkit.council.proposal.execution import execute, prepare, sign_execution
from chainkit.council.proposal.nonce_use import NonceUse, find_nonce_use
from chainkit.council.safe import SafeTransaction
from chainkit.council.signing import KeySigner
from chainkit.errors import RefusedRequest, TransactionFailed
from chainkit.types import BlockReference
from localnet.accounts import COUNCIL
from support.chains.chain import LocalChain, dev_address, dev_secret
from support.council.proposal_commands import with_node
from support.council.scene import PAYER, CouncilScene, plain_scene
from support.council.trail import exec_calldata, executed, safe_transaction, to_safe


def pause(scene: CouncilScene) -> Proposal:
    return scene.signed(scene.draft(scene.call("pause", contract="GroupMessages")), [0, 1])


def another(scene: CouncilScene, nonce: int | None = None) -> Proposal:
    call = scene.call("setHttpAddressUpdatesOpen", True)
    return scene.signed(scene.draft(call, nonce=nonce), [1, 2])


def executed_by(scene: CouncilScene, proposal: Proposal, sender: int) -> bytes:
    assert isinstance(proposal.transaction, SafeTransaction)
    return scene.chain.send(scene.council.account, exec_calldata(proposal.transaction), sender)


def block_of(scene: CouncilScene, transaction: bytes) -> BlockReference:
    receipt = scene.endpoint.receipt(transaction)
    assert receipt is not None
    return scene.endpoint.header(int(receipt["blockNumber"], 16)).reference


@pytest.mark.parametrize("later", [0, 1, 2, 40])
def test_find__executed_some_blocks_ago__tells_block_and_transaction(
    scene: CouncilScene, later: int
) -> None:
    proposal = pause(scene)
    transaction = executed(scene, proposal)
    scene.chain.mine(later)

    use = find_nonce_use(proposal, scene.state())

    block = block_of(scene, transaction)
    assert use == NonceUse("success", block, transaction)
    words = f"this proposal was executed in block {block} by transaction 0x{transaction.hex()}"
    assert scene.standing(proposal).obstacles[0] == f"nonce 0 is used already: {words}"


def test_find__two_executions_in_one_block__each_has_its_own(scene: CouncilScene) -> None:
    first, second = pause(scene), another(scene, nonce=1)
    scene.chain.pause_mining()
    hashes = [executed_by(scene, proposal, PAYER) for proposal in (first, second)]
    scene.chain.resume_mining()
    scene.chain.mine()

    uses = [find_nonce_use(proposal, scene.state()) for proposal in (first, second)]

    assert [use.transaction_hash for use in uses] == hashes
    assert uses[0].block == uses[1].block


def test_find__another_was_executed__says_so_and_points_to_the_log(scene: CouncilScene) -> None:
    proposal = pause(scene)
    transaction = executed(scene, another(scene))
    scene.chain.mine(5)

    standing = scene.standing(proposal)

    words = f"another transaction was executed in block {block_of(scene, transaction)}"
    assert standing.nonce_use is not None
    assert words in standing.obstacles[0]
    assert "'chainkit council log' shows which" in standing.obstacles[0]


class Forgetful(Endpoint):
    """Keeps the state of its newest block only."""

    def request(self, method: str, *params: Any) -> Any:
        head = "0x" + self.head_hash.hex()
        if method == "eth_getStorageAt" and params[2]["blockHash"] != head:
            raise RefusedRequest("eth_getStorageAt", "a result", "missing trie node")
        return super().request(method, *params)

    head_hash: bytes


def test_find__endpoint_keeps_no_old_state__points_to_the_log(scene: CouncilScene) -> None:
    proposal = pause(scene)
    executed(scene, proposal)
    endpoint = Forgetful.connect(scene.chain.url)
    head = scene.endpoint.head().reference
    endpoint.head_hash = head.hash

    use = find_nonce_use(proposal, ContractState(endpoint, head))

    assert use == NonceUse(None, None, None)
    assert str(use) == "'chainkit council log' shows by what"


def test_find__plain_account__asks_for_the_signed_transaction(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    with_node(local_chain)
    scene = plain_scene(local_chain, tmp_path)
    unsigned = scene.draft(scene.call("updateHealth", 100, False))
    proposal = sign_proposal(unsigned, scene.council, KeySigner("key", dev_secret(COUNCIL)))

    transaction = executed(scene, proposal)

    block = block_of(scene, transaction)
    assert find_nonce_use(proposal, scene.state()) == NonceUse("success", block, transaction)
    # Unsigned, it has no hash that the chain could know.
    assert find_nonce_use(unsigned, scene.state()) == NonceUse(None, None, None)


def test_find__plain_account_used_its_nonce_for_another__points_to_the_log(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    with_node(local_chain)
    scene = plain_scene(local_chain, tmp_path)
    signer = KeySigner("key", dev_secret(COUNCIL))
    draft = scene.draft(scene.call("updateHealth", 100, False))
    proposal = sign_proposal(draft, scene.council, signer)
    other = scene.draft(scene.call("setHttpAddressUpdatesOpen", True))
    executed(scene, sign_proposal(other, scene.council, signer))

    (obstacle,) = scene.standing(proposal).obstacles

    assert (
        obstacle == f"nonce {proposal.nonce} is used already: 'chainkit council log' shows by what"
    )


def test_execute__somebody_else_executed_it_first__says_that_it_is_done(
    scene: CouncilScene,
) -> None:
    proposal = pause(scene)
    execution = prepare(proposal, scene.standing(proposal), dev_address(PAYER))
    payer = KeySigner("key", dev_secret(PAYER))
    signed = sign_execution(execution, scene.sending, payer)
    first = executed_by(scene, proposal, PAYER + 1)

    with pytest.raises(TransactionFailed) as failed:
        execute(execution, scene.sending, signed)

    words = f"this proposal was executed in block {block_of(scene, first)} by transaction"
    assert failed.value.got == f"nonce 0 used before: {words} 0x{first.hex()}"


def test_execute__somebody_executed_another_first__says_that_it_is_not_done(
    scene: CouncilScene,
) -> None:
    proposal = pause(scene)
    execution = prepare(proposal, scene.standing(proposal), dev_address(PAYER))
    signed = sign_execution(execution, scene.sending, KeySigner("key", dev_secret(PAYER)))
    executed_by(scene, another(scene), PAYER + 1)

    with pytest.raises(TransactionFailed, match="nonce 0 used before: another transaction was"):
        execute(execution, scene.sending, signed)


def test_find__safe_transaction_of_the_same_nonce_that_failed__is_another(
    scene: CouncilScene,
) -> None:
    proposal = pause(scene)
    inner = to_safe(scene, "enableModule(address)", "0x" + "0" * 40)
    # With gas of its own, the Safe goes on although what it calls reverts.
    failing = safe_transaction(scene, inner, safe_tx_gas=50_000)
    scene.chain.send(scene.council.account, exec_calldata(failing), PAYER)

    assert find_nonce_use(proposal, scene.state()).outcome is None
