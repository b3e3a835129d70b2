import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from eth_account import Account

from chainkit.council.safe import known_versions
from support.chains.chain import LocalChain, dev_address, dev_secret
from support.command_line import run
from support.council.desk import OWNER_NUMBERS, PAYER, Desk, safe_desk
from support.council.proposal_commands import (
    CALLS,
    execute,
    hash_of,
    proposal_path,
    propose,
    sign,
    status_on_chain,
    with_node,
)


@pytest.mark.parametrize("version", known_versions())
def test_sign__owners_in_processes_without_a_network__is_collected_and_executed(
    version: str, local_chain: LocalChain, tmp_path: Path
) -> None:
    with_node(local_chain)
    with safe_desk(local_chain, tmp_path, version, threshold=3, owners=5) as desk:
        both = CALLS + "- GroupMessages.pause: {}\n"
        assert propose(desk, both).code == 0
        copies = [tmp_path / f"from-{owner}.json" for owner in (0, 2, 4)]
        for owner, copy in zip((0, 2, 4), copies, strict=True):
            shutil.copy(proposal_path(desk), copy)
            signed = sign_without_network(desk, owner, copy)
            assert signed.returncode == 0, signed.stderr

        collected = run("council", "collect", proposal_path(desk), *copies, *desk.files)
        done = execute(desk, "--broadcast", *desk.keystore(PAYER))

        assert collected.code == 0, collected.err
        assert done.code == 0, done.err
        assert status_on_chain(desk) == "disabled"


def sign_without_network(desk: Desk, owner: int, copy: Path) -> "subprocess.CompletedProcess[str]":
    program = "from chainkit.cli.main import main; main()"
    arguments = [
        "council",
        "sign",
        "--digits-from-pipe",
        str(copy),
        *desk.files,
        *desk.owner_keystore(owner),
    ]
    # A network namespace of its own: not even the loopback is up.
    command = ["unshare", "--net", sys.executable, "-c", program, *arguments]
    typed = hash_of(copy)[2:18] + "\n"
    return subprocess.run(command, input=typed, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("typed", ["\n", "y\n", "yes\n", "00000000\n", "0x\n", ""])
def test_sign__anything_but_the_hash__signs_nothing(desk: Desk, typed: str) -> None:
    propose(desk)
    before = proposal_path(desk).read_bytes()

    outcome = run(
        "council",
        "sign",
        "--digits-from-pipe",
        proposal_path(desk),
        *desk.files,
        *desk.owner_keystore(0),
        typed=typed,
    )

    assert outcome.code in (2, 130)
    assert proposal_path(desk).read_bytes() == before


def test_sign__wrong_digits_of_the_hash__signs_nothing(desk: Desk) -> None:
    propose(desk)
    before = proposal_path(desk).read_bytes()
    shorter = hash_of(proposal_path(desk))[2:9]

    outcome = run(
        "council",
        "sign",
        "--digits-from-pipe",
        proposal_path(desk),
        *desk.files,
        *desk.owner_keystore(0),
        typed=shorter,
    )

    assert outcome.code == 2
    assert proposal_path(desk).read_bytes() == before


def test_sign__as_json__shows_all_on_standard_error_and_asks(desk: Desk) -> None:
    propose(desk)
    path, key = proposal_path(desk), desk.owner_keystore(0)

    refused = run(
        "council", "sign", "--digits-from-pipe", path, *desk.files, *key, "--json", typed="\n"
    )
    signed = run(
        "council",
        "sign",
        "--digits-from-pipe",
        path,
        *desk.files,
        *key,
        "--json",
        typed=hash_of(path)[2:18],
    )

    assert refused.code == 2
    assert signed.code == 0, signed.err
    assert "SafeTx hash" in signed.err
    assert signed.content["signers"] == [dev_address(OWNER_NUMBERS[0])]


def test_sign__no_option__skips_the_question() -> None:
    help_text = run("council", "sign", "--help").out

    assert not {"--yes", "--force", "-y", "--no-confirm", "--hash"} & set(help_text.split())


def test_sign__tampered_in_one_place__is_refused_and_says_where(desk: Desk) -> None:
    propose(desk)
    content = json.loads(proposal_path(desk).read_text())
    content["calls"][0]["arguments"]["isHealthy"] = True
    proposal_path(desk).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")

    outcome = sign(desk, 0)

    assert outcome.code == 2
    assert "calls.0.arguments.isHealthy" in outcome.err


def test_sign__elsewhere_by_the_exported_typed_data__counts(desk: Desk) -> None:
    propose(desk)
    exported = desk.folder / "typed.json"
    wrote = run(
        "council",
        "sign",
        "--digits-from-pipe",
        proposal_path(desk),
        *desk.files,
        "--export",
        exported,
    )
    typed_data = json.loads(exported.read_text())
    signature = Account.sign_typed_data(
        dev_secret(OWNER_NUMBERS[1]), full_message=typed_data
    ).signature
    typed = hash_of(proposal_path(desk))[2:18]
    given = ("--signature", "0x" + signature.hex())
    signed = run(
        "council",
        "sign",
        "--digits-from-pipe",
        proposal_path(desk),
        *desk.files,
        *given,
        typed=typed,
    )

    assert wrote.code == 0
    assert "nothing was signed" in wrote.out
    assert signed.code == 0, signed.err
    assert dev_address(OWNER_NUMBERS[1]) in signed.out


def test_sign__same_signature_twice_in_the_file__is_refused(desk: Desk) -> None:
    propose(desk)
    sign(desk, 0)
    text = proposal_path(desk).read_text()
    line = next(line for line in text.splitlines() if dev_address(OWNER_NUMBERS[0]) in line)
    proposal_path(desk).write_text(text.replace(line, f"{line},\n{line}"))

    outcome = sign(desk, 1)

    assert outcome.code == 2
    assert "the one form of its JSON" in outcome.err
