"""Every kind of signer at the command line, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from eth_account import Account

from chainkit.contracts.state import ContractState
from chainkit.council.proposal import read_proposal, write_proposal_file
from chainkit.council.signing import PRIVATE_KEY_VARIABLE
from support.chains.chain import LocalChain, dev_address, dev_secret
from support.chains.tampering import ADMINISTRATOR
from support.command_line import PASSWORD, write_keystore
from support.council.scene import OWNER_NUMBERS, safe_scene
from support.council.signers import FIELDS, dev_signer
from support.council.upgrades import traces

NAME = "GroupMessages"
PROGRAM = "from chainkit.cli.main import main; main()"
ALIAS = "council-1"

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def ape_folder(tmp_path: Path) -> Path:
    """A data folder of Ape with nothing in it yet."""
    folder = tmp_path / "ape"
    (folder / "accounts").mkdir(parents=True)
    return folder


def write_account(folder: Path, number: int) -> None:
    """Write the keyfile of a development account, as `ape accounts import` does."""
    content = Account.encrypt(dev_secret(number), PASSWORD, kdf="pbkdf2", iterations=1000)
    (folder / "accounts" / f"{ALIAS}.json").write_text(json.dumps(content))


def run(
    *arguments: object,
    program: str = PROGRAM,
    typed: str = "",
    without_network: bool = False,
    descriptors: tuple[int, ...] = (),
    **environment: str,
) -> Done:
    inherited = {name: value for name, value in os.environ.items() if name[:9] != "CHAINKIT_"}
    isolated = ["unshare", "--net"] if without_network else []
    return subprocess.run(
        [*isolated, sys.executable, "-c", program, *map(str, arguments)],
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        env=inherited | environment,
        pass_fds=descriptors,
        # A session of its own has no terminal: passwords are read from standard input.
        start_new_session=True,
    )


def pause(chain: LocalChain, *arguments: object, **options: object) -> Done:
    place = ("--rpc", chain.url, "--deployment", chain.record_path)
    return run("contracts", "pause", NAME, *arguments, *place, **options)  # type: ignore[arg-type]


def is_paused(chain: LocalChain) -> bool:
    state = ContractState(chain.endpoint, chain.head().reference)
    found: bool = state.ask(NAME, chain.record.group_messages.address, "paused")
    return found


def says_a_secret(done: Done) -> bool:
    said = (done.stdout + done.stderr).lower()
    return dev_secret(ADMINISTRATOR).hex() in said or PASSWORD in said


# ------------------------------------------------------------------ accounts of Ape


def test_sign__account_of_ape_without_a_network__counts(
    local_chain: LocalChain, tmp_path: Path, ape_folder: Path
) -> None:
    write_account(ape_folder, OWNER_NUMBERS[0])
    with safe_scene(local_chain, tmp_path) as scene:
        proposal = scene.draft(scene.call("pause", contract=NAME))
        path = tmp_path / "pause.json"
        write_proposal_file(path, proposal, is_new=True)
        typed = f"{proposal.hash.hex()[:16]}\ny\n{PASSWORD}\nn\n"

        done = run(
            *("council", "sign", "--digits-from-pipe", path, *scene.files, "--account", ALIAS),
            typed=typed,
            without_network=True,
            APE_DATA_FOLDER=str(ape_folder),
        )

        assert done.returncode == 0, done.stderr
        assert not says_a_secret(done)
        signed = read_proposal(path, scene.record, scene.council)
        assert list(signed.signatures) == [dev_address(OWNER_NUMBERS[0])]


def test_broadcast__account_of_ape__is_read_back_and_keeps_standard_output(
    local_chain: LocalChain, ape_folder: Path
) -> None:
    write_account(ape_folder, ADMINISTRATOR)

    done = pause(
        local_chain,
        *("--broadcast", "--account", ALIAS, "--json"),
        typed=f"y\n{PASSWORD}\nn\n",
        APE_DATA_FOLDER=str(ape_folder),
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sent"] is True
    assert "Enter passphrase to unlock 'council-1'" in done.stderr
    assert is_paused(local_chain)
    assert not says_a_secret(done)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("n\n", "expected a signature, got none: it was declined"),
        ("y\nbattery staple\n", "expected a signature, got InvalidPasswordError"),
        ("", "interrupted"),
    ],
)
def test_broadcast__account_of_ape_that_does_not_sign__sends_nothing(
    local_chain: LocalChain, ape_folder: Path, typed: str, words: str
) -> None:
    write_account(ape_folder, ADMINISTRATOR)
    before = traces(local_chain)

    done = pause(
        local_chain,
        *("--broadcast", "--account", ALIAS),
        typed=typed,
        APE_DATA_FOLDER=str(ape_folder),
    )

    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert "battery staple" not in done.stdout + done.stderr
    assert traces(local_chain) == before


def test_broadcast__alias_that_ape_does_not_know__is_one_sentence(
    local_chain: LocalChain, ape_folder: Path
) -> None:
    done = pause(local_chain, "--broadcast", "--account", ALIAS, APE_DATA_FOLDER=str(ape_folder))

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        f"error: Ape account {ALIAS}: expected one that `ape accounts list --all` names, "
        "got none of that alias"
    )


DEPLOYING = """
from chainkit.council.signing import ApeSigner, sign_transaction
from support.council.signers import FIELDS
fields = {name: value for name, value in FIELDS.items() if name != "to"}
print(sign_transaction(ApeSigner("council-1"), fields).hex())
"""


def test_sign__account_of_ape_deploys_a_contract__is_as_of_the_key_itself(ape_folder: Path) -> None:
    write_account(ape_folder, ADMINISTRATOR)
    fields = {name: value for name, value in FIELDS.items() if name != "to"}

    done = run(
        program=DEPLOYING,
        typed=f"y\n{PASSWORD}\nn\n",
        without_network=True,
        APE_DATA_FOLDER=str(ape_folder),
        PYTHONPATH=os.pathsep.join(sys.path),
    )

    assert done.stdout.strip() == dev_signer(ADMINISTRATOR).sign_transaction(fields).hex()
    assert "to a new contract on chain 31337" in done.stderr


# ------------------------------------------------------------------ passwords and raw keys


def test_broadcast__password_through_a_descriptor__is_read_back(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    keystore = write_keystore(tmp_path, dev_secret(ADMINISTRATOR))[:2]
    reading, writing = os.pipe()
    os.write(writing, PASSWORD.encode())
    os.close(writing)

    done = pause(
        local_chain,
        *("--broadcast", *keystore, "--password-fd", reading),
        descriptors=(reading,),
    )
    os.close(reading)

    assert done.returncode == 0, done.stderr
    assert is_paused(local_chain)
    assert not says_a_secret(done)


def test_broadcast__raw_key_in_the_environment__warns_on_a_local_chain(
    local_chain: LocalChain,
) -> None:
    key = {PRIVATE_KEY_VARIABLE: "0x" + dev_secret(ADMINISTRATOR).hex()}

    done = pause(local_chain, "--broadcast", **key)

    assert done.returncode == 0, done.stderr
    assert "warning: signing with a raw key from CHAINKIT_PRIVATE_KEY" in done.stderr
    assert is_paused(local_chain)
    assert not says_a_secret(done)


def test_broadcast__raw_key_with_a_keystore__is_refused_before_anything_is_sent(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    before = traces(local_chain)
    keystore = write_keystore(tmp_path, dev_secret(ADMINISTRATOR))
    key = {PRIVATE_KEY_VARIABLE: dev_secret(ADMINISTRATOR).hex()}

    done = pause(local_chain, "--broadcast", *keystore, **key)

    assert done.returncode == 2
    assert "needs one signer, got" in done.stderr
    assert not says_a_secret(done)
    assert traces(local_chain) == before
