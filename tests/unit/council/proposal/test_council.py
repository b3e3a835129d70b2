import json
import os
from pathlib import Path
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from chainkit.council.proposal import AddressBook, council_content, read_council, write_council
from chainkit.errors import ConfigurationError
from support.council.proposals import NAMES, OWNERS, PLAIN, RECORD, SAFE

ALICE = OWNERS[0]
STRANGER = "0x" + "66" * 20
assert SAFE.safe is not None
MULTI_SEND = to_checksum_address(SAFE.safe.multi_send)
LOOK_ALIKE = ALICE[:6] + "0" * 32 + ALICE[-4:]


def written(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "council.json"
    path.write_text(json.dumps(council_content(SAFE) | changes))
    return path


@pytest.mark.parametrize("council", [SAFE, PLAIN], ids=["safe", "plain"])
def test_read__what_was_written__is_the_same(tmp_path: Path, council: Any) -> None:
    path = tmp_path / "council.json"

    write_council(path, council)

    assert read_council(path) == council


def test_write__over_a_file__leaves_it(tmp_path: Path) -> None:
    path = written(tmp_path)

    with pytest.raises(ConfigurationError, match=r" already exists$"):
        write_council(path, PLAIN)

    assert read_council(path) == SAFE


def test_write__where_no_folder_is__names_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "absent"

    with pytest.raises(ConfigurationError, match=f"a folder that takes new files, got {folder}$"):
        write_council(folder / "council.json", PLAIN)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": 2}, "expected 1, got 2"),
        ({"chain_id": "31337"}, "chain_id"),
        ({"account": "0x5a"}, "40 hex digits"),
        ({"safe": {"release": "new", "multi_send": MULTI_SEND}}, "a known release: 1.4.1 or 1.5.0"),
        ({"safe": {"release": "9.9.9", "multi_send": MULTI_SEND}}, "a known release"),
        ({"safe": {"release": "1.4.1", "multi_send": STRANGER}}, "that of MultiSendCallOnly 1.4.1"),
        ({"safe": {"release": "1.5.0", "multi_send": MULTI_SEND}}, "of MultiSendCallOnly 1.5.0"),
        ({"safe": {"release": "1.4.1"}}, "safe.multi_send"),
        ({"names": {"аlice": ALICE}}, "ASCII"),
        ({"names": {"alice\x1b[2J": ALICE}}, "ASCII"),
        ({"names": {"alice": ALICE, "bob": ALICE}}, "one name for"),
        ({"names": {"alice": ALICE, "Alice": OWNERS[1]}}, "more than their case"),
        ({"names": {"alice": "0x01"}}, "names.alice"),
    ],
)
def test_read__field_that_cannot_be_used__is_named(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        read_council(written(tmp_path, **changes))


@pytest.mark.parametrize(
    "name",
    [
        *("NodeRegistry", "GroupMessages", "IdentityUpdates", "OriginatorSequence"),
        *("MultiSendCallOnly", "Safe", "SafeProxy", "CompatibilityFallbackHandler"),
        *("noderegistry", "Node Registry", "node-registry.", "the councils Safe"),
        *("the councils account", "not in your council file"),
    ],
)
def test_read__stranger_named_like_a_contract__is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="a name that the contracts do not have"):
        read_council(written(tmp_path, names={name: STRANGER}))


@pytest.mark.parametrize("name", ["Registry", "NodeRegistry2", "safe keeper", "council"])
def test_read__name_that_only_resembles_a_contracts__is_a_name(tmp_path: Path, name: str) -> None:
    council = read_council(written(tmp_path, names={name: STRANGER}))

    assert council.names == {to_checksum_address(STRANGER): name}


@pytest.mark.parametrize(
    ("once", "twice"),
    [
        (f'"alice": "{ALICE}"', f'"alice": "{ALICE}", "alice": "{STRANGER}"'),
        ('"format": 1', f'"account": "{STRANGER}", "format": 1'),
    ],
    ids=["a name", "the account"],
)
def test_read__field_twice__is_refused(tmp_path: Path, once: str, twice: str) -> None:
    path = written(tmp_path)
    path.write_text(path.read_text().replace(once, twice))

    with pytest.raises(ConfigurationError, match="twice"):
        read_council(path)


def test_read__pipe_that_nobody_writes_to__is_refused(tmp_path: Path) -> None:
    path = tmp_path / "council.json"
    os.mkfifo(path)

    with pytest.raises(ConfigurationError, match="got a pipe or a device"):
        read_council(path)


def test_read__name_with_escapes_and_no_address__is_safe_to_print(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_council(written(tmp_path, names={"\x1b[2J\u202e": "x"}))

    assert str(caught.value).isprintable()


def test_write__link_in_its_place__writes_through_none(tmp_path: Path) -> None:
    path, mine = tmp_path / "council.json", tmp_path / "mine"
    path.symlink_to(mine)

    with pytest.raises(ConfigurationError, match="already exists"):
        write_council(path, SAFE)

    assert not mine.exists()


def test_read__several_faults__tells_them_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"chain_id.*account"):
        read_council(written(tmp_path, chain_id=-1, account="x"))


def test_described__known_addresses__have_their_names() -> None:
    book = AddressBook(RECORD, SAFE)

    assert [book.name(owner) for owner in OWNERS] == list(NAMES)
    assert book.described(SAFE.address) == f"{SAFE.address} (the council's Safe)"
    registry = "0x" + "33" * 20
    assert book.described(registry) == f"{registry} (NodeRegistry)"


def test_described__unknown_address__says_so() -> None:
    address = "0x" + "77" * 20

    assert AddressBook(RECORD, SAFE).described(address) == f"{address} (not in your council file)"


def test_described__address_with_both_ends_of_an_owners__warns() -> None:
    words = AddressBook(RECORD, SAFE).described(LOOK_ALIKE)

    assert words == f"{LOOK_ALIKE} (NOT IN YOUR FILE, and looks like {ALICE}: alice)"


def test_described__names_of_contracts_in_the_file__do_not_rename_the_records() -> None:
    registry = "0x" + "33" * 20
    poisoned = AddressBook(RECORD, SAFE.__class__(31337, SAFE.account, SAFE.safe, {registry: "x"}))

    assert poisoned.name(registry) == "NodeRegistry"
