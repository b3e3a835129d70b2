// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title CountingGroupMessages
/// @notice Counts for itself, names groups by 16 bytes and indexes all but the message, as XMTP's
/// newer contracts do: what an indexer of other deployments follows in the tests. Never deployed
/// by the scripts.
contract CountingGroupMessages {
    /* STORAGE */

    /// @notice The sequence id of the last message, 0 before the first.
    uint64 public sequenceId;

    /// @notice Emitted when a message was published.
    /// @param groupId The group that the message is for.
    /// @param message The whole message.
    /// @param sequenceId The message's sequence id.
    event MessageSent(bytes16 indexed groupId, bytes message, uint64 indexed sequenceId);

    /* PUBLISHING */

    /// @notice Counts a message and emits it.
    /// @param groupId The group that the message is for.
    /// @param message The whole message.
    function addMessage(bytes16 groupId, bytes calldata message) external {
        emit MessageSent(groupId, message, ++sequenceId);
    }
}
