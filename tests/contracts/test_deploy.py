import json
import os

import ape
import pytest
from web3 import HTTPProvider, Web3

from chainkit.deployment import parse_deployment_record
from chainkit.errors import ConfigurationError, WrongChain
from localnet.anvil import Anvil
from localnet.deployment import PARAMETERS, ScriptFailed, deploy, run_ape_script
from scripts._parameters import read_parameters
from scripts._verification import DeployedChain, check_deployed
from scripts.deploy import run

LOCAL = json.loads(PARAMETERS.read_text())


def parsed(record):
    return parse_deployment_record(record, "record")


@ape.fixture(scope="module", chain_isolation=False)
def deployed(tmp_path_factory):
    """An anvil that knows nothing of Ape, the deployment on it, and its record."""
    record = tmp_path_factory.mktemp("deployed") / "record.json"
    with Anvil() as anvil:
        deploy(anvil.url, record)
        yield anvil, record


@pytest.fixture
def chain(deployed):
    return DeployedChain(Web3(HTTPProvider(deployed[0].url)))


def test_deploy__on_a_fresh_chain__writes_what_the_chain_holds(deployed, chain):
    anvil, path = deployed
    text = path.read_text()
    record = json.loads(text)
    assert text == json.dumps(record, indent=2, sort_keys=True) + "\n"
    assert record["chain_id"] == 31337
    assert record["genesis_hash"] == "0x" + anvil.endpoint.header(0).hash.hex()
    entries = list(record["contracts"].values())
    entries += [entry["implementation"] for entry in entries if "implementation" in entry]
    assert len(entries) == 6
    for entry in entries:
        receipt = anvil.request("eth_getTransactionReceipt", entry["transaction"])
        assert Web3.to_checksum_address(receipt["contractAddress"]) == entry["address"]
        assert int(receipt["blockNumber"], 16) == entry["block"]
        assert Web3.to_checksum_address(receipt["from"]) == record["deployer"]
        assert chain.has_code(bytes.fromhex(entry["address"][2:]))
    assert os.listdir(path.parent) == [path.name]


def test_deploy__a_second_time__sends_nothing_and_keeps_the_record(deployed):
    anvil, path = deployed
    head, text = anvil.endpoint.head(), path.read_text()
    deploy(anvil.url, path)
    assert (anvil.endpoint.head(), path.read_text()) == (head, text)


def test_deploy__over_the_record_of_another_chain__is_refused(deployed, chain, deployer, tmp_path):
    anvil, path = deployed
    record = json.loads(path.read_text())
    foreign = tmp_path / "record.json"
    foreign.write_text(json.dumps(record | {"genesis_hash": "0x" + 64 * "1"}))
    before = (foreign.read_text(), anvil.endpoint.head())
    with pytest.raises(WrongChain, match=f"block 0: expected 0x{64 * '1'}, got 0x"):
        run(deployer, chain, PARAMETERS, foreign)
    assert (foreign.read_text(), anvil.endpoint.head()) == before


@pytest.mark.parametrize("field", ["deployer", "implementation"])
def test_deploy__over_a_record_without_a_field__names_it(
    deployed, chain, deployer, tmp_path, field
):
    record = json.loads(deployed[1].read_text())
    (record if field in record else record["contracts"]["GroupMessages"]).pop(field)
    path = tmp_path / "record.json"
    path.write_text(json.dumps(record))
    with pytest.raises(ConfigurationError, match=f"{path}: expected .*, got nothing .*{field}"):
        run(deployer, chain, PARAMETERS, path)


def test_deploy__over_a_record_in_lower_case_with_an_entry_more__accepts_it(deployed, tmp_path):
    record = json.loads(deployed[1].read_text(), object_hook=in_lower_case)
    record["contracts"]["Extra"] = 5
    path = tmp_path / "record.json"
    path.write_text(json.dumps(record))
    deploy(deployed[0].url, path)


def in_lower_case(fields):
    return {
        name: value.lower() if isinstance(value, str) else value for name, value in fields.items()
    }


def test_deploy__with_the_parameters_of_another_network__is_refused(
    deployed, chain, deployer, tmp_path
):
    parameters = tmp_path / "parameters.json"
    parameters.write_text(json.dumps(LOCAL | {"chain_id": 1}))
    before = deployed[0].endpoint.head()
    with pytest.raises(WrongChain, match="chain id: expected 1, got 31337"):
        run(deployer, chain, parameters, tmp_path / "record.json")
    assert deployed[0].endpoint.head() == before
    assert not (tmp_path / "record.json").exists()


def test_deploy__to_a_dead_endpoint__says_so_in_a_line(tmp_path):
    options = ("--account", "test::0", "--parameters", str(PARAMETERS))
    with pytest.raises(ScriptFailed) as error:
        record = str(tmp_path / "record.json")
        run_ape_script("deploy", "http://127.0.0.1:9", *options, "--record", record)
    assert error.value.place == "Error: No (supported) node found on 'http://127.0.0.1:9'."
    assert not (tmp_path / "record.json").exists()


def test_deploy__to_a_network_that_ape_does_not_know__says_so_in_a_line(tmp_path):
    options = ("--account", "test::0", "--parameters", str(PARAMETERS))
    with pytest.raises(ScriptFailed) as error:
        record = str(tmp_path / "record.json")
        run_ape_script("deploy", "nonsense:foo", *options, "--record", record)
    assert error.value.place == "Error: No ecosystem named 'nonsense'."


def test_check_deployed__record_of_another_chain_id__names_both_ids(deployed, chain):
    record = json.loads(deployed[1].read_text()) | {"chain_id": 1}
    with pytest.raises(WrongChain, match=r"^chain id: expected 1, got 31337$"):
        check_deployed(chain, parsed(record), read_parameters(PARAMETERS))


def test_check_deployed__with_another_owner_or_admin__names_it(deployed, chain, tmp_path):
    record = json.loads(deployed[1].read_text())
    for field, subject in (
        ("registry_owner", "owner of NodeRegistry"),
        ("message_admin", "as admin of GroupMessages"),
    ):
        entry = {"address": record["deployer"], "source": "a test"}
        path = tmp_path / f"{field}.json"
        path.write_text(json.dumps(LOCAL | {field: entry}))
        with pytest.raises(ConfigurationError, match=subject):
            check_deployed(chain, parsed(record), read_parameters(path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["OriginatorSequence"].update(address=c["NodeRegistry"]["address"]), "sequen"),
        (lambda c: c["NodeRegistry"].update(address="0x" + 39 * "0" + "1"), "got no code"),
        (
            lambda c: c["GroupMessages"]["implementation"].update(
                address=c["IdentityUpdates"]["implementation"]["address"]
            ),
            "implementation of GroupMessages",
        ),
        (
            lambda c: c.update(
                GroupMessages=c["IdentityUpdates"], IdentityUpdates=c["GroupMessages"]
            ),
            "callers of OriginatorSequence",
        ),
    ],
    ids=["sequence", "registry", "implementation", "exchanged proxies"],
)
def test_check_deployed__against_a_wrong_record__names_the_difference(
    deployed, chain, change, message
):
    record = json.loads(deployed[1].read_text())
    change(record["contracts"])
    with pytest.raises(ConfigurationError, match=message):
        check_deployed(chain, parsed(record), read_parameters(PARAMETERS))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "expected JSON"),
        ("[]", "expected an object, got list"),
        (json.dumps(LOCAL | {"chain_id": "31337"}), "chain_id"),
        (json.dumps(LOCAL | {"chain_id": True}), "chain_id"),
        (json.dumps(LOCAL | {"message_admin": None}), r"\(message_admin\)"),
        (
            json.dumps(LOCAL | {"message_admin": {"address": "0x" + 40 * "0", "source": "s"}}),
            r"message_admin\.address",
        ),
        (json.dumps(LOCAL).replace("79C8", "79c8"), r"message_admin\.address"),
        (
            json.dumps(LOCAL | {"registry_owner": LOCAL["registry_owner"] | {"source": " "}}),
            r"registry_owner\.source",
        ),
    ],
)
def test_read_parameters__unusable_file__names_file_and_field(tmp_path, text, message):
    path = tmp_path / "parameters.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=message) as error:
        read_parameters(path)
    assert str(path) in str(error.value)


def test_read_parameters__no_file__names_it(tmp_path):
    with pytest.raises(ConfigurationError, match="expected a readable file, got No such file"):
        read_parameters(tmp_path / "none.json")
