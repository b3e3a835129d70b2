"""The council's account, read at one block and no other."""

from chainkit.contracts.state import ContractState
from chainkit.council.proposal.account_state import find_account_state
from support.chains.chain import LocalChain, dev_address
from support.council.scene import PAYER


def test_read__account_with_a_key_that_sent_since__has_the_nonce_of_the_block(
    local_chain: LocalChain,
) -> None:
    account = bytes.fromhex(dev_address(PAYER)[2:])
    before = ContractState(local_chain.endpoint, local_chain.head().reference)
    local_chain.send(account, b"", sender=PAYER)
    after = ContractState(local_chain.endpoint, local_chain.head().reference)

    nonces = [
        find_account_state(state, local_chain.record.chain_id, account).nonce
        for state in (before, after)
    ]

    assert nonces == [nonces[0], nonces[0] + 1]
