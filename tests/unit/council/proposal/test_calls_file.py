from pathlib import Path

import pytest

from chainkit.council.calls import Call
from chainkit.council.proposal.calls_file import read_calls_file
from chainkit.documents.yaml_text import LARGEST_FILE_BYTES
from chainkit.errors import ConfigurationError
from support.council.fake_registry import node_key
from support.council.proposals import OWNERS, RECORD, disable, pause

KEY = "0x" + node_key(1).public_key.hex()


def read(folder: Path, text: str) -> tuple[Call, ...]:
    path = folder / "calls.yaml"
    path.write_text(text)
    return read_calls_file(path, RECORD)


def test_read__calls_of_every_kind_of_argument__are_those_calls(tmp_path: Path) -> None:
    role = "0x" + bytes(32).hex()

    found = read(
        tmp_path,
        "- NodeRegistry.updateHealth: {tokenId: 300, isHealthy: false}\n"
        "- GroupMessages.pause:\n"
        "- IdentityUpdates.pause: {}\n"
        f"- NodeRegistry.addNode: {{to: {OWNERS[0]}, signingKeyPub: {KEY}, httpAddress: https://a.b}}\n"
        f"- GroupMessages.grantRole: {{role: {role}, account: {OWNERS[1].lower()}}}\n",
    )

    assert found == (
        disable(),
        pause(),
        pause("IdentityUpdates"),
        Call.make(
            RECORD, "NodeRegistry", "addNode", OWNERS[0], bytes.fromhex(KEY[2:]), "https://a.b"
        ),
        Call.make(RECORD, "GroupMessages", "grantRole", bytes(32), OWNERS[1]),
    )


def test_read__role_of_the_administrators__is_taken_as_it_is_shown(tmp_path: Path) -> None:
    text = f"- GroupMessages.grantRole: {{role: DEFAULT_ADMIN_ROLE, account: '{OWNERS[1]}'}}\n"

    assert read(tmp_path, text) == (
        Call.make(RECORD, "GroupMessages", "grantRole", bytes(32), OWNERS[1]),
    )


def test_read__names_of_arguments_in_another_order__mean_the_same(tmp_path: Path) -> None:
    text = "- NodeRegistry.updateHealth: {isHealthy: false, tokenId: 300}\n"

    assert read(tmp_path, text) == (disable(),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a list of calls"),
        ("[]", "a list of calls"),
        ("a: 1", "a list of calls"),
        ("- [", "YAML"),
        ("- a\n", "Contract.function"),
        ("- {a: 1, b: 2}\n", "Contract.function"),
        ("- NodeRegistry.approve: {to: x, tokenId: 1}\n", "NodeRegistry.addNode or"),
        ("- Safe.changeThreshold: {_threshold: 1}\n", "got Safe.changeThreshold"),
        ("- GroupMessages.pause: {now: true}\n", r"the arguments \{\}"),
        ("- NodeRegistry.updateHealth: {tokenId: 300}\n", "tokenId, isHealthy, got tokenId"),
        ("- NodeRegistry.updateHealth: {nodeId: 300, isHealthy: false}\n", "tokenId, isHealthy"),
        ("- NodeRegistry.updateHealth: [300, false]\n", "tokenId, isHealthy"),
        ("- NodeRegistry.updateHealth: {tokenId: -1, isHealthy: false}\n", "uint256 holds"),
        ("- NodeRegistry.updateHealth: {tokenId: 0x1, isHealthy: false}\n", "uint256 holds"),
        (f"- NodeRegistry.updateHealth: {{tokenId: {2**256}, isHealthy: false}}\n", "uint256"),
        ("- NodeRegistry.updateHealth: {tokenId: [1], isHealthy: false}\n", "uint256 holds"),
        ("- NodeRegistry.updateHealth: {tokenId: 1, isHealthy: no}\n", "true or false"),
        ("- NodeRegistry.transferOwnership: {newOwner: 0x12}\n", "40 hex digits"),
        (f"- NodeRegistry.transferOwnership: {{newOwner: {OWNERS[0][:-1]}0}}\n", "checksum"),
        (f"- GroupMessages.grantRole: {{role: 0x12, account: {OWNERS[0]}}}\n", "bytes32"),
        (
            "- NodeRegistry.updateHealth: {tokenId: 1, tokenId: 2, isHealthy: false}\n",
            "field tokenId twice",
        ),
        ("- &a [x, x]\n- [*a, *a]\n", "an alias"),
        ("- !!python/object:os.system {}\n", r"Contract\.function|YAML"),
    ],
)
def test_read__entry_that_cannot_be_used__is_named(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=words):
        read(tmp_path, text)


def test_read__half_a_character__is_no_text(tmp_path: Path) -> None:
    arguments = f'{{to: {OWNERS[0]}, signingKeyPub: {KEY}, httpAddress: "\\ud800"}}'

    with pytest.raises(
        ConfigurationError, match=r"expected text, got \\ud800 \(\[0\]\.httpAddress\)"
    ):
        read(tmp_path, f"- NodeRegistry.addNode: {arguments}\n")


def test_read__several_faults__are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"\[0\].*\[2\]"):
        read(tmp_path, "- a\n- GroupMessages.pause: {}\n- b\n")


def test_read__escape_sequences__reach_no_terminal(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, '- "\\e[2JGroupMessages.pause": {}\n')

    assert "\x1b" not in str(caught.value)


def test_read__no_file_and_one_too_large__say_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        read_calls_file(tmp_path / "calls.yaml", RECORD)
    with pytest.raises(ConfigurationError, match="at most"):
        read(tmp_path, " " * (LARGEST_FILE_BYTES + 1))
