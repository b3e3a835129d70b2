import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chainkit.council.calls import Call
from chainkit.council.proposal import (
    Council,
    Proposal,
    collect,
    parse_proposal,
    proposal_bytes,
    proposal_content,
    read_proposal,
    sign_proposal,
    write_proposal_file,
)
from chainkit.council.safe import SafeTransaction
from chainkit.council.signing import KeySigner
from chainkit.documents.canonical import page_bytes
from chainkit.errors import ChainkitError, ConfigurationError, InvalidSignature, MalformedData
from support.council.proposals import (
    OWNERS,
    PLAIN,
    RECORD,
    SAFE,
    STRANGER,
    change_threshold,
    disable,
    pause,
    proposed,
    signer,
    transfer,
)

STATUS = "node 300 status"
SIGNED = sign_proposal(proposed(disable(), pause()), SAFE, signer(0))
PLAIN_SIGNED = sign_proposal(proposed(council=PLAIN), PLAIN, signer(0))


def parse(content: dict[str, Any], council: Council = SAFE) -> Proposal:
    return parse_proposal(page_bytes(content), "proposal", RECORD, council)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for name in value:
            yield from leaves(value[name], (*path, name))
    elif isinstance(value, list):
        for number in range(len(value)):
            yield from leaves(value[number], (*path, number))
    else:
        yield path


def changed(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if value is None:
        return "something"
    last = "1" if value[-1:] != "1" else "2"
    return value[:-1] + last


def with_leaf(content: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    tampered = copy.deepcopy(content)
    inner = tampered
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = changed(inner[path[-1]])
    return tampered


@pytest.mark.parametrize(
    "proposal", [SIGNED, PLAIN_SIGNED, proposed()], ids=["safe", "plain", "new"]
)
def test_parse__what_was_written__is_the_same_proposal(proposal: Proposal) -> None:
    council = PLAIN if proposal.fees else SAFE

    found = parse_proposal(proposal_bytes(proposal), "proposal", RECORD, council)

    assert found == proposal
    assert found.hash == proposal.hash


@pytest.mark.parametrize(
    "path", leaves(proposal_content(SIGNED)), ids=lambda path: ".".join(map(str, path))
)
def test_parse__one_value_of_a_safes_proposal_changed__is_refused(path: tuple[Any, ...]) -> None:
    with pytest.raises(ChainkitError):
        parse(with_leaf(proposal_content(SIGNED), path))


@pytest.mark.parametrize(
    "path", leaves(proposal_content(PLAIN_SIGNED)), ids=lambda path: ".".join(map(str, path))
)
def test_parse__one_value_of_a_plain_proposal_changed__is_refused(path: tuple[Any, ...]) -> None:
    with pytest.raises(ChainkitError):
        parse(with_leaf(proposal_content(PLAIN_SIGNED), path), PLAIN)


def test_parse__values_under_each_others_names__says_which() -> None:
    # As a foreign ABI shows them whose parameters are named the other way round.
    content = proposal_content(proposed(transfer(OWNERS[0], OWNERS[1])))
    arguments = content["calls"][0]["arguments"]
    swapped = {"from": arguments["to"], "to": arguments["from"]}
    content["calls"][0]["arguments"] = arguments | swapped

    expected = rf"calls\.0\.arguments\.from: expected {OWNERS[0]}, got {OWNERS[1]}"
    with pytest.raises(MalformedData, match=expected):
        parse(content)


def test_parse__other_names_for_the_arguments__says_which() -> None:
    content = proposal_content(proposed())
    arguments = content["calls"][0]["arguments"]
    renamed = {"nodeId": arguments["tokenId"], "isHealthy": arguments["isHealthy"]}
    content["calls"][0]["arguments"] = renamed

    with pytest.raises(MalformedData, match=r"calls\.0\.arguments\.tokenId"):
        parse(content)


def test_parse__call_changed_with_all_that_follows__loses_its_signatures() -> None:
    other = proposed(disable(400), pause())
    content = proposal_content(other) | {"signatures": proposal_content(SIGNED)["signatures"]}

    with pytest.raises(MalformedData, match="signatures"):
        parse(content)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"after": {STATUS: "enabled"}}, rf"after, {STATUS}: expected disabled, got enabled"),
        ({"after": {STATUS: "disabled (as agreed)"}}, "expected disabled, got disabled .as agreed"),
        ({"before": {STATUS: "disabled"}}, "one that changes something"),
        (
            {"before": {"node 400 status": "enabled"}, "after": {"node 400 status": "disabled"}},
            rf"facts before: expected {STATUS}, got node 400 status",
        ),
        (
            {
                "before": {STATUS: "enabled", "NodeRegistry owner": "nobody"},
                "after": {STATUS: "disabled", "NodeRegistry owner": "you"},
            },
            rf"facts before: expected {STATUS}, got NodeRegistry owner",
        ),
        ({"before": {}, "after": {}}, rf"facts before: expected {STATUS}, got none"),
    ],
    ids=["false", "ornate", "nothing", "another's", "one more", "none"],
)
def test_parse__promises_other_than_its_calls_do__is_refused(
    change: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All that follows from the promise fits it, as in the file of a drafter who skips the check.
    with monkeypatch.context() as patch:
        patch.setattr("chainkit.council.proposal.proposal._check_promise", lambda *_: None)
        content = proposal_content(proposed(**change))

    with pytest.raises(ChainkitError, match=words):
        parse(content)


@pytest.mark.parametrize("threshold", ["0", "two", "", "2_0", "9" * 10])
def test_parse__number_of_signatures_that_no_safe_says__is_refused(threshold: str) -> None:
    content = proposal_content(proposed(change_threshold()))
    content["grounds"]["before"]["Safe signatures needed"] = threshold

    with pytest.raises(MalformedData, match="Safe signatures needed: expected a number"):
        parse_proposal(page_bytes(content), "proposal", RECORD, SAFE, changes_safe=True)


def test_parse__signature_given_to_another_owner__is_refused() -> None:
    content = proposal_content(SIGNED)
    (signature,) = content["signatures"].values()
    content["signatures"] = {OWNERS[1]: signature}

    with pytest.raises(MalformedData, match="signatures"):
        parse(content)


def test_parse__bytes_behind_the_arguments__is_refused() -> None:
    content = proposal_content(proposed())
    content["calls"][0]["calldata"] += "00"

    with pytest.raises(MalformedData, match="its arguments alone"):
        parse(content)


def test_parse__contract_that_is_not_the_records__names_those_that_are() -> None:
    content = proposal_content(proposed())
    content["calls"][0]["target"] = "0x" + "77" * 20

    with pytest.raises(ConfigurationError, match="NodeRegistry 0x3333"):
        parse(content)


def test_parse__function_that_no_council_needs__is_refused() -> None:
    content = proposal_content(proposed())
    # approve(address,uint256)
    content["calls"][0]["calldata"] = "0x095ea7b3" + bytes(64).hex()

    with pytest.raises(MalformedData, match="selector 0x095ea7b3"):
        parse(content)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"chain_id": 1}, "chain_id 1, as your council file has it, got 31337"),
        ({"account": b"\x5b" * 20}, "account 0x5b"),
        ({"safe": None}, "an account with a key"),
    ],
)
def test_parse__for_another_council__says_what_the_readers_file_has(
    change: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"(?i){words}"):
        parse(proposal_content(proposed()), replace(SAFE, **change))


def test_parse__other_multi_send_in_the_readers_file__is_refused() -> None:
    assert SAFE.safe is not None
    poisoned = replace(SAFE, safe=replace(SAFE.safe, multi_send=b"\x66" * 20))

    with pytest.raises(MalformedData, match="expected 0x"):
        parse(proposal_content(SIGNED), poisoned)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"{}", b'{"format": 2}', b"\xff", b"[" * 100_000]
)
def test_parse__no_proposal__says_so(data: bytes) -> None:
    with pytest.raises(MalformedData, match="proposal"):
        parse_proposal(data, "proposal", RECORD, SAFE)


def test_parse__same_content_in_another_form__is_refused() -> None:
    data = json.dumps(proposal_content(proposed())).encode()

    with pytest.raises(MalformedData, match="the one form of its JSON"):
        parse_proposal(data, "proposal", RECORD, SAFE)


def test_make__several_calls__are_one_batch_of_calls_only() -> None:
    proposal = proposed(disable(), pause(), pause("IdentityUpdates"))

    assert isinstance(proposal.transaction, SafeTransaction)
    assert SAFE.safe is not None
    inner = proposal.transaction.inner_calls(SAFE.safe.multi_send)
    assert [call.target for call in inner] == [call.target for call in proposal.calls]
    assert [call.calldata for call in inner[:-1]] == [c.calldata for c in proposal.calls[:-1]]
    assert inner[-1].calldata == proposal.calls[-1].calldata + proposal.grounds.trailer


def test_make__several_calls_of_a_plain_account__is_refused() -> None:
    with pytest.raises(ConfigurationError, match="one call"):
        proposed(disable(), pause(), council=PLAIN)


def test_make__no_call__is_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least one call"):
        Proposal.make(RECORD, SAFE, (), proposed().grounds, 0, None)


def test_make__council_of_another_chain__is_refused() -> None:
    with pytest.raises(ConfigurationError, match="chain id 31337"):
        Proposal.make(RECORD, replace(SAFE, chain_id=1), (disable(),), proposed().grounds, 0, None)


def test_call__encoded_otherwise_though_it_decodes__is_refused() -> None:
    # A bool in a word with other bits set: Solidity itself would refuse or mask it.
    data = disable().calldata[:-1] + b"\x02"

    with pytest.raises(MalformedData):
        Call.read(RECORD, disable().target, data)


def test_sign__twice_by_one_owner__is_refused() -> None:
    with pytest.raises(ConfigurationError, match="has not signed yet"):
        sign_proposal(SIGNED, SAFE, signer(0))


def test_sign__plain_account_by_another_key__is_refused() -> None:
    with pytest.raises(ConfigurationError, match=OWNERS[0]):
        sign_proposal(proposed(council=PLAIN), PLAIN, KeySigner("key", STRANGER))


def test_signed__eth_sign_kind_for_a_plain_account__is_refused() -> None:
    (signature,) = PLAIN_SIGNED.signatures.values()

    with pytest.raises(InvalidSignature, match="V 27 or 28"):
        proposed(council=PLAIN).signed(signature[:-1] + bytes([signature[-1] + 4]))


def test_collect__copies_signed_apart__holds_all_signatures() -> None:
    proposal = proposed()
    copies = [sign_proposal(proposal, SAFE, signer(number)) for number in range(3)]

    found = collect(proposal, SAFE, dict(zip("abc", copies, strict=True)))

    assert set(found.signatures) == set(OWNERS)


def test_collect__another_proposal__is_refused() -> None:
    other = sign_proposal(proposed(nonce=1), SAFE, signer(0))

    with pytest.raises(MalformedData, match=f"^copy b.json: .* another, with 0x{other.hash.hex()}"):
        collect(proposed(), SAFE, {"copy b.json": other})


def test_write__new_one_over_a_file__leaves_it(tmp_path: Path) -> None:
    path = tmp_path / "proposal.json"
    write_proposal_file(path, proposed(), is_new=True)

    with pytest.raises(ConfigurationError, match="already exists"):
        write_proposal_file(path, proposed(nonce=1), is_new=True)

    assert read_proposal(path, RECORD, SAFE) == proposed()
    assert list(tmp_path.iterdir()) == [path]


def test_read__no_file_and_one_too_large__say_so(tmp_path: Path) -> None:
    path = tmp_path / "proposal.json"
    with pytest.raises(ConfigurationError, match="does not exist"):
        read_proposal(path, RECORD, SAFE)

    path.write_bytes(b" " * (2**22 + 1))
    with pytest.raises(ConfigurationError, match="at most"):
        read_proposal(path, RECORD, SAFE)


def test_read__pipe_that_nobody_writes_to__is_refused(tmp_path: Path) -> None:
    path = tmp_path / "proposal.json"
    os.mkfifo(path)

    with pytest.raises(ConfigurationError, match="got a pipe or a device"):
        read_proposal(path, RECORD, SAFE)


@pytest.mark.parametrize("is_new", [True, False])
def test_write__link_in_the_files_place__writes_through_none(tmp_path: Path, is_new: bool) -> None:
    path, mine = tmp_path / "proposal.json", tmp_path / "council.json"
    mine.write_text("mine")
    path.symlink_to(mine)

    with pytest.raises(ConfigurationError, match="proposal"):
        write_proposal_file(path, proposed(), is_new)

    assert mine.read_text() == "mine"


@pytest.mark.parametrize("is_new", [True, False])
def test_write__link_where_a_draft_would_go__is_left(tmp_path: Path, is_new: bool) -> None:
    path, mine = tmp_path / "proposal.json", tmp_path / "council.json"
    mine.write_text("mine")
    path.with_name(".proposal.json.draft").symlink_to(mine)
    if not is_new:
        write_proposal_file(path, proposed(nonce=1), is_new=True)

    write_proposal_file(path, proposed(), is_new)

    assert (mine.read_text(), path.is_symlink()) == ("mine", False)
    assert read_proposal(path, RECORD, SAFE) == proposed()


def test_write__over_a_read_only_file__leaves_it(tmp_path: Path) -> None:
    path = tmp_path / "proposal.json"
    write_proposal_file(path, proposed(), is_new=True)
    path.chmod(0o444)

    with pytest.raises(ConfigurationError, match="read-only"):
        write_proposal_file(path, proposed(nonce=1), is_new=False)

    assert read_proposal(path, RECORD, SAFE) == proposed()


def test_signing__without_a_network__loads_nothing_that_could_open_one() -> None:
    program = (
        "import sys, chainkit.council.proposal, chainkit.cli.council.group\n"
        "print([name for name in ('web3', 'requests', 'chainkit.chain') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stdout == "[]\n", done.stderr
