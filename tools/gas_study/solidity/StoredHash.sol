// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title StoredHash
/// @notice What a hash per message in contract storage costs, for the gas study. Never deployed by
/// the scripts.
contract StoredHash {
    /* STORAGE */

    /// @notice The sequence id of the last hash.
    uint256 public sequenceId;

    /// @notice The hashes by sequence id.
    mapping(uint256 sequenceId => bytes32 messageHash) public messageHashes;

    /* PUBLISHING */

    /// @notice Writes a message's hash into a slot of its own.
    /// @param messageHash The message's hash, 32 bytes.
    function addMessage(bytes32, bytes calldata messageHash) external {
        messageHashes[++sequenceId] = bytes32(messageHash);
    }
}
