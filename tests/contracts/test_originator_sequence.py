import ape
import pytest

ZERO = "0x0000000000000000000000000000000000000000"
ONE = "0x0000000000000000000000000000000000000001"


@pytest.fixture
def sequence(project, accounts, deployer):
    return deployer.deploy(project.OriginatorSequence, accounts[6], accounts[7])


def test_last__before_the_first_call__is_zero(sequence):
    assert sequence.last() == 0


def test_next__both_callers_in_turn__counts_from_one_without_gap(sequence, accounts):
    seen = []
    for caller in (accounts[6], accounts[7], accounts[7], accounts[6]):
        predicted = sequence.next.call(sender=caller)
        sequence.next(sender=caller)
        seen.append((predicted, sequence.last()))
    assert seen == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_next__any_other_caller__reverts_and_takes_no_id(sequence, deployer):
    with ape.reverts(sequence.UnauthorizedSequenceCaller, caller=deployer.address):
        sequence.next(sender=deployer)
    assert sequence.last() == 0


def test_callers__after_construction__are_the_two_given(sequence, accounts):
    assert sequence.groupMessages() == accounts[6]
    assert sequence.identityUpdates() == accounts[7]


@pytest.mark.parametrize(("first", "second"), [(ZERO, ONE), (ONE, ZERO), (ONE, ONE)])
def test_construct__zero_or_equal_callers__reverts(project, deployer, first, second):
    error = project.OriginatorSequence.InvalidSequenceCallers
    with ape.reverts(error, groupMessages=first, identityUpdates=second):
        deployer.deploy(project.OriginatorSequence, first, second)


def test_functions__of_the_sequence__write_nothing_but_next(project):
    methods = project.OriginatorSequence.contract_type.mutable_methods
    assert [method.selector for method in methods] == ["next()"]
