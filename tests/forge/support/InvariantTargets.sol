// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title InvariantTargets
/// @notice Tells forge to call one handler and nothing else.
abstract contract InvariantTargets {
    address[] private _targets;

    function _target(address handler) internal {
        _targets.push(handler);
    }

    /// @notice What forge asks before a run.
    function targetContracts() external view returns (address[] memory targets) {
        return _targets;
    }
}
