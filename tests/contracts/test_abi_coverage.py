import ast
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CONTRACTS = ("GroupMessages", "IdentityUpdates", "NodeRegistry", "OriginatorSequence")
NOT_EXERCISED_BY = (
    "test_abi_coverage.py",
    "test_abis.py",
    "test_contracts_document.py",
    "test_roles_table.py",
)

UNREACHABLE = {
    # Approvals always revert first, so that nothing is ever approved.
    "Approval",
    "ApprovalForAll",
    "ERC721InsufficientApproval",
    "ERC721InvalidApprover",
    "ERC721InvalidOperator",
    # Ids count up, so that none is minted twice.
    "ERC721InvalidSender",
    # Nothing calls `_setRoleAdmin`: every role's administrator is DEFAULT_ADMIN_ROLE.
    "RoleAdminChanged",
    # The implementation's code is asked for before it is called.
    "AddressEmptyCode",
    # No function is for initializers only.
    "NotInitializing",
}
"""Events and errors that OpenZeppelin declares and no transaction can cause here."""


def names_used_in(path):
    """The attributes that a test reads, and the functions, events and errors it names in text."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.split("(")[0]


@pytest.fixture(scope="module")
def exercised():
    tests = [path for path in HERE.glob("test_*.py") if path.name not in NOT_EXERCISED_BY]
    return {name for path in tests for name in names_used_in(path)}


@pytest.mark.parametrize("contract_name", CONTRACTS)
def test_abi__every_function_event_and_error__is_named_by_a_test(project, exercised, contract_name):
    abi = project.get_contract(contract_name).contract_type.abi
    declared = {entry.name for entry in abi if entry.type in ("function", "event", "error")}
    assert declared - UNREACHABLE - exercised == set()


def test_unreachable__each_of_them__is_declared_and_caused_by_no_test(project, exercised):
    contracts = [project.get_contract(name).contract_type for name in CONTRACTS]
    declared = {getattr(entry, "name", None) for contract in contracts for entry in contract.abi}
    assert declared >= UNREACHABLE
    assert UNREACHABLE & exercised == set()
