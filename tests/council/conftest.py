from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit.council.safe import known_versions
from support.chains.chain import LocalChain
from support.council import safes
from support.council.proposal_commands import with_node
from support.council.scene import CouncilScene, safe_scene


@pytest.fixture
def scene(local_chain: LocalChain, tmp_path: Path) -> Iterator[CouncilScene]:
    """Two of three owners decide about the contracts, and node 100 is enabled."""
    with_node(local_chain)
    with safe_scene(local_chain, tmp_path) as scene:
        yield scene


@pytest.fixture(scope="module")
def safe_chain() -> Iterator[safes.SafeChain]:
    with safes.safe_chain() as running:
        yield running


@pytest.fixture(scope="module", params=known_versions())
def version(request: pytest.FixtureRequest) -> str:
    """Every known release of the Safe in turn."""
    return str(request.param)


@pytest.fixture
def safe(safe_chain: safes.SafeChain, version: str) -> safes.SafeOnChain:
    """Two of three owners decide; it holds nothing."""
    return safe_chain.safe(version, 3, 2)
