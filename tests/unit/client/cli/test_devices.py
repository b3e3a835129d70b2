"""Devices on the command line: which ones may be revoked, and what people read of them."""

from __future__ import annotations

import pytest

from chainkit.errors import ConfigurationError
from chainkit_client.cli.devices import as_content, chosen, lines
from chainkit_client.network.devices import Device

SECOND_NS = 10**9
LAPTOP = Device(bytes.fromhex("a1" * 32), 1_700_000_000 * SECOND_NS)
PHONE = Device(bytes.fromhex("a2" * 32), 1_700_000_100 * SECOND_NS)
LOST = Device(
    bytes.fromhex("b3" * 32), 1_700_000_200 * SECOND_NS, 1_700_000_300 * SECOND_NS, (0, 7)
)
DEVICES = [LAPTOP, PHONE, LOST]


def test_chosen__beginnings_of_ids__are_the_devices_each_once() -> None:
    assert chosen(DEVICES, ["a2", "0xA2a2"], LAPTOP.key, ()) == [PHONE.key]
    assert chosen(DEVICES, ["a1", "a2"], None, ()) == [LAPTOP.key, PHONE.key]
    # Its revocation is on the chain, and was interrupted before it left a group.
    assert chosen(DEVICES, ["b"], LAPTOP.key, {LOST.key}) == [LOST.key]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a", "DEVICE: expected the beginning of one device's id, got that of a1a1a1a1, a2a2a2a2"),
        ("c", "DEVICE: expected the beginning of a device's id: a1a1a1a1, a2a2a2a2, b3b3b3b3"),
        ("a1", "device a1a1a1a1: expected another device, or --this-device, got this one"),
        (
            "b3",
            "device b3b3b3b3: expected one that is in the inbox, got one that was revoked: 2023",
        ),
    ],
)
def test_chosen__unknown_ambiguous_revoked_or_this_one__is_refused(text: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        chosen(DEVICES, ["a2", text], LAPTOP.key, {LAPTOP.key, PHONE.key})
    assert str(error.value).startswith(told)


def test_lines__devices__say_which_is_this_one_a_backup_or_revoked() -> None:
    assert [each.rstrip() for each in lines(DEVICES, LAPTOP.key, {PHONE.key})] == [
        f"device{' ' * 30}added  is",
        f"{'a1' * 10}  2023-11-14 22:13:20  this device",
        f"{'a2' * 10}  2023-11-14 22:15:00  backup",
        f"{'b3' * 10}  2023-11-14 22:16:40  revoked 2023-11-14 22:18:20",
    ]
    assert as_content(LOST, LAPTOP.key, ()) == {
        "device": "b3" * 32,
        "added_ns": LOST.added_ns,
        "revoked_ns": LOST.revoked_ns,
        "is_this": False,
        "is_backup": False,
    }
