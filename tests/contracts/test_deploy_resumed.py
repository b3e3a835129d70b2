import json

import pytest

from chainkit.chain import Endpoint, sending
from chainkit.errors import ConfigurationError, EndpointUnavailable, RefusedRequest
from localnet.deployment import PARAMETERS
from scripts import deploy as script
from scripts._record import UnfinishedDeployment


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


@pytest.fixture
def run(deployer, endpoint, record):
    return lambda: script.run(deployer, endpoint, PARAMETERS, record)[0]


@pytest.fixture
def killed_after(monkeypatch, run):
    """Kills a deployment right after it has sent so many transactions."""

    def kill(count):
        send, sent = sending.send_transaction, []

        def send_until_killed(endpoint, signed):
            send(endpoint, signed)
            sent.append(signed)
            if len(sent) == count:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(sending, "send_transaction", send_until_killed)
            with pytest.raises(Killed):
                run()

    return kill


def answering(monkeypatch, answers):
    """Let the endpoint answer some methods otherwise; an error is raised."""
    request = Endpoint.request

    def answer(self, method, *params):
        if method not in answers:
            return request(self, method, *params)
        if isinstance(answers[method], Exception):
            raise answers[method]
        return answers[method]

    monkeypatch.setattr(Endpoint, "request", answer)


def test_resume__endpoint_cannot_tell_about_a_transaction__is_not_taken_for_unsent(
    killed_after, run, monkeypatch
):
    killed_after(3)
    with monkeypatch.context() as patch:
        unavailable = EndpointUnavailable("endpoint", "an answer", "HTTP 503")
        answering(
            patch, {"eth_getTransactionReceipt": None} | {"eth_getTransactionByHash": unavailable}
        )
        with pytest.raises(UnfinishedDeployment, match="the same command goes on"):
            run()
    run()


def test_resume__replica_does_not_have_the_transaction_yet__says_that_the_contract_stands(
    killed_after, run, monkeypatch
):
    killed_after(3)
    with monkeypatch.context() as patch:
        answering(patch, {"eth_getTransactionReceipt": None, "eth_getTransactionByHash": None})
        expected = r"expected one, as there is a contract at 0x.*the same command goes on"
        with pytest.raises(UnfinishedDeployment, match=expected):
            run()
    run()


def test_resume__pool_forgot_a_transaction_that_is_mined_later__finds_it_by_its_first_hash(
    killed_after, run, record, endpoint, deployer, monkeypatch
):
    endpoint.request("evm_setAutomine", False)
    killed_after(1)
    draft = record.with_name("record.json.partial")
    first = json.loads(draft.read_text())["contracts"]["OriginatorSequence"]["transaction"]
    prepare = type(deployer).prepare_transaction

    def prepare_dearer(account, transaction, **options):
        prepared = prepare(account, transaction, **options)
        prepared.max_fee += 1
        return prepared

    with monkeypatch.context() as patch:
        underpriced = RefusedRequest("eth_sendRawTransaction", "a result", "underpriced")
        answering(patch, {"eth_getTransactionByHash": None, "eth_sendRawTransaction": underpriced})
        patch.setattr(type(deployer), "prepare_transaction", prepare_dearer)
        with pytest.raises(UnfinishedDeployment, match="the same command goes on"):
            run()
    entry = json.loads(draft.read_text())["contracts"]["OriginatorSequence"]
    assert entry["earlier"] == [first] != [entry["transaction"]]
    endpoint.request("evm_setAutomine", True)
    endpoint.request("evm_mine")
    assert "0x" + run().originator_sequence.transaction.hex() == first
    assert "earlier" not in record.read_text()


def test_resume__endpoint_lags_behind_the_accounts_nonce__goes_on_later(
    killed_after, run, deployer, monkeypatch
):
    first = deployer.nonce
    killed_after(3)
    with monkeypatch.context() as patch:
        answering(patch, {"eth_getTransactionCount": hex(first + 1)})
        expected = rf"expected {first + 3}, got {first + 1} .*the same command goes on"
        with pytest.raises(UnfinishedDeployment, match=expected):
            run()
    run()


def test_deploy__another_run_wrote_the_record_meanwhile__sends_nothing(
    run, record, deployer, packaged, monkeypatch
):
    def compile_slowly():
        record.write_text("the other run's")
        return packaged

    monkeypatch.setattr(script, "packaged_contracts", compile_slowly)
    nonce = deployer.nonce
    with pytest.raises(ConfigurationError, match="one that another run has just written"):
        run()
    assert (deployer.nonce, record.read_text()) == (nonce, "the other run's")


def test_deploy__reorg_moves_transactions_before_the_record_is_written__records_the_new_heights(
    run, endpoint, monkeypatch
):
    check, reorgs = script.check, []

    def reorganise_once_and_check(chain, record, parameters):
        if not reorgs:
            reorgs.append(record)
            implementations = [log.implementation for log in record.sequenced_logs]
            contracts = [
                record.originator_sequence,
                *implementations,
                *record.sequenced_logs,
                record.node_registry,
            ]
            hashes = ["0x" + contract.transaction.hex() for contract in contracts]
            raw = [endpoint.request("eth_getRawTransactionByHash", each) for each in hashes]
            endpoint.request("anvil_mine", "0x2")
            placed = [[each, index + 2] for index, each in enumerate(raw)]
            endpoint.request("anvil_reorg", 8, placed)
        check(chain, record, parameters)

    monkeypatch.setattr(script, "check", reorganise_once_and_check)
    with pytest.raises(UnfinishedDeployment, match=r"creation of .*the same command goes on"):
        run()
    for contract in run().contracts:
        receipt = endpoint.receipt(contract.transaction)
        assert int(receipt["blockNumber"], 16) == contract.block


def test_deploy__killed_before_anything_was_signed__begins_with_todays_nonce(
    run, deployer, stranger, monkeypatch
):
    def kill(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(script, "take", kill)
        with pytest.raises(Killed):
            run()
    deployer.transfer(stranger, 1)
    run()
