// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {TestBase} from "./TestBase.sol";
import {Vm} from "./Vm.sol";

/// @title Outcomes
/// @notice What a call does, with and without bytes behind it. That is all that forge records: the
/// answer, the logs, and each account and slot that was called, read or written, in order.
abstract contract Outcomes is TestBase {
    /// @dev Who makes a call, and its calldata.
    struct Call {
        address sender;
        bytes data;
    }

    struct Outcome {
        bool accepted;
        bytes answer;
        bytes32 logs;
        bytes32 accesses;
        uint256 written;
    }

    function _assertSameOutcome(address target, Call memory call, bytes memory trailer)
        internal
        returns (Outcome memory outcome)
    {
        outcome = _outcomeOf(target, call, "");
        Outcome memory trailed = _outcomeOf(target, call, trailer);
        vm.assertEq(trailed.accepted, outcome.accepted);
        vm.assertEq(trailed.answer, outcome.answer);
        vm.assertEq(trailed.logs, outcome.logs, "other logs");
        vm.assertEq(trailed.accesses, outcome.accesses, "other accesses");
    }

    /// @dev Makes a call with a trailer and takes it back.
    function _outcomeOf(address target, Call memory call, bytes memory trailer)
        internal
        returns (Outcome memory outcome)
    {
        uint256 snapshot = vm.snapshotState();
        bytes memory sent = bytes.concat(call.data, trailer);
        vm.recordLogs();
        vm.startStateDiffRecording();
        vm.prank(call.sender);
        // solhint-disable-next-line avoid-low-level-calls
        (outcome.accepted, outcome.answer) = target.call(sent);
        Vm.AccountAccess[] memory accesses = vm.stopAndReturnStateDiff();
        outcome.logs = keccak256(abi.encode(vm.getRecordedLogs()));
        for (uint256 index = 0; index < accesses.length; ++index) {
            outcome.written += _writes(accesses[index]);
            // The call itself, and what a proxy hands on: the only places for a trailer.
            bytes memory data = accesses[index].data;
            if (keccak256(data) == keccak256(sent)) accesses[index].data = call.data;
        }
        outcome.accesses = keccak256(abi.encode(accesses));
        vm.revertToState(snapshot);
    }

    function _writes(Vm.AccountAccess memory access) private pure returns (uint256 count) {
        for (uint256 index = 0; index < access.storageAccesses.length; ++index) {
            if (access.storageAccesses[index].isWrite) ++count;
        }
    }
}
