// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title SilentGroupMessages
/// @notice Counts for itself and tells nobody, names groups by 16 bytes and indexes nothing: what
/// an indexer must follow by the events alone in the tests. Never deployed by the scripts.
contract SilentGroupMessages {
    /* STORAGE */

    uint64 private _sequenceId;

    // Unindexed, so that the tests have every form of the event.
    // solhint-disable gas-indexed-events

    /// @notice Emitted when a message was published.
    /// @param groupId The group that the message is for.
    /// @param message The whole message.
    /// @param sequenceId The message's sequence id.
    event MessageSent(bytes16 groupId, bytes message, uint64 sequenceId);

    /* PUBLISHING */

    /// @notice Counts a message and emits it.
    /// @param groupId The group that the message is for.
    /// @param message The whole message.
    function addMessage(bytes16 groupId, bytes calldata message) external {
        emit MessageSent(groupId, message, ++_sequenceId);
    }
}
