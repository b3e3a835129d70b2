import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from eth_abi.abi import encode

from chainkit.contracts.interface import shipped_interface
from chainkit.council.calls import Call
from chainkit.council.proposal import parse_proposal, proposal_bytes, read_proposal
from chainkit.council.safe import known_versions
from chainkit.errors import ConfigurationError, MalformedData
from chainkit.signatures import keccak256
from support.chains.chain import LocalChain, dev_address
from support.command_line import Outcome, run
from support.council.scene import OWNER_NUMBERS, PAYER, CouncilScene, safe_scene

NEW = dev_address(2)
OWNERS = [dev_address(number) for number in OWNER_NUMBERS[:3]]


@pytest.fixture
def scene(
    local_chain: LocalChain, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[CouncilScene]:
    with safe_scene(local_chain, tmp_path, getattr(request, "param", "1.4.1")) as scene:
        yield scene


def draft(scene: CouncilScene, *command: object) -> Outcome:
    path = scene.folder / "owners.json"
    arguments = ("--propose", path, "--reason", "another laptop", *scene.rpc, *scene.files)
    return run("council", "owners", *command, *arguments)


def decide(scene: CouncilScene) -> Outcome:
    path = scene.folder / "owners.json"
    typed = json.loads(path.read_text())["hashes"]["safe_tx"][2:18]
    for owner in (0, 1):
        key = scene.owner_keystore(owner)
        signed = run(
            "council",
            "sign",
            "--digits-from-pipe",
            path,
            "--owners",
            *scene.files,
            *key,
            typed=typed,
        )
        assert signed.code == 0, signed.err
    sending = ("--owners", "--broadcast", *scene.rpc, *scene.files, *scene.keystore(PAYER))
    return run("council", "execute", path, *sending)


def owners_now(scene: CouncilScene) -> tuple[set[str], int]:
    standing = scene.standing(scene.draft(scene.call("setHttpAddressUpdatesOpen", True)))
    return set(standing.account.owners), standing.account.threshold


@pytest.mark.parametrize("scene", known_versions(), indirect=True)
@pytest.mark.parametrize(
    ("command", "owners", "threshold"),
    [
        (("add", NEW), {*OWNERS, NEW}, 2),
        (("add", NEW, "--signatures", 3), {*OWNERS, NEW}, 3),
        (("remove", OWNERS[0]), set(OWNERS[1:]), 2),
        (("remove", OWNERS[2], "--signatures", 1), set(OWNERS[:2]), 1),
        (("swap", OWNERS[1], NEW), {OWNERS[0], NEW, OWNERS[2]}, 2),
        (("threshold", 3), set(OWNERS), 3),
    ],
    ids=lambda value: " ".join(map(str, value))[:14] if isinstance(value, tuple) else "",
)
def test_owners__change_signed_by_two__is_what_the_safe_says_afterwards(
    command: tuple[object, ...], owners: set[str], threshold: int, scene: CouncilScene
) -> None:
    drafted = draft(scene, *command)
    assert drafted.code == 0, drafted.err
    assert "THIS CHANGES THE SAFE ITSELF" in drafted.out
    path = scene.folder / "owners.json"
    assert drafted.out.endswith(f"next: chainkit council sign --owners {path}\n")

    done = decide(scene)

    assert done.code == 0, done.err
    assert owners_now(scene) == (owners, threshold)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("add", OWNERS[0]), "none yet"),
        (("add", NEW, "--signatures", 5), "1 to 4"),
        (("remove", NEW), "expected one of"),
        (("remove", OWNERS[0], "--signatures", 3), "1 to 2"),
        (("swap", OWNERS[0], OWNERS[1]), "none yet"),
        (("threshold", 2), "2 already"),
        (("threshold", 4), "1 to 3"),
        (("add", NEW[:-1] + "0"), "checksum"),
    ],
    ids=lambda value: " ".join(map(str, value))[:14] if isinstance(value, tuple) else "",
)
def test_owners__what_cannot_be_or_changes_nothing__is_refused(
    command: tuple[object, ...], words: str, scene: CouncilScene
) -> None:
    outcome = draft(scene, *command)

    assert outcome.code == 2
    assert words in outcome.err
    assert not (scene.folder / "owners.json").exists()


def test_owners__contract_of_ours_as_new_owner__is_refused(scene: CouncilScene) -> None:
    outcome = draft(scene, "add", "0x" + scene.record.group_messages.address.hex())

    assert outcome.code == 2
    assert "an account that can act, got GroupMessages itself" in outcome.err


@pytest.mark.parametrize("command", ["show", "sign", "status", "execute"])
def test_owners_proposal__without_its_option__is_refused(command: str, scene: CouncilScene) -> None:
    draft(scene, "add", NEW)
    rpc = scene.rpc if command in ("status", "execute") else []
    key = scene.owner_keystore(0) if command == "sign" else []

    outcome = run("council", command, scene.folder / "owners.json", *rpc, *scene.files, *key)

    assert outcome.code == 2
    assert "a change of the Safe's own owners" in outcome.err
    assert "--owners" in outcome.err


def test_other_proposal__with_the_owners_option__is_refused(scene: CouncilScene) -> None:
    proposal = scene.draft(scene.call("setHttpAddressUpdatesOpen", True))
    path = scene.folder / "proposal.json"
    path.write_bytes(proposal_bytes(proposal))

    outcome = run("council", "show", path, "--owners", *scene.files)

    assert outcome.code == 2
    assert "--owners" in outcome.err


def test_change_of_the_safe__slipped_into_another_proposal__is_refused(scene: CouncilScene) -> None:
    draft(scene, "add", NEW)
    content = json.loads((scene.folder / "owners.json").read_text()) | {"kind": "safe"}
    data = (json.dumps(content, indent=2, sort_keys=True) + "\n").encode()

    with pytest.raises(ConfigurationError, match="target of a call"):
        parse_proposal(data, "proposal", scene.record, scene.council)


@pytest.mark.parametrize(
    "signature",
    ["enableModule(address)", "setGuard(address)", "setFallbackHandler(address)"],
)
def test_change_of_the_safe__that_lets_others_act__is_never_read(
    signature: str, scene: CouncilScene
) -> None:
    data = keccak256(signature.encode())[:4] + encode(["address"], [NEW])

    with pytest.raises(MalformedData, match="call of Safe"):
        Call.read_of_safe(scene.council.account, data)


def test_change_of_the_safe__beside_other_calls__is_refused(scene: CouncilScene) -> None:
    add = shipped_interface("Safe").encode("addOwnerWithThreshold", NEW, 2)
    call = Call.read_of_safe(scene.council.account, add)

    with pytest.raises(ConfigurationError, match="changes of the Safe itself alone"):
        scene.draft(call, scene.call("setHttpAddressUpdatesOpen", True))


def test_owners_proposal__after_another_change_of_owners__is_refused(scene: CouncilScene) -> None:
    assert draft(scene, "add", NEW).code == 0
    stale = read_proposal(
        scene.folder / "owners.json", scene.record, scene.council, changes_safe=True
    )
    (scene.folder / "owners.json").unlink()
    assert draft(scene, "threshold", 3).code == 0
    assert decide(scene).code == 0

    obstacles = "; ".join(scene.standing(scene.signed(stale, [0, 1, 2])).obstacles)

    assert "nonce 0 is used already" in obstacles
    assert "Safe signatures needed was 2, is 3" in obstacles
