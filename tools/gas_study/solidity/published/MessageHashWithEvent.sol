// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title MessageHashWithEvent
/// @notice XIP-49 §2.1.3, "storing the hashes of messages on chain. Firing an event", for the gas
/// study. Never deployed by the scripts.
/// @dev Reconstructed from the published figures, which it meets to the gas; see docs/gas.md.
contract MessageHashWithEvent {
    /* STORAGE */

    /// @dev The sequence id of the last hash.
    uint256 private _sequenceId;

    // Unindexed as in XIP-49: indexing would change the figure.
    // solhint-disable gas-indexed-events

    /// @notice Emitted when a hash was published.
    /// @param groupId The group that the message is for.
    /// @param messageHash The message's hash.
    /// @param sequenceId The message's sequence id.
    event MessageSent(bytes32 groupId, bytes32 messageHash, uint256 sequenceId);

    /* PUBLISHING */

    /// @notice Counts a message and emits its hash.
    /// @param groupId The group that the message is for.
    /// @param messageHash The message's hash, 32 bytes.
    function addMessage(bytes32 groupId, bytes calldata messageHash) external {
        // The figure comes out with this form of the increment alone.
        // solhint-disable-next-line gas-increment-by-one
        _sequenceId += 1;
        emit MessageSent(groupId, bytes32(messageHash), _sequenceId);
    }
}
