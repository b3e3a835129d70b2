// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {Outcomes} from "../support/Outcomes.sol";

/// @dev Does with its calldata what our contracts do not: it looks at all of it.
contract CalldataReader {
    event Read(uint256 size);

    error Size(uint256 size);

    uint256 internal kept;

    function keep() external {
        kept = msg.data.length;
    }

    function tell() external {
        emit Read(msg.data.length);
    }

    function answer() external pure returns (uint256 size) {
        return msg.data.length;
    }

    function refuse() external pure {
        if (msg.data.length != 4) revert Size(msg.data.length);
    }

    function ignore() external {
        kept = 1;
    }
}

/// @title OutcomesTest
/// @notice That Outcomes shows what a trailer does, wherever it does it.
contract OutcomesTest is Outcomes {
    bytes internal constant TRAILER = "trailer";

    CalldataReader internal reader;

    function setUp() public {
        reader = new CalldataReader();
    }

    function test_outcome__slotThatHoldsTheSize__differs() public {
        (Outcome memory plain, Outcome memory trailed) = _outcomes(reader.keep.selector);
        vm.assertFalse(plain.accesses == trailed.accesses);
    }

    function test_outcome__logOfTheSize__differs() public {
        (Outcome memory plain, Outcome memory trailed) = _outcomes(reader.tell.selector);
        vm.assertFalse(plain.logs == trailed.logs);
    }

    function test_outcome__answerOfTheSize__differs() public {
        (Outcome memory plain, Outcome memory trailed) = _outcomes(reader.answer.selector);
        vm.assertFalse(keccak256(plain.answer) == keccak256(trailed.answer));
    }

    function test_outcome__refusalBecauseOfTheSize__differs() public {
        (Outcome memory plain, Outcome memory trailed) = _outcomes(reader.refuse.selector);
        vm.assertTrue(plain.accepted);
        vm.assertFalse(trailed.accepted);
    }

    function test_outcome__sizeThatNobodyLooksAt__isTheSame() public {
        (Outcome memory plain, Outcome memory trailed) = _outcomes(reader.ignore.selector);
        vm.assertEq(abi.encode(plain), abi.encode(trailed));
        vm.assertEq(plain.written, 1);
    }

    /* INTERNALS */

    function _outcomes(bytes4 selector)
        private
        returns (Outcome memory plain, Outcome memory trailed)
    {
        Call memory call = Call(stranger, abi.encodePacked(selector));
        return (_outcomeOf(address(reader), call, ""), _outcomeOf(address(reader), call, TRAILER));
    }
}
