import json
import os

import ape
import pytest
from eth_utils import to_checksum_address

from chainkit.contracts.deployment import RecordedParameters
from chainkit.contracts.parameters import read_parameters
from chainkit.errors import ConfigurationError, WrongChain
from localnet.anvil import Anvil
from localnet.deployment import PARAMETERS, ScriptFailed, deploy, run_ape_script
from scripts.deploy import run

LOCAL = json.loads(PARAMETERS.read_text())


@ape.fixture(scope="module", chain_isolation=False)
def deployed(tmp_path_factory):
    """An anvil that knows nothing of Ape, the deployment on it, and its record."""
    record = tmp_path_factory.mktemp("deployed") / "record.json"
    with Anvil() as anvil:
        deploy(anvil.url, record)
        yield anvil, record


@pytest.fixture
def endpoint(deployed):
    return deployed[0].endpoint


def test_deploy__on_a_fresh_chain__writes_what_the_chain_holds(deployed, endpoint):
    anvil, path = deployed
    text = path.read_text()
    record = json.loads(text)
    assert text == json.dumps(record, indent=2, sort_keys=True) + "\n"
    assert record["chain_id"] == 31337
    assert record["genesis_hash"] == "0x" + endpoint.header(0).hash.hex()
    expected = RecordedParameters.of(read_parameters(PARAMETERS)).content()
    assert record["parameters"] == expected
    entries = list(record["contracts"].values())
    entries += [entry["implementation"] for entry in entries if "implementation" in entry]
    assert len(entries) == 6
    for entry in entries:
        receipt = anvil.request("eth_getTransactionReceipt", entry["transaction"])
        assert to_checksum_address(receipt["contractAddress"]) == entry["address"]
        assert int(receipt["blockNumber"], 16) == entry["block"]
        assert to_checksum_address(receipt["from"]) == record["deployer"]
        address = bytes.fromhex(entry["address"][2:])
        assert endpoint.code(address, endpoint.head().reference)
    assert os.listdir(path.parent) == [path.name]


def test_deploy__a_second_time__sends_nothing_and_keeps_the_record(deployed):
    anvil, path = deployed
    head, text = anvil.endpoint.head(), path.read_text()
    deploy(anvil.url, path)
    assert (anvil.endpoint.head(), path.read_text()) == (head, text)


def test_deploy__over_the_record_of_another_chain__is_refused(
    deployed, endpoint, deployer, tmp_path
):
    anvil, path = deployed
    record = json.loads(path.read_text())
    foreign = tmp_path / "record.json"
    foreign.write_text(json.dumps(record | {"genesis_hash": "0x" + 64 * "1"}))
    before = (foreign.read_text(), anvil.endpoint.head())
    with pytest.raises(ConfigurationError, match=f"block 0: expected 0x{64 * '1'}, got 0x"):
        run(deployer, endpoint, PARAMETERS, foreign)
    assert (foreign.read_text(), anvil.endpoint.head()) == before


@pytest.mark.parametrize("field", ["deployer", "implementation"])
def test_deploy__over_a_record_without_a_field__names_it(
    deployed, endpoint, deployer, tmp_path, field
):
    record = json.loads(deployed[1].read_text())
    (record if field in record else record["contracts"]["GroupMessages"]).pop(field)
    path = tmp_path / "record.json"
    path.write_text(json.dumps(record))
    with pytest.raises(ConfigurationError, match=f"{path}: expected .*, got nothing .*{field}"):
        run(deployer, endpoint, PARAMETERS, path)


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
    deployed, endpoint, deployer, tmp_path
):
    parameters = tmp_path / "parameters.json"
    parameters.write_text(json.dumps(LOCAL | {"chain_id": 1}))
    before = deployed[0].endpoint.head()
    with pytest.raises(WrongChain, match="chain id: expected 1, got 31337"):
        run(deployer, endpoint, parameters, tmp_path / "record.json")
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


def test_deploy__the_councils_safe_is_not_on_this_chain__sends_nothing(
    deployed, endpoint, deployer, tmp_path
):
    entry = LOCAL["registry_owner"] | {"kind": "contract"}
    parameters = tmp_path / "parameters.json"
    parameters.write_text(json.dumps(LOCAL | {"registry_owner": entry}))
    before = endpoint.head()
    with pytest.raises(
        ConfigurationError, match=r"registry owner .*: expected contract, got account"
    ):
        run(deployer, endpoint, parameters, tmp_path / "record.json")
    assert endpoint.head() == before
    assert [path.name for path in tmp_path.iterdir()] == ["parameters.json"]


def test_deploy__again_after_the_owner_changed__names_it(deployed, endpoint, deployer, tmp_path):
    path = deployed[1]
    entry = LOCAL["registry_owner"] | {"address": deployer.address}
    parameters = tmp_path / "parameters.json"
    parameters.write_text(json.dumps(LOCAL | {"registry_owner": entry}))
    with pytest.raises(ConfigurationError, match="owner of NodeRegistry"):
        run(deployer, endpoint, parameters, path)
