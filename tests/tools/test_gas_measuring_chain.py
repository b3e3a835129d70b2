from __future__ import annotations

import pytest

from chainkit.chain.sending import TRANSACTION_GAS_CAP
from chainkit.errors import RefusedRequest
from localnet.anvil import Anvil
from tools.gas_study.__main__ import SNAPSHOT
from tools.gas_study.cases import PUBLISHED_CASES
from tools.gas_study.compiling import Bytecodes, published_bytecodes
from tools.gas_study.measuring_chain import MeasuringChain
from tools.gas_study.messages import published_rows
from tools.gas_study.rows import read_rows


@pytest.fixture(scope="module")
def codes() -> Bytecodes:
    return published_bytecodes()


@pytest.mark.parametrize("hardfork", ["london", "paris", "shanghai", "cancun"])
def test_reproduce__hardforks_before_the_floor__gas_is_as_published(
    codes: Bytecodes, hardfork: str
) -> None:
    with MeasuringChain(hardfork) as chain:
        rows = list(published_rows(chain, codes))
    assert len(rows) == 2 * len(PUBLISHED_CASES)
    assert [row.gas for row in rows] == [row.published_gas for row in rows]


def test_reproduce__newest_name_that_anvil_knows__gas_is_osakas(codes: Bytecodes) -> None:
    osaka = [row.gas for row in read_rows(SNAPSHOT) if row.key[::4] == ("published", "osaka")]
    with MeasuringChain("bpo2") as chain:
        assert [row.gas for row in published_rows(chain, codes)] == osaka


def test_send__more_gas_than_osakas_cap__refused() -> None:
    with Anvil("--hardfork", "osaka") as anvil:
        account = anvil.request("eth_accounts")[0]
        transaction = {"from": account, "to": account, "gas": hex(TRANSACTION_GAS_CAP + 1)}
        with pytest.raises(RefusedRequest, match="tx_gas_limit_cap"):
            anvil.request("eth_sendTransaction", transaction)
