// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {OriginatorSequence} from "../../contracts/OriginatorSequence.sol";
import {IOriginatorSequence} from "../../contracts/interfaces/IOriginatorSequence.sol";
import {TestBase} from "./support/TestBase.sol";

contract OriginatorSequenceTest is TestBase {
    uint256 internal constant MAX_FUZZED_CALLS = 50;

    /// @dev `last` is the contract's only storage.
    bytes32 internal constant LAST_SLOT = bytes32(0);

    OriginatorSequence internal sequence;

    function setUp() public {
        sequence = new OriginatorSequence(publisher, operator);
    }

    /* CONSTRUCTION */

    function test_construct__twoCallers__areFixedAndNoIdIsTaken() public view {
        vm.assertEq(sequence.groupMessages(), publisher);
        vm.assertEq(sequence.identityUpdates(), operator);
        vm.assertEq(sequence.last(), 0);
    }

    function test_construct__zeroGroupMessages__reverts() public {
        _expectInvalidCallers(address(0), operator);
        new OriginatorSequence(address(0), operator);
    }

    function test_construct__zeroIdentityUpdates__reverts() public {
        _expectInvalidCallers(publisher, address(0));
        new OriginatorSequence(publisher, address(0));
    }

    function test_construct__sameCallerTwice__reverts() public {
        _expectInvalidCallers(publisher, publisher);
        new OriginatorSequence(publisher, publisher);
    }

    function testFuzz_construct__anyTwoAddresses__areTakenIfDistinctAndNotZero(
        address first,
        address second
    ) public {
        bool valid = first != address(0) && second != address(0) && first != second;
        if (!valid) _expectInvalidCallers(first, second);
        OriginatorSequence made = new OriginatorSequence(first, second);
        if (!valid) return;
        vm.assertEq(made.groupMessages(), first);
        vm.assertEq(made.identityUpdates(), second);
    }

    /* SEQUENCING */

    /// conforms: 3.2.2-1
    function test_next__firstCall__takesOne() public {
        vm.prank(publisher);
        vm.assertEq(sequence.next(), 1);
        vm.assertEq(sequence.last(), 1);
    }

    /// conforms: 2.1-1
    function testFuzz_next__callersInAnyOrder__countUpByOne(uint256 order, uint256 calls) public {
        calls = _bound(calls, 1, MAX_FUZZED_CALLS);
        for (uint256 call = 1; call <= calls; ++call) {
            vm.prank((order >> call) & 1 == 0 ? publisher : operator);
            vm.assertEq(sequence.next(), call);
            vm.assertEq(sequence.last(), call);
        }
    }

    function testFuzz_next__anyOtherCaller__revertsAndTakesNothing(address caller) public {
        vm.assume(caller != publisher && caller != operator);
        vm.prank(caller);
        vm.expectRevert(
            abi.encodeWithSelector(IOriginatorSequence.UnauthorizedSequenceCaller.selector, caller)
        );
        sequence.next();
        vm.assertEq(sequence.last(), 0);
    }

    function test_next__afterTheLargestId__revertsInsteadOfBeginningAgain() public {
        vm.store(address(sequence), LAST_SLOT, bytes32(uint256(type(uint64).max)));
        vm.prank(publisher);
        vm.expectRevert(abi.encodeWithSignature("Panic(uint256)", 0x11));
        sequence.next();
        vm.assertEq(sequence.last(), type(uint64).max);
    }

    function _expectInvalidCallers(address first, address second) private {
        vm.expectRevert(
            abi.encodeWithSelector(
                IOriginatorSequence.InvalidSequenceCallers.selector, first, second
            )
        );
    }
}
