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
from support.council.scene import OWNER_NUMBERS, PAYER, CouncilScene, safe_scene


@pytest.mark.parametrize("version", known_versions())
def test_sign__owners_in_processes_without_a_network__is_collected_and_executed(
    version: str, local_chain: LocalChain, tmp_path: Path
) -> None:
    with_node(local_chain)
    with safe_scene(local_chain, tmp_path, version, threshold=3, owners=5) as scene:
        both = CALLS + "- GroupMessages.pause: {}\n"
        assert propose(scene, both).code == 0
        copies = [tmp_path / f"from-{owner}.json" for owner in (0, 2, 4)]
        for owner, copy in zip((0, 2, 4), copies, strict=True):
            shutil.copy(proposal_path(scene), copy)
            signed = sign_without_network(scene, owner, copy)
            assert signed.returncode == 0, signed.stderr

        collected = run("council", "collect", proposal_path(scene), *copies, *scene.files)
        done = execute(scene, "--broadcast", *scene.keystore(PAYER))

        assert collected.code == 0, collected.err
        assert done.code == 0, done.err
        assert status_on_chain(scene) == "disabled"


def sign_without_network(
    scene: CouncilScene, owner: int, copy: Path
) -> "subprocess.CompletedProcess[str]":
    program = "from chainkit.cli.main import main; main()"
    arguments = [
        "council",
        "sign",
        "--digits-from-pipe",
        str(copy),
        *scene.files,
        *scene.owner_keystore(owner),
    ]
    # A network namespace of its own: not even the loopback is up.
    command = ["unshare", "--net", sys.executable, "-c", program, *arguments]
    typed = hash_of(copy)[2:18] + "\n"
    return subprocess.run(command, input=typed, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("typed", ["\n", "y\n", "yes\n", "00000000\n", "0x\n", ""])
def test_sign__anything_but_the_hash__signs_nothing(scene: CouncilScene, typed: str) -> None:
    propose(scene)
    before = proposal_path(scene).read_bytes()

    outcome = run(
        "council",
        "sign",
        "--digits-from-pipe",
        proposal_path(scene),
        *scene.files,
        *scene.owner_keystore(0),
        typed=typed,
    )

    assert outcome.code in (2, 130)
    assert proposal_path(scene).read_bytes() == before


def test_sign__wrong_digits_of_the_hash__signs_nothing(scene: CouncilScene) -> None:
    propose(scene)
    before = proposal_path(scene).read_bytes()
    shorter = hash_of(proposal_path(scene))[2:9]

    outcome = run(
        "council",
        "sign",
        "--digits-from-pipe",
        proposal_path(scene),
        *scene.files,
        *scene.owner_keystore(0),
        typed=shorter,
    )

    assert outcome.code == 2
    assert proposal_path(scene).read_bytes() == before


def test_sign__as_json__shows_all_on_standard_error_and_asks(scene: CouncilScene) -> None:
    propose(scene)
    path, key = proposal_path(scene), scene.owner_keystore(0)

    refused = run(
        "council", "sign", "--digits-from-pipe", path, *scene.files, *key, "--json", typed="\n"
    )
    signed = run(
        "council",
        "sign",
        "--digits-from-pipe",
        path,
        *scene.files,
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


def test_sign__tampered_in_one_place__is_refused_and_says_where(scene: CouncilScene) -> None:
    propose(scene)
    content = json.loads(proposal_path(scene).read_text())
    content["calls"][0]["arguments"]["isHealthy"] = True
    proposal_path(scene).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")

    outcome = sign(scene, 0)

    assert outcome.code == 2
    assert "calls.0.arguments.isHealthy" in outcome.err


def test_sign__elsewhere_by_the_exported_typed_data__counts(scene: CouncilScene) -> None:
    propose(scene)
    exported = scene.folder / "typed.json"
    wrote = run(
        "council",
        "sign",
        "--digits-from-pipe",
        proposal_path(scene),
        *scene.files,
        "--export",
        exported,
    )
    typed_data = json.loads(exported.read_text())
    signature = Account.sign_typed_data(
        dev_secret(OWNER_NUMBERS[1]), full_message=typed_data
    ).signature
    typed = hash_of(proposal_path(scene))[2:18]
    given = ("--signature", "0x" + signature.hex())
    signed = run(
        "council",
        "sign",
        "--digits-from-pipe",
        proposal_path(scene),
        *scene.files,
        *given,
        typed=typed,
    )

    assert wrote.code == 0
    assert "nothing was signed" in wrote.out
    assert signed.code == 0, signed.err
    assert dev_address(OWNER_NUMBERS[1]) in signed.out


def test_sign__same_signature_twice_in_the_file__is_refused(scene: CouncilScene) -> None:
    propose(scene)
    sign(scene, 0)
    text = proposal_path(scene).read_text()
    line = next(line for line in text.splitlines() if dev_address(OWNER_NUMBERS[0]) in line)
    proposal_path(scene).write_text(text.replace(line, f"{line},\n{line}"))

    outcome = sign(scene, 1)

    assert outcome.code == 2
    assert "the one form of its JSON" in outcome.err
