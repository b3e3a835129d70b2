import pytest

from chainkit.council.proposal.transaction_builder import batch_file, checksum
from chainkit.errors import ConfigurationError
from support.council.proposals import PLAIN, SAFE, disable, pause, proposed

# A batch that Safe's own Transaction Builder 1.18.2 wrote.
WRITTEN_BY_SAFE = {
    "version": "1.0",
    "chainId": "1",
    "createdAt": 1761326849944,
    "meta": {
        "name": "Transactions Batch",
        "description": "",
        "txBuilderVersion": "1.18.2",
        "createdFromSafeAddress": "0xA77DE01e157f9f57C7c4A326eeE9C4874D0598b6",
        "createdFromOwnerAddress": "",
        "checksum": "0x8b5032f716845c8b08bab3d63dbd9ba92e056f3557793cd041e59b84e16aa989",
    },
    "transactions": [
        {
            "to": "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
            "value": "0",
            "data": None,
            "contractMethod": {
                "inputs": [
                    {"internalType": "address", "name": "spender", "type": "address"},
                    {"internalType": "uint256", "name": "value", "type": "uint256"},
                ],
                "name": "approve",
                "payable": False,
            },
            "contractInputsValues": {
                "spender": "0x474e5Ded6b5D078163BFB8F6dBa355C3aA5478C8",
                "value": "100000000000",
            },
        }
    ],
}


def test_checksum__batch_that_safe_wrote__is_safes() -> None:
    assert checksum(WRITTEN_BY_SAFE) == WRITTEN_BY_SAFE["meta"]["checksum"]


def test_checksum__value_changed__is_another() -> None:
    changed = WRITTEN_BY_SAFE | {"chainId": "10"}

    assert checksum(changed) != WRITTEN_BY_SAFE["meta"]["checksum"]


def test_batch_file__several_calls__holds_each_with_the_trailer_behind_the_last() -> None:
    proposal = proposed(disable(), pause())

    batch = batch_file(proposal, SAFE, 1)

    first, last = (bytes.fromhex(each["data"][2:]) for each in batch["transactions"])
    assert first == disable().calldata
    assert last == pause().calldata + proposal.grounds.trailer
    assert batch["meta"]["createdFromSafeAddress"] == SAFE.address
    assert batch["meta"]["checksum"] == checksum(batch)
    assert proposal.hash.hex() in batch["meta"]["description"]


def test_batch_file__plain_account__is_refused() -> None:
    with pytest.raises(ConfigurationError, match="one of a Safe"):
        batch_file(proposed(council=PLAIN), PLAIN, 1)
