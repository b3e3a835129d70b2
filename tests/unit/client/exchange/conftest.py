"""A person with two devices, in a folder without a disk below it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit_client.storage.store import Store
from support.client.asking_devices import Person
from support.client.group_network import memory_folder
from support.client.history_devices import BEGIN_NS, NODE, text


@pytest.fixture
def person() -> Iterator[Person]:
    with memory_folder() as folder:
        found = person_in(Path(folder))
        yield found
        for each in found.devices:
            close(each.store)


def person_in(folder: Path) -> Person:
    """The laptop has two messages, which the phone lacks."""
    found = Person(folder)
    found.laptop.join()
    found.laptop.read(text(b"hello", (NODE, 1)), text(b"there", (NODE, 2), BEGIN_NS + 1))
    return found


def close(store: Store) -> None:
    store.close()
