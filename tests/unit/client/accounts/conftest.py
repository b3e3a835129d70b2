"""A backup account, whose file is written once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit_client.accounts.account_file import SealedBy
from support.client.backup_accounts import PASSPHRASE, Made, written
from support.client.group_network import memory_folder


@pytest.fixture(scope="session")
def made() -> Iterator[Made]:
    with memory_folder() as name:
        found = written(Path(name), "backup.account", SealedBy.PASSPHRASE, PASSPHRASE)
        yield found
        found.laptop.store.close()
