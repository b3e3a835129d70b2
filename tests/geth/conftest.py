"""Chains of geth, each with the contracts and some traffic; skipped where geth is not built."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.chains.deployed_chain import DeployedChain
from support.chains.geth import Geth, program

MESSAGES = 30


class GethChain(DeployedChain):
    """A geth with the contracts deployed."""

    @property
    def geth(self) -> Geth:
        geth: Geth = self.client
        return geth

    def post(self, payload: bytes) -> None:
        """Publish a message in a block of its own."""
        self.send(payload)
        self.geth.mine()


@pytest.fixture(scope="module", params=["osaka", "amsterdam"])
def chain(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GethChain]:
    if program() is None:
        pytest.skip("no geth: `make test-chains` builds it where Go is")
    folder = tmp_path_factory.mktemp(request.param)
    with Geth(folder, request.param) as geth:
        made = GethChain.of(geth, folder)
        made.publish(MESSAGES, seed=7)
        yield made
