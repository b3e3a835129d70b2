"""The authority of an account with a key, all of it read at one block."""

from typing import Any

from chainkit.contracts.state import ContractState
from chainkit.council.proposal.authority import read_authority
from chainkit.council.proposal.council import Council
from support.council.fake_registry import HEAD, OWNER_ADDRESS, block
from support.endpoints.fake_endpoint import FakeProvider

BLOCK = block(HEAD - 1)
PINNED = {"blockHash": "0x" + BLOCK.hash.hex(), "requireCanonical": True}


def test_read_authority__transaction_mined_after_the_block__nonce_is_the_blocks() -> None:
    def count(account: str, at: Any) -> str:
        assert account == OWNER_ADDRESS
        return "0x5" if at == PINNED else "0x6"

    endpoint = FakeProvider({"eth_getCode": "0x", "eth_getTransactionCount": count}).endpoint()
    council = Council(31337, bytes.fromhex(OWNER_ADDRESS[2:]), None, {})

    authority = read_authority(ContractState(endpoint, BLOCK), council)

    assert (authority.owners, authority.threshold, authority.nonce) == ((OWNER_ADDRESS,), 1, 5)
