"""Makes tests/fixtures/cryo again: files of the real cryo, and what the same chain answered.

cryo does not fit beside the project's other packages, so it runs in an environment of its own::

    python -m venv /tmp/cryo && /tmp/cryo/bin/pip install cryo==0.3.2
    PYTHONPATH=.:tests python -m support.audit.cryo_fixture --python /tmp/cryo/bin/python

The chain is the same each time but for what anvil itself decides.
"""

import json
import shutil
import subprocess
from pathlib import Path

import click
from eth_account import Account
from eth_account.datastructures import SignedTransaction

from chainkit.contracts.deployment import read_deployment_record
from localnet.accounts import development_account
from localnet.anvil import Anvil
from localnet.deployment import deploy
from support.chains.chain import LocalChain
from support.payloads import commit, identity_update
from support.project import TESTS

FIXTURE = TESTS / "fixtures" / "cryo"
CHUNK_BLOCKS = 8
GROUP, INBOX = b"\x0a" * 32, b"\x0b" * 32

FREEZE = "import cryo, json, sys; print(cryo.freeze(**json.loads(sys.argv[1])))"

RETURNS = bytes.fromhex("600160005360016000f3")
"""Init code of a contract whose code is one byte."""
FAILS = bytes.fromhex("60006000fd")
"""Init code that reverts."""
LOGS_WITHOUT_TOPICS = bytes.fromhex("60206000a000")
"""Init code that emits a log without a topic."""


def traffic(chain: LocalChain) -> None:
    """Post payloads, and transactions of all types and ends that cryo can read."""
    for number, size in enumerate((60, 300, 900)):
        chain.publish_message(GROUP, commit(GROUP, size, number))
    chain.publish_identity_update(INBOX, identity_update(INBOX))
    chain.publish_message(GROUP, b"\xff not an envelope")
    chain.mine(2)
    price = {"gasPrice": 3 * 10**9}
    fees = {"maxFeePerGas": 3 * 10**9, "maxPriorityFeePerGas": 10**9}
    listed = {"address": development_account(5).address, "storageKeys": ["0x" + "01" * 32]}
    to = bytes.fromhex(development_account(5).address[2:])
    chain.pause_mining()
    send(chain, price | {"to": to, "value": 7})
    send(chain, price | {"to": to, "accessList": [listed], "value": 10**21})
    send(chain, fees | {"to": to, "value": 0, "data": b"\x01\x00"})
    send(chain, fees | {"data": RETURNS})
    send(chain, price | {"data": FAILS})
    send(chain, fees | {"data": LOGS_WITHOUT_TOPICS})
    chain.publish_message(GROUP, commit(GROUP, 40, 9), sender=6)
    chain.mine()
    chain.resume_mining()
    authorization = Account.sign_authorization(
        {"chainId": chain.record.chain_id, "address": to, "nonce": 0}, development_account(7).key
    )
    send(chain, fees | {"to": to, "value": 1, "authorizationList": [authorization]})
    chain.mine()
    for number in range(5):
        chain.publish_message(GROUP, commit(GROUP, 20, number))
    chain.mine()


def send(chain: LocalChain, transaction: dict[str, object]) -> None:
    """Send a transaction of the fourth development account."""
    account = development_account(4)
    nonce = int(chain.anvil.request("eth_getTransactionCount", account.address, "pending"), 16)
    chain_id = chain.record.chain_id
    signed: SignedTransaction = account.sign_transaction(
        {"chainId": chain_id, "nonce": nonce, "gas": 200_000, "value": 0} | transaction
    )
    chain.send_raw(bytes(signed.raw_transaction))


def freeze(python: Path, url: str, target: Path, blocks: int, **options: object) -> None:
    """Run cryo over blocks 0 to ``blocks - 1``."""
    target.mkdir(parents=True)
    arguments = {
        "datatype": ["blocks", "transactions", "logs"],
        "rpc": url,
        "output_dir": str(target),
        "blocks": [f"0:{blocks}"],
        "verbose": False,
    }
    subprocess.run([python, "-c", FREEZE, json.dumps(arguments | options)], check=True)
    shutil.rmtree(target / ".cryo")


def answers(chain: LocalChain, blocks: int) -> list[dict[str, object]]:
    """Return each block and its receipts as anvil answers them."""
    return [
        {
            "block": chain.anvil.request("eth_getBlockByNumber", hex(number), True),
            "receipts": chain.anvil.request("eth_getBlockReceipts", hex(number)),
        }
        for number in range(blocks)
    ]


@click.command()
@click.option("--python", required=True, type=click.Path(path_type=Path), help="One with cryo.")
def main(python: Path) -> None:
    """Write the fixture."""
    shutil.rmtree(FIXTURE, ignore_errors=True)
    FIXTURE.mkdir(parents=True)
    with Anvil("--timestamp", "1767225600") as anvil:
        anvil.request("anvil_setBlockTimestampInterval", 12)
        record = FIXTURE / "deployment.json"
        deploy(anvil.url, record)
        chain = LocalChain(anvil, read_deployment_record(record), record)
        traffic(chain)
        blocks = chain.head().number + 1
        every = {"columns": ["all"]}
        freeze(python, anvil.url, FIXTURE / "binary", blocks, chunk_size=CHUNK_BLOCKS, **every)
        freeze(python, anvil.url, FIXTURE / "hex", blocks, hex=True, **every)
        freeze(python, anvil.url, FIXTURE / "default", blocks)
        text = json.dumps(answers(chain, blocks), separators=(",", ":"))
        (FIXTURE / "answers.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
