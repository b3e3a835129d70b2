"""The chains that are asked for contract wallets, as the command line names them."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from chainkit.errors import ConfigurationError
from chainkit_node.cli.options import connect_wallet_chains, wallet_option

SECRET = "0123456789abcdef"


@click.command()
@wallet_option
def command(wallet_endpoints: object) -> None:
    click.echo(repr(wallet_endpoints))


def test_connect__several_of_one_chain__are_in_the_order_of_preference() -> None:
    found = connect_wallet_chains(
        ["8453=https://one.test/key", "1=http://two.test", "8453=https://three.test?a=b"]
    )

    names = {chain_id: [each.name for each in some] for chain_id, some in found.items()}
    assert names == {8453: ["https://one.test", "https://three.test"], 1: ["http://two.test"]}
    assert connect_wallet_chains([]) == {}


@pytest.mark.parametrize(
    "text",
    [
        f"https://one.test/{SECRET}",
        f"0=https://one.test/{SECRET}",
        f"0x1=https://one.test/{SECRET}",
        f"{10**19}=https://one.test/{SECRET}",
        f"1 https://one.test/{SECRET}",
        f"=https://one.test/{SECRET}",
        f"1=ftp://one.test/{SECRET}",
        f"1={SECRET}",
        "1=",
        "",
    ],
)
def test_connect__another_form__is_refused_without_a_word_of_it(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        connect_wallet_chains([text])

    assert SECRET not in str(caught.value)


def test_option__urls_of_the_environment__are_taken_and_not_shown() -> None:
    texts = f"1=https://one.test/{SECRET}\n8453=https://user:{SECRET}@two.test"
    shown = CliRunner().invoke(command, [], env={"CHAINKIT_WALLET_RPC": texts}).output

    assert "1: [Endpoint(https://one.test)], 8453: [Endpoint(https://two.test)]" in shown
    assert SECRET not in shown
