// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title StoredMessage
/// @notice What a whole message in contract storage (SSTORE) costs, for the gas study. Never
/// deployed by the scripts.
contract StoredMessage {
    /* STORAGE */

    /// @notice The sequence id of the last message.
    uint256 public sequenceId;

    /// @notice The messages by sequence id.
    mapping(uint256 sequenceId => bytes message) public messages;

    /* PUBLISHING */

    /// @notice Writes a message into storage: one slot for its length, one per 32 bytes.
    /// @param message The whole message.
    function addMessage(bytes32, bytes calldata message) external {
        messages[++sequenceId] = message;
    }
}
