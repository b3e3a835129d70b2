import json
import os
import signal
import subprocess
import sys
import time

import pytest

from chainkit.chain import sending
from chainkit.errors import ConfigurationError, EndpointUnavailable, TransactionFailed
from localnet.anvil import Anvil
from localnet.deployment import PARAMETERS, PROJECT, ape_environment, deploy
from scripts import deploy as script
from scripts._record import Draft, UnfinishedDeployment, drafted

HEADER = {"format": 1}
CONTRACTS = ["GroupMessages", "IdentityUpdates", "NodeRegistry", "OriginatorSequence"]


def only_file(folder):
    (path,) = folder.iterdir()
    return path, json.loads(path.read_text())


def all_entries(contracts):
    entries = list(contracts.values())
    return entries + [entry["implementation"] for entry in entries if "implementation" in entry]


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


@pytest.mark.parametrize("folder", ["/proc", "none", "file"])
def test_deploy__where_no_record_can_be_written__sends_nothing(
    endpoint, deployer, tmp_path, folder
):
    (tmp_path / "file").touch()
    path, nonce = tmp_path / folder / "record.json", deployer.nonce
    with pytest.raises(ConfigurationError, match=f"record {path}: expected a file that can be"):
        script.run(deployer, endpoint, PARAMETERS, path)
    assert deployer.nonce == nonce


def test_deploy__compiled_code_is_not_the_packages__sends_nothing(
    endpoint, deployer, record, monkeypatch
):
    contracts = script.compile_contracts()
    contracts["NodeRegistry"] = contracts["GroupMessages"]
    monkeypatch.setattr(script, "compile_contracts", lambda: contracts)
    nonce = deployer.nonce
    with pytest.raises(ConfigurationError, match="code of NodeRegistry: expected the package's"):
        script.run(deployer, endpoint, PARAMETERS, record)
    assert deployer.nonce == nonce
    assert not list(record.parent.iterdir())


def test_deploy__last_transaction_reverts__keeps_what_was_sent_and_sends_no_more(
    endpoint, deployer, record, monkeypatch, packaged
):
    # GroupMessages refuses the owner, who is no contract, as its sequence.
    wrong = packaged | {"NodeRegistry": packaged["GroupMessages"]}
    monkeypatch.setattr(script, "packaged_contracts", lambda: wrong)
    first = deployer.nonce
    for _ in range(2):
        expected = "expected a contract deployed, got a revert .*move it away to begin another"
        with pytest.raises(UnfinishedDeployment, match=expected):
            script.run(deployer, endpoint, PARAMETERS, record)
        assert deployer.nonce == first + 6
    path, content = only_file(record.parent)
    assert path.suffix == ".partial"
    entries = all_entries(content["contracts"])
    blocks = [endpoint.request("eth_getTransactionReceipt", it["transaction"]) for it in entries]
    assert [int(it["status"], 16) for it in blocks].count(1) == 5


@pytest.mark.parametrize("sent", [True, False], ids=["after sending", "before sending"])
@pytest.mark.parametrize("step", range(6))
def test_deploy__killed_at_any_transaction__goes_on_without_a_second_contract(
    endpoint, deployer, record, monkeypatch, step, sent
):
    send, steps = sending.send_transaction, []

    def send_until_killed(endpoint, signed):
        steps.append(signed)
        if len(steps) == step + 1:
            if sent:
                send(endpoint, signed)
            raise Killed
        send(endpoint, signed)

    first = deployer.nonce
    with monkeypatch.context() as patch:
        patch.setattr(sending, "send_transaction", send_until_killed)
        with pytest.raises(Killed):
            script.run(deployer, endpoint, PARAMETERS, record)
    script.run(deployer, endpoint, PARAMETERS, record)
    assert deployer.nonce == first + 6
    path, content = only_file(record.parent)
    assert path == record
    assert sorted(content["contracts"]) == CONTRACTS
    for entry in all_entries(content["contracts"]):
        receipt = endpoint.request("eth_getTransactionReceipt", entry["transaction"])
        assert receipt["contractAddress"] == entry["address"].lower()
        assert int(receipt["blockNumber"], 16) == entry["block"]


def test_deploy__what_stands_there_is_wrong__keeps_all_addresses_and_says_what(
    endpoint, deployer, record, monkeypatch
):
    def refuse(*_):
        raise ConfigurationError("owner of NodeRegistry", "one", "another")

    monkeypatch.setattr(script, "check", refuse)
    with pytest.raises(UnfinishedDeployment, match="got owner of NodeRegistry: expected one"):
        script.run(deployer, endpoint, PARAMETERS, record)
    path, content = only_file(record.parent)
    assert path.suffix == ".partial"
    assert len(content["contracts"]) == 4


def test_deploy__the_account_is_used_meanwhile__stops_and_says_how_to_begin_anew(
    endpoint, deployer, stranger, record, monkeypatch
):
    add, nonce = Draft.add, deployer.nonce

    def add_and_spend_a_nonce(draft, place, entry):
        add(draft, place, entry)
        if "block" in entry:
            deployer.transfer(stranger, 1)

    monkeypatch.setattr(Draft, "add", add_and_spend_a_nonce)
    expected = f"got transactions of {deployer.address}: expected {nonce + 1}, got {nonce + 2}"
    with pytest.raises(UnfinishedDeployment, match=expected):
        script.run(deployer, endpoint, PARAMETERS, record)
    assert deployer.nonce == nonce + 2
    path, content = only_file(record.parent)
    assert list(content["contracts"]) == ["OriginatorSequence"]
    monkeypatch.setattr(Draft, "add", add)
    with pytest.raises(UnfinishedDeployment, match="move it away to begin another"):
        script.run(deployer, endpoint, PARAMETERS, record)
    path.rename(record.parent.parent / "away")
    script.run(deployer, endpoint, PARAMETERS, record)


def test_deploy__unfinished_with_another_account_or_bounds__is_refused(
    endpoint, deployer, stranger, record, monkeypatch, tmp_path
):
    def refuse(*_):
        raise TransactionFailed("transaction 0x", "a receipt", "none")

    with monkeypatch.context() as patch:
        patch.setattr(sending, "send_transaction", refuse)
        with pytest.raises(UnfinishedDeployment):
            script.run(deployer, endpoint, PARAMETERS, record)
    before, nonces = only_file(record.parent), (deployer.nonce, stranger.nonce)
    with pytest.raises(ConfigurationError, match=r"\(deployer; move the file away"):
        script.run(stranger, endpoint, PARAMETERS, record)
    content = json.loads(PARAMETERS.read_text())
    content["payload_bounds"]["GroupMessages"]["maximum"] -= 1
    parameters = tmp_path.parent / f"{tmp_path.name}.json"
    parameters.write_text(json.dumps(content))
    with pytest.raises(ConfigurationError, match=r"\(parameters; move the file away"):
        script.run(deployer, endpoint, parameters, record)
    assert only_file(record.parent) == before
    assert (deployer.nonce, stranger.nonce) == nonces


def test_deploy__process_killed_by_the_system__is_finished_by_the_same_command(record):
    with Anvil("--no-mining") as anvil:
        command = [sys.executable.replace("python", "ape"), "run", "deploy", "--network", anvil.url]
        command += ["--account", "test::0", "--parameters", str(PARAMETERS)]
        process = subprocess.Popen(
            [*command, "--record", str(record)],
            env=ape_environment(),
            cwd=PROJECT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        draft = record.with_name("record.json.partial")
        while not draft.exists() or not json.loads(draft.read_text())["contracts"]:
            assert process.poll() is None
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        anvil.request("evm_setAutomine", True)
        anvil.request("evm_mine")
        deploy(anvil.url, record)
        assert int(anvil.request("eth_getTransactionCount", DEPLOYER, "latest"), 16) == 6
        assert only_file(record.parent)[0] == record


DEPLOYER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"


def test_deploy__endpoint_dies_half_way__is_finished_by_the_same_command(
    endpoint, deployer, record, monkeypatch
):
    wait = sending.wait_for_receipt
    answers = iter([True, True, False])

    def die(*arguments):
        receipt = wait(*arguments)
        if not next(answers):
            raise EndpointUnavailable("endpoint", "an answer", "none")
        return receipt

    first = deployer.nonce
    with monkeypatch.context() as patch:
        patch.setattr(sending, "wait_for_receipt", die)
        with pytest.raises(UnfinishedDeployment, match="the same command goes on"):
            script.run(deployer, endpoint, PARAMETERS, record)
    assert deployer.nonce == first + 3
    script.run(deployer, endpoint, PARAMETERS, record)
    assert deployer.nonce == first + 6


def test_deploy__reorg_took_a_transaction_back__sends_it_again(
    endpoint, deployer, record, monkeypatch
):
    def stop(*_):
        raise EndpointUnavailable("endpoint", "an answer", "none")

    with monkeypatch.context() as patch:
        patch.setattr(script, "check", stop)
        with pytest.raises(UnfinishedDeployment):
            script.run(deployer, endpoint, PARAMETERS, record)
    endpoint.request("anvil_reorg", 2, [])
    script.run(deployer, endpoint, PARAMETERS, record)


def test_drafted__fails_before_anything_was_sent__leaves_nothing(record):
    with pytest.raises(OSError, match="no money"), drafted(record, HEADER, 0):
        raise OSError("no money")
    assert list(record.parent.iterdir()) == []


def test_drafted__interrupted_by_the_user__keeps_what_was_sent(record):
    with (
        pytest.raises(UnfinishedDeployment, match="got KeyboardInterrupt"),
        drafted(record, HEADER, 3) as draft,
    ):
        draft.add(("NodeRegistry",), {"block": 7})
        raise KeyboardInterrupt
    expected = HEADER | {"contracts": {"NodeRegistry": {"block": 7}}, "first_nonce": 3}
    assert only_file(record.parent)[1] == expected


def test_drafted__record_cannot_take_its_place__keeps_what_was_sent(record):
    with (
        pytest.raises(UnfinishedDeployment, match=r"got .*Is a directory") as error,
        drafted(record, HEADER, 0) as draft,
    ):
        draft.add(("NodeRegistry",), {"block": 7})
        record.mkdir()
    assert draft.path.is_file()
    assert str(draft.path) in error.value.place


def test_drafted__another_run_into_the_same_folder__is_refused(record):
    with (
        drafted(record, HEADER, 0),
        pytest.raises(ConfigurationError, match="expected no other deployment into"),
        drafted(record, HEADER, 0),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "expected JSON, got Expecting"),
        ("[]", "expected an object with contracts"),
        (
            json.dumps(HEADER | {"contracts": {}}),
            r"expected an integer from 0, got None \(first_nonce",
        ),
        (
            json.dumps(HEADER | {"contracts": {}, "first_nonce": -1}),
            r"expected an integer from 0, got -1 \(first_nonce",
        ),
        (
            json.dumps(HEADER | {"contracts": {"NodeRegistry": 5}, "first_nonce": 0}),
            r"expected an object, got 5 \(contracts.NodeRegistry",
        ),
        (
            json.dumps(HEADER | {"contracts": {"A": {"transaction": "zz"}}, "first_nonce": 0}),
            r"expected a transaction hash, got 'zz' \(contracts.A",
        ),
        (json.dumps({"format": 2, "contracts": {}, "first_nonce": 0}), "expected 1, got 2"),
    ],
    ids=["cut", "list", "no nonce", "below 0", "no object", "no hash", "another format"],
)
def test_drafted__unfinished_file_cannot_be_used__is_refused_and_kept(record, text, message):
    path = record.with_name("record.json.partial")
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=message), drafted(record, HEADER, 0):
        pass
    assert path.read_text() == text
