from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from support.client.group_network import Party, memory_folder

MakeParty = Callable[..., Party]


@pytest.fixture
def make_party() -> Iterator[MakeParty]:
    parties: list[Party] = []
    with memory_folder() as root:

        def make(*names: str, others: Sequence[str] = ()) -> Party:
            folder = Path(root, str(len(parties)))
            folder.mkdir()
            parties.append(Party(folder, *names, others=others))
            return parties[-1]

        yield make
        for each in parties:
            each.close()
