"""The deployer's ether and waiting transactions are looked at before the first transaction."""

import pytest

from chainkit.chain.transactions import estimate_gas
from chainkit.errors import ConfigurationError, RefusedRequest
from localnet.deployment import PARAMETERS
from scripts import deploy as script
from scripts._steps import deployment_steps
from tools.gas_study.deployment import DEPLOYMENT_GAS


def set_balance(endpoint, account, wei):
    endpoint.request("anvil_setBalance", account.address, hex(wei))


def estimates(endpoint, deployer):
    """By the name of each contract, the gas that its transaction is believed to take."""
    steps = deployment_steps(deployer.address, 0, script.read_parameters(PARAMETERS))
    head = endpoint.head().reference
    return {
        step.name: estimate_gas(endpoint, None, step.trial_code, deployer.address, head)
        for step in steps
    }


def needed(endpoint, deployer):
    price = endpoint.next_base_fee(endpoint.head().reference) + endpoint.priority_fee()
    return price * sum(estimates(endpoint, deployer).values())


def test_deploy__cannot_pay_for_all_of_it__sends_nothing(endpoint, deployer, record):
    nonce, needs = deployer.nonce, needed(endpoint, deployer)
    set_balance(endpoint, deployer, needs - 1)
    words = f"balance of {deployer.address}: expected .* wei.* for the gas of 6 contracts, got"

    with pytest.raises(ConfigurationError, match=words):
        script.run(deployer, endpoint, PARAMETERS, record)

    assert deployer.nonce == nonce
    assert not list(record.parent.iterdir())


def test_deploy__gas_that_was_asked_for__is_a_little_more_than_it_takes(endpoint, deployer, record):
    estimated = estimates(endpoint, deployer)

    script.run(deployer, endpoint, PARAMETERS, record)

    blocks = range(endpoint.head().number - 5, endpoint.head().number + 1)
    used = [
        int(endpoint.request("eth_getBlockByNumber", hex(n), False)["gasUsed"], 16) for n in blocks
    ]
    assert len(used) == len(estimated)
    for (name, estimate), gas in zip(estimated.items(), used, strict=True):
        assert gas <= estimate, name
        # Addresses have other zeros there.
        assert abs(gas - DEPLOYMENT_GAS["osaka"][name]) < gas // 100, name
    assert sum(estimated.values()) < 1.15 * sum(used)


def test_deploy__a_transaction_of_the_deployer_waits__sends_nothing(
    endpoint, deployer, stranger, record
):
    nonce = deployer.nonce
    endpoint.request("evm_setAutomine", False)
    try:
        call = {"from": deployer.address, "to": stranger.address, "value": "0x1"}
        endpoint.request("eth_sendTransaction", call)
        with pytest.raises(RefusedRequest, match="expected none waiting to be mined, got 1"):
            script.run(deployer, endpoint, PARAMETERS, record)
    finally:
        endpoint.request("evm_setAutomine", True)
        endpoint.request("evm_mine")

    assert deployer.nonce == nonce + 1
    assert not list(record.parent.iterdir())
