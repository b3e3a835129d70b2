from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chainkit.contracts.artifacts import Release, masked, releases
from chainkit.contracts.verification import implementation_of
from chainkit.signatures import keccak256
from support.chains.chain import LocalChain, dev_secret
from support.chains.tampering import ADMINISTRATOR, change_last_byte
from support.command_line import write_keystore
from support.council.upgrades import NAME, note_release


@pytest.fixture
def older_release(local_chain: LocalChain, monkeypatch: pytest.MonkeyPatch) -> Release:
    """The proxy runs code that is not this package's, and that release 0.0.1 knows."""
    code = change_last_byte(local_chain, implementation_of(local_chain.record.group_messages))
    own = releases(NAME)[0]
    return note_release(
        monkeypatch,
        replace(
            own,
            version="0.0.1",
            masked_code_hash=keccak256(masked(code, own.immutables)),
            interface=tuple({*own.interface, "function retired()"} - {"function pause()"}),
        ),
    )


@pytest.fixture
def administrator(tmp_path: Path) -> list[str]:
    return ["--broadcast", *write_keystore(tmp_path, dev_secret(ADMINISTRATOR))]
