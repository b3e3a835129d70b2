// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {TestBase} from "./TestBase.sol";
import {Vm} from "./Vm.sol";

/// @title Attempts
/// @notice What the handlers of the invariant suites do: any actor tries any call, and what comes of
/// it must be what the model says, down to the error's arguments.
abstract contract Attempts is TestBase {
    /// @dev What the model says of a call that is not refused.
    bytes internal constant ACCEPTED = "";

    address[] internal actors;

    uint256 internal attempts;

    constructor() {
        actors = [admin, secondAdmin, owner, newOwner, operator, secondOperator, publisher];
        actors.push(stranger);
    }

    function _actorOf(uint256 seed) internal view returns (address actor) {
        return actors[seed % actors.length];
    }

    /// @dev A digest of all that a call to the contracts under test may change.
    function _fingerprint() internal view virtual returns (bytes32 digest);

    /// @dev Whoever is refused gets the refusal that the model says, and changes nothing.
    /// @return accepted Whether the call was accepted.
    /// @return logs What an accepted call logged; forge records the logs of refused calls too.
    function _attempt(address actor, address target, bytes memory call, bytes memory refusal)
        internal
        returns (bool accepted, Vm.Log[] memory logs)
    {
        ++attempts;
        bytes32 fingerprint = _fingerprint();
        vm.recordLogs();
        vm.prank(actor);
        // solhint-disable-next-line avoid-low-level-calls
        (bool success, bytes memory answer) = target.call(call);
        accepted = refusal.length == 0;
        vm.assertEq(success, accepted, "accepted by one of model and contract only");
        if (accepted) return (true, vm.getRecordedLogs());
        vm.assertEq(answer, refusal, "refused with another error");
        vm.assertEq(_fingerprint(), fingerprint, "refused, but something changed");
    }
}
