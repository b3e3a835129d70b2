// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {IOriginatorSequence} from "./IOriginatorSequence.sol";

/// @title ISequencedLog
/// @notice What GroupMessages and IdentityUpdates have in common: administrators who may pause,
/// bound and upgrade, and the shared sequence of originator 0 (XIP-49 §2.2.2, §2.2.4).
/// @dev Roles follow OpenZeppelin's AccessControlEnumerable (`grantRole`, `revokeRole`,
/// `renounceRole`, `getRoleMembers`); every privileged function here asks for DEFAULT_ADMIN_ROLE.
/// One administrator always remains; whether it can still act, nobody can know: see that a new
/// administrator has acted before the old one renounces.
/// Upgrades follow UUPS (`upgradeToAndCall`), to an implementation of the same contract built on
/// the same sequence only: on another one the ids of originator 0 would begin again. Warning: an
/// administrator can upgrade to code with other rules, which merely has to answer as expected.
interface ISequencedLog {
    // Events are unindexed as in XIP-49: indexing would move values out of the log's data.
    // slither-disable-start unindexed-event-address
    // solhint-disable gas-indexed-events

    /// @notice Emitted when an upgrade was authorized, before the implementation changes.
    /// @param upgrader The administrator who asked for the upgrade.
    /// @param newImplementation The implementation that the proxy will use.
    event UpgradeAuthorized(address upgrader, address newImplementation);

    /// @notice Emitted when new payloads were stopped.
    /// @param account The administrator who did it.
    event Paused(address account);

    /// @notice Emitted when new payloads were allowed again.
    /// @param account The administrator who did it.
    event Unpaused(address account);

    /// @notice Emitted when the payload bounds were set.
    /// @param account The administrator who did it; the deployer, when the proxy was initialized.
    /// @param minimum The least size of a payload, in bytes.
    /// @param maximum The greatest size of a payload, in bytes.
    event PayloadBoundsSet(address account, uint32 minimum, uint32 maximum);
    // solhint-enable gas-indexed-events
    // slither-disable-end unindexed-event-address

    /// @notice The implementation was constructed with a sequence that holds no code.
    /// @param originatorSequence The address given.
    error InvalidOriginatorSequence(address originatorSequence);

    /// @notice An upgrade would have re-pointed the sequence.
    /// @param current The sequence from which this contract takes its ids.
    /// @param proposed The sequence of the new implementation, zero if it names none.
    error OriginatorSequenceChanged(address current, address proposed);

    /// @notice An upgrade would have made this contract another one.
    /// @param current The topic kind of this contract.
    /// @param proposed The topic kind of the new implementation, 2²⁵⁶ - 1 if it names none.
    error TopicKindChanged(uint256 current, uint256 proposed);

    /// @notice An administrator was named who cannot act: the zero address or the contract itself.
    /// @param admin The address given.
    error InvalidAdmin(address admin);

    /// @notice The last administrator can neither be removed nor leave.
    /// @param admin The last administrator.
    error LastAdmin(address admin);

    /// @notice New payloads are stopped.
    error EnforcedPause();

    /// @notice New payloads are not stopped.
    error ExpectedPause();

    /// @notice The payload is too small or too large.
    /// @param size The payload's size, in bytes.
    /// @param minimum The least size, in bytes.
    /// @param maximum The greatest size, in bytes.
    error PayloadSizeOutOfBounds(uint256 size, uint256 minimum, uint256 maximum);

    /// @notice Payload bounds must hold minimum ≤ maximum ≤ cap, and a maximum above 0.
    /// @param minimum The least size given, in bytes.
    /// @param maximum The greatest size given, in bytes.
    /// @param cap The hard cap, in bytes.
    error InvalidPayloadBounds(uint32 minimum, uint32 maximum, uint32 cap);

    /// @notice Gives DEFAULT_ADMIN_ROLE to `admin` and sets the payload bounds. Callable once per
    /// proxy.
    /// @dev Call it in the proxy's constructor: whoever calls first names the administrator.
    /// @param admin The first administrator; the deployer keeps no role.
    /// @param minPayloadSize The least size of a payload, in bytes.
    /// @param maxPayloadSize The greatest size of a payload, in bytes.
    function initialize(address admin, uint32 minPayloadSize, uint32 maxPayloadSize) external;

    /// @notice Stops new payloads, and nothing else. Only callable by an administrator.
    function pause() external;

    /// @notice Accepts new payloads again. Only callable by an administrator.
    function unpause() external;

    /// @notice Sets the least and the greatest size of a payload. Only callable by an administrator.
    /// @dev What was published before stays.
    /// @param minPayloadSize In bytes; 0 also allows the empty payload.
    /// @param maxPayloadSize In bytes, at most `payloadSizeCap`.
    function setPayloadBounds(uint32 minPayloadSize, uint32 maxPayloadSize) external;

    /// @notice Whether new payloads are stopped.
    /// @return isPaused True between `pause` and `unpause`.
    function paused() external view returns (bool isPaused);

    /// @notice The sizes that a payload may have.
    /// @return minimum The least size, in bytes.
    /// @return maximum The greatest size, in bytes.
    function payloadBounds() external view returns (uint32 minimum, uint32 maximum);

    /// @notice The hard cap on what an administrator may set as the greatest size.
    /// @return cap In bytes.
    function payloadSizeCap() external pure returns (uint32 cap);

    /// @notice The sequence from which this contract takes its sequence ids.
    /// @return sequence The shared sequence of originator 0.
    function originatorSequence() external view returns (IOriginatorSequence sequence);

    /// @notice How far the shared sequence has come, by this contract and its sibling together.
    /// @return sequenceId The sequence id taken last, 0 if none was.
    function lastSequenceId() external view returns (uint64 sequenceId);

    /// @notice What this contract carries: the first byte of its payloads' topics.
    /// @return kind 0 for group messages, 2 for identity updates.
    function topicKind() external pure returns (uint256 kind);
}
