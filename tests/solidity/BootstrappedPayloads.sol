// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title BootstrappedPayloads
/// @notice Emits messages and identity updates as contracts do that take over the log of an older
/// network: under any sequence ids, in any order, and otherwise under the next id after the
/// highest one. Its number cannot be read. Deployed once for each kind, by tests only.
contract BootstrappedPayloads {
    /* STORAGE */

    uint64 private _highest;

    /// @notice Emitted when a message was published.
    /// @param groupId The group that the message is for.
    /// @param message The whole message.
    /// @param sequenceId The message's sequence id.
    event MessageSent(bytes16 indexed groupId, bytes message, uint64 indexed sequenceId);

    /// @notice Emitted when an identity update was published.
    /// @param inboxId The inbox that the update is for.
    /// @param update The whole update.
    /// @param sequenceId The update's sequence id.
    event IdentityUpdateCreated(bytes32 indexed inboxId, bytes update, uint64 indexed sequenceId);

    /* PUBLISHING */

    /// @notice Emits a message under the next id.
    /// @param groupId The group that the message is for.
    /// @param message The whole message.
    function addMessage(bytes16 groupId, bytes calldata message) external {
        emit MessageSent(groupId, message, ++_highest);
    }

    /// @notice Emits an identity update under the next id.
    /// @param inboxId The inbox that the update is for.
    /// @param update The whole update.
    function addIdentityUpdate(bytes32 inboxId, bytes calldata update) external {
        emit IdentityUpdateCreated(inboxId, update, ++_highest);
    }

    /// @notice Emits messages of one group under ids of the caller's choice.
    /// @param groupId The group that the messages are for.
    /// @param messages The whole messages.
    /// @param sequenceIds Their ids.
    function bootstrapMessages(
        bytes16 groupId,
        bytes[] calldata messages,
        uint64[] calldata sequenceIds
    ) external {
        for (uint256 i = 0; i < messages.length; ++i) {
            emit MessageSent(groupId, messages[i], sequenceIds[i]);
            if (sequenceIds[i] > _highest) _highest = sequenceIds[i];
        }
    }
}
