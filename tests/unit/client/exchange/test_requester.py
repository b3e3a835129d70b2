"""The device that asks: what it stores, which responses it takes, and what it deletes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from chainkit_client.exchange import requester as requester_module
from chainkit_client.exchange.control import HistoryRequest, HistoryResponse, parse_control
from chainkit_client.exchange.errors import (
    DecryptionFailed,
    NetworkError,
    NoOtherDevice,
    ResponseNotFound,
    ValidationFailed,
)
from chainkit_client.exchange.requester import REQUEST_SECONDS
from chainkit_client.groups.control import CONTROL_PREFIX
from chainkit_client.storage.exchange_rows import OwnRequest
from chainkit_client.storage.exchange_schema import RequestStatus
from chainkit_client.storage.sync_groups import read_kept_groups
from support.client.asking_devices import Person, deliver, held_bytes, sealed_secrets

Change = Callable[[HistoryResponse], HistoryResponse]


def status_of(person: Person, request: OwnRequest) -> RequestStatus:
    [found] = [each for each in person.requester.requests() if each.id == request.id]
    return found.status


def response_of(person: Person, request: OwnRequest) -> HistoryResponse:
    [found] = [each for each in person.requester.requests() if each.id == request.id]
    assert found.response is not None
    parsed = parse_control(found.response)
    assert isinstance(parsed, HistoryResponse)
    return parsed


def apply(person: Person, request: OwnRequest) -> None:
    asyncio.run(person.requester.apply(request.id))


@pytest.mark.conforms("H9")
def test_apply__response_of_the_asked_device__imports_its_messages_and_is_applied(
    person: Person,
) -> None:
    asked = person.ask()
    person.approve(asked)

    loaded = asyncio.run(person.requester.apply(asked.id))

    assert (loaded.installation, loaded.new) == (person.laptop.key, 2)
    assert person.phone.words() == [b"hello", b"there"]
    assert status_of(person, asked) is RequestStatus.APPLIED


@pytest.mark.conforms("H1")
def test_request__of_several_devices__asks_those_that_are_in_the_inbox_now(
    person: Person,
) -> None:
    other = b"\7" * 32
    person.inbox.add(other)
    two = asyncio.run(person.requester.request())
    person.inbox.discard(other)
    one = asyncio.run(person.requester.request())

    assert {each.installation for each in two} == {person.laptop.key, other}
    assert len({each.id for each in two}) == 2
    assert [each.installation for each in one] == [person.laptop.key]
    person.inbox = {person.phone.key}
    with pytest.raises(NoOtherDevice):
        asyncio.run(person.requester.request())


@pytest.mark.conforms("H3")
def test_request__of_several_devices__is_taken_by_the_one_that_it_names(person: Person) -> None:
    person.inbox.add(b"\7" * 32)
    asked = asyncio.run(person.requester.request())
    person.take()

    assert (len(asked), person.phone_devices.sent) == (2, 2)
    [to_laptop] = [each for each in asked if each.installation == person.laptop.key]
    assert [each.id for each in person.provider.asks()] == [to_laptop.id]
    assert person.requester.pin(asked[0]) == person.requester.pin(asked[1])


def test_request__that_comes_behind_those_of_other_devices__is_taken(person: Person) -> None:
    group_id = b"s" * 16
    person.laptop.join(group_id)
    asked = person.ask()
    [ask] = person.provider.asks()
    person.provider.deny(ask.id)
    to_other = parse_control(ask.request)
    assert isinstance(to_other, HistoryRequest)

    # The first message names another device; the group is read on, and forgotten after a day.
    other = replace(to_other, installation=b"\7" * 32)
    deliver(person.laptop, group_id, person.phone.key, other.encoded())
    person.take()
    person.resume()
    assert kept_groups(person) == {group_id}
    deliver(person.laptop, group_id, person.phone.key, to_other.encoded())
    person.take()
    person.resume()

    assert [each.id for each in person.provider.asks()] == [asked.id]
    person.now_ns += 2 * 86_400 * 10**9
    person.resume()
    assert kept_groups(person) == set()


def kept_groups(person: Person) -> set[bytes]:
    with person.laptop.store.reading() as connection:
        return set(read_kept_groups(connection))


@pytest.mark.conforms("H2")
def test_request__whose_group_cannot_be_made__is_stored_before_it_is_sent(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: bytes) -> None:
        raise NetworkError("gateway", "an answer", "none")

    with monkeypatch.context() as patch:
        patch.setattr(person.phone_devices, "make_group", broken)
        with pytest.raises(NetworkError):
            asyncio.run(person.requester.request())

    [stored] = person.requester.requests()
    assert (stored.status, stored.is_sent) == (RequestStatus.PENDING, False)
    assert person.phone_devices.sent == 0
    # It goes on where the group was made, and is forgotten where nothing was sent.
    asyncio.run(person.phone_devices.make_group(stored.group_id))
    person.resume()
    assert [each.id for each in person.provider.asks()] == [stored.id]
    assert person.requester.requests()[0].is_sent


@pytest.mark.conforms("H13")
def test_request__each__has_a_key_of_its_own(person: Person) -> None:
    asked = [person.ask() for _ in range(8)]

    assert len({recipient(person, each) for each in asked}) == 8


@pytest.mark.conforms("H17")
def test_request__while_others_wait__has_another_pin_of_four_digits(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = iter([7, 7, 7, 42])
    monkeypatch.setattr(requester_module.secrets, "randbelow", lambda _: next(drawn))

    first, second = person.ask(), person.ask()

    assert [person.requester.pin(each) for each in (first, second)] == ["0007", "0042"]


FORGED: dict[str, Change] = {
    "another request": lambda each: replace(each, id=b"\0" * 16),
    "another host": lambda each: replace(each, backup_url="https://evil.example/backups/a"),
    "another key": lambda each: replace(each, recipient="age1" + "q" * 58),
}


@pytest.mark.conforms("H4")
@pytest.mark.parametrize("forged", FORGED)
def test_response__that_names_something_else__is_ignored(person: Person, forged: str) -> None:
    asked = person.ask()
    person.approve(asked)
    genuine = response_of(person, asked)
    again = person.ask()
    change = FORGED[forged]
    told = change(replace(genuine, id=again.id, recipient=recipient(person, again)))

    deliver(person.phone, again.group_id, person.laptop.key, told.encoded())
    person.take()

    assert status_of(person, again) is RequestStatus.PENDING
    with pytest.raises(ResponseNotFound):
        apply(person, again)


def recipient(person: Person, request: OwnRequest) -> str:
    [ask] = [each for each in person.provider.asks() if each.id == request.id]
    parsed = parse_control(ask.request)
    assert parsed is not None
    return parsed.recipient


@pytest.mark.conforms("H4")
def test_response__of_a_device_that_was_not_asked_or_in_another_group__is_ignored(
    person: Person,
) -> None:
    asked = person.ask()
    person.approve(asked)
    genuine = response_of(person, asked)
    again = person.ask()
    told = replace(genuine, id=again.id, recipient=recipient(person, again)).encoded()
    other = b"\7" * 32
    person.inbox.add(other)

    deliver(person.phone, again.group_id, other, told)
    deliver(person.phone, b"another group...", person.laptop.key, told)
    deliver(person.phone, again.group_id, b"\x08" * 32, told)
    deliver(person.phone, again.group_id, person.laptop.key, CONTROL_PREFIX + b"{}")
    person.take()

    assert sum(each.response is not None for each in person.requester.requests()) == 1


def test_response__second_one__does_not_replace_the_first(person: Person) -> None:
    asked = person.ask()
    person.approve(asked)
    first = response_of(person, asked)

    told = replace(first, file_hash=bytes(32))
    deliver(person.phone, asked.group_id, person.laptop.key, told.encoded())
    person.take()

    assert response_of(person, asked) == first


@pytest.mark.conforms("H6")
def test_apply__file_with_another_hash__fails_and_stores_nothing(person: Person) -> None:
    asked = person.ask()
    person.approve(asked)
    [path] = person.storage.folder.iterdir()
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    with pytest.raises(ValidationFailed, match="another hash"):
        apply(person, asked)

    assert person.phone.words() == []
    assert status_of(person, asked) is RequestStatus.FAILED
    assert sealed_secrets([person.phone]) == []
    # A new request is answered.
    again = person.ask()
    person.approve(again)
    apply(person, again)
    assert len(person.phone.words()) == 2


def test_apply__file_for_another_key__cannot_be_decrypted(person: Person) -> None:
    first, second = person.ask(), person.ask()
    person.approve(first)
    replayed = response_of(person, first)
    person.approve(second)
    # The device itself lies: it names a file that was made for another request.
    told = replace(replayed, id=second.id, recipient=response_of(person, second).recipient)
    with person.phone.store.writing() as connection:
        connection.exec_driver_sql("UPDATE history_requests SET response = NULL")
    deliver(person.phone, second.group_id, person.laptop.key, told.encoded())
    person.take()

    with pytest.raises(DecryptionFailed):
        apply(person, second)

    assert status_of(person, second) is RequestStatus.FAILED


def test_apply__device_was_revoked_meanwhile__fails(person: Person) -> None:
    asked = person.ask()
    person.approve(asked)
    person.inbox.discard(person.laptop.key)

    with pytest.raises(ValidationFailed, match="a revoked one"):
        apply(person, asked)

    assert person.phone.words() == []


@pytest.mark.conforms("H20")
def test_apply__without_a_response__is_told(person: Person) -> None:
    asked = person.ask()

    for request_id, words in ((asked.id, "pending, without a response"), (bytes(16), "none")):
        with pytest.raises(ResponseNotFound, match=words):
            asyncio.run(person.requester.apply(request_id))


@pytest.mark.conforms("H21")
def test_request__after_its_day__is_expired_and_its_key_is_gone(person: Person) -> None:
    asked = person.ask()
    held = sealed_secrets(person.devices)
    person.now_ns += (REQUEST_SECONDS - 1) * 10**9
    person.resume()
    assert status_of(person, asked) is RequestStatus.PENDING

    person.now_ns += 10**9
    person.resume()

    assert status_of(person, asked) is RequestStatus.EXPIRED
    assert person.provider.asks() == []
    assert len(held) == 2
    for home in person.homes:
        assert not any(each in held_bytes(home) for each in held)


@pytest.mark.conforms("H8")
def test_apply__afterwards__no_byte_of_key_request_or_response_is_left(person: Person) -> None:
    asked = person.ask()
    held = sealed_secrets(person.devices)
    person.approve(asked)
    held += sealed_secrets(person.devices)

    apply(person, asked)
    person.resume()

    assert len(set(held)) >= 3
    for home in person.homes:
        assert not any(each in held_bytes(home) for each in held)
