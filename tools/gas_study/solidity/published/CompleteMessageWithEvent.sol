// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title CompleteMessageWithEvent
/// @notice XIP-49 §2.1.3, "storing complete messages on chain and firing an event with the event
/// included", for the gas study. Never deployed by the scripts.
/// @dev Reconstructed from the published figures, which it meets to the gas; see docs/gas.md.
contract CompleteMessageWithEvent {
    /* STORAGE */

    /// @dev The sequence id of the last message.
    uint256 private _sequenceId;

    // Unindexed as in XIP-49: indexing would change the figure.
    // solhint-disable gas-indexed-events

    /// @notice Emitted when a message was published.
    /// @param groupId The group that the message is for.
    /// @param message The whole message.
    /// @param sequenceId The message's sequence id.
    event MessageSent(bytes32 groupId, bytes message, uint256 sequenceId);

    /* PUBLISHING */

    /// @notice Counts a message and emits it.
    /// @param groupId The group that the message is for.
    /// @param message The whole message.
    function addMessage(bytes32 groupId, bytes calldata message) external {
        // The figure comes out with this form of the increment alone.
        // solhint-disable-next-line gas-increment-by-one
        _sequenceId += 1;
        emit MessageSent(groupId, message, _sequenceId);
    }
}
