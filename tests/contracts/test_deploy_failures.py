import json

import pytest
from ape.exceptions import ContractLogicError

from chainkit.errors import ConfigurationError
from localnet.deployment import PARAMETERS
from scripts import deploy as script
from scripts._contracts import compile_contracts
from scripts._record import Draft, UnfinishedDeployment, drafted
from scripts._verification import DeployedChain

HEADER = {"format": 1}


@pytest.fixture
def chain(networks):
    return DeployedChain(networks.provider.web3)


def only_file(folder):
    (path,) = folder.iterdir()
    return path, json.loads(path.read_text())


@pytest.mark.parametrize("folder", ["/proc", "none", "file"])
def test_deploy__where_no_record_can_be_written__sends_nothing(chain, deployer, tmp_path, folder):
    (tmp_path / "file").touch()
    path, nonce = tmp_path / folder / "record.json", deployer.nonce
    with pytest.raises(ConfigurationError, match=f"record {path}: expected a file that can be"):
        script.run(deployer, chain, PARAMETERS, path)
    assert deployer.nonce == nonce


def test_deploy__last_transaction_reverts__keeps_the_five_addresses(
    chain, deployer, tmp_path, monkeypatch
):
    contracts = compile_contracts()
    # GroupMessages refuses the owner, who is no contract, as its sequence.
    contracts["NodeRegistry"] = contracts["GroupMessages"]
    monkeypatch.setattr(script, "compile_contracts", lambda: contracts)
    with pytest.raises(UnfinishedDeployment) as error:
        script.run(deployer, chain, PARAMETERS, tmp_path / "record.json")
    path, content = only_file(tmp_path)
    assert error.value.place == f"what was deployed stands in {path}"
    assert isinstance(error.value.__cause__, ContractLogicError)
    entries = content["contracts"]
    assert sorted(entries) == ["GroupMessages", "IdentityUpdates", "OriginatorSequence"]
    logs = [entries["GroupMessages"], entries["IdentityUpdates"]]
    for entry in [*entries.values(), *(log["implementation"] for log in logs)]:
        assert chain.has_code(bytes.fromhex(entry["address"][2:]))
        receipt = chain.web3.eth.get_transaction_receipt(entry["transaction"])
        assert receipt["contractAddress"] == entry["address"]


def test_deploy__what_stands_there_is_wrong__keeps_all_addresses_and_says_what(
    chain, deployer, tmp_path, monkeypatch
):
    def refuse(*_):
        raise ConfigurationError("owner of NodeRegistry", "one", "another")

    monkeypatch.setattr(script, "check_deployed", refuse)
    with pytest.raises(UnfinishedDeployment, match="got owner of NodeRegistry: expected one"):
        script.run(deployer, chain, PARAMETERS, tmp_path / "record.json")
    path, content = only_file(tmp_path)
    assert path.suffix == ".partial"
    assert len(content["contracts"]) == 4


def test_deploy__the_account_is_used_meanwhile__stops_before_the_next_transaction(
    chain, deployer, stranger, tmp_path, monkeypatch
):
    add, nonce = Draft.add, deployer.nonce

    def add_and_spend_a_nonce(draft, name, entry):
        add(draft, name, entry)
        deployer.transfer(stranger, 1)

    monkeypatch.setattr(Draft, "add", add_and_spend_a_nonce)
    with pytest.raises(UnfinishedDeployment, match="got Invalid nonce"):
        script.run(deployer, chain, PARAMETERS, tmp_path / "record.json")
    assert deployer.nonce == nonce + 2
    assert list(only_file(tmp_path)[1]["contracts"]) == ["OriginatorSequence"]


def test_drafted__fails_before_anything_was_mined__leaves_nothing(tmp_path):
    with pytest.raises(OSError, match="no money"), drafted(tmp_path / "record.json", HEADER):
        raise OSError("no money")
    assert list(tmp_path.iterdir()) == []


def test_drafted__interrupted_by_the_user__keeps_what_was_mined(tmp_path):
    with (
        pytest.raises(UnfinishedDeployment, match="got KeyboardInterrupt"),
        drafted(tmp_path / "record.json", HEADER) as draft,
    ):
        draft.add("NodeRegistry", {"block": 7})
        raise KeyboardInterrupt
    assert only_file(tmp_path)[1] == HEADER | {"contracts": {"NodeRegistry": {"block": 7}}}


def test_drafted__record_cannot_take_its_place__keeps_what_was_mined(tmp_path):
    record = tmp_path / "record.json"
    with (
        pytest.raises(UnfinishedDeployment, match=r"got .*Is a directory") as error,
        drafted(record, HEADER) as draft,
    ):
        draft.add("NodeRegistry", {"block": 7})
        record.mkdir()
    assert draft.path.is_file()
    assert str(draft.path) in error.value.place
