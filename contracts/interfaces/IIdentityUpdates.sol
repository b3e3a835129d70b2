// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {ISequencedLog} from "./ISequencedLog.sol";

/// @title IIdentityUpdates
/// @notice Puts the identity updates of inboxes in the one order that every client and node shares
/// (XIP-49 §2.2.4). Complete payloads live in the event; none is in storage.
interface IIdentityUpdates is ISequencedLog {
    // Events are unindexed as in XIP-49: indexing would move values out of the log's data.
    // solhint-disable gas-indexed-events

    /// @notice Emitted when an identity update was stored into the blockchain.
    /// @param inboxId The inbox that the caller named. Not proved to match the payload.
    /// @param update A serialized ClientEnvelope, if the caller was honest; any bytes if not.
    /// @param sequenceId The payload's sequence id under originator 0.
    event IdentityUpdateCreated(bytes32 inboxId, bytes update, uint64 sequenceId);

    /// @notice Stores a new identity update in the blockchain.
    /// @dev Anyone may call while the contract is not paused, with a payload within `payloadBounds`. It is
    /// not inspected: readers must expect any bytes, and must not serve what is not a valid ClientEnvelope for `inboxId`.
    /// @param inboxId The inbox that the update is for.
    /// @param update The serialized ClientEnvelope.
    function addIdentityUpdate(bytes32 inboxId, bytes calldata update) external;
}
