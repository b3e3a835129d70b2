// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {ISequencedLog} from "./ISequencedLog.sol";

/// @title IGroupMessages
/// @notice Puts the commits of MLS groups in the one order that every client and node shares
/// (XIP-49 §2.2.2). Complete payloads live in the event; none is in storage.
interface IGroupMessages is ISequencedLog {
    // Events are unindexed as in XIP-49: indexing would move values out of the log's data.
    // solhint-disable gas-indexed-events

    /// @notice Emitted when a group message was stored into the blockchain.
    /// @param groupId The group that the caller named. Not proved to match the payload.
    /// @param message A serialized ClientEnvelope, if the caller was honest; any bytes if not.
    /// @param sequenceId The payload's sequence id under originator 0.
    event MessageSent(bytes32 groupId, bytes message, uint64 sequenceId);

    /// @notice Stores a new group message in the blockchain.
    /// @dev Anyone may call while the contract is not paused, with a payload within `payloadBounds`. It is
    /// not inspected: readers must expect any bytes, and must not serve what is not a valid ClientEnvelope for `groupId`.
    /// @param groupId The group that the message is for.
    /// @param message The serialized ClientEnvelope.
    function addMessage(bytes32 groupId, bytes calldata message) external;
}
