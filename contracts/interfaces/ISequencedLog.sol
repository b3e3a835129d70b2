// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {IOriginatorSequence} from "./IOriginatorSequence.sol";

/// @title ISequencedLog
/// @notice What GroupMessages and IdentityUpdates have in common: an administrator who may pause
/// and upgrade, and the shared sequence of originator 0 (XIP-49 §2.2.2, §2.2.4).
/// @dev Roles follow OpenZeppelin's AccessControl (`grantRole`, `revokeRole`, `renounceRole`); every
/// privileged function here asks for DEFAULT_ADMIN_ROLE. Upgrades follow UUPS
/// (`upgradeToAndCall`), to an implementation built on the same sequence only: on another one the
/// ids of originator 0 would begin again. Warning: an administrator can upgrade to code with other
/// rules, and whether the new code is this contract's or its sibling's is not checked.
interface ISequencedLog {
    // Events are unindexed as in XIP-49: indexing would move values out of the log's data.
    // solhint-disable gas-indexed-events

    /// @notice Emitted when an upgrade was authorized, before the implementation changes.
    /// @param upgrader The administrator who asked for the upgrade.
    /// @param newImplementation The implementation that the proxy will use.
    event UpgradeAuthorized(address upgrader, address newImplementation);

    /// @notice The implementation was constructed with a sequence that holds no code.
    /// @param originatorSequence The address given.
    error InvalidOriginatorSequence(address originatorSequence);

    /// @notice An upgrade would have re-pointed the sequence.
    /// @param current The sequence from which this contract takes its ids.
    /// @param proposed The sequence of the new implementation, zero if it names none.
    error OriginatorSequenceChanged(address current, address proposed);

    /// @notice The proxy was initialized with an administrator who cannot act.
    /// @param admin The address given.
    error InvalidAdmin(address admin);

    /// @notice Gives DEFAULT_ADMIN_ROLE to `admin`. Callable once per proxy.
    /// @dev Call it in the proxy's constructor: whoever calls first names the administrator.
    /// @param admin The first administrator; the deployer keeps no role.
    function initialize(address admin) external;

    /// @notice Stops new payloads, and nothing else. Only callable by an administrator.
    function pause() external;

    /// @notice Accepts new payloads again. Only callable by an administrator.
    function unpause() external;

    /// @notice The sequence from which this contract takes its sequence ids.
    /// @return sequence The shared sequence of originator 0.
    function originatorSequence() external view returns (IOriginatorSequence sequence);
}
