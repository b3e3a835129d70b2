"""The device that is asked: nothing is read, written or sent before its person approves."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any
from unittest import mock

import pyrage
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pyrage import x25519

from chainkit_client.exchange import provider as provider_module
from chainkit_client.exchange import requester as requester_module
from chainkit_client.exchange.control import HistoryRequest, HistoryResponse, parse_control
from chainkit_client.exchange.errors import (
    ExchangeError,
    HistoryOff,
    InvalidRequest,
    RequestNotFound,
    WrongPin,
)
from chainkit_client.exchange.exchange import HistoryExchange, take_messages
from chainkit_client.exchange.provider import MOST_ASKS, MOST_TRIES
from chainkit_client.groups.control import CONTROL_PREFIX
from chainkit_client.history.packing import new_key, recipient_of
from chainkit_client.storage.sync_groups import read_control
from support.client.asking_devices import STORAGE_URL, Person, deliver, sealed_secrets
from support.client.group_network import memory_folder
from support.client.history_devices import BEGIN_NS, NODE, text
from support.seeds import IS_SOAK

STRANGER = b"\x09" * 32
EXAMPLES = 500 if IS_SOAK else 10


def wrong(pin: str) -> str:
    return f"{(int(pin) + 1) % 10_000:04}"


def request(person: Person, **values: Any) -> HistoryRequest:
    """A request that a device may send by hand."""
    given = {
        "id": bytes(16),
        "installation": person.laptop.key,
        "pin": "0427",
        "upload_url": f"{STORAGE_URL}/backups?grant=a",
        "recipient": recipient_of(new_key()),
        "expires_ns": person.now_ns + 10**9,
    }
    return HistoryRequest(**(given | values))


def test_history__is_written_and_loaded__while_no_mls_engine_takes_memory(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    rested, write, load = list[int](), provider_module.write, requester_module.load

    def written(*given: Any) -> Any:
        rested.append(person.laptop_devices.rests)
        return write(*given)

    def loaded(*given: Any, **named: Any) -> Any:
        rested.append(person.phone_devices.rests)
        return load(*given, **named)

    monkeypatch.setattr(provider_module, "write", written)
    monkeypatch.setattr(requester_module, "load", loaded)
    asked = person.ask()

    person.approve(asked)
    asyncio.run(person.requester.apply(asked.id))

    assert rested == [1, 1]


@pytest.mark.conforms("H14")
def test_approve__with_the_pin__uploads_one_file_to_the_requested_service(person: Person) -> None:
    asked = person.ask()
    assert person.storage.uploads == 0

    person.approve(asked)

    assert (person.storage.uploads, person.laptop_devices.sent) == (1, 1)
    assert person.provider.asks() == []
    with pytest.raises(RequestNotFound):
        person.approve(asked)


@pytest.mark.conforms("H25")
def test_take__request_of_a_backup__is_ignored(person: Person) -> None:
    person.backups = {person.phone.key}

    person.ask()

    assert person.provider.asks() == []


@pytest.mark.conforms("H15")
def test_approve__response__names_url_hash_key_and_expiry(person: Person) -> None:
    asked = person.ask()
    [ask] = person.provider.asks()
    person.approve(asked)

    [stored] = person.requester.requests()
    assert stored.response is not None
    response, sent = parse_control(stored.response), parse_control(ask.request)

    assert isinstance(response, HistoryResponse) and isinstance(sent, HistoryRequest)
    [path] = person.storage.folder.iterdir()
    assert response.backup_url == f"{STORAGE_URL}/backups/{path.name}"
    assert response.file_hash == hashlib.sha256(path.read_bytes()).digest()
    assert (response.length, response.recipient) == (path.stat().st_size, sent.recipient)
    assert response.expires_ns == person.now_ns + 72 * 3600 * 10**9


@pytest.mark.conforms("H13")
def test_approve__same_messages_to_one_key_again__has_another_file_key_salt_and_nonce(
    person: Person,
) -> None:
    identity = x25519.Identity.generate()
    recipient = str(identity.to_public())
    files = []
    for number in range(12):
        sent = request(person, id=bytes([number]) * 16, recipient=recipient)
        deliver(person.laptop, b"%016d" % number, person.phone.key, sent.encoded())
        person.take()
        asyncio.run(person.provider.approve(sent.id, sent.pin))
    for path in person.storage.folder.iterdir():
        files.append(path.read_bytes())

    # age: an ephemeral share and a wrapped key in the header, a nonce before the first chunk.
    heads, bodies = zip(*(each.split(b"\n--- ", 1) for each in files), strict=True)
    macs, nonces = zip(*((each[:43], each[44:60]) for each in bodies), strict=True)
    for parts in (heads, macs, nonces):
        assert len(set(parts)) == len(files) == 12
    assert all(pyrage.decrypt(each, [identity]) for each in files)


@pytest.mark.conforms("H12")
def test_approve__since_a_time__leaves_out_what_is_older(person: Person) -> None:
    asked = person.ask()
    pin = person.requester.pin(asked)

    saved = asyncio.run(person.provider.approve(asked.id, pin, BEGIN_NS + 1))

    assert saved.messages == 1


@pytest.mark.conforms("H17")
def test_approve__wrong_pin_three_times__deletes_the_request(person: Person) -> None:
    asked = person.ask()
    pin = person.requester.pin(asked)

    for left in ("2 more tries", "1 more tries", "the request is gone"):
        with pytest.raises(WrongPin, match=left):
            person.approve(asked, wrong(pin))

    assert MOST_TRIES == 3
    with pytest.raises(RequestNotFound):
        person.approve(asked, pin)
    assert person.storage.uploads == 0


@pytest.mark.conforms("H10")
def test_approve__device_was_revoked_after_it_asked__gets_nothing(person: Person) -> None:
    asked = person.ask()
    person.inbox.discard(person.phone.key)

    with pytest.raises(InvalidRequest, match="devices that are in your inbox now"):
        person.approve(asked)

    assert (person.storage.uploads, person.provider.asks()) == (0, [])


def test_approve__group_has_a_reader_of_another_inbox__gets_nothing(person: Person) -> None:
    asked = person.ask()
    person.readers.add(STRANGER)

    with pytest.raises(InvalidRequest):
        person.approve(asked)

    assert person.storage.uploads == 0


@pytest.mark.conforms("H11")
def test_request__of_a_device_of_another_inbox__is_ignored(person: Person) -> None:
    deliver(person.laptop, b"g" * 16, STRANGER, request(person).encoded())

    person.take()

    assert person.provider.asks() == []
    assert person.laptop.words() == [b"hello", b"there"]


def test_request__to_another_service__is_refused_and_nothing_is_sent_there(person: Person) -> None:
    sent = request(person, upload_url="https://evil.example/backups")
    deliver(person.laptop, b"s" * 16, person.phone.key, sent.encoded())
    person.take()

    with pytest.raises(InvalidRequest, match="to another service"):
        asyncio.run(person.provider.approve(sent.id, sent.pin))

    assert (person.storage.uploads, person.provider.asks()) == (0, [])


def test_request__many_of_one_device__are_bounded(person: Person) -> None:
    for number in range(2 * MOST_ASKS):
        sent = request(person, id=number.to_bytes(16, "big"))
        deliver(person.laptop, b"s" * 16, person.phone.key, sent.encoded())
    person.take()

    assert len(person.provider.asks()) == MOST_ASKS


@pytest.mark.conforms("H19")
def test_deny__request__is_deleted_and_nothing_is_sent(person: Person) -> None:
    asked = person.ask()

    person.provider.deny(asked.id)

    assert (person.provider.asks(), person.laptop_devices.sent) == ([], 0)
    assert sealed_secrets([person.laptop]) == []
    with pytest.raises(RequestNotFound):
        person.provider.deny(asked.id)


@pytest.mark.conforms("H18")
def test_request__where_history_is_off__is_deleted_unread(person: Person) -> None:
    sent = request(person)
    deliver(person.laptop, b"s" * 16, person.phone.key, sent.encoded())
    devices: Any = person.laptop_devices

    asyncio.run(take_messages(person.laptop.store, devices, None))

    with person.laptop.store.reading() as connection:
        assert read_control(connection, person.laptop.store.seal) == []
    assert (person.provider.asks(), person.storage.uploads) == ([], 0)


@pytest.mark.conforms("H18")
def test_exchange__without_a_storage_service__is_off(person: Person) -> None:
    none: Any = None

    exchange = HistoryExchange(none, person.laptop.store, none, None, Path(), none)

    assert (exchange.is_on, exchange.is_asked()) == (False, False)
    for side in ("requester", "provider"):
        with pytest.raises(HistoryOff, match="chainkit client history storage URL"):
            getattr(exchange, side)


SENDERS = st.sampled_from(["phone", "stranger"])
ANY = st.one_of(
    st.binary(max_size=60),
    st.binary(max_size=60).map(lambda each: CONTROL_PREFIX + each),
    st.dictionaries(st.sampled_from(["kind", "version", "id"]), st.integers()).map(
        lambda each: CONTROL_PREFIX + str(each).replace("'", '"').encode()
    ),
)


class ProviderMachine(RuleBasedStateMachine):
    """Whatever comes, and whatever its person types: one file for each right approval."""

    def __init__(self) -> None:
        super().__init__()
        self.context = memory_folder()
        self.person = Person(Path(self.context.__enter__()))
        self.person.laptop.join()
        self.person.laptop.read(text(b"hello", (NODE, 1)))
        self.pending: dict[bytes, HistoryRequest] = {}
        self.tries: dict[bytes, int] = {}
        self.number = 0
        self.approved = 0
        self.written = 0
        original = provider_module.write

        def counted(*given: Any) -> Any:
            self.written += 1
            return original(*given)

        self.patch = mock.patch.object(provider_module, "write", counted)
        self.patch.start()

    def teardown(self) -> None:
        self.patch.stop()
        for each in self.person.devices:
            each.store.close()
        self.context.__exit__(None, None, None)

    @rule(sender=SENDERS, content=ANY)
    def comes(self, sender: str, content: bytes) -> None:
        key = self.person.phone.key if sender == "phone" else STRANGER
        deliver(self.person.laptop, b"s" * 16, key, content)
        self.person.take()

    @rule(sender=SENDERS, is_for_it=st.booleans(), is_trusted=st.booleans())
    def asks(self, sender: str, is_for_it: bool, is_trusted: bool) -> None:
        self.number += 1
        person, identity = self.person, self.number.to_bytes(16, "big")
        sent = request(
            person,
            id=identity,
            installation=person.laptop.key if is_for_it else person.phone.key,
            upload_url=f"{STORAGE_URL if is_trusted else 'https://evil.example'}/backups",
        )
        is_phone = sender == "phone"
        deliver(person.laptop, identity, person.phone.key if is_phone else STRANGER, sent.encoded())
        person.take()
        is_in = person.phone.key in person.inbox and len(self.pending) < MOST_ASKS
        if is_phone and is_for_it and is_in:
            self.pending[identity] = sent
            self.tries[identity] = 0

    @precondition(lambda self: self.pending)
    @rule(data=st.data(), is_right=st.booleans())
    def approves(self, data: st.DataObject, is_right: bool) -> None:
        identity = data.draw(st.sampled_from(sorted(self.pending)))
        sent = self.pending[identity]
        is_in_time = sent.expires_ns > self.person.now_ns
        is_asking = self.person.phone.key in self.person.inbox
        is_good = is_in_time and is_right and is_asking and sent.upload_url.startswith(STORAGE_URL)
        pin = sent.pin if is_right else wrong(sent.pin)
        try:
            asyncio.run(self.person.provider.approve(identity, pin))
        except ExchangeError:
            assert not is_good
        else:
            assert is_good
            self.approved += 1
        if is_in_time and not is_right:
            self.tries[identity] += 1
        if (is_in_time and is_right) or self.tries[identity] == MOST_TRIES:
            del self.pending[identity]

    @rule(identity=st.binary(min_size=16, max_size=16))
    def approves_nothing(self, identity: bytes) -> None:
        with pytest.raises(RequestNotFound):
            asyncio.run(self.person.provider.approve(identity, "0427"))

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def denies(self, data: st.DataObject) -> None:
        identity = data.draw(st.sampled_from(sorted(self.pending)))
        sent = self.pending.pop(identity)
        if sent.expires_ns > self.person.now_ns:
            self.person.provider.deny(identity)

    @rule()
    def is_revoked_or_added(self) -> None:
        self.person.inbox ^= {self.person.phone.key}

    @rule(seconds=st.sampled_from([0, 1, 100_000]))
    def time_goes_by(self, seconds: int) -> None:
        self.person.now_ns += seconds * 10**9
        self.person.provider.resume()
        over = [key for key, each in self.pending.items() if each.expires_ns <= self.person.now_ns]
        for key in over:
            del self.pending[key]

    @invariant()
    def one_file_for_each_right_approval(self) -> None:
        person = self.person
        counts = self.written, person.storage.uploads, person.laptop_devices.sent
        assert counts == (self.approved,) * 3
        assert {each.id for each in person.provider.asks()} == set(self.pending)


@pytest.mark.conforms("H14")
def test_provider__whatever_comes__makes_one_file_for_each_right_approval() -> None:
    steps = settings(max_examples=EXAMPLES, stateful_step_count=25, deadline=None, database=None)
    run_state_machine_as_test(ProviderMachine, settings=steps)  # type: ignore[no-untyped-call]
