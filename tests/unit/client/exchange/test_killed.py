"""Devices that are killed after each step: what is left on the disk, and how it goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from chainkit_client.exchange import provider as provider_module
from chainkit_client.exchange import requester as requester_module
from chainkit_client.storage import exchange_rows
from chainkit_client.storage.exchange_schema import RequestStatus
from support.client import asking_devices
from support.client.asking_devices import (
    FakeDevices,
    FolderStorage,
    Person,
    held_bytes,
    killed_after,
    sealed_secrets,
)

PROVIDER: dict[str, tuple[Any, str]] = {
    "the file was written": (provider_module, "write"),
    "the file was uploaded": (FolderStorage, "upload"),
    "the response was stored": (exchange_rows, "answer_ask"),
    "the response was queued": (FakeDevices, "send"),
    "the response was marked": (exchange_rows, "mark_ask_sent"),
    "the request was deleted": (exchange_rows, "delete_ask"),
    "the group was forgotten": (asking_devices, "forget_group"),
}
REQUESTER: dict[str, tuple[Any, str]] = {
    "the request was stored": (exchange_rows, "insert_request"),
    "the group was made": (FakeDevices, "make_group"),
    "the request was queued": (FakeDevices, "send"),
    "the request was marked": (exchange_rows, "mark_request_sent"),
}
APPLYING: dict[str, tuple[Any, str]] = {
    "the file was fetched": (FolderStorage, "download"),
    "the request was applied": (exchange_rows, "end_request"),
    "all was imported": (requester_module, "load"),
}


def check_nothing_is_left(person: Person, held: list[bytes]) -> None:
    """No byte of a key, a request, a response or a file is in a home."""
    assert held
    for home in person.homes:
        data = held_bytes(home)
        assert not any(each in data for each in held)
        assert b"age-encryption.org" not in data
        assert {each.name[:9] for each in home.iterdir()} <= {"device-1.", "device-2."}


@pytest.mark.conforms("H16")
@pytest.mark.parametrize("step", PROVIDER)
def test_approve__killed_once__goes_on_and_leaves_nothing(person: Person, step: str) -> None:
    asked = person.ask()
    held = sealed_secrets(person.devices)

    killed_after(*PROVIDER[step], lambda: person.approve(asked))

    for home in person.homes:
        assert b"age-encryption.org" not in held_bytes(home)
    held += sealed_secrets(person.devices)
    person.resume()
    if person.provider.asks():
        person.approve(asked)
    held += sealed_secrets(person.devices)
    asyncio.run(person.requester.apply(asked.id))
    person.resume()
    assert person.phone.words() == [b"hello", b"there"]
    assert person.provider.asks() == []
    check_nothing_is_left(person, held)


@pytest.mark.parametrize("step", REQUESTER)
def test_request__killed_once__goes_on_or_is_forgotten(person: Person, step: str) -> None:
    killed_after(*REQUESTER[step], lambda: person.ask())
    held = sealed_secrets(person.devices)

    person.resume()
    asks = person.provider.asks()
    person.now_ns += 2 * 86_400 * 10**9
    person.resume()

    was_sent = step not in ("the request was stored", "the group was made")
    assert len(asks) == 1 or not was_sent
    assert all(each.status is RequestStatus.EXPIRED for each in person.requester.requests())
    assert sealed_secrets(person.devices) == []
    if held:
        check_nothing_is_left(person, held)


@pytest.mark.conforms("H8")
@pytest.mark.parametrize("step", APPLYING)
def test_apply__killed_once__imports_all_of_it_once(person: Person, step: str) -> None:
    asked = person.ask()
    person.approve(asked)
    held = sealed_secrets(person.devices)

    killed_after(*APPLYING[step], lambda: asyncio.run(person.requester.apply(asked.id)))

    for home in person.homes:
        assert b"age-encryption.org" not in held_bytes(home)
    person.resume()
    [found] = person.requester.requests()
    assert (found.status is RequestStatus.APPLIED) == bool(person.phone.words())
    if found.status is RequestStatus.PENDING:
        asyncio.run(person.requester.apply(asked.id))
        person.resume()
    assert person.phone.words() == [b"hello", b"there"]
    check_nothing_is_left(person, held)
