// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title CountingIdentityUpdates
/// @notice Counts for itself and indexes all but the update, as XMTP's newer contracts do: what an
/// indexer of other deployments follows in the tests. Never deployed by the scripts.
contract CountingIdentityUpdates {
    /* STORAGE */

    /// @notice The sequence id of the last update, 0 before the first.
    uint64 public sequenceId;

    /// @notice Emitted when an identity update was published.
    /// @param inboxId The inbox that the update is for.
    /// @param update The whole update.
    /// @param sequenceId The update's sequence id.
    event IdentityUpdateCreated(bytes32 indexed inboxId, bytes update, uint64 indexed sequenceId);

    /* PUBLISHING */

    /// @notice Counts an identity update and emits it.
    /// @param inboxId The inbox that the update is for.
    /// @param update The whole update.
    function addIdentityUpdate(bytes32 inboxId, bytes calldata update) external {
        emit IdentityUpdateCreated(inboxId, update, ++sequenceId);
    }
}
