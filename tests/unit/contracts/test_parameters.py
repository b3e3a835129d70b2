import copy
import json
from pathlib import Path
from typing import Any

import pytest

from chainkit.contracts.parameters import PayloadBounds, read_parameters
from chainkit.errors import ConfigurationError
from support.project import ROOT

LOCAL = ROOT / "deployments" / "parameters" / "local.json"
CONTENT: dict[str, Any] = json.loads(LOCAL.read_text())
ADDRESS = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"


def changed(path: str, value: Any) -> dict[str, Any]:
    """The local file with one field replaced, or left out where the value is None."""
    content = copy.deepcopy(CONTENT)
    *parents, last = path.split(".")
    parent = content
    for name in parents:
        parent = parent[name]
    if value is None:
        del parent[last]
    else:
        parent[last] = value
    return content


def written(folder: Path, content: Any) -> Path:
    path = folder / "parameters.json"
    path.write_text(json.dumps(content))
    return path


def test_read__local_file__holds_accounts_kinds_and_bounds() -> None:
    parameters = read_parameters(LOCAL)

    assert parameters.chain_id == 31337
    assert parameters.message_admin == bytes.fromhex(ADDRESS[2:])
    assert parameters.registry_owner == bytes.fromhex(ADDRESS[2:])
    assert not parameters.message_admin_is_contract
    assert parameters.payload_bounds == {
        "GroupMessages": PayloadBounds(0, 262144),
        "IdentityUpdates": PayloadBounds(0, 262144),
    }


def test_read__kind_contract__is_kept_for_that_account_alone(tmp_path: Path) -> None:
    path = written(tmp_path, changed("registry_owner.kind", "contract"))

    parameters = read_parameters(path)

    assert parameters.registry_owner_is_contract
    assert not parameters.message_admin_is_contract


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("chain_id", 0),
        ("chain_id", True),
        ("chain_id", "31337"),
        ("message_admin", None),
        ("message_admin.address", ADDRESS.lower()),
        ("message_admin.address", ADDRESS[:-1] + "9"),
        ("message_admin.address", "0x" + 40 * "0"),
        ("message_admin.address", 7),
        ("message_admin.kind", None),
        ("message_admin.kind", "safe"),
        ("message_admin.kind", ["account"]),
        ("message_admin.source", "  "),
        ("registry_owner.address", None),
        ("payload_bounds.GroupMessages.minimum", -1),
        ("payload_bounds.GroupMessages.minimum", 262145),
        ("payload_bounds.GroupMessages.maximum", 0),
        ("payload_bounds.IdentityUpdates.maximum", 1024 * 1024 + 1),
        ("payload_bounds.IdentityUpdates.source", None),
        ("payload_bounds.IdentityUpdates", 5),
    ],
)
def test_read__one_bad_field__names_file_and_field(path: str, value: Any, tmp_path: Path) -> None:
    file = written(tmp_path, changed(path, value))

    with pytest.raises(ConfigurationError) as caught:
        read_parameters(file)

    assert caught.value.subject == f"deployment parameters {file}"
    assert path in caught.value.place


def test_read__several_bad_fields__are_all_told_at_once(tmp_path: Path) -> None:
    content = changed("message_admin.kind", "safe") | {"chain_id": -1}
    del content["payload_bounds"]["GroupMessages"]["maximum"]

    with pytest.raises(ConfigurationError) as caught:
        read_parameters(written(tmp_path, content))

    fields = "message_admin.kind, chain_id, payload_bounds.GroupMessages.maximum"
    assert caught.value.place == fields
    assert "'safe'" in str(caught.value.got) and "maximum nothing" in str(caught.value.got)


@pytest.mark.parametrize(
    "path",
    [
        *("note", "message_admn", "message_admin.adress", "registry_owner.note"),
        *("payload_bounds.GroupMesages", "payload_bounds.GroupMessages.maxmum"),
    ],
)
def test_read__field_that_does_not_exist__is_refused_and_named(path: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_parameters(written(tmp_path, changed(path, {"minimum": 1})))

    assert caught.value.place == path
    assert f"{path} no such field" in str(caught.value.expected)


@pytest.mark.parametrize("text", ["[]", "{", "null"])
def test_read__no_object__is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "parameters.json"
    path.write_text(text)

    with pytest.raises(ConfigurationError, match=r"parameters\.json"):
        read_parameters(path)


def test_read__no_file__is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        read_parameters(tmp_path / "missing.json")
