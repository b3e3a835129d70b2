"""`chainkit registry` on a local chain: the keys, the operator and the options of its owner."""

from __future__ import annotations

from pathlib import Path

from chainkit.signatures import SigningKey
from chainkit.types import BlockHeader
from support.chains.chain import LocalChain, dev_address, dev_secret
from support.command_line import Outcome, run, write_keystore

KEYS = [SigningKey(bytes(31) + bytes([number])).public_key for number in range(1, 6)]
OPERATOR, OTHER_OPERATOR = dev_address(5), dev_address(6)
URL = "https://node.example"


def registry_command(chain: LocalChain, *arguments: object, url: str = "") -> Outcome:
    """Run a command on the chain, through the endpoint at ``url`` where it is given."""
    rpc = ["--rpc", url or chain.url]
    return run("registry", *arguments, *rpc, "--deployment", chain.record_path)


def add_arguments(key: bytes, url: str = URL) -> list[str]:
    add = ["add", "--holder", OPERATOR, "--public-key", "0x" + key.hex(), "--http-address", url]
    return [*add, "--no-check-url"]


def sent_by(folder: Path, number: int) -> list[str]:
    """The options with which an account sends."""
    place = folder / str(number)
    place.mkdir(exist_ok=True)
    return ["--broadcast", *write_keystore(place, dev_secret(number))]


def standing(chain: LocalChain) -> tuple[BlockHeader, list[str]]:
    """The head, and how much each account has sent: all that is sent changes them."""
    accounts = [dev_address(number) for number in range(10)]
    nonces = [
        chain.anvil.request("eth_getTransactionCount", account, "pending") for account in accounts
    ]
    return chain.head(), nonces
