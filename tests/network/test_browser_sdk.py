"""Today's browser SDK in a real browser, with a node and a gateway and nothing before them.

The page's origin is another than theirs, so the browser asks by CORS about each header.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from localnet.accounts import COUNCIL, write_keystore
from localnet.anvil import Anvil
from localnet.network import start_gateway, start_node
from support.chains.chain import Deployment
from support.network.node_sdk import BrowserSdkClient, NodeSdkClient
from support.network.people import new_person
from support.network.real_nodes import until

from .conftest import PASSWORD, deployed


@pytest.fixture(scope="module")
def gateway_url(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of a gateway; the browser asks the node itself, too."""
    folder = tmp_path_factory.mktemp("for-browsers")
    owner = folder / "owner.keystore"
    with ExitStack() as stack:
        anvil = stack.enter_context(Anvil())
        settings = deployed(anvil, local_deployment, folder)
        write_keystore(owner, PASSWORD, COUNCIL)
        start_node(stack, settings, folder, owner, folder / "node.db")
        yield start_gateway(stack, settings, folder, PASSWORD)


def test_browser_sdk__with_a_native_client__talks_and_streams(
    gateway_url: str, tmp_path: Path
) -> None:
    ben = new_person()
    with (
        closing(NodeSdkClient.register(gateway_url, tmp_path / "ben", ben)) as native,
        closing(BrowserSdkClient.register(gateway_url, Path("ann"), new_person())) as browser,
    ):
        group = browser.create_group([ben])
        browser.stream()
        browser.send(group, "hello, ben")
        assert native.join() == [group]
        native.send(group, "hello, ann")
        until(lambda: browser.streamed(group) == ["hello, ben", "hello, ann"])

        assert browser.read(group) == native.read(group) == ["hello, ben", "hello, ann"]
