import subprocess
import sys
from pathlib import Path

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct

from chainkit.council.proposal import write_proposal_file
from support.command_line import run
from support.council.offline import STRANGER_ADDRESS, in_one_line, paper
from support.council.proposals import OWNERS, PLAIN, SECRETS, STRANGER, disable, proposed

# ------------------------------------------------------------------ no network


@pytest.mark.parametrize("command", ["show", "sign", "collect", "export"])
def test_run__without_a_network__loads_nothing_that_could_open_one(
    tmp_path: Path, command: str
) -> None:
    scene = paper(tmp_path)
    more = {
        "show": [],
        "sign": [*scene.keystore(SECRETS[0]), "--digits-from-pipe"],
        "collect": [str(scene.copy_signed(SECRETS[1], "from-bob.json"))],
        "export": [str(tmp_path / "batch.json")],
    }
    arguments = ["council", command, str(scene.path), *more[command], *scene.files]
    program = f"""
import sys
from chainkit.cli.main import main
sys.argv = ["chainkit", *{arguments!r}]
try:
    main()
except SystemExit as ended:
    loaded = [name for name in ("web3", "requests", "chainkit.chain") if name in sys.modules]
    print(ended.code, loaded)
"""

    done = subprocess.run(
        [sys.executable, "-c", program],
        input=scene.proposal.hash.hex()[:16] + "\n",
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.splitlines()[-1] == "0 []", done.stderr


# ------------------------------------------------------------------ who is named


@pytest.mark.parametrize("is_made_elsewhere", [False, True])
def test_sign__somebody_whom_the_council_file_does_not_name__is_refused(
    tmp_path: Path, is_made_elsewhere: bool
) -> None:
    scene = paper(tmp_path)
    before = scene.path.read_bytes()
    if is_made_elsewhere:
        signature = Account.unsafe_sign_hash(scene.proposal.hash, STRANGER).signature
        given = ["--signature", "0x" + signature.hex()]
    else:
        given = scene.keystore(STRANGER)

    outcome = scene.sign(*given)

    assert outcome.code == 2
    assert f"your council file names, got {STRANGER_ADDRESS}" in in_one_line(outcome.err)
    assert scene.path.read_bytes() == before


def test_sign__signature_of_another_proposal__is_refused(tmp_path: Path) -> None:
    scene = paper(tmp_path)
    signature = Account.unsafe_sign_hash(b"\x07" * 32, SECRETS[0]).signature

    outcome = scene.sign("--signature", "0x" + signature.hex())

    assert outcome.code == 2
    assert "an owner whom your council file names" in in_one_line(outcome.err)


@pytest.mark.parametrize("secret", [SECRETS[0], STRANGER])
def test_sign__eth_sign_of_a_device_that_adds_no_4__says_how_to_hand_it_in(
    tmp_path: Path, secret: bytes
) -> None:
    scene = paper(tmp_path)
    message = encode_defunct(scene.proposal.hash)
    signature = Account.sign_message(message, secret).signature
    handed_in = f"0x{signature[:-1].hex()}{signature[-1] + 4:02x}"

    refused = scene.sign("--signature", "0x" + signature.hex())

    assert refused.code == 2
    hint = f"as eth_sign the same bytes are {OWNERS[0]}'s: --signature {handed_in}"
    assert (hint in in_one_line(refused.err)) == (secret == SECRETS[0])
    assert (scene.sign("--signature", handed_in).code == 0) == (secret == SECRETS[0])


def test_collect__copy_signed_by_somebody_not_in_the_council_file__is_refused(
    tmp_path: Path,
) -> None:
    scene = paper(tmp_path)
    before = scene.path.read_bytes()
    bob = scene.copy_signed(SECRETS[1], "from-bob.json")
    stranger = scene.copy_signed(STRANGER, "from-nobody.json")

    of_both = run("council", "collect", scene.path, bob, stranger, *scene.files)

    assert of_both.code == 2
    assert f"your council file names, got {STRANGER_ADDRESS}" in in_one_line(of_both.err)
    assert scene.path.read_bytes() == before
    assert run("council", "collect", scene.path, bob, *scene.files).code == 0


def test_collect__copies_of_two_owners__says_hash_count_and_what_comes_next(tmp_path: Path) -> None:
    scene = paper(tmp_path)
    copies = [scene.copy_signed(SECRETS[number], f"from-{number}.json") for number in (0, 1)]

    outcome = run("council", "collect", scene.path, *copies, *scene.files)

    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines() == [
        f"SafeTx hash     0x{scene.proposal.hash.hex()}",
        "signatures      2; the chain knows how many are needed",
        f"signed by       {OWNERS[0]} (alice)",
        f"signed by       {OWNERS[1]} (bob)",
        f"next: chainkit council status {scene.path}",
    ]


def test_collect__one_copy_is_another_proposal__names_the_file_and_writes_nothing(
    tmp_path: Path,
) -> None:
    scene = paper(tmp_path)
    before, other = scene.path.read_bytes(), proposed(disable(400))
    bob = scene.copy_signed(SECRETS[1], "from-bob.json")
    write_proposal_file(tmp_path / "other.json", other, is_new=True)

    outcome = run("council", "collect", scene.path, bob, tmp_path / "other.json", *scene.files)

    assert outcome.code == 2
    words = f"expected a copy of the proposal with the hash 0x{scene.proposal.hash.hex()}"
    found = f"got another, with 0x{other.hash.hex()}"
    assert f"copy {tmp_path / 'other.json'}: {words}, {found}" in in_one_line(outcome.err)
    assert scene.path.read_bytes() == before


def test_sign__plain_account_by_somebody_elses_signature__is_refused(tmp_path: Path) -> None:
    scene = paper(tmp_path, PLAIN)
    before = scene.path.read_bytes()
    signature = Account.unsafe_sign_hash(scene.proposal.hash, STRANGER).signature

    outcome = scene.sign("--signature", "0x" + signature.hex())

    assert outcome.code == 2
    assert f"expected the account {OWNERS[0]}, got {STRANGER_ADDRESS}" in in_one_line(outcome.err)
    assert scene.path.read_bytes() == before


def test_collect__plain_account_with_somebody_elses_signature__is_refused(tmp_path: Path) -> None:
    scene = paper(tmp_path, PLAIN)
    before, copy = scene.path.read_bytes(), tmp_path / "copy.json"
    signature = Account.unsafe_sign_hash(scene.proposal.hash, STRANGER).signature
    write_proposal_file(copy, scene.proposal.signed(signature), is_new=True)

    outcome = run("council", "collect", scene.path, copy, *scene.files)

    assert outcome.code == 2
    assert f"expected the account {OWNERS[0]}, got {STRANGER_ADDRESS}" in in_one_line(outcome.err)
    assert scene.path.read_bytes() == before


def test_sign__plain_account_by_its_own_signature__counts(tmp_path: Path) -> None:
    scene = paper(tmp_path, PLAIN)
    signature = Account.unsafe_sign_hash(scene.proposal.hash, SECRETS[0]).signature

    outcome = scene.sign("--signature", "0x" + signature.hex())

    assert outcome.code == 0, outcome.err
    assert f"signed by       {OWNERS[0]}" in outcome.out
