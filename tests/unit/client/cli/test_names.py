"""Names on the command line: a beginning is enough where it is unique, and a typo is found."""

from __future__ import annotations

import pytest

from chainkit.errors import ConfigurationError
from chainkit_client.cli.names import checked_names, find_group, find_joined
from chainkit_client.groups.overview import Group
from chainkit_client.storage.schema import MembershipState

ADDRESS = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
INBOX = "ab" * 32


def group(identity: str, membership: MembershipState = MembershipState.ALLOWED) -> Group:
    return Group(bytes.fromhex(identity), 1, membership, 1, True, None)


GROUPS = [group("a1b2c3d4" * 4), group("a1ffffff" * 4), group("3fa2b1c4" * 4)]


@pytest.mark.parametrize("text", ["3", "3fa2", "0x3FA2", "3fa2b1c4" * 4, " 3fa "])
def test_find_group__unique_beginning__is_it(text: str) -> None:
    assert find_group(GROUPS, text) is GROUPS[2]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a1", "expected the beginning of one group's id, got that of a1b2c3d4, a1ffffff"),
        ("b", "expected the beginning of a group's id: a1b2c3d4, a1ffffff, 3fa2b1c4, got 'b'"),
        ("", "got ''"),
        ("xyz", "got 'xyz'"),
    ],
)
def test_find_group__none_or_several__are_named(text: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        find_group(GROUPS, text)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("membership", "told"),
    [(MembershipState.PENDING, "an invitation"), (MembershipState.REJECTED, "a rejected one")],
)
def test_find_joined__not_accepted__says_how(membership: MembershipState, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told) as error:
        find_joined([group("3fa2b1c4" * 4, membership)], "3")
    assert "`chainkit client accept 3fa2b1c4`" in str(error.value)


def test_checked_names__all_forms__are_in_lower_case() -> None:
    names = [ADDRESS, ADDRESS.lower(), f"0x{ADDRESS[2:].upper()}", INBOX.upper()]

    assert checked_names(names) == [ADDRESS.lower()] * 3 + [INBOX]


@pytest.mark.parametrize(
    "name", [ADDRESS.replace("C5", "c5"), ADDRESS[:-1], INBOX[:-1], "bob", "", f"0x{INBOX}"]
)
def test_checked_names__typo__is_found(name: str) -> None:
    with pytest.raises(ConfigurationError, match="NAME: expected an"):
        checked_names([name])
